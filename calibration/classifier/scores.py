"""The scores that calibrators are given: which method yields them, how it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from calibration._validation import (
    check_choice,
    check_in_unit,
    check_order,
    check_rows,
    check_table,
    check_vector,
    refuse,
)
from calibration.base.calibrators import ScoreCalibrator
from calibration.logistic.polynomial import LogisticCalibrator
from calibration.multiclass.base import MulticlassCalibrator
from calibration.multiclass.binary import OneVsRestCalibrator, as_calibrator, on_scale
from calibration.multiclass.softmax import SoftmaxCalibrator
from calibration.selection.auto import calibrator_names, make_calibrator
from calibration.typing import Float64Array

Response: TypeAlias = Literal["predict_proba", "decision_function"]

RESPONSES: tuple[Response, ...] = ("predict_proba", "decision_function")

# Sums of probabilities leave [0, 1] by rounding. With float32 they leave it by at most
# this much.
_ROUNDING = 1e-6


def choose_response(estimator: Any, response: Any) -> Response:
    """Return the method to ask: the named one, or with "auto" the first that exists."""
    check_choice(response, "response", ("auto", *RESPONSES))
    found: list[Response] = [name for name in RESPONSES if hasattr(estimator, name)]
    if isinstance(estimator, type) or not hasattr(estimator, "fit") or not found:
        rule = "be a classifier with `fit` and `predict_proba` or `decision_function`"
        refuse("estimator", rule, f"{estimator!r}", TypeError)
    if response == "auto":
        return found[0]
    if response not in found:
        got = f"{response!r}: {type(estimator).__name__} has {found[0]!r} only"
        refuse("response", "be a method of the estimator", got)
    return cast(Response, response)


def refuse_pair_scores(estimator: Any) -> None:
    """Refuse a support vector machine that is told to score pairs of classes.

    Three classes have three pairs, so the shape of the scores does not tell.
    """
    inner = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    # Ask for nested parameters, so that a machine in a pipeline or search is found.
    params = inner.get_params() if hasattr(inner, "get_params") else {}
    for name, value in params.items():
        if name.endswith("decision_function_shape") and value == "ovo":
            rule = "have a decision function with a column for each class"
            got = f'{name}="ovo" of {type(inner).__name__}: set it to "ovr"'
            refuse("estimator", rule, got)


@dataclass(frozen=True)
class ScoreReader:
    """Reads the scores of classifiers for a calibrator, and turns labels into targets.

    Parameters
    ----------
    response : {"predict_proba", "decision_function"}
        The method that is asked.
    classes : ndarray of shape (k,)
        The labels, sorted.
    columns : bool
        Whether the calibrator takes a column for each class. If not, it takes the
        scores of the second of two classes.
    """

    response: Response
    classes: NDArray[Any]
    columns: bool

    def __call__(self, estimator: Any, X: Any) -> Float64Array:
        """Return scores of shape (n,), or (n, k) in the order of `classes`."""
        scores = _read_scores(estimator, X, self.response, self.classes)
        if not self.columns or len(self.classes) > 2:
            return scores
        # A decision function is the logit of the second class if the first one has
        # logit 0.
        is_logit = self.response == "decision_function"
        first = np.zeros_like(scores) if is_logit else 1.0 - scores
        return np.column_stack([first, scores])

    def targets(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return labels of shape (n,) as column numbers, or as 0 and 1."""
        if not self.columns:
            return np.asarray(y == self.classes[1])
        return np.searchsorted(self.classes, y)


