"""`CalibrationMonitor`: what it tells, what it advises, what it refuses."""

import warnings

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from calibration import (
    CalibrationMonitor,
    CalibrationWarning,
    PlattCalibrator,
    ScoreSummary,
    load,
    plot_monitor,
)


def draw(rng, n, correction=lambda f: f):
    """Return forecasts and outcomes whose log-odds are corrected ones."""
    p = rng.uniform(0.02, 0.98, size=n)
    return p, (rng.uniform(size=n) < expit(correction(logit(p)))).astype(int)


def watch(rng, correction, batches=20, n=300, change=8, **settings):
    monitor = CalibrationMonitor(**settings)
    for k in range(batches):
        monitor.partial_fit(*draw(rng, n, correction if k >= change else lambda f: f))
    return monitor


CHANGES = {
    "shift": lambda f: f + 0.7,
    "shift and slope": lambda f: 0.5 + 0.75 * f,
    "recalibrate": lambda f: np.where(f > 0.0, 0.4 * f, 1.6 * f),
    "refit": lambda f: 0.15 * f,
}


@pytest.mark.parametrize("action", CHANGES)
def test_a_change_is_found_dated_and_named(rng, action):
    monitor = watch(rng, CHANGES[action])
    assert monitor.alarm_
    assert 2400.0 < monitor.alarm_row_ <= 6000.0
    assert abs(monitor.find_onset() - 2400.0) <= 600.0
    advice = monitor.advise()
    assert advice.action == action
    assert advice.n == 6000.0 - monitor.find_onset()
    assert set(advice.evidence) == {
        "nothing",
        "shift",
        "shift and slope",
        "recalibrate",
    }


def test_the_advice_can_be_followed(rng):
    monitor = watch(rng, lambda f: f - 0.9)
    advice = monitor.advise()
    assert advice.offset == pytest.approx(-0.9, abs=0.15)
    recent = monitor.recent_rows()
    again = PlattCalibrator(scale="probability").fit_summary(recent)
    p, _ = draw(rng, 50)
    assert logit(again.predict(p)) == pytest.approx(logit(p) - 0.9, abs=0.5)


def test_nothing_is_advised_where_nothing_has_changed(rng):
    monitor = watch(rng, lambda f: f)
    assert not monitor.alarm_
    assert monitor.alarm_row_ is None
    assert monitor.find_onset() is None
    assert monitor.advise().action == "nothing"
    assert monitor.e_value_ < 20.0
    low, high = monitor.confidence_interval()
    assert low < 0.0 < high


def test_the_alarm_stays_though_the_evidence_goes(rng):
    monitor = watch(rng, lambda f: f + 1.0, batches=10)
    assert monitor.alarm_
    at = monitor.alarm_row_
    for _ in range(5):
        monitor.partial_fit(*draw(rng, 300, lambda f: f))
    assert monitor.alarm_
    assert monitor.alarm_row_ == at


def test_the_tolerance_is_that_of_the_fit(rng):
    p, y = draw(rng, 500)
    monitor = CalibrationMonitor(n_fit=400).fit(p, y)
    clipped = np.clip(p, 1 / 402, 401 / 402)
    wanted = 1.25 / np.sqrt(400 * np.mean(clipped * (1 - clipped)))
    assert monitor.tolerance_ == pytest.approx(wanted)
    assert CalibrationMonitor(tolerance=0.3).fit(p[:2], y[:2]).tolerance_ == 0.3


def test_a_summary_is_its_rows_and_weights_are_repetitions(rng):
    p, y = draw(rng, 200)
    weight = rng.integers(1, 4, size=200)
    rows = CalibrationMonitor().fit(np.repeat(p, weight), np.repeat(y, weight))
    weighted = CalibrationMonitor().fit(p, y, weight)
    summed = CalibrationMonitor().partial_fit_summary(
        ScoreSummary.from_scores(p, y, weight)
    )
    assert weighted.log_e_ == pytest.approx(rows.log_e_, rel=1e-9)
    assert summed.log_e_ == weighted.log_e_
    assert summed.n_rows_ == weight.sum()


def test_certain_forecasts_that_fail_are_evidence_and_no_end(rng):
    p, y = draw(rng, 100)
    p[0], y[0] = 0.0, 1
    monitor = CalibrationMonitor().fit(p, y)
    assert np.isfinite(monitor.log_e_)


def test_fit_begins_anew(rng):
    first, second = draw(rng, 200, lambda f: f + 2.0), draw(rng, 200)
    monitor = CalibrationMonitor().fit(*first).partial_fit(*draw(rng, 100))
    monitor.fit(*second)
    fresh = CalibrationMonitor().fit(*second)
    assert monitor.log_e_ == fresh.log_e_
    assert monitor.n_batches_ == 1
    assert not hasattr(clone(monitor), "n_batches_")


def test_a_loaded_monitor_goes_on_as_the_saved_one(rng, tmp_path):
    monitor = watch(rng, lambda f: f + 0.7, batches=10)
    monitor.save(tmp_path / "monitor.zip")
    again = load(tmp_path / "monitor.zip")
    batch = draw(rng, 300)
    monitor.partial_fit(*batch)
    again.partial_fit(*batch)
    assert again.log_e_ == monitor.log_e_
    assert again.find_onset() == monitor.find_onset()
    assert again.advise() == monitor.advise()
    for name, values in monitor.history_.items():
        np.testing.assert_array_equal(again.history_[name], values)


