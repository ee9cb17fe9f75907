"""Laws from forecasts of other libraries: quantiles, bins, draws, laws of scipy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.interpolate import CubicHermiteSpline, CubicSpline
from scipy.special import ndtr, ndtri

from calibration import CalibrationWarning
from calibration._validation import (
    as_numbers,
    check_choice,
    check_finite,
    check_integer,
    check_vector,
    refuse,
)
from calibration.typing import Float64Array
from localexpert._validation import (
    check_array,
    check_bounds,
    check_increasing,
    check_probability_rows,
)
from localexpert.law.basis import REACH, STANDARD, chords_beside, hermite_basis
from localexpert.law.curve import (
    Curve,
    append_curves,
    coordinates_of_gaps,
    fill_ends,
    from_coordinates,
    read_curve,
    to_coordinates,
)
from localexpert.law.law import Law
from localexpert.law.steps import LOG_SQRT_TWO_PI

# Slopes of a curve through points, as multiples of the lesser chord beside: between
# such the cubic rises by more than a third of its chord everywhere.
_LEAST_SLOPE, _MOST_SLOPE = 0.3, 1.5
# At the ends, where tails go on from.
_LEAST_END = 0.5
# As shares of the mean slope: below which a chord at an end is nearly flat, and the
# least slope of a tail beyond one that is.
_FLAT, _LEAST_TAIL = 0.3, 0.25
# The last chord comes from a bound if it is so much steeper in the coordinate than a
# line of y is.
_BOLD = 5.0
# Widest gaps between breaks, in the middle and beyond it, and where that ends.
_NEAR, _FAR, _CENTRE = 0.2, 0.6, 3.5
# How far beyond the outermost scores a curve has the slope of its tails.
_LEAD = 0.1
# Rows at a time: what is computed on the way is many times as large as the curves.
_ROWS = 4096


def curve_through(
    scores: Float64Array,
    values: Float64Array,
    bounds: tuple[float, float],
    slopes: Float64Array | None = None,
) -> Curve:
    """Return the curves with given values at given scores, straight beyond them.

    They are natural cubic splines in the coordinate of the bounds. If a spline falls or
    is too flat or steep, its slopes are clipped to lie between 0.3 (0.5 at the ends)
    and 1.5 times the lesser slope of the chords beside. Then the coefficients increase.
    Tails have the slopes of the curve's ends. If the last chord there is below 0.3 of
    the mean slope, a tail's slope is raised: the flatter the chord, the nearer to a
    quarter of the mean slope.

    Parameters
    ----------
    scores : ndarray of shape (k,)
        Strictly increasing, k >= 2.
    values : ndarray of shape (n, k)
        Strictly increasing along a row, strictly within the bounds.
    bounds : (float, float)
    slopes : ndarray of shape (n, k), optional
        Slopes at the scores if they are known, for curves without bounds.

    Returns
    -------
    Curve
        On double knots at the scores: a cubic Hermite curve is a B-spline on those.
    """
    if len(values) > _ROWS:
        parts = []
        for start in range(0, len(values), _ROWS):
            rows = slice(start, start + _ROWS)
            known = None if slopes is None else slopes[rows]
            parts.append(curve_through(scores, values[rows], bounds, known))
        return append_curves(parts)
    x = scores
    low, high = (np.full(len(values), end) for end in bounds)
    u = to_coordinates(values, low[:, None], high[:, None])
    # Rounding in the coordinate must not change the order of values.
    u = np.maximum.accumulate(u, axis=1)
    beside = chords_beside(x, u)
    if slopes is None:
        spline = CubicSpline(x, np.eye(len(x)), bc_type="natural")
        # Not a product of matrices, whose rounding depends on the other rows.
        slopes = np.einsum("ik,jk->ij", u - u[:, :1], spline(x, 1))
    least = np.full(len(x), _LEAST_SLOPE)
    least[[0, -1]] = _LEAST_END
    slopes = np.clip(slopes, least * beside, _MOST_SLOPE * beside)
    # Two nearly equal quantiles at an end say nothing about values beyond it.
    mean = (u[:, -1:] - u[:, :1]) / (x[-1] - x[0])
    flat = np.maximum(1.0 - beside[:, [0, -1]] / np.maximum(_FLAT * mean, 1e-300), 0.0)
    tails = np.maximum(slopes[:, [0, -1]], _LEAST_TAIL * flat * mean)
    # Nor does a value on a bound: from there a line leads to the last one, in y.
    rise = from_coordinates(u[:, [0, -1]], low[:, None], high[:, None])[1]
    line = (np.diff(values) / np.diff(x))[:, [0, -1]] / rise
    from_bound = beside[:, [0, -1]] > _BOLD * line
    tails = np.where(from_bound, line, tails)
    slopes[:, [0, -1]] = np.where(from_bound, line, slopes[:, [0, -1]])
    tails = np.maximum(tails, 2.0**-40 * np.abs(u[:, [0, -1]]).clip(1e-280))
    first, last = min(-REACH, x[0] - 1.0), max(REACH, x[-1] + 1.0)
    ends = x[[0, -1]] + np.array([-_LEAD, _LEAD])
    rise = 0.5 * (slopes[:, [0, -1]] + tails) * np.array([-_LEAD, _LEAD])
    near = u[:, [0, -1]] + rise
    outer = near + tails * (np.array([first, last]) - ends)
    breaks = np.concatenate([[first, ends[0]], x, [ends[1], last]])
    columns = outer[:, 0], near[:, 0], u, near[:, 1], outer[:, 1]
    heights = np.column_stack(columns)
    rates = np.column_stack([tails[:, [0, 0]], slopes, tails[:, [1, 1]]])
    breaks, heights, rates = _fill_gaps(breaks, heights, rates)
    basis, c = hermite_basis(breaks, heights, rates)
    c = np.maximum.accumulate(c, axis=1)
    return Curve(basis, c, tails, low, high)


def _fill_gaps(
    breaks: Float64Array, heights: Float64Array, rates: Float64Array
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return the same curves on more breaks: maps of curves read them at breaks.

    The parts of a cubic are cubics. If its coefficients increase, theirs do, too.
    """
    widest = np.where(np.abs(breaks[1:] + breaks[:-1]) < 2.0 * _CENTRE, _NEAR, _FAR)
    parts = np.ceil(np.diff(breaks) / widest).astype(np.intp)
    piece = np.repeat(np.arange(len(parts)), parts)
    start = np.concatenate([[0], np.cumsum(parts)[:-1]])
    s = (np.arange(len(piece)) - start[piece]) / parts[piece]
    at = np.append(breaks[piece] + s * np.diff(breaks)[piece], breaks[-1])
    spline = CubicHermiteSpline(breaks, heights, rates, axis=1)
    return at, spline(at), spline(at, 1)


