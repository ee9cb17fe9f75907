"""Both monitors: what they tell, advise, keep and refuse, and what they bet."""

import functools
import json
import operator
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from scipy.special import expit, logit, ndtr, ndtri
from scipy.stats import norm, poisson
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import calibration
from calibration.storage import StorageError, save
from localexpert import ForecastMonitor, PredictiveDistribution
from localexpert.data.training_rows import SeenRows
from localexpert.monitor import (
    EDGES,
    count_bins,
    make_bet,
    mean_scores,
    normal_bins,
    shift_likelihoods_of_bins,
)
from tests.forecasts import of_values


def draw_labels(rng, n, change=lambda f: f):
    """Return probabilities and outcomes whose log-odds are changed ones."""
    p = rng.uniform(0.02, 0.98, size=n)
    return p, (rng.uniform(size=n) < expit(change(logit(p)))).astype(int)


def draw_values(rng, n, change=lambda mean, noise: mean + noise):
    """Return normal forecasts, and outcomes by mean and noise."""
    mean = rng.normal(size=n)
    dist = PredictiveDistribution.from_scipy(norm(mean, 1.0))
    return dist, change(mean, rng.normal(size=n))


LABELS = SimpleNamespace(
    monitor=calibration.CalibrationMonitor,
    draw=draw_labels,
    changes={
        "shift": lambda f: f + 0.7,
        "shift and slope": lambda f: 0.5 + 0.75 * f,
        "recalibrate": lambda f: np.where(f > 0.0, 0.4 * f, 1.6 * f),
        "refit": lambda f: 0.15 * f,
    },
)
VALUES = SimpleNamespace(
    monitor=ForecastMonitor,
    draw=draw_values,
    changes={
        "shift": lambda mean, noise: mean + 0.4 + noise,
        "shift and slope": lambda mean, noise: mean + 0.2 + 1.4 * noise,
        "recalibrate": lambda mean, e: mean + np.where(e > 0, 2.2, 0.6) * e,
        "refit": lambda mean, noise: 0.0 * mean + np.sqrt(2.0) * noise,
    },
)
MISSING = object()
REFUSED = "`text` must be what `to_json` has written"
KINDS = pytest.mark.parametrize("kind", [LABELS, VALUES], ids=["labels", "values"])


def watch(rng, kind, change=None, batches=16, n=250, at=8):
    """Return a monitor of batches that change after some."""
    monitor = kind.monitor()
    for k in range(batches):
        changed = [kind.changes[change]] if change and k >= at else []
        monitor.partial_fit(*kind.draw(rng, n, *changed))
    return monitor


@KINDS
@pytest.mark.parametrize("action", LABELS.changes)
def test_a_change_is_found_dated_and_named(rng, kind, action):
    monitor = watch(rng, kind, action, n=300)
    assert 2400.0 < monitor.alarm_row_ <= 4800.0
    assert abs(monitor.find_onset() - 2400.0) <= 600.0
    advice = monitor.advise()
    assert advice.action == action
    assert advice.n == 4800.0 - monitor.find_onset()
    assert list(advice.evidence) == ["nothing", *list(LABELS.changes)[:3]]
    # The alarm stays though the evidence goes.
    at = monitor.alarm_row_
    monitor.partial_fit(*kind.draw(rng, 300))
    assert (monitor.alarm_, monitor.alarm_row_) == (True, at)


@KINDS
def test_nothing_is_advised_where_nothing_has_changed(rng, kind):
    monitor = watch(rng, kind, n=300)
    assert (monitor.alarm_, monitor.alarm_row_) == (False, None)
    assert monitor.find_onset() is None
    assert monitor.advise().action == "nothing"
    assert monitor.e_value_ < 20.0
    low, high = monitor.confidence_interval()
    assert low < 0.0 < high
    assert {len(column) for column in monitor.history_.values()} == {16}
    assert monitor.history_["row"].tolist() == (300.0 * np.arange(1, 17)).tolist()


