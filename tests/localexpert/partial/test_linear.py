"""Linear models of targets known in part: their likelihood, and the laws they give."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from localexpert.data.folds import make_folds
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.partial.draws import Outcomes
from localexpert.partial.linear import _likelihood, linear_law

INF = np.inf
N = 600


def forecast(lower, upper, columns, **given):
    """Return the forecasts of a linear model out of fold."""
    n = len(lower)
    outcomes = Outcomes.of(lower, upper, given.get("entry"), np.ones(n))
    folds = make_folds(n, 5, random_state=0)
    return PredictiveDistribution(linear_law(outcomes, columns, folds))


@pytest.fixture
def columns(rng):
    return rng.uniform(-1.0, 1.0, size=(N, 3))


@pytest.mark.parametrize("errors", ["normal", "least"])
def test_slopes_of_the_likelihood(errors):
    lower = np.array([0.3, -INF, 0.2, -1.0, 0.5, 0.9])
    upper = np.array([0.3, 0.5, INF, 1.5, 0.5, INF])
    entry = np.array([-INF, -INF, -INF, -INF, 0.1, -0.5])
    ends = np.stack([lower, upper, entry])

    def total(parts):
        mean, log_spread = np.full((2, 6), parts[:, None])
        return float(_likelihood(errors, ends, mean, log_spread)[0].sum())

    parts = np.array([0.2, -0.3])
    found = _likelihood(errors, ends, *np.full((2, 6), parts[:, None]))[1:]
    np.testing.assert_allclose(
        [slope.sum() for slope in found], approx_fprime(parts, total), rtol=1e-5
    )


@pytest.mark.parametrize("least", [False, True])
def test_effects_beyond_limits_are_found(least, columns, rng):
    mean = 1.0 + columns[:, 0] + (columns[:, 1] > 0.0)
    spread = np.exp(-1.0 + 0.5 * columns[:, 2])
    errors = np.log(rng.exponential(size=N)) if least else rng.normal(size=N)
    y = np.exp(mean + spread * errors)
    limit = rng.uniform(1.0, 5.0, N)
    known = y <= limit
    assert known.mean() < 0.6
    inputs = np.column_stack([columns, columns[:, 1] > 0.0])
    dist = forecast(np.minimum(y, limit), np.where(known, y, INF), inputs)
    middle = np.log(np.log(2.0)) if least else 0.0
    off = np.log(dist.median()) - mean - spread * middle
    assert abs(off.mean()) < 0.08
    assert abs(np.polyfit(mean, off, 1)[0]) < 0.15
    assert 0.85 < dist.covered(y, 0.9).mean() < 0.95


def test_bends_are_found(columns, rng):
    y = 3.0 * np.abs(columns[:, 0]) - 2.0 + 0.2 * rng.normal(size=N)
    known = y > -1.0
    lower, upper = np.where(known, y, -INF), np.maximum(y, -1.0)
    off = forecast(lower, upper, columns).median() - 3.0 * np.abs(columns[:, 0]) + 2.0
    assert np.abs(off).mean() < 0.15


def test_counts_go_on_beyond_the_greatest_known(columns, rng):
    y = rng.poisson(np.exp(1.5 + columns[:, 0])).astype(float)
    stock = rng.poisson(5.0, N).astype(float)
    known = y < stock
    dist = forecast(np.minimum(y, stock), np.where(known, y, INF), columns)
    np.testing.assert_array_equal(dist.law.atoms, np.arange(len(dist.law.atoms)))
    assert dist.law.atoms[-1] > y[known].max()
    assert dist.mean().mean() == pytest.approx(y.mean(), rel=0.06)


def test_uneven_values_stay(columns, rng):
    values = np.array([-4.0, 0.0, 1.0, 10.0])
    y = values[np.digitize(columns[:, 0] + 0.3 * rng.normal(size=N), [-0.5, 0.0, 0.5])]
    known = (y < 10.0) | (rng.uniform(size=N) < 0.5)
    dist = forecast(np.where(known, y, 1.0), np.where(known, y, INF), columns)
    np.testing.assert_array_equal(dist.law.atoms, values)


def test_rows_not_seen_count(columns, rng):
    mean = 2.0 * columns[:, 0]
    y = mean + rng.normal(size=N)
    entry = np.full(N, -0.5)
    seen = y > entry
    dist = forecast(y[seen], y[seen], columns[seen], entry=entry[seen])
    assert dist.mean().mean() == pytest.approx(mean[seen].mean(), abs=0.15)
    assert y[seen].mean() > mean[seen].mean() + 0.3


def test_effects_are_found_where_most_rows_share_an_interval(columns, rng):
    y = np.exp(columns[:, 0] + 0.5 * rng.normal(size=N))
    edges = np.array([0.0, *np.quantile(y, [0.85, 0.95]), INF])
    place = np.searchsorted(edges, y) - 1
    dist = forecast(edges[place], edges[place + 1], columns)
    assert np.polyfit(columns[:, 0], np.log(dist.median()), 1)[0] > 0.35


def test_hard_cases_have_finite_laws(columns):
    ends = np.full(N, 3.0)
    few = np.where(np.arange(N) < 2, 3.0, INF)
    for lower, upper in ((ends, few), (ends, ends + 1.0), (0.0 * ends, few)):
        median = forecast(lower, upper, columns).median()
        assert np.isfinite(median).all()
        assert (median >= lower - 1.0).all()
