"""From probabilities at thresholds to a smooth increasing curve in probit space."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.interpolate import BSpline, CubicSpline, PchipInterpolator, PPoly
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from calibration._validation import check_choice, check_number
from calibration.typing import Float64Array
from localexpert._kernels.law_curve import increase_rows
from localexpert.law.basis import harmonic_slopes
from localexpert.law.level_map import LevelMap

# Knots reach so far out in probits, and beyond the outer thresholds by so much.
_REACH, _BEYOND = 3.4, 0.3
# Narrowest and widest step between knots in the middle.
_LEAST_STEP, _MOST_STEP = 0.02, 1.0
# Beyond the last knot a curve has the slope of the marginal, or the least that moments
# allow: it is the same in all rows, for lines of different slopes cross.
_END_SLOPE = 1.0


def ordered_spline(
    z: Float64Array, t: Float64Array, step: float, least_slopes: tuple[float, float]
) -> LevelMap:
    """Smooth the broken lines through (t, z) by cubic B-splines.

    Knots lie at sinh(step j), so that steps grow outwards as thresholds become rare.
    The coefficient of a B-spline is the mean, under a hat that is two steps wide, of
    the row's broken line around the place that the B-spline stands for (the mean of
    its inner knots). All weights are positive and straight lines stay what they are;
    so where z is greater in a row the curve is greater, where z increases so does the
    curve, and two continuous derivatives are those of B-splines.

    Parameters
    ----------
    z : ndarray of shape (n, N)
        Probits, increasing along a row.
    t : ndarray of shape (N,)
        Strictly increasing.
    step : float
        At 0; at least the mean step of thresholds, and at most 1.
    least_slopes : (float, float)
        Least slopes beyond the lower and the upper end.

    Returns
    -------
    LevelMap
        A curve for each row, without curvature at its ends.
    """
    grid = _place_knots(t, step)
    gap = 0.5 * np.diff(grid).min()
    z, t = extend_tails(z, t, grid[grid < t[0] - gap], grid[grid > t[-1] + gap])
    means = _smooth(z, t, (grid[:-2] + grid[1:-1] + grid[2:]) / 3.0, grid)
    return _with_straight_ends(means, grid, least_slopes)


def extend_tails(
    z: Float64Array, t: Float64Array, below: Float64Array, above: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Continue rows beyond the outer thresholds with the marginal's shape.

    Below the first threshold t_1 there are two candidates. One is the moved marginal,
    z(t) = z_1 + t - t_1. The other is F(t | x) / F(t_1 | x) = Phi(t) / Phi(t_1). The
    smaller one is taken. The upper end mirrors this. So a row with nearly
    all its probability beyond a threshold stays where rows have been, and a row with
    hardly any there gets no wider. Both depend on z_1 alone and increase with it, so
    rows keep their order.

    Parameters
    ----------
    z : ndarray of shape (n, N)
        Probits, increasing along a row.
    t : ndarray of shape (N,)
    below, above : ndarrays of shape (a,) and (b,)
        Increasing levels below and above all of t.

    Returns
    -------
    z : ndarray of shape (n, a + N + b)
    t : ndarray of shape (a + N + b,)
    """
    left = _lower_tail(z[:, :1], t[0], below)
    right = -_lower_tail(-z[:, -1:], -t[-1], -above)
    return np.hstack([left, z, right]), np.concatenate([below, t, above])


def _lower_tail(z: Float64Array, t: float, below: Float64Array) -> Float64Array:
    # By logarithms, for a threshold may lie so far out that no float is its level.
    share = log_ndtr(below) - log_ndtr(t)
    return np.asarray(np.minimum(z + (below - t), ndtri_exp(log_ndtr(z) + share)))


def _place_knots(t: Float64Array, step: float) -> Float64Array:
    """Return knots that cover the thresholds and the tails, symmetric around 0."""
    ends = np.arcsinh(t[[0, -1]])
    between = (ends[1] - ends[0]) / max(len(t) - 1, 1)
    step = float(np.clip(step, max(between, _LEAST_STEP), max(between, _MOST_STEP)))
    reach = max(_REACH, _BEYOND - t[0], _BEYOND + t[-1])
    n = int(np.ceil(np.arcsinh(reach) / step)) + 1
    return np.asarray(np.sinh(step * np.arange(-n, n + 1)))


def _smooth(
    z: Float64Array, t: Float64Array, places: Float64Array, grid: Float64Array
) -> Float64Array:
    """Return means of broken lines under the hats at the places, (n, len(places))."""
    width = 0.5 * (grid[2:] - grid[:-2])[:, None]
    away = (places[:, None] - t) / width
    # The mean of max(x - t_k, 0) under a hat; a broken line is a sum of such.
    ramps = np.maximum(away, 0.0) + np.maximum(1.0 - np.abs(away), 0.0) ** 3 / 6.0
    ramps *= width
    shares = (ramps[:, :-1] - ramps[:, 1:]) / np.diff(t)
    return np.asarray(z[:, :1] + _combine(np.diff(z), shares))


