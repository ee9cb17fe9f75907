"""The root of one slope, against a search that knows no derivative."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from calibration import SoftmaxCalibrator, TemperatureCalibrator
from calibration.multiclass.softmax_map import find_inverse_temperature
from tests.calibration.multiclass.draws import draw, temperature_ridge


@pytest.mark.parametrize("size", [1e-3, 0.3, 1.0, 50.0])
def test_is_the_least_cross_entropy(size, rng):
    p, y = draw(rng, 200)
    weight = rng.integers(1, 4, size=200).astype(float)
    z = size * np.log(p)

    def loss(u):
        cross = -weight @ log_softmax(np.exp(u) * z, axis=1)[np.arange(200), y]
        return cross + temperature_ridge(np.exp(u), z, weight)

    truth = minimize_scalar(loss, bounds=(-16.0, 16.0), options={"xatol": 1e-10})
    found = find_inverse_temperature(z.T.copy(), y, weight)
    assert np.log(found) == pytest.approx(truth.x, abs=1e-5)
    # In u the loss is flat to rounding nearby; its slope is not.
    answer = np.exp(log_softmax(found * z, axis=1))
    slope = weight @ ((answer * z).sum(axis=1) - z[np.arange(200), y])
    # The ridge is quadratic: its slope by differences is exact.
    slope += temperature_ridge(found + 0.5, z, weight) - temperature_ridge(
        found - 0.5, z, weight
    )
    assert abs(slope) < 1e-6 * np.abs(z).max()


def test_constant_scores_have_any_temperature():
    z = np.zeros((3, 10))
    found = find_inverse_temperature(z, np.arange(10) % 3, np.ones(10))
    assert np.isfinite(found)
    assert found > 0.0


def test_scores_far_out_have_no_overflow():
    z = np.array([[0.0, -1e60, -1e60], [-1e60, 0.0, 0.0]])
    found = find_inverse_temperature(z, np.array([0, 1, 0]), np.ones(3))
    # Two of three are right, whatever the size of the scores.
    assert found * 1e60 == pytest.approx(np.log(2.0))


def test_separable_scores_keep_a_finite_temperature():
    z = np.log(np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]).T)
    found = find_inverse_temperature(z, np.array([0, 1, 0]), np.ones(3))
    # The end of the bracket would be 9 million.
    assert 1.0 < found < 50.0


@pytest.mark.parametrize("power", [0.3, 1.0, 4.0])
def test_two_classes_are_the_binary_temperature(power, rng):
    p, y = draw(rng, 500, 2, power)
    w = rng.integers(0, 4, size=500)
    many = SoftmaxCalibrator("temperature").fit(p, y, w)
    two = TemperatureCalibrator().fit(p[:, 1], y, w)
    np.testing.assert_allclose(many.predict(p)[:, 1], two.predict(p[:, 1]), atol=1e-10)
    z = np.log(p)
    two = TemperatureCalibrator(scale="logit").fit(z[:, 1] - z[:, 0], y, w)
    many = SoftmaxCalibrator("temperature", scale="logit").fit(z, y, w)
    np.testing.assert_allclose(
        many.inverse_temperature_, two.inverse_temperature_, rtol=1e-9
    )


@pytest.mark.parametrize("size", [1e3, 1e9, 1e40])
def test_logits_of_any_size_have_their_temperature(size, rng):
    p, y = draw(rng, 500, 3)
    z = np.log(p).T.copy()
    found = find_inverse_temperature(size * z, y, np.ones(500))
    assert found * size == pytest.approx(
        find_inverse_temperature(z, y, np.ones(500)), rel=1e-2
    )
