"""Tests of calibration and the kernel error beside brute force and their levels."""

import math

import numpy as np
import pytest

from calibration.measures import (
    cumulative_calibration_test,
    kernel_calibration_error,
    kernel_calibration_test,
)
from calibration.measures.calibration_tests import _range_tail


def draw(rng, n=300, k=3):
    p = rng.dirichlet(np.ones(k), size=n)
    return (rng.uniform(size=(n, 1)) > p.cumsum(axis=1)).sum(axis=1), p


def test_the_error_is_the_worst_interval_of_forecasts(rng):
    p = rng.uniform(size=40).round(1)
    y = rng.integers(0, 2, size=40)
    w = rng.integers(0, 3, size=40)
    worst = 0.0
    for low in np.unique(p):
        for high in np.unique(p):
            inside = (p >= low) & (p <= high)
            worst = max(worst, abs((w * (y - p))[inside].sum()) / w.sum())
    test = cumulative_calibration_test(y, p, sample_weight=w)
    assert test.error == pytest.approx(worst, rel=1e-12)
    sigma = math.sqrt((w * p * (1.0 - p)).sum()) / w.sum()
    assert test.statistic == pytest.approx(worst / sigma, rel=1e-12)


def test_cumulative_by_hand():
    # Steps -1/4, 1/2: the walk 0, -1/8, 1/8 has range 1/4.
    test = cumulative_calibration_test([0, 1], [0.25, 0.5])
    assert test.error == 0.25
    assert test.statistic == pytest.approx(0.5 / math.sqrt(3 / 16 + 1 / 4))


@pytest.mark.parametrize("x", [0.2, 0.7, 1.0, 1.9, 2.0, 2.1, 2.5, 4.0])
def test_the_range_of_brownian_motion(x):
    squares = ((np.arange(400) + 0.5) * np.pi) ** 2
    terms = (8.0 / x**2 + 2.0 / squares) * np.exp(-2.0 * squares / x**2)
    assert _range_tail(x) == pytest.approx(1.0 - terms.sum(), abs=1e-13)


def test_the_tail_of_the_range():
    # Its 95 % point, and a tail far beyond what 1 - P resolves.
    assert _range_tail(2.4977) == pytest.approx(0.05, abs=1e-5)
    assert _range_tail(12.0) == pytest.approx(8.0 * 1.776482112077679e-33, rel=1e-9)
    assert _range_tail(0.0) == _range_tail(1e-200) == _range_tail(0.0501) == 1.0


@pytest.mark.parametrize(("n", "least", "most"), [(1000, 0.037, 0.051)])
def test_the_level_of_the_cumulative_test(n, least, most, rng):
    p = np.sort(rng.beta(1.0, 2.0, size=n))
    rejected = [
        cumulative_calibration_test(rng.uniform(size=n) < p, p).p_value <= 0.05
        for _ in range(4000)
    ]
    assert least < np.mean(rejected) < most


@pytest.mark.slow
def test_the_level_of_the_cumulative_test_of_many_rows(rng):
    p = np.sort(rng.beta(1.0, 2.0, size=20_000))
    p_values = np.array(
        [
            cumulative_calibration_test(rng.uniform(size=len(p)) < p, p).p_value
            for _ in range(4000)
        ]
    )
    for level in (0.01, 0.05, 0.1, 0.5):
        spread = 4.0 * math.sqrt(level * (1.0 - level) / len(p_values))
        assert abs((p_values <= level).mean() - level) < spread


def test_certain_forecasts():
    test = cumulative_calibration_test([0, 1], [0.0, 1.0])
    assert (test.error, test.statistic, test.p_value) == (0.0, 0.0, 1.0)
    test = cumulative_calibration_test([0, 0], [0.0, 1.0])
    assert (test.error, test.statistic, test.p_value) == (0.5, math.inf, 0.0)


def test_one_row_is_not_enough_to_reject():
    assert cumulative_calibration_test([1], [0.5]).p_value > 0.2


def test_the_kernel_test_knows_its_error_and_repeats_itself(rng):
    y, p = draw(rng)
    test = kernel_calibration_test(y, p, random_state=7)
    assert test.error == kernel_calibration_error(y, p)
    assert kernel_calibration_test(y, p, random_state=7) == test


def test_the_level_of_the_kernel_test(rng):
    options = {"n_resamples": 39, "random_state": rng}
    found = [kernel_calibration_test(*draw(rng, 60), **options) for _ in range(500)]
    # Four standard errors are .054.
    assert abs(np.mean([test.p_value <= 0.1 for test in found]) - 0.1) < 0.054


def test_weights_are_rows_to_the_kernel_test(rng):
    y, p = draw(rng, 40)
    weight = rng.integers(0, 4, size=40)
    options = {"random_state": 1, "n_resamples": 50}
    weighted = kernel_calibration_test(y, p, sample_weight=weight, **options)
    repeated = kernel_calibration_test(
        np.repeat(y, weight), np.repeat(p, weight, axis=0), **options
    )
    assert weighted.p_value == repeated.p_value
    # Halves of rows are drawn as such.
    halves = kernel_calibration_test(y, p, sample_weight=weight + 0.5, **options)
    assert 0.0 < halves.p_value <= 1.0


def test_sharp_forecasts_are_found_out(rng):
    y, p = draw(rng, 2000)
    sharp = p**4 / (p**4).sum(axis=1, keepdims=True)
    options = {"random_state": 0, "n_resamples": 99}
    assert kernel_calibration_test(y, sharp, **options).p_value <= 0.02
    ones = y == 1
    test = kernel_calibration_test(ones, sharp[:, 1], **options)
    assert test.p_value <= 0.02
    assert cumulative_calibration_test(ones, sharp[:, 1]).p_value < 0.01


