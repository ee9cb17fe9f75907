"""Tables: three views of any container, cut from one reading."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from localexpert.data.table import Table


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "size": [1.0, np.nan, 3.0, 4.0],
            "kind": pd.Categorical(["b", "a", None, "b"], ["c", "b", "a"]),
            "flag": [True, False, True, True],
            "town": ["Ulm", "Bonn", "Ulm", None],
        }
    )


SIZE, KIND = [1.0, np.nan, 3.0, 4.0], [0.0, 1.0, np.nan, 0.0]
CODES = np.column_stack([SIZE, KIND, [1, 0, 1, 1], [1, 0, 1, np.nan]])


def to_polars(frame):
    kind = pl.col("kind").cast(pl.String).cast(pl.Enum(["c", "b", "a"]))
    return pl.from_pandas(frame).with_columns(kind)


@pytest.mark.parametrize("convert", [lambda frame: frame, to_polars])
def test_parts_and_more_columns_are_as_read_anew(frame, convert):
    rows, more = np.array([3, 0, 0]), np.array([0.5, 0.1, 0.2])
    table = Table.of(convert(frame))
    assert table.reader.categories == [1, 3]
    part = table.take(rows).with_columns(**{"log s(x)": more})
    np.testing.assert_array_equal(part.codes, np.column_stack([CODES[rows], more]))
    assert list(part.given.columns) == [*frame.columns, "log s(x)"]
    again = part.reader.read(part.given)
    np.testing.assert_array_equal(again.codes, part.codes)
    assert len(part) == len(again) == 3


def test_new_columns_take_no_place_of_others():
    more = {"center(x)": np.ones(2), "s": np.zeros(2)}
    named = pd.DataFrame({"center(x)": [3.0, 4.0], "b": [5.0, 6.0]})
    wide = Table.of(named).with_columns(**more)
    assert list(wide.given.columns) == ["center(x)", "b", "center(x)_", "s"]
    np.testing.assert_array_equal(wide.given.to_numpy(), wide.codes)
    assert list(named.columns) == ["center(x)", "b"]
    # scikit-learn takes names of one type only.
    wide = Table.of(pd.DataFrame([[3.0, 5.0], [4.0, 6.0]])).with_columns(**more)
    assert list(wide.given.columns) == [0, 1, 2, 3]
    assert wide.reader.columns.names == (0, 1, 2, 3)


def test_nothing_is_read_that_is_not_asked_for(frame):
    # A learner of the user's may read what we cannot, such as lists.
    frame["day"] = [[1], [2], [3], [4]]
    part = Table.of(frame).take(np.array([1])).with_columns(more=np.ones(1))
    assert part.given["day"].tolist() == [[2]]
    with pytest.raises(TypeError, match=r"got \[1\] \(row 0\) in column 'day'"):
        _ = part.codes


def test_new_rows_are_read_as_those_of_the_fit(frame):
    reader = Table.of(frame).reader
    new = frame.iloc[[0]].assign(town="Rome", kind="a")
    np.testing.assert_array_equal(reader.read(new).codes, [[1.0, 1.0, 1.0, np.nan]])
    with pytest.raises(ValueError, match="`X` must have 4 columns as in `fit`, got 2"):
        reader.read(frame[["size", "kind"]])
    with pytest.raises(ValueError, match="got 'kind' in the place of 'size'"):
        reader.read(frame[["kind", "size", "flag", "town"]])


def test_pickles_hold_rows_and_no_views(frame):
    table = Table.of(frame)
    _ = table.codes
    back = pickle.loads(pickle.dumps(table.take(np.array([2, 1]))))
    assert "codes" not in vars(back)
    np.testing.assert_array_equal(back.codes, CODES[[2, 1]])


def test_names_with_levels_get_names_with_levels():
    levels = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])
    table = Table.of(pd.DataFrame(np.zeros((4, 2)), columns=levels))
    wide = table.with_columns(**{"center(x)": np.arange(4.0)})
    assert wide.reader.columns.names == tuple(wide.given.columns)
    assert wide.given.columns[-1] == ("center(x)", "")
    back = pickle.loads(pickle.dumps(wide))
    np.testing.assert_array_equal(back.codes, wide.codes)


def test_many_listed_categories_of_which_training_has_some(rng):
    kind = pd.CategoricalDtype([f"team {k:02d}" for k in range(60)], ordered=True)
    names = list(kind.categories)
    held = pd.Series(rng.choice(names[:-1], 500), dtype=kind)
    table = Table.of(pd.DataFrame({"team": held}))
    new = pd.DataFrame({"team": pd.Series(names[-1:], dtype=kind)})
    rows = table.reader.read(new).dense(table.dense_inputs)
    assert rows.shape == (1, table.dense(table.dense_inputs).shape[1])
    assert not rows.any()


@pytest.mark.parametrize("code", [1e200, np.finfo(float).max])
def test_codes_of_no_data_are_far_outliers(code):
    X = np.linspace(0.0, 1.0, 100)[:, None] + [0.0, 2e3]

    def views(far):
        X[0], X[-1] = -far, far
        table = Table.of(X)
        inputs = table.dense_inputs
        return table.dense(inputs), inputs.narrow(table.codes)

    for ours, others in zip(views(code), views(1e60), strict=True):
        np.testing.assert_array_equal(ours, others)
    X[:50], X[50:] = -code, code
    np.testing.assert_array_equal(np.sign(views(code)[0]), np.sign(X))
