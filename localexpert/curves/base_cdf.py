"""`BaseCDF`: the smooth marginal distribution in whose probits forecasts are drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BSpline
from scipy.special import ndtri

from calibration.typing import Float64Array
from localexpert._kernels.base_curve import BaseCurve, levels_at, points_at
from localexpert._kernels.normal import log_normal_cdf, normal_hazard
from localexpert._validation import check_array, check_increasing, check_number
from localexpert.curves.marginal import distinct_values, fit_tail, smooth_quantiles
from localexpert.data.ordinary import ordinary_range
from localexpert.law.chords import (
    STEEPEST_GIVEN,
    chords_beside,
    steepest_slopes,
)

# Levels of the curve between the tails, equally spaced in probit.
_N_LEVELS = 41

_CurveKernel: TypeAlias = Callable[
    [BaseCurve, Float64Array], tuple[Float64Array, Float64Array]
]


@dataclass(frozen=True, eq=False, repr=False)
class BaseCDF:
    """A smooth distribution B of a coordinate r, held as t(r) = Phi^-1(B(r)).

    In this coordinate a forecast that has the marginal's shape is a straight line.
    t increases strictly and has a continuous derivative, so B has a continuous
    positive density; it never saturates, however far out r lies.

    Build it with `fit`; the arrays are read-only.

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
    curve: BaseCurve = field(init=False)

    def __post_init__(self) -> None:
        points = check_array(self.points, "points", (None,))
        levels = check_array(self.levels, "levels", (len(points),))
        slopes = check_array(self.slopes, "slopes", (len(points),))
        check_increasing(points, "points")
        check_increasing(levels, "levels")
        if len(points) < 2 or not levels[0] < 0.0 < levels[-1]:
            msg = (
                "`levels` must be two or more values from below 0 to above 0, "
                f"got {levels!r}."
            )
            raise ValueError(msg)
        if (
            slopes.min() <= 0.0
            or (slopes > STEEPEST_GIVEN * chords_beside(points, levels)).any()
        ):
            msg = (
                "`slopes` must be positive and at most 3 times the slopes "
                f"of the chords beside them, got {slopes!r}."
            )
            raise ValueError(msg)
        shapes = check_array(self.shapes, "shapes", (2,))
        # Equal densities at the join: t'(r) normal_hazard(|t|) = 1 / scale.
        ends = np.abs(levels[[0, -1]])
        hazards = np.array([normal_hazard(end) for end in ends])
        shares = np.array([log_normal_cdf(-end) for end in ends])
        scales = 1.0 / (slopes[[0, -1]] * hazards)
        curve = BaseCurve(points, levels, slopes, scales, shapes, shares)
        for array in curve:
            array.setflags(write=False)
        for name in ("points", "levels", "slopes"):
            object.__setattr__(self, name, getattr(curve, name))
        object.__setattr__(self, "shapes", (float(shapes[0]), float(shapes[1])))
        object.__setattr__(self, "curve", curve)

    @classmethod
    def fit(
        cls,
        r: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        tail_share: float = 0.08,
        max_shape: float = 0.2,
    ) -> BaseCDF:
        """Fit the distribution of a sample of any kind, O(n log n).

        Parameters
        ----------
        r : array-like of shape (n,)
            Finite values, n >= 2; ties are allowed, and all may be equal.
        sample_weight : array-like of shape (n,), optional
            Non-negative numbers of repetitions.
        tail_share : float
            Share of the weight that each tail takes, in [0.001, 0.3].
        max_shape : float
            Greatest shape of a tail, in [-0.3, 1]; 0.2 keeps four moments finite, and
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
        tail_share = check_number(tail_share, "tail_share", 0.001, 0.3)
        max_shape = check_number(max_shape, "max_shape", -0.3, 1.0)
        values, weight = distinct_values(r, sample_weight)
        levels = -ndtri(tail_share) * np.linspace(-1.0, 1.0, _N_LEVELS)
        # The tails alone are told how far out the farthest values are.
        near = np.clip(values, *ordinary_range(values, weight))
        points, rates = smooth_quantiles(near, weight, levels)
        slopes = np.minimum(1.0 / rates, steepest_slopes(points, levels))
        hazard = normal_hazard(float(levels[-1]))
        lower, upper = values < points[0], values > points[-1]
        tails = [
            fit_tail(excess, part, 1.0 / (slope * hazard), max_shape)
            for excess, part, slope in (
                ((points[0] - values[lower])[::-1], weight[lower][::-1], slopes[0]),
                (values[upper] - points[-1], weight[upper], slopes[-1]),
            )
        ]
        ends = np.array([1.0 / (scale * hazard) for scale, _ in tails])
        slopes[[0, -1]] = np.minimum(ends, steepest_slopes(points, levels)[[0, -1]])
        shapes = tails[0][1], tails[1][1]
        return cls(*_bend_smoothly(points, levels, slopes[[0, -1]], shapes), shapes)

    def t(self, r: ArrayLike) -> Float64Array:
        """Return t(r) = Phi^-1(B(r)).

        Parameters
        ----------
        r : array-like of any shape

        Returns
        -------
        ndarray of the same shape
        """
        return self._map(levels_at, r, "r", 0)

    def derivative(self, r: ArrayLike) -> Float64Array:
        """Return dt/dr at r.

        Parameters
        ----------
        r : array-like of any shape

        Returns
        -------
        ndarray of the same shape
        """
        return self._map(levels_at, r, "r", 1)

    def inverse(self, t: ArrayLike) -> Float64Array:
        """Return the r with t(r) = t.

        Parameters
        ----------
        t : array-like of any shape

        Returns
        -------
        ndarray of the same shape
        """
        return self._map(points_at, t, "t", 0)

    def least_slopes(self, n_moments: int = 4) -> tuple[float, float]:
        """Return the least end slopes of a forecast in t that keep moments finite.

        The survival function of a forecast that ends as Phi(b t) falls as
        r^(-b^2 / shape), so it has finite moments below b^2 / shape.

        Parameters
        ----------
        n_moments : int

        Returns
        -------
        (float, float)
            For the lower and the upper end, with a margin of 5 %; 0 where the shape
            is not positive.
        """
        lower, upper = (
            1.05 * float(np.sqrt(n_moments * max(shape, 0.0))) for shape in self.shapes
        )
        return lower, upper

    def __repr__(self) -> str:
        return (
            f"BaseCDF(from {self.points[0]:.4g} to {self.points[-1]:.4g}, "
            f"shapes=({self.shapes[0]:.3g}, {self.shapes[1]:.3g}))"
        )

    def __reduce__(self) -> tuple[type[BaseCDF], tuple[object, ...]]:
        return type(self), (self.points, self.levels, self.slopes, self.shapes)

    def _map(
        self, kernel: _CurveKernel, values: ArrayLike, name: str, which: int
    ) -> Float64Array:
        array = np.asarray(values, dtype=np.float64)
        if np.isnan(array).any():
            msg = f"`{name}` must not be NaN, got NaN."
            raise ValueError(msg)
        out = kernel(self.curve, np.ascontiguousarray(array.ravel()))[which]
        return out.reshape(array.shape)[()]


def _bend_smoothly(
    points: Float64Array,
    levels: Float64Array,
    ends: Float64Array,
    shapes: tuple[float, float],
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return points, levels and slopes of a curve with two continuous derivatives.

    The coefficients of cubic B-splines with these knots are levels of the broken line
    at the places that the B-splines stand for, so they increase and so does the curve
    (Schoenberg's variation diminishing spline). At either end three of them are what
    the level, its slope and the second derivative of the tail say.
    """
    knots = np.concatenate([points[[0] * 3], points, points[[-1] * 3]])
    places = (knots[1:-3] + knots[2:-2] + knots[3:-1]) / 3.0
    coefficients = np.interp(places, points, levels)
    # The upper end is the lower one of the mirrored curve.
    for side, sign in ((slice(None), 1.0), (slice(None, None, -1), -1.0)):
        lower = sign * coefficients[side]
        first, second = sign * np.diff(points[side][:3])
        slope, shape = (ends[0], shapes[0]) if sign > 0.0 else (ends[1], shapes[1])
        end = -float(lower[0])
        # With S the tail's share beyond x, (log S')' is -(1 + shape) / scale there; by
        # the chain rule that fixes t'' where t' and the densities are equal.
        bend = slope**2 * ((1.0 + shape) * normal_hazard(end) - end)
        lower[1] = lower[0] + slope * first / 3.0
        lower[2] = lower[1] + (first + second) * (slope / 3.0 + bend * first / 6.0)
        # Where the tail is far steeper than the curve beside it order goes first.
        steps = np.array([1.0, 2.0]) / 3.0 * (lower[3] - lower[0])
        lower[1:3] = np.minimum(lower[1:3], lower[0] + steps)
        coefficients[side] = sign * lower
    curve = BSpline(knots, coefficients, 3)
    return points, curve(points), curve(points, 1)
