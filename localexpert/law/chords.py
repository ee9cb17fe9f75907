"""Chords of a curve's knots, and how steep a cubic between them may be."""

from __future__ import annotations

import numpy as np

from calibration.typing import Float64Array

# Slopes up to this multiple of both neighbouring chords keep a cubic increasing:
# any pair of them lies inside the circle of radius 3 of Fritsch & Carlson (1980).
STEEPEST = 2.1


def chords_beside(knots: Float64Array, values: Float64Array) -> Float64Array:
    """Return the lesser slope of the chords on both sides of each knot, (..., K).

    Infinite where there is no chord.
    """
    chords = np.diff(values) / np.diff(knots)
    none = np.full((*values.shape[:-1], 1), np.inf)
    before = np.concatenate([none, chords], axis=-1)
    after = np.concatenate([chords, none], axis=-1)
    return np.asarray(np.minimum(before, after))


def harmonic_slopes(steps: Float64Array, chords: Float64Array) -> Float64Array:
    """Return slopes between K chords over so long steps: weighted harmonic means.

    Where chords are positive the Hermite curve with these slopes increases (Fritsch &
    Butland, 1984); chords are (..., K), slopes (..., K - 1).
    """
    before, after = 2.0 * steps[1:] + steps[:-1], steps[1:] + 2.0 * steps[:-1]
    inverse = before / chords[..., :-1] + after / chords[..., 1:]
    return np.asarray((before + after) / inverse)


def steepest_slopes(knots: Float64Array, values: Float64Array) -> Float64Array:
    """Return the greatest slope at each knot that keeps the curve increasing."""
    return STEEPEST * chords_beside(knots, values)
