"""Two normal classes against closed forms and another library."""

import pickle

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

from calibration import CalibrationWarning, ScoreSummary
from calibration.densities.gaussian import GaussianCalibrator


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


def test_is_naive_bayes_with_add_one_priors(data):
    x, y, weight = data
    n0, n1 = weight[y == 0].sum(), weight[y == 1].sum()
    priors = np.array([n0 + 1, n1 + 1]) / (n0 + n1 + 2)
    theirs = GaussianNB(priors=priors, var_smoothing=0.0).fit(x[:, None], y, weight)
    ours = GaussianCalibrator(scale="real").fit(x, y, weight)
    np.testing.assert_allclose(
        ours.predict(x), theirs.predict_proba(x[:, None])[:, 1], atol=1e-12
    )


def test_shared_variance_is_pooled_and_gives_a_line(data):
    x, y, weight = data
    fitted = GaussianCalibrator(shared_variance=True, scale="real").fit(x, y, weight)
    (m0, v0), (m1, v1) = (moments(x, y, weight, k) for k in (0, 1))
    share = weight[y == 1].sum() / weight.sum()
    pooled = (1 - share) * v0 + share * v1
    np.testing.assert_allclose(fitted.variances_, pooled, rtol=1e-12)
    log_odds = fitted.predict_log_odds([-1e6, 0.0, 1e6])
    np.testing.assert_allclose(np.diff(log_odds), 1e6 * (m1 - m0) / pooled, rtol=1e-9)


def test_recovers_two_normal_classes(rng):
    y = (rng.uniform(size=50_000) < 0.4).astype(int)
    x = rng.normal(1.5 * y, 1.0 + 0.5 * y)
    truth = norm.pdf(x, 1.5, 1.5) * 0.4
    truth /= truth + 0.6 * norm.pdf(x, 0.0, 1.0)
    p = GaussianCalibrator(scale="real").fit(x, y).predict(x)
    assert np.sqrt(np.mean((p - truth) ** 2)) < 0.004


def test_probabilities_enter_by_their_log_odds(data):
    x, y, weight = data
    s = 1 / (1 + np.exp(-x))
    by_s = GaussianCalibrator().fit(s, y, weight).predict(s)
    by_x = GaussianCalibrator(scale="logit").fit(x, y, weight).predict(x)
    np.testing.assert_allclose(by_s, by_x, atol=1e-9)


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


@pytest.mark.parametrize("shared", [False, True])
def test_weights_are_repetitions_in_any_order(shared, data, rng):
    x, y, _ = data
    weight = rng.integers(0, 4, 300)
    order = rng.permutation(weight.sum())
    weighted = GaussianCalibrator(shared, scale="real").fit(x, y, weight)
    repeated = GaussianCalibrator(shared, scale="real").fit(
        np.repeat(x, weight)[order], np.repeat(y, weight)[order]
    )
    np.testing.assert_array_equal(weighted.predict(x), repeated.predict(x))


@pytest.mark.parametrize(
    ("scores", "y"), [([0.2, 0.6], [1, 1]), ([0.5, 0.5, 0.5], [0, 1, 0]), ([0.3], [0])]
)
def test_degenerate_data_give_a_smoothed_constant(scores, y):
    with pytest.warns(CalibrationWarning, match="GaussianCalibrator predicts the"):
        fitted = GaussianCalibrator().fit(scores, y)
    expected = (sum(y) + 1) / (len(y) + 2)
    np.testing.assert_allclose(fitted.predict([0.0, 0.5, 1.0]), expected)


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


def test_bad_parameters_are_named():
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\], got 2"):
        GaussianCalibrator().fit([0.1, 2.0], [0, 1])


def test_clone_pickle_and_summary(data):
    x, y, weight = data
    fitted = GaussianCalibrator(True, scale="real").fit(x, y, weight)
    assert clone(fitted).get_params() == {"scale": "real", "shared_variance": True}
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict(x), fitted.predict(x))
    again = clone(fitted).fit_summary(ScoreSummary.from_scores(x, y, weight))
    np.testing.assert_array_equal(again.predict(x), fitted.predict(x))
