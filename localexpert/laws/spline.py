"""`SplineLaw`: a smooth curve per row in the probit coordinates of a base CDF."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration._kernels._jit import for_kernels
from calibration.typing import Float64Array
from localexpert._kernels.base_curve import points_at
from localexpert._kernels.law_crps import spline_crps
from localexpert._kernels.law_mesh import spline_mesh
from localexpert._kernels.law_moments import (
    spline_entropy,
    spline_mode,
    spline_moments,
    spline_nodes,
    spline_scan,
)
from localexpert._kernels.law_panels import Panels
from localexpert._kernels.law_spline import (
    SplineRows,
    spline_cdf,
    spline_logpdf,
    spline_quantiles,
    truncate,
)
from localexpert._validation import (
    check_array,
    check_bounds,
    check_increasing,
    show,
)
from localexpert.curves.base_cdf import BaseCDF
from localexpert.curves.chords import STEEPEST_GIVEN, chords_beside
from localexpert.laws.law import Law
from localexpert.laws.scanned import densest_regions

# Nodes of a panel, between -1 and 1, and the widest panel in t.
_NODES, _SHARES = np.polynomial.legendre.leggauss(5)
_WIDEST = 0.7
# How far in t the shared panels go at least.
_OUTER = 8.4
# A few units in the last place.
_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False, repr=False)
class SplineLaw(Law):
    """F_i(y) = Phi(g_i(t(r))) with r = (y - center_i) / scale_i.

    t is the probit of the base CDF and g_i a cubic Hermite curve, non-decreasing,
    a straight line beyond its end knots. The density phi(g) g' t' / scale is
    continuous. Where g_i(t) = t the row is the base distribution itself.

    Parameters
    ----------
    center, scale : array-like of shape (n,)
        Frame of the rows; scales are positive.
    knots : array-like of shape (K,)
        Strictly increasing knots in t, K >= 1.
    values : array-like of shape (n, K)
        Values of g at the knots, not decreasing along a row.
    slopes : array-like of shape (n, K)
        Slopes dg/dt at the knots: positive at both ends, not negative elsewhere, at
        most 3 times the slopes of the chords beside them (Fritsch & Carlson, 1980).
    base : BaseCDF
    bounds : (float, float)
        Ends of the support: F becomes (F - F(low)) / (F(high) - F(low)).

    Notes
    -----
    Integrals are Gauss-Legendre sums on the panels between the knots, cut finer
    where a row is steep, and far enough into the tails for four moments. A row
    with end slope b on a base tail of positive shape has moments below b^2 / shape;
    those at or above 0.98 of that are said to be infinite, or nan where undefined.
    Where bounds leave a share m of a row, levels of quantiles are right to 1e-15 / m.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.curves.base_cdf import BaseCDF
    >>> from localexpert.laws.spline import SplineLaw
    >>> base = BaseCDF.fit(np.random.default_rng(0).normal(size=2000))
    >>> one = np.ones((2, 1))
    >>> law = SplineLaw([0.0, 5.0], [1.0, 2.0], [0.0], 0.0 * one, one, base)
    >>> law.cdf(np.array([[0.0], [5.0]])).round(1)
    array([[0.5],
           [0.5]])
    """

    center: Float64Array
    scale: Float64Array
    knots: Float64Array
    values: Float64Array
    slopes: Float64Array
    base: BaseCDF
    bounds: tuple[float, float] = (-np.inf, np.inf)
    rows: SplineRows = field(init=False)

    def __post_init__(self) -> None:
        center = check_array(self.center, "center", (None,))
        scale = check_array(self.scale, "scale", (len(center),))
        knots = check_array(self.knots, "knots", (None,))
        values = check_array(self.values, "values", (len(center), len(knots)))
        slopes = check_array(self.slopes, "slopes", (len(center), len(knots)))
        check_increasing(knots, "knots")
        bounds = check_bounds(self.bounds)
        _check_curves(scale, knots, values, slopes)
        curves = (center, scale, knots, values, slopes)
        rows = SplineRows(*curves, center, center, center, np.array(bounds))
        for array in rows:
            array.setflags(write=False)
        # What is not truncated needs nothing compiled for it.
        low, high = (np.full(len(center), end) for end in bounds)
        log_mass = np.zeros(len(center))
        if np.isfinite(bounds).any():
            low, high, log_mass = truncate(self.base.curve, rows)
        rows = rows._replace(low=low, high=high, log_mass=log_mass)
        if not np.isfinite(log_mass).all():
            i = int(np.argmin(np.isfinite(log_mass)))
            msg = (
                "`bounds` must hold some of the probability of every row, "
                f"got {bounds} and none of row {i}."
            )
            raise ValueError(msg)
        for array in (low, high, log_mass):
            array.setflags(write=False)
        for name in ("center", "scale", "knots", "values", "slopes"):
            object.__setattr__(self, name, getattr(rows, name))
        object.__setattr__(self, "bounds", bounds)
        object.__setattr__(self, "rows", rows)

    def __len__(self) -> int:
        return len(self.center)

    def __reduce__(self) -> tuple[type[SplineLaw], tuple[Any, ...]]:
        state = (self.center, self.scale, self.knots, self.values, self.slopes)
        return type(self), (*state, self.base, self.bounds)

    @property
    def support(self) -> tuple[float, float]:
        """The bounds."""
        return self.bounds

    @cached_property
    def panels(self) -> Panels:
        """Panels between the knots of the law and the levels of the base curve."""
        # Between these g and t(r) are polynomials, or smooth tails, and Gauss-Legendre
        # sums of few nodes are exact to rounding.
        inner = np.concatenate([self.knots, self.base.levels])
        end = max(_OUTER, inner.max(), -inner.min())
        grid = np.linspace(-end, end, 2 * int(np.ceil(end / _WIDEST)) + 1)
        borders = np.unique(np.concatenate([inner, grid]))
        nodes, weights = 0.5 * (1.0 + _NODES), 0.5 * _SHARES
        width = np.diff(borders)[:, None]
        # dr/dt is part of the weights: integrals over r become sums over t.
        t = borders[:-1, None] + width * nodes
        r, rates = points_at(self.base.curve, t.ravel())
        weighted = rates.reshape(t.shape) * weights * width
        return Panels(borders, t, r.reshape(t.shape), weighted, nodes, weights)

    def mesh(
        self, cuts: Float64Array, kinks: Float64Array, *, with_density: bool = False
    ) -> tuple[Float64Array, Float64Array]:
        """Return nodes to integrate a function of Y's CDF over y.

        Parameters
        ----------
        cuts : ndarray of shape (n, c)
            Values of y at which what is to be integrated jumps.
        kinks : ndarray of shape (n, d)
            Scores Phi^-1(F(y)) at which it has a kink.
        with_density : bool

        Returns
        -------
        mesh : ndarray of shape (3, n, m) or (4, n, m)
            Of each node y, its weight in integrals over y, Phi^-1(F(y)) and, if
            asked for, the log density.
        ends : ndarray of shape (n, 2)
            Where the mesh begins and ends.
        """
        law = self.base.curve, self.rows, self.panels
        mesh, ends = spline_mesh(
            *law, for_kernels(cuts), for_kernels(kinks), with_density
        )
        return mesh, ends

    def take(self, rows: slice | NDArray[Any]) -> SplineLaw:
        frame = self.center[rows], self.scale[rows]
        curves = self.knots, self.values[rows], self.slopes[rows]
        return SplineLaw(*frame, *curves, self.base, self.bounds)

    def cdf(self, y: Float64Array) -> Float64Array:
        return spline_cdf(self.base.curve, self.rows, for_kernels(y), False)

    def sf(self, y: Float64Array) -> Float64Array:
        return spline_cdf(self.base.curve, self.rows, for_kernels(y), True)

    def logpdf(self, y: Float64Array) -> Float64Array:
        return spline_logpdf(self.base.curve, self.rows, for_kernels(y))

    def ppf_scores(self, scores: Float64Array) -> Float64Array:
        return spline_quantiles(self.base.curve, self.rows, for_kernels(scores))

    def crps(self, y: Float64Array) -> Float64Array:
        return np.asarray(self._integrals(y)[0])

    def partial_means(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        _, below, above = self._integrals(y)
        return below, above

    def _integrals(self, y: Float64Array) -> Float64Array:
        """Return CRPS and both partial means, (3, n, k)."""
        law = self.base.curve, self.rows, self.panels
        return spline_crps(*law, for_kernels(y))

    def moments(self) -> Float64Array:
        return spline_moments(self.base.curve, self.rows, self.panels)

    def entropy(self) -> Float64Array:
        return spline_entropy(self.base.curve, self.rows, self.panels)

    def mode(self) -> Float64Array:
        return spline_mode(self.base.curve, self.rows, self.panels)

    def nodes(self) -> tuple[Float64Array, Float64Array]:
        return spline_nodes(self.base.curve, self.rows, self.panels)

    def kinks(self) -> Float64Array:
        inner, _ = points_at(self.base.curve, self.knots)
        inner = np.concatenate([inner, self.base.points])
        return self.center[:, None] + self.scale[:, None] * inner

    def densest_regions(self, coverage: Float64Array) -> list[Float64Array]:
        scan = spline_scan(self.base.curve, self.rows, self.panels)
        # With what lies beside the outermost nodes, much where a bound cuts it off.
        ends = self.ppf_scores(np.tile([-_OUTER, _OUTER], (len(self), 1)))
        # There it lies no further off than quantiles round.
        slack = _ROUNDING * self.rows.scale[:, None]
        cut = np.isclose(ends, self.bounds, rtol=_ROUNDING, atol=slack)
        ends = np.where(cut, self.bounds, ends)
        outer = ends, self.logpdf(ends), self.cdf(ends)
        y, log_density, cdf = (
            np.hstack([end[:, :1], part, end[:, 1:]])
            for end, part in zip(outer, scan, strict=True)
        )
        return densest_regions(y, log_density, cdf, coverage)


def _check_curves(
    scale: Float64Array,
    knots: Float64Array,
    values: Float64Array,
    slopes: Float64Array,
) -> None:
    """Refuse scales that are not positive and curves that are not increasing."""
    if len(scale) and scale.min() <= 0.0:
        i = int(np.argmin(scale))
        msg = f"`scale` must be positive, got {show(scale[i])} in row {i}."
        raise ValueError(msg)
    rises = np.diff(values, axis=1)
    falls = np.argwhere(rises < 0.0)
    if len(falls):
        i, k = falls[0]
        msg = (
            "`values` must not decrease along a row, "
            f"got {show(values[i, k])} before {show(values[i, k + 1])} in row {i}."
        )
        raise ValueError(msg)
    # Slopes within 3 chords on both sides keep a cubic from decreasing.
    steepest = STEEPEST_GIVEN * chords_beside(knots, values)
    _refuse_slopes(slopes, slopes > steepest, "be at most 3 times the chords beside")
    _refuse_slopes(slopes, slopes < 0.0, "not be negative")
    ends = np.zeros(slopes.shape, dtype=bool)
    ends[:, [0, -1]] = slopes[:, [0, -1]] <= 0.0
    _refuse_slopes(slopes, ends, "be positive at both ends")


def _refuse_slopes(slopes: Float64Array, wrong: NDArray[np.bool_], rule: str) -> None:
    if wrong.any():
        i, k = np.argwhere(wrong)[0]
        msg = f"`slopes` must {rule}, got {show(slopes[i, k])} in row {i} at knot {k}."
        raise ValueError(msg)
