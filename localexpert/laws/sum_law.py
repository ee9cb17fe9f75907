"""`SumLaw`: a quantile curve per row, and moments that are known beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.laws.quantile_law import QuantileLaw

# A curve that misses the known deviation, or by a share of it the mean, by more has
# tails that it does not tell, and is left as it is.
_MOST_STRETCH = 0.005


@dataclass(frozen=True, eq=False, repr=False)
class SumLaw(QuantileLaw):
    """A `QuantileLaw` whose moments are those given.

    Parameters
    ----------
    known : array-like of shape (n, 4)
        Mean and second to fourth central moment.
    """

    known: Float64Array = field(default_factory=lambda: np.empty((0, 4)))

    @classmethod
    def of_curves(
        cls,
        knots: Float64Array,
        values: Float64Array,
        known: Float64Array,
        *,
        own_shape: bool = False,
    ) -> SumLaw:
        """Return the law through quantiles, moved and stretched to known moments.

        Parameters
        ----------
        knots : ndarray of shape (K,)
        values : ndarray of shape (n, K)
        known : ndarray of shape (n, 4)
        own_shape : bool
            Whether the third and the fourth moment are those of the curve.

        Returns
        -------
        SumLaw
        """
        law = QuantileLaw.through(knots, values)
        own = law.moments()
        room = _MOST_STRETCH * np.sqrt(own[:, 1])
        near = np.abs(known[:, 0] - own[:, 0]) <= room
        mean = np.where(near, known[:, 0], own[:, 0])
        factor = np.sqrt(np.abs(known[:, 1]) / own[:, 1])
        near = np.abs(factor - 1.0) <= _MOST_STRETCH
        factor = np.where(near, factor, 1.0)[:, None]
        moved = mean[:, None] + factor * (law.values - own[:, :1])
        powers = factor ** np.arange(1, 5)
        if own_shape:
            shape = np.isfinite(known[:, 1:2]) & (np.arange(4) > 1)
            known = np.where(shape, own * powers, known)
        return cls(
            law.knots, moved, factor * law.slopes, factor * law.tails, known=known
        )

    def is_like(self, other: object) -> bool:
        """Say that no other law's rows have known moments."""
        return other is self

    def __reduce__(self) -> tuple[type[SumLaw], tuple[Any, ...]]:
        curves = self.knots, self.values, self.slopes, self.tails
        return type(self), (*curves, self.bounds, self.known)

    def take(self, rows: slice | NDArray[Any]) -> SumLaw:
        curves = self.values[rows], self.slopes[rows], self.tails[rows]
        return SumLaw(self.knots, *curves, self.bounds, self.known[rows])

    def moments(self) -> Float64Array:
        return self.known.copy()
