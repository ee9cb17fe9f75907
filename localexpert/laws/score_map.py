"""`ProbitMap`: an increasing map of [0, 1] on itself, drawn on normal scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from calibration.typing import Float64Array
from localexpert._kernels.score_map import (
    map_levels,
    map_scores,
    tail_slope,
    unmap_scores,
)
from localexpert._validation import (
    check_array,
    check_in_unit,
    check_increasing,
    check_same_length,
    show,
)
from localexpert.curves.chords import STEEPEST_GIVEN, chords_beside
from localexpert.laws.law import freeze_fields

# Scores beyond this are those of probabilities that underflow.
FURTHEST = 37.5
# The piece on which a curve leads over to its tail.
_END_STEP = 0.5


class ScoreMap(Protocol):
    """Turns the normal scores of each row's CDF, Phi^-1(F), into others."""

    def forward(self, scores: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return h(scores) and log h'(scores), scores (n, k)."""
        ...

    def levels(self, scores: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return Phi(h(scores)) and Phi(-h(scores)), accurate where small."""
        ...

    def inverse(self, scores: Float64Array) -> Float64Array:
        """Return the s with h(s) = scores, scores (n, k)."""
        ...

    def kinks(self, n: int) -> Float64Array:
        """Return the scores (n, c) between which h is smooth in n rows."""
        ...

    def take(self, index: slice | NDArray[Any]) -> ScoreMap:
        """Return the map of some rows."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class ProbitMap:
    """G(p) = Phi(h(Phi^-1(p))), h a cubic Hermite curve between its end knots.

    Below the first knot G(p) is proportional to p, above the last 1 - G(p) to 1 - p:
    G(0) = 0, G(1) = 1, and a law whose CDF F becomes G(F) keeps its tails up to a
    factor, and so the moments that are finite. `through` makes one whose derivative
    is continuous at the ends too.

    Parameters
    ----------
    knots : array-like of shape (K,)
        Strictly increasing scores.
    values : array-like of shape (K,) or (n, K)
        Values of h at the knots, strictly increasing: one curve for all rows, or one
        for each.
    slopes : array-like of shape (K,) or (n, K)
        Slopes h' at the knots: positive, at most 3 times the slopes of the chords
        beside them (Fritsch & Carlson, 1980).

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.laws.score_map import ProbitMap
    >>> wider = ProbitMap([-2.0, 2.0], [-1.0, 1.0], [0.5, 0.5])
    >>> wider(np.array([0.0, 0.1, 0.5, 1.0])).round(3)
    array([0.   , 0.261, 0.5  , 1.   ])
    """

    knots: Float64Array
    values: Float64Array
    slopes: Float64Array

    def __post_init__(self) -> None:
        knots = check_array(self.knots, "knots", (None,))
        check_increasing(knots, "knots")
        shape = (len(knots),) if np.ndim(self.values) == 1 else (None, len(knots))
        values = check_array(self.values, "values", shape)
        slopes = check_array(self.slopes, "slopes", values.shape)
        _check_curves(knots, np.atleast_2d(values), np.atleast_2d(slopes))
        freeze_fields(self, knots=knots, values=values, slopes=slopes)

    @classmethod
    def identity(cls) -> ProbitMap:
        """Return the map that changes nothing.

        Returns
        -------
        ProbitMap
        """
        return cls(np.zeros(1), np.zeros(1), np.ones(1))

    @classmethod
    def through(
        cls, knots: Float64Array, values: Float64Array, slopes: Float64Array
    ) -> ProbitMap:
        """Return one that leads over to its tails on a further piece at each end.

        Parameters
        ----------
        knots, values, slopes : ndarray of shape (K,)

        Returns
        -------
        ProbitMap
            Of K + 2 knots.
        """
        step = np.array([-_END_STEP, _END_STEP])
        x, h = knots[[0, -1]] + step, values[[0, -1]] + step
        # The slope at which the tail goes on, unless no cubic leads over to it.
        ends = [
            min(tail_slope(x[end], h[end], side), 3.0)
            for end, side in ((0, -1.0), (1, 1.0))
        ]
        return cls(
            np.concatenate([x[:1], knots, x[1:]]),
            np.concatenate([h[:1], values, h[1:]]),
            np.concatenate([ends[:1], slopes, ends[1:]]),
        )

    @classmethod
    def by_row(
        cls, maps: Sequence[ProbitMap], number: NDArray[np.integer]
    ) -> ProbitMap:
        """Return the map that takes for row i the map ``maps[number[i]]``.

        Parameters
        ----------
        maps : sequence of ProbitMap
            One curve each, over the same knots.
        number : ndarray of shape (n,)

        Returns
        -------
        ProbitMap
        """
        values = np.stack([one.values for one in maps])[number]
        slopes = np.stack([one.slopes for one in maps])[number]
        return cls(maps[0].knots, values, slopes)

    @property
    def is_identity(self) -> bool:
        """Whether the map changes nothing, in any row."""
        return bool((self.values == self.knots).all() and (self.slopes == 1.0).all())

    def __reduce__(self) -> tuple[type[ProbitMap], tuple[Any, ...]]:
        return type(self), (self.knots, self.values, self.slopes)

    def __call__(self, p: ArrayLike) -> Float64Array:
        """Return G(p) for levels p, of any shape.

        Where there is one curve per row, p is (n,) or (n, k).
        """
        levels = np.asarray(p, dtype=np.float64)
        if levels.size:
            check_in_unit(float(levels.min()), float(levels.max()), "p")
        rows = len(self.values) if self.values.ndim == 2 else 1
        if self.values.ndim == 2:
            check_same_length(rows, "the map", len(np.atleast_1d(levels)), "p")
        scores = ndtri(levels).reshape(rows, -1)
        return self.levels(scores)[0].reshape(levels.shape)

    def forward(self, scores: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return h(scores) and log h'(scores).

        Parameters
        ----------
        scores : ndarray of shape (n, k)

        Returns
        -------
        mapped, log_slopes : ndarrays of shape (n, k)
        """
        return map_scores(*self._curves(), np.ascontiguousarray(scores))

    def levels(self, scores: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return Phi(h(scores)) and Phi(-h(scores)), the smaller to full accuracy.

        Parameters
        ----------
        scores : ndarray of shape (n, k)

        Returns
        -------
        below, above : ndarrays of shape (n, k)
        """
        return map_levels(*self._curves(), np.ascontiguousarray(scores))

    def inverse(self, scores: Float64Array) -> Float64Array:
        """Return the s with h(s) = scores.

        Parameters
        ----------
        scores : ndarray of shape (n, k)

        Returns
        -------
        ndarray of shape (n, k)
        """
        return unmap_scores(*self._curves(), np.ascontiguousarray(scores))

    def kinks(self, n: int) -> Float64Array:
        """Return the knots as many times as there are rows.

        Parameters
        ----------
        n : int

        Returns
        -------
        ndarray of shape (n, K)
        """
        return np.tile(self.knots, (n, 1))

    def take(self, index: slice | NDArray[Any]) -> ProbitMap:
        """Return the map of some rows; one curve for all rows is that of any.

        Parameters
        ----------
        index : slice or ndarray

        Returns
        -------
        ProbitMap
        """
        if self.values.ndim == 1:
            return self
        return ProbitMap(self.knots, self.values[index], self.slopes[index])

    def _curves(self) -> tuple[Float64Array, Float64Array, Float64Array]:
        """Return knots (K,), values and slopes, (1, K) or (n, K)."""
        return self.knots, np.atleast_2d(self.values), np.atleast_2d(self.slopes)


def scores_of(below: Float64Array, above: Float64Array) -> Float64Array:
    """Return the s with Phi(s) = below and Phi(-s) = above, from the smaller one."""
    score = ndtri(np.minimum(below, above))
    return np.where(below < above, score, -score)


def clip_scores(scores: Float64Array) -> Float64Array:
    """Return scores within those of probabilities that are not 0."""
    return np.asarray(np.clip(scores, -FURTHEST, FURTHEST))


def log_rate(
    own: Float64Array, mapped: Float64Array, log_slopes: Float64Array
) -> Float64Array:
    """Return log G' of G(p) = Phi(h(Phi^-1(p))), scores mapped by h with slopes h'.

    G' = h' phi(h(s)) / phi(s); the difference of the squares is a product, which
    keeps its digits.
    """
    return np.asarray(log_slopes + 0.5 * (own - mapped) * (own + mapped))


def _check_curves(
    knots: Float64Array, values: Float64Array, slopes: Float64Array
) -> None:
    """Refuse curves that do not increase."""
    rises = np.diff(values, axis=1)
    if (rises <= 0.0).any():
        msg = f"`values` must increase strictly, got a rise of {show(rises.min())}."
        raise ValueError(msg)
    steepest = STEEPEST_GIVEN * chords_beside(knots, values)
    if (slopes <= 0.0).any() or (slopes > steepest).any():
        msg = (
            "`slopes` must be positive and at most 3 times the chords beside, "
            f"got values from {show(slopes.min())} to {show(slopes.max())}."
        )
        raise ValueError(msg)
