"""Nadaraya and Watson's estimator beside its formula, written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calibration import NadarayaWatsonCalibrator


def formula(scores, y, weight, new, h):
    """Eq. 3.1 of the thesis with boxcar densities of the classes; nan: 0/0."""
    joint = np.zeros((2, len(new)))
    for k in (0, 1):
        own = y == k
        prior = weight[own].sum() / weight.sum()
        kernel = 0.5 * (np.abs(new[:, None] - scores[own]) <= h[k])
        joint[k] = prior * (kernel @ weight[own]) / (weight[own].sum() * h[k])
    with np.errstate(invalid="ignore"):
        return joint[1] / joint.sum(axis=0)


def normal_rule(scores, weight):
    """1.06 sd n^(-1/5), the variance divided by n - 1."""
    n = weight.sum()
    mean = weight @ scores / n
    return 1.06 * np.sqrt(weight @ (scores - mean) ** 2 / (n - 1.0)) * n**-0.2


@pytest.mark.parametrize("digits", [2, 6])
@pytest.mark.parametrize("n", [5, 60, 500])
def test_equals_the_formula(rng, n, digits):
    scores = np.round(rng.beta(0.4, 0.4, n), digits)
    y = (rng.uniform(size=n) < scores).astype(int)
    y[:2] = 0, 1
    weight = rng.integers(1, 4, n).astype(float)
    fitted = NadarayaWatsonCalibrator().fit(scores, y, weight)
    assert_allclose(fitted.bandwidths_, normal_rule(scores, weight), rtol=1e-12)
    check_formula(fitted, scores, y, weight, rng)


def check_formula(fitted, scores, y, weight, rng):
    new = np.concatenate([scores, rng.uniform(size=500)])
    truth = formula(scores, y, weight, new, fitted.bandwidths_)
    held = ~np.isnan(truth)
    assert_allclose(fitted.predict(new)[held], truth[held], atol=1e-12)


def test_two_bandwidths_are_bayes_rule_with_two_densities(rng):
    scores, weight = np.round(rng.beta(0.4, 0.4, 300), 3), rng.uniform(0.2, 2.0, 300)
    y = (rng.uniform(size=300) < scores).astype(int)
    own = NadarayaWatsonCalibrator(shared_bandwidth=False).fit(scores, y, weight)
    expected = [normal_rule(scores[y == k], weight[y == k]) for k in (0, 1)]
    assert_allclose(own.bandwidths_, expected, rtol=1e-12)
    check_formula(own, scores, y, weight, rng)
    given = NadarayaWatsonCalibrator((0.0041, 0.1503)).fit(scores, y, weight)
    assert given.bandwidths_.tolist() == [0.0041, 0.1503]
    check_formula(given, scores, y, weight, rng)
    lone = NadarayaWatsonCalibrator(shared_bandwidth=False)
    lone.fit([0.1, 0.2, 0.4, 0.7], [0, 0, 1, 0])
    pooled = normal_rule(np.array([0.1, 0.2, 0.4, 0.7]), np.ones(4))
    assert lone.bandwidths_[1] == pytest.approx(pooled / np.sqrt(2.0))
    with pytest.raises(ValueError, match=r"`bandwidth` must be one number or two"):
        NadarayaWatsonCalibrator((0.1, 0.2, 0.3)).fit(scores, y)


def test_both_ends_of_a_window_are_in_it():
    # Sums of such numbers are exact.
    scores, y = np.array([0.25, 0.5, 0.625]), np.array([1, 0, 1])
    fitted = NadarayaWatsonCalibrator(0.125).fit(scores, y)
    new = np.array([0.125, 0.375, 0.4375, 0.5, 0.625, 0.75])
    truth = formula(scores, y, np.ones(3), new, [0.125, 0.125])
    assert not np.isnan(truth).any()
    assert_array_equal(fitted.predict(new), truth)


def test_beyond_every_window_the_nearest_score_answers():
    scores, y = [0.1, 0.2, 0.8, 0.9], [0, 1, 0, 1]
    fitted = NadarayaWatsonCalibrator(0.01).fit(scores, y)
    # Where two are equally near the greater is taken.
    new = [0.0, 0.14, 0.16, 0.49, 0.51, 0.84, 0.86, 1.0]
    assert_array_equal(fitted.predict(new), [0, 0, 1, 1, 0, 0, 1, 1])


def test_smoothing_adds_rows_at_the_base_rate():
    fitted = NadarayaWatsonCalibrator(0.01, smoothing=2.0)
    fitted.fit([0.1, 0.2, 0.8, 0.9], [0, 1, 0, 0])
    assert_allclose(fitted.predict([0.1, 0.2]), [0.5 / 3.0, 1.5 / 3.0])


def test_light_rows_are_not_lost_beside_heavy_ones(rng):
    scores, y = np.sort(rng.uniform(size=300)), rng.integers(0, 2, 300)
    weight = np.where(scores < 0.3, 1e12, 1e-12) * rng.uniform(0.5, 1.0, 300)
    fitted = NadarayaWatsonCalibrator(0.05).fit(scores, y, weight)
    check_formula(fitted, scores, y, weight, rng)