# Equal quantiles are moved apart by this share of the range around them, or of the
# row's range if that is 0. A row without range uses the square of it. If quantiles are
# out of order by less than this square, it is rounding.
_APART = 1e-6
# How far "around" reaches in normal scores: heavy tails are no measure of the middle.
_AROUND = 0.5
_FEW_ULPS = 8.0
# Scores of the quantiles that stand for a histogram.
_BIN_SCORES = np.linspace(-3.0, 3.0, 161)


def law_of_quantiles(values: ArrayLike, levels: ArrayLike, bounds: Any) -> Law:
    """Return the law with given quantiles, put in order and within bounds.

    Parameters
    ----------
    values : array-like of shape (n, k)
    levels : array-like of shape (k,)
        Strictly increasing in (0, 1), k >= 2.
    bounds : (float, float) or None

    Returns
    -------
    Law
    """
    knots = ndtri(_check_levels(levels))
    rows = read_rows(values, "values", "a row for each forecast, a column for a level")
    if rows.shape[1] != len(knots):
        rule = f"have a column for each of the {len(knots)} levels"
        refuse("values", rule, f"shape {rows.shape}")
    ends = check_bounds((None, None) if bounds is None else bounds)
    return Law.smooth(curve_through(knots, increase_rows(rows, knots, ends), ends))


def read_rows(values: ArrayLike, name: str, wanted: str) -> Float64Array:
    """Return finite numbers in two dimensions; refuse others by their row.

    Parameters
    ----------
    values : array-like of shape (n, k)
    name : str
    wanted : str
        What rows and columns are, for a message.

    Returns
    -------
    ndarray of shape (n, k)
    """
    rows = as_numbers(values, name)
    if rows.ndim != 2:
        refuse(name, f"have two dimensions, {wanted}", f"shape {rows.shape}")
    check_finite(rows, name)
    return rows


