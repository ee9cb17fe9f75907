"""Probability calibration: from scores to probabilities that mean what they say.

Works on any scores with 0/1 labels and knows nothing of regression: this package
never imports `localexpert`.
"""

from calibration.base.calibrators import ScoreCalibrator
from calibration.binning.bbq import BBQCalibrator
from calibration.binning.histogram import HistogramCalibrator
from calibration.binning.sbb_abb import ABBCalibrator, SBBCalibrator
from calibration.binning.theory import auc_loss_bound, ece_bound, mce_bound
from calibration.binning.three_values import ThreeValueCalibrator
from calibration.classifier.all_pairs import AllPairsClassifier
from calibration.classifier.classifier import CalibratedClassifier
from calibration.densities.asymmetric_laplace import AsymmetricLaplaceCalibrator
from calibration.densities.dpm import DPMCalibrator
from calibration.densities.gaussian import GaussianCalibrator
from calibration.densities.kde import KDECalibrator
from calibration.densities.nadaraya_watson import NadarayaWatsonCalibrator
from calibration.drift.advice import Advice
from calibration.drift.monitor import CalibrationMonitor
from calibration.drift.priors import (
    PriorEstimate,
    PriorShiftTest,
    estimate_prior,
    prior_shift_test,
    shift_prior,
)
from calibration.exceptions import CalibrationWarning
from calibration.logistic.beta import BetaCalibrator
from calibration.logistic.piecewise import PiecewiseLogisticCalibrator
from calibration.logistic.polynomial import (
    LogisticCalibrator,
    PlattCalibrator,
    QuadraticCalibrator,
    TemperatureCalibrator,
)
from calibration.logistic.trimming import TrimmedCalibrator
from calibration.maps import CalibrationMap
from calibration.measures import (
    BrierDecomposition,
    CalibrationTest,
    CorpDecomposition,
    CrossFittedDecomposition,
    MethodComparison,
    PairedComparison,
    ReliabilityCurve,
    auc_score,
    brier_decomposition,
    brier_score,
    compare_methods,
    compare_pair,
    corp_decomposition,
    cross_fitted_decomposition,
    cumulative_calibration_test,
    expected_calibration_error,
    kernel_calibration_error,
    kernel_calibration_test,
    log_loss,
    maximum_calibration_error,
    proper_score,
    reliability_curve,
    spherical_score,
)
from calibration.monotone.bagging import BaggedIsotonicCalibrator
from calibration.monotone.elite import ELiTECalibrator
from calibration.monotone.enir import ENIRCalibrator, NearIsotonicPath
from calibration.monotone.isotonic import CenteredIsotonicCalibrator, IsotonicCalibrator
from calibration.monotone.venn_abers import VennAbersCalibrator
from calibration.multiclass.all_pairs import AllPairsCalibrator, couple_pairs
from calibration.multiclass.base import MulticlassCalibrator
from calibration.multiclass.identity import IdentityCalibrator
from calibration.multiclass.one_vs_rest import OneVsRestCalibrator
from calibration.multiclass.shallow_net import ShallowNetCalibrator
from calibration.multiclass.softmax import SoftmaxCalibrator
from calibration.neighbours.acp import ACPCalibrator
from calibration.neighbours.logistic_intervals import logistic_intervals
from calibration.neighbours.sba import SBACalibrator
from calibration.plots import (
    plot_calibration_map,
    plot_class_reliability,
    plot_monitor,
    plot_ranks,
    plot_reliability,
    plot_simplex,
    plot_simplex_field,
)
from calibration.selection.auto import AutoCalibrator
from calibration.selection.compare import compare_calibrators
from calibration.selection.comparison import CalibratorComparison
from calibration.selection.label_sample import LabelSample, draw_rows_to_label
from calibration.selection.names import calibrator_names, make_calibrator
from calibration.selection.report import AutoReport, CandidateScore
from calibration.sources.summarize import summarize
from calibration.storage import StorageError, load
from calibration.summary import ScoreSummary

# The one place that says it: the build, the manual and `localexpert` read it here.
__version__ = "0.1.0.dev0"

__all__ = [
    "ABBCalibrator",
    "ACPCalibrator",
    "Advice",
    "AllPairsCalibrator",
    "AllPairsClassifier",
    "AsymmetricLaplaceCalibrator",
    "AutoCalibrator",
    "AutoReport",
    "BBQCalibrator",
    "BaggedIsotonicCalibrator",
    "BetaCalibrator",
    "BrierDecomposition",
    "CalibratedClassifier",
    "CalibrationMap",
    "CalibrationMonitor",
    "CalibrationTest",
    "CalibrationWarning",
    "CalibratorComparison",
    "CandidateScore",
    "CenteredIsotonicCalibrator",
    "CorpDecomposition",
    "CrossFittedDecomposition",
    "DPMCalibrator",
    "ELiTECalibrator",
    "ENIRCalibrator",
    "GaussianCalibrator",
    "HistogramCalibrator",
    "IdentityCalibrator",
    "IsotonicCalibrator",
    "KDECalibrator",
    "LabelSample",
    "LogisticCalibrator",
    "MethodComparison",
    "MulticlassCalibrator",
    "NadarayaWatsonCalibrator",
    "NearIsotonicPath",
    "OneVsRestCalibrator",
    "PairedComparison",
    "PiecewiseLogisticCalibrator",
    "PlattCalibrator",
    "PriorEstimate",
    "PriorShiftTest",
    "QuadraticCalibrator",
    "ReliabilityCurve",
    "SBACalibrator",
    "SBBCalibrator",
    "ScoreCalibrator",
    "ScoreSummary",
    "ShallowNetCalibrator",
    "SoftmaxCalibrator",
    "StorageError",
    "TemperatureCalibrator",
    "ThreeValueCalibrator",
    "TrimmedCalibrator",
    "VennAbersCalibrator",
    "auc_loss_bound",
    "auc_score",
    "brier_decomposition",
    "brier_score",
    "calibrator_names",
    "compare_calibrators",
    "compare_methods",
    "compare_pair",
    "corp_decomposition",
    "couple_pairs",
    "cross_fitted_decomposition",
    "cumulative_calibration_test",
    "draw_rows_to_label",
    "ece_bound",
    "estimate_prior",
    "expected_calibration_error",
    "kernel_calibration_error",
    "kernel_calibration_test",
    "load",
    "log_loss",
    "logistic_intervals",
    "make_calibrator",
    "maximum_calibration_error",
    "mce_bound",
    "plot_calibration_map",
    "plot_class_reliability",
    "plot_monitor",
    "plot_ranks",
    "plot_reliability",
    "plot_simplex",
    "plot_simplex_field",
    "prior_shift_test",
    "proper_score",
    "reliability_curve",
    "shift_prior",
    "spherical_score",
    "summarize",
]
