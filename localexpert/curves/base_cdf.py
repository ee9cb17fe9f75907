"""`BaseCDF`, the smooth marginal distribution whose probits are the forecasts' axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BSpline
from scipy.optimize import minimize
from scipy.special import erfcx, log_ndtr, ndtr, ndtri, ndtri_exp

from calibration.typing import Float64Array
from localexpert.data.target_values import count_values, range_without_outliers
from localexpert.law.basis import REACH, STANDARD, steepest_slopes
from localexpert.law.curve import read_curve
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap

# At most this many points are smoothed to make the quantile curve.
_MAX_POINTS = 2048
# Width of the Gaussian window in probits at n = 1. It shrinks with n^(-1/5).
_WINDOW = 1.4
_LEAST_WINDOW = 0.06
# Least dr/dt as a share of the central spread, of the whole spread, and of max |r|.
_LEAST_CENTRAL, _LEAST_OVERALL, _LEAST_RELATIVE = 1e-3, 1e-6, 1e-12
# A tail is fitted to at most this many values.
_MAX_EXCESSES = 600
# Spreads of a tail's priors. The first is for its shape, around 0. The second is for
# log(scale), around that of the curve. It is narrow because a tail with another scale
# than the curve would put a kink in the density where the two meet.
_SHAPE_SPREAD, _SCALE_SPREAD = 0.15, 0.02
_LEAST_SHAPE = -0.5


def smooth_quantiles(
    values: Float64Array, weight: Float64Array, levels: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return the smoothed quantile curve and its slope dr/dt at the levels.

    Q is made of lines. The line between the scores t_j and t_{j+1} has the slope s_j.
    When a normal window of width h smooths Q, this line adds
    s_j (Phi((t_{j+1} - t) / h) - Phi((t_j - t) / h)) to the slope of the curve. So the
    slope is a mean of slopes and never negative. The value is its integral: Q(t_0) plus
    the kinks of Q times h psi((t - t_j) / h), psi' = Phi.
    """
    n = weight.sum()
    scores = ndtri((np.cumsum(weight) - 0.5 * weight) / n)
    overall = (weight * scores) @ values / max((weight * scores) @ scores, 1e-300)
    if len(values) > _MAX_POINTS:
        grid = np.linspace(scores[0], scores[-1], _MAX_POINTS)
        scores, values = grid, np.interp(grid, scores, values)
    # With the rate n^(-1/5) a smoothed curve has the least mean squared error.
    window = max(_WINDOW * max(n, 1.0) ** -0.2, _LEAST_WINDOW)
    # Q goes on with its slopes over the last 3/4 of a probit unit at both ends.
    ends = scores[[0, -1]]
    inner = np.clip(ends + np.array([0.75, -0.75]), *ends)
    run, rise = ends - inner, values[[0, -1]] - np.interp(inner, scores, values)
    first, last = np.divide(rise, run, out=np.zeros(2), where=run != 0.0)
    chords = np.concatenate([[first], np.diff(values) / np.diff(scores), [last]])
    gaps = (levels[:, None] - scores) / window
    below = ndtr(gaps)
    rates = chords[0] + below @ np.diff(chords)
    density = np.exp(-0.5 * gaps**2) / np.sqrt(2.0 * np.pi)
    kinks = (gaps * below + density) @ np.diff(chords)
    points = values[0] + chords[0] * (levels - scores[0]) + window * kinks
    # The floor turns ties into a narrow distribution, not into a jump.
    central = (points[-1] - points[0]) / (levels[-1] - levels[0])
    least = _LEAST_RELATIVE * (np.abs(values).max() or 1.0)
    floor = max(_LEAST_CENTRAL * central, _LEAST_OVERALL * overall, least, 1e-150)
    steps = np.maximum(np.diff(points), floor * np.diff(levels))
    path = np.concatenate([[0.0], np.cumsum(steps)])
    middle = len(levels) // 2
    return points[middle] + (path - path[middle]), np.maximum(rates, floor)


