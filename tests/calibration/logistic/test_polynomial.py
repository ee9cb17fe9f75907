"""Platt, logistic, quadratic and temperature against independent fits.

Beta calibration against a constrained optimiser and known densities.
"""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import beta
from sklearn.calibration import _SigmoidCalibration
from sklearn.linear_model import LogisticRegression

import calibration
from calibration.base.log_odds import limit_pull


@pytest.fixture
def data(rng):
    x = np.round(3 * rng.normal(size=500), 2)
    y = (rng.uniform(size=500) < expit(0.6 * x - 0.5)).astype(int)
    return x, y, rng.uniform(0.1, 2, 500)


def test_platt_is_sklearns_sigmoid_on_real_scores(data):
    x, y, _ = data
    theirs = _SigmoidCalibration().fit(x, y)
    ours = calibration.PlattCalibrator(scale="real").fit(x, y)
    np.testing.assert_allclose(ours.predict(x), theirs.predict(x), atol=1e-5)
    assert ours.coef_[0] == pytest.approx(-theirs.a_, rel=1e-4)


@pytest.mark.parametrize("n", [500, 30_000])
def test_logistic_without_penalty_is_logistic_regression(n, rng):
    """The warm start on condensed cells, if there are many, does not show."""
    x, weight = rng.normal(size=n), rng.uniform(0.1, 2, n)
    y = rng.uniform(size=n) < expit(2 * x + 1)
    theirs = LogisticRegression(C=np.inf, tol=1e-10).fit(x[:, None], y, weight)
    ours = calibration.LogisticCalibrator(penalty=0.0, scale="real").fit(x, y, weight)
    want = [theirs.coef_[0, 0], theirs.intercept_[0]]
    np.testing.assert_allclose([ours.coef_[0], ours.intercept_], want, rtol=1e-5)


@pytest.mark.parametrize("scale", ["logit", "real"])
@pytest.mark.parametrize(
    "cls", [calibration.LogisticCalibrator, calibration.QuadraticCalibrator]
)
def test_penalty_is_the_documented_one(data, cls, scale):
    x, y, weight = data
    quadratic = cls is calibration.QuadraticCalibrator
    # The square of a real score is that of its distance from the mean.
    middle = np.average(x, weights=weight) * (quadratic and scale == "real")
    columns = np.stack([x - middle, (x - middle) ** 2])[: cls._degree]
    covariance = np.cov(columns, aweights=weight, ddof=0)
    spread = np.sqrt(np.diag(np.atleast_2d(covariance)))
    prior = np.array([float(scale == "logit"), 0.0])[: cls._degree]
    # No more against a slope of 0 than a deviation of 2 would have.
    far = np.maximum(spread * prior / 2.0, 1.0)
    ridge = 30.0 / far**2

    def loss(theta):
        f = theta[0] + theta[1:] @ columns
        nll = weight @ (np.logaddexp(0, f) - y * f)
        return nll + 0.5 * (ridge * (spread * (theta[1:] - prior)) ** 2).sum()

    best = minimize(loss, np.zeros(len(columns) + 1), method="BFGS", tol=1e-12)
    ours = cls(penalty=30.0, scale=scale).fit(x, y, weight)
    got = np.concatenate([[ours.intercept_], ours.coef_])
    np.testing.assert_allclose(got, best.x, atol=2e-5)


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_two_scores_tell_no_curvature(penalty):
    y = np.repeat([0, 1, 0, 1], [35, 15, 12, 38])
    for pair in [(0.2, 0.8), (0.1, 0.9), (0.2, 0.801)]:
        fits = [
            cls(penalty).fit(np.repeat(pair, 50), y).predict([pair[0], 0.5, pair[1]])
            for cls in (calibration.LogisticCalibrator, calibration.QuadraticCalibrator)
        ]
        np.testing.assert_allclose(fits[0], fits[1], atol=0.003)


def test_temperature_is_the_best_single_factor(data):
    x, y, weight = data

    def loss(a):
        return weight @ (np.logaddexp(0, a[0] * x) - y * a[0] * x)

    best = minimize(loss, np.ones(1), tol=1e-12).x[0]
    ours = calibration.TemperatureCalibrator(scale="logit").fit(x, y, weight)
    assert ours.inverse_temperature_ == pytest.approx(best, rel=1e-4)
    assert ours.temperature_ == pytest.approx(1 / best, rel=1e-4)


def test_temperature_never_turns_the_order_round(data):
    x, y, _ = data
    reversed_ = calibration.TemperatureCalibrator(scale="logit").fit(-x, y)
    assert reversed_.inverse_temperature_ == 0.0
    assert reversed_.temperature_ == np.inf
    assert reversed_.predict([3.0]).tolist() == [0.5]