def _read_scores(
    estimator: Any, X: Any, response: Response, classes: NDArray[Any]
) -> Float64Array:
    """Return the scores (n,) of the second of two classes, or (n, k) of k classes."""
    given, k = getattr(estimator, response)(X), len(classes)
    output = np.asarray(given)
    # `classes` is sorted. `classes_` is sorted in most classifiers, but not in all.
    known = getattr(estimator, "classes_", classes)
    name = f"scores of {type(estimator).__name__}"
    is_margin = response == "decision_function"
    if is_margin and k == 2:
        return check_vector(-output if known[0] == classes[1] else output, name)
    if output.ndim != 2 or output.shape[1] != k:
        what = "decision values" if is_margin else "probabilities"
        got = f"shape {output.shape} from {type(estimator).__name__}"
        rule = f"return {what} of shape (n, {k}), a column for each class"
        refuse("estimator", rule, got)
    check_order(given, known, name)
    table = check_table(output[:, np.argsort(known)], name)
    if is_margin:
        return table
    # Values that leave [0, 1] by more than rounding are no probabilities.
    if table.min() < -_ROUNDING or table.max() > 1.0 + _ROUNDING:
        check_in_unit(float(table.min()), float(table.max()), name)
    rows = check_rows(np.clip(table, 0.0, 1.0), name)
    return rows[:, 1].copy() if k == 2 else rows


def resolve_calibrator(
    calibrator: Any, response: Response, n_classes: int
) -> ScoreCalibrator | MulticlassCalibrator:
    """Return a calibrator that is not fitted, on the scale of the response.

    Parameters
    ----------
    calibrator : str, ScoreCalibrator, MulticlassCalibrator or None
        None is the default: a logistic regression. With more than two classes it is one
        of all classes.
    response : {"predict_proba", "decision_function"}
    n_classes : int
        There are two or more. With more than two, a ScoreCalibrator is fitted for each
        class.

    Returns
    -------
    ScoreCalibrator or MulticlassCalibrator
    """
    if calibrator is None and n_classes > 2:
        # This is structured matrix scaling. It is one fit, without folds to choose a
        # penalty.
        calibrator = SoftmaxCalibrator("matrix", penalty=1.0)
    elif isinstance(calibrator, str):
        check_choice(calibrator, "calibrator", calibrator_names(3))
        # For two classes take the binary calibrator, if one has this name.
        many = n_classes > 2 or calibrator not in calibrator_names()
        calibrator = make_calibrator(calibrator, n_classes=3 if many else 2)
    if n_classes == 2 and not takes_columns(calibrator, n_classes):
        return resolve_binary(calibrator, response)
    if not isinstance(calibrator, ScoreCalibrator | MulticlassCalibrator):
        rule = (
            "be a ScoreCalibrator, for instance IsotonicCalibrator(), or the name of "
            "one, or of all classes at once a MulticlassCalibrator"
        )
        refuse("calibrator", rule, f"{calibrator!r}", TypeError)
    if not isinstance(calibrator, MulticlassCalibrator):
        calibrator = OneVsRestCalibrator(calibrator)
    # The columns of a decision function are logits. Calibrators of columns take no real
    # scores.
    scale = "probability" if response == "predict_proba" else "logit"
    adapted: MulticlassCalibrator = on_scale(calibrator, scale)
    return adapted


def takes_columns(calibrator: Any, n_classes: int) -> bool:
    """Return whether a calibrator is given scores (n, k) instead of those of one class.

    Calibrators that can take both are given the scores of one class if there are two.
    """
    if not isinstance(calibrator, MulticlassCalibrator):
        return False
    return n_classes > 2 or not isinstance(calibrator, ScoreCalibrator)


def resolve_binary(calibrator: Any, response: Response) -> ScoreCalibrator:
    """Return a binary calibrator that is not fitted, on the scale of the response.

    Parameters
    ----------
    calibrator : str, ScoreCalibrator or None
        None means `LogisticCalibrator()`.
    response : {"predict_proba", "decision_function"}

    Returns
    -------
    ScoreCalibrator
    """
    if calibrator is None:
        calibrator = LogisticCalibrator()
    elif isinstance(calibrator, str):
        check_choice(calibrator, "calibrator", calibrator_names())
        calibrator = make_calibrator(calibrator)
    binary = as_calibrator(calibrator)
    if response == "predict_proba":
        return on_scale(binary, "probability")
    # A decision function is a real score, unless the calibrator says that it is
    # log-odds.
    return on_scale(binary, "logit" if binary.scale == "logit" else "real")
