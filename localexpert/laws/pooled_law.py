"""`PooledLaw`: smooth laws joined with weights, on probabilities or on scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from calibration.typing import Float64Array
from localexpert._kernels.normal import LOG_SQRT_TWO_PI
from localexpert._validation import check_choice, check_probability_rows
from localexpert.laws.law import Law, log_or_minus_inf
from localexpert.laws.meshed import MeshedLaw
from localexpert.laws.quantile_mesh import levels_of, mix_moments
from localexpert.laws.score_map import (
    FURTHEST,
    ScoreMap,
    clip_scores,
    log_rate,
    scores_of,
)

# Steps of a search for quantiles: Newton needs about five, and there are 2^64 floats.
_NEWTON_STEPS, _HALVINGS = 24, 64
# Rounding of a score, the sum of those of all members.
_ROUNDING = 1e-15


@dataclass(frozen=True, eq=False, repr=False)
class PooledLaw(MeshedLaw):
    r"""Laws without jumps, joined with weights.

    Parameters
    ----------
    members : sequence of M laws
        Of n rows each, without jumps.
    weights : array-like of shape (M,) or (n, M)
        Not negative, of sum 1: the same for all rows, or each row's own.
    kind : {"linear", "probit"}
        F = sum_k w_k F_k, or F = Phi(sum_k w_k Phi^-1(F_k)).
    scores : ScoreMap, optional
        A map h of the pool's scores: its CDF is then Phi(h(Phi^-1(F))).

    Notes
    -----
    CDF and density are exact, quantiles are solved for to rounding. So are moments,
    partial means and nodes of a linear pool without a map, sums of the members' own,
    and its CRPS up to one integral,

    .. math:: \sum_k w_k CRPS_k - \int \left(\sum_k w_k F_k^2 - F^2\right) dy.

    The other integrals are Gauss-Legendre sums between quantiles of all members, and
    on parts of what lies between where the CDF moves much there, right to 1 %. A
    member with an infinite moment is taken to make that of any pool infinite.

    The linear pool of calibrated laws is too wide; the probit pool of laws that err
    alike is as sharp as they are (Gneiting & Ranjan, 2013).

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.curves.base_cdf import BaseCDF
    >>> from localexpert.laws.pooled_law import PooledLaw
    >>> from localexpert.laws.spline import SplineLaw
    >>> base = BaseCDF.fit(np.random.default_rng(0).normal(size=2000))
    >>> one = np.ones((1, 1))
    >>> low = SplineLaw([0.0], [1.0], [0.0], 0.0 * one, one, base)
    >>> high = SplineLaw([2.0], [1.0], [0.0], 0.0 * one, one, base)
    >>> linear = PooledLaw([low, high], [0.5, 0.5])
    >>> probit = PooledLaw([low, high], [0.5, 0.5], "probit")
    >>> linear.moments()[0, 1].round(1), probit.moments()[0, 1].round(1)
    (np.float64(2.0), np.float64(1.0))
    """

    members: Sequence[Law]
    weights: ArrayLike
    kind: Literal["linear", "probit"] = "linear"
    scores: ScoreMap | None = None
    w: Float64Array = field(init=False)

    def __post_init__(self) -> None:
        members = tuple(self.members)
        lengths = {len(law) for law in members}
        if len(lengths) != 1:
            msg = f"`members` must be laws of as many rows each, got {sorted(lengths)}."
            raise ValueError(msg)
        for law in members:
            if law.has_jumps:
                msg = f"`members` must have no jumps, got a {type(law).__name__}."
                raise TypeError(msg)
        check_choice(self.kind, "kind", ("linear", "probit"))
        rows = np.asarray(self.weights, dtype=np.float64)
        rows = np.broadcast_to(rows, (lengths.pop(), rows.shape[-1]))
        rows = check_probability_rows(rows, "weights", len(members))
        rows.setflags(write=False)
        object.__setattr__(self, "members", members)
        object.__setattr__(self, "w", rows)

    def __len__(self) -> int:
        return len(self.w)

    def __reduce__(self) -> tuple[type[PooledLaw], tuple[Any, ...]]:
        return type(self), (self.members, self.w, self.kind, self.scores)

    @property
    def support(self) -> tuple[float, float]:
        """Least and greatest value of any member's support."""
        lows, highs = zip(*(law.support for law in self.members), strict=True)
        return min(lows), max(highs)

    def take(self, rows: slice | NDArray[Any]) -> PooledLaw:
        scores = None if self.scores is None else self.scores.take(rows)
        members = [law.take(rows) for law in self.members]
        return PooledLaw(members, self.w[rows], self.kind, scores)

    def _bordering(self) -> Sequence[Law]:
        """Return the members."""
        return self.members

    @property
    def _is_sum(self) -> bool:
        """Whether the CDF is a sum of the members' with constant weights."""
        return self.kind == "linear" and self.scores is None

    def _sum(self, answers: Iterable[Float64Array]) -> Float64Array:
        """Return the weighted sum of the members' answers (n, k)."""
        out = np.zeros((len(self), 1))
        for weight, answer in zip(self.w.T, answers, strict=True):
            # A member without weight has no say, even where it says infinity.
            held = np.where(weight[:, None] > 0.0, answer, 0.0)
            out = out + weight[:, None] * held
        return out

    def _own_scores(self, y: Float64Array) -> Float64Array:
        """Return Phi^-1 of the pool's CDF before the map."""
        if self.kind == "linear":
            each = [levels_of(law, y) for law in self.members]
            below, above = (self._sum(side) for side in zip(*each, strict=True))
            return clip_scores(
                scores_of(np.minimum(below, 1.0), np.minimum(above, 1.0))
            )
        return self._sum(self._member_scores(y))

    def _member_scores(self, y: Float64Array) -> list[Float64Array]:
        # Cut off no nearer than the true ones, so that densities do not grow by it.
        return [clip_scores(scores_of(*levels_of(law, y))) for law in self.members]

    def _levels(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return CDF and survival function."""
        own = self._own_scores(y)
        # At the cut-off, up to rounding, all members say 0 or 1.
        sure = np.abs(own) >= FURTHEST - 1e-9
        own = np.where(sure, np.copysign(np.inf, own), own)
        if self.scores is not None:
            return self.scores.levels(own)
        return ndtr(own), ndtr(-own)

    def cdf(self, y: Float64Array) -> Float64Array:
        if self._is_sum:
            below = self._sum([law.cdf(y) for law in self.members])
            # Weights may sum to a little less or more than 1.
            return np.where(y >= self.support[1], 1.0, np.minimum(below, 1.0))
        return self._levels(y)[0]

    def sf(self, y: Float64Array) -> Float64Array:
        if self._is_sum:
            above = self._sum([law.sf(y) for law in self.members])
            return np.where(y <= self.support[0], 1.0, np.minimum(above, 1.0))
        return self._levels(y)[1]

    def logpdf(self, y: Float64Array) -> Float64Array:
        own, log_density = self._own_density(y)
        if self.scores is None:
            return log_density
        return log_density + log_rate(own, *self.scores.forward(own))

    def _own_density(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return scores and log density of the pool before the map."""
        logs = np.stack([law.logpdf(y) for law in self.members])
        weights = self.w.T[:, :, None]
        if self.kind == "linear":
            return self._own_scores(y), _log_sum(logs, weights)
        each = np.stack(self._member_scores(y))
        own = self._sum(each)
        # dZ/dy = sum_k w_k f_k / phi(z_k), and the density is phi(Z) dZ/dy.
        rates = logs + 0.5 * each**2
        # A score that is cut off moves no more, unless none does.
        moves = (np.abs(each) < FURTHEST) & (weights > 0.0)
        rates[~moves & moves.any(axis=0)] = -np.inf
        return own, _log_sum(rates, weights) - 0.5 * own**2

    def ppf_scores(self, scores: Float64Array) -> Float64Array:
        goal = scores if self.scores is None else self.scores.inverse(scores)
        each = np.stack([law.ppf_scores(goal) for law in self.members])
        held = self.w.T[:, :, None] > 0.0
        # Any pool's quantile lies between those of its members.
        low = np.where(held, each, np.inf).min(axis=0)
        high = np.where(held, each, -np.inf).max(axis=0)
        start = np.clip(self._sum(list(each)), low, high)
        # Levels 0 and 1 have their answer; any bracket will do there.
        inner = np.isfinite(low) & np.isfinite(high)
        aim, a, b, y = (np.where(inner, x, 0.0) for x in (goal, low, high, start))
        rows = np.arange(len(self))
        columns = np.tile(np.arange(y.shape[1]), (len(y), 1))
        found = _Search(self, rows, columns, aim, a, b, y, inner).solve()
        return np.where(inner, found, np.where(goal < 0.0, low, high))

    def crps(self, y: Float64Array) -> Float64Array:
        if self._is_sum:
            # Each F_k misses as F does plus as it differs from F; the cross terms sum
            # to 0, which leaves the members' mean CRPS less their disagreement.
            each = self._sum([law.crps(y) for law in self.members])
            return each - self._disagreement()[:, None]
        return super().crps(y)

    def _disagreement(self) -> Float64Array:
        """Return the integral of sum_k w_k (F_k - F)^2, shape (n,)."""
        out = np.empty(len(self))
        for rows, _, mesh, (_, spread) in self._meshes():
            out[rows] = (mesh.dy * spread).sum(axis=1)
        return out

    def _answers(self, rows: NDArray[np.int64], y: Float64Array) -> Float64Array:
        """Return F and 1 - F of some rows, (2, k, m), or the members' disagreement."""
        law = self if len(rows) == len(self) else self.take(rows)
        if not law._is_sum:
            return np.stack(law._levels(y))
        each = [one.cdf(y) for one in law.members]
        mean = law._sum(each)
        return np.stack([mean, law._sum([(cdf - mean) ** 2 for cdf in each])])

    def partial_means(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        if self._is_sum:
            each = [law.partial_means(y) for law in self.members]
            below, above = (self._sum(side) for side in zip(*each, strict=True))
            return below, above
        return super().partial_means(y)

    def moments(self) -> Float64Array:
        each = np.stack([law.moments() for law in self.members])
        if self._is_sum:
            return mix_moments(self.w, each)
        out = self._central_moments(self._sum([one[:, :1] for one in each]))
        # A mesh ends somewhere: it cannot tell that a moment is infinite or undefined,
        # but members can.
        strange = ~np.isfinite(each) & (self.w.T[:, :, None] > 0.0)
        worst = self._sum(np.where(strange, each, 0.0))
        return np.where(strange.any(axis=0), worst, out)

    def kinks(self) -> Float64Array:
        each = [law.kinks() for law in self.members]
        if self.scores is not None:
            bends, _ = self.scores.forward(self.scores.kinks(len(self)))
            each.append(self.ppf_scores(bends))
        return np.hstack(each)

    def nodes(self) -> tuple[Float64Array, Float64Array]:
        if self._is_sum:
            each = [law.nodes() for law in self.members]
            shares = [
                w[:, None] * one[1] for w, one in zip(self.w.T, each, strict=True)
            ]
            return np.hstack([one[0] for one in each]), np.hstack(shares)
        return super().nodes()


class _Search(NamedTuple):
    """Quantiles of a pool that are being solved for: Z(y) = goal.

    Z is the pool's score Phi^-1(F(y)). `rows` (m,) and `columns` (m, k) say where
    they stand among all; `goal`, the bracket `low` and `high`, and the present guess
    `y` are (m, k). What is not `open` is found, or fills up the row of another.
    """

    law: PooledLaw
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    goal: Float64Array
    low: Float64Array
    high: Float64Array
    y: Float64Array
    open: NDArray[np.bool_]

    def solve(self) -> Float64Array:
        """Return the roots; those that are found take no more work."""
        out, search = self.y.copy(), self.left()
        for number in range(_NEWTON_STEPS + _HALVINGS):
            if len(search.rows) == 0:
                break
            search = search.step(halve=number >= _NEWTON_STEPS)
            i, j = np.nonzero(search.open)
            out[search.rows[i], search.columns[i, j]] = search.y[i, j]
            search = search._replace(open=search.open & ~search.found()).left()
        return out

    def left(self) -> _Search:
        """Return the search for what is open, in rows as short as they can be."""
        rows = np.asarray(self.open.any(axis=1))
        width = self.open.sum(axis=1).max(initial=0)
        if rows.all() and width == self.y.shape[1]:
            return self
        order = np.argsort(~self.open[rows], axis=1, kind="stable")[:, :width]
        law = self.law if rows.all() else self.law.take(rows)
        parts: list[Any] = [np.take_along_axis(x[rows], order, 1) for x in self[2:]]
        return _Search(law, self.rows[rows], *parts)

    def step(self, *, halve: bool) -> _Search:
        """Return the search after a step of Newton's, or one that halves brackets."""
        own, log_density = self.law._own_density(self.y)
        miss = own - self.goal
        # Z increases, so the sign of the miss says on which side the root is.
        low = np.where(miss < 0.0, self.y, self.low)
        high = np.where(miss < 0.0, self.high, self.y)
        middle = _middle_float(low, high) if halve else 0.5 * low + 0.5 * high
        following = self.y - _newton_steps(miss, own, log_density)
        # Where the tangent leads out of the bracket it is halved instead.
        inside = (following >= low) & (following <= high) & (not halve)
        # Neither y nor Z itself is known better than this.
        exact = inside & (np.abs(following - self.y) <= np.spacing(np.abs(self.y)))
        exact |= np.abs(miss) <= _ROUNDING * np.maximum(np.abs(self.goal), 1.0)
        y = np.where(inside, following, np.where(exact, self.y, middle))
        low, high = np.where(exact, y, low), np.where(exact, y, high)
        return self._replace(low=low, high=high, y=y)

    def found(self) -> NDArray[np.bool_]:
        """Return where a bracket is a float or two wide."""
        ulp = np.spacing(np.maximum(np.abs(self.low), np.abs(self.high)))
        return np.asarray(self.high - self.low <= 2.0 * ulp)


def _middle_float(low: Float64Array, high: Float64Array) -> Float64Array:
    """Return the value that halves how many floats there are from low to high."""

    def places(x: Float64Array) -> NDArray[np.int64]:
        # The bits of positive floats increase as they do; those of negative ones fall.
        bits = (x + 0.0).view(np.int64)
        return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)

    a, b = places(low), places(high)
    middle = (a >> 1) + (b >> 1) + (a & b & 1)
    bits = np.where(middle < 0, np.iinfo(np.int64).min - middle, middle)
    return np.asarray(bits).view(np.float64)


def _newton_steps(
    miss: Float64Array, own: Float64Array, log_density: Float64Array
) -> Float64Array:
    """Return miss / Z' with Z' = f / phi(Z), infinite where the slope is 0."""
    with np.errstate(over="ignore"):
        slope = np.exp(log_density + 0.5 * own**2 + LOG_SQRT_TWO_PI)
        # A step that is too long for a float leads out of the bracket like any other.
        flat = np.full(miss.shape, np.inf)
        np.divide(miss, slope, out=flat, where=slope > 0.0)
    return flat


def _log_sum(logs: Float64Array, weights: Float64Array) -> Float64Array:
    """Return log sum_k w_k exp(logs_k), logs (M, n, k) and weights (M, n, 1)."""
    logs = np.where(weights > 0.0, logs, -np.inf)
    top = logs.max(axis=0)
    top = np.where(np.isfinite(top), top, 0.0)
    total = (weights * np.exp(logs - top)).sum(axis=0)
    return np.asarray(top + log_or_minus_inf(total))
