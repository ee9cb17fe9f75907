"""Dirichlet-process mixtures as a calibrator."""

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from calibration import DPMCalibrator
from calibration.densities import dpm as module


@pytest.fixture
def data(rng):
    """Class 0 is a mixture of two, class 1 is one normal."""
    n = 4000
    y = np.arange(n) % 2
    left = rng.uniform(size=n) < 0.3
    mixed = np.where(left, rng.normal(-2.0, 0.5, n), rng.normal(1.0, 1.0, n))
    return np.where(y == 1, rng.normal(3.0, 0.8, n), mixed), y


def test_recovers_a_known_mixture(data):
    x, y = data
    fitted = DPMCalibrator(scale="real").fit(x, y)
    assert (fitted.weights_ > 0.01).sum(axis=1).tolist() == [2, 1]
    np.testing.assert_allclose(fitted.weights_[0, :2], [0.7, 0.3], atol=0.03)
    np.testing.assert_allclose(fitted.means_[0, :2], [1.0, -2.0], atol=0.1)
    np.testing.assert_allclose(fitted.scales_[0, :2], [1.0, 0.5], atol=0.07)
    # Each step raises the bound, or leaves it but for rounding.
    assert all((np.diff(bounds) > -1e-9).all() for bounds in fitted.lower_bounds_)
    grid = np.linspace(-6.0, 8.0, 1401)
    truth0 = 0.3 * norm.pdf(grid, -2.0, 0.5) + 0.7 * norm.pdf(grid, 1.0, 1.0)
    truth1 = norm.pdf(grid, 3.0, 0.8)
    posterior = truth1 / (truth0 + truth1)
    inside = (grid > x.min()) & (grid < x.max())
    gaps = (fitted.predict(grid) - posterior)[inside]
    assert np.sqrt(np.mean(gaps**2)) < 0.03


def test_prediction_is_bayes_rule_on_student_mixtures(data):
    x, y = data
    fitted = DPMCalibrator(5, 0.3, scale="real").fit(x, y)
    assert fitted.weights_.shape == fitted.means_.shape == (2, 5)
    np.testing.assert_allclose(fitted.weights_.sum(axis=1), 1.0, rtol=1e-12)
    grid = np.linspace(x.min(), x.max(), 50)
    parts = fitted.degrees_of_freedom_, fitted.means_, fitted.scales_, fitted.weights_
    densities = [
        student.pdf(grid[:, None], freedoms, means, scales) @ weights
        for freedoms, means, scales, weights in zip(*parts, strict=True)
    ]
    log_odds = fitted.prior_log_odds_ + np.log(densities[1] / densities[0])
    np.testing.assert_allclose(fitted.predict_log_odds(grid), log_odds, atol=1e-9)
    assert fitted.prior_log_odds_ == pytest.approx(0.0, abs=0.05)
    assert fitted.predict(x).mean() == pytest.approx(0.5, abs=1e-9)


def test_groups_change_little(data, monkeypatch):
    x, y = data
    grouped = DPMCalibrator(scale="real").fit(x, y).predict(x)
    monkeypatch.setattr(module, "_GROUPS", 10_000)
    by_rows = DPMCalibrator(scale="real").fit(x, y).predict(x)
    assert abs(grouped - by_rows).max() < 0.01
    assert abs(grouped - by_rows).max() > 0.0


def test_groups_keep_weight_mean_and_square(rng, monkeypatch):
    monkeypatch.setattr(module, "_GROUPS", 20)
    place, weight = np.sort(rng.normal(size=500)), rng.uniform(size=500)
    weight[::7] = 0.0
    total, mean, variance = module._group_rows(place, weight)
    assert len(total) == 20
    assert total.sum() == pytest.approx(weight.sum())
    assert total @ mean == pytest.approx(weight @ place)
    assert total @ (variance + mean**2) == pytest.approx(weight @ place**2)


def test_concentration_is_shared_out_by_the_base_rate():
    """The base measure has the weight of its rows: alpha r_k in n_k + alpha r_k."""
    x = np.concatenate([np.full(30, -1.0), np.full(10, 1.0)])
    y = np.repeat([0, 1], [30, 10])
    fitted = DPMCalibrator(concentration=3.0, scale="real").fit(x, y)
    for k, n in ((0, 30), (1, 10)):
        share = 3.0 * (n + 1) / 42
        outside = 1.0 - fitted.weights_[k, 0]
        assert outside == pytest.approx(share / (1 + n + share), rel=0.01)
