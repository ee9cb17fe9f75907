"""`CalibrationMap`: a function from score to probability, held as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from calibration._kernels.evaluate import count_below, evaluate_map
from calibration._validation import (
    check_choice,
    check_level,
    check_probabilities,
    check_vector,
    check_weights,
    refuse,
    show,
)
from calibration.storage import Saved
from calibration.typing import Float64Array

_ARRAYS = ("knots", "left", "at", "right", "weight0", "weight1")


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationMap(Saved):
    """A function from score to probability, held as arrays of knots and values.

    The map is left[0] below the first knot, at[k] on knot k, and right[-1] above the
    last knot. Between knots k and k + 1 it is right[k] (`kind="step"`) or the line from
    right[k] to left[k + 1] (`kind="linear"`). Block k of a step map starts at knot k.
    Block 0 reaches down to minus infinity.

    Parameters
    ----------
    knots : ndarray of shape (k,)
        Strictly increasing scores. There is at least one.
    left, at, right : ndarrays of shape (k,)
        Limit from below, value, and limit from above at each knot. They are finite in
        linear maps. In step maps they may be infinite, as log-likelihood ratios may be.
    kind : {"step", "linear"}
        What lies between knots.
    weight0, weight1 : ndarrays of shape (k,), optional
        Weight of each class in the block that starts at each knot.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import CalibrationMap
    >>> steps = CalibrationMap.step(np.array([0.0, 0.5]), np.array([0.1, 0.8]))
    >>> steps([-1.0, 0.49, 0.5, 2.0])
    array([0.1, 0.1, 0.8, 0.8])
    >>> line = CalibrationMap.linear(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    >>> CalibrationMap.average([steps, line])([0.25, 0.5])
    array([0.175, 0.65 ])
    """

    knots: Float64Array
    left: Float64Array
    at: Float64Array
    right: Float64Array
    kind: Literal["step", "linear"]
    weight0: Float64Array | None = None
    weight1: Float64Array | None = None

    def __post_init__(self) -> None:
        check_choice(self.kind, "kind", ("step", "linear"))
        for name in _ARRAYS:
            array = getattr(self, name)
            if array is None:
                continue
            # Copy the array. A map must not change when the arrays that it was made of
            # do.
            array = np.array(array, dtype=np.float64)
            if array.shape != np.shape(self.knots) or array.ndim != 1 or not array.size:
                rule = "have shape (k,) with k >= 1 like `knots`"
                refuse(name, rule, f"shape {array.shape}")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if not (self.knots[1:] > self.knots[:-1]).all():
            refuse("knots", "increase strictly", "a tie or a decrease")
        self._check_values()

    def _check_values(self) -> None:
        """Refuse values that are no numbers, and weights that are none."""
        # Steps may be infinite, as log-likelihood ratios may be. A line to infinity is
        # no line.
        check_vector(self.knots, "knots")
        for name in ("left", "at", "right"):
            array = getattr(self, name)
            bad = np.isnan(array) if self.kind == "step" else ~np.isfinite(array)
            if bad.any():
                k = int(np.argmax(bad))
                refuse(name, "hold numbers", f"{array[k]} at knot {k}")
        for name in ("weight0", "weight1"):
            array = getattr(self, name)
            if array is not None and not (array >= 0.0).all():
                refuse(name, "not be negative", show(array.min()))

    @classmethod
    def step(
        cls,
        starts: Float64Array,
        values: Float64Array,
        weight0: Float64Array | None = None,
        weight1: Float64Array | None = None,
    ) -> CalibrationMap:
        """Return the step function that is values[k] from starts[k] on.

        Parameters
        ----------
        starts, values : ndarrays of shape (k,)
            Where blocks start, and their values. A block holds its left end.
        weight0, weight1 : ndarrays of shape (k,), optional
            Weight of each class per block.

        Returns
        -------
        CalibrationMap
        """
        # From below, knot k still has the value of the block before it.
        left = np.concatenate([values[:1], values[:-1]])
        return cls(starts, left, values, values, "step", weight0, weight1)

    @classmethod
    def linear(cls, knots: Float64Array, values: Float64Array) -> CalibrationMap:
        """Return the continuous map through (knots, values), flat beyond the ends.

        Parameters
        ----------
        knots, values : ndarrays of shape (k,)

        Returns
        -------
        CalibrationMap
        """
        return cls(knots, values, values, values, "linear")

    @classmethod
    def average(
        cls, maps: Sequence[CalibrationMap], weights: ArrayLike | None = None
    ) -> CalibrationMap:
        """Return the weighted mean of maps as one map on the union of their knots.

        Parameters
        ----------
        maps : sequence of CalibrationMap
            At least one.
        weights : array-like of shape (len(maps),), optional
            Non-negative weights. They are normalised. By default all are equal.

        Returns
        -------
        CalibrationMap
            Its kind is "step" if all maps are steps, else "linear".
        """
        if len(maps) == 0:
            refuse("maps", "hold at least one map", "none")
        shares = check_weights(weights, len(maps))
        shares = shares / shares.sum()
        # Between the knots of all maps each map is a line, so their mean is one too.
        knots = np.unique(np.concatenate([one.knots for one in maps]))
        limits = np.zeros((3, len(knots)))
        for share, one in zip(shares, maps, strict=True):
            # A map without weight may be infinite.
            if share > 0.0:
                limits += share * np.stack(one._limits(knots))
        steps = all(one.kind == "step" for one in maps)
        left, at, right = limits
        return cls(knots, left, at, right, "step" if steps else "linear")

    def __call__(self, scores: ArrayLike) -> Float64Array:
        """Return the values of the map at `scores`, shape (n,), in O(log k) each."""
        return self._evaluate(check_vector(scores, "scores"))

    def __len__(self) -> int:
        """Return the number of knots."""
        return len(self.knots)

    def __repr__(self) -> str:
        return (
            f"CalibrationMap(kind={self.kind!r}, n_knots={len(self)}, "
            f"from {self.left[0]:.4g} to {self.right[-1]:.4g})"
        )

    @property
    def is_increasing(self) -> bool:
        """Whether the map never decreases."""
        # Take the values in the order in which a rising score passes them.
        path = np.column_stack([self.left, self.at, self.right]).ravel()
        # Compare them instead of taking differences, because steps may be infinite.
        return bool((path[1:] >= path[:-1]).all())

    def inverse(self, probabilities: ArrayLike) -> Float64Array:
        """Return the least score at which an increasing map reaches a probability.

        Parameters
        ----------
        probabilities : array-like of shape (n,)

        Returns
        -------
        ndarray of shape (n,)
            The infimum of s with map(s) >= p. It is -inf if all of the map reaches p,
            and +inf if none of it does.
        """
        goals = check_probabilities(probabilities, "probabilities")
        if not self.is_increasing:
            msg = "`inverse` needs a map that never decreases, got one that does."
            raise ValueError(msg)
        # Find the first knot with right >= goal. The goal is reached there, or on the
        # way there.
        k = np.searchsorted(self.right, goals, side="left")
        out = np.full(len(goals), np.inf)
        found = k < len(self)
        k_found, goal = k[found], goals[found]
        score = self.knots[k_found].copy()
        before = np.maximum(k_found - 1, 0)
        rise = self.left[k_found] - self.right[before]
        on_line = (k_found > 0) & (goal <= self.left[k_found]) & (rise > 0.0)
        share = (goal - self.right[before])[on_line] / rise[on_line]
        gap = self.knots[k_found] - self.knots[before]
        score[on_line] = self.knots[before][on_line] + share * gap[on_line]
        # Below the first knot the map is constant. If the goal is reached there, it is
        # reached everywhere.
        score[goal <= self.left[0]] = -np.inf
        out[found] = score
        return out

    def interval(self, scores: ArrayLike, coverage: float = 0.9) -> Float64Array:
        """Return an interval for the event rate of the block that a score falls in.

        Parameters
        ----------
        scores : array-like of shape (n,)
        coverage : float
            Level of the interval, in (0, 1).

        Returns
        -------
        ndarray of shape (n, 2)
            Lower and upper bounds. They are the equal-tailed interval of the posterior
            Beta(n1 + 1/2, n0 + 1/2) (Jeffreys). The lower bound is 0 if n1 = 0, and the
            upper bound is 1 if n0 = 0.

        References
        ----------
        Brown, Cai & DasGupta (2001), Interval estimation for a binomial proportion.
        """
        values = check_vector(scores, "scores")
        coverage = check_level(coverage, "coverage")
        n0, n1 = self.block_weights()
        lower, upper = beta_interval(n1 + 0.5, n0 + 0.5, coverage)
        lower[n1 == 0.0], upper[n0 == 0.0] = 0.0, 1.0
        block = np.maximum(count_below(self.knots, values) - 1, 0)
        return np.column_stack([lower[block], upper[block]])

    def block_weights(self) -> tuple[Float64Array, Float64Array]:
        """Return the weight of class 0 and of class 1 in each block.

        Returns
        -------
        weight0, weight1 : ndarrays of shape (k,)
        """
        if self.weight0 is None or self.weight1 is None:
            got = (
                "a map without class weights per block (only histogram and isotonic "
                "maps have them)"
            )
            refuse("weight0` and `weight1", "be known for this", got)
        return self.weight0, self.weight1

    def _evaluate(self, values: Float64Array) -> Float64Array:
        return evaluate_map(
            values, self.knots, self.left, self.at, self.right, self.kind == "linear"
        )

    def _limits(
        self, points: Float64Array
    ) -> tuple[Float64Array, Float64Array, Float64Array]:
        """Return limit from below, value and limit from above at increasing points."""
        # A map is continuous off its knots, so all three limits are its value.
        value = self._evaluate(points)
        below, above = value.copy(), value.copy()
        place = np.searchsorted(points, self.knots)
        on = points[np.minimum(place, len(points) - 1)] == self.knots
        below[place[on]] = self.left[on]
        above[place[on]] = self.right[on]
        return below, value, above


def beta_interval(a: Float64Array, b: Float64Array, coverage: float) -> Float64Array:
    """Return the equal-tailed intervals of Beta(a, b) laws, shape (2, k)."""
    tail = 0.5 * (1.0 - coverage)
    # Rounding may exchange the ends of a narrow interval.
    return np.sort([betaincinv(a, b, tail), betaincinv(a, b, 1.0 - tail)], axis=0)


def block_starts(scores: Float64Array, first: NDArray[np.int64]) -> Float64Array:
    """Return where steps begin, if block k holds the scores from `first[k]` on.

    The first step begins at the least score. Each other one begins midway to the block
    before, because the data say nothing about a score between the two.
    """
    edges = edges_between(scores[first[1:] - 1], scores[first[1:]])
    return np.concatenate([scores[:1], edges])


def edges_between(low: Float64Array, high: Float64Array) -> Float64Array:
    """Return where a step from `low` to `high` (the next score up) is placed.

    It is placed in the middle. If no float lies between, it is placed at `high`. An
    edge belongs to the block above it, so `low` stays on its own side.
    """
    # Halve before adding, so that the sum does not overflow.
    middle = 0.5 * low + 0.5 * high
    return cast(Float64Array, np.where(middle > low, middle, high))
