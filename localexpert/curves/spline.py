"""From probabilities at thresholds to a smooth increasing curve in probit space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.interpolate import CubicSpline, PchipInterpolator
from scipy.special import ndtr, ndtri

from calibration.typing import Float64Array
from localexpert._kernels.monotone import increase_rows
from localexpert.curves.ordered_spline import ordered_spline
from localexpert.law.level_map import LevelMap

# No probability is taken at its word beyond this, however many rows stand behind it.
LOOSEST_CLIP = 1e-3
# Least slope of g: a forecast never puts more than 1 / this of the marginal spread
# between two thresholds for nothing.
LEAST_SLOPE = 0.05
# Weights of the curvature that are compared at a time.
_GCV_POINTS = 25
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
    >>> from localexpert.curves.spline import RawSpline
    >>> t = ndtri([0.1, 0.3, 0.5, 0.7, 0.9])
    >>> RawSpline("pchip").build(ndtr(t)[None, :], t, 10_000).values.shape
    (1, 33)
    """

    method: Literal["pchip", "smoothing_spline"] = "pchip"
    points_per_piece: int = 4

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
        dense = increase_probabilities(probabilities, n)
        fine = t
        if len(t) > 1:
            share = np.arange(self.points_per_piece) / self.points_per_piece
            inner = t[:-1, None] + np.diff(t)[:, None] * share
            fine = np.append(inner.ravel(), t[-1])
            # A natural spline with a curvature to weigh needs three points at least.
            if self.method == "smoothing_spline" and len(t) > 2:
                smooth = smooth_rows(t, dense)
                dense = CubicSpline(t, smooth, axis=1, bc_type="natural")(fine)
            else:
                dense = PchipInterpolator(t, dense, axis=1)(fine)
            dense = increase_probabilities(dense, n)
        z = increase_rows(ndtri(dense), np.ones(len(fine)), LEAST_SLOPE * np.diff(fine))
        return ordered_spline(z, fine, 0.0, least_slopes)


# Turns probabilities (n, N) at thresholds t (N,) into curves.
CurveBuilder: TypeAlias = ProbitSpline | RawSpline


def clip_bound(n: float) -> float:
    """Return the least probability that `n` rows can speak for."""
    return max(0.5 / (n + 1.0), LOOSEST_CLIP)


def increase_probabilities(p: Float64Array, n: float) -> Float64Array:
    """Clip p (n_rows, k) and make its rows nondecreasing by exact projection."""
    bound = clip_bound(n)
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


def smooth_rows(t: Float64Array, p: Float64Array) -> Float64Array:
    """Return each row's smoothing spline at t, by generalised cross-validation.

    With K = U D U' and c = U'p the spline of weight s is U c / (1 + s D) and, with
    f = s D / (1 + s D), GCV(s) = |f c|^2 / (sum f)^2 (Craven & Wahba 1979). For all
    rows at once s is looked for on a grid, and then between the neighbours of the
    best by two finer ones.
    """
    values, vectors = np.linalg.eigh(curvature_matrix(t))
    values = np.maximum(values, 0.0)
    # Not products of matrices: in these a row's last bits depend on how many there are,
    # and what is the best smoothing of a row may turn on them.
    c = np.einsum("ik,kj->ij", p, vectors)
    squares = c * c
    # From next to no smoothing of anything to next to a straight line.
    curved = values[values > 1e-9 * values[-1]]
    span = np.log([1e-3 / curved[-1], 1e3 / curved[0]])
    low, high = np.full(len(p), span[0]), np.full(len(p), span[1])
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
        rows = np.arange(len(p))
        low = logs[rows, np.maximum(best - 1, 0)]
        high = logs[rows, np.minimum(best + 1, _GCV_POINTS - 1)]
    shrunk = c / (1.0 + np.exp(logs[rows, best])[:, None] * values)
    return np.asarray(np.einsum("ik,jk->ij", shrunk, vectors))


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
