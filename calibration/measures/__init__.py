"""Measures of probability forecasts: scores, their parts, diagrams, comparisons.

Rule of the room: `f(y_true, y_prob, *, sample_weight=None)` is a loss (lower is
better) and a weight is a number of repetitions. Files here import the summary, maps
and kernels, never calibrators or plots; among themselves they import one way:
decompositions -> scores; decompositions, proper, reliability -> bins; comparison ->
rank_tests.
"""

from calibration.measures.binned_errors import (
    expected_calibration_error,
    maximum_calibration_error,
)
from calibration.measures.comparison import MethodComparison, compare_methods
from calibration.measures.decompositions import (
    BrierDecomposition,
    CorpDecomposition,
    brier_decomposition,
    corp_decomposition,
)
from calibration.measures.proper import proper_score
from calibration.measures.reliability import ReliabilityCurve, reliability_curve
from calibration.measures.scores import brier_score, log_loss, spherical_score

__all__ = [
    "BrierDecomposition",
    "CorpDecomposition",
    "MethodComparison",
    "ReliabilityCurve",
    "brier_decomposition",
    "brier_score",
    "compare_methods",
    "corp_decomposition",
    "expected_calibration_error",
    "log_loss",
    "maximum_calibration_error",
    "proper_score",
    "reliability_curve",
    "spherical_score",
]
