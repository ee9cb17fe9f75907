"""A Dask cluster of two processes, of which one dies in the middle of each pass."""

import os
from itertools import count

import dask
import dask.dataframe as dd
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from distributed.utils import get_mp_context

from calibration import sources
from localexpert import predict_table
from localexpert.large import tables
from tests.localexpert.large import test_fit_large as fits

pytestmark = [
    pytest.mark.slow,
    # Of Dask's, about how its processes end on a busy machine.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def cluster():
    """Return two workers, which are forked of a process that has all imported."""
    method = {"distributed.worker.multiprocessing-method": "forkserver"}
    with dask.config.set(method):
        get_mp_context().set_forkserver_preload(["distributed", "localexpert"])
        with LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as held:
            yield held


@pytest.fixture
def client(cluster):
    """Return a client when both workers are there, again if one had died."""
    with Client(cluster) as connected:
        connected.wait_for_workers(2, timeout=60)
        yield connected


class Deaths:
    """Functions in which the worker that is the third to call them dies."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()

    def of(self, call, *, by_job=False):
        """Return a function in which one worker dies, or one for each kind of job."""
        folder, home = self.folder, os.getpid()

        # Defined here, it is sent to workers as it is.
        def call_or_die(*given):
            job = type(given[0]).__name__ if by_job else "any"
            if os.getpid() != home:
                for number in count():
                    try:
                        (folder / f"{job} {number}").touch(exist_ok=False)
                    except FileExistsError:
                        continue
                    if number == 2:
                        os._exit(1)
                    break
            return call(*given)

        return call_or_die

    def count(self, job="any"):
        """Return how many calls of workers there were."""
        return len(list(self.folder.glob(f"{job} *")))


@pytest.fixture
def deaths(tmp_path):
    return Deaths(tmp_path / "calls")


@pytest.mark.usefixtures("client")
def test_both_passes_of_a_fit(deaths, monkeypatch):
    ask = deaths.of(sources.ask_part, by_job=True)
    monkeypatch.setattr(sources, "ask_part", ask)
    model = fits.fit(dd.from_pandas(fits.table(), npartitions=6))
    assert all(deaths.count(job) > 6 for job in ("Draw", "CountScores"))
    fits.assert_same(model, fits.in_one_table())


def test_forecasts_of_partitions(client, deaths, monkeypatch):
    predict = deaths.of(tables._predict_part)
    monkeypatch.setattr(tables, "_predict_part", predict)
    table, model = fits.table()[["a", "b"]], fits.in_one_table()
    said = predict_table(model, dd.from_pandas(table, npartitions=6), interval=0.8)
    computed = client.compute(said).result()
    assert deaths.count() > 6
    whole = predict_table(model, table, interval=0.8)
    pd.testing.assert_frame_equal(computed, whole, atol=1e-8)
