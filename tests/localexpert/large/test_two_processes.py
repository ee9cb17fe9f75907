"""Predictions, summaries and a fit by joblib on a cluster of two processes."""

import joblib
import numpy as np
import pandas as pd
import pytest
from dask import dataframe as dd
from distributed import Client, LocalCluster

from calibration import summarize
from localexpert import LocalExpertRegressor, predict_table
from tests.calibration.test_summary import assert_same

pytestmark = [
    pytest.mark.slow,
    # Of Dask's, about how its processes end on a busy machine.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def client():
    """Return the client of two workers with a thread each."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as held,
        Client(held) as connected,
    ):
        yield connected


@pytest.fixture(scope="module")
def rows():
    """Return a table and a target whose spread depends on it."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc"))
    return X, X["a"] + np.exp(0.3 * X["b"]) * rng.normal(size=400)


@pytest.fixture(scope="module")
def here(rows):
    """Return a model that was fitted in this process."""
    return LocalExpertRegressor(n_thresholds=5, cv=2, random_state=0, n_jobs=2).fit(
        *rows
    )


def test_a_fit_by_workers_is_the_fit_here(client, rows, here):
    with joblib.parallel_config("dask", scatter=[rows[0]]):
        there = LocalExpertRegressor(
            n_thresholds=5, cv=2, random_state=0, n_jobs=2
        ).fit(*rows)
    told = client.run_on_scheduler(
        lambda dask_scheduler: [*dask_scheduler.task_prefixes]
    )
    assert [name for name in told if "batch_of_boost" in name]
    X = rows[0][:50]
    frames = [model.predict_dist(X).to_frame() for model in (here, there)]
    pd.testing.assert_frame_equal(*frames)


def test_partitions_are_forecast_by_workers(client, rows, here):
    table = dd.from_pandas(rows[0], npartitions=5)
    said = predict_table(here, table, interval=0.8)
    computed = client.compute(said).result()
    whole = predict_table(here, rows[0], interval=0.8)
    pd.testing.assert_frame_equal(computed, whole, atol=1e-8)


def test_scores_are_summarised_by_workers(client, tmp_path, rng):
    p = rng.uniform(size=20_000)
    frame = pd.DataFrame({"score": p, "label": rng.uniform(size=20_000) < p})
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=1000)
    whole = summarize(frame, max_cells=256)
    for source in (tmp_path, dd.from_pandas(frame, npartitions=7)):
        assert_same(summarize(source, max_cells=256, client=client), whole)
    frame["score"] = frame["score"].where(frame.index != 15_000)
    frame.to_parquet(tmp_path / "b.parquet", row_group_size=1000)
    with pytest.raises(ValueError, match=r"rows in b.parquet.*must be finite, got nan"):
        summarize(tmp_path, client=client)
