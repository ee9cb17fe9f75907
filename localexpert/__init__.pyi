"""The public names, and where each is: what type checkers read.

The package reads the same lines when a name is asked for (`calibration/_lazy.py`).
"""

from calibration.storage import load as load
from localexpert import risk as risk
from localexpert.curves.spline import ProbitSpline as ProbitSpline
from localexpert.curves.spline import RawSpline as RawSpline
from localexpert.data.columns import date_features as date_features
from localexpert.data.folds import make_folds as make_folds
from localexpert.distribution.answers import ExpectedMean as ExpectedMean
from localexpert.distribution.predictive import (
    PredictiveDistribution as PredictiveDistribution,
)
from localexpert.distribution.predictive import concatenate as concatenate
from localexpert.distribution.predictors import predict_dist as predict_dist
from localexpert.ensemble import DistributionEnsemble as DistributionEnsemble
from localexpert.ensemble import pool as pool
from localexpert.ensemble import pool_weights as pool_weights
from localexpert.experts import IndependentExperts as IndependentExperts
from localexpert.experts import JointForest as JointForest
from localexpert.experts import SharedBoosting as SharedBoosting
from localexpert.experts.calibration import ExpertCalibration as ExpertCalibration
from localexpert.experts.report import ExpertReport as ExpertReport
from localexpert.experts.thresholds import find_atoms as find_atoms
from localexpert.experts.thresholds import is_discrete as is_discrete
from localexpert.experts.thresholds import place_thresholds as place_thresholds
from localexpert.explain.permutation import (
    PermutationImportance as PermutationImportance,
)
from localexpert.explain.permutation import (
    permutation_importance as permutation_importance,
)
from localexpert.explain.shapley import Explanation as Explanation
from localexpert.explain.shapley import explain_forecast as explain_forecast
from localexpert.large.tables import fit_large as fit_large
from localexpert.large.tables import predict_table as predict_table
from localexpert.law.join import SpreadParts as SpreadParts
from localexpert.law.totals import CorrelationEstimate as CorrelationEstimate
from localexpert.learn.roads import CellRoad as CellRoad
from localexpert.learn.roads import DiscreteRoad as DiscreteRoad
from localexpert.learn.roads import FrameRoad as FrameRoad
from localexpert.learn.roads import GridRoad as GridRoad
from localexpert.learn.roads import Road as Road
from localexpert.learn.roads import Transformed as Transformed
from localexpert.learn.steps import Step as Step
from localexpert.metrics import DistributionScorer as DistributionScorer
from localexpert.metrics import crps_score as crps_score
from localexpert.metrics import crps_scorer as crps_scorer
from localexpert.metrics import (
    estimate_correlation as estimate_correlation,
)
from localexpert.metrics import interval_coverage as interval_coverage
from localexpert.metrics import interval_score as interval_score
from localexpert.metrics import log_score as log_score
from localexpert.metrics import log_scorer as log_scorer
from localexpert.metrics import pinball_loss as pinball_loss
from localexpert.metrics import pit_test as pit_test
from localexpert.metrics import threshold_weighted_crps as threshold_weighted_crps
from localexpert.monitor import ForecastMonitor as ForecastMonitor
from localexpert.partial.outcomes import censored as censored
from localexpert.partial.outcomes import kaplan_meier as kaplan_meier
from localexpert.partial.scores import concordance_index as concordance_index
from localexpert.partial.scores import d_calibration_test as d_calibration_test
from localexpert.partial.scores import integrated_brier_score as integrated_brier_score
from localexpert.partial.scores import survival_brier_score as survival_brier_score
from localexpert.plots.calibration import plot_coverage as plot_coverage
from localexpert.plots.calibration import plot_pit as plot_pit
from localexpert.plots.calibration import (
    plot_quantile_reliability as plot_quantile_reliability,
)
from localexpert.plots.calibration import plot_sharpness as plot_sharpness
from localexpert.plots.calibration import plot_survival as plot_survival
from localexpert.plots.features import plot_expert_report as plot_expert_report
from localexpert.plots.features import plot_explanation as plot_explanation
from localexpert.plots.features import plot_importance as plot_importance
from localexpert.plots.features import (
    plot_threshold_reliability as plot_threshold_reliability,
)
from localexpert.plots.forecast import plot_fan as plot_fan
from localexpert.plots.forecast import plot_forecast as plot_forecast
from localexpert.plots.forecast import plot_forecasts as plot_forecasts
from localexpert.recalibration.conformal import (
    ConformalRecalibration as ConformalRecalibration,
)
from localexpert.recalibration.groups import (
    GroupedRecalibration as GroupedRecalibration,
)
from localexpert.recalibration.pit import PitRecalibration as PitRecalibration
from localexpert.recalibration.weighted import ShiftWeights as ShiftWeights
from localexpert.recalibration.weighted import WeightedConformal as WeightedConformal
from localexpert.recalibration.weighted import shift_weights as shift_weights
from localexpert.regressor.adapter import DistributionAdapter as DistributionAdapter
from localexpert.regressor.adapter import (
    cross_val_predict_dist as cross_val_predict_dist,
)
from localexpert.regressor.recalibrated import (
    RecalibratedRegressor as RecalibratedRegressor,
)
from localexpert.regressor.recalibrated import adapt as adapt
from localexpert.regressor.recalibrated import recalibrate as recalibrate
from localexpert.regressor.recalibrated import seen_rows as seen_rows
from localexpert.regressor.regressor import LocalExpertRegressor as LocalExpertRegressor
from localexpert.reporting import BackTest as BackTest
from localexpert.reporting import ReportFigures as ReportFigures
from localexpert.reporting import report as report
from localexpert.reporting import report_figures as report_figures
from localexpert.stacking import Stacker as Stacker

__version__: str
