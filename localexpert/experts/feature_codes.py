"""`FeatureCodes`: features as numbers of bins, one set of bins for all trees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert._kernels.forest_split import MISSING
from localexpert.data.folds import Rows

# Codes of numbers: all of a byte but the one of missing values.
_MOST_BINS = MISSING


@dataclass(frozen=True, eq=False)
class FeatureCodes:
    """Bins of features, in order, and the bin of every row.

    Parameters
    ----------
    codes : ndarray of shape (p, n)
        Bins; MISSING where the value is NaN.
    cuts : ndarray of shape (p, 255)
        `cuts[j, b]` parts bin b of feature j from the next: midway between the
        greatest value of one and the least of the other, and infinite after the last.
    """

    codes: NDArray[np.uint8]
    cuts: Float64Array

    @classmethod
    def learn(cls, X: Float64Array, rows: Rows) -> FeatureCodes:
        """Bin a table of shape (n, p) by the values in some of its rows.

        A feature with up to 255 values gets a bin for each. Of others, bins hold
        about as many rows each; frequent values have bins of their own and take no
        bins from the rest.
        """
        codes = np.empty(X.shape[::-1], dtype=np.uint8)
        cuts = np.full((X.shape[1], _MOST_BINS), np.inf)
        for j in range(X.shape[1]):
            edges = _part_values(X[rows, j])
            cuts[j, : len(edges)] = edges
            missing = np.isnan(X[:, j])
            codes[j] = np.where(missing, MISSING, np.searchsorted(edges, X[:, j]))
        return cls(codes, cuts)


def _part_values(column: Float64Array) -> Float64Array:
    """Return where the bins of a column end, without the last: at most 254 numbers."""
    numbers = column[~np.isnan(column)]
    values, counts = np.unique(numbers, return_counts=True)
    middles: Float64Array = 0.5 * values[:-1] + 0.5 * values[1:]
    if len(values) <= _MOST_BINS:
        return middles
    share = np.minimum(counts, counts.sum() / _MOST_BINS)
    reached = np.cumsum(share)
    bins = np.floor(_MOST_BINS * (reached - 0.5 * share) / reached[-1])
    kept: Float64Array = middles[np.diff(bins) > 0.0]
    return kept
