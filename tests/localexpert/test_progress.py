"""Progress of fits: stages and counts, silence, logs, and who may move the bar."""

import contextvars
import functools
import io
import itertools
import re
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import tqdm.auto
from numba.core import event
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.parallel import delayed

from calibration._kernels import _jit
from calibration._kernels.pav import pool_adjacent_violators
from localexpert import LocalExpertRegressor
from localexpert.experts import IndependentExperts, JointForest, SharedBoosting
from localexpert.progress import SILENT, current_progress, run_jobs, show_progress
from tests.regressors import fast

CHEAP = {
    "shared": SharedBoosting(max_rounds=30, random_state=0),
    "joint": JointForest(10, random_state=0),
    "independent": IndependentExperts(random_state=0),
    "user's": IndependentExperts(LogisticRegression()),
    "user's forest": IndependentExperts(DecisionTreeClassifier(max_depth=2)),
}
COUNT = re.compile(r"(.*): +\d+%\|.*\| (\d+)/(\d+) \[\d\d:\d\d<.*\]")
NAME = re.compile(r"(.*) \[\d\d:\d\d\]")


def cheap(**parameters):
    """A regressor that fits in less than a second."""
    return fast(**{"n_thresholds": 5, "verbose": 1, **parameters})


@pytest.fixture
def data(rng):
    X = rng.uniform(size=(240, 2))
    return X, 3.0 * X[:, 0] + (0.2 + X[:, 1]) * rng.normal(size=240)


class Terminal(io.StringIO):
    """A terminal that remembers what was drawn."""

    def isatty(self):
        return True

    def drawn(self):
        """Return what was drawn in turn: (name, done, total), or (name,) alone."""
        found = []
        for line in map(str.strip, self.getvalue().split("\r")):
            if line:
                match = COUNT.fullmatch(line) or NAME.fullmatch(line)
                assert match, line
                name, *counts = match.groups()
                found.append((name, *map(int, counts)))
        return found

    def names(self):
        """Return the names in turn, each once as long as it stands."""
        return [name for name, _ in itertools.groupby(row[0] for row in self.drawn())]

    def last_counts(self):
        """Return the last count and total of each time that a stage stood."""
        groups = itertools.groupby(self.drawn(), key=lambda row: row[0])
        last = [list(rows)[-1] for _, rows in groups]
        return [row for row in last if len(row) == 3]


@pytest.fixture
def terminal(monkeypatch):
    """The terminal that stderr is, on which every change is drawn.

    The module's `sys` is replaced: pytest itself sets `sys.stderr` before a test.
    """
    eager = functools.partial(tqdm.auto.tqdm, mininterval=0.0)
    monkeypatch.setattr("tqdm.auto.tqdm", eager)
    terminal = Terminal()
    monkeypatch.setattr("localexpert.progress.sys", SimpleNamespace(stderr=terminal))
    return terminal


class TestBar:
    def test_stages_count_and_outer_ones_go_on(self, terminal):
        with show_progress(1, "fit") as progress:
            with progress.stage("a"):
                for item in progress.track("xy", 2):
                    if item == "y":
                        with progress.stage("b"):
                            progress.reach(3, 7)
                            progress.reach(5, 7)
                            progress.reach(9, 9)
            with progress.stage("c"), progress.stage("d"), progress.stage("e"):
                pass
        # Whatever changes a stage's length draws it from its start.
        drawn = [row for row, _ in itertools.groupby(terminal.drawn())]
        counted = [" ".join(map(str, row)) for row in drawn if row[1:2] != (0,)]
        inner = ["fit: a: b", "fit: a: b 3 7", "fit: a: b 5 7", "fit: a: b 9 9"]
        assert counted[:3] == ["fit", "fit: a", "fit: a 1 2"]
        assert counted[3:9] == [*inner, "fit: a 1 2", "fit: a 2 2"]
        deep = ["fit: c", "fit: c: d", "fit: d: e", "fit: c: d", "fit: c"]
        assert counted[9:] == ["fit", *deep, "fit", "fit: done"]
        assert terminal.getvalue().endswith("\n")
        assert terminal.getvalue().count("\n") == 1

    def test_every_stage_has_a_clock_of_its_own(self, terminal):
        with show_progress(1, "fit") as progress:
            progress._open[0].start -= 90.0
            with progress.stage("a"):
                progress._open[1].start -= 30.0
                progress.reach(1, 4)
        lines = [line.strip() for line in terminal.getvalue().split("\r")]
        assert any(line.endswith("1/4 [00:30<01:30]") for line in lines)
        assert lines[-1] == "fit: done [01:30]"

    def test_notebooks_draw_a_bar(self, monkeypatch):
        notebook = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.io"})()
        monkeypatch.setattr("sys.stderr", notebook)
        with show_progress(1, "fit"):
            pass
        assert notebook.getvalue().startswith("\rfit [00:00]\r")

    def test_compilation_is_told_above_it(self, terminal, monkeypatch):
        monkeypatch.setattr(_jit, "_FIRST", _jit._FirstCompilation())
        data = {"dispatcher": SimpleNamespace(py_func=pool_adjacent_violators)}
        with show_progress(1, "Fit"), event.trigger_event("numba:compile", data=data):
            pass
        assert "Fit: loops are being compiled" in terminal.getvalue()

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_a_failure_closes_it(self, terminal, error):
        bar = show_progress(1, "fit")
        with pytest.raises(error), bar as progress, progress.stage("a"):
            raise error
        assert terminal.names() == ["fit", "fit: a", "fit", "fit: stopped"]
        assert terminal.getvalue().endswith("\n")
        assert current_progress() is SILENT