def test_certain_forecasts_of_several_classes():
    p = np.eye(3)[[0, 1, 2, 0]]
    options = {"random_state": 0}
    assert kernel_calibration_test([0, 1, 2, 0], p, **options).p_value == 1.0
    wrong = kernel_calibration_test([1, 1, 1, 1], np.eye(3)[[0] * 4], **options)
    assert wrong.error == pytest.approx(2.0)
    assert wrong.p_value < 0.01


def test_label_vectors_beyond_one_chunk(rng, monkeypatch):
    y, p = draw(rng, 50)
    monkeypatch.setattr("calibration.measures.calibration_tests._CHUNK", 1000)
    test = kernel_calibration_test(y, p, n_resamples=20, random_state=0)
    assert (test.p_value * 21.0) == pytest.approx(round(test.p_value * 21.0))


def multiply(y, p, i, j, bandwidth):
    """Return h of two rows."""
    first, second = -p[i].copy(), -p[j].copy()
    first[y[i]] += 1.0
    second[y[j]] += 1.0
    return math.exp(-np.linalg.norm(p[i] - p[j]) / bandwidth) * float(first @ second)


def draw_labels(rng, n=40, k=3):
    return rng.integers(0, k, size=n), rng.dirichlet(np.ones(k), size=n)


def median_distance(p):
    return np.median(
        [np.linalg.norm(p[i] - p[j]) for i in range(len(p)) for j in range(i)]
    )


def test_quadratic_is_the_mean_over_pairs(rng):
    y, p = draw_labels(rng)
    scale = median_distance(p)
    pairs = [multiply(y, p, i, j, scale) for i in range(len(y)) for j in range(i)]
    assert kernel_calibration_error(y, p) == pytest.approx(np.mean(pairs), rel=1e-12)
    pairs = [multiply(y, p, i, j, 0.1) for i in range(len(y)) for j in range(i)]
    found = kernel_calibration_error(y, p, bandwidth=0.1)
    assert found == pytest.approx(np.mean(pairs), rel=1e-12)


def test_pairs_of_one_row_with_its_repetitions_count(rng):
    y, p = draw_labels(rng, 10)
    weight = np.array([3, 1, 0, 2, 1, 1, 4, 1, 1, 1])
    found = kernel_calibration_error(y, p, sample_weight=weight, bandwidth=0.5)
    rows = np.repeat(np.arange(10), weight)
    pairs = [multiply(y, p, i, j, 0.5) for a, i in enumerate(rows) for j in rows[:a]]
    assert found == pytest.approx(np.mean(pairs), rel=1e-12)


def test_distances_that_underflow_are_no_bandwidth_of_zero():
    y = np.array([1, 1, 0, 0, 0])
    chances = np.array([5e-324, 1e-300, 1e-310, 0.0, 0.2])
    p = np.column_stack([1.0 - chances, chances])
    # Four forecasts are one, and the fifth is far from them.
    pairs = [multiply(y, p, i, j, 1e-9) for i in range(5) for j in range(i)]
    found = kernel_calibration_error(y, chances)
    assert found == pytest.approx(np.mean(pairs), rel=1e-12)
    assert kernel_calibration_error(y, chances, bandwidth=5e-324) == found


def test_is_unbiased(rng):
    p = rng.dirichlet(np.ones(3), size=30)
    draws = rng.uniform(size=(2000, 30, 1)) > p.cumsum(axis=1)
    labels = draws.sum(axis=2)
    found = [kernel_calibration_error(y, p, bandwidth=0.5) for y in labels]
    assert abs(np.mean(found)) < 4.0 * np.std(found) / math.sqrt(len(found))


def test_by_hand():
    # Two rows of (1/2, 1/2) and labels that are equal: e'e = 1/2; unequal: -1/2.
    half = [[0.5, 0.5], [0.5, 0.5]]
    assert kernel_calibration_error([0, 0], half) == pytest.approx(0.5)
    assert kernel_calibration_error([0, 1], half) == pytest.approx(-0.5)
    # Certain and wrong, alike: |e|^2 = 2.
    wrong = [[0.0, 1.0], [0.0, 1.0]]
    assert kernel_calibration_error([0, 0], wrong) == pytest.approx(2.0)
    assert kernel_calibration_error([1, 1], wrong) == 0.0


def test_rows_beyond_one_chunk(rng, monkeypatch):
    y, p = draw_labels(rng, 100)
    whole = kernel_calibration_error(y, p)
    monkeypatch.setattr("calibration.measures.calibration_tests._CHUNK", 700)
    assert kernel_calibration_error(y, p) == pytest.approx(whole, rel=1e-12)


def test_the_median_of_many_rows_is_that_of_some(rng):
    y, p = draw_labels(rng, 1500)
    scale = median_distance(p[:600])
    near = kernel_calibration_error(y, p, bandwidth=scale)
    assert kernel_calibration_error(y, p) == pytest.approx(near, rel=0.05)


@pytest.mark.parametrize("weight", [[1, 0], [0.4, 0.6]])
def test_one_row_has_no_pairs(weight):
    with pytest.raises(ValueError, match="`y_true` must hold more than one row"):
        kernel_calibration_error([0, 1], [0.5, 0.2], sample_weight=weight)
