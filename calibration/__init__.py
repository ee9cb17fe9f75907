"""Probability calibration: from scores to probabilities that mean what they say.

Works on any scores with 0/1 labels and knows nothing of regression: this package
never imports `localexpert`.
"""

from importlib.metadata import version

from calibration.acp import ACPCalibrator
from calibration.asymmetric_laplace import AsymmetricLaplaceCalibrator
from calibration.auto import AutoCalibrator
from calibration.auto_report import AutoReport, CandidateScore
from calibration.bagging import BaggedIsotonicCalibrator
from calibration.base import ScoreCalibrator
from calibration.bbq import BBQCalibrator
from calibration.beta import BetaCalibrator
from calibration.binnings import ABBCalibrator, SBBCalibrator
from calibration.classifier import CalibratedClassifier
from calibration.compare import CalibratorComparison, compare_calibrators
from calibration.dpm import DPMCalibrator
from calibration.elite import ELiTECalibrator
from calibration.enir import ENIRCalibrator, NearIsotonicPath
from calibration.exceptions import CalibrationWarning
from calibration.gaussian import GaussianCalibrator
from calibration.histogram import HistogramCalibrator
from calibration.identity import IdentityCalibrator
from calibration.isotonic import CenteredIsotonicCalibrator, IsotonicCalibrator
from calibration.kde import KDECalibrator
from calibration.logistic import (
    LogisticCalibrator,
    PlattCalibrator,
    QuadraticCalibrator,
    TemperatureCalibrator,
)
from calibration.logistic_intervals import logistic_intervals
from calibration.maps import CalibrationMap
from calibration.measures import (
    BrierDecomposition,
    CorpDecomposition,
    MethodComparison,
    ReliabilityCurve,
    brier_decomposition,
    brier_score,
    compare_methods,
    corp_decomposition,
    expected_calibration_error,
    log_loss,
    maximum_calibration_error,
    proper_score,
    reliability_curve,
    spherical_score,
)
from calibration.piecewise import PiecewiseLogisticCalibrator
from calibration.plots import plot_calibration_map, plot_ranks, plot_reliability
from calibration.sba import SBACalibrator
from calibration.storage import StorageError, load
from calibration.summary import ScoreSummary
from calibration.theory import auc_loss_bound, ece_bound, mce_bound
from calibration.three_values import ThreeValueCalibrator
from calibration.trimming import TrimmedCalibrator
from calibration.venn_abers import VennAbersCalibrator

__version__ = version("localexpert")

__all__ = [
    "ABBCalibrator",
    "ACPCalibrator",
    "AsymmetricLaplaceCalibrator",
    "AutoCalibrator",
    "AutoReport",
    "BBQCalibrator",
    "BaggedIsotonicCalibrator",
    "BetaCalibrator",
    "BrierDecomposition",
    "CalibratedClassifier",
    "CalibrationMap",
    "CalibrationWarning",
    "CalibratorComparison",
    "CandidateScore",
    "CenteredIsotonicCalibrator",
    "CorpDecomposition",
    "DPMCalibrator",
    "ELiTECalibrator",
    "ENIRCalibrator",
    "GaussianCalibrator",
    "HistogramCalibrator",
    "IdentityCalibrator",
    "IsotonicCalibrator",
    "KDECalibrator",
    "LogisticCalibrator",
    "MethodComparison",
    "NearIsotonicPath",
    "PiecewiseLogisticCalibrator",
    "PlattCalibrator",
    "QuadraticCalibrator",
    "ReliabilityCurve",
    "SBACalibrator",
    "SBBCalibrator",
    "ScoreCalibrator",
    "ScoreSummary",
    "StorageError",
    "TemperatureCalibrator",
    "ThreeValueCalibrator",
    "TrimmedCalibrator",
    "VennAbersCalibrator",
    "auc_loss_bound",
    "brier_decomposition",
    "brier_score",
    "compare_calibrators",
    "compare_methods",
    "corp_decomposition",
    "ece_bound",
    "expected_calibration_error",
    "load",
    "log_loss",
    "logistic_intervals",
    "maximum_calibration_error",
    "mce_bound",
    "plot_calibration_map",
    "plot_ranks",
    "plot_reliability",
    "proper_score",
    "reliability_curve",
    "spherical_score",
]