def increase_rows(
    rows: Float64Array, knots: Float64Array, bounds: tuple[float, float]
) -> Float64Array:
    """Return quantiles that increase strictly, strictly within the bounds.

    Parameters
    ----------
    rows : ndarray of shape (n, k)
    knots : ndarray of shape (k,)
        Normal scores of their levels.
    bounds : (float, float)

    Returns
    -------
    ndarray of shape (n, k)
        Rows that already increase well within the bounds stay as they are.
    """
    size = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
    tiny = _APART**2 * size
    fell = (np.diff(rows, axis=1) < -tiny).any(axis=1)
    outside = ((rows < bounds[0] - tiny) | (rows > bounds[1] + tiny)).any(axis=1)
    _warn(fell, "fall along a row", "they are put in order")
    _warn(outside, "lie beyond `bounds`", "they are put on the bound")
    out = np.clip(np.sort(rows, axis=1), *bounds)
    around = _range_around(out, knots)
    spread = np.where(around > 0.0, around, np.ptp(out, axis=1, keepdims=True))
    spread = np.where(spread > 0.0, spread, _APART * np.where(size > 0.0, size, 1.0))
    gaps = np.diff(knots, prepend=knots[0] - 1.0, append=knots[-1] + 1.0)
    # Both ways the same steps: else the way down leads beyond where the way up began.
    lesser = np.minimum(spread[:, 1:], spread[:, :-1])
    steps = np.hstack([spread[:, :1], lesser, spread[:, -1:]])
    steps *= _APART * gaps / (knots[-1] - knots[0])
    # Upwards from the lower bound, and then down from the upper one.
    last = np.full(len(out), bounds[0])
    for k in range(out.shape[1]):
        last = out[:, k] = np.maximum(out[:, k], last + _as_floats(steps[:, k], last))
    last = np.full(len(out), bounds[1])
    for k in range(out.shape[1] - 1, -1, -1):
        step = _as_floats(steps[:, k + 1], out[:, k])
        last = out[:, k] = np.minimum(out[:, k], last - step)
    return out


def _range_around(rows: Float64Array, knots: Float64Array) -> Float64Array:
    """Return the range between the knots around each, its neighbours at least."""
    places = np.arange(len(knots))
    first = np.searchsorted(knots, knots - _AROUND)
    last = np.searchsorted(knots, knots + _AROUND, side="right") - 1
    first = np.minimum(first, np.maximum(places - 1, 0))
    last = np.maximum(last, np.minimum(places + 1, len(knots) - 1))
    return rows[:, last] - rows[:, first]


def _as_floats(step: Float64Array, value: Float64Array) -> Float64Array:
    """Return steps that are large enough for floats of the size of a value."""
    finite = np.where(np.isfinite(value), value, 0.0)
    return np.maximum(step, _FEW_ULPS * np.spacing(np.abs(finite)))


def law_of_bins(edges: ArrayLike, probabilities: ArrayLike) -> Law:
    """Return a smooth law with the quantiles of histograms.

    Parameters
    ----------
    edges : array-like of shape (B + 1,)
    probabilities : array-like of shape (n, B)

    Returns
    -------
    Law
    """
    borders = check_vector(edges, "edges")
    check_increasing(borders, "edges")
    if len(borders) < 2:
        refuse("edges", "be two or more", len(borders))
    read_rows(probabilities, "probabilities", "a row for each forecast")
    shares = check_probability_rows(probabilities, "probabilities", len(borders) - 1)
    upto = np.pad(np.minimum(np.cumsum(shares, axis=1), 1.0), ((0, 0), (1, 0)))
    upto[:, -1] = 1.0
    levels = ndtr(_BIN_SCORES)
    found = [np.interp(levels, row, borders) for row in upto]
    quantiles = np.reshape(found, (-1, len(levels)))
    ends = float(borders[0]), float(borders[-1])
    rows = increase_rows(quantiles, _BIN_SCORES, ends)
    return Law.smooth(curve_through(_BIN_SCORES, rows, ends))


