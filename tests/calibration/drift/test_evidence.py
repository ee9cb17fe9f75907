"""E-processes: martingales under the null by exact sums, bounds by brute force."""

import itertools

import numpy as np
import pytest
from scipy.special import expit, log_expit, logit

from calibration import CalibrationMonitor, IsotonicCalibrator
from calibration.drift.evidence import (
    LineBets,
    OnsetMixture,
    ShiftProcess,
    StepErrors,
    bound_concave,
    shift_interval,
    shift_likelihoods,
)

SIZES = np.array([0.15, 0.3, 0.6, 1.2])


def expected_value(process, f, shift, batches):
    """Return E[e-value] over all outcomes of rows with log-odds f (n,)."""
    total = 0.0
    for y in map(np.array, itertools.product([0.0, 1.0], repeat=len(f))):
        p = expit(f + shift)
        chance = np.prod(np.where(y == 1.0, p, 1.0 - p))
        total += chance * np.exp(process(f, y, batches))
    return total


def run_shift(f, y, batches):
    process = ShiftProcess(0.2, SIZES)
    for rows in np.array_split(np.arange(len(f)), batches):
        logs = shift_likelihoods(f[rows], 1.0 - y[rows], y[rows], process.shifts)
        process.step(*logs, 700.0 * len(rows))
    return process.log_e


def run_line(f, y, batches):
    process = LineBets(0.2, 2000.0, line=np.array([0.3, 1.4]))
    process.rows = 1.0
    for rows in np.array_split(np.arange(len(f)), batches):
        process.step(f[rows], 1.0 - y[rows], y[rows])
    return process.log_e


@pytest.mark.parametrize("process", [run_shift, run_line])
@pytest.mark.parametrize("batches", [1, 3, 6])
def test_the_mean_is_at_most_1_for_every_shift_of_the_null(process, batches, rng):
    f = np.array([-2.0, -0.4, 0.1, 0.6, 1.5, 2.5])
    for shift in np.linspace(-0.2, 0.2, 5):
        assert expected_value(process, f, shift, batches) <= 1.0 + 1e-12
    # Bets on lines hold for shifts that differ from row to row.
    for _ in range(20 if process is run_line and batches == 6 else 0):
        shift = rng.uniform(-0.2, 0.2, size=6)
        assert expected_value(process, f, shift, batches) <= 1.0 + 1e-12


def test_onsets_do_not_depend_on_how_rows_are_parted():
    whole, parts = (OnsetMixture([1.0]) for _ in range(2))
    whole.bet(np.zeros(1), 1000.0)
    for _ in range(10):
        parts.bet(np.zeros(1), 100.0)
    assert whole.log_started == pytest.approx(parts.log_started)
    # Nothing is won or lost by bets that pay 1.
    assert whole.log_e == pytest.approx(0.0, abs=1e-12)


def test_shift_likelihoods_are_those_of_each_row(rng):
    f, w0, w1 = rng.normal(size=40), rng.uniform(size=40), rng.uniform(size=40)
    shifts = np.array([-0.7, 0.0, 0.2])
    ratios, slopes = shift_likelihoods(f, w0, w1, shifts)

    def loss(shift):
        return w1 @ log_expit(f + shift) + w0 @ log_expit(-f - shift)

    for k, shift in enumerate(shifts):
        assert ratios[k] == pytest.approx(loss(shift) - loss(0.0), abs=1e-10)
        step = (loss(shift + 1e-5) - loss(shift - 1e-5)) / 2e-5
        assert slopes[k] == pytest.approx(step, abs=1e-6)
    sure = shift_likelihoods(np.array([-800.0, 800.0]), *np.ones((2, 2)), shifts)
    assert np.isfinite(sure).all()