def _with_straight_ends(
    means: Float64Array, grid: Float64Array, least_slopes: tuple[float, float]
) -> LevelMap:
    """Return the spline of the coefficients, and of more of them on straight lines."""
    low, high = (max(_END_SLOPE, least) for least in least_slopes)
    more = np.arange(1.0, 4.0)
    first, last = grid[1] - grid[0], grid[-1] - grid[-2]
    knots = np.concatenate([grid[0] - first * more[::-1], grid, grid[-1] + last * more])
    places = (knots[1:-3] + knots[2:-2] + knots[3:-1]) / 3.0
    below = means[:, :1] + low * (places[:2] - places[2])
    above = means[:, -1:] + high * (places[-2:] - places[-3])
    coefficients = np.hstack([below, means, above])
    splines = BSpline(knots, np.eye(len(places)), 3)
    at_knots = (np.asarray(splines(grid, nu), dtype=np.float64) for nu in (0, 1))
    values, slopes = (_combine(coefficients, shares) for shares in at_knots)
    return LevelMap(grid, values, slopes)


def _combine(rows: Float64Array, shares: Float64Array) -> Float64Array:
    """Return sums of what rows (n, k) hold with the shares (m, k), shape (n, m).

    Not a product of matrices, whose rounding depends on how many rows there are.
    """
    return np.asarray(np.einsum("ik,jk->ij", rows, shares))


# Probabilities nearer to 0 or 1 than this are clipped, for any number of rows.
LOOSEST_CLIP = 1e-3
# Least slope of g: a forecast never puts more than 1 / this of the marginal spread
# between two thresholds for nothing.
LEAST_SLOPE = 0.05
# Weights of the curvature that are compared at a time.
_GCV_POINTS = 25
# Points between two thresholds at which a raw curve is read, and the step of its tails.
_FINE, _TAIL_STEP = 8, 0.2
_TIED = 1.0 + 1e-9


@dataclass(frozen=True)
class ProbitSpline:
    """Smooth z = probit(p) against t, the probit of the marginal, row by row.

    A forecast that is the marginal shifted and scaled on the normal scale is a
    straight line here, which smoothing leaves alone.

    Parameters
    ----------
    smoothing : float
        Step between knots at the middle of the marginal, in its probits. Curves follow
        the thresholds at 0, which stands for their mean step; above 1 it is as 1.

    Notes
    -----
    1. p is clipped to [c, 1 - c], c = max(1 / (2n + 2), .001), and made increasing.
    2. z is projected on sequences with slope >= .05, with the weights w_k =
       phi(t_k)^2 / (p_k (1 - p_k)), the precision of a probit at the marginal's own
       p_k, and continued beyond the outer thresholds by what z says there alone
       (`extend_tails`).
    3. Local means of the broken lines through these are the coefficients of cubic
       B-splines (`ordered_spline`).

    All steps keep order: if p is nowhere less in one row than in another, its curve
    is nowhere less, tails included. A curve has two continuous derivatives, and none
    from the second on beyond its end knots.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import ndtr, ndtri
    >>> from localexpert.curves.spline import ProbitSpline
    >>> t = ndtri(np.arange(1, 26) / 26)
    >>> curves = ProbitSpline(0.3).build(ndtr(2 * t - 0.5)[None, :], t, 10_000)
    >>> inner = np.abs(curves.knots) < 0.4
    >>> np.allclose(curves.values[0, inner], 2 * curves.knots[inner] - 0.5)
    True
    """

    smoothing: float = 0.2

    def build(
        self,
        probabilities: Float64Array,
        t: Float64Array,
        n: float,
        least_slopes: tuple[float, float] = (0.0, 0.0),
    ) -> LevelMap:
        """Return how a row's levels follow from the marginal's: one curve per row.

        Parameters
        ----------
        probabilities : ndarray of shape (n_rows, n_thresholds)
        t : ndarray of shape (n_thresholds,)
            Strictly increasing thresholds in marginal probits.
        n : float
            Number of training rows.
        least_slopes : (float, float)
            Least slopes beyond the lower and the upper end.

        Returns
        -------
        LevelMap
        """
        z = ndtri(increase_probabilities(probabilities, n))
        z = increase_rows(z, _probit_precision(t), LEAST_SLOPE * np.diff(t))
        return ordered_spline(z, t, self.smoothing, least_slopes)


