"""`BaseCDF`: the smooth marginal distribution in whose probits forecasts are drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BSpline
from scipy.special import ndtri

from calibration._kernels._jit import for_kernels
from calibration.typing import Float64Array
from localexpert._kernels.base_curve import BaseCurve, follow_curve
from localexpert._kernels.normal import log_normal_cdf, normal_hazard
from localexpert.curves.marginal import fit_tail, smooth_quantiles
from localexpert.data.target_values import count_values, range_without_outliers
from localexpert.law.basis import REACH, STANDARD
from localexpert.law.chords import steepest_slopes
from localexpert.law.curve import read_curve
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap

# Levels of the curve between the tails, equally spaced in probit, and the share of the
# weight that each tail takes.
_N_LEVELS, _TAIL_SHARE = 41, 0.08


@dataclass(frozen=True, eq=False, repr=False)
class BaseCDF:
    """A smooth distribution B of a coordinate r, held as t(r) = Phi^-1(B(r)).

    In this coordinate a forecast that has the marginal's shape is a straight line.
    t increases strictly and has a continuous derivative, so B has a continuous
    positive density; it never saturates, however far out r lies.

    Build it with `fit`.

    Parameters
    ----------
    points : ndarray of shape (m,)
        Strictly increasing values of r, m >= 2.
    levels : ndarray of shape (m,)
        Levels t at the points, strictly increasing from below 0 to above 0.
    slopes : ndarray of shape (m,)
        Slopes dt/dr at the points, positive, each at most 3 times the slopes of the
        chords beside it (which keeps the cubic pieces increasing).
    shapes : (float, float)
        Shape of the lower and of the upper tail.

    Notes
    -----
    Beyond the end points the tails are exp(-H(x)) in the distance x from the end,

        H(x) = log(1 + shape x / scale) / shape        if shape > 0,
        H(x) = x / scale - shape (x / scale)^2 / 2     if shape <= 0,

    with the scale that makes the density continuous. The first is the generalised
    Pareto tail. One of negative shape would end at a finite point and make t infinite
    there, so it is replaced by its expansion to second order in x, which goes on: a
    normal tail is of this kind (shape about -0.2), an exponential one is shape 0.

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

    @property
    def curve(self) -> BaseCurve:
        """The curve as kernels take it."""
        # Equal densities at the join: t'(r) normal_hazard(|t|) = 1 / scale.
        ends = np.abs([self.levels[0], self.levels[-1]])
        hazards = np.array([normal_hazard(end) for end in ends])
        scales = 1.0 / (np.array([self.slopes[0], self.slopes[-1]]) * hazards)
        shares = [log_normal_cdf(-end) for end in ends]
        parts = self.points, self.levels, self.slopes, scales, self.shapes, shares
        return BaseCurve(*(for_kernels(np.asarray(part)) for part in parts))

    def __reduce__(self) -> tuple[type[BaseCDF], tuple[object, ...]]:
        # So files of models hold it, which may be older than this class is now.
        return type(self), (self.points, self.levels, self.slopes, self.shapes)

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
            Greatest shape of a tail; 0.2 keeps four moments finite, and
            one below 0 those of exp(r) too.

        Returns
        -------
        BaseCDF

        Notes
        -----
        Between the tails the quantile curve Q(t), straight lines through the order
        statistics at their normal scores, is smoothed by a Gaussian window of width
        1.4 n^(-1/5) (n the sum of weights): an increasing curve again, and Q itself
        where Q is straight, as it is for normal values. dQ/dt is kept above 1e-3 of
        its mean between the tails, 1e-6 of its mean everywhere and 1e-12 of the
        greatest size of r (1e-12 if all are 0): the floor on the spread of ties.

        A tail maximises the likelihood of the values beyond its join times priors
        that pull its shape to 0 (normal, spread 0.15) and hold its scale near the
        curve's (log-normal, spread 0.02), so few values give an exponential tail.
        """
        weight = np.ones(len(r)) if sample_weight is None else sample_weight
        values, weight = count_values(r, weight)
        levels = -ndtri(_TAIL_SHARE) * np.linspace(-1.0, 1.0, _N_LEVELS)
        # The tails alone are told how far out the farthest values are.
        near = np.clip(values, *range_without_outliers(values, weight))
        points, rates = smooth_quantiles(near, weight, levels)
        steepest = steepest_slopes(points, levels)
        hazard, tails = normal_hazard(float(levels[-1])), []
        for end, sign in ((0, -1), (-1, 1)):
            scale = 1.0 / (min(1.0 / rates[end], steepest[end]) * hazard)
            # Outwards on both sides.
            excess, part = sign * (values - points[end])[::sign], weight[::sign]
            beyond = excess > 0.0
            scale, shape = fit_tail(excess[beyond], part[beyond], scale, max_shape)
            tails.append((min(1.0 / (scale * hazard), steepest[end]), shape))
        return cls(*_bend_smoothly(points, levels, tails), (tails[0][1], tails[1][1]))

    def t(self, r: ArrayLike) -> Float64Array:
        """Return t(r) = Phi^-1(B(r)), r of any shape."""
        return self._follow(r, 0)

    def derivative(self, r: ArrayLike) -> Float64Array:
        """Return dt/dr at r, of any shape."""
        return self._follow(r, 1)

    def inverse(self, t: ArrayLike) -> Float64Array:
        """Return the r with t(r) = t, of any shape."""
        return self._follow(t, 0, inverse=True)

    def _follow(
        self, x: ArrayLike, which: int, *, inverse: bool = False
    ) -> Float64Array:
        array = np.asarray(x, dtype=np.float64)
        found = follow_curve(self.curve, for_kernels(array.ravel()), inverse=inverse)
        out: Float64Array = found[which].reshape(array.shape)
        return out[()]

    def least_slopes(self) -> tuple[float, float]:
        """Return the least end slopes of a forecast in t that keep 4 moments finite.

        The survival function of a forecast that ends as Phi(b t) falls as
        r^(-b^2 / shape), so it has finite moments below b^2 / shape.

        Returns
        -------
        (float, float)
            For the lower and the upper end, with a margin of 5 %; 0 where the shape
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

    t is the probit of the base CDF and g_i a curve. Where g_i(t) = t the row is the
    base itself.

    Parameters
    ----------
    center, scale : ndarrays of shape (n,)
    curves : LevelMap
    base : BaseCDF
    ordered : bool
        Whether rows whose curves are in order keep it: see `read_curve`.

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
        # One for all rows: lines of different slopes cross.
        ends = scale[:, None] / base.derivative(base.inverse([-REACH, REACH]))
    y = np.maximum.accumulate(y, axis=1)
    curve = read_curve(y, -free, free, plain=ordered, slopes=ends)
    return Law.smooth(curve, ordered=ordered)


