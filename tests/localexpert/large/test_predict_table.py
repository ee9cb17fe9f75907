"""`predict_table`: the same answers in any batch, of tables of any library."""

import pickle

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from localexpert import LocalExpertRegressor, predict_dist, predict_table

ASKED = {"quantiles": [0.1, 0.5], "interval": 0.8, "exceed": [0.0, 1.5]}
INTERVAL, ABOVE = ["low_0.8", "high_0.8"], ["p_above_0", "p_above_1.5"]
COLUMNS = ["mean", "std", "q0.1", "q0.5", *INTERVAL, *ABOVE]


@pytest.mark.parametrize("size", [1, 7, 90, 1000])
def test_any_batch_under_any_index_gives_the_answers_of_the_whole(model, rows, size):
    whole = model.predict_dist(rows).to_frame(**ASKED, index=rows.index)
    assert list(whole.columns) == COLUMNS
    several = pd.MultiIndex.from_product([["u", "v", "u"], range(30)])
    for index in (rows.index, several):
        said = predict_table(model, rows.set_axis(index), **ASKED, batch_size=size)
        pd.testing.assert_frame_equal(said, whole.set_axis(index), rtol=0.0, atol=1e-8)
    asked = []

    class Watched:
        def predict_dist(self, X):
            asked.append(len(X))
            return model.predict_dist(X)

    predict_table(Watched(), rows, batch_size=size)
    assert max(asked) == min(size, 90)
    assert sum(asked) == 90


def test_single_precision_is_that_of_double_of_no_rows_too(model, rows):
    for table in (rows, rows[:0]):
        double = predict_table(model, table, **ASKED)
        single = predict_table(model, table, **ASKED, dtype="float32")
        pd.testing.assert_frame_equal(single, double.astype("float32"))
        pd.testing.assert_index_equal(single.index, table.index)


def test_tables_of_other_libraries_give_tables_of_theirs(model, rows):
    whole = predict_table(model, rows, **ASKED)
    plain = rows.reset_index(drop=True)
    polars = predict_table(model, pl.from_pandas(plain), **ASKED, batch_size=40)
    arrow = predict_table(model, pa.table(plain), **ASKED, batch_size=40)
    assert isinstance(polars, pl.DataFrame)
    assert isinstance(arrow, pa.Table)
    assert polars.columns == arrow.column_names == COLUMNS
    assert_allclose(polars.to_numpy(), whole, rtol=0.0, atol=1e-8)
    assert_allclose(arrow.to_pandas(), whole, rtol=0.0, atol=1e-8)
    empty = predict_table(model, pl.from_pandas(plain)[:0])
    assert empty.shape == (0, 5)


def test_arrays_and_wrapped_models(rng):
    X = rng.normal(size=(50, 2))
    quick = {"strategy": "joint", "frame": None, "n_thresholds": 3, "cv": 2}
    inner = LocalExpertRegressor(**quick, random_state=0)
    model = make_pipeline(FunctionTransformer(np.tanh), inner).fit(X, X[:, 0])
    said = predict_table(model, X, batch_size=20)
    assert isinstance(said.index, pd.RangeIndex)
    assert_allclose(said["mean"], predict_dist(model, X).mean(), rtol=0.0, atol=1e-8)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_partitions_of_dask(model, rows, scheduler):
    parts = [rows.iloc[:40], rows.iloc[:0], rows.iloc[40:41], rows.iloc[41:]]
    table = dd.from_map(lambda i: parts[i], range(4), meta=rows.iloc[:0])
    assert not table.known_divisions
    said = predict_table(model, table, **ASKED, dtype="float32")
    assert isinstance(said, dd.DataFrame)
    assert said.npartitions == 4
    with dask.config.set(scheduler=scheduler):
        computed = said.compute()
    whole = predict_table(model, rows, **ASKED, dtype="float32")
    pd.testing.assert_frame_equal(computed, whole, rtol=1e-6, atol=1e-6)
    # Known divisions are kept, and columns can be picked.
    ordered = rows.sort_index()
    table = dd.from_pandas(ordered, npartitions=3)
    said = predict_table(model, table)
    assert said.divisions == table.divisions
    q = predict_table(model, ordered)["q0.5"]
    assert_allclose(said["q0.5"].compute(), q, rtol=0.0, atol=1e-8)


class Counted:
    """Forecasts as another model does, and counts how often it is written down."""

    times = 0

    def __init__(self, model):
        self.model = model

    def predict_dist(self, X):
        return self.model.predict_dist(X)

    def __reduce__(self):
        Counted.times += 1
        return type(self), (self.model,)


def test_the_model_is_in_the_graph_once(model, rows):
    table = dd.from_pandas(rows.sort_index(), npartitions=6)
    Counted.times = 0
    graph = predict_table(Counted(model), table).optimize().dask
    pickle.dumps(dict(graph))
    assert Counted.times == 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"table": [[1.0, 2.0]]}, "`table` must be a data frame .*got builtins.list"),
        ({"table": np.zeros(3)}, r"`table` must be .*got shape \(3,\)"),
        ({"table": pl.LazyFrame({"a": [1.0]})}, "got polars.LazyFrame"),
        ({"batch_size": 0}, "`batch_size` must be at least 1, got 0"),
    ],
)
def test_refusals(model, rows, given, words):
    with pytest.raises((TypeError, ValueError), match=words):
        predict_table(**{"model": model, "table": rows, **given})