def _check_levels(levels: ArrayLike) -> Float64Array:
    """Return levels strictly between 0 and 1, strictly increasing, two or more."""
    found = check_array(np.atleast_1d(as_numbers(levels, "levels")), "levels", (None,))
    check_increasing(found, "levels")
    if len(found) < 2:
        why = "one quantile does not say how wide a distribution is"
        refuse("levels", f"be two or more, for {why}", f"{found[0]:g} alone")
    outside = (found <= 0.0) | (found >= 1.0)
    if outside.any():
        refuse("levels", "lie in (0, 1)", f"{found[outside][0]:g}")
    return found


def _warn(wrong: Any, what: str, cure: str) -> None:
    if wrong.any():
        msg = (
            f"`values` {what} in {wrong.sum()} of {len(wrong)} rows, the first of them "
            f"row {int(np.argmax(wrong))}; {cure}."
        )
        warnings.warn(msg, CalibrationWarning, stacklevel=5)


# Distinct values up to which draws are taken to be discrete, and probabilities in all.
MOST_DISCRETE, _MOST_CELLS = 100, 100_000_000
# Fewest draws that a smooth curve is drawn through.
_LEAST_DRAWS = 10
# Width of the window for one draw, and places that it is averaged over.
_WIDTH, _N_PLACES = 0.7, 64
# The outermost knots leave out this share, but so many draws at least and at most.
_OUT, _LEAST_OUT, _MOST_OUT = 0.005, 1.5, 8.0


def law_of_samples(samples: Any, kind: str, bounds: Any) -> Law:
    """Return the law of draws of equal weight.

    Parameters
    ----------
    samples : array-like of shape (n, m)
    kind : {"auto", "smooth", "discrete"}
    bounds : (float, float) or None

    Returns
    -------
    Law
    """
    check_choice(kind, "kind", ("auto", "smooth", "discrete"))
    rows = read_rows(samples, "samples", "the draws of each forecast in a row")
    if rows.shape[1] == 0:
        refuse("samples", "hold draws", f"shape {rows.shape}")
    ends = check_bounds((None, None) if bounds is None else bounds)
    values = np.unique(rows) if kind != "smooth" else np.empty(0)
    few = 0 < len(values) <= MOST_DISCRETE
    if kind == "discrete" or (kind == "auto" and few):
        return _count(rows, values)
    return _smooth(rows, ends)


def _count(rows: Float64Array, values: Float64Array) -> Law:
    """Return the law of the shares of values (V,) in each row."""
    n, m = rows.shape
    if len(values) * n > _MOST_CELLS:
        rule = f'not be "discrete" for more than {_MOST_CELLS:g} probabilities'
        refuse("kind", rule, f'{len(values)} values in {n} rows: take "smooth"')
    if n == 0:
        return Law.discrete(np.zeros(1), np.empty((0, 1)))
    cell = np.arange(n)[:, None] * len(values) + np.searchsorted(values, rows)
    counts = np.bincount(cell.ravel(), minlength=n * len(values))
    return Law.discrete(values, counts.reshape(n, len(values)) / m)


def _smooth(rows: Float64Array, bounds: tuple[float, float]) -> Law:
    """Return curves through sorted draws at their normal scores, smoothed."""
    m = rows.shape[1]
    if m < _LEAST_DRAWS:
        rule = f"hold at least {_LEAST_DRAWS} draws of each forecast for a smooth law"
        refuse("samples", rule, f'{m}: take more, or `kind="discrete"`')
    window = _WIDTH * m**-0.2
    end = -float(ndtri(np.clip(_OUT, _LEAST_OUT / m, _MOST_OUT / m)))
    knots = np.linspace(-end, end, 2 * int(np.ceil(end / window)) + 1)
    # Not a product of matrices, whose rounding depends on the other rows.
    values = np.einsum("ij,kj->ik", np.sort(rows, axis=1), _window(knots, window, m))
    values = np.clip(values, *bounds)
    rising = increase_rows(values, knots, bounds)
    return Law.smooth(curve_through(knots, rising, bounds))