@KINDS
def test_weights_are_repetitions_and_fit_begins_anew(rng, kind):
    (x, y), (more, come) = kind.draw(rng, 100), kind.draw(rng, 100)
    weight = rng.integers(0, 4, size=100)
    rows = np.repeat(np.arange(100), weight)
    start = kind.monitor(tolerance=0.1).fit(x, y)
    whole = clone(start).fit(x[rows], y[rows]).partial_fit(more[rows], come[rows])
    weighted = clone(start).fit(*kind.draw(rng, 80)).fit(x, y, weight)
    weighted.partial_fit(more, come, weight)
    assert weighted.log_e_ == pytest.approx(whole.log_e_, rel=1e-9)
    assert (weighted.n_rows_, weighted.n_batches_) == (2.0 * weight.sum(), 2)
    assert not hasattr(clone(start), "n_batches_")
    if kind is VALUES:
        np.testing.assert_array_equal(weighted.thresholds_, whole.thresholds_)


@KINDS
def test_a_kept_monitor_goes_on_and_many_batches_take_little_room(rng, kind, tmp_path):
    monitor = watch(rng, kind, "shift", batches=150, n=100, at=140)
    assert abs(monitor.find_onset() - 14_000.0) <= 200.0
    assert monitor.advise().n == 15_000.0 - monitor.find_onset()
    text = monitor.to_json()
    assert len(text) < 400_000
    again = kind.monitor.from_json(text)
    assert again.to_json() == text
    more = kind.draw(rng, 100)
    assert again.partial_fit(*more).log_e_ == monitor.partial_fit(*more).log_e_
    assert again.find_onset() == monitor.find_onset()
    assert again.advise() == monitor.advise()
    for name, values in monitor.history_.items():
        np.testing.assert_array_equal(again.history_[name], values)
    with pytest.raises(StorageError, match=r"cannot be saved \(`to_json` writes it"):
        save(monitor, tmp_path / "monitor.zip")
    assert not list(tmp_path.iterdir())


@KINDS
@pytest.mark.parametrize("text", ["x", "[]", "{}", "3", "[" * 100_000])
def test_texts_that_are_no_monitors_are_refused(kind, text):
    with pytest.raises(ValueError, match=REFUSED):
        kind.monitor.from_json(text)


@KINDS
@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"array": []}, ("history_", "log_e_shift")),
        (10**400, ("history_", "log_e_shift", "array", 0)),
        ("x", ("alarm_row_",)),
        (None, ("_spans_", -1)),
        (9, ("_ends_", 0)),
        ({"array": [0.0]}, ("_shift_", "null")),
        ("eval", ("_shift_", "part")),
        ([], ("_shift_",)),
        ("Monitor", ("monitor",)),
        (0, ("n_fit",)),
        ("x", ("n_batches_",)),
        (None, ("partial_fit",)),
        (MISSING, ("alarm_",)),
    ],
)
def test_states_that_do_not_fit_together_are_refused(rng, kind, wrong, path):
    state = json.loads(watch(rng, kind, "shift", batches=4, at=2).to_json())
    *places, name = path
    parent = functools.reduce(operator.getitem, places, state)
    parent[name] = wrong
    if wrong is MISSING:
        del parent[name]
    with pytest.raises(ValueError, match=REFUSED):
        kind.monitor.from_json(json.dumps(state))


@KINDS
def test_a_batch_however_its_rows_are_given_is_not_counted_again(rng, kind):
    x, y = kind.draw(rng, 80)
    weight, order = rng.integers(0, 4, size=80), rng.permutation(80)
    monitor = kind.monitor().fit(x, y, weight).partial_fit(*kind.draw(rng, 60))
    before, held, rows = monitor.log_e_, weight > 0, np.repeat(np.arange(80), weight)
    said = f"the same {weight.sum()} rows .* not counted"
    for again in (
        (x[order], y[order], weight[order]),
        (x[rows], y[rows]),
        (x[held], y[held], weight[held]),
    ):
        with pytest.warns(calibration.CalibrationWarning, match=said) as told:
            monitor.partial_fit(*again)
        assert told[0].filename == __file__
        assert (monitor.log_e_, monitor.n_batches_) == (before, 2)
    # One other outcome, and it is another batch.
    y[0] = 1 - y[0]
    assert monitor.partial_fit(x, y, np.maximum(weight, 1)).n_batches_ == 3


