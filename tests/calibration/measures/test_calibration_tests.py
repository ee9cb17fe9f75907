"""The test by cumulative differences beside brute force, and its level."""

import math

import numpy as np
import pytest

from calibration import cumulative_calibration_test
from calibration.measures.calibration_errors import _range_tail


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
