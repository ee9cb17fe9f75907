"""Chords beside knots, against loops and scipy."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy.interpolate import CubicHermiteSpline, PchipInterpolator

from localexpert.law.basis import chords_beside, harmonic_slopes, steepest_slopes

KNOTS = np.array([0.0, 1.0, 3.0, 4.0])


def test_the_lesser_chord_is_taken():
    values = np.array([[0.0, 2.0, 3.0, 9.0], [0.0, 1.0, 1.0, 1.0]])
    want = [[2.0, 0.5, 0.5, 6.0], [1.0, 0.0, 0.0, 0.0]]
    assert_array_equal(chords_beside(KNOTS, values), want)
    assert_array_equal(chords_beside(KNOTS, values[0]), want[0])


def test_curves_as_steep_as_they_may_be_increase(rng):
    for _ in range(50):
        values = np.cumsum(rng.exponential(size=4))
        slopes = steepest_slopes(KNOTS, values)
        curve = CubicHermiteSpline(KNOTS, values, slopes)
        assert np.diff(curve(np.linspace(0.0, 4.0, 2001))).min() > -1e-6


def test_harmonic_slopes_are_those_of_pchip(rng):
    values = np.cumsum(rng.exponential(size=(5, 4)), axis=1)
    steps = np.diff(KNOTS)
    want = PchipInterpolator(KNOTS, values, axis=1).derivative()(KNOTS[1:-1])
    assert_allclose(harmonic_slopes(steps, np.diff(values) / steps), want)