@dataclass(frozen=True)
class RawSpline:
    """A spline through the probabilities themselves, against y: the talk's method.

    Parameters
    ----------
    method : {"pchip", "smoothing_spline"}
        "pchip": monotone cubic interpolation. "smoothing_spline": the natural cubic
        smoothing spline.
    df : float, optional
        Degrees of freedom of the smoothing spline, at least 2, which is a line; from
        the number of thresholds on it interpolates. Default: the smoothing of each row
        is chosen by generalised cross-validation. The talk's package has 10.

    Notes
    -----
    `curve` is the spline as it is: it may fall, or leave [0, 1]. A law is made of it in
    `build`: it is clipped and made increasing on a fine grid, and continued beyond the
    outer thresholds with the marginal's shape. Where the curve is flat, which forbids
    what lies there, the law rises a little.

    References
    ----------
    Normandin (2017), Local expert regression and calibration for probabilistic
    classification (talk). Green & Silverman (1994), Nonparametric regression and
    generalized linear models, chapter 2.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import RawSpline
    >>> places, p = np.array([1.0, 2.0, 4.0, 5.0]), np.array([[0.1, 0.3, 0.8, 0.9]])
    >>> RawSpline("pchip").curve(p, places)([2.0, 3.0]).round(2)
    array([[0.3 , 0.57]])
    >>> RawSpline("smoothing_spline", df=2).curve(p, places)([2.0, 3.0]).round(3)
    array([[0.315, 0.525]])
    """

    method: Literal["pchip", "smoothing_spline"] = "pchip"
    df: float | None = None

    def __post_init__(self) -> None:
        check_choice(self.method, "method", ("pchip", "smoothing_spline"))
        if self.df is not None:
            check_number(self.df, "df", 2.0)

    def curve(self, probabilities: Float64Array, places: Float64Array) -> PPoly:
        """Return the spline of each row, before it becomes a law.

        Parameters
        ----------
        probabilities : ndarray of shape (n_rows, n_thresholds)
        places : ndarray of shape (n_thresholds,)
            Thresholds in units of y, strictly increasing; two at least.

        Returns
        -------
        scipy.interpolate.PPoly
            Called with k values of y it gives (n_rows, k); `derivative` is the density.
        """
        # A natural spline with a curvature to weigh needs three points at least.
        if self.method == "smoothing_spline" and len(places) > 2:
            smooth = smooth_rows(places, probabilities, self.df)
            return CubicSpline(places, smooth, axis=1, bc_type="natural")
        return PchipInterpolator(places, probabilities, axis=1)

    def build(
        self,
        probabilities: Float64Array,
        t: Float64Array,
        n: float,
        least_slopes: tuple[float, float] = (0.0, 0.0),
        inverse: Callable[[Float64Array], Float64Array] = np.asarray,
    ) -> LevelMap:
        """Return how a row's levels follow from the marginal's: one curve per row.

        Parameters
        ----------
        probabilities : ndarray of shape (n_rows, n_thresholds)
        t : ndarray of shape (n_thresholds,)
            Strictly increasing thresholds in marginal probits.
        n : float
            Number of training rows.
        least_slopes : (float, float)
            Least slopes beyond the lower and the upper end.
        inverse : function
            Gives the y of marginal probits; default: they are their own.

        Returns
        -------
        LevelMap
        """
        dense, fine = increase_probabilities(probabilities, n), t
        if len(t) > 1:
            share = np.arange(_FINE) / _FINE
            inner = t[:-1, None] + np.diff(t)[:, None] * share
            fine = np.append(inner.ravel(), t[-1])
            dense = self.curve(dense, inverse(t))(inverse(fine))
            dense = increase_probabilities(dense, n)
        z = increase_rows(ndtri(dense), np.ones(len(fine)), LEAST_SLOPE * np.diff(fine))
        grid = _place_knots(t, _TAIL_STEP)
        below, above = grid[grid < t[0] - _BEYOND], grid[grid > t[-1] + _BEYOND]
        values, knots = extend_tails(z, fine, below, above)
        chords = np.diff(values) / np.diff(knots)
        slopes = np.empty(values.shape)
        slopes[:, 1:-1] = harmonic_slopes(np.diff(knots), chords)
        slopes[:, 0], slopes[:, -1] = (max(_END_SLOPE, least) for least in least_slopes)
        return LevelMap(knots, values, slopes)


# Turns probabilities (n, N) at thresholds t (N,) into curves.
CurveBuilder: TypeAlias = ProbitSpline | RawSpline


def increase_probabilities(p: Float64Array, n: float) -> Float64Array:
    """Clip p (n_rows, k) and make its rows nondecreasing by exact projection."""
    # The least probability that n rows can support.
    bound = max(0.5 / (n + 1.0), LOOSEST_CLIP)
    clipped = np.ascontiguousarray(np.clip(p, bound, 1.0 - bound))
    k = p.shape[1]
    return increase_rows(clipped, np.ones(k), np.zeros(k - 1))


