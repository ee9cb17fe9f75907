"""From probabilities at thresholds to a smooth increasing curve in probit space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from scipy.interpolate import PchipInterpolator, make_smoothing_spline
from scipy.special import ndtr, ndtri

from calibration._kernels.types import Float64Array
from localexpert._kernels.monotone import increase_rows

# No probability is taken at its word beyond this, however many rows stand behind it.
LOOSEST_CLIP = 1e-3
# Least slope of g: a forecast never puts more than 1 / this of the marginal spread
# between two thresholds for nothing.
LEAST_SLOPE = 0.05
# Beyond the thresholds the slope continues halfway between the row's own and 1, the
# marginal's, within these bounds. The caller raises the lower one where the marginal's
# tail is heavy, so that four moments stay finite (`BaseCDF.least_slopes`).
TAIL_PULL = 0.5
LEAST_TAIL_SLOPE, MOST_TAIL_SLOPE = 0.5, 4.0
# The first and last piece of the curve, in probits, where the slope changes over.
TAIL_STEP = 0.5


@dataclass(frozen=True)
class Curves:
    """One increasing curve g per row over common knots in t.

    Parameters
    ----------
    knots : ndarray of shape (k,)
    values, slopes : ndarrays of shape (n, k)
        Of a cubic Hermite spline that increases; beyond the ends it is linear.
    """

    knots: Float64Array
    values: Float64Array
    slopes: Float64Array


class CurveBuilder(Protocol):
    """Turns probabilities (n, N) at thresholds t (N,) into curves."""

    def build(
        self,
        probabilities: Float64Array,
        t: Float64Array,
        n: float,
        least_slopes: tuple[float, float] = (0.0, 0.0),
    ) -> Curves:
        """Return one curve per row; `n` is the number of training rows."""
        ...


@dataclass(frozen=True)
class ProbitSpline:
    """Smooth z = probit(p) against t, the probit of the marginal, row by row.

    A forecast that is the marginal shifted and scaled on the normal scale is a
    straight line here, which the penalty on curvature leaves alone.

    Parameters
    ----------
    smoothing : float
        Weight of the curvature; 0 interpolates, inf fits a straight line.

    Notes
    -----
    1. p is clipped to [c, 1 - c], c = max(1 / (2n + 2), .001).
    2. z minimises sum_k w_k (z_k - g(t_k))^2 + smoothing * int g''^2 over natural
       cubic splines; w_k = phi(t_k)^2 / (p_k (1 - p_k)), the precision of a probit at
       the marginal's own p_k, normalised to mean 1. The minimiser is linear in z: one
       matrix serves all rows (Green & Silverman 1994, section 2.3).
    3. A linear smoother does not keep order: the result is projected on curves with
       slope >= .05.
    4. Slopes at knots by Fritsch & Carlson's harmonic mean keep the Hermite spline
       increasing; one knot on either side leads over to the tail's slope.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import ndtr, ndtri
    >>> from localexpert.spline import ProbitSpline
    >>> t = ndtri([0.1, 0.3, 0.5, 0.7, 0.9])
    >>> curves = ProbitSpline(0.1).build(ndtr(2 * t - 0.5)[None, :], t, 10_000)
    >>> np.allclose(curves.values[0, 1:-1], 2 * t - 0.5)
    True
    """

    smoothing: float = 0.1

    def build(
        self,
        probabilities: Float64Array,
        t: Float64Array,
        n: float,
        least_slopes: tuple[float, float] = (0.0, 0.0),
    ) -> Curves:
        """Return one curve per row.

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
        Curves
        """
        weights = probit_precision(t)
        z = ndtri(increase_probabilities(probabilities, n))
        if len(t) > 1:
            z = z @ smoother_matrix(t, weights, self.smoothing).T
        return _finish(z, t, weights, least_slopes)


@dataclass(frozen=True)
class RawSpline:
    """Interpolate or smooth the probabilities themselves (the talk's method).

    Parameters
    ----------
    method : {"pchip", "smoothing_spline"}
        "pchip": monotone cubic interpolation. "smoothing_spline": a cubic smoothing
        spline of p against t with the smoothing chosen by generalised cross-validation
        per row, then made increasing.
    points_per_piece : int
        The curve is tabulated at this many points between thresholds.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import ndtr, ndtri
    >>> from localexpert.spline import RawSpline
    >>> t = ndtri([0.1, 0.3, 0.5, 0.7, 0.9])
    >>> RawSpline("pchip").build(ndtr(t)[None, :], t, 10_000).values.shape
    (1, 19)
    """

    method: Literal["pchip", "smoothing_spline"] = "pchip"
    points_per_piece: int = 4

    def build(
        self,
        probabilities: Float64Array,
        t: Float64Array,
        n: float,
        least_slopes: tuple[float, float] = (0.0, 0.0),
    ) -> Curves:
        """Return one curve per row.

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
        Curves
        """
        p = increase_probabilities(probabilities, n)
        if len(t) < 2:
            return _finish(ndtri(p), t, np.ones(len(t)), least_slopes)
        share = np.arange(self.points_per_piece) / self.points_per_piece
        fine = np.append((t[:-1, None] + np.diff(t)[:, None] * share).ravel(), t[-1])
        # scipy's smoothing spline needs five points.
        if self.method == "smoothing_spline" and len(t) >= 5:
            dense = make_smoothing_spline(t, p, axis=1)(fine)
        else:
            dense = PchipInterpolator(t, p, axis=1)(fine)
        dense = increase_probabilities(dense, n)
        return _finish(ndtri(dense), fine, np.ones(len(fine)), least_slopes)


def clip_bound(n: float) -> float:
    """Return the least probability that `n` rows can speak for."""
    return max(0.5 / (n + 1.0), LOOSEST_CLIP)


def increase_probabilities(p: Float64Array, n: float) -> Float64Array:
    """Clip p (n_rows, k) and make its rows nondecreasing by exact projection."""
    bound = clip_bound(n)
    clipped = np.ascontiguousarray(np.clip(p, bound, 1.0 - bound))
    k = p.shape[1]
    return increase_rows(clipped, np.ones(k), np.zeros(k - 1))


def probit_precision(t: Float64Array) -> Float64Array:
    """Return the relative precision of probits at marginal probits t, mean 1."""
    p = ndtr(t)
    density = np.exp(-0.5 * t * t)
    precision = density**2 / np.maximum(p * (1.0 - p), 1e-12)
    weights = np.maximum(precision, 1e-3 * precision.max())
    out: Float64Array = np.asarray(weights / weights.mean(), dtype=np.float64)
    return out


def smoother_matrix(
    t: Float64Array, weights: Float64Array, smoothing: float
) -> Float64Array:
    """Return S with S z the values at t of the natural smoothing spline of z.

    S = (W + smoothing K)^-1 W with K = Q R^-1 Q' (Green & Silverman 1994, eq. 2.4).
    An infinite smoothing gives weighted linear regression.
    """
    k = len(t)
    if smoothing == 0.0 or k < 3:
        return np.eye(k)
    if np.isinf(smoothing):
        line = np.column_stack([np.ones(k), t])
        gram = line.T @ (weights[:, None] * line)
        out: Float64Array = line @ np.linalg.solve(gram, line.T * weights)
        return out
    h = np.diff(t)
    q = np.zeros((k, k - 2))
    r = np.zeros((k - 2, k - 2))
    for j in range(k - 2):
        q[j, j] = 1.0 / h[j]
        q[j + 1, j] = -1.0 / h[j] - 1.0 / h[j + 1]
        q[j + 2, j] = 1.0 / h[j + 1]
        r[j, j] = (h[j] + h[j + 1]) / 3.0
        if j + 1 < k - 2:
            r[j, j + 1] = r[j + 1, j] = h[j + 1] / 6.0
    penalty = q @ np.linalg.solve(r, q.T)
    system = np.diag(weights) + smoothing * penalty
    return np.asarray(np.linalg.solve(system, np.diag(weights)), dtype=np.float64)


def _finish(
    z: Float64Array,
    t: Float64Array,
    weights: Float64Array,
    least_slopes: tuple[float, float],
) -> Curves:
    """Make z increase, lead over to the tails, and set slopes that keep the order."""
    z = increase_rows(np.ascontiguousarray(z), weights, LEAST_SLOPE * np.diff(t))
    low = np.maximum(_tail_slope(z, t, first=True), least_slopes[0])
    high = np.maximum(_tail_slope(z, t, first=False), least_slopes[1])
    knots = np.concatenate([[t[0] - TAIL_STEP], t, [t[-1] + TAIL_STEP]])
    values = np.column_stack(
        [z[:, 0] - TAIL_STEP * low, z, z[:, -1] + TAIL_STEP * high]
    )
    slopes = _monotone_slopes(knots, values)
    slopes[:, 0], slopes[:, -1] = low, high
    return Curves(knots, values, slopes)


def _tail_slope(z: Float64Array, t: Float64Array, *, first: bool) -> Float64Array:
    """Return each row's slope beyond an end: pulled towards 1 and bounded.

    The row's own slope is taken over about one probit, for a single step is noisy.
    """
    if len(t) < 2:
        return np.ones(len(z))
    if first:
        inner = min(int(np.searchsorted(t, t[0] + 1.0)), len(t) - 1)
        own = (z[:, inner] - z[:, 0]) / (t[inner] - t[0])
    else:
        inner = max(int(np.searchsorted(t, t[-1] - 1.0, side="right")) - 1, 0)
        own = (z[:, -1] - z[:, inner]) / (t[-1] - t[inner])
    pulled = (1.0 - TAIL_PULL) * own + TAIL_PULL
    out: Float64Array = np.clip(pulled, LEAST_TAIL_SLOPE, MOST_TAIL_SLOPE)
    return out


def _monotone_slopes(knots: Float64Array, values: Float64Array) -> Float64Array:
    """Slopes (n, k) at knots: weighted harmonic means of the neighbouring secants.

    Fritsch & Butland (1984); the secants are positive, so the Hermite spline with
    these slopes increases. The end slopes are left to the caller.
    """
    h = np.diff(knots)
    secants = np.diff(values, axis=1) / h
    w1, w2 = 2.0 * h[1:] + h[:-1], h[1:] + 2.0 * h[:-1]
    slopes = np.empty_like(values)
    slopes[:, 1:-1] = (w1 + w2) / (w1 / secants[:, :-1] + w2 / secants[:, 1:])
    return slopes
