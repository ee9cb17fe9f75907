"""`QuantileLaw`: a smooth quantile curve per row, through quantiles at given levels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.special import ndtr

from calibration._kernels._jit import for_kernels
from calibration.typing import Float64Array
from localexpert._kernels.normal import LOG_SQRT_TWO_PI
from localexpert._kernels.quantile_curve import Curves, curve_scores, curve_values
from localexpert._validation import check_array, check_bounds, check_increasing
from localexpert.curves.chords import STEEPEST_GIVEN, chords_beside
from localexpert.laws.law import freeze_fields
from localexpert.laws.scanned import ScannedLaw

# How far in z the panels of integrals go, their greatest width, and their nodes.
_OUTER, _WIDEST, _N_NODES = 12.0, 0.5, 5
_NODES, _SHARES = np.polynomial.legendre.leggauss(_N_NODES)
_NODES, _SHARES = 0.5 * (1.0 + _NODES), 0.5 * _SHARES
# Slopes of a curve through points, as multiples of the lesser chord beside: between
# such the cubic rises by more than a third of its chord everywhere.
LEAST_SLOPE, MOST_SLOPE = 0.3, 2.1
# At the ends, where tails go on from.
_LEAST_END = 0.5
# As shares of the mean slope: below which a chord at an end is nearly flat, and the
# least slope of a tail beyond one that is.
_FLAT, _LEAST_TAIL = 0.3, 0.25


class _Panels(NamedTuple):
    """Panels in z that all rows share: borders (p + 1,), and at nodes (5 p,) z, dP."""

    borders: Float64Array
    z: Float64Array
    shares: Float64Array


@dataclass(frozen=True, eq=False, repr=False)
class QuantileLaw(ScannedLaw):
    r"""Y = Q_i(Z) for a standard normal Z and an increasing curve Q_i.

    Q_i is a cubic Hermite curve between the knots. Beyond them it is straight, a normal
    tail, and towards a finite bound b exponential in z, a log-normal tail, so that b is
    never reached. The density is phi(z) / Q'(z), continuous but where a tail has
    another slope than the curve that it goes on from.

    Parameters
    ----------
    knots : array-like of shape (K,)
        Strictly increasing normal scores of levels, K >= 2.
    values : array-like of shape (n, K)
        Quantiles at Phi(knots), strictly increasing along a row, within the bounds.
    slopes : array-like of shape (n, K)
        Slopes dQ/dz at the knots, positive, at most 3 times the slopes of the chords
        beside them (Fritsch & Carlson, 1980).
    tails : array-like of shape (n, 2)
        Slopes at which the tails begin, positive.
    bounds : (float, float)
        Ends of the support.

    Notes
    -----
    CDF, density and quantiles are exact. Integrals are Gauss-Legendre sums over z, to
    12 deviations: of moments and the CRPS to about 1e-12 of the spread.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.laws.quantile_law import QuantileLaw
    >>> law = QuantileLaw.through([-1.0, 0.0, 1.0], [[8.0, 10.0, 12.0]])
    >>> law.cdf(np.array([[10.0, 12.0]])).round(4)
    array([[0.5   , 0.8413]])
    >>> law.moments().round(6)  # a normal law
    array([[10.,  4.,  0., 48.]])
    """

    knots: Float64Array
    values: Float64Array
    slopes: Float64Array
    tails: Float64Array
    bounds: tuple[float, float] = (-np.inf, np.inf)

    def __post_init__(self) -> None:
        knots = check_array(self.knots, "knots", (None,))
        check_increasing(knots, "knots")
        if len(knots) < 2:
            msg = f"`knots` must be two or more, got {len(knots)}."
            raise ValueError(msg)
        values = check_array(self.values, "values", (None, len(knots)))
        slopes = check_array(self.slopes, "slopes", values.shape)
        tails = check_array(self.tails, "tails", (len(values), 2))
        bounds = check_bounds(self.bounds)
        _check_curves(knots, values, slopes, bounds)
        if (tails <= 0.0).any():
            i = int(np.argmax((tails <= 0.0).any(axis=1)))
            msg = f"`tails` must be positive, got {tails[i].min():g} in row {i}."
            raise ValueError(msg)
        freeze_fields(self, knots=knots, values=values, slopes=slopes, tails=tails)
        object.__setattr__(self, "bounds", bounds)

    @classmethod
    def through(
        cls,
        knots: Float64Array,
        values: Float64Array,
        bounds: tuple[float, float] = (-np.inf, np.inf),
    ) -> QuantileLaw:
        """Return the law whose curves are the natural cubic splines through points.

        Where the spline falls or is nearly flat or steep its slopes are those nearest
        to it between 0.3 (0.5 at the ends) and 2.1 times the lesser slope of the chords
        beside. Tails
        have the slopes of the curve's ends; where its last chord there is below 0.3
        of the mean slope, up to a quarter of that.

        Parameters
        ----------
        knots : array-like of shape (K,)
        values : array-like of shape (n, K)
        bounds : (float, float)

        Returns
        -------
        QuantileLaw
        """
        x = check_array(knots, "knots", (None,))
        y = check_array(values, "values", (None, len(x)))
        beside = chords_beside(x, y)
        spline = CubicSpline(x, np.eye(len(x)), bc_type="natural")
        # Not a product of matrices, whose rounding depends on the other rows.
        slopes = np.einsum("ik,jk->ij", y - y[:, :1], spline(x, 1))
        least = np.full(len(x), LEAST_SLOPE)
        least[[0, -1]] = _LEAST_END
        slopes = np.clip(slopes, least * beside, MOST_SLOPE * beside)
        # Two quantiles at an end that are all but equal say nothing of what is beyond.
        mean = (y[:, -1:] - y[:, :1]) / (x[-1] - x[0])
        flat = np.maximum(1.0 - beside[:, [0, -1]] / (_FLAT * mean), 0.0)
        tails = np.maximum(slopes[:, [0, -1]], _LEAST_TAIL * flat * mean)
        return cls(x, y, slopes, tails, bounds)

    def __len__(self) -> int:
        return len(self.values)

    def __reduce__(self) -> tuple[type[QuantileLaw], tuple[Any, ...]]:
        curves = self.knots, self.values, self.slopes, self.tails
        return type(self), (*curves, self.bounds)

    @property
    def support(self) -> tuple[float, float]:
        """The bounds."""
        return self.bounds

    def is_like(self, other: object) -> bool:
        """Say whether rows of another law could be rows of this one.

        Parameters
        ----------
        other : object

        Returns
        -------
        bool
        """
        return (
            isinstance(other, QuantileLaw)
            and np.array_equal(other.knots, self.knots)
            and other.bounds == self.bounds
        )

    def take(self, rows: slice | NDArray[Any]) -> QuantileLaw:
        curves = self.values[rows], self.slopes[rows], self.tails[rows]
        return QuantileLaw(self.knots, *curves, self.bounds)

    def _curve(self, scores: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return Q and log Q' at scores (n, k)."""
        return curve_values(*self._fixed, for_kernels(scores))

    def _scores(self, y: Float64Array) -> Float64Array:
        """Return Phi^-1(F(y)), y (n, k)."""
        return curve_scores(*self._fixed, for_kernels(y))

    def scores_and_rates(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return z = Phi^-1(F(y)) and dz/dy, which is 0 where z is infinite.

        Parameters
        ----------
        y : ndarray of shape (n, k)

        Returns
        -------
        z, rates : ndarrays of shape (n, k)
        """
        z = self._scores(y)
        inside = np.isfinite(z)
        log_slopes = self._curve(np.where(inside, z, 0.0))[1]
        with np.errstate(over="ignore"):
            return z, np.where(inside, np.exp(-log_slopes), 0.0)

    @cached_property
    def _fixed(self) -> Curves:
        return (
            for_kernels(self.knots),
            for_kernels(self.values),
            for_kernels(self.slopes),
            for_kernels(self.tails),
            for_kernels(np.array(self.bounds)),
        )

    def cdf(self, y: Float64Array) -> Float64Array:
        return np.asarray(ndtr(self._scores(y)))

    def sf(self, y: Float64Array) -> Float64Array:
        return np.asarray(ndtr(-self._scores(y)))

    def logpdf(self, y: Float64Array) -> Float64Array:
        z = self._scores(y)
        # Infinitely far out there is no density; nor slopes to speak of.
        inside = np.isfinite(z)
        at = np.where(inside, z, 0.0)
        with np.errstate(over="ignore"):
            log_density = -0.5 * at**2 - LOG_SQRT_TWO_PI - self._curve(at)[1]
        return np.where(inside, log_density, -np.inf)

    def ppf_scores(self, scores: Float64Array) -> Float64Array:
        return self._curve(scores)[0]

    @cached_property
    def _panels(self) -> _Panels:
        end = max(_OUTER, self.knots[-1] + 1.0, 1.0 - self.knots[0])
        grid = np.linspace(-end, end, 2 * int(np.ceil(end / _WIDEST)) + 1)
        borders = np.unique(np.concatenate([self.knots, grid]))
        width = np.diff(borders)[:, None]
        z = borders[:-1, None] + width * _NODES
        shares = width * _SHARES * _normal_density(z)
        shares /= shares.sum()
        return _Panels(borders, z.ravel(), shares.ravel())

    def nodes(self) -> tuple[Float64Array, Float64Array]:
        shape = len(self), len(self._panels.z)
        y, _ = self._curve(np.broadcast_to(self._panels.z, shape))
        return y, np.broadcast_to(self._panels.shares, shape)

    def _scan(self) -> Float64Array:
        """Return y, probability, log density and CDF at the nodes, (4, n, m)."""
        z = np.broadcast_to(self._panels.z, (len(self), len(self._panels.z)))
        y, log_slopes = self._curve(z)
        log_density = -0.5 * z**2 - LOG_SQRT_TWO_PI - log_slopes
        masses = np.broadcast_to(self._panels.shares, z.shape)
        return np.stack([y, masses, log_density, ndtr(z)])

    def kinks(self) -> Float64Array:
        return self.values

    def moments(self) -> Float64Array:
        out = np.empty((len(self), 4))
        for rows, part in self._parts():
            y, masses = part.nodes()
            middle = part.values[:, [len(self.knots) // 2]]
            mean = ((y - middle) * masses).sum(axis=1, keepdims=True)
            away = y - middle - mean
            out[rows, :1] = middle + mean
            out[rows, 1:] = np.column_stack(
                [(away**k * masses).sum(axis=1) for k in (2, 3, 4)]
            )
        return out

    def crps(self, y: Float64Array) -> Float64Array:
        below, above = self.partial_means(y)
        # E|Y - Y'| / 2 is the integral of Q (2 p - 1) over levels p.
        spread = np.empty(len(self))
        weights = self._panels.shares * (2.0 * ndtr(self._panels.z) - 1.0)
        for rows, part in self._parts():
            away = part.nodes()[0] - part.values[:, [len(self.knots) // 2]]
            spread[rows] = (away * weights).sum(axis=1)
        return below + above - spread[:, None]

    def partial_means(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        below, above = np.empty(y.shape), np.empty(y.shape)
        for rows, part in self._parts():
            below[rows], above[rows] = part._partial_means(y[rows])
        return below, above

    def _partial_means(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return the integrals of (y - Q) phi below the score of y and of its negative.

        About a middle value of each row, lest digits are lost where that is large.
        """
        middle = self.values[:, [len(self.knots) // 2]]
        borders = self._panels.borders
        away = self.nodes()[0] - middle
        parts = (away * self._panels.shares).reshape(len(self), -1, _N_NODES).sum(2)
        none = np.zeros((len(self), 1))
        upto = np.hstack([none, np.cumsum(parts, axis=1)])
        beyond = np.hstack([np.cumsum(parts[:, ::-1], axis=1)[:, ::-1], none])
        z = self._scores(y)
        inside = np.clip(z, borders[0], borders[-1])
        panel = np.clip(np.searchsorted(borders, inside, "right"), 1, len(borders) - 1)
        left = self._between(borders[panel - 1], inside, middle)
        right = self._between(inside, borders[panel], middle)
        lower = np.take_along_axis(upto, panel - 1, axis=1) + left
        upper = np.take_along_axis(beyond, panel, axis=1) + right
        at = y - middle
        below, above = at * ndtr(z) - lower, upper - at * ndtr(-z)
        return np.maximum(below, 0.0), np.maximum(above, 0.0)

    def _between(
        self, start: Float64Array, end: Float64Array, middle: Float64Array
    ) -> Float64Array:
        """Return the integrals of (Q - middle) phi between scores (n, k)."""
        width = (end - start)[:, :, None]
        z = start[:, :, None] + width * _NODES
        away = self._curve(z.reshape(len(self), -1))[0] - middle
        inner = away.reshape(z.shape) * _normal_density(z)
        return np.asarray((width * _SHARES * inner).sum(axis=2))


def _normal_density(z: Float64Array) -> Float64Array:
    return np.asarray(np.exp(-0.5 * z**2 - LOG_SQRT_TWO_PI))


def _check_curves(
    knots: Float64Array,
    values: Float64Array,
    slopes: Float64Array,
    bounds: tuple[float, float],
) -> None:
    """Refuse curves that do not increase, or that leave the bounds."""
    falls = np.argwhere(np.diff(values, axis=1) <= 0.0)
    if len(falls):
        i, k = falls[0]
        msg = (
            "`values` must increase strictly along a row, "
            f"got {values[i, k]:g} before {values[i, k + 1]:g} in row {i}."
        )
        raise ValueError(msg)
    outside = np.argwhere((values <= bounds[0]) | (values >= bounds[1]))
    if len(outside):
        i, k = outside[0]
        msg = f"`values` must lie within {bounds}, got {values[i, k]:g} in row {i}."
        raise ValueError(msg)
    steepest = STEEPEST_GIVEN * chords_beside(knots, values)
    wrong = np.argwhere((slopes <= 0.0) | (slopes > steepest))
    if len(wrong):
        i, k = wrong[0]
        msg = (
            "`slopes` must be positive and at most 3 times the chords beside, "
            f"got {slopes[i, k]:g} in row {i} at knot {k}."
        )
        raise ValueError(msg)
