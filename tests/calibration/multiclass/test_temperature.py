"""The root of one slope, against a search that knows no derivative."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from calibration.multiclass.temperature import find_inverse_temperature
from tests.calibration.multiclass.draws import draw


@pytest.mark.parametrize("size", [1e-3, 0.3, 1.0, 50.0])
def test_is_the_least_cross_entropy(size, rng):
    p, y = draw(rng, 200)
    weight = rng.integers(1, 4, size=200).astype(float)
    z = size * np.log(p)

    def loss(u):
        return -weight @ log_softmax(np.exp(u) * z, axis=1)[np.arange(200), y]

    truth = minimize_scalar(loss, bounds=(-16.0, 16.0), options={"xatol": 1e-10})
    found = find_inverse_temperature(z.T.copy(), y, weight)
    assert np.log(found) == pytest.approx(truth.x, abs=1e-5)
    # In u the loss is flat to rounding nearby; its slope is not.
    answer = np.exp(log_softmax(found * z, axis=1))
    slope = weight @ ((answer * z).sum(axis=1) - z[np.arange(200), y])
    assert abs(slope) < 1e-6 * np.abs(z).max()


def test_constant_scores_have_any_temperature():
    z = np.zeros((3, 10))
    found = find_inverse_temperature(z, np.arange(10) % 3, np.ones(10))
    assert np.isfinite(found)
    assert found > 0.0


def test_scores_far_out_have_no_overflow():
    z = np.array([[0.0, -1e60, -1e60], [-1e60, 0.0, 0.0]])
    found = find_inverse_temperature(z, np.array([0, 1, 0]), np.ones(3))
    assert found == pytest.approx(np.exp(-16.0), rel=1e-2)
