"""Probability calibration: from scores to probabilities that mean what they say.

Works on any scores with 0/1 labels and knows nothing of regression: this package
never imports `localexpert`.
"""

from importlib.metadata import version

from calibration.asymmetric_laplace import AsymmetricLaplaceCalibrator
from calibration.bagging import BaggedIsotonicCalibrator
from calibration.base import ScoreCalibrator
from calibration.bbq import BBQCalibrator
from calibration.beta import BetaCalibrator
from calibration.binnings import ABBCalibrator, SBBCalibrator
from calibration.classifier import CalibratedClassifier
from calibration.elite import ELiTECalibrator
from calibration.enir import ENIRCalibrator, NearIsotonicPath
from calibration.exceptions import CalibrationWarning
from calibration.gaussian import GaussianCalibrator
from calibration.histogram import HistogramCalibrator
from calibration.identity import IdentityCalibrator
from calibration.isotonic import CenteredIsotonicCalibrator, IsotonicCalibrator
from calibration.logistic import (
    LogisticCalibrator,
    PlattCalibrator,
    QuadraticCalibrator,
    TemperatureCalibrator,
)
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
from calibration.summary import ScoreSummary
from calibration.theory import auc_loss_bound, ece_bound, mce_bound

__version__ = version("localexpert")

__all__ = [
    "ABBCalibrator",
    "AsymmetricLaplaceCalibrator",
    "BBQCalibrator",
    "BaggedIsotonicCalibrator",
    "BetaCalibrator",
    "BrierDecomposition",
    "CalibratedClassifier",
    "CalibrationMap",
    "CalibrationWarning",
    "CenteredIsotonicCalibrator",
    "CorpDecomposition",
    "ELiTECalibrator",
    "ENIRCalibrator",
    "GaussianCalibrator",
    "HistogramCalibrator",
    "IdentityCalibrator",
    "IsotonicCalibrator",
    "LogisticCalibrator",
    "MethodComparison",
    "NearIsotonicPath",
    "PiecewiseLogisticCalibrator",
    "PlattCalibrator",
    "QuadraticCalibrator",
    "ReliabilityCurve",
    "SBBCalibrator",
    "ScoreCalibrator",
    "ScoreSummary",
    "TemperatureCalibrator",
    "auc_loss_bound",
    "brier_decomposition",
    "brier_score",
    "compare_methods",
    "corp_decomposition",
    "ece_bound",
    "expected_calibration_error",
    "log_loss",
    "maximum_calibration_error",
    "mce_bound",
    "plot_calibration_map",
    "plot_ranks",
    "plot_reliability",
    "proper_score",
    "reliability_curve",
    "spherical_score",
]