@pytest.mark.parametrize(
    "name", ["logistic", "quadratic", "temperature", "beta", "piecewise"]
)
def test_bold_log_odds_are_no_reason_to_do_nothing(name, rng):
    """The pull to doing nothing must not grow with the size of what is pulled."""
    x = rng.normal(size=1000)
    y = rng.uniform(size=1000) < expit(x)
    one = calibration.make_calibrator(name).set_params(scale="logit")
    best = calibration.log_loss(y, one.fit(x, y).predict(x))
    for size in (30.0, 1e3, 1e6, 1e9):
        loss = calibration.log_loss(y, one.fit(size * x, y).predict(size * x))
        assert loss == pytest.approx(best, abs=2e-3)


def test_the_pull_is_two_nats_or_the_ridge_in_nats():
    np.testing.assert_allclose(limit_pull(1.0, np.array([0.0, 2.0, 4.0])), [1, 1, 0.25])
    cost = 0.5 * limit_pull(1e-3, 1e6) * 1e12, 0.5 * limit_pull(10.0, 1e6) * 1e12
    np.testing.assert_allclose(cost, [2.0, 20.0])
    assert limit_pull(1e-3, 60.0) == 1e-3


def nll(theta, scores, y):
    f = theta[0] * np.log(scores) - theta[1] * np.log1p(-scores) + theta[2]
    return (np.logaddexp(0, f) - y * f).sum()


@pytest.mark.parametrize("shape", ["square", "sigmoid", "flat", "falling", "hooked"])
def test_is_the_maximum_likelihood_over_increasing_maps(rng, shape):
    """D12: also where the free optimum has a negative parameter."""
    scores = rng.uniform(0.01, 0.99, 1500)
    truth = {
        "square": scores**2,
        "sigmoid": 1 / (1 + np.exp(-8 * (scores - 0.5))),
        "flat": np.full(1500, 0.3),
        "falling": 1 - scores,
        "hooked": 0.1 + 0.8 * (2 * scores - 1) ** 2 * (scores > 0.5),
    }[shape]
    y = (rng.uniform(size=1500) < truth).astype(int)
    ours = calibration.BetaCalibrator().fit(scores, y)
    bounds = [(0, None), (0, None), (None, None)]
    best = minimize(nll, [1, 1, 0], args=(scores, y), bounds=bounds)
    got = nll([ours.a_, ours.b_, ours.intercept_], scores, y)
    assert got <= best.fun + 0.02
    assert min(ours.a_, ours.b_) >= 0
    assert (np.diff(ours.predict(np.linspace(0, 1, 200))) >= 0).all()


def test_moments_match_each_class_and_use_bayes_rule(rng):
    scores = np.concatenate([rng.beta(2, 5, 4000), rng.beta(6, 3, 2000)])
    y = np.repeat([0, 1], [4000, 2000])
    fitted = calibration.BetaCalibrator("moments").fit(scores, y)
    for k in (0, 1):
        model = beta(*fitted.shapes_[k])
        assert model.mean() == pytest.approx(scores[y == k].mean(), rel=1e-9)
        assert model.var() == pytest.approx(scores[y == k].var(), rel=1e-9)
    points = np.array([0.1, 0.4, 0.8])
    density = [beta(*fitted.shapes_[k]).pdf(points) for k in (0, 1)]
    joint = [4001 / 6002 * density[0], 2001 / 6002 * density[1]]
    np.testing.assert_allclose(fitted.predict(points), joint[1] / (joint[0] + joint[1]))


def test_moments_of_far_log_odds_mirror(rng):
    """The variance near 1 is as exact as that near 0."""
    y = np.arange(400) % 2
    x = rng.normal(100.0 + 0.5 * y, 0.5)
    fitted = calibration.BetaCalibrator("moments", scale="logit")
    weight = rng.uniform(0.1, 10.0, 400)
    p = fitted.fit(x, y, weight).predict([99.0, 101.0])
    mirror = fitted.fit(-x, 1 - y, weight).predict([-99.0, -101.0])
    np.testing.assert_allclose(p, 1.0 - mirror, rtol=1e-9)


@pytest.mark.parametrize(
    ("x", "p"), [([-900, -800, 800, 900], [0, 0, 1, 1]), ([800, 900, 850, 950], 0.5)]
)
def test_moments_of_log_odds_that_round_to_0_or_1(x, p):
    fitted = calibration.BetaCalibrator("moments", scale="logit")
    for sign, y in ((1.0, [0, 0, 1, 1]), (-1.0, [1, 1, 0, 0])):
        found = fitted.fit(sign * np.array(x), y).predict(sign * np.array(x))
        np.testing.assert_allclose(found, p if sign > 0 else 1 - np.array(p))