@pytest.mark.parametrize("peak", [-3.0, -0.5, 0.013, 0.5, 3.0])
@pytest.mark.parametrize("steep", [0.1, 10.0, 1e6])
def test_the_bound_lies_above_and_close(peak, steep):
    points = np.linspace(-0.5, 0.5, 25)
    fine = np.linspace(-0.5, 0.5, 100_001)
    true = (-steep * (fine - peak) ** 2).max()
    values, slopes = -steep * (points - peak) ** 2, -2 * steep * (points - peak)
    bound = bound_concave(points, values, slopes)
    assert true - 1e-9 * abs(true) <= bound <= true + steep * (1.0 / 24.0) ** 2
    both = np.stack([-steep * (points - peak) ** 2, -points])
    slopes = np.stack([-2 * steep * (points - peak), -np.ones(25)])
    assert bound_concave(points, both, slopes) == pytest.approx([float(bound), 0.5])


def test_the_null_of_no_tolerance_is_one_point():
    process = ShiftProcess(0.0, SIZES)
    assert process.null.tolist() == [0.0]
    process.step(np.zeros(9), np.zeros(9), 10.0)
    assert process.log_e == pytest.approx(0.0, abs=1e-12)


def test_many_histories_at_once_are_each_alone(rng):
    f, y = rng.normal(size=(3, 5, 20)), rng.integers(2, size=(3, 5, 20)).astype(float)
    together = ShiftProcess(0.1, SIZES), LineBets(0.1, 100.0)
    alone = [(ShiftProcess(0.1, SIZES), LineBets(0.1, 100.0)) for _ in f]
    for t in range(5):
        for rows, (shift, line) in [(slice(None), together), *enumerate(alone)]:
            cells = f[rows, t], 1.0 - y[rows, t], y[rows, t]
            shift.step(*shift_likelihoods(*cells, shift.shifts), 20)
            line.step(*cells)
    for j in range(2):
        each = np.array([one[j].log_e for one in alone])
        assert together[j].log_e == pytest.approx(each)


@pytest.mark.parametrize("shift", [0.0, 0.8, -2.0])
def test_the_interval_is_where_the_likelihood_is_not_beaten(rng, shift):
    f = rng.normal(size=400)
    y = (rng.uniform(size=400) < expit(f + shift)).astype(float)

    def likelihood(d):
        return shift_likelihoods(f, 1.0 - y, y, d)[0]

    low, high = shift_interval(likelihood, 0.05, 30.0)
    d = np.linspace(-4.0, 4.0, 4_001)
    logs = likelihood(d) - 2.0 * d**2 - np.log(0.5 * np.sqrt(2 * np.pi))
    least = np.log(0.05) + np.logaddexp.reduce(logs) + np.log(d[1] - d[0])
    inside = d[likelihood(d) >= least]
    assert (low, high) == pytest.approx((inside[0], inside[-1]), abs=2e-3)
    assert low < shift < high
    # One class alone bounds the shift on one side.
    ones = f, 0.0 * y, np.ones(400)
    low, high = shift_interval(lambda d: shift_likelihoods(*ones, d)[0], 0.05, 30.0)
    assert (low > 0.0, high) == (True, np.inf)


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
    values, place, counts = np.unique(f, return_inverse=True, return_counts=True)
    weighted = np.array(StepErrors(0.1).step(values, counts.astype(float)))
    np.testing.assert_allclose(last, weighted[:, place[-12:]])


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

    def run(f, y, _):
        bets = LineBets(0.1, 2000.0, line=np.array([0.1, 0.5]))
        bets.rows = 1.0
        bets.step(f, 1.0 - y, y, low, high)
        return bets.log_e

    for _ in range(20):
        shift = rng.uniform(*ends) - f
        assert expected_value(run, f, shift, 1) <= 1.0 + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_fit", "size", "batches"), [(20, 50, 4), (200, 100, 20), (1000, 200, 50)]
)
def test_isotonic_maps_alarm_as_seldom_as_others(n_fit, size, batches):
    """Of those of 1000 rows a quarter does within 10 000 without the bounds."""
    alarms = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)

        def draw(n, rng=rng):
            score = rng.normal(size=n)
            return score, rng.uniform(size=n) < expit(score)

        fitted = IsotonicCalibrator(scale="logit").fit(*draw(n_fit))
        monitor = CalibrationMonitor(n_fit=n_fit)
        for _ in range(batches):
            score, y = draw(size)
            monitor.partial_fit(fitted.predict(score), y)
        alarms += monitor.alarm_
    assert alarms <= 6
