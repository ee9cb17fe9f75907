"""Maps of normal scores against scipy."""

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline
from scipy.special import log_ndtr, ndtr, ndtri_exp

from localexpert._kernels.score_map import (
    map_levels,
    map_scores,
    tail_score,
    tail_slope,
    unmap_scores,
)

KNOTS = np.array([-2.0, -0.5, 1.0, 2.5])
VALUES = np.array([[-1.5, -0.4, 0.2, 3.0], [-2.5, -1.0, 1.0, 2.0]])
SLOPES = np.array([[0.6, 0.5, 0.7, 1.2], [0.9, 1.1, 0.8, 0.5]])
SCORES = np.tile([-30.0, -5.0, -2.0, -1.1, 0.0, 1.0, 2.2, 2.5, 4.0, 25.0], (2, 1))


def expected(row, s):
    h = CubicHermiteSpline(KNOTS, VALUES[row], SLOPES[row])(np.clip(s, -2.0, 2.5))
    low = log_ndtr(s) + log_ndtr(VALUES[row, 0]) - log_ndtr(KNOTS[0])
    high = log_ndtr(-s) + log_ndtr(-VALUES[row, 3]) - log_ndtr(-KNOTS[3])
    h = np.where(s < -2.0, ndtri_exp(np.minimum(low, 0.0)), h)
    return np.where(s > 2.5, -ndtri_exp(np.minimum(high, 0.0)), h)


def test_curves_and_tails_equal_scipy():
    mapped, log_slopes = map_scores(KNOTS, VALUES, SLOPES, SCORES)
    below, above = map_levels(KNOTS, VALUES, SLOPES, SCORES)
    for row in range(2):
        h = expected(row, SCORES[row])
        np.testing.assert_allclose(mapped[row], h, rtol=1e-10)
        np.testing.assert_allclose(below[row], ndtr(h), rtol=1e-9)
        np.testing.assert_allclose(above[row], ndtr(-h), rtol=1e-9)
        inner = np.abs(SCORES[row] - np.array(KNOTS)[:, None]).min(axis=0) > 1e-3
        s, step = SCORES[row, inner], 1e-5
        slope = (expected(row, s + step) - expected(row, s - step)) / (2.0 * step)
        np.testing.assert_allclose(np.exp(log_slopes[row, inner]), slope, rtol=1e-5)


def test_the_inverse_undoes_the_map():
    mapped, _ = map_scores(KNOTS, VALUES, SLOPES, SCORES)
    back = unmap_scores(KNOTS, VALUES, SLOPES, mapped)
    np.testing.assert_allclose(back, SCORES, rtol=1e-9, atol=1e-9)


def test_one_curve_serves_all_rows_and_ends_stay_ends():
    scores = np.array([[0.3], [-np.inf], [np.inf], [0.3]])
    mapped, log_slopes = map_scores(KNOTS, VALUES[:1], SLOPES[:1], scores)
    assert mapped[0, 0] == mapped[3, 0] == pytest.approx(expected(0, 0.3))
    assert mapped[1, 0] == -np.inf
    assert mapped[2, 0] == np.inf
    assert np.isfinite(log_slopes).all()
    back = unmap_scores(KNOTS, VALUES[:1], SLOPES[:1], mapped)
    np.testing.assert_allclose(back, scores)


@pytest.mark.parametrize("score", [-4.0, 0.0, 1.0])
def test_tail_score_multiplies_a_level(score):
    factor = 1.1
    h = tail_score(score, np.log(factor))
    assert ndtr(h) == pytest.approx(factor * ndtr(score), rel=1e-12)
    step = 1e-6
    rise = tail_score(score + step, np.log(factor)) - h
    assert tail_slope(score, h, -1.0) == pytest.approx(rise / step, rel=1e-4)
