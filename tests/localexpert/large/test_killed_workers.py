"""A worker of a two-process cluster that dies in the middle of a stage."""

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from distributed.utils import get_mp_context

from calibration import summarize
from calibration.sources import summarize as summaries
from localexpert import predict_table
from localexpert.large import passes
from localexpert.large import predict_table as predictions
from tests.calibration.test_summary import assert_same as assert_same_summary
from tests.localexpert.large import test_fit_large as by_sample
from tests.localexpert.large import test_train_all as by_all_rows

pytestmark = [
    pytest.mark.slow,
    # Of Dask's, about how its processes end on a busy machine.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

PASSES = ("scan", "sample", "thresholds", "recalibration")
ALL_PASSES = (*PASSES[:2], "all rows", *PASSES[2:])


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Return two workers, which are forked of a process that has all imported."""
    method = {"distributed.worker.multiprocessing-method": "forkserver"}
    with dask.config.set(method):
        get_mp_context().set_forkserver_preload(["distributed", "localexpert"])
        with LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as held:
            yield held


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    """Return a client when both workers are there, again if one had died."""
    with Client(cluster) as connected:
        connected.wait_for_workers(2, timeout=60)
        yield connected


class Deaths:
    """Functions in which the worker that is the third to call them dies."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir()

    def of(self, call: Callable[..., Any], stages: tuple[str, ...] = ()) -> Any:
        """Return a function in which one worker dies, or one in each of some passes."""
        folder, home = self.folder, os.getpid()

        # Defined here, it is sent to workers as it is.
        def call_or_die(*given: Any) -> Any:
            stage = given[0].name if stages else ""
            if os.getpid() != home and (not stages or stage in stages):
                for number in count():
                    try:
                        (folder / f"{stage} {number}").touch(exist_ok=False)
                    except FileExistsError:
                        continue
                    if number == 2:
                        os._exit(1)
                    break
            return call(*given)

        return call_or_die

    def count(self, stage: str = "") -> int:
        """Return how many calls of workers there were."""
        return len(list(self.folder.glob(f"{stage} *")))


@pytest.fixture
def deaths(tmp_path: Path) -> Deaths:
    return Deaths(tmp_path / "calls")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    for number, part in enumerate(by_sample.frames(by_sample.table(), 4)):
        part.to_parquet(folder / f"{number}.parquet")
    return folder


@pytest.mark.parametrize("stage", PASSES)
def test_a_pass_over_files(
    client: Client,
    deaths: Deaths,
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
    stage: str,
) -> None:
    monkeypatch.setattr(passes, "_call", deaths.of(passes._call, (stage,)))
    model = by_sample.fit(files, client=client)
    assert deaths.count(stage) > len(list(files.iterdir()))
    by_sample.assert_same(model, by_sample.in_one_table())


# By the second, what a worker had when it died is asked of the caller.
@pytest.mark.parametrize("allowed", [3, 0])
def test_all_passes_over_partitions(
    client: Client,
    deaths: Deaths,
    monkeypatch: pytest.MonkeyPatch,
    cluster: LocalCluster,
    allowed: int,
) -> None:
    monkeypatch.setattr(passes, "_call", deaths.of(passes._call, PASSES))
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", allowed)
    source = dd.from_pandas(by_sample.table(), npartitions=6)
    model = by_sample.fit(source, client=client)
    assert all(deaths.count(stage) >= 3 for stage in PASSES)
    by_sample.assert_same(model, by_sample.in_one_table())


def test_all_passes_of_a_fit_to_all_rows(
    client: Client, deaths: Deaths, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for number, start in enumerate(range(0, 12_000, 2000)):
        part = by_all_rows.table()[start : start + 2000]
        part.to_parquet(tmp_path / f"{number}.parquet")
    monkeypatch.setattr(passes, "_call", deaths.of(passes._call, ALL_PASSES))
    model = by_all_rows.fit(sorted(tmp_path.glob("*.parquet")), client=client)
    assert all(deaths.count(stage) > 6 for stage in ALL_PASSES)
    new, whole = by_all_rows.draw(4000, seed=1), by_all_rows.fitted()
    told = [by_all_rows.crps(one, new) for one in (model, whole)]
    assert told[0] == pytest.approx(told[1], rel=0.005)


@pytest.mark.parametrize("stage", ["reading", "merging"])
def test_a_summary_of_scores(
    client: Client, deaths: Deaths, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    p = np.random.default_rng(0).uniform(size=20_000)
    label = np.random.default_rng(1).uniform(size=20_000) < p
    frame = pd.DataFrame({"score": p, "label": label})

    def read(number: int) -> pd.DataFrame:
        return frame.iloc[500 * number : 500 * number + 500]

    if stage == "reading":
        read = deaths.of(read)
    else:
        merge = deaths.of(summaries.merge_summaries)
        monkeypatch.setattr(summaries, "merge_summaries", merge)
    source = dd.from_map(read, range(40), meta=frame.iloc[:0])
    found = summarize(source, max_cells=256, client=client)
    # Leaves are merged by eight.
    assert deaths.count() > (40 if stage == "reading" else 6)
    assert_same_summary(found, summarize(frame, max_cells=256))


def test_forecasts_of_partitions(
    client: Client, deaths: Deaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    predict = deaths.of(predictions._predict_part)
    monkeypatch.setattr(predictions, "_predict_part", predict)
    table, model = by_sample.table()[["a", "b"]], by_sample.in_one_table()
    said = predict_table(model, dd.from_pandas(table, npartitions=6), interval=0.8)
    computed = client.compute(said).result()
    assert deaths.count() > 6
    whole = predict_table(model, table, interval=0.8)
    pd.testing.assert_frame_equal(computed, whole, atol=1e-8)
