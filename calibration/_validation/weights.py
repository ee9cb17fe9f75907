"""Weights of rows: what they may be, and warnings of those that are shares."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from numpy.typing import ArrayLike

from calibration._validation.arrays import check_same_length, check_vector
from calibration._validation.texts import show
from calibration.exceptions import CalibrationWarning
from calibration.typing import Float64Array

_MOST_WEIGHT = 2.0**53
# Below it floats lose digits.
_LEAST_WEIGHT = float(np.finfo(np.float64).tiny)
# Rows count for too little where their weights add up to less than this share of their
# number, or to less than two rows while the mean weight is below a half.
_LIGHT_SHARE, _FEW_ROWS, _LIGHT_MEAN = 0.1, 2.0, 0.5
_told_of_light: ContextVar[bool] = ContextVar("told_of_light", default=False)


def check_weights(
    sample_weight: ArrayLike | None, n: int, name: str = "sample_weight"
) -> Float64Array:
    """Return non-negative weights, not all zero, of length `n`; ones if None.

    Their sum is at most 2^53: beyond it floats do not tell a row more from none.
    """
    if sample_weight is None:
        return np.ones(n)
    weights = check_vector(sample_weight, name)
    check_same_length(n, "the data", len(weights), name)
    if weights.min() < 0.0:
        place = int(np.argmin(weights))
        msg = (
            f"`{name}` must not be negative, "
            f"got {show(weights[place])} at position {place}."
        )
        raise ValueError(msg)
    if weights.max() == 0.0:
        msg = f"`{name}` must not be zero everywhere, got only zeros."
        raise ValueError(msg)
    if weights.max() < _LEAST_WEIGHT:
        msg = (
            f"`{name}` must reach {_LEAST_WEIGHT:.3g} somewhere, "
            f"got at most {weights.max():g}; multiply all by a constant."
        )
        raise ValueError(msg)
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if total > _MOST_WEIGHT:
        place = int(np.argmax(weights))
        msg = (
            f"`{name}` must add up to at most 2^53 = {_MOST_WEIGHT:.3g} rows, "
            f"got {weights[place]:g} at position {place}; divide all by a constant."
        )
        raise ValueError(msg)
    return weights


def warn_of_light(weights: Float64Array, stacklevel: int = 2) -> None:
    """Warn of weights that make next to nothing of the rows, such as 1 / n.

    A weight is a number of repetitions, and whatever is learned is as vague as from as
    many rows as the weights add up to. True shares of rows, a half on average, pass.
    """
    if _told_of_light.get():
        return
    held, total = int(np.count_nonzero(weights)), float(weights.sum())
    if total >= max(_LIGHT_SHARE * held, min(_FEW_ROWS, _LIGHT_MEAN * held)):
        return
    msg = (
        f"`sample_weight` counts repetitions, and {held} rows add up to {total:.3g}: "
        "what is learned is as vague as from so few. To count each row as one on "
        f"average, multiply by {held / total:.4g} (their number / the sum)."
    )
    warnings.warn(msg, CalibrationWarning, stacklevel=stacklevel + 1)


@contextmanager
def told_of_light() -> Iterator[None]:
    """Let fits within a fit, which has said so for all, not warn of light weights."""
    token = _told_of_light.set(True)
    try:
        yield
    finally:
        _told_of_light.reset(token)
