"""Laws of frozen distributions of `scipy.stats`."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats
from scipy.special import ndtr

from calibration.typing import Float64Array
from localexpert._validation import as_numbers, check_integer
from localexpert.law.basis import STANDARD
from localexpert.law.curve import Curve, coordinates_of_gaps, fill_ends, read_curve
from localexpert.law.hermite_curve import curve_through
from localexpert.law.law import Law
from localexpert.law.steps import LOG_SQRT_TWO_PI

# Probability that is left out in each tail of a discrete law, and most values in all.
_LEFT_OUT, _MOST_VALUES = 1e-12, 10_000
# Scores of the quantiles that curves with heavy tails go through.
_HEAVY = np.linspace(-8.0, 8.0, 161)


def law_of_frozen(frozen: Any, n: int | None) -> Law:
    """Return the law of a frozen distribution.

    Parameters
    ----------
    frozen : frozen distribution of scipy.stats
    n : int, optional
        Number of rows of one whose parameters are numbers.

    Returns
    -------
    Law
    """
    family = getattr(frozen, "dist", None)
    if not isinstance(family, stats.rv_continuous | stats.rv_discrete):
        msg = (
            "`frozen` must be a frozen distribution of scipy.stats, such as "
            f"stats.norm(loc, scale), got {type(frozen).__name__}."
        )
        raise TypeError(msg)
    rows = _read_parameters(frozen, _parameter_names(family), n)
    if isinstance(family, stats.rv_continuous):
        return _continuous(family, rows)
    return _discrete(family, rows)


def _read_parameters(frozen: Any, names: list[str], n: int | None) -> Float64Array:
    """Return the parameters in scipy's order, (n, P)."""
    given = {"loc": 0.0, "scale": 1.0}
    given |= dict(zip(names, frozen.args, strict=False)) | frozen.kwds
    columns = []
    for name in names:
        column = as_numbers(given[name], name)
        columns.append(column[:, 0] if column.shape[1:] == (1,) else column)
    try:
        found = np.broadcast_arrays(*columns)
    except ValueError as error:
        shapes = ", ".join(str(column.shape) for column in columns)
        msg = f"`frozen` must have parameters of one length, got shapes {shapes}."
        raise ValueError(msg) from error
    shape = found[0].shape
    if len(shape) > 1:
        msg = f"`frozen` must have parameters of shape (n,), got shape {shape}."
        raise ValueError(msg)
    if n is not None:
        count = check_integer(n, "n", 0)
        if shape not in ((), (1,), (count,)):
            msg = (
                "`n` must be left out, or be the length of the parameters, "
                f"{shape[0]}, got {n}."
            )
            raise ValueError(msg)
        found = np.broadcast_arrays(*found, np.empty(count))[:-1]
    return np.column_stack([np.atleast_1d(column) for column in found])


def _parameter_names(family: Any) -> list[str]:
    """Return the names of a family's parameters, in scipy's order."""
    shapes = [] if family.shapes is None else family.shapes.split(",")
    last = ["loc", "scale"] if isinstance(family, stats.rv_continuous) else ["loc"]
    return [name.strip() for name in shapes] + last


def _continuous(family: Any, rows: Float64Array) -> Law:
    """Return the law of quantiles as scipy says them, with the moments that exist."""
    low, high = (np.ravel(np.asarray(end, float)) for end in family.support(*rows.T))
    _check_supports(family, rows, low, high)
    *shapes, loc, scale = rows.T[:, :, None]
    g = np.broadcast_to(STANDARD.greville, (len(rows), STANDARD.size))
    with np.errstate(all="ignore"):
        # Of the standard law: differences from its ends keep their digits.
        first, last = family.support(*shapes)
        x = _quantiles(family, g, shapes)
        gaps = (x - first) * scale, (last - x) * scale
        ends = low[:, None], high[:, None]
        u = coordinates_of_gaps(loc + scale * x, gaps, *ends)
        known = _moments(family, rows)
        free = np.isinf(low).all() and np.isinf(high).all()
        if free and not np.isfinite(known).all():
            return Law.smooth(_heavy_curve(family, rows), known=known)
    return Law.smooth(read_curve(fill_ends(u), low, high), known=known)


def _heavy_curve(family: Any, rows: Float64Array) -> Curve:
    """Return curves on knots of their own, for tails that rise by powers of ten."""
    parameters = rows.T[:, :, None]
    z = np.tile(_HEAVY, (len(rows), 1))
    y = _quantiles(family, z, parameters)
    log_density = family.logpdf(y, *parameters)
    slopes = np.exp(-0.5 * z**2 - LOG_SQRT_TWO_PI - log_density)
    return curve_through(_HEAVY, y, (-np.inf, np.inf), slopes)


def _quantiles(family: Any, z: Float64Array, parameters: Any) -> Float64Array:
    """Return the quantiles at normal scores, each from the nearer tail."""
    lower = family.ppf(ndtr(np.minimum(z, 0.0)), *parameters)
    upper = family.isf(ndtr(-np.maximum(z, 0.0)), *parameters)
    return np.asarray(np.where(z <= 0.0, lower, upper))


def _moments(family: Any, rows: Float64Array) -> Float64Array:
    """Return mean and central moments (n, 4) as scipy says them."""
    parts = family.stats(*rows.T, moments="mvsk")
    m, v, s, k = (np.broadcast_to(np.asarray(p, float), len(rows)) for p in parts)
    return np.column_stack([m, v, s * v**1.5, (k + 3.0) * v**2])


def _check_supports(
    family: Any, rows: Float64Array, low: Float64Array, high: Float64Array
) -> None:
    wrong = np.flatnonzero(np.isnan(low) | np.isnan(high))
    if len(wrong):
        i = int(wrong[0])
        names = _parameter_names(family)
        got = ", ".join(f"{a}={b:g}" for a, b in zip(names, rows[i], strict=True))
        msg = (
            f"`frozen` must have parameters for which `{family.name}` has a law, "
            f"got {got} in row {i}."
        )
        raise ValueError(msg)


def _discrete(family: Any, rows: Float64Array) -> Law:
    """Return the law on the values of every row, without the far tails."""
    parameters = rows.T[:, :, None]
    low, high = family.ppf(_LEFT_OUT, *rows.T), family.isf(_LEFT_OUT, *rows.T)
    wrong = np.flatnonzero(~np.isfinite(low) | ~np.isfinite(high))
    if len(wrong):
        i = int(wrong[0])
        msg = (
            f"`frozen` must have parameters for which `{family.name}` has a law, got "
            f"{', '.join(f'{value:g}' for value in rows[i])} in row {i}."
        )
        raise ValueError(msg)
    if len(rows) == 0:
        return Law.discrete(np.zeros(1), np.empty((0, 1)))
    first, last = float(low.min()), float(high.max())
    if last - first >= _MOST_VALUES:
        msg = (
            f"`frozen` must take at most {_MOST_VALUES} values in all rows together, "
            f"got those from {first:g} to {last:g}: take a continuous law."
        )
        raise ValueError(msg)
    values = np.arange(first, last + 1.0)
    shares = family.pmf(np.broadcast_to(values, (len(rows), len(values))), *parameters)
    return Law.discrete(values, shares / shares.sum(axis=1, keepdims=True))
