"""`ComposedMap`: one map of normal scores after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.laws.score_map import ScoreMap


@dataclass(frozen=True, eq=False)
class ComposedMap:
    """The map h2(h1(scores)).

    Parameters
    ----------
    first, second : ScoreMap
        h1 and h2, in the order in which they act.
    """

    first: ScoreMap
    second: ScoreMap

    def forward(self, scores: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return h(scores) and log h'(scores), by the chain rule.

        Parameters
        ----------
        scores : ndarray of shape (n, k)

        Returns
        -------
        mapped, log_slopes : ndarrays of shape (n, k)
        """
        between, first_slopes = self.first.forward(scores)
        mapped, second_slopes = self.second.forward(between)
        return mapped, first_slopes + second_slopes

    def levels(self, scores: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return Phi(h(scores)) and Phi(-h(scores)), the smaller to full accuracy.

        Parameters
        ----------
        scores : ndarray of shape (n, k)

        Returns
        -------
        below, above : ndarrays of shape (n, k)
        """
        return self.second.levels(self.first.forward(scores)[0])

    def inverse(self, scores: Float64Array) -> Float64Array:
        """Return the s with h(s) = scores.

        Parameters
        ----------
        scores : ndarray of shape (n, k)

        Returns
        -------
        ndarray of shape (n, k)
        """
        return self.first.inverse(self.second.inverse(scores))

    def kinks(self, n: int) -> Float64Array:
        """Return the scores between which h is smooth.

        Parameters
        ----------
        n : int
            Number of rows.

        Returns
        -------
        ndarray of shape (n, c)
        """
        later = self.first.inverse(np.ascontiguousarray(self.second.kinks(n)))
        return np.hstack([self.first.kinks(n), later])

    def take(self, index: slice | NDArray[Any]) -> ComposedMap:
        """Return the map of some rows.

        Parameters
        ----------
        index : slice or ndarray

        Returns
        -------
        ComposedMap
        """
        return ComposedMap(self.first.take(index), self.second.take(index))
