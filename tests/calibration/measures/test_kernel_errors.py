import math

import numpy as np
import pytest

from calibration.measures import kernel_calibration_error


def multiply(y, p, i, j, bandwidth):
    """Return h of two rows."""
    first, second = -p[i].copy(), -p[j].copy()
    first[y[i]] += 1.0
    second[y[j]] += 1.0
    return math.exp(-np.linalg.norm(p[i] - p[j]) / bandwidth) * float(first @ second)


def draw(rng, n=40, k=3):
    return rng.integers(0, k, size=n), rng.dirichlet(np.ones(k), size=n)


def median_distance(p):
    return np.median(
        [np.linalg.norm(p[i] - p[j]) for i in range(len(p)) for j in range(i)]
    )


def test_quadratic_is_the_mean_over_pairs(rng):
    y, p = draw(rng)
    scale = median_distance(p)
    pairs = [multiply(y, p, i, j, scale) for i in range(len(y)) for j in range(i)]
    assert kernel_calibration_error(y, p) == pytest.approx(np.mean(pairs), rel=1e-12)
    pairs = [multiply(y, p, i, j, 0.1) for i in range(len(y)) for j in range(i)]
    found = kernel_calibration_error(y, p, bandwidth=0.1)
    assert found == pytest.approx(np.mean(pairs), rel=1e-12)


def test_pairs_of_one_row_with_its_repetitions_count(rng):
    y, p = draw(rng, 10)
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
    y, p = draw(rng, 100)
    whole = kernel_calibration_error(y, p)
    monkeypatch.setattr("calibration.measures.calibration_tests._CHUNK", 700)
    assert kernel_calibration_error(y, p) == pytest.approx(whole, rel=1e-12)


def test_the_median_of_many_rows_is_that_of_some(rng):
    y, p = draw(rng, 1500)
    scale = median_distance(p[:600])
    near = kernel_calibration_error(y, p, bandwidth=scale)
    assert kernel_calibration_error(y, p) == pytest.approx(near, rel=0.05)


@pytest.mark.parametrize("weight", [[1, 0], [0.4, 0.6]])
def test_one_row_has_no_pairs(weight):
    with pytest.raises(ValueError, match="`y_true` must hold more than one row"):
        kernel_calibration_error([0, 1], [0.5, 0.2], sample_weight=weight)
