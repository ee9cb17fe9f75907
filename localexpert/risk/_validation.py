"""Checks of what is asked of a forecast; a message names parameter, rule and value."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from calibration.typing import Float64Array
from localexpert._validation import check_targets, show


def check_rows(values: ArrayLike, name: str, n: int) -> Float64Array:
    """Return finite values of shape (n,); a number stands for all rows."""
    array = check_targets(values, name, n)
    if array.ndim > 1:
        msg = (
            f"`{name}` must be a number or have shape ({n},), got shape {array.shape}."
        )
        raise ValueError(msg)
    return array


def check_costs(
    values: ArrayLike, name: str, n: int, *, positive: bool = False
) -> Float64Array:
    """Return costs of shape (n,), none negative, or all above 0 if `positive`."""
    costs = check_rows(values, name, n)
    wrong = costs <= 0.0 if positive else costs < 0.0
    if wrong.any():
        i = int(np.argmax(wrong))
        rule = "be positive" if positive else "not be negative"
        msg = f"`{name}` must {rule}, got {show(costs[i])} in row {i}."
        raise ValueError(msg)
    return costs
