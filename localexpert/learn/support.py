"""`Support`: the values that a discrete target can take, met or not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from calibration.typing import Float64Array
from localexpert.data.target_values import range_without_outliers
from localexpert.experts.thresholds import lattice_step

# A value met so often tells where the target's values end, or what lies between them.
_WELL_KNOWN = 20.0
# A yes or no has no further values.
_FEWEST_VALUES = 3
# Most values that are added at either end.
MOST_BEYOND = 50


@dataclass(frozen=True, eq=False)
class Support:
    """Values met, and those that may come beside the rare ones among them.

    Parameters
    ----------
    values : ndarray of shape (M,)
        Increasing.
    shares : ndarray of shape (V, M)
        Of what is said of each value met, how much goes to which value; rows sum to 1.

    Notes
    -----
    That no row has fallen between two neighbouring values, or beyond the last one, is
    little evidence where these are rare: the probability of all that was never met is
    about the share of the rows whose value was met once (Good 1953). So half a row is
    added to either side of a value, of weight w < 20, on which nothing was met: of
    what is said of the value, 1 / (2 max(w, 1)) times as much goes there, which is more
    in rows that expect such values. The k-th value away gets a part of it in
    proportion to 1 / (k (k + 1)).

    Values that lie between those met are only added to a lattice with few gaps (counts,
    grades, prices in steps); elsewhere the histogram's cells leave nothing out. Beyond
    the ends the lattice, or the mean step, goes on for as far again as the values
    reach, 50 steps at most, not beyond the bounds, and not beyond 0 if no value was.
    Values that are far out, or more than 50 steps of a lattice away from the next one,
    have no part in this.

    References
    ----------
    Good (1953), The population frequencies of species and the estimation of
    population parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.learn.support import Support
    >>> met, weight = np.array([0.0, 1.0, 3.0]), np.array([60.0, 30.0, 1.0])
    >>> support = Support.of(met, weight)
    >>> print(support.values)
    [0. 1. 2. 3. 4. 5. 6.]
    >>> print(support.shares[2].round(2))
    [0.   0.   0.25 0.5  0.17 0.06 0.03]
    """

    values: Float64Array
    shares: Float64Array

    @classmethod
    def of(
        cls,
        met: Float64Array,
        weight: Float64Array,
        bounds: tuple[float, float] = (-np.inf, np.inf),
    ) -> Support:
        """Return the support of a target.

        Parameters
        ----------
        met, weight : ndarrays of shape (V,)
            Distinct values, increasing, and their weights.
        bounds : (float, float)

        Returns
        -------
        Support
        """
        near = ordinary_values(met, weight)
        rare = (weight < _WELL_KNOWN) & near & (near.sum() >= _FEWEST_VALUES)
        odds = np.where(rare, 0.5 / np.maximum(weight, 1.0), 0.0)
        values, rows = [], []
        # A gap lies before each value, and one after the last.
        first = int(np.argmax(near))
        for number, gap in enumerate(_gaps(met[near], bounds), first):
            away = np.arange(1.0, len(gap) + 1.0)
            parts = 1.0 / (away * (away + 1.0))
            parts /= max(parts.sum(), 1e-300)
            row = np.zeros((len(met), len(gap)))
            if number > 0:
                row[number - 1] = odds[number - 1] * parts
            if number < len(met):
                row[number] = odds[number] * parts[::-1]
            if row.any():
                values.append(gap)
                rows.append(row)
        every = np.concatenate([met, *values])
        shares = np.column_stack([np.eye(len(met)), *rows])
        order = np.argsort(every)
        shares = shares[:, order] / shares.sum(axis=1, keepdims=True)
        return cls(every[order], shares)

    def spread(self, masses: Float64Array) -> Float64Array:
        """Return the probabilities (n, M) of all values, from those of the values met.

        Parameters
        ----------
        masses : ndarray of shape (n, V)

        Returns
        -------
        ndarray of shape (n, M)
        """
        # Most shares are 0. And a product of full matrices rounds a row as the number
        # of rows beside it will have it.
        shares = csr_array(self.shares.T)
        return np.ascontiguousarray((shares @ masses.T).T)


def ordinary_values(met: Float64Array, weight: Float64Array) -> NDArray[np.bool_]:
    """Return which values are not far out: also not beyond a wide gap of a lattice.

    Parameters
    ----------
    met, weight : ndarrays of shape (V,)
        Distinct values, increasing, and their weights.

    Returns
    -------
    ndarray of bool, shape (V,)
    """
    low, high = range_without_outliers(met, weight)
    near = (met >= low) & (met <= high)
    step = lattice_step(met[near])
    if step is None:
        return near
    # Runs of values without a wide gap: the heaviest is what is ordinary.
    run = np.cumsum(np.diff(met, prepend=met[0]) > MOST_BEYOND * step)
    heaviest = np.argmax(np.bincount(run, weight * near))
    return np.asarray(near & (run == heaviest))


def _gaps(met: Float64Array, bounds: tuple[float, float]) -> list[Float64Array]:
    """Return what may lie below, between and above the values, V + 1 arrays."""
    if len(met) < _FEWEST_VALUES:
        return [np.empty(0)] * (len(met) + 1)
    lattice = lattice_step(met)
    step = float(np.ptp(met)) / (len(met) - 1) if lattice is None else lattice
    inner = [np.empty(0)] * (len(met) - 1)
    if lattice is not None:
        counts = np.round(np.diff(met) / step).astype(np.intp)
        inner = [
            np.linspace(low, high, count + 1)[1:-1]
            for low, high, count in zip(met[:-1], met[1:], counts, strict=True)
        ]
    low, high = bounds
    low, high = (
        max(low, 0.0 if met[0] == 0.0 else low),
        min(high, 0.0 if met[-1] == 0.0 else high),
    )
    reach = min(round(float(np.ptp(met)) / step), MOST_BEYOND)
    away = step * np.arange(1.0, reach + 1.0)
    below, above = met[0] - away[::-1], met[-1] + away
    # A touch of slack, so that rounding loses no bound that is a value.
    slack = 1e-9 * step
    return [below[below >= low - slack], *inner, above[above <= high + slack]]