class TestJobs:
    @pytest.mark.parametrize(
        "options", [{}, {"n_jobs": 2, "prefer": "threads"}, {"n_jobs": 2}]
    )
    def test_every_result_counts(self, terminal, options):
        jobs = [delayed(pow)(k, 2) for k in range(4)]
        with show_progress(1, "jobs"):
            assert run_jobs(jobs, **options) == [0, 1, 4, 9]
        assert run_jobs(jobs, **options) == [0, 1, 4, 9]  # silently
        counts = [row[1:] for row in terminal.drawn() if len(row) == 3]
        assert [count for count, _ in itertools.groupby(counts)] == [
            (k, 4) for k in range(5)
        ]


class TestFits:
    def check(self, terminal):
        names = terminal.names()
        assert names[0] == "LocalExpertRegressor"
        assert names[-1] == "LocalExpertRegressor: done"
        last = terminal.last_counts()
        assert last
        assert [row for row in last if row[1] != row[2]] == []
        assert current_progress() is SILENT
        return [name.removeprefix("LocalExpertRegressor: ") for name in names]

    @pytest.mark.parametrize("name", CHEAP)
    def test_strategies(self, terminal, data, name):
        cheap(strategy=CHEAP[name], n_jobs=2).fit(*data)
        names = self.check(terminal)
        stages = [n for n in names if n in ("frame", "experts", "calibration")]
        order = " ".join(n for n, _ in itertools.groupby(stages))
        assert order == "frame experts calibration"
        # The experts count whatever they consist of.
        inside = names[names.index("experts") : names.index("calibration")]
        counted = {row[0] for row in terminal.last_counts()}
        assert any(f"LocalExpertRegressor: {name}" in counted for name in inside)

    @pytest.mark.parametrize(
        ("given", "stages"),
        [
            ({"frame": None}, "experts"),
            ({"frame": "center"}, "frame: centre, experts"),
            ({"stacker": "auto", "recalibrate": "pit"}, "frame: scale, stacker"),
            ({"target": np.round}, "experts"),
            ({"target": np.abs}, "atoms: experts, rest: frame"),
            (
                {"strategy": "auto", "center": "stack"},
                "centre: trial, centre: families, frame: scale, experts: shared, joint:"
                " trees, calibration: quadratic, calibration: all rows, spline",
            ),
        ],
    )
    def test_stages_come_in_their_order(self, terminal, data, given, stages):
        target = given.pop("target", np.array)
        y = np.maximum(data[1], 1.0) if target is np.abs else target(data[1])
        cheap(**given).fit(data[0], y)
        names = self.check(terminal)
        places = [names.index(stage) for stage in stages.split(", ")]
        assert places == sorted(places)
        if "frame" not in stages:
            assert "frame" not in names or given == {"frame": None}

    def test_processes_and_the_bar_change_no_forecast(self, terminal, data):
        X, _ = data
        options = {"strategy": "independent", "expert": LogisticRegression()}
        silent = cheap(**options, verbose=0).fit(*data)
        assert terminal.getvalue() == ""
        for n_jobs in (None, 2):
            told = cheap(**options, n_jobs=n_jobs).fit(*data)
            self.check(terminal)
            want = silent.predict_quantiles(X, [0.1, 0.9])
            assert_array_equal(told.predict_quantiles(X, [0.1, 0.9]), want)


class TestLogs:
    def test_a_line_for_each_stage_of_the_upper_two_levels(self, capsys):
        with show_progress(1, "fit") as progress, progress.stage("a"):
            progress.reach(1, 2)
            with progress.stage("b"), progress.stage("c"):
                pass
        out, err = capsys.readouterr()
        assert out == ""
        assert err == "fit: a: b [00:00]\nfit: a [00:00]\nfit: done [00:00]\n"
        # A stage that failed has no line.
        with (
            pytest.raises(KeyboardInterrupt),
            show_progress(1, "fit") as progress,
            progress.stage("a"),
        ):
            raise KeyboardInterrupt
        assert capsys.readouterr().err == "fit: stopped [00:00]\n"


class TestSilence:
    def test_by_default_no_bar_is_made(self, data, capfd, monkeypatch):
        monkeypatch.delattr("tqdm.auto.tqdm")
        assert LocalExpertRegressor().verbose == 0
        cheap(verbose=0).fit(*data)
        assert capfd.readouterr() == ("", "")

    def test_where_there_is_no_stderr(self, data, monkeypatch):
        monkeypatch.setattr("sys.stderr", None)
        cheap().fit(*data)

    @pytest.mark.usefixtures("terminal")
    def test_in_threads_of_workers(self):
        with show_progress(1, "fit") as progress, ThreadPoolExecutor(1) as pool:
            assert current_progress() is progress
            context = contextvars.copy_context()
            assert pool.submit(context.run, current_progress).result() is SILENT

    def test_of_a_fit_inside_a_fit(self, terminal, data):
        with show_progress(1, "outer") as progress:
            cheap().fit(*data)
            assert current_progress() is progress
        assert terminal.names() == ["outer", "outer: done"]