def _probit_precision(t: Float64Array) -> Float64Array:
    """Return the relative precision of probits at marginal probits t, mean 1."""
    p = ndtr(t)
    density = np.exp(-0.5 * t * t)
    precision = density**2 / np.maximum(p * (1.0 - p), 1e-12)
    weights = np.maximum(precision, 1e-3 * precision.max())
    return np.asarray(weights / weights.mean(), dtype=np.float64)


def smooth_rows(
    places: Float64Array, p: Float64Array, df: float | None = None
) -> Float64Array:
    """Return each row's natural smoothing spline at its own places.

    With K = U D U' the curvature and c = U'p, that of weight s is U c / (1 + s D).

    Parameters
    ----------
    places : ndarray of shape (N,)
    p : ndarray of shape (n_rows, N)
    df : float, optional
        Trace of the smoother, the same s for all rows; default: each row's own s by
        generalised cross-validation.

    Returns
    -------
    ndarray of shape (n_rows, N)
    """
    unit = (places - places[0]) / (places[-1] - places[0])
    values, vectors = np.linalg.eigh(curvature_matrix(unit))
    # Lines have none.
    values = np.maximum(values, 0.0)
    values[:2] = 0.0
    # Not products of matrices: in these a row's last bits depend on how many there are,
    # and what is the best smoothing of a row may turn on them.
    c = np.einsum("ik,kj->ij", p, vectors)
    if df is None:
        weights = _cross_validate(values, c)
    else:
        weights = np.full(len(p), _weight_of(values, df))
    shrunk = c / (1.0 + weights[:, None] * values)
    return np.asarray(np.einsum("ik,jk->ij", shrunk, vectors))


def _weight_of(values: Float64Array, df: float) -> float:
    """Return the weight of the curvature that leaves so many degrees of freedom."""
    curved = values[2:]
    if df >= len(values):
        return 0.0

    def excess(log: float) -> float:
        return float(2.0 + (1.0 / (1.0 + np.exp(log) * curved)).sum() - df)

    # From the least to the greatest smoothing that a float can tell from none and all.
    low, high = np.log([1e-13 / curved[-1], 1e13 / curved[0]])
    if excess(high) >= 0.0:
        return float(np.exp(high))
    return float(np.exp(brentq(excess, low, high, xtol=1e-12)))


def _cross_validate(values: Float64Array, c: Float64Array) -> Float64Array:
    """Return each row's weight of the curvature by generalised cross-validation.

    With f = s D / (1 + s D), GCV(s) = |f c|^2 / (sum f)^2 (Craven & Wahba 1979). For
    all rows at once s is looked for on a grid, and then between the neighbours of the
    best by two finer ones.
    """
    # From next to no smoothing of anything to next to a straight line.
    curved, squares = values[2:], c * c
    span = np.log([1e-3 / curved[-1], 1e3 / curved[0]])
    low, high = np.full(len(c), span[0]), np.full(len(c), span[1])
    for _ in range(3):
        share = np.linspace(0.0, 1.0, _GCV_POINTS)
        logs = low[:, None] + (high - low)[:, None] * share
        scores = np.empty(logs.shape)
        for out, weight in zip(scores.T, np.exp(logs.T), strict=True):
            f = weight[:, None] * values
            f /= 1.0 + f
            out[:] = (f * f * squares).sum(axis=1) / f.sum(axis=1) ** 2
        # The first of equals: of three points all weights are, but for rounding.
        best = (scores <= _TIED * scores.min(axis=1, keepdims=True)).argmax(axis=1)
        rows = np.arange(len(c))
        low = logs[rows, np.maximum(best - 1, 0)]
        high = logs[rows, np.minimum(best + 1, _GCV_POINTS - 1)]
    return np.asarray(np.exp(logs[rows, best]))


def curvature_matrix(t: Float64Array) -> Float64Array:
    """Return K with z'Kz = int g''^2 for the natural spline g through z at t."""
    h = np.diff(t)
    # Green & Silverman (1994), eqs. 2.1 and 2.2: K = Q R^-1 Q', where Q' takes second
    # differences of z per step, R holds the integrals of products of the hats that g''
    # is made of.
    chords = np.diff(np.eye(len(t)), axis=0) / h[:, None]
    q = np.ascontiguousarray(np.diff(chords, axis=0).T)
    beside = np.diag(h[1:-1] / 6.0, 1)
    r = np.diag((h[:-1] + h[1:]) / 3.0) + beside + beside.T
    return np.asarray(q @ np.linalg.solve(r, q.T), dtype=np.float64)
