"""What a classifier says of its two classes: labels, method, scale and scores."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from calibration._validation import (
    as_numbers,
    check_choice,
    check_in_unit,
    check_vector,
    count_rows,
    find_no_number,
    is_gap,
)
from calibration.base.calibrators import Scale, ScoreCalibrator
from calibration.typing import Float64Array

Response: TypeAlias = Literal["predict_proba", "decision_function"]

RESPONSES: tuple[Response, ...] = ("predict_proba", "decision_function")

# Sums of probabilities leave [0, 1] by rounding, of float32 by this much at most.
_ROUNDING = 1e-6


def choose_response(estimator: Any, response: Any) -> Response:
    """Return the method to ask: the one named, or with "auto" the first there is."""
    check_choice(response, "response", ("auto", *RESPONSES))
    found: list[Response] = [name for name in RESPONSES if hasattr(estimator, name)]
    if isinstance(estimator, type) or not hasattr(estimator, "fit") or not found:
        msg = (
            "`estimator` must be a classifier with `fit` and `predict_proba` or "
            f"`decision_function`, got {estimator!r}."
        )
        raise TypeError(msg)
    if response == "auto":
        return found[0]
    if response not in found:
        msg = (
            f"`response` must be a method of the estimator, got {response!r}: "
            f"{type(estimator).__name__} has {found[0]!r} only."
        )
        raise ValueError(msg)
    return cast(Response, response)


def adapt_calibrator(
    calibrator: ScoreCalibrator, response: Response
) -> ScoreCalibrator:
    """Return a clone whose `scale` is that of the response.

    A decision function is a real score, unless the calibrator at hand says that it
    is a log-odds. A method without a meaning on that scale is refused here, before
    any classifier is fitted.
    """
    scale: Scale = "probability"
    if response == "decision_function":
        scale = "logit" if calibrator.scale == "logit" else "real"
    adapted: ScoreCalibrator = clone(calibrator).set_params(scale=scale)
    adapted._check_parameters()
    return adapted


def read_scores(
    estimator: Any, X: Any, response: Response, classes: NDArray[Any]
) -> Float64Array:
    """Return scores of shape (n,) that grow with the chance of `classes[1]`."""
    output = np.asarray(getattr(estimator, response)(X))
    # Of most classifiers `classes_` is sorted, as `classes` is; not of all.
    flipped = getattr(estimator, "classes_", classes)[0] == classes[1]
    name = f"scores of {type(estimator).__name__}"
    if response == "decision_function":
        return check_vector(-output if flipped else output, name)
    if output.ndim != 2 or output.shape[1] != 2:
        msg = (
            "`estimator` must return probabilities of shape (n, 2), "
            f"got shape {output.shape} from {type(estimator).__name__}."
        )
        raise ValueError(msg)
    scores = check_vector(output[:, 0 if flipped else 1], name)
    if scores.min() < -_ROUNDING or scores.max() > 1.0 + _ROUNDING:
        check_in_unit(float(scores.min()), float(scores.max()), name)
    return np.clip(scores, 0.0, 1.0)


def read_labels(y: ArrayLike) -> NDArray[Any]:
    """Return labels as a vector without gaps, objects that are numbers as numbers."""
    if count_rows(y) < 0:
        # The last words are those that scikit-learn's checks look for.
        msg = f"`y` must be labels of shape (n,), got {y!r}: y should be a 1d array."
        raise ValueError(msg)
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    if labels.dtype.kind not in "OMm":
        return labels
    cells = labels.tolist()
    gaps = [i for i, cell in enumerate(cells) if is_gap(cell)]
    if gaps:
        msg = f"`y` must have no gaps, got {labels[gaps[0]]} at position {gaps[0]}."
        raise ValueError(msg)
    try:
        sorted(set(cells))
    except TypeError as error:
        msg = f"`y` must hold labels of one kind, got {error}."
        raise TypeError(msg) from error
    if labels.dtype.kind == "O" and find_no_number(labels) is None:
        # scikit-learn knows no objects but texts.
        numbers = np.array(cells)
        labels = as_numbers(labels, "y") if numbers.dtype.kind == "O" else numbers
    return labels


def check_two_classes(y: NDArray[Any]) -> NDArray[Any]:
    """Return the two labels in `y`, sorted."""
    classes = _check_at_most_two(y)
    if len(classes) == 2:
        return classes
    held = f"one class: {classes.tolist()[0]!r}" if len(classes) else "no row"
    msg = f"`y` must hold two classes, got {held}."
    raise ValueError(msg)


def check_many_classes(y: NDArray[Any]) -> NDArray[Any]:
    """Return the labels in `y`, two or more, sorted."""
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    classes: NDArray[Any] = np.unique(y)
    if len(classes) < 2:
        held = f"one class: {classes.tolist()[0]!r}" if len(classes) else "no row"
        msg = f"`y` must hold two classes or more, got {held}."
        raise ValueError(msg)
    return classes


def check_known_classes(y: NDArray[Any], estimator: Any) -> NDArray[Any]:
    """Return the two labels of a fitted classifier, sorted; `y` may hold one of them.

    A classifier that does not say what it was fitted on is taken at the word of `y`.
    """
    if not hasattr(estimator, "classes_"):
        return check_two_classes(y)
    known = np.sort(estimator.classes_)
    if len(known) != 2:
        msg = (
            "Only binary classification is supported. `estimator` must have been "
            f"fitted on two classes, got {len(known)}."
        )
        raise ValueError(msg)
    strange = np.setdiff1d(_check_at_most_two(y), known).tolist()
    if strange:
        msg = (
            f"`y` must hold the classes that `estimator` was fitted on, "
            f"{known.tolist()}, got {strange[0]!r}."
        )
        raise ValueError(msg)
    return known


def _check_at_most_two(y: NDArray[Any]) -> NDArray[Any]:
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    classes: NDArray[Any] = np.unique(y)
    if kind != "binary":
        # The first sentence is the one that scikit-learn's checks look for.
        msg = (
            "Only binary classification is supported. `y` must hold two classes, "
            f"got {len(classes)}: the type of the target is {kind}."
        )
        raise ValueError(msg)
    return classes