def fit_tail(
    excess: Float64Array, weight: Float64Array, scale: float, max_shape: float
) -> tuple[float, float]:
    """Return scale and shape of a tail by penalised likelihood.

    `scale` is the scale of the curve and the centre of the prior. It is kept if there
    is no excess.
    """
    start = min(0.0, max_shape)
    if len(excess) == 0:
        return scale, start
    v, weight = _condense(excess / scale, weight)
    n = weight.sum()

    def loss(theta: Float64Array) -> float:
        log_scale, shape = theta
        u = v * np.exp(-log_scale)
        if shape > 0.0:
            growth = np.log1p(shape * u)
            likelihood = weight @ (-growth - growth / shape)
        else:
            likelihood = weight @ (np.log1p(-shape * u) - u + 0.5 * shape * u * u)
        penalty = (log_scale / _SCALE_SPREAD) ** 2 + (shape / _SHAPE_SPREAD) ** 2
        return float((n * log_scale - likelihood + 0.5 * penalty) / max(n, 1.0))

    bounds = [(-5.0, 5.0), (_LEAST_SHAPE, max_shape)]
    found = minimize(loss, np.array([0.0, start]), method="L-BFGS-B", bounds=bounds)
    return scale * float(np.exp(found.x[0])), float(found.x[1])


