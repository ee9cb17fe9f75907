"""Expected losses of actions: integrals over losses that bend at the action."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation import refuse
from calibration.typing import Float64Array
from localexpert._validation import check_array, check_targets
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.law.law import Law

# A loss takes values y (m, k) and actions (m, 1) and returns losses (m, k).
Loss: TypeAlias = Callable[[Float64Array, Float64Array], Float64Array]

# Rows whose nodes are held in memory at a time.
_CHUNK = 2048
# The step at which a loss is read beside an action, in widths of the forecast.
_STEP = 1e-4
# At least this many units of the last place, so that differences have digits.
_LEAST_ULPS = 1024.0
# Levels between which the width of a forecast is measured, and its middle.
_MIDDLE = (0.005, 0.5, 0.995)
# Places where the loss is read, in steps: three on either side, and the middle.
_AROUND = np.arange(-3.0, 4.0)
# Value and slope at 0 of the parabola through values at 1, 2 and 3.
_VALUE_AT_0 = np.array([[3.0], [-3.0], [1.0]])
_SLOPE_AT_0 = np.array([[-2.5], [4.0], [-1.5]])


@dataclass(frozen=True, eq=False)
class _Chunk:
    """A law's rows with what every integral over them needs.

    Nodes `y` and `weights` are (n, m); `width` and `median` are (n, 1).
    """

    law: Law
    y: Float64Array
    weights: Float64Array
    width: Float64Array
    median: Float64Array

    @classmethod
    def of(cls, law: Law) -> _Chunk:
        # Known moments may be infinite where the expectation of a loss is not.
        law = replace(law, known=None)
        middle = law.ppf(np.tile(_MIDDLE, (len(law), 1)))
        width = middle[:, 2:] - middle[:, :1]
        return cls(law, *law.nodes(), width, middle[:, 1:2])


def expected_losses(
    dist: PredictiveDistribution,
    loss: Loss,
    actions: Float64Array,
    breaks: ArrayLike | None = None,
) -> Float64Array:
    """Return E loss(Y, a) for every row's actions.

    Parameters
    ----------
    dist : PredictiveDistribution
        Of n rows.
    loss : callable
        See `expected_loss`.
    actions : ndarray of shape (n, A)
    breaks : array-like of shape (b,) or (n, b), optional
        Values of y besides the action at which the loss jumps or bends.

    Returns
    -------
    ndarray of shape (n, A)

    Notes
    -----
    The nodes of a law do not know where the loss bends. Let the loss jump by J at the
    value v, and its slope by K. Then L(y) - K max(y - v, 0) - J 1{y > v} is smooth
    there and is summed over the nodes. The expectation of the part subtracted,
    K E max(Y - v, 0) + J P(Y > v), is exact. J and K are read from the loss on both
    sides of v; an error e in them costs e times the error of the nodes.
    """
    fixed = _check_breaks(breaks, len(dist))
    out = np.empty(actions.shape)
    for start in range(0, len(dist), _CHUNK):
        rows = slice(start, start + _CHUNK)
        chunk = _Chunk.of(dist.law.take(rows))
        for j in range(actions.shape[1]):
            action = actions[rows, j : j + 1]
            places = [action, *(column[rows, None] for column in fixed.T)]
            out[rows, j] = _expect_loss(chunk, loss, action, places)
    return out


def _check_breaks(breaks: ArrayLike | None, n: int) -> Float64Array:
    """Return the breaks of every row, (n, b)."""
    if breaks is None:
        return np.empty((n, 0))
    shape = np.shape(breaks)
    if len(shape) == 1:
        return check_targets(np.asarray(breaks)[:, None], "breaks", n).T
    return check_array(breaks, "breaks", (n, None))


def _expect_loss(
    chunk: _Chunk, loss: Loss, action: Float64Array, places: list[Float64Array]
) -> Float64Array:
    """Return E loss(Y, action), (n,), a loss that may break at places (n, 1)."""
    losses = _evaluate(loss, chunk.y, action, chunk.weights > 0.0)
    total = np.zeros(len(action))
    # Sums over a few values are exact. A table of losses knows no other values.
    if not chunk.law.all_jumps:
        found: list[_Break] = []
        for place in places:
            part = _find_break(chunk, loss, action, place, found, places)
            losses = losses - part.at(chunk.y)
            total += part.expectation(chunk.law)[:, 0]
            found.append(part)
    return np.asarray(total + (losses * chunk.weights).sum(axis=1))


@dataclass(frozen=True, eq=False)
class _Break:
    """jump 1{y > place} + bend max(y - place, 0), (n, 1) each.

    Where `reached`, the jump is in 1{y >= place}.
    """

    place: Float64Array
    jump: Float64Array
    bend: Float64Array
    reached: NDArray[np.bool_]

    def at(self, y: Float64Array) -> Float64Array:
        """Return the values at y (n, k)."""
        excess = y - self.place
        beyond = (excess > 0.0) | ((excess == 0.0) & self.reached)
        return np.where(beyond, self.jump + self.bend * excess, 0.0)

    def expectation(self, law: Law) -> Float64Array:
        """Return the exact expectation (n, 1)."""
        _, above = law.partial_means(self.place)
        there = law.cdf(self.place) - law.cdf_left(self.place)
        chance = law.sf(self.place) + np.where(self.reached, there, 0.0)
        return self.jump * chance + self.bend * above


def _find_break(
    chunk: _Chunk,
    loss: Loss,
    action: Float64Array,
    place: Float64Array,
    found: list[_Break],
    places: list[Float64Array],
) -> _Break:
    """Return by how much the loss and its slope jump at the place, less those found.

    The jumps come from parabolas through three values on either side. They are 0 if
    the whole forecast lies on one side of the place: they do not matter there.
    """
    low, high = chunk.law.support
    inside = (place > low) & (place < high)
    inside &= (chunk.law.cdf(place) > 0.0) & (chunk.law.sf(place) > 0.0)
    step = np.maximum(_STEP * chunk.width, _LEAST_ULPS * np.spacing(np.abs(place)))
    # Stay between the neighbours. Places that are nearer still count as one.
    for other in places:
        gap = np.abs(other - place)
        step = np.where(gap > 1e-3 * step, np.minimum(step, gap / 4.0), step)
    # Stay inside the support: outside a loss may have no meaning.
    step = np.minimum(step, np.minimum(place - low, high - place) / 4.0)
    inside &= place + step > place
    step = np.where(inside, step, 1.0)
    y = np.where(inside, place + step * _AROUND, chunk.median)
    values = _evaluate(loss, y, action, np.ones(y.shape, dtype=np.bool_))
    values = values - sum(part.at(y) for part in found)
    # From the place outwards, and the value at the place itself.
    left, there, right = values[:, 2::-1], values[:, 3:4], values[:, 4:]
    before, after = left @ _VALUE_AT_0, right @ _VALUE_AT_0
    jump = np.where(inside, after - before, 0.0)
    bend = (right @ _SLOPE_AT_0 + left @ _SLOPE_AT_0) / step
    # A node may happen to lie there.
    reached = np.abs(there - after) < np.abs(there - before)
    return _Break(place, jump, np.where(inside, bend, 0.0), reached)


def _evaluate(
    loss: Loss, y: Float64Array, action: Float64Array, held: NDArray[np.bool_]
) -> Float64Array:
    """Return the losses at y, 0 at values without probability; check the losses."""
    values = np.asarray(loss(y, action), dtype=np.float64)
    if values.shape != y.shape:
        rule = f"return an array of the shape of its first argument, {y.shape}"
        refuse("loss", rule, f"shape {values.shape}")
    wrong = held & ~np.isfinite(values)
    if wrong.any():
        i, k = np.argwhere(wrong)[0]
        got = f"{values[i, k]} for y = {y[i, k]:g} and action = {action[i, 0]:g}"
        refuse("loss", "be finite", got)
    return np.where(held, values, 0.0)
