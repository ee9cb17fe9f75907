"""Probability calibration: from scores to probabilities that mean what they say.

Works on any scores with 0/1 labels and knows nothing of regression: this package
never imports `localexpert`.
"""

from importlib.metadata import version

from calibration.asymmetric_laplace import AsymmetricLaplaceCalibrator
from calibration.bagging import BaggedIsotonicCalibrator
from calibration.base import ScoreCalibrator
from calibration.beta import BetaCalibrator
from calibration.classifier import CalibratedClassifier
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
from calibration.piecewise import PiecewiseLogisticCalibrator
from calibration.summary import ScoreSummary

__version__ = version("localexpert")

__all__ = [
    "AsymmetricLaplaceCalibrator",
    "BaggedIsotonicCalibrator",
    "BetaCalibrator",
    "CalibratedClassifier",
    "CalibrationMap",
    "CalibrationWarning",
    "CenteredIsotonicCalibrator",
    "GaussianCalibrator",
    "HistogramCalibrator",
    "IdentityCalibrator",
    "IsotonicCalibrator",
    "LogisticCalibrator",
    "PiecewiseLogisticCalibrator",
    "PlattCalibrator",
    "QuadraticCalibrator",
    "ScoreCalibrator",
    "ScoreSummary",
    "TemperatureCalibrator",
]