def _bend_smoothly(
    points: Float64Array, levels: Float64Array, tails: list[tuple[float, float]]
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return points, levels and slopes of a curve with two continuous derivatives.

    The coefficients of cubic B-splines with these knots are levels of the broken line
    at the places that the B-splines stand for, so they increase and so does the curve
    (Schoenberg's variation diminishing spline). At either end three of them are what
    the level, its slope and the second derivative of the tail say; `tails` are slopes
    and shapes.
    """
    knots = np.concatenate([points[[0] * 3], points, points[[-1] * 3]])
    places = (knots[1:-3] + knots[2:-2] + knots[3:-1]) / 3.0
    coefficients = np.interp(places, points, levels)
    # The upper end is the lower one of the mirrored curve.
    for sign, (slope, shape) in zip((1, -1), tails, strict=True):
        lower = sign * coefficients[::sign]
        first, second = sign * np.diff(points[::sign][:3])
        end = -float(lower[0])
        # With S the tail's share beyond x, (log S')' is -(1 + shape) / scale there; by
        # the chain rule that fixes t'' where t' and the densities are equal.
        bend = slope**2 * ((1.0 + shape) * normal_hazard(end) - end)
        lower[1] = lower[0] + slope * first / 3.0
        lower[2] = lower[1] + (first + second) * (slope / 3.0 + bend * first / 6.0)
        # Where the tail is far steeper than the curve beside it order goes first.
        steps = np.array([1.0, 2.0]) / 3.0 * (lower[3] - lower[0])
        lower[1:3] = np.minimum(lower[1:3], lower[0] + steps)
        coefficients[::sign] = sign * lower
    curve = BSpline(knots, coefficients, 3)
    return points, curve(points), curve(points, 1)
