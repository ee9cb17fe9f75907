"""`transform_law`: the law of an increasing function of Y, for a law of any kind."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.laws.discrete import DiscreteLaw
from localexpert.laws.law import Law
from localexpert.laws.mixed import MixedLaw
from localexpert.laws.pooled_law import PooledLaw
from localexpert.laws.recalibrated import RecalibratedLaw
from localexpert.laws.spline import SplineLaw
from localexpert.laws.transformed import TransformedLaw
from localexpert.laws.value_map import ValueMap, call_vectorised

# Scores of the quantiles at which a function is tried. Beyond the outermost inner one
# it may overflow, or come so near to its limit that no inverse leads back.
_INNER = np.array([-4.5, -3.0, -2.0, -1.2, -0.5, 0.0, 0.5, 1.2, 2.0, 3.0, 4.5])
_OUTER = np.array([-30.0, -12.0, -7.0, 7.0, 12.0, 30.0])
_SCORES = np.sort(np.concatenate([_INNER, _OUTER]))
_IS_INNER = np.isin(_SCORES, _INNER)
# How far from x the inverse of func(x) may be: a share of the law's width, and of x.
_OF_WIDTH, _OF_SIZE = 1e-6, 1e-9
# How far a given derivative may be from differences.
_OF_SLOPE = 0.01
# Units in the last place by which an affine function may miss a line.
_ROUNDING = 8.0


class _Line(NamedTuple):
    """What func is, but for rounding: shift + factor x."""

    values: ValueMap
    shift: float
    factor: float


def transform_law(law: Law, values: ValueMap) -> Law:
    """Return the law of func(Y).

    Parameters
    ----------
    law : Law
    values : ValueMap

    Returns
    -------
    Law
        A `DiscreteLaw` or `MixedLaw` of what is one. The law itself moved and
        stretched if func does no more than that, else a `TransformedLaw`.
    """
    return _transform(law, values)


@singledispatch
def _transform(law: Law, values: ValueMap) -> Law:
    if law.has_jumps:
        msg = f"`law` has jumps that are not known, got a {type(law).__name__}."
        raise TypeError(msg)
    if len(law) == 0:
        return TransformedLaw(law, values)
    x = law.ppf_scores(np.tile(_SCORES, (len(law), 1)))
    z = values.forward(x)
    _check_values(x, z, _IS_INNER)
    _check_inverse(x, z, values)
    line = _find_line(x, z, values)
    if line is not None:
        return _move(law, line)
    found = TransformedLaw(law, values)
    if values.derivative is not None:
        _check_derivative(found, x[:, _IS_INNER])
    return found


@_transform.register
def _(law: DiscreteLaw, values: ValueMap) -> DiscreteLaw:
    mapped, held = _map_values(law.values, law.probabilities, values)
    return DiscreteLaw(mapped, law.probabilities[:, held])


@_transform.register
def _(law: MixedLaw, values: ValueMap) -> MixedLaw:
    atoms, held = _map_values(law.atoms, law.masses, values)
    before, widths = law.atoms[held], law.widths[held]
    ends = [
        call_vectorised(values.func, "func", before + side * widths)
        for side in (-0.5, 0.5)
    ]
    # Of a cell that is cut off where func is not defined, twice what is there.
    below, above = atoms - ends[0], ends[1] - atoms
    below, above = (np.where(np.isfinite(gap), gap, np.nan) for gap in (below, above))
    width = np.where(np.isnan(below), 2.0 * above, below + above)
    width = np.where(np.isnan(above), 2.0 * below, width)
    wrong = ~(width > 0.0)
    if wrong.any():
        i = int(np.argmax(wrong))
        msg = (
            "`func` must increase, and be defined, beside values of positive "
            f"probability, got {ends[0][i]:g} and {ends[1][i]:g} beside {before[i]:g}."
        )
        raise ValueError(msg)
    smooth = law.continuous
    if (law.rest > 0.0).any():
        smooth = _transform(smooth, values)
    return MixedLaw(atoms, law.masses[:, held], smooth, width)


def _map_values(
    y: Float64Array, masses: Float64Array, values: ValueMap
) -> tuple[Float64Array, NDArray[np.bool_]]:
    """Return func of the values (V,) that it knows, and which these are.

    All those must be among them that any row gives probability to.
    """
    z = call_vectorised(values.func, "func", y)
    held = (masses > 0.0).any(axis=0) | np.isfinite(z)
    z, y = z[held], y[held]
    inner = np.ones(len(y), dtype=bool)
    _check_values(y[None, :], z[None, :], inner)
    back = call_vectorised(values.inverse, "inverse", z)
    _refuse_inverse(y, z, back, _OF_SIZE * np.maximum(np.abs(y), np.ptp(y)))
    return z, held


def _check_values(x: Float64Array, z: Float64Array, inner: NDArray[np.bool_]) -> None:
    """Refuse z = func(x), x not decreasing along rows, that does not increase."""
    wrong = np.isnan(z) | (np.isinf(z) & np.isfinite(x) & inner)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        msg = (
            "`func` must be finite wherever the distribution has probability, got "
            f"{z[i, j]:g} at {x[i, j]:g} in row {i}."
        )
        raise ValueError(msg)
    with np.errstate(invalid="ignore"):
        rise, run = np.diff(z, axis=1), np.diff(x, axis=1)
    # Values a few roundings apart may have the same image, and so may far ones.
    apart = run > _ROUNDING * np.spacing(np.abs(x[:, 1:]))
    strict = apart & inner[1:] & inner[:-1]
    wrong = (rise < 0.0) & apart | strict & (rise == 0.0)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        msg = (
            "`func` must increase strictly, got "
            f"{z[i, j]:g} at {x[i, j]:g} and {z[i, j + 1]:g} at {x[i, j + 1]:g}."
        )
        raise ValueError(msg)


def _check_inverse(x: Float64Array, z: Float64Array, values: ValueMap) -> None:
    """Refuse an inverse that does not lead back to the quantiles."""
    x, z = x[:, _IS_INNER], np.ascontiguousarray(z[:, _IS_INNER])
    back = call_vectorised(values.inverse, "inverse", z)
    allowed = _OF_WIDTH * np.ptp(x, axis=1, keepdims=True) + _OF_SIZE * np.abs(x)
    _refuse_inverse(x, z, back, allowed)


def _refuse_inverse(
    x: Float64Array, z: Float64Array, back: Float64Array, allowed: Float64Array
) -> None:
    wrong = ~(np.abs(back - x) <= allowed)
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0])
        msg = (
            "`inverse` must undo `func`, got "
            f"func({x[place]:g}) = {z[place]:g} and inverse({z[place]:g}) = "
            f"{back[place]:g}."
        )
        raise ValueError(msg)


def _check_derivative(law: TransformedLaw, x: Float64Array) -> None:
    """Refuse a derivative that is not that of func."""
    x = np.ascontiguousarray(x)
    given = law.log_slope(x)
    bare = replace(law.values, derivative=None)
    found = TransformedLaw(law.law, bare).log_slope(x)
    # Only where a difference is known to be one of a smooth function.
    wrong = np.isnan(given) | (np.abs(given - found) > _OF_SLOPE)
    if wrong.mean() > 0.5:
        i, j = np.argwhere(wrong)[0]
        msg = (
            "`derivative` must be that of `func`, got "
            f"{np.exp(given[i, j]):g} at {x[i, j]:g}, where `func` rises by about "
            f"{np.exp(found[i, j]):g}."
        )
        raise ValueError(msg)


def _find_line(x: Float64Array, z: Float64Array, values: ValueMap) -> _Line | None:
    """Return the line that z is of x up to rounding, if it is one."""
    known = np.isfinite(x) & np.isfinite(z)
    x, z = x[known], z[known]
    first, last = np.argmin(x), np.argmax(x)
    if not x[last] > x[first]:
        return None
    # From quantiles as they are: far ones are more exact in the slope than near ones.
    factor = (z[last] - z[first]) / (x[last] - x[first])
    near = np.argmin(np.abs(x))
    shift = z[near] - factor * x[near]
    size = np.maximum(np.abs(z), np.abs(factor * x))
    miss = np.abs(shift + factor * x - z)
    if (miss > _ROUNDING * np.spacing(np.maximum(size, abs(shift)))).any():
        return None
    return _Line(values, float(shift), float(factor))


@singledispatch
def _move(law: Law, line: _Line) -> Law:
    """Return the law of shift + factor Y, exact where the law allows."""
    return TransformedLaw(law, line.values)


@_move.register
def _move_spline(law: SplineLaw, line: _Line) -> SplineLaw:
    center = line.shift + line.factor * law.center
    curves = law.knots, law.values, law.slopes
    low, high = (line.values.end(end) for end in law.bounds)
    return SplineLaw(center, line.factor * law.scale, *curves, law.base, (low, high))


@_move.register
def _(law: RecalibratedLaw, line: _Line) -> Law:
    return RecalibratedLaw(_move_spline(law.law, line), law.scores)


@_move.register
def _(law: PooledLaw, line: _Line) -> Law:
    members = [_move(member, line) for member in law.members]
    return PooledLaw(members, law.w, law.kind, law.scores)
