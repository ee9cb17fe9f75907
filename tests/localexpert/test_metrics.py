"""Scores of distributions against plain sums and the sampled definition."""

import numpy as np
import pytest
from scipy.stats import norm

from localexpert import (
    BaseCDF,
    DiscreteLaw,
    DistributionScorer,
    MixedLaw,
    PredictiveDistribution,
    SplineLaw,
    crps_score,
    interval_coverage,
    interval_score,
    log_score,
    pinball_loss,
    pit_test,
    threshold_weighted_crps,
)
from localexpert.laws.pooled_law import PooledLaw


@pytest.fixture
def forecasts(rng):
    """Shifted and scaled marginals, and targets that follow them."""
    base = BaseCDF.fit(rng.normal(size=4000))
    center, scale = rng.normal(size=400), rng.uniform(0.5, 2.0, 400)
    one = np.ones((400, 1))
    dist = PredictiveDistribution(SplineLaw(center, scale, [0.0], 0 * one, one, base))
    return dist, dist.ppf(rng.uniform(size=400)), rng.integers(0, 3, 400).astype(float)


def test_crps_is_twice_the_mean_pinball_loss(forecasts):
    dist, y, weight = forecasts
    levels = (np.arange(2000) + 0.5) / 2000
    pinball = [
        pinball_loss(y, dist, level=level, sample_weight=weight)
        for level in levels[::10]
    ]
    crps = crps_score(y, dist, sample_weight=weight)
    assert crps == pytest.approx(2 * np.mean(pinball), rel=5e-3)


@pytest.mark.parametrize("score", [crps_score, log_score, interval_score])
def test_weights_are_repetitions(forecasts, score):
    dist, y, weight = forecasts
    rows = np.repeat(np.arange(400), weight.astype(int))
    weighted = score(y, dist, sample_weight=weight)
    assert weighted == pytest.approx(score(y[rows], dist[rows]))


def test_log_score_is_minus_the_log_density(forecasts):
    dist, y, _ = forecasts
    assert log_score(y, dist) == pytest.approx(-np.log(dist.pdf(y)).mean())


def test_interval_score_and_coverage_by_hand(forecasts):
    dist, y, _ = forecasts
    low, high = dist.ppf(0.1), dist.ppf(0.9)
    penalty = 10.0 * ((low - y) * (y < low) + (y - high) * (y > high))
    got = interval_score(y, dist, coverage=0.8)
    assert got == pytest.approx((high - low + penalty).mean())
    inside = ((low <= y) & (y <= high)).mean()
    assert interval_coverage(y, dist, coverage=0.8) == pytest.approx(inside)


def test_pit_test_finds_bias_and_passes_honest_forecasts(forecasts):
    dist, y, _ = forecasts
    assert pit_test(y, dist)[1] > 0.01
    assert pit_test(y + 0.5, dist)[1] < 1e-6


def true_forecast(kind, rng, n=40):
    """Forecasts of the named kind."""
    base = BaseCDF.fit(norm.ppf((np.arange(2000) + 0.5) / 2000))
    one = np.ones((n, 1))
    smooth = SplineLaw(rng.normal(size=n), np.ones(n), [0.0], 0 * one, one, base)
    p = rng.uniform(0.2, 0.8, (n, 1))
    laws = {
        "smooth": smooth,
        "coin": DiscreteLaw([0.0, 1.0], np.full((n, 2), 0.5)),
        "sure": DiscreteLaw([0.0], one),
        "counts": DiscreteLaw(np.arange(6.0), rng.dirichlet(np.ones(6), n)),
        "mixed": MixedLaw([0.0, 1.0], np.hstack([0.5 * p, 0.3 * p]), smooth, [1, 1]),
    }
    return PredictiveDistribution(laws[kind])


@pytest.mark.parametrize("kind", ["smooth", "coin", "sure", "counts", "mixed"])
def test_pit_test_keeps_its_level(kind):
    rng = np.random.default_rng(11)
    dist = true_forecast(kind, rng)
    p_values = np.array(
        [pit_test(y, dist, random_state=k)[1] for k, y in enumerate(dist.rvs(600, rng))]
    )
    # Four standard errors of a share of 600.
    assert abs(np.mean(p_values < 0.05) - 0.05) < 0.036
    assert abs(np.mean(p_values < 0.5) - 0.5) < 0.082


