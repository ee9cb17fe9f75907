"""Distributional regression: for each row a whole calibrated distribution.

May import the public names of `calibration` (and its kernels), never the reverse.
"""

from calibration import __version__ as __version__
from localexpert import risk
from localexpert.curves.spline import ProbitSpline, RawSpline
from localexpert.data.dates import date_features
from localexpert.data.folds import make_folds
from localexpert.distribution.answers import ExpectedMean
from localexpert.distribution.dependence import estimate_correlation
from localexpert.distribution.predictive import PredictiveDistribution, concatenate
from localexpert.distribution.predictors import predict_dist
from localexpert.ensemble import DistributionEnsemble, pool, pool_weights
from localexpert.experts import (
    IndependentExperts,
    JointForest,
    SharedBoosting,
)
from localexpert.experts.calibration import ExpertCalibration
from localexpert.experts.report import ExpertReport
from localexpert.experts.thresholds import find_atoms, is_discrete, place_thresholds
from localexpert.explain import (
    Explanation,
    PermutationImportance,
    explain_forecast,
    permutation_importance,
)
from localexpert.large.fit_large import fit_large
from localexpert.large.predict_table import predict_table
from localexpert.law.totals import CorrelationEstimate
from localexpert.learn.roads import (
    CellRoad,
    DiscreteRoad,
    FrameRoad,
    GridRoad,
    Road,
    Transformed,
)
from localexpert.learn.steps import Step
from localexpert.metrics import (
    DistributionScorer,
    crps_score,
    crps_scorer,
    interval_coverage,
    interval_score,
    log_score,
    log_scorer,
    pinball_loss,
    pit_test,
    threshold_weighted_crps,
)
from localexpert.monitor.forecast import ForecastMonitor
from localexpert.plots import (
    plot_coverage,
    plot_expert_report,
    plot_explanation,
    plot_fan,
    plot_forecast,
    plot_forecasts,
    plot_importance,
    plot_pit,
    plot_quantile_reliability,
    plot_sharpness,
    plot_threshold_reliability,
)
from localexpert.recalibration.conformal import ConformalRecalibration
from localexpert.recalibration.groups import GroupedRecalibration
from localexpert.recalibration.pit import PitRecalibration
from localexpert.recalibration.weighted import (
    ShiftWeights,
    WeightedConformal,
    shift_weights,
)
from localexpert.regressor.adapter import DistributionAdapter, cross_val_predict_dist
from localexpert.regressor.recalibrated import (
    RecalibratedRegressor,
    adapt,
    recalibrate,
)
from localexpert.regressor.regressor import LocalExpertRegressor
from localexpert.regressor.seen_rows import seen_rows
from localexpert.reporting import BackTest, ReportFigures, report, report_figures
from localexpert.stacking import Stacker
from localexpert.storage import load

__all__ = [
    "BackTest",
    "CellRoad",
    "ConformalRecalibration",
    "CorrelationEstimate",
    "DiscreteRoad",
    "DistributionAdapter",
    "DistributionEnsemble",
    "DistributionScorer",
    "ExpectedMean",
    "ExpertCalibration",
    "ExpertReport",
    "Explanation",
    "ForecastMonitor",
    "FrameRoad",
    "GridRoad",
    "GroupedRecalibration",
    "IndependentExperts",
    "JointForest",
    "LocalExpertRegressor",
    "PermutationImportance",
    "PitRecalibration",
    "PredictiveDistribution",
    "ProbitSpline",
    "RawSpline",
    "RecalibratedRegressor",
    "ReportFigures",
    "Road",
    "SharedBoosting",
    "ShiftWeights",
    "Stacker",
    "Step",
    "Transformed",
    "WeightedConformal",
    "adapt",
    "concatenate",
    "cross_val_predict_dist",
    "crps_score",
    "crps_scorer",
    "date_features",
    "estimate_correlation",
    "explain_forecast",
    "find_atoms",
    "fit_large",
    "interval_coverage",
    "interval_score",
    "is_discrete",
    "load",
    "log_score",
    "log_scorer",
    "make_folds",
    "permutation_importance",
    "pinball_loss",
    "pit_test",
    "place_thresholds",
    "plot_coverage",
    "plot_expert_report",
    "plot_explanation",
    "plot_fan",
    "plot_forecast",
    "plot_forecasts",
    "plot_importance",
    "plot_pit",
    "plot_quantile_reliability",
    "plot_sharpness",
    "plot_threshold_reliability",
    "pool",
    "pool_weights",
    "predict_dist",
    "predict_table",
    "recalibrate",
    "report",
    "report_figures",
    "risk",
    "seen_rows",
    "shift_weights",
    "threshold_weighted_crps",
]
