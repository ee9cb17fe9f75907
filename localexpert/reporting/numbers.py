"""Numbers, shares and counts as people write them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from calibration.typing import Float64Array

# p-values below it are not told apart.
_LEAST_P = 1e-4
# Powers of ten between which numbers are written without an exponent.
_SMALLEST, _GREATEST = -4, 9
# Values of features from here on are written with marks of thousands.
_MARKED = 10_000


def show(value: float, digits: int = 4) -> str:
    """Return a number with some significant digits."""
    if not math.isfinite(value):
        return {"nan": "missing", "inf": "\u221e"}.get(str(value), "\u2212\u221e")
    power = math.floor(math.log10(abs(value))) if value else 0
    if _SMALLEST <= power < _GREATEST:
        text = _trim(f"{value:,.{max(digits - 1 - power, 0)}f}")
    else:
        digit, exponent = f"{value:.{digits - 1}e}".split("e")
        text = f"{_trim(digit)}e{int(exponent)}"
    return text.replace("-", "\u2212")


def show_feature(value: float, digits: int = 4) -> str:
    """Return a value of a feature; years and other short numbers have no marks."""
    text = show(value, digits)
    return text.replace(",", "") if abs(value) < _MARKED else text


def show_percent(share: float, digits: int = 1) -> str:
    """Return a share as a percentage."""
    return f"{100.0 * share:.{digits}f}\u00a0%".replace("-", "\u2212")


def show_level(level: float) -> str:
    """Return a level that someone chose as a percentage, with the digits it has."""
    return f"{show(100.0 * level, 6)}\u00a0%"


def show_p(p_value: float) -> str:
    """Return a p-value with its sign, without digits that mean nothing."""
    if p_value < _LEAST_P:
        return f"p < {_LEAST_P:.4f}"
    return f"p = {show(p_value, 2)}"


def count(n: int, noun: str) -> str:
    """Return a number of things, "1 row" or "1,200 rows"."""
    return f"{n:,} {noun if n == 1 else f'{noun}s'}"


def adjust_holm(p_values: Sequence[float]) -> Float64Array:
    """Return p-values of m tests such that one that is true is seldom rejected.

    Holm (1979): the k-th smallest is multiplied by m - k + 1, and none is less than
    one before it.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    raised = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return np.minimum(raised, 1.0)[np.argsort(order)]


def _trim(digits: str) -> str:
    """Return digits without zeros that end a fraction."""
    return digits.rstrip("0").rstrip(".") if "." in digits else digits
