"""Progress of fits: shares, time left, silence, and who may move it."""

import contextvars
import io
import threading
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from calibration import CalibrationWarning
from localexpert import LocalExpertRegressor
from localexpert.experts import IndependentExperts, JointForest, SharedBoosting
from localexpert.progress.progress import (
    SILENT,
    Progress,
    current_progress,
    show_progress,
)

CHEAP = {
    "shared": SharedBoosting(max_rounds=30, random_state=0),
    "joint": JointForest(10, random_state=0),
    "independent": IndependentExperts(random_state=0),
    "user's": IndependentExperts(LogisticRegression()),
    "user's forest": IndependentExperts(DecisionTreeClassifier(max_depth=2)),
}


def cheap(**parameters):
    """A regressor that fits in less than a second."""
    defaults = {
        "strategy": CHEAP["shared"],
        "center": LinearRegression(),
        "n_thresholds": 5,
        "cv": 3,
        "random_state": 0,
        "verbose": 1,
    }
    return LocalExpertRegressor(**{**defaults, **parameters})


@pytest.fixture
def data(rng):
    X = rng.uniform(size=(240, 2))
    return X, 3.0 * X[:, 0] + (0.2 + X[:, 1]) * rng.normal(size=240)


class Clock:
    """A clock that stands still unless told to go on."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Record:
    """A line that remembers what it was to show."""

    def __init__(self):
        self.shares, self.texts, self.closed = [], [], None

    def show(self, share, text, now):
        del now
        self.shares.append(share)
        self.texts.append(text)

    def close(self, share, text):
        self.closed = share, text

    def watched(self):
        return warnings.catch_warnings()


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def last_lines(self):
        """Return the last line that was drawn, and what comes after it."""
        *_, bar, end = self.getvalue().replace("\r", "\n").split("\n")
        return bar.rstrip(), end


@pytest.fixture
def record(monkeypatch):
    """The line that fits write on."""
    line = Record()
    monkeypatch.setattr("localexpert.progress.progress._make_line", lambda *_: line)
    return line


class TestFits:
    def check(self, record):
        assert record.closed[0] == 1.0
        assert record.closed[1].startswith("done in ")
        # Every stage that was announced came: nothing is left for the end.
        assert record.shares[-1] == pytest.approx(1.0, abs=1e-9)
        assert (np.diff(record.shares) >= 0.0).all()
        assert max(record.shares) <= 1.0
        assert current_progress() is SILENT

    @pytest.mark.parametrize("name", CHEAP)
    def test_strategies(self, record, data, name):
        cheap(strategy=CHEAP[name]).fit(*data)
        self.check(record)
        assert any("experts" in text for text in record.texts)

    @pytest.mark.parametrize("name", ["shared", "joint", "independent"])
    def test_threads(self, record, data, name):
        cheap(strategy=CHEAP[name], n_jobs=2).fit(*data)
        self.check(record)

    def test_the_default_stack_and_pool(self, record, data):
        cheap(strategy="auto", center="stack").fit(*data)
        self.check(record)
        stages = {text.rpartition(", ")[2] for text in record.texts}
        assert {"centre: trial", "frame: scale", "experts: shared"} <= stages
        assert {"joint: trees", "calibration: quadratic", "laws: spline"} <= stages
        # Enough steps to see it move.
        assert np.diff([0.0, *record.shares]).max() < 0.25

    @pytest.mark.parametrize("frame", [None, "center", "standardize", "auto"])
    def test_frames(self, record, data, frame):
        cheap(frame=frame).fit(*data)
        self.check(record)

    @pytest.mark.parametrize("kind", ["discrete", "mixed"])
    def test_targets_with_heavy_values(self, record, data, kind):
        X, y = data
        y = np.round(y) if kind == "discrete" else np.maximum(y, 1.0)
        model = cheap().fit(X, y)
        assert model.report_.target == kind
        self.check(record)

    def test_a_constant_target(self, record, data):
        with pytest.warns(CalibrationWarning, match="every forecast is that value"):
            cheap().fit(data[0], np.ones(240))
        assert record.closed[0] == 1.0

    @pytest.mark.parametrize("recalibrate", ["pit", "conformal"])
    def test_recalibration(self, record, data, recalibrate):
        cheap(recalibrate=recalibrate).fit(*data)
        self.check(record)

    def test_a_stacker(self, record, data):
        cheap(stacker="auto").fit(*data)
        self.check(record)
        assert any("stacker" in text for text in record.texts)

    @pytest.mark.parametrize("calibrator", [None, "isotonic"])
    def test_calibrators_and_one_spline(self, record, data, calibrator):
        cheap(calibrator=calibrator, smoothing=1.0).fit(*data)
        self.check(record)

    def test_processes_give_the_same_forecasts(self, record, data):
        X, _ = data
        options = {"strategy": "independent", "expert": LogisticRegression()}
        one = cheap(**options, verbose=0).fit(*data)
        assert record.shares == []
        two = cheap(**options, n_jobs=2).fit(*data)
        self.check(record)
        levels = [0.1, 0.5, 0.9]
        np.testing.assert_array_equal(
            one.predict_quantiles(X, levels), two.predict_quantiles(X, levels)
        )

    @pytest.mark.parametrize("strategy", ["shared", "joint", "independent"])
    def test_showing_it_changes_no_forecast(self, record, data, strategy):
        X, _ = data
        answers = [
            cheap(strategy=CHEAP[strategy], verbose=v, n_jobs=n).fit(*data).predict(X)
            for v, n in ((0, None), (1, None), (1, 2))
        ]
        np.testing.assert_array_equal(answers[1], answers[0])
        np.testing.assert_array_equal(answers[2], answers[0])
        # Both bars were full, one after the other.
        assert sum(share > 1.0 - 1e-9 for share in record.shares) >= 2


class Broken(LogisticRegression):
    """A classifier that fails, or that is interrupted, in its second fit."""

    n_fits = 0

    def __init__(self, error=ValueError):
        super().__init__()
        self.error = error

    def fit(self, X, y, sample_weight=None):
        type(self).n_fits += 1
        if self.n_fits > 1:
            msg = "out of ideas"
            raise self.error(msg)
        return super().fit(X, y, sample_weight)


class TestWhatIsWritten:
    def test_silent_by_default(self, data, capfd):
        parameters = cheap().get_params(deep=False)
        del parameters["verbose"]
        LocalExpertRegressor(**parameters).fit(*data)
        assert LocalExpertRegressor().verbose == 0
        assert capfd.readouterr() == ("", "")

    def test_a_few_plain_lines_where_nobody_watches(self, data, capsys):
        cheap().fit(*data)
        out, err = capsys.readouterr()
        assert out == ""
        assert "\r" not in err
        lines = err.splitlines()
        assert 2 <= len(lines) <= 5
        assert all(line.startswith("LocalExpertRegressor ") for line in lines)
        percents = [int(line.split()[1]) for line in lines]
        assert percents == sorted(set(percents))
        assert percents[-1] == 100

    def test_one_line_in_a_terminal(self, data, monkeypatch):
        terminal = Terminal()
        monkeypatch.setattr("sys.stderr", terminal)
        cheap(n_jobs=2).fit(*data)
        bar, end = terminal.last_lines()
        assert end == ""
        assert bar.startswith("LocalExpertRegressor [####")
        assert "] 100 % done in " in bar
        assert len(bar) < 80

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_a_failure_ends_the_line(self, data, monkeypatch, error):
        terminal = Terminal()
        monkeypatch.setattr("sys.stderr", terminal)
        monkeypatch.setattr(Broken, "n_fits", 0)
        expected = RuntimeError if error is ValueError else error
        with pytest.raises(expected, match="out of ideas"):
            cheap(strategy="auto", expert=Broken(error)).fit(*data)
        bar, end = terminal.last_lines()
        assert end == ""
        assert "stopped after" in bar
        assert 0 < int(bar.partition("]")[2].split()[0]) < 100
        assert current_progress() is SILENT

    def test_no_stream_no_progress(self, data, monkeypatch):
        monkeypatch.setattr("sys.stderr", None)
        cheap().fit(*data)

    @pytest.mark.parametrize("verbose", [-1, "yes", 0.5])
    def test_verbose_is_a_number(self, data, verbose):
        with pytest.raises((TypeError, ValueError), match="`verbose` must be"):
            cheap(verbose=verbose).fit(*data)


class TestTimeLeft:
    def test_is_exact_at_an_even_pace(self):
        clock, record = Clock(), Record()
        with Progress(record, clock) as progress:
            assert progress.seconds_left() is None
            for number, _ in enumerate(progress.track(range(10), [1.0] * 10)):
                if number:
                    assert progress.seconds_left() == pytest.approx(80.0 - 8.0 * number)
                clock.now += 8.0
        assert record.texts[0] == "1 min 12 s left"
        assert record.closed == (1.0, "done in 1 min 20 s")

    def test_stages_that_cost_what_was_said(self):
        """Two units of cost a second, in stages within stages."""
        clock = Clock()
        with Progress(Record(), clock) as progress:
            progress.plan({"frame": 40.0, "experts": 60.0})
            with progress.stage("frame"):
                progress.plan({"centre": 3.0, "scale": 1.0})
                with progress.stage("centre"):
                    clock.now = 15.0
                assert progress.seconds_left() == pytest.approx(35.0)
                assert progress.share() == pytest.approx(0.3)
                with progress.stage("scale"):
                    clock.now = 20.0
            with progress.stage("experts"):
                assert progress.seconds_left() == pytest.approx(30.0)
                clock.now = 35.0
                progress.reach(0.5)
                assert progress.seconds_left() == pytest.approx(15.0)
                assert progress.share() == pytest.approx(0.7)
                progress.reach(0.2)  # no way back
                assert progress.share() == pytest.approx(0.7)

    def test_forgets_a_wrong_guess(self):
        """Experts were to take a quarter of the frame's time, and take ten times it."""
        clock = Clock()
        with Progress(Record(), clock) as progress:
            progress.plan({"frame": 8.0, "experts": 2.0, "spline": 0.1})
            with progress.stage("frame"):
                clock.now = 20.0
            said = []
            with progress.stage("experts"):
                for _ in progress.track(range(100), [1.0] * 100):
                    said.append(progress.seconds_left())
                    clock.now += 2.0
        truth = 200.0 - 2.0 * np.arange(100)
        assert said[0] == pytest.approx(5.0, abs=0.5)
        assert np.array(said[10:]) == pytest.approx(truth[10:], rel=0.4)
        assert np.array(said[30:]) == pytest.approx(truth[30:], rel=0.2)
        assert (np.diff(said[20:]) < 0.0).all()

    def test_costs_of_single_items(self):
        record = Record()
        with Progress(record, Clock()) as progress:
            list(progress.track("ab", [3.0, 1.0]))
        assert record.shares == pytest.approx([0.75, 1.0])

    def test_a_stage_without_cost_moves_nothing(self):
        with Progress(Record(), Clock()) as progress:
            progress.plan({"nothing": 0.0, "all": 1.0})
            with progress.stage("nothing"):
                progress.reach(0.5)
                assert progress.share() == 0.0
            assert progress.share() == 0.0

    def test_a_failed_stage_says_how_far_it_came(self):
        record = Record()

        def work():
            with Progress(record, Clock()) as progress:
                progress.plan({"a": 1.0, "b": 3.0})
                with progress.stage("a"):
                    pass
                with progress.stage("b"):
                    progress.reach(0.5)
                    msg = "half way"
                    raise ValueError(msg)

        with pytest.raises(ValueError, match="half way"):
            work()
        assert record.closed[0] == pytest.approx(0.25 + 0.375)


class TestWhoMayMoveIt:
    def test_threads_of_workers_may_not(self):
        seen = []
        with show_progress(1, "fit", stream=io.StringIO()) as progress:
            assert current_progress() is progress
            context = contextvars.copy_context()
            thread = threading.Thread(
                target=lambda: seen.append(context.run(current_progress))
            )
            thread.start()
            thread.join()
        assert seen == [SILENT]

    @pytest.mark.parametrize("verbose", [0, 1])
    def test_a_fit_inside_a_fit_is_silent(self, data, capsys, verbose):
        stream = io.StringIO()
        with show_progress(1, "outer", stream=stream) as progress:
            cheap(verbose=verbose).fit(*data)
            assert progress.share() == 0.0
        assert capsys.readouterr().err == ""
        (line,) = stream.getvalue().splitlines()
        assert line.startswith("outer 100 % done in ")
