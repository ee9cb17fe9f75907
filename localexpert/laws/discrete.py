"""`DiscreteLaw`: probabilities of a few values that all rows share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, xlogy

from calibration.typing import Float64Array
from localexpert._kernels.law_discrete import discrete_quantiles, discrete_shortest
from localexpert._validation import (
    check_array,
    check_increasing,
    check_probability_rows,
)
from localexpert.laws.law import Law, freeze_fields, log_or_minus_inf, pick_counts
from localexpert.laws.near_values import count_below, count_upto, reach_of_values

# A touch of slack, so that a coverage is not missed by the rounding of a sum.
_SLACK = 1.0 - 1e-14


@dataclass(frozen=True, eq=False, repr=False)
class DiscreteLaw(Law):
    """P(Y = values[j]) = probabilities[i, j] in row i.

    Parameters
    ----------
    values : array-like of shape (V,)
        Strictly increasing values.
    probabilities : array-like of shape (n, V)
        Rows of probabilities that sum to 1.

    Notes
    -----
    The density is that of a histogram: each value has the cell that is nearer to it
    than to its neighbours (the outermost cells reach as far out as in; a single
    value has a cell of width 1) and the density there is probability / width. It
    integrates to 1, and in another unit of y it changes as a density does, so log
    scores compare with those of continuous forecasts. Beyond the cells it is 0.

    A number that misses a value by rounding only (1e-12 of its size) is that value.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.laws.discrete import DiscreteLaw
    >>> law = DiscreteLaw([3.0, 4.0, 6.0], [[0.2, 0.5, 0.3]])
    >>> at = np.array([[4.0]])
    >>> law.cdf(at), law.pdf(at)
    (array([[0.7]]), array([[0.33333333]]))
    """

    values: Float64Array
    probabilities: Float64Array
    cumulative: Float64Array = field(init=False)
    widths: Float64Array = field(init=False)
    reach: Float64Array = field(init=False)

    def __post_init__(self) -> None:
        values = check_array(self.values, "values", (None,))
        check_increasing(values, "values")
        rows = check_probability_rows(self.probabilities, "probabilities", len(values))
        cumulative = np.minimum(np.cumsum(rows, axis=1), 1.0)
        cumulative[:, -1] = 1.0
        # Of values that are neighbouring floats an edge may coincide with one.
        widths = np.maximum(np.diff(_cell_edges(values)), np.spacing(np.abs(values)))
        freeze_fields(
            self,
            values=values,
            probabilities=rows,
            cumulative=cumulative,
            widths=widths,
            reach=reach_of_values(values, widths),
        )

    @classmethod
    def of_scores(cls, values: Float64Array, scores: Float64Array) -> DiscreteLaw:
        """Return the law with P(Y <= values[j]) = Phi(scores[i, j]).

        Parameters
        ----------
        values : ndarray of shape (V,)
        scores : ndarray of shape (n, V)
            Not decreasing along a row, infinite at its end.

        Returns
        -------
        DiscreteLaw
        """
        upto, beyond = ndtr(scores), ndtr(-scores)
        # Differences of the smaller one of both tails keep their digits.
        rises = np.diff(upto, axis=1, prepend=0.0)
        falls = -np.diff(beyond, axis=1, prepend=1.0)
        masses = np.where(upto < beyond, rises, falls)
        return cls(values, np.clip(masses, 0.0, 1.0))

    def __len__(self) -> int:
        return len(self.probabilities)

    def __reduce__(self) -> tuple[type[DiscreteLaw], tuple[Any, ...]]:
        return type(self), (self.values, self.probabilities)

    @property
    def support(self) -> tuple[float, float]:
        """Least and greatest of the values."""
        return float(self.values[0]), float(self.values[-1])

    @property
    def has_jumps(self) -> bool:
        """True: all probability is in jumps."""
        return True

    def take(self, rows: slice | NDArray[Any]) -> DiscreteLaw:
        return DiscreteLaw(self.values, self.probabilities[rows])

    def cdf(self, y: Float64Array) -> Float64Array:
        return pick_counts(self.cumulative, count_upto(self.values, self.reach, y))

    def cdf_left(self, y: Float64Array) -> Float64Array:
        return pick_counts(self.cumulative, count_below(self.values, self.reach, y))

    def sf(self, y: Float64Array) -> Float64Array:
        """Sum from above, so that small probabilities keep their digits."""
        above = np.cumsum(self.probabilities[:, ::-1], axis=1)
        above[:, -1] = 1.0
        n_above = len(self.values) - count_upto(self.values, self.reach, y)
        return pick_counts(np.minimum(above, 1.0), n_above)

    def logpdf(self, y: Float64Array) -> Float64Array:
        """Return log(probability / width) of the cell that y is in."""
        edges = _cell_edges(self.values)
        cell = np.searchsorted(edges, y, "right") - 1
        cell = np.where(y == edges[-1], len(self.values) - 1, cell)
        inside = (cell >= 0) & (cell < len(self.values))
        cell = np.clip(cell, 0, len(self.values) - 1)
        share = pick_counts(self.probabilities, cell + 1) / self.widths[cell]
        return log_or_minus_inf(np.where(inside, share, 0.0))

    def ppf(self, q: Float64Array) -> Float64Array:
        return discrete_quantiles(self.values, self.cumulative, q)

    def ppf_scores(self, scores: Float64Array) -> Float64Array:
        return self.ppf(ndtr(scores))

    def crps(self, y: Float64Array) -> Float64Array:
        below, above = self._integrals(y, 2)
        return below + above

    def partial_means(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        return self._integrals(y, 1)

    def moments(self) -> Float64Array:
        # Not a product of matrices, whose rounding depends on the other rows.
        mean = (self.probabilities * self.values).sum(axis=1)
        away = self.values - mean[:, None]
        central = [(self.probabilities * away**k).sum(axis=1) for k in (2, 3, 4)]
        return np.column_stack([mean, *central])

    def entropy(self) -> Float64Array:
        # Of the density probability / width, not of probabilities; 0 log 0 is 0.
        # And a density may underflow where log p - log width does not.
        p = self.probabilities
        terms = xlogy(p, p) - p * np.log(self.widths)
        return cast(Float64Array, -terms.sum(axis=1))

    def mode(self) -> Float64Array:
        """Return the first value of greatest probability, whatever the widths."""
        likeliest = np.argmax(self.probabilities, axis=1)
        return cast(Float64Array, self.values[likeliest])

    def nodes(self) -> tuple[Float64Array, Float64Array]:
        shape = self.probabilities.shape
        return np.broadcast_to(self.values, shape), self.probabilities

    def shortest_interval(self, coverage: float) -> Float64Array:
        """Compare all intervals between two values."""
        return discrete_shortest(self.values, self.cumulative, coverage)

    def densest_regions(self, coverage: Float64Array) -> list[Float64Array]:
        """Return runs of the most probable values, whatever the widths."""
        kept = densest_values(self.probabilities, coverage).astype(np.int8)
        edges = np.diff(kept, axis=1, prepend=0, append=0)
        # A run of kept values starts where the edge is 1, and ends before one of -1.
        return [
            np.column_stack([self.values[row[:-1] == 1], self.values[row[1:] == -1]])
            for row in edges
        ]

    def _integrals(
        self, y: Float64Array, power: int
    ) -> tuple[Float64Array, Float64Array]:
        """Integrals of F^power below y and of (1 - F)^power above, exact."""
        # F is flat between values: each gap adds its length times F^power.
        gaps = np.diff(self.values)
        below = self.cumulative[:, :-1] ** power
        above = (1.0 - self.cumulative[:, :-1]) ** power
        upto = np.cumsum(below * gaps, axis=1)
        rest = np.cumsum((above * gaps)[:, ::-1], axis=1)
        # y lies after `place` values; the gap it is in is split at y.
        place = np.searchsorted(self.values, y, "right")
        last = len(self.values)
        start = self.values[np.maximum(place - 1, 0)]
        end = self.values[np.minimum(place, last - 1)]
        inside = (place > 0) & (place < last)
        before = np.where(place > 0, y - start, 0.0)
        after = np.where(place < last, end - y, 0.0)
        level = np.where(inside, pick_counts(below, np.where(inside, place, 0)), 1.0)
        other = np.where(inside, pick_counts(above, np.where(inside, place, 0)), 1.0)
        return (
            pick_counts(upto, np.maximum(place - 1, 0)) + level * before,
            pick_counts(rest, np.maximum(last - 1 - place, 0)) + other * after,
        )


def _cell_edges(values: Float64Array) -> Float64Array:
    """Return the edges (V + 1,) of the values' cells."""
    if len(values) == 1:
        return np.array([values[0] - 0.5, values[0] + 0.5])
    low, high = values[:-1], values[1:]
    # An edge belongs to the upper cell, so it is no lower value, whatever is rounded.
    middles = 0.5 * low + 0.5 * high
    middles = np.where(middles > low, middles, high)
    first = 2.0 * values[0] - middles[0]
    return np.concatenate([[first], middles, [2.0 * values[-1] - middles[-1]]])


def densest_values(
    probabilities: Float64Array, coverage: Float64Array
) -> NDArray[np.bool_]:
    """Return which values hold `coverage` together, the most probable first, (n, V)."""
    order = np.argsort(-probabilities, axis=1, kind="stable")
    ranked = np.take_along_axis(probabilities, order, 1)
    # A value is needed while those before it hold less than the coverage.
    goal = coverage[:, None] * _SLACK
    needed = (np.cumsum(ranked, axis=1) - ranked < goal) & (ranked > 0.0)
    kept = np.zeros(needed.shape, dtype=np.bool_)
    np.put_along_axis(kept, order, needed, 1)
    return kept
