"""`run_jobs`: results in order, and progress told as they arrive."""

import io

import joblib
import pytest
from joblib.parallel import BACKENDS, ThreadingBackend
from sklearn.utils.parallel import delayed

from localexpert.progress.jobs import run_jobs
from localexpert.progress.progress import show_progress


def squares(**options):
    """Results and the lines of progress of four jobs."""
    stream = io.StringIO()
    with show_progress(1, "jobs", stream=stream):
        results = run_jobs([delayed(pow)(k, 2) for k in range(4)], **options)
    percents = [int(line.split()[1]) for line in stream.getvalue().splitlines()]
    return results, percents


@pytest.mark.parametrize(
    "options", [{}, {"n_jobs": 2, "prefer": "threads"}, {"n_jobs": 2}]
)
def test_every_result_is_a_step(options):
    # Lines come at fifths.
    assert squares(**options) == ([0, 1, 4, 9], [25, 50, 75, 100])


def test_costs_say_how_long_the_steps_are():
    results, percents = squares(costs=[1.0, 5.0, 3.0, 1.0])
    assert results == [0, 1, 4, 9]
    assert percents == [60, 90, 100]


def test_silence_gives_the_same():
    assert run_jobs([delayed(pow)(k, 2) for k in range(4)], n_jobs=2) == [0, 1, 4, 9]


def test_a_backend_that_hands_over_all_at_once(monkeypatch):
    """Such as multiprocessing, or those of clusters."""

    class AllAtOnce(ThreadingBackend):
        supports_return_generator = False

    monkeypatch.setitem(BACKENDS, "all at once", AllAtOnce)
    with joblib.parallel_config(backend="all at once", n_jobs=2):
        assert squares() == ([0, 1, 4, 9], [25, 50, 75, 100])


def test_errors_come_home():
    with pytest.raises(TypeError, match="unsupported operand"):
        run_jobs([delayed(pow)("a", 2)])
    stream = io.StringIO()
    with (
        pytest.raises(TypeError, match="unsupported operand"),
        show_progress(1, "jobs", stream=stream),
    ):
        run_jobs([delayed(pow)("a", 2)] * 3, n_jobs=2, prefer="threads")
    assert stream.getvalue().startswith("jobs   0 % stopped after ")
