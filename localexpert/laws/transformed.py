"""`TransformedLaw`: the law of func(Y) for a smooth law of Y and an increasing func."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from calibration.typing import Float64Array
from localexpert._kernels.normal import LOG_SQRT_TWO_PI
from localexpert.laws.law import Law, log_or_minus_inf
from localexpert.laws.scanned import ScannedLaw
from localexpert.laws.score_map import scores_of
from localexpert.laws.score_nodes import (
    GRID,
    INNER,
    OUTER,
    ScoreNodes,
    between_scores,
    panel_sums,
)
from localexpert.laws.value_map import ValueMap

# How often panels are cut in parts.
_ROUNDS = 6
# An integral whose outermost terms are more than this of it is infinite.
_ENDLESS = np.log(1e-6)
# Values of y that are cut at at a time.
_CUTS = 16
# A share of a law's width that a slope is asked beside a bound.
_BESIDE_BOUND = 1e-9
# Nodes of less probability have no say in an entropy.
_UNSEEN = 1e-13
# What lies between these levels says how far a difference may reach.
_QUARTILES = (0.25, 0.75)


@dataclass(frozen=True, eq=False, repr=False)
class TransformedLaw(ScannedLaw):
    r"""The law of g(X), X of a smooth law and g increasing.

    .. math:: F(z) = F_X(g^{-1}(z)), \quad
       f(z) = \frac{f_X(g^{-1}(z))}{g'(g^{-1}(z))}.

    Parameters
    ----------
    law : Law
        That of X, without jumps.
    values : ValueMap
        g, its inverse, and its derivative if that is known.

    Notes
    -----
    CDF and quantiles are as exact as those of X. Integrals are Gauss-Legendre sums
    over the normal score of X between kinks of its density, up to 37 deviations, so
    that the moments of exp(X) are right for a normal X. A moment whose integrand has
    not died away there is infinite, or nan if it is then not defined: exp(X) has no
    mean if the tails of X are heavier than normal ones. Where g itself has a kink
    integrals are right to 1e-3. Panels in which quantiles leap, as those of a pool
    do where next to nothing lies between its members, are cut up to six times;
    what is narrower than that is integrated as a whole, to 5e-3 of its size.
    How far a value is from a finite end of the support is rounded twice: a tail of
    less than 1e-12 keeps no digits there.
    """

    law: Law
    values: ValueMap

    def __post_init__(self) -> None:
        if not isinstance(self.law, Law) or self.law.has_jumps:
            msg = f"`law` must be a law without jumps, got {type(self.law).__name__}."
            raise TypeError(msg)

    def __len__(self) -> int:
        return len(self.law)

    @property
    def support(self) -> tuple[float, float]:
        """What func makes of the ends of the law's support."""
        low, high = self.law.support
        return self.values.end(low), self.values.end(high)

    def take(self, rows: slice | NDArray[Any]) -> TransformedLaw:
        return TransformedLaw(self.law.take(rows), self.values)

    def _forward(self, x: Float64Array) -> Float64Array:
        """Return g(x), the ends of the support where x is infinite."""
        z = self.values.forward(x)
        if np.isinf(x).any():
            low, high = self.support
            z = np.where(x == -np.inf, low, np.where(x == np.inf, high, z))
        return z

    def _backward(self, z: Float64Array) -> Float64Array:
        """Return g^-1(z), infinite for a z that g(X) cannot be."""
        low, high = self.support
        x = self.values.backward(z, self._median())
        return np.where(z < low, -np.inf, np.where(z > high, np.inf, x))

    def cdf(self, y: Float64Array) -> Float64Array:
        return self.law.cdf(self._backward(y))

    def sf(self, y: Float64Array) -> Float64Array:
        return self.law.sf(self._backward(y))

    def logpdf(self, y: Float64Array) -> Float64Array:
        return self._log_density(self._backward(y))

    def _log_density(self, x: Float64Array) -> Float64Array:
        """Return log f(g(x))."""
        own, slopes = self.law.logpdf(x), self.log_slope(x)
        # Where there is nothing of X no slope is known, and none is needed.
        return np.where(own == -np.inf, own, own - np.where(own == -np.inf, 0, slopes))

    def log_slope(self, x: Float64Array) -> Float64Array:
        """Return log g'(x)."""
        low, high = self.law.support
        finite = np.isfinite(x)
        at = np.where(finite, x, np.clip(0.0, low, high))
        least = 64.0 * np.spacing(np.abs(at))
        # Far out a step that is wide for most of the law may be lost in rounding.
        first, last = self.law.ppf(np.tile(_QUARTILES, (len(self), 1))).T[:, :, None]
        room = np.maximum(np.maximum(first - at, at - last), last - first)
        room = np.maximum(room, least)
        # Not beyond a bound, where g need not be defined, nor on it.
        beside = np.maximum(_BESIDE_BOUND * room, least)
        at = np.clip(at, low + beside, high - beside)
        room = np.minimum(room, np.minimum(at - low, high - at))
        return np.where(finite, self.values.log_slope(at, room), -np.inf)

    def ppf_scores(self, scores: Float64Array) -> Float64Array:
        return self._forward(self.law.ppf_scores(scores))

    def kinks(self) -> Float64Array:
        return self._forward(self._inner_kinks())

    def _inner_kinks(self) -> Float64Array:
        """Return those of X, within what it can be."""
        ends = self.law.ppf_scores(np.tile([-INNER, INNER], (len(self), 1)))
        return np.clip(self.law.kinks(), ends[:, :1], ends[:, 1:])

    def _nodes(self) -> ScoreNodes:
        kinks = self._inner_kinks()
        bends = scores_of(self.law.cdf(kinks), self.law.sf(kinks))
        bends = np.clip(bends, -INNER, INNER)
        # Kinks where no row has any are no borders.
        bends = bends[:, (np.abs(bends) < INNER).any(axis=0)]
        grid = np.tile(GRID, (len(self), 1))
        borders = np.sort(np.hstack([grid, bends]), axis=1)
        return self._settled(self._nodes_on(borders))

    def _settled(self, at: ScoreNodes) -> ScoreNodes:
        """Return nodes on panels in which quantiles are smooth enough.

        Where next to nothing is between members of a pool its quantiles leap.
        """
        for _ in range(_ROUNDS):
            rough = at.rough()
            rows = np.flatnonzero(rough.any(axis=1))
            if len(rows) == 0:
                break
            borders = at.cut_borders(rough)[rows]
            at = at.with_rows(rows, self.take(rows)._nodes_on(borders))
        return at

    def _nodes_on(self, borders: Float64Array) -> ScoreNodes:
        """Return the nodes on panels between borders (n, p + 1)."""
        at = self._nodes_between(borders[:, :-1], borders[:, 1:])
        return at._replace(borders=borders)

    def _nodes_between(self, left: Float64Array, right: Float64Array) -> ScoreNodes:
        """Return the nodes on panels (n, p), from left to right of each."""
        s, ds = between_scores(left, right)
        x = self.law.ppf_scores(s)
        y = self._forward(x)
        ds = np.where(np.isfinite(y), ds, 0.0)
        with np.errstate(divide="ignore"):
            log_ds = np.log(ds) - 0.5 * s * s - LOG_SQRT_TWO_PI
        return ScoreNodes(left, s, x, np.where(np.isfinite(y), y, 0.0), log_ds)

    def nodes(self) -> tuple[Float64Array, Float64Array]:
        every = [part._nodes() for _, part in self._parts()]
        parts = [(at.y, at.masses()) for at in every]
        if not every:
            return np.empty((0, 0)), np.empty((0, 0))
        # Kinks differ in number where a law has them in some rows only.
        most = max(y.shape[1] for y, _ in parts)
        wide = [
            [np.pad(each, ((0, 0), (0, most - each.shape[1]))) for each in part]
            for part in parts
        ]
        y, masses = (np.vstack(each) for each in zip(*wide, strict=True))
        return y, masses

    def moments(self) -> Float64Array:
        out = np.empty((len(self), 4))
        for rows, part in self._parts():
            out[rows] = part._own_moments()
        return out

    def _own_moments(self) -> Float64Array:
        at, middle = self._nodes(), self._median()
        order, side = _finite_orders(_log_abs(at.y - middle), at.log_ds)
        mean = middle[:, 0] + _sum_power(at.y - middle, at.log_ds, 1)
        mean = np.where(order >= 1, mean, side)
        away = at.y - np.where(order >= 1, mean, 0.0)[:, None]
        central = [
            np.where(order >= k, _sum_power(away, at.log_ds, k), np.nan)
            for k in (2, 3, 4)
        ]
        out = np.column_stack([mean, *central])
        out[order == 1, 1] = np.inf
        out[(order == 2) | (order == 3), 3] = np.inf
        return out

    def _median(self) -> Float64Array:
        """Return the medians, (n, 1)."""
        return self.ppf_scores(np.zeros((len(self), 1)))

    def crps(self, y: Float64Array) -> Float64Array:
        # By parts: 2 F is the slope of F^2 in F, 2 (1 - F) that of -(1 - F)^2.
        below, above = self._integrals(y, squared=True)
        return below + above

    def partial_means(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        return self._integrals(y, squared=False)

    def _integrals(
        self, y: Float64Array, *, squared: bool
    ) -> tuple[Float64Array, Float64Array]:
        """Return the integrals of F below and of 1 - F above y, or of their squares."""
        below, above = np.empty(y.shape), np.empty(y.shape)
        for rows, part in self._parts():
            at, middle = part._nodes(), part._median()
            for first in range(0, y.shape[1], _CUTS):
                columns = slice(first, first + _CUTS)
                sides = part._sides(at, middle, y[rows, columns], squared=squared)
                below[rows, columns], above[rows, columns] = sides
        return below, above

    def _sides(
        self, at: ScoreNodes, middle: Float64Array, z: Float64Array, *, squared: bool
    ) -> tuple[Float64Array, Float64Array]:
        """Return integrals of F^a below z (n, k) and of (1 - F)^a above it, a 1 or 2.

        That below is (z - c) F(z)^a less the integral of (y - c) d(F^a), c any value,
        which is cut at the score of z; likewise above.
        """
        z = np.ascontiguousarray(z)
        x = self._backward(z)
        cut = np.clip(scores_of(self.law.cdf(x), self.law.sf(x)), -OUTER, OUTER)
        last = at.borders.shape[1] - 2
        panel = (at.borders[:, None, :] <= cut[:, :, None]).sum(axis=2) - 1
        panel = np.clip(panel, 0, last)
        left = np.take_along_axis(at.borders, panel, axis=1)
        part = self._nodes_between(left, cut)
        out = []
        for sign in (1.0, -1.0):
            log_ds = at.log_weights(sign, squared=squared)
            endless = _endless(_log_abs(at.y - middle) + log_ds)[0 if sign > 0.0 else 1]
            sums = panel_sums((at.y - middle) * np.exp(log_ds))
            within = panel_sums(
                (part.y - middle) * np.exp(part.log_weights(sign, squared=squared))
            )
            level = ndtr(sign * cut) ** (2 if squared else 1)
            if sign > 0.0:
                before = np.cumsum(sums, axis=1) - sums
                total = np.take_along_axis(before, panel, axis=1) + within
            else:
                after = np.cumsum(sums[:, ::-1], axis=1)[:, ::-1]
                total = np.take_along_axis(after, panel, axis=1) - within
            rest = np.maximum(sign * ((z - middle) * level - total), 0.0)
            out.append(np.where(endless[:, None], np.inf, rest))
        return out[0], out[1]

    def entropy(self) -> Float64Array:
        out = self.law.entropy()
        for rows, part in self._parts():
            at = part._nodes()
            # E log g' joins that of X itself; the rest has no say at 8.4 deviations.
            inner = at.inner
            slopes = part.log_slope(np.ascontiguousarray(at.x[:, inner]))
            masses = at.masses()[:, inner]
            held = np.where(masses > _UNSEEN, slopes, 0.0)
            out[rows] = out[rows] + (masses * held).sum(axis=1)
        return out

    def mode(self) -> Float64Array:
        # Narrow peaks that the scan may miss: that of X, and where densities bend.
        own = self._forward(self.law.mode()[:, None])
        trials = np.hstack([super().mode()[:, None], own, self.kinks()])
        best = np.argmax(self.logpdf(trials), axis=1)
        return np.asarray(trials[np.arange(len(self)), best])

    def _scan(self) -> Float64Array:
        at = self._nodes()
        inner = at.inner
        x = np.ascontiguousarray(at.x[:, inner])
        masses, cdf = at.masses()[:, inner], ndtr(at.s[:, inner])
        nodes = np.stack([at.y[:, inner], masses, self._log_density(x), cdf])
        s = np.tile([-INNER, INNER], (len(self), 1))
        x = self.law.ppf_scores(s)
        ends = np.stack([self._forward(x), 0.0 * s, self._log_density(x), ndtr(s)])
        return np.concatenate([ends[:, :, :1], nodes, ends[:, :, 1:]], axis=2)


def _log_abs(away: Float64Array) -> Float64Array:
    return log_or_minus_inf(np.abs(away))


def _endless(log_terms: Float64Array) -> tuple[Any, Any]:
    """Return whether a sum (n,) has not come to an end below, and above."""
    finite = log_terms > -np.inf
    every, last = np.arange(len(finite)), finite.shape[1] - 1
    first = np.argmax(finite, axis=1)
    final = last - np.argmax(finite[:, ::-1], axis=1)
    goal = log_terms.max(axis=1) + _ENDLESS
    # A law of one value has no terms at all.
    some = finite.any(axis=1)
    low = some & (log_terms[every, first] > goal)
    return low, some & (log_terms[every, final] > goal)


def _finite_orders(
    log_away: Float64Array, log_ds: Float64Array
) -> tuple[NDArray[np.intp], Float64Array]:
    """Return up to which order moments exist (n,), and what a mean is that does not."""
    order = np.full(len(log_away), 4)
    side = np.zeros(len(log_away))
    for k in (4, 3, 2, 1):
        low, high = _endless(k * log_away + log_ds)
        order[low | high] = k - 1
        side = np.where(low & high, np.nan, np.where(low, -np.inf, np.inf))
    return order, side


def _sum_power(away: Float64Array, log_ds: Float64Array, k: int) -> Float64Array:
    """Return the sums (n,) of away^k exp(log_ds), which may overflow at its end."""
    with np.errstate(over="ignore", invalid="ignore"):
        terms = np.sign(away) ** k * np.exp(k * _log_abs(away) + log_ds)
        return np.asarray(terms.sum(axis=1))
