"""Labels of 0 and 1, and probabilities beside them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation.arrays import (
    check_in_unit,
    check_same_length,
    check_vector,
)
from calibration._validation.texts import show
from calibration._validation.weights import check_weights
from calibration.typing import Float64Array


def check_labels(y: ArrayLike, name: str = "y") -> NDArray[np.bool_]:
    """Return labels coded 0/1 as booleans, True for 1."""
    labels = check_vector(y, name)
    ones: NDArray[np.bool_] = labels == 1.0
    valid = ones | (labels == 0.0)
    if not valid.all():
        place = int(np.argmin(valid))
        msg = (
            f"`{name}` must hold the two classes coded 0 and 1, "
            f"got {show(labels[place])} at position {place}."
        )
        raise ValueError(msg)
    return ones


def check_probabilities(y_prob: ArrayLike, name: str = "y_prob") -> Float64Array:
    """Return probabilities as a float64 vector."""
    probabilities = check_vector(y_prob, name)
    check_in_unit(float(probabilities.min()), float(probabilities.max()), name)
    return probabilities


def check_forecasts(
    y_true: ArrayLike, y_prob: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[NDArray[np.bool_], Float64Array, Float64Array]:
    """Return labels, probabilities and weights (ones if None) of equal length."""
    try:
        ones = check_labels(y_true, "y_true")
    except ValueError as error:
        if not _are_labels(y_prob):
            raise
        msg = f"{error} `y_prob` holds only 0 and 1: are the two swapped?"
        raise ValueError(msg) from error
    probabilities = check_probabilities(y_prob)
    check_same_length(len(ones), "`y_true`", len(probabilities), "y_prob")
    return ones, probabilities, check_weights(sample_weight, len(ones))


def _are_labels(y: ArrayLike) -> bool:
    """Say whether a vector could pass for labels."""
    try:
        check_labels(y)
    except (TypeError, ValueError):
        return False
    return True
