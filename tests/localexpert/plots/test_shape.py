"""How a forecast is split into density, spikes and steps."""

import numpy as np
import pytest
from scipy.integrate import trapezoid

from localexpert import PredictiveDistribution
from localexpert.plots.forecast import ForecastShape
from tests.forecasts import beside, normal, of_values


def test_the_density_leaves_out_the_spikes():
    smooth = normal([1.0], 0.7)
    shape = ForecastShape.of(beside(smooth, [0.0], [[0.3]], [0.01]), 0)
    at_zero = shape.density(np.array([0.0]))[0]
    assert at_zero == pytest.approx(0.7 * smooth.pdf(0.0)[0], rel=1e-9)
    x = shape.grid(-3.0, 9.0)
    area = trapezoid(shape.density(x), x)
    assert area == pytest.approx(1.0 - shape.masses[0], abs=1e-3)


def test_the_window_holds_99_percent_and_what_it_must(smooth):
    shape = ForecastShape.of(smooth, 10)
    low, high = shape.window()
    assert smooth.cdf(low)[10] < 0.005
    assert smooth.cdf(high)[10] > 0.995
    assert shape.window([None, 50.0])[1] > 50.0
    assert shape.window([None, 50.0])[0] < low


def test_the_window_of_one_value():
    one = of_values([7.0], [[1.0]])
    shape = ForecastShape.of(one, 0)
    low, high = shape.window()
    assert low < 7.0 < high
    assert shape.grid(low, high).tolist() == [7.0]


def test_long_tails_are_cut(rng):
    dist = PredictiveDistribution.from_samples([rng.standard_t(2, size=4000) ** 3])
    low, high = ForecastShape.of(dist, 0).window()
    q = dist.quantiles([0.005, 0.1, 0.9, 0.995])[0]
    assert q[3] - q[0] > 7.0 * (q[2] - q[1])
    assert high - low == pytest.approx(1.1 * 7.0 * (q[2] - q[1]))


def test_steps_jump_where_the_cdf_does(smooth, mixed):
    x = np.linspace(-1.0, 4.0, 7)
    at, level = ForecastShape.of(smooth, 5).steps(x)
    np.testing.assert_array_equal(at, x)
    np.testing.assert_array_equal(level, smooth.cdf_at(x)[5])
    at, level = ForecastShape.of(mixed, 59).steps(x)
    (here,) = np.nonzero(at == 0.0)
    assert len(here) == 2
    assert np.diff(level[here])[0] == pytest.approx(0.6)
    np.testing.assert_array_equal(level[1::2], mixed.cdf_at(at[1::2])[59])
