"""Profits of a send-or-not policy, beside a plain loop and known truths."""

import numpy as np
import pytest

from localexpert.risk import policy_profit


@pytest.fixture
def campaign(rng):
    """A charity's letters: rare gifts, skewed amounts, calibrated chances."""
    n = 4000
    p = rng.beta(1.0, 12.0, size=n)
    amount = 2.0 + rng.gamma(2.0, 5.0, size=n)
    gifts = rng.poisson(amount)
    return p, amount, np.where(rng.uniform(size=n) < p, gifts, 0.0)


def test_profit_equals_that_of_a_loop(campaign):
    p, amount, received = campaign
    result = policy_profit(p, amount, cost=0.68, received=received, random_state=0)
    expected = realised = n_sent = 0.0
    for chance, gift, came in zip(p, amount, received, strict=True):
        if chance * gift > 0.68:
            n_sent += 1
            expected += chance * gift - 0.68
            realised += came - 0.68
    assert result.expected_profit == pytest.approx(expected, rel=1e-12)
    assert result.realised_profit == pytest.approx(realised, rel=1e-12)
    assert result.share_sent == n_sent / len(p)
    np.testing.assert_array_equal(result.send, p * amount > 0.68)


def test_calibrated_forecasts_keep_their_promise_and_beat_other_policies(campaign):
    p, amount, received = campaign
    ours = policy_profit(p, amount, cost=0.68, received=received, random_state=0)
    low, high = ours.interval
    assert low < ours.realised_profit < high
    assert low < ours.expected_profit < high
    everyone = policy_profit(1.0, 1e6, cost=0.68, received=received, random_state=0)
    assert everyone.share_sent == 1.0
    assert ours.realised_profit > everyone.realised_profit
    # Chances that are five times too low: too few letters.
    shy = policy_profit(p / 5.0, amount, cost=0.68, received=received, random_state=0)
    assert shy.share_sent < ours.share_sent
    assert shy.realised_profit < ours.realised_profit


def test_interval_has_the_width_of_the_central_limit(campaign):
    p, amount, received = campaign
    options = {"cost": 0.68, "received": received, "random_state": 0}
    result = policy_profit(p, amount, n_bootstrap=4000, coverage=0.8, **options)
    profits = np.where(result.send, received - 0.68, 0.0)
    half = 1.2816 * profits.std() * np.sqrt(len(p))
    low, high = result.interval
    assert high - low == pytest.approx(2.0 * half, rel=0.06)
    assert 0.5 * (low + high) == pytest.approx(profits.sum(), abs=0.15 * half)


def test_intervals_of_many_campaigns_cover_the_mean_profit(rng):
    hits = 0
    for _ in range(200):
        received = np.where(rng.uniform(size=300) < 0.2, 5.0, 0.0)
        result = policy_profit(
            0.2, 5.0, cost=0.5, received=received, n_bootstrap=400, random_state=rng
        )
        hits += result.interval[0] <= 300 * 0.5 <= result.interval[1]
    assert 0.84 < hits / 200 < 0.95  # 0.9, and two deviations and a half of a count


def test_the_seed_decides(campaign):
    p, amount, received = campaign
    seeds = (0, 0, 1, np.random.default_rng(0))
    intervals = [
        policy_profit(
            p, amount, cost=0.68, received=received, n_bootstrap=50, random_state=seed
        ).interval
        for seed in seeds
    ]
    assert intervals[0] == intervals[1] == intervals[3] != intervals[2]


def test_amounts_may_be_forecasts_and_costs_differ(make):
    forecast = make("mixed")
    cost, received = np.array([0.0, 0.0, 0.5, 0.01, 5.0]), np.arange(5.0)
    p = np.array([0.5, 1.0, 0.5, 0.2, 0.9])
    of_forecast, of_means = (
        policy_profit(p, amount, cost=cost, received=received, random_state=0)
        for amount in (forecast, forecast.mean())
    )
    np.testing.assert_array_equal(of_forecast.send, of_means.send)
    assert of_forecast.expected_profit == of_means.expected_profit
    assert of_forecast.interval == of_means.interval
    assert of_forecast.send.tolist() == [False, False, False, True, False]


def test_nobody_is_worth_a_letter():
    result = policy_profit(0.1, 1.0, cost=5.0, received=[0.0, 9.0], random_state=0)
    assert not result.send.any()
    assert (result.expected_profit, result.realised_profit) == (0.0, 0.0)
    assert result.interval == (0.0, 0.0)


def test_what_is_worth_just_the_cost_is_not_sent():
    result = policy_profit(0.5, 2.0, cost=1.0, received=[2.0], random_state=0)
    assert result.share_sent == 0.0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"probability": 1.5}, r"`probability` must lie in \[0, 1\], got 1.5"),
        ({"probability": [0.1, 0.2]}, r"`probability` must broadcast .* 3 rows"),
        ({"cost": -1.0}, r"`cost` must not be negative, got -1 in row 0\."),
        ({"cost": [0, 0, -2]}, r"`cost` must not be negative, got -2 in row 2\."),
        ({"received": []}, "`received` must hold at least one value"),
        ({"received": 1.0}, r"`received` must have shape \(any,\)"),
    ],
)
def test_bad_arguments_are_named(changed, message):
    arguments = {
        "probability": 0.5,
        "amount": 1.0,
        "cost": 0.1,
        "received": [0.0, 1.0, 2.0],
        "random_state": 0,
        **changed,
    }
    with pytest.raises(ValueError, match=message):
        policy_profit(**arguments)


def test_a_forecast_of_other_rows_is_refused(make):
    message = r"`amount` must have a row for each of the 2 rows, got 5\."
    with pytest.raises(ValueError, match=message):
        policy_profit(0.5, make("normal"), cost=0.1, received=[0.0, 1.0])