def test_the_history_is_a_table(rng):
    monitor = watch(rng, lambda f: f, batches=3)
    assert {len(column) for column in monitor.history_.values()} == {3}
    assert monitor.history_["row"].tolist() == [300.0, 600.0, 900.0]


BAD = [
    ({"y_prob": [0.5, 1.2]}, ValueError, "`y_prob` must lie in .0, 1., got 1.2"),
    ({"y_prob": [0.5, np.nan]}, ValueError, "`y_prob` must be finite"),
    ({"y": [0, 2]}, ValueError, "`y` must hold the two classes"),
    ({"y": [0, 1, 1]}, ValueError, "`y` must be as long as y_prob"),
    ({"y_prob": []}, ValueError, "`y_prob`"),
    ({"sample_weight": [1.0, -1.0]}, ValueError, "`sample_weight`"),
]


@pytest.mark.parametrize(("wrong", "kind", "said"), BAD)
def test_a_refused_batch_leaves_all_as_it_was(rng, wrong, kind, said):
    monitor = CalibrationMonitor().fit(*draw(rng, 100))
    before = monitor.log_e_, monitor.n_batches_
    batch = {"y_prob": [0.5, 0.6], "y": [0, 1]} | wrong
    for call in (monitor.partial_fit, monitor.fit):
        with pytest.raises(kind, match=said):
            call(**batch)
        assert (monitor.log_e_, monitor.n_batches_) == before
        assert len(monitor.history_["row"]) == 1


def test_what_is_too_little_or_not_there_is_refused(rng):
    p, y = draw(rng, 49)
    with pytest.raises(ValueError, match="first batch, which must have at least 50"):
        CalibrationMonitor().partial_fit(p, y)
    for ask in ("advise", "find_onset", "confidence_interval", "recent_rows"):
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(CalibrationMonitor(), ask)()
    with pytest.raises(TypeError, match="`summary` must be a ScoreSummary"):
        CalibrationMonitor().partial_fit_summary([0.5])
    with pytest.raises(ValueError, match=r"`scores` of `summary` must lie in .0, 1."):
        CalibrationMonitor().partial_fit_summary(
            ScoreSummary.from_scores([0.5, 2.0], [0, 1])
        )
    with pytest.raises(ValueError, match="`level` must lie in"):
        CalibrationMonitor().fit(*draw(rng, 60)).confidence_interval(1.0)


def test_the_picture_shows_evidence_and_offsets(rng):
    import matplotlib.pyplot as plt

    monitor = watch(rng, lambda f: f + 0.7)
    evidence, offsets = plot_monitor(monitor)
    labels = evidence.get_legend_handles_labels()[1]
    assert labels == ["evidence", "alarm at 20", "alarm", "onset"]
    assert offsets.get_xlabel() == "Rows"
    given = plt.subplots(2)[1]
    assert list(plot_monitor(monitor, ax=given)) == list(given)
    plt.close("all")
    with pytest.raises(TypeError, match="`monitor` must be a monitor"):
        plot_monitor("monitor")
    with pytest.raises(ValueError, match="`ax` must be two of matplotlib's Axes"):
        plot_monitor(monitor, ax=given[:1])
    with pytest.raises(TypeError, match="`ax` must be one of matplotlib's Axes"):
        plot_monitor(monitor, ax="x")


@pytest.mark.slow
def test_false_alarms_and_delay_of_fitted_calibrators(rng):
    alarms, delays = 0, []
    for shift in np.repeat([0.0, 0.5], 25):
        f, y = rng.normal(size=600), rng.uniform(size=600)
        calibrator = PlattCalibrator(scale="logit").fit(f, y < expit(f))
        monitor = CalibrationMonitor(n_fit=600)
        for k in range(40):
            f = rng.normal(size=100)
            y = rng.uniform(size=100) < expit(f + shift * (k >= 15))
            monitor.partial_fit(calibrator.predict(f), y)
            if monitor.alarm_:
                break
        if shift:
            delays.append(monitor.n_rows_ - 1500.0)
        else:
            alarms += monitor.alarm_
    assert alarms <= 4  # at 5 % that are five or more once in a hundred times
    # Four times the 152 rows that a fixed test needs.
    assert np.mean(delays) <= 4.0 * 152.0


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


def test_a_batch_in_another_order_is_not_counted_again(rng):
    p, y = draw(rng, 200)
    monitor = CalibrationMonitor().fit(p, y).partial_fit(*draw(rng, 100))
    before = monitor.log_e_, monitor.n_rows_
    order = rng.permutation(200)
    with pytest.warns(CalibrationWarning, match="the same 200 rows .* not counted"):
        monitor.partial_fit(p[order], y[order])
    assert (monitor.log_e_, monitor.n_rows_) == before
    # One other label, and it is another batch.
    y[0] = 1 - y[0]
    assert monitor.partial_fit(p, y).n_rows_ == 500.0


@pytest.mark.parametrize("n", [1, 6, 1000])
def test_batches_that_may_be_equal_by_chance_are_counted(n):
    p, y = np.full(n, 0.5), np.arange(n) % 2
    monitor = CalibrationMonitor(tolerance=0.1).fit(p, y)
    with pytest.warns(CalibrationWarning, match="it is counted, for so few different"):
        monitor.partial_fit(p, y)
    assert monitor.n_rows_ == 2.0 * n
