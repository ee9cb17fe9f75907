"""`DenseInputs`: columns on one scale and without gaps, for linear models and nets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array

# If a category has more values than this, only the most frequent ones get indicators.
# The logarithm of the frequency enters too.
_MOST_INDICATORS = 32
# Scaled values are bent towards this bound, so that no outlier ruins a net.
_BOUND = 3.0
# Single precision has seven digits. It separates values that are not this far from
# zero, in units of their spread. Outside the next two bounds it holds no numbers.
_FAR = 1e3
_LEAST, _MOST = 1e-30, 1e30
_GREATEST = 3e38


@dataclass(frozen=True)
class DenseInputs:
    """Numbers that are centred, scaled and bent, and indicators of categories and gaps.

    Let z = (x - median) / (interquartile range). If that range is zero, half the full
    range takes its place. A number enters as z / sqrt(1 + (z / 3)^2). A gap is at the
    median. The target plays no part.

    Parameters
    ----------
    median, scale : ndarrays of shape (p,)
    with_gaps : ndarray of int
        Positions of the columns that get an indicator of gaps.
    indicators : dict of int to ndarray
        For the position of each column of categories, the codes with an indicator.
    frequencies : dict of int to ndarray
        For the position of each column of many categories, the log frequency of every
        code.

    References
    ----------
    Holzmueller, Grinsztajn & Steinwart (2024), Better by default (RealMLP).
    """

    median: Float64Array
    scale: Float64Array
    with_gaps: NDArray[np.intp]
    indicators: dict[int, Float64Array]
    frequencies: dict[int, Float64Array]

    @classmethod
    def learn(cls, encoded: Float64Array, categories: list[int]) -> DenseInputs:
        """Learn from encoded rows, shape (n, p), NaN where missing."""
        gaps = np.isnan(encoded)
        filled = np.where(gaps.all(axis=0), 0.0, encoded)
        low, q1, median, q3, high = np.nanquantile(
            filled, [0.0, 0.25, 0.5, 0.75, 1.0], axis=0
        )
        scale = np.where(q3 > q1, q3 - q1, 0.5 * (high - low))
        # A column that varies only by rounding counts as constant.
        flat = high - low <= 1e-12 * np.maximum(np.abs(high), np.abs(low))
        scale = np.where(flat, np.inf, scale)
        indicators, frequencies = {}, {}
        for j in categories:
            codes, counts = np.unique(
                encoded[~gaps[:, j], j].astype(np.intp), return_counts=True
            )
            frequent = np.sort(np.argsort(-counts, kind="stable")[:_MOST_INDICATORS])
            indicators[j] = codes[frequent].astype(np.float64)
            if len(codes) > _MOST_INDICATORS:
                logs = np.zeros(codes.max() + 1)
                logs[codes] = np.log(counts * len(codes) / counts.sum())
                frequencies[j] = logs
        return cls(median, scale, np.flatnonzero(gaps.any(0)), indicators, frequencies)

    def transform(self, encoded: Float64Array) -> Float64Array:
        """Return the inputs of encoded rows, shape (n, q)."""
        gaps = np.isnan(encoded)
        # Outliers of any size do not move the median and the quartiles.
        z = np.where(gaps, 0.0, (encoded - self.median) / self.scale)
        numbers = np.delete(z, list(self.indicators), axis=1)
        numbers = numbers / np.sqrt(1.0 + (numbers / _BOUND) ** 2)
        parts = [numbers, gaps[:, self.with_gaps]]
        parts += [encoded[:, [j]] == codes for j, codes in self.indicators.items()]
        for j, logs in self.frequencies.items():
            codes = np.where(gaps[:, j], 0.0, encoded[:, j]).astype(np.intp)
            parts.append(np.where(gaps[:, j], 0.0, logs[codes])[:, None])
        return np.hstack(parts)

    def narrow(self, encoded: Float64Array) -> Float64Array:
        """Return encoded rows for learners that read them in single precision.

        Columns that would lose too much are moved and scaled. All others stay as they
        are.
        """
        far = np.abs(self.median) > _FAR * self.scale
        odd = (self.scale < _LEAST) | (np.isfinite(self.scale) & (self.scale > _MOST))
        if not (far | odd).any() and not (np.abs(encoded) > _GREATEST).any():
            return encoded
        moved = encoded - np.where(far | odd, self.median, 0.0)
        unit = np.where(far | odd, self.scale, 1.0)
        return np.clip(moved / unit, -_GREATEST, _GREATEST)
