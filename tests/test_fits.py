"""Default fits on targets that once had wrong forecasts: all scores are finite."""

import numpy as np
import pytest
from scipy.special import expit

import localexpert

SQRT, LOG = (np.sqrt, np.square), (np.log1p, np.expm1)


def forecast(draw, **given):
    """Return forecasts of 100 rows of a fit to 300, and the targets of the fit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = draw(rng, X[:, 0])
    model = localexpert.LocalExpertRegressor(random_state=0, n_jobs=1, **given)
    return model.fit(X, y).predict_dist(rng.normal(size=(100, 2))), y


def skewed(rng, x):
    return np.exp(0.8 * x + 1.5 * rng.normal(size=len(x)))


def counts(rng, x):
    mu = 100.0 * np.exp(0.3 * x)
    return rng.negative_binomial(1.5, 1.5 / (1.5 + mu)).astype(np.float64)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "outcomes"),
    [
        (skewed, [0.0]),
        # Some are met in training.
        (lambda rng, x: np.where(np.arange(len(x)) < 2, 0.0, skewed(rng, x)), [0.0]),
        (lambda rng, x: expit(x - 2.5 + rng.normal(size=len(x))), [0.0, 1.0]),
        (counts, [0.0, 5000.0]),
        (lambda rng, x: 15.0 + 2.4 * x + 3.2 * rng.normal(size=len(x)), [-1.0, 40.0]),
    ],
    ids=["no zeros", "zeros", "shares", "counts", "temperatures"],
)
def test_outcomes_never_met_have_a_log_score(draw, outcomes):
    dist, _ = forecast(draw)
    assert np.isfinite(dist.logpdf(np.array(outcomes)[:, None])).all()


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [[SQRT], [SQRT, LOG]])
def test_roads_of_functions_of_functions_have_moments(pairs):
    road = localexpert.FrameRoad()
    for pair in pairs:
        road = localexpert.Transformed(road, *pair)
    dist, y = forecast(
        lambda rng, x: rng.gamma(0.6, np.exp(0.5 * x)), roads=road, bounds=None
    )
    assert ((dist.mean() > 0.0) & (dist.mean() < y.max())).all()
    assert np.isfinite(dist.std()).all()
    np.testing.assert_allclose(dist.cdf(1e12), 1.0, rtol=0.0, atol=1e-9)
    quantiles = dist.quantiles([1e-12, 1e-6, 0.01, 0.5, 0.99, 1.0 - 1e-6])
    assert np.isfinite(quantiles).all()
    assert (np.diff(quantiles) > -1e-9).all()


def test_a_target_of_few_digits_is_fitted_or_refused_by_name():
    def few_digits(rng, x):
        return 2.0**60 + 1000.0 * (x + rng.normal(size=len(x)))

    try:
        dist, y = forecast(few_digits, effort="quick")
    except ValueError as error:
        assert "`y`" in str(error)  # noqa: PT017
    else:
        assert ((dist.mean() >= y.min()) & (dist.mean() <= y.max())).all()
        assert ((dist.std() > 100.0) & (dist.std() < 1e4)).all()
