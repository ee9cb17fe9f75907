"""Measures of probability forecasts: scores, their parts, diagrams, comparisons.

Rule of the room: `f(y_true, y_prob, *, sample_weight=None)` is a loss (lower is
better) and a weight is a number of repetitions. Files here import the summary, maps
and kernels, never calibrators or plots; among themselves they import one way:
decompositions -> scores; decompositions, proper, reliability -> binned_errors;
calibration_tests -> binned_errors, reliability. What has several classes takes
forecasts (n, k) and `classes=`. `auc_score` alone is no loss.
"""

from calibration.measures.binned_errors import (
    expected_calibration_error,
    maximum_calibration_error,
)
from calibration.measures.calibration_tests import (
    CalibrationTest,
    cumulative_calibration_test,
    kernel_calibration_error,
    kernel_calibration_test,
)
from calibration.measures.comparison import (
    MethodComparison,
    PairedComparison,
    compare_methods,
    compare_pair,
)
from calibration.measures.decompositions import (
    BrierDecomposition,
    CorpDecomposition,
    CrossFittedDecomposition,
    brier_decomposition,
    corp_decomposition,
    cross_fitted_decomposition,
)
from calibration.measures.proper import proper_score
from calibration.measures.reliability import ReliabilityCurve, reliability_curve
from calibration.measures.scores import (
    auc_score,
    brier_score,
    log_loss,
    spherical_score,
)

__all__ = [
    "BrierDecomposition",
    "CalibrationTest",
    "CorpDecomposition",
    "CrossFittedDecomposition",
    "MethodComparison",
    "PairedComparison",
    "ReliabilityCurve",
    "auc_score",
    "brier_decomposition",
    "brier_score",
    "compare_methods",
    "compare_pair",
    "corp_decomposition",
    "cross_fitted_decomposition",
    "cumulative_calibration_test",
    "expected_calibration_error",
    "kernel_calibration_error",
    "kernel_calibration_test",
    "log_loss",
    "maximum_calibration_error",
    "proper_score",
    "reliability_curve",
    "spherical_score",
]
