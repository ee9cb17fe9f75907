"""Two normal classes against closed forms and another library."""

import numpy as np
import pytest
from scipy.stats import norm

from calibration.densities.formulas import GaussianCalibrator


@pytest.fixture
def data(rng):
    y = (rng.uniform(size=300) < 0.3).astype(int)
    x = np.round(rng.normal(2.0 * y - 1.0, 1.0 + y), 1)
    return x, y, rng.uniform(0.1, 2.0, 300)


def moments(x, y, weight, k):
    mean = np.average(x[y == k], weights=weight[y == k])
    return mean, np.average((x[y == k] - mean) ** 2, weights=weight[y == k])


def test_moments_and_posterior_are_the_closed_forms(data):
    x, y, weight = data
    fitted = GaussianCalibrator(scale="real").fit(x, y, weight)
    (m0, v0), (m1, v1) = (moments(x, y, weight, k) for k in (0, 1))
    np.testing.assert_allclose(fitted.means_, [m0, m1], rtol=1e-12)
    np.testing.assert_allclose(fitted.variances_, [v0, v1], rtol=1e-12)
    grid = np.linspace(-6, 6, 101)
    ratio = (weight[y == 1].sum() + 1) / (weight[y == 0].sum() + 1)
    density = norm.logpdf(grid, m1, np.sqrt(v1)) - norm.logpdf(grid, m0, np.sqrt(v0))
    expected = np.log(ratio) + density
    np.testing.assert_allclose(fitted.predict_log_odds(grid), expected, atol=1e-11)


def test_shared_variance_is_pooled_and_gives_a_line(data):
    x, y, weight = data
    fitted = GaussianCalibrator(shared_variance=True, scale="real").fit(x, y, weight)
    (m0, v0), (m1, v1) = (moments(x, y, weight, k) for k in (0, 1))
    share = weight[y == 1].sum() / weight.sum()
    pooled = (1 - share) * v0 + share * v1
    np.testing.assert_allclose(fitted.variances_, pooled, rtol=1e-12)
    log_odds = fitted.predict_log_odds([-1e6, 0.0, 1e6])
    np.testing.assert_allclose(np.diff(log_odds), 1e6 * (m1 - m0) / pooled, rtol=1e-9)


def test_a_class_of_one_score_has_the_variance_of_one_more_row():
    x, y = [0.0, 1.0, 3.0, 2.0, 2.0, 2.0], [0, 0, 0, 1, 1, 1]
    fitted = GaussianCalibrator(scale="real").fit(x, y)
    np.testing.assert_allclose(fitted.variances_, [np.var([0, 1, 3]), np.var(x) / 4])
    shared = GaussianCalibrator(shared_variance=True, scale="real")
    shared.fit([1.0, 1.0, 2.0], [0, 0, 1])
    np.testing.assert_allclose(shared.variances_, np.var([1, 1, 2]) / 4)


@pytest.mark.parametrize("shared", [False, True])
def test_scores_that_the_logit_cannot_tell_apart_give_the_prior(shared):
    fitted = GaussianCalibrator(shared).fit([5e-324, 1e-323, 1e-310], [0, 1, 1])
    np.testing.assert_allclose(fitted.predict([0.0, 0.5, 1.0]), 3 / 5)


@pytest.mark.parametrize("shared", [False, True])
def test_log_odds_are_finite_everywhere(shared, rng):
    fitted = GaussianCalibrator(shared, scale="real")
    y = np.repeat([0, 1], 20)
    for x in (y + 0.1 * rng.normal(size=40), y, 1.0 - y, 1e-3 * y, 1e9 + y):
        far = fitted.fit(x, y).predict_log_odds([-1e300, -50, 0, 1, 50, 1e300])
        assert np.isfinite(far).all()


@pytest.mark.parametrize(
    ("scores", "y", "weight"),
    [
        ([0.0, 0.5], [1, 0], [1e-300, 1e12]),
        ([0.0, 0.0, 1.0], [0, 1, 1], [1.0, 5e-324, 1e-12]),
        ([0.0, 0.0, 1.0], [0, 1, 1], [1.0, 5e-324, 1.0]),
    ],
)
@pytest.mark.filterwarnings("ignore:`sample_weight` counts repetitions")
def test_weights_may_leave_a_class_hardly_any_variance(scores, y, weight):
    p = GaussianCalibrator().fit(scores, y, weight).predict(scores)
    assert ((p >= 0.0) & (p <= 1.0)).all()