@pytest.mark.parametrize(("scale", "offset"), [(1.0, 1e9), (1e200, 0.0)])
def test_outcomes_of_any_size_are_told_apart(rng, scale, offset):
    dist = PredictiveDistribution.from_scipy(norm(np.full(80, offset), scale))
    y = offset + scale * rng.normal(size=(2, 80))
    monitor = ForecastMonitor().fit(dist, y[0]).partial_fit(dist, y[1])
    with pytest.warns(calibration.CalibrationWarning, match="not counted again"):
        assert monitor.partial_fit(dist, y[1][::-1]).n_rows_ == 160.0


@KINDS
def test_a_refused_batch_leaves_all_as_it_was(rng, kind):
    monitor = kind.monitor().fit(*kind.draw(rng, 60))
    before = monitor.log_e_
    # What is wrong by itself is swept with all public functions.
    for place, wrong, name in ((1, [1.0], "y"), (2, -1.0, "sample_weight")):
        given = [*kind.draw(rng, 60), np.ones(60)]
        given[place] = wrong
        for call in (monitor.partial_fit, monitor.fit):
            with pytest.raises(ValueError, match=f"`{name}` must"):
                call(*given)
            assert (monitor.log_e_, monitor.n_batches_) == (before, 1)
    with pytest.raises(ValueError, match="must have at least 50 rows, got 49"):
        kind.monitor().partial_fit(*kind.draw(rng, 49))
    assert kind.monitor(tolerance=0.1).fit(*kind.draw(rng, 5)).tolerance_ == 0.1
    for ask in ("advise", "find_onset", "confidence_interval"):
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(kind.monitor(), ask)()
    with pytest.raises(ValueError, match="`level` must lie in"):
        monitor.confidence_interval(1.0)


@KINDS
def test_the_picture_shows_evidence_and_offsets(rng, kind):
    monitor = watch(rng, kind, "shift")
    evidence, offsets = calibration.plot_monitor(monitor)
    labels = evidence.get_legend_handles_labels()[1]
    assert labels == ["evidence", "alarm at 20", "alarm", "onset"]
    assert offsets.get_xlabel() == "Rows"


def test_an_offset_is_told_in_deviations_and_in_units(rng):
    monitor = watch(rng, VALUES, "shift", at=0)
    low, high = monitor.confidence_interval()
    assert low < 0.4 < high < low + 0.2
    assert monitor.history_["bias"].mean() == pytest.approx(0.4, abs=0.06)
    assert monitor.find_onset() == 0.0
    assert monitor.tolerance_ == pytest.approx(1.25 / np.sqrt(1000.0))


@pytest.mark.parametrize("rate", [3.0, 3.6])
def test_counts_tell_by_how_many_deviations_they_are_off(rng, rate):
    dist = PredictiveDistribution.from_scipy(poisson(3.0), 1000)
    monitor = ForecastMonitor()
    for _ in range(5):
        monitor.partial_fit(dist, rng.poisson(rate, size=1000))
    assert monitor.alarm_ == (rate > 3.0)
    offset = monitor.history_["offset"].mean()
    assert offset == pytest.approx((rate - 3.0) / np.sqrt(3.0), abs=0.04)


def test_weight_is_spread_over_a_jump_and_its_score_is_the_mean():
    below, upto = np.array([0.12, 0.3, 0.0, 1.0]), np.array([0.62, 0.3, 0.0, 1.0])
    counts = count_bins(below, upto, np.array([10.0, 2.0, 3.0, 4.0]))
    expected = [3.0, 0.0, 0.6, *[1.0] * 9, 0.4, *[0.0] * 6, 4.0]
    expected[6] += 2.0
    np.testing.assert_allclose(counts, expected, atol=1e-12)
    levels = np.linspace(0.12, 0.62, 100_001)
    scores = mean_scores(below, upto)
    assert scores[0] == pytest.approx(ndtri(levels).mean(), abs=1e-5)
    assert scores[1:].tolist() == [ndtri(0.3), -np.inf, np.inf]


