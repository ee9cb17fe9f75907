"""`ForecastMonitor`: what it tells, what it advises, what it refuses."""

import numpy as np
import pytest
from scipy.stats import norm

from calibration import CalibrationWarning, plot_monitor
from localexpert import ForecastMonitor, PredictiveDistribution, load
from localexpert.data.training_rows import SeenRows
from tests.forecasts import of_values

CHANGES = {
    "shift": lambda mean, noise: mean + 0.4 + noise,
    "shift and slope": lambda mean, noise: mean + 0.2 + 1.4 * noise,
    "recalibrate": lambda mean, noise: mean + np.where(noise > 0, 2.2, 0.6) * noise,
    "refit": lambda mean, noise: 0.0 * mean + np.sqrt(2.0) * noise,
}


def batch(rng, n, change=lambda mean, noise: mean + noise):
    mean = rng.normal(size=n)
    dist = PredictiveDistribution.from_scipy(norm(mean, 1.0))
    return dist, change(mean, rng.normal(size=n))


def watch(rng, change, batches=16, n=250, at=8, **settings):
    monitor = ForecastMonitor(**settings)
    for k in range(batches):
        monitor.partial_fit(*(batch(rng, n, change) if k >= at else batch(rng, n)))
    return monitor


@pytest.mark.parametrize("action", CHANGES)
def test_a_change_is_found_dated_and_named(rng, action):
    monitor = watch(rng, CHANGES[action])
    assert monitor.alarm_
    assert monitor.alarm_row_ > 2000.0
    assert abs(monitor.find_onset() - 2000.0) <= 500.0
    assert monitor.advise().action == action


def test_nothing_is_advised_where_nothing_has_changed(rng):
    monitor = watch(rng, lambda mean, noise: mean + noise)
    assert not monitor.alarm_
    assert monitor.find_onset() is None
    assert monitor.advise().action == "nothing"
    low, high = monitor.confidence_interval()
    assert low < 0.0 < high
    assert monitor.tolerance_ == pytest.approx(1.25 / np.sqrt(1000.0))


def test_an_offset_is_told_in_deviations_and_in_units(rng):
    monitor = watch(rng, lambda mean, noise: mean + 0.4 + noise, at=0)
    low, high = monitor.confidence_interval()
    assert low < 0.4 < high
    assert high - low < 0.2
    assert monitor.history_["bias"].mean() == pytest.approx(0.4, abs=0.06)
    assert monitor.find_onset() == 0.0


def test_jumps_are_drawn_within_by_a_seed(rng):
    dist = of_values([0.0, 1.0], np.tile([0.7, 0.3], (2000, 1)))
    y = (rng.uniform(size=2000) < 0.3).astype(float)
    one, same = (ForecastMonitor(thresholds=[0.0]).fit(dist, y) for _ in range(2))
    other = ForecastMonitor(thresholds=[0.0], random_state=1).fit(dist, y)
    assert one.log_e_ == same.log_e_ != other.log_e_
    assert not one.alarm_
    # Without the draw all transforms would lie at two points.
    assert np.all(one._spans_[0][0] > 50.0)


def test_outcomes_outside_of_the_support_are_counted_and_speak():
    dist = of_values([0.0, 1.0], np.tile([0.5, 0.5], (60, 1)))
    y = np.repeat([0.0, 1.0, 7.0, -3.0], 15)
    monitor = ForecastMonitor(thresholds=[0.0]).fit(dist, y)
    assert monitor.history_["outside"].tolist() == [30.0]
    assert np.isfinite(monitor.log_e_)


def test_weights_are_repetitions(rng):
    dist, y = batch(rng, 100)
    weight = rng.integers(1, 4, size=100)
    rows = np.repeat(np.arange(100), weight)
    whole = ForecastMonitor(thresholds=[0.0]).fit(dist[rows], y[rows])
    weighted = ForecastMonitor(thresholds=[0.0]).fit(dist, y, weight)
    assert weighted.log_e_ == pytest.approx(whole.log_e_)


