"""Bounds on the log-odds of steps: by hand, and what isotonic maps do within them."""

import itertools

import numpy as np
import pytest
from scipy.special import expit, logit

from calibration import CalibrationMonitor, IsotonicCalibrator
from calibration.drift.evidence import LineBets, StepErrors


def test_a_step_is_a_rate_of_its_share_of_the_fit():
    p = np.array([0.001, 0.001, 0.4, 0.4, 0.4, 0.999, 0.999, 0.7])
    f, tolerance = logit(p), 0.1
    low, high = StepErrors(tolerance).step(f, np.ones(8))
    # All rows tell as much as a tolerance of 1.25 standard errors says.
    rows = (1.25 / tolerance) ** 2 / np.sum(p * (1.0 - p))
    for k, (one, count) in {0: (0.001, 2), 2: (0.4, 3), 5: (0.999, 2)}.items():
        ones, zeros = rows * count * one + 1.0, rows * count * (1.0 - one) + 1.0
        error = 1.25 * np.sqrt(1.0 / ones + 1.0 / zeros)
        if one < 0.5:
            assert high[k] == pytest.approx(np.log(ones / zeros) + error)
            assert low[k] == np.inf
        else:
            assert low[k] == pytest.approx(np.log(ones / zeros) - error)
            assert high[k] == -np.inf
    # What comes once may be a forecast of its own.
    assert (low[7], high[7]) == (np.inf, -np.inf)


def test_batches_add_up_and_weights_are_repetitions(rng):
    f = rng.choice([-2.0, -0.3, 0.0, 1.5], 60)
    parts, whole = StepErrors(0.1), StepErrors(0.1)
    for part in np.array_split(f, 5):
        last = parts.step(part, np.ones(len(part)))
    whole.step(f, np.ones(60))
    assert parts.values.tolist() == whole.values.tolist()
    np.testing.assert_allclose(parts.weight, whole.weight)
    again = StepErrors(0.1)
    values, counts = np.unique(f, return_counts=True)
    low, high = again.step(values, counts.astype(float))
    at = np.searchsorted(values, np.array_split(f, 5)[-1])
    np.testing.assert_allclose(last, (low[at], high[at]))


def test_forecasts_without_repeats_have_no_bounds_and_take_no_room(rng):
    steps = StepErrors(0.1)
    for _ in range(8):
        low, high = steps.step(rng.normal(size=100), np.ones(100))
        assert np.isinf(low).all()
        assert np.isinf(high).all()
    assert steps.is_smooth
    assert len(steps.values) == 0


def test_an_exact_fit_has_no_errors():
    f = np.array([-1.0, -1.0, 2.0, 2.0])
    low, high = StepErrors(0.0).step(f, np.ones(4))
    assert high[:2] == pytest.approx([-1.0, -1.0], abs=1e-6)
    assert low[2:] == pytest.approx([2.0, 2.0], abs=1e-6)


def test_bets_within_the_bounds_have_a_mean_of_at_most_1(rng):
    f = np.array([-7.0, -7.0, -0.5, -0.5, 6.0, 6.0])
    low, high = StepErrors(0.1).step(f, np.ones(6))
    reach = 0.2 * np.maximum(1.0, np.abs(f))
    ends = np.minimum(low, f - reach), np.maximum(high, f + reach)
    assert high[0] > f[0] + reach[0]
    for _ in range(20):
        truth = expit(rng.uniform(*ends))
        mean = 0.0
        for y in map(np.array, itertools.product([0.0, 1.0], repeat=6)):
            bets = LineBets(0.1, 2000.0, line=np.array([0.1, 0.5]))
            bets.rows = 1.0
            bets.step(f, 1.0 - y, y, low, high)
            mean += np.prod(np.where(y == 1.0, truth, 1.0 - truth)) * np.exp(bets.log_e)
        assert mean <= 1.0 + 1e-12


@pytest.mark.slow
def test_isotonic_maps_alarm_as_seldom_as_others():
    """Of those fitted on 1000 rows a quarter does within 10 000 without the bounds."""
    alarms = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)

        def draw(n, rng=rng):
            score = rng.normal(size=n)
            return score, rng.uniform(size=n) < expit(score)

        fitted = IsotonicCalibrator(scale="logit").fit(*draw(1000))
        monitor = CalibrationMonitor(n_fit=1000)
        for _ in range(50):
            score, y = draw(200)
            monitor.partial_fit(fitted.predict(score), y)
        alarms += monitor.alarm_
    assert alarms <= 6