@pytest.mark.parametrize("kind", ["smooth", "coin", "counts", "mixed"])
def test_pit_test_finds_wrong_laws_of_all_kinds(kind):
    rng = np.random.default_rng(12)
    dist = true_forecast(kind, rng, n=400)
    # Outcomes of the upper two thirds of their forecasts.
    y = dist.ppf(rng.uniform(0.33, 1.0, 400))
    assert pit_test(y, dist)[1] < 1e-6
    assert pit_test(y, dist) == pit_test(y, dist, random_state=0)


def test_threshold_weights_pick_a_region(forecasts):
    dist, y, _ = forecasts
    whole = threshold_weighted_crps(y, dist, weight=np.ones_like, n_points=4000)
    assert whole == pytest.approx(crps_score(y, dist), rel=1e-3)
    parts = [
        threshold_weighted_crps(y, dist, weight=weight, n_points=4000)
        for weight in (lambda z: z > 1.0, lambda z: z <= 1.0)
    ]
    assert sum(parts) == pytest.approx(whole)


def test_threshold_weights_of_many_pooled_rows(rng, monkeypatch):
    n = 2500
    base = BaseCDF.fit(norm.ppf((np.arange(2000) + 0.5) / 2000))
    one, center = np.ones((n, 1)), rng.normal(size=n)
    pair = [
        SplineLaw(shift * center, np.ones(n), [0.0], 0 * one, one, base)
        for shift in (-1.0, 1.0)
    ]
    dist = PredictiveDistribution(PooledLaw(pair, [0.5, 0.5]))
    y = dist.rvs(1, rng)[0]
    most, real = [], PooledLaw._sum
    monkeypatch.setattr(
        PooledLaw, "_sum", lambda law, each: most.append(len(law)) or real(law, each)
    )
    whole = threshold_weighted_crps(y, dist, weight=np.ones_like)
    # Rows in memory at a time, and steps of the search for the ends of the grid.
    assert sum(one == 2048 for one in most) < 20
    assert len(most) < 100
    assert whole == pytest.approx(crps_score(y, dist), rel=1e-3)
    with pytest.raises(ValueError, match="`n_points` must be at least 1, got 0"):
        threshold_weighted_crps(y, dist, weight=np.ones_like, n_points=0)


def test_a_normal_forecast_scores_as_the_closed_form(rng):
    base = BaseCDF.fit(norm.ppf((np.arange(20_000) + 0.5) / 20_000))
    one = np.ones((50, 1))
    law = SplineLaw(np.zeros(50), np.ones(50), [0.0], 0 * one, one, base)
    y = rng.normal(size=50)
    closed = y * (2 * norm.cdf(y) - 1) + 2 * norm.pdf(y) - 1 / np.sqrt(np.pi)
    got = crps_score(y, PredictiveDistribution(law))
    assert got == pytest.approx(closed.mean(), rel=2e-3)


def test_scorers_are_greater_for_better_models(forecasts):
    dist, y, _ = forecasts

    class Model:
        def __init__(self, shift):
            self.shift = shift

        def predict_dist(self, X):
            return dist[X] if not self.shift else dist[X[::-1]]

    scorer = DistributionScorer(pinball_loss, level=0.9)
    rows = np.arange(400)
    assert scorer(Model(0), rows, y) > scorer(Model(1), rows, y)


def test_bad_input_is_named(forecasts):
    dist, y, _ = forecasts
    with pytest.raises(ValueError, match="`y_true` must be as long as dist, got 3"):
        crps_score(y[:3], dist)
    with pytest.raises(ValueError, match="`y_true` must be finite, got nan"):
        log_score(np.full(400, np.nan), dist)
    with pytest.raises(ValueError, match=r"`level` must lie in \(0, 1\), got 1"):
        pinball_loss(y, dist, level=1)
    with pytest.raises(ValueError, match=r"`coverage` must lie in \(0, 1\), got 90"):
        interval_coverage(y, dist, coverage=90)