def _window(knots: Float64Array, width: float, m: int) -> Float64Array:
    """Return the weights (K, m) of sorted draws in a smoothed curve at knots."""
    scores = ndtri((np.arange(m) + 0.5) / m)
    places = knots[:, None] + width * ndtri((np.arange(_N_PLACES) + 0.5) / _N_PLACES)
    # Straight lines between the draws, and on beyond the outermost.
    left = np.clip(np.searchsorted(scores, places, "right") - 1, 0, m - 2)
    share = (places - scores[left]) / (scores[left + 1] - scores[left])
    weights = np.zeros((len(knots), m))
    row = np.arange(len(knots))[:, None]
    np.add.at(weights, (row, left), (1.0 - share) / _N_PLACES)
    np.add.at(weights, (row, left + 1), share / _N_PLACES)
    return weights


# Probability that is left out in each tail of a discrete law, and what may be missing
# besides for rounding; most values in all.
_LEFT_OUT, _MOST_LOST, _MOST_VALUES = 1e-12, 1e-6, 10_000
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
        rule = "be a frozen distribution of scipy.stats, such as stats.norm(loc, scale)"
        refuse("frozen", rule, type(frozen).__name__, TypeError)
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
        rule = "have parameters of one length"
        refuse("frozen", rule, f"shapes {shapes}", cause=error)
    shape = found[0].shape
    if len(shape) > 1:
        refuse("frozen", "have parameters of shape (n,)", f"shape {shape}")
    if n is not None:
        count = check_integer(n, "n", 0)
        if shape not in ((), (1,), (count,)):
            rule = f"be left out, or be the length of the parameters, {shape[0]}"
            refuse("n", rule, n)
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
    _refuse_rows_without_law(family, rows, np.isnan(low) | np.isnan(high))
    *shapes, loc, scale = rows.T[:, :, None]
    g = np.broadcast_to(STANDARD.greville, (len(rows), STANDARD.size))
    with np.errstate(all="ignore"):
        # Of the standard law: differences from its ends keep their digits.
        first, last = family.support(*shapes)
        x = _quantiles(family, g, shapes)
        gaps = (x - first) * scale, (last - x) * scale
        ends = low[:, None], high[:, None]
        u = coordinates_of_gaps(loc + scale * x, gaps, *ends)
        parts = family.stats(*rows.T, moments="mvsk")
        m, v, s, k = (np.broadcast_to(np.asarray(p, float), len(rows)) for p in parts)
        known = np.column_stack([m, v, s * v**1.5, (k + 3.0) * v**2])
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


def _refuse_rows_without_law(
    family: Any, rows: Float64Array, wrong: NDArray[np.bool_]
) -> None:
    if wrong.any():
        i = int(np.argmax(wrong))
        names = _parameter_names(family)
        got = ", ".join(f"{a}={b:g}" for a, b in zip(names, rows[i], strict=True))
        rule = f"have parameters for which `{family.name}` has a law"
        refuse("frozen", rule, f"{got} in row {i}")


def _discrete(family: Any, rows: Float64Array) -> Law:
    """Return the law on the values of every row, without the far tails."""
    parameters = rows.T[:, :, None]
    low, high = family.ppf(_LEFT_OUT, *rows.T), family.isf(_LEFT_OUT, *rows.T)
    _refuse_rows_without_law(family, rows, ~(np.isfinite(low) & np.isfinite(high)))
    if len(rows) == 0:
        return Law.discrete(np.zeros(1), np.empty((0, 1)))
    first, last = float(low.min()), float(high.max())
    if last - first >= _MOST_VALUES:
        rule = f"take at most {_MOST_VALUES} values in all rows together"
        got = f"those from {first:g} to {last:g}: take a continuous law"
        refuse("frozen", rule, got)
    values = np.arange(first, last + 1.0)
    shares = family.pmf(np.broadcast_to(values, (len(rows), len(values))), *parameters)
    total = shares.sum(axis=1, keepdims=True)
    wrong = np.flatnonzero(~(np.abs(total[:, 0] - 1.0) < _MOST_LOST))
    if len(wrong):
        rule = "take values in steps of 1, the same in all rows (or take `from_arrays`)"
        got = f"{total[wrong[0], 0]:g} of the probability there in row {wrong[0]}"
        refuse("frozen", rule, got)
    return Law.discrete(values, shares / total)