def test_outcomes_outside_of_the_support_are_counted_and_speak():
    dist = of_values([0.0, 1.0], np.tile([0.5, 0.5], (60, 1)))
    y = np.repeat([0.0, 1.0, 7.0, -3.0], 15)
    monitor = ForecastMonitor(thresholds=[0.0]).fit(dist, y)
    assert monitor.history_["outside"].tolist() == [30.0]
    assert np.isfinite(monitor.log_e_)


def test_rows_that_were_learned_from_are_told_of(rng):
    seen = SeenRows(60, 0.15, np.arange(60) < 9, 60)
    with pytest.warns(calibration.CalibrationWarning, match=r"9 of the 60 rows"):
        ForecastMonitor().fit(*draw_values(rng, 60), seen=seen)
    # Raised as an error it refuses the batch.
    monitor = ForecastMonitor()
    with pytest.raises(calibration.CalibrationWarning, match="learned from"):
        monitor.partial_fit(*draw_values(rng, 60), seen=seen)
    assert not hasattr(monitor, "n_batches_")


@pytest.mark.parametrize(
    "thresholds",
    [pd.Series([-1.0, 1.0], [3, 4]), range(-1, 2, 2), (np.longdouble(-1), Fraction(1))],
    ids=lambda one: type(one).__name__,
)
def test_settings_of_all_kinds_are_kept(rng, thresholds):
    tenth, half = Fraction(1, 10), np.longdouble(0.5)
    monitor = ForecastMonitor(thresholds=thresholds, alpha=tenth, tolerance=half)
    text = monitor.fit(*draw_values(rng, 60)).to_json()
    again = ForecastMonitor.from_json(text)
    assert [*again.thresholds] == [-1.0, 1.0]
    assert (again.alpha, again.tolerance) == (0.1, 0.5)
    assert again.to_json() == text


@pytest.mark.slow
def test_false_alarms_and_delay_of_fitted_models(rng):
    """A delay is at most four times the 100 rows that a fixed test needs."""
    alarms, delays = 0, []
    for shift in np.repeat([0.0, 0.3], 25):
        one, y = ForecastMonitor(n_fit=600), rng.normal(size=600)
        law = norm(np.full(100, y.mean()), y.std(ddof=1))
        dist = PredictiveDistribution.from_scipy(law)
        for k in range(30):
            batch = rng.normal(size=100) + shift * (k >= 15)
            if one.partial_fit(dist, batch).alarm_:
                break
        if shift:
            delays.append(one.n_rows_ - 1500.0)
        else:
            alarms += one.alarm_
    assert alarms <= 4  # at 5 % that are five or more once in a hundred times
    assert np.mean(delays) <= 400.0


@pytest.mark.parametrize("tolerance", [0.0, 0.03, 0.4, 3.0])
def test_the_greatest_mean_of_bets_in_the_band_is_1_by_linear_program(rng, tolerance):
    bounds = np.column_stack([ndtr(EDGES - tolerance), ndtr(EDGES + tolerance)])
    order, most = -np.diff(np.eye(len(EDGES)), axis=0), np.zeros(len(EDGES) - 1)
    laws = [normal_bins(0.5), normal_bins(0.0, 1.6), *rng.dirichlet(np.ones(20), 20)]
    for pays in np.exp(make_bet(np.array(laws), tolerance)):
        done = linprog(np.diff(pays), order, most, bounds=bounds)
        assert pays[-1] - done.fun == pytest.approx(1.0, rel=1e-7)


def test_likelihoods_of_shifts_by_differences(rng):
    pit = rng.uniform(size=300)
    counts = count_bins(pit, pit, np.ones(300))
    shifts = np.array([-5.0, -0.3, 0.0, 0.7])
    logs, slopes = shift_likelihoods_of_bins(counts, shifts)
    assert logs[2] == pytest.approx(0.0, abs=1e-9)
    up, _ = shift_likelihoods_of_bins(counts, shifts + 1e-5)
    down, _ = shift_likelihoods_of_bins(counts, shifts - 1e-5)
    assert slopes == pytest.approx((up - down) / 2e-5, rel=1e-4)