def test_a_loaded_monitor_goes_on_as_the_saved_one(rng, tmp_path):
    monitor = watch(rng, CHANGES["shift"], batches=10)
    monitor.save(tmp_path / "monitor.zip")
    again = load(tmp_path / "monitor.zip")
    more = batch(rng, 100)
    assert again.partial_fit(*more).log_e_ == monitor.partial_fit(*more).log_e_
    assert again.advise() == monitor.advise()


def test_it_is_drawn_like_the_other(rng):
    import matplotlib.pyplot as plt

    evidence, _ = plot_monitor(watch(rng, CHANGES["shift"], batches=10))
    assert evidence.get_ylabel() == "e-value, power of 10"
    plt.close("all")


@pytest.mark.parametrize(
    ("wrong", "kind", "said"),
    [
        ({"y": [1.0]}, ValueError, "`y` must be as long as dist, got 1 and 60"),
        ({"y": np.full(60, np.nan)}, ValueError, "`y` must be finite"),
        ({"dist": "x"}, TypeError, "`dist` must be a PredictiveDistribution"),
        ({"sample_weight": np.zeros(60)}, ValueError, "`sample_weight`"),
    ],
)
def test_a_refused_batch_leaves_all_as_it_was(rng, wrong, kind, said):
    dist, y = batch(rng, 60)
    monitor = ForecastMonitor().fit(dist, y)
    before = monitor.log_e_
    for call in (monitor.partial_fit, monitor.fit):
        with pytest.raises(kind, match=said):
            call(**({"dist": dist, "y": y} | wrong))
        assert (monitor.log_e_, monitor.n_batches_) == (before, 1)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"n_fit": 0}, "`n_fit` must be at least 1"),
        ({"thresholds": [np.nan]}, "`thresholds` must be finite"),
        ({"thresholds": []}, "`thresholds`"),
        ({"tolerance": -1.0}, "`tolerance` must lie in"),
        ({"random_state": -1}, "`random_state` must be at least 0"),
    ],
)
def test_wrong_settings_are_refused(rng, settings, said):
    with pytest.raises(ValueError, match=said):
        ForecastMonitor(**settings).fit(*batch(rng, 60))


def test_a_first_batch_must_tell_a_tolerance(rng):
    with pytest.raises(ValueError, match="must have at least 50 rows, got 49"):
        ForecastMonitor().partial_fit(*batch(rng, 49))
    assert ForecastMonitor(tolerance=0.1).fit(*batch(rng, 5)).n_rows_ == 5.0


@pytest.mark.slow
def test_false_alarms_and_delay_of_fitted_models(rng):
    alarms, delays = 0, []
    for shift in np.repeat([0.0, 0.3], 20):
        y = rng.normal(size=500)
        fitted = norm(y.mean(), y.std(ddof=1))
        monitor = ForecastMonitor(n_fit=500)
        dist = PredictiveDistribution.from_scipy(
            norm(np.full(100, fitted.mean()), fitted.std())
        )
        for k in range(30):
            monitor.partial_fit(dist, rng.normal(size=100) + shift * (k >= 15))
            if monitor.alarm_:
                break
        if shift:
            delays.append(monitor.n_rows_ - 1500.0)
        else:
            alarms += monitor.alarm_
    assert alarms <= 4
    # Four times the 87 rows that a fixed test needs, and up to a look.
    assert np.mean(delays) <= 4.0 * 87.2 + 50.0


def test_a_batch_in_another_order_is_not_counted_again(rng):
    dist, y = batch(rng, 80)
    monitor = ForecastMonitor().fit(dist, y).partial_fit(*batch(rng, 60))
    order = rng.permutation(80)
    with pytest.warns(CalibrationWarning, match="the same 80 rows .* not counted"):
        monitor.partial_fit(dist[order], y[order])
    assert (monitor.n_rows_, monitor.n_batches_) == (140.0, 2)


def test_rows_that_were_learned_from_are_told_of(rng):
    seen = SeenRows(60, 0.15, np.arange(60) < 9, 60)
    with pytest.warns(
        CalibrationWarning, match=r"9 of the 60 rows\. .* needs new rows"
    ):
        ForecastMonitor().fit(*batch(rng, 60), seen=seen)
