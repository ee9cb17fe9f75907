"""Distributional regression: for each row a whole calibrated distribution.

May import the public names of `calibration` (and its kernels), never the reverse.
"""

from importlib.metadata import version

from localexpert.base_cdf import BaseCDF
from localexpert.conformal import ConformalRecalibration
from localexpert.distribution import PredictiveDistribution
from localexpert.expert_calibration import ExpertCalibration
from localexpert.expert_report import ExpertReport
from localexpert.experts import IndependentExperts, JointForest, SharedBoosting
from localexpert.folds import make_folds
from localexpert.laws import DiscreteLaw, MixedLaw, SplineLaw
from localexpert.laws.recalibrated import RecalibratedLaw
from localexpert.laws.score_map import ProbitMap
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
from localexpert.plots import plot_expert_report
from localexpert.recalibration import PitRecalibration
from localexpert.regressor import LocalExpertRegressor
from localexpert.spline import ProbitSpline, RawSpline
from localexpert.thresholds import find_atoms, is_discrete, place_thresholds

__version__ = version("localexpert")

__all__ = [
    "BaseCDF",
    "ConformalRecalibration",
    "DiscreteLaw",
    "DistributionScorer",
    "ExpertCalibration",
    "ExpertReport",
    "IndependentExperts",
    "JointForest",
    "LocalExpertRegressor",
    "MixedLaw",
    "PitRecalibration",
    "PredictiveDistribution",
    "ProbitMap",
    "ProbitSpline",
    "RawSpline",
    "RecalibratedLaw",
    "SharedBoosting",
    "SplineLaw",
    "crps_score",
    "crps_scorer",
    "find_atoms",
    "interval_coverage",
    "interval_score",
    "is_discrete",
    "log_score",
    "log_scorer",
    "make_folds",
    "pinball_loss",
    "pit_test",
    "place_thresholds",
    "plot_expert_report",
    "threshold_weighted_crps",
]
