"""`CalibrationMonitor`: what is of labels alone."""

import warnings

import numpy as np
import pytest
from scipy.special import expit, logit

from calibration import CalibrationMonitor, CalibrationWarning, PlattCalibrator


def draw(rng, n, shift=0.0):
    p = rng.uniform(0.02, 0.98, size=n)
    return p, (rng.uniform(size=n) < expit(logit(p) + shift)).astype(int)


def test_the_advice_can_be_followed(rng):
    monitor = CalibrationMonitor()
    for k in range(20):
        monitor.partial_fit(*draw(rng, 300, -0.9 * (k >= 8)))
    assert monitor.advise().offset == pytest.approx(-0.9, abs=0.15)
    recent = monitor.recent_rows()
    assert recent.n == 6000.0 - monitor.find_onset()
    again = PlattCalibrator(scale="probability").fit_summary(recent)
    p, _ = draw(rng, 50)
    assert logit(again.predict(p)) == pytest.approx(logit(p) - 0.9, abs=0.5)


def test_the_tolerance_is_that_of_the_fit(rng):
    p, y = draw(rng, 500)
    monitor = CalibrationMonitor(n_fit=400).fit(p, y)
    clipped = np.clip(p, 1 / 402, 401 / 402)
    wanted = 1.25 / np.sqrt(400 * np.mean(clipped * (1 - clipped)))
    assert monitor.tolerance_ == pytest.approx(wanted)


def test_certain_forecasts_that_fail_are_evidence_and_no_end(rng):
    p, y = draw(rng, 100)
    p[0], y[0] = 0.0, 1
    assert np.isfinite(CalibrationMonitor().fit(p, y).log_e_)


@pytest.mark.parametrize("size", [400, 100, 8])
@pytest.mark.parametrize("n_fit", [50, 5000])
def test_sure_forecasts_that_are_wrong_both_ways_are_found(size, n_fit):
    """Half of p = 0 with y = 1, half of p = 1 with y = 0: no shift is better."""
    tolerance = "auto" if size >= 50 else 0.1
    monitor = CalibrationMonitor(n_fit=n_fit, tolerance=tolerance)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # batches of two different rows are equal
        for _ in range(400 // size):
            monitor.partial_fit(np.tile([0.0, 1.0], size // 2), [1, 0] * (size // 2))
    assert monitor.alarm_
    assert monitor.alarm_row_ <= 400.0


@pytest.mark.parametrize("n", [1, 6, 1000])
def test_batches_that_may_be_equal_by_chance_are_counted(n):
    p, y = np.full(n, 0.5), np.arange(n) % 2
    monitor = CalibrationMonitor(tolerance=0.1).fit(p, y)
    with pytest.warns(CalibrationWarning, match="it is counted, for so few different"):
        monitor.partial_fit(p, y)
    assert monitor.n_rows_ == 2.0 * n


@pytest.mark.parametrize(("least", "most"), [(0.01, 0.05), (0.0, 2e-3)])
def test_right_forecasts_of_the_same_things_raise_no_alarm(rng, least, most):
    """Months without an event count, though the rows of all of them are the same."""
    p = rng.uniform(least, most, size=100)
    monitor = CalibrationMonitor(n_fit=100_000, tolerance=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some months are equal
        for _ in range(80):
            monitor.partial_fit(p, rng.uniform(size=100) < p)
        dense = draw(rng, 100)
        monitor.partial_fit(*dense).partial_fit(*dense)
    assert monitor.n_batches_ == 81
    assert not monitor.alarm_


@pytest.mark.parametrize(("n_fit", "middle"), [(50, 1e-3), (200, 3e-4), (1000, 0.0)])
def test_right_forecasts_surer_than_the_fit_raise_no_alarm(rng, n_fit, middle):
    monitor = CalibrationMonitor(n_fit=n_fit, tolerance=0.1)
    for k in range(40):
        p = middle * np.exp(rng.normal(size=1000))
        y = rng.uniform(size=1000) < p
        p, y = (1.0 - p, ~y) if k % 2 and middle else (p, y)
        monitor.partial_fit(p + 1e-9 * k, y)
    assert not monitor.alarm_
    low, high = monitor.confidence_interval()
    assert low < 0.0 < high
    assert np.abs(monitor.history_["offset"] / monitor.history_["error"]).max() < 4.0
    wrong = rng.uniform(size=1000) < 10.0 / n_fit  # a hundred times as many
    assert monitor.partial_fit(np.full(1000, 0.1 / n_fit), wrong).log_e_ > 1.0
