"""Losses that forecasts expect of themselves."""

import numpy as np
import pytest
from scipy.stats import norm

from localexpert import pool
from localexpert.distribution.answers import loss_variances
from tests.forecasts import normal, of_values
from tests.localexpert.distribution.contract_cases import CASES, forecast_of


@pytest.mark.parametrize("loss", ["crps", "abs_error"])
@pytest.mark.parametrize("name", ["norm", "gamma2", "rain", "poisson"])
def test_draws_have_the_loss_that_was_expected(name, loss):
    dist = forecast_of(name)
    draws = dist.rvs(4000, 0)
    found = dist.crps(draws) if loss == "crps" else np.abs(draws - dist.median())
    rows = dist.expected_crps() if loss == "crps" else dist.expected_abs_error()
    errors = found.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(found.mean(axis=0) - rows) < 4.0 * errors + 1e-12).all()
    variances = loss_variances(dist.law, loss, rows)
    np.testing.assert_allclose(variances, found.var(axis=0), rtol=0.15, atol=1e-12)


@pytest.mark.parametrize("loss", ["crps", "abs_error"])
def test_the_variance_of_losses_between_two_peaks(loss):
    two = pool([normal(np.zeros(1)), normal(np.full(1, 8.0))], [0.4, 0.6])
    for dist in (normal(np.zeros(1)), two):
        y = dist.ppf((np.arange(100_000) + 0.5)[:, None] / 100_000)
        found = dist.crps(y) if loss == "crps" else np.abs(y - dist.median())
        rows = dist.expected_crps() if loss == "crps" else dist.expected_abs_error()
        variance = loss_variances(dist.law, loss, rows)
        np.testing.assert_allclose(variance, found.var(axis=0), rtol=0.01)


@pytest.mark.parametrize("name", CASES)
def test_the_expected_crps_is_the_mean_over_levels(name):
    dist = forecast_of(name)
    levels = (np.arange(20_000) + 0.5)[:, None] / 20_000
    mean = dist.crps(dist.ppf(levels)).mean(axis=0)
    np.testing.assert_allclose(dist.expected_crps(), mean, rtol=2e-3)


def test_the_interval_is_that_of_a_sum():
    """Of the normal law the mean absolute error is known, and its variance."""
    told = normal(np.zeros(100)).expected_mean("abs_error", coverage=0.9)
    sd = np.sqrt((1.0 - 2.0 / np.pi) / 100)
    assert told.n_rows == 100
    assert told.mean == pytest.approx(np.sqrt(2.0 / np.pi), rel=1e-4)
    assert told.high - told.mean == pytest.approx(norm.ppf(0.95) * sd, rel=0.05)
    assert told.mean - told.low == pytest.approx(told.high - told.mean)


def test_what_is_no_loss_or_level_is_refused():
    dist = of_values([0.0, 1.0], [[0.5, 0.5]])
    with pytest.raises(ValueError, match="`loss` must be one of 'crps', 'abs_error'"):
        dist.expected_mean("rmse")
    with pytest.raises(ValueError, match=r"`coverage` must lie in \(0, 1\)"):
        dist.expected_mean(coverage=1.0)
    with pytest.raises(ValueError, match="needs at least one row, got none"):
        dist[:0].expected_mean()