def _condense(
    values: Float64Array, weight: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Replace groups of increasing values by their means. The largest stay single."""
    n = len(values)
    if n <= _MAX_EXCESSES:
        return values, weight
    ranks = np.unique(np.geomspace(1.0, n, _MAX_EXCESSES).astype(np.int64))
    starts = (n - ranks)[::-1]
    total = np.add.reduceat(weight, starts)
    return np.add.reduceat(weight * values, starts) / total, total


# The number of levels of the curve between the tails, equally spaced in probits, and
# the share of the weight in each tail.
_N_LEVELS, _TAIL_SHARE = 41, 0.08
# exp of a greater number overflows. A point beyond the second counts as infinite.
_MAX_EXPONENT, _GREATEST = 700.0, 1e150


@dataclass(frozen=True, eq=False, repr=False)
class BaseCDF:
    """A smooth distribution B of a coordinate r, stored as t(r) = Phi^-1(B(r)).

    In this coordinate a forecast with the shape of the marginal is a straight line.
    t increases strictly and has a continuous derivative, so B has a continuous
    positive density. t never saturates, however far out r lies.

    Build it with `fit`.

    Parameters
    ----------
    points : ndarray of shape (m,)
        Strictly increasing values of r, m >= 2.
    levels : ndarray of shape (m,)
        Levels t at the points, strictly increasing from below 0 to above 0.
    slopes : ndarray of shape (m,)
        Slopes dt/dr at the points. They are positive, and each is at most 3 times the
        slopes of the chords beside it. This keeps the cubic pieces increasing.
    shapes : (float, float)
        Shape of the lower and of the upper tail.

    Notes
    -----
    Beyond the end points the tails are exp(-H(x)) in the distance x from the end,

        H(x) = log(1 + shape x / scale) / shape        if shape > 0,
        H(x) = x / scale - shape (x / scale)^2 / 2     if shape <= 0,

    with the scale that makes the density continuous. The first is the generalised
    Pareto tail. With a negative shape it would end at a finite point, and t would be
    infinite there. So it is then replaced by its expansion to second order in x, which
    does not end. A normal tail is of this kind (shape about -0.2). An exponential tail
    has shape 0.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.curves.base_cdf import BaseCDF
    >>> base = BaseCDF.fit(np.random.default_rng(0).normal(size=5000))
    >>> np.round(base.t([-2.0, 0.0, 2.0]), 1)
    array([-2.,  0.,  2.])
    >>> bool(np.isfinite(base.t(1e6)))
    True
    >>> base.inverse(base.t(0.5)).round(10)
    np.float64(0.5)
    """

    points: Float64Array
    levels: Float64Array
    slopes: Float64Array
    shapes: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def fit(
        cls,
        r: Float64Array,
        sample_weight: Float64Array | None = None,
        *,
        max_shape: float = 0.2,
    ) -> BaseCDF:
        """Fit the distribution of a sample of any kind, O(n log n).

        Parameters
        ----------
        r : ndarray of shape (n,)
            Finite values; ties are allowed, and all may be equal.
        sample_weight : ndarray of shape (n,), optional
            Non-negative numbers of repetitions.
        max_shape : float
            Greatest shape of a tail. 0.2 keeps four moments finite. A number below 0
            keeps those of exp(r) finite too.

        Returns
        -------
        BaseCDF

        Notes
        -----
        The quantile curve Q(t) consists of straight lines through the order statistics
        at their normal scores. Between the tails a Gaussian window smooths it. The
        window has the width 1.4 n^(-1/5), where n is the sum of weights. The result
        increases too, and it equals Q where Q is straight, as it is for normal values.
        dQ/dt is kept above 1e-3 of its mean between the tails, 1e-6 of its mean
        everywhere and 1e-12 of the greatest size of r (1e-12 if all are 0). This is
        the floor on the spread of ties.

        A tail starts at its join with the curve. It maximises the likelihood of the
        values beyond the join, times two priors. One pulls the shape to 0 (normal,
        spread 0.15). The other holds the scale near that of the curve (log-normal,
        spread 0.02). So few values give an exponential tail.
        """
        weight = np.ones(len(r)) if sample_weight is None else sample_weight
        values, weight = count_values(r, weight)
        levels = -ndtri(_TAIL_SHARE) * np.linspace(-1.0, 1.0, _N_LEVELS)
        # Only the tails see how far out the farthest values are.
        near = np.clip(values, *range_without_outliers(values, weight))
        points, rates = smooth_quantiles(near, weight, levels)
        steepest = steepest_slopes(points, levels)
        hazard, tails = _normal_hazard(levels[-1]), []
        for end, sign in ((0, -1), (-1, 1)):
            scale = 1.0 / (min(1.0 / rates[end], steepest[end]) * hazard)
            # On both sides the excess increases outwards.
            excess, part = sign * (values - points[end])[::sign], weight[::sign]
            beyond = excess > 0.0
            scale, shape = fit_tail(excess[beyond], part[beyond], scale, max_shape)
            tails.append((min(1.0 / (scale * hazard), steepest[end]), shape))
        return cls(*_bend_smoothly(points, levels, tails), (tails[0][1], tails[1][1]))

    def t(self, r: ArrayLike) -> Float64Array:
        """Return t(r) = Phi^-1(B(r)), r of any shape."""
        return self._follow(r)[0]

    def derivative(self, r: ArrayLike) -> Float64Array:
        """Return dt/dr at r, of any shape."""
        return self._follow(r)[1]

    def inverse(self, t: ArrayLike) -> Float64Array:
        """Return the r with t(r) = t, of any shape."""
        levels = np.asarray(t, dtype=np.float64)
        r = self._between(levels, inverse=True)[0]
        for side, (sign, scale, shape, log_share) in self._tails().items():
            beyond = sign * (levels - self.levels[side]) > 0.0
            # Rounding at the end point must not give a point inside.
            h = np.clip(log_share - log_ndtr(-np.abs(levels)), 0.0, _GREATEST)
            if shape > 0.0:
                x = scale * np.expm1(np.minimum(shape * h, _MAX_EXPONENT)) / shape
            else:
                # This form of the root does not subtract numbers of similar size.
                x = scale * 2.0 * h / (1.0 + np.sqrt(1.0 - 2.0 * shape * h))
            away = self.points[side] + sign * np.where(np.isinf(levels), np.inf, x)
            r = np.where(beyond, away, r)
        return r[()]

    def _follow(self, r: ArrayLike) -> tuple[Float64Array, Float64Array]:
        """Return t(r) and its derivative."""
        points = np.asarray(r, dtype=np.float64)
        t, slope = self._between(points)
        for side, (sign, scale, shape, log_share) in self._tails().items():
            # Both tails are read as upper tails. The lower one has its signs reversed.
            x = np.minimum(sign * (points - self.points[side]), _GREATEST)
            beyond, v = x > 0.0, np.maximum(x, 0.0) / scale
            if shape > 0.0:
                # With log1p a small shape gives v, which is the exponential tail.
                hazard, rate = np.log1p(shape * v) / shape, 1.0 / (1.0 + shape * v)
            else:
                hazard, rate = v * (1.0 - 0.5 * shape * v), 1.0 - shape * v
            # Logarithms give a level even to a point a hundred deviations out.
            away = -ndtri_exp(log_share - hazard)
            t = np.where(beyond, sign * away, t)
            # S(r) = Phi(-t), so the hazard of S is that of the normal law times t'.
            slope = np.where(beyond, rate / scale / _normal_hazard(away), slope)
        endless = np.isinf(points)
        return np.where(endless, points, t)[()], np.where(endless, 0.0, slope)[()]

    def _between(
        self, x: Float64Array, *, inverse: bool = False
    ) -> tuple[Float64Array, Float64Array]:
        """Return the curve between the end points, or its inverse, of any shape."""
        curve = LevelMap(self.points, self.levels, self.slopes)
        parts = curve.follow(x.reshape(1, -1), inverse=inverse)
        return parts[0].reshape(x.shape), parts[1].reshape(x.shape)

    def _tails(self) -> dict[int, tuple[float, float, float, float]]:
        """Return, for both ends, the tail's sign, scale, shape and log of its share."""
        tails = {}
        for side, sign, shape in zip((0, -1), (-1.0, 1.0), self.shapes, strict=True):
            end = abs(self.levels[side])
            # Equal densities at the join: t'(r) normal_hazard(|t|) = 1 / scale.
            scale = 1.0 / (self.slopes[side] * _normal_hazard(end))
            tails[side] = sign, float(scale), shape, float(log_ndtr(-end))
        return tails

    def least_slopes(self) -> tuple[float, float]:
        """Return the least end slopes of a forecast in t that keep 4 moments finite.

        The survival function of a forecast that ends as Phi(b t) falls as
        r^(-b^2 / shape), so it has finite moments below b^2 / shape.

        Returns
        -------
        (float, float)
            For the lower and the upper end, with a margin of 5 %. It is 0 if the shape
            is not positive.
        """
        lower, upper = 2.1 * np.sqrt(np.maximum(self.shapes, 0.0))
        return float(lower), float(upper)


def law_of_curves(
    center: Float64Array,
    scale: Float64Array,
    curves: LevelMap,
    base: BaseCDF,
    *,
    ordered: bool = False,
) -> Law:
    """Return the laws with F_i(y) = Phi(g_i(t(r))), r = (y - center_i) / scale_i.

    t is the probit of the base CDF and g_i is a curve. If g_i(t) = t, the row's law is
    the base itself.

    Parameters
    ----------
    center, scale : ndarrays of shape (n,)
    curves : LevelMap
    base : BaseCDF
    ordered : bool
        Whether rows keep the order of their curves, see `read_curve`.

    Returns
    -------
    Law
        Without bounds.
    """
    t = curves.inverse(np.tile(STANDARD.greville, (len(center), 1)))
    y = center[:, None] + scale[:, None] * base.inverse(t)
    free = np.full(len(center), np.inf)
    ends = None
    if ordered:
        # All rows share one slope, because lines of different slopes cross.
        ends = scale[:, None] / base.derivative(base.inverse([-REACH, REACH]))
    y = np.maximum.accumulate(y, axis=1)
    curve = read_curve(y, -free, free, plain=ordered, slopes=ends)
    return Law.smooth(curve, ordered=ordered)


def _bend_smoothly(
    points: Float64Array, levels: Float64Array, tails: list[tuple[float, float]]
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return points, levels and slopes of a curve with two continuous derivatives.

    The curve is a cubic spline with these knots. Each B-spline stands for a place, and
    its coefficient is the level of the broken line there. So the coefficients increase,
    and so does the curve (Schoenberg's variation diminishing spline). At either end,
    three coefficients follow from the level, the slope and the second derivative of
    the tail. `tails` holds slopes and shapes.
    """
    knots = np.concatenate([points[[0] * 3], points, points[[-1] * 3]])
    places = (knots[1:-3] + knots[2:-2] + knots[3:-1]) / 3.0
    coefficients = np.interp(places, points, levels)
    # The upper end is the lower one of the mirrored curve.
    for sign, (slope, shape) in zip((1, -1), tails, strict=True):
        lower = sign * coefficients[::sign]
        first, second = sign * np.diff(points[::sign][:3])
        end = -float(lower[0])
        # Let S be the tail's share beyond x. At the join (log S')' is
        # -(1 + shape) / scale. With equal t' and equal densities, the chain rule then
        # fixes t''.
        bend = slope**2 * ((1.0 + shape) * _normal_hazard(end) - end)
        lower[1] = lower[0] + slope * first / 3.0
        lower[2] = lower[1] + (first + second) * (slope / 3.0 + bend * first / 6.0)
        # If the tail is far steeper than the curve beside it, keeping the order matters
        # more.
        steps = np.array([1.0, 2.0]) / 3.0 * (lower[3] - lower[0])
        lower[1:3] = np.minimum(lower[1:3], lower[0] + steps)
        coefficients[::sign] = sign * lower
    curve = BSpline(knots, coefficients, 3)
    return points, curve(points), curve(points, 1)


def _normal_hazard(z: Any) -> Any:
    """Return phi(z) / Phi(-z), the slope of -log Phi(-z)."""
    return np.sqrt(2.0 / np.pi) / erfcx(z * np.sqrt(0.5))
