"""What `fit` and `predict` are given: right answers, or refusals that name the culprit.

Refusals come before anything is fitted, whatever the container of the features.
"""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from localexpert import LocalExpertRegressor
from localexpert.experts import SharedBoosting

N = 60
DAYS = pd.date_range("2020-01-01", periods=N)
CONTAINERS = [
    pd.DataFrame,
    pl.DataFrame,
    lambda cells: np.column_stack([*cells.values()]),
]


def quick(**parameters):
    strategy = SharedBoosting(max_rounds=5, min_rows_in_leaf=3, random_state=0)
    return LocalExpertRegressor(
        frame=None, strategy=strategy, n_thresholds=3, cv=2, random_state=0
    ).set_params(**parameters)


@pytest.fixture
def columns(rng):
    return {"a": rng.uniform(size=N), "b": rng.normal(size=N)}


@pytest.fixture
def y(rng, columns):
    return columns["a"] + 0.1 * rng.normal(size=N)


@pytest.mark.parametrize("container", CONTAINERS, ids=["pandas", "polars", "numpy"])
def test_targets_that_are_none(columns, y, container):
    gaps = "`y` must have no gaps, got nan at position 0 and 1"
    for wrong, message in (
        (DAYS, "`y` must be numeric, got dtype datetime64"),
        (DAYS - DAYS[0], "`y` must be numeric, got dtype timed"),
        (pl.Series([None, *DAYS[1:].to_pydatetime()]), "got dtype datetime64"),
        (y.astype(str), "got '.*' at position 0; convert texts to numbers"),
        (y + 1j, "`y` must be numeric, got dtype complex128"),
        ([[1], [2, 3]], "`y` must be numeric: setting an array"),
        ([None, *y[1:]], gaps),
        (pd.array([pd.NA, *y[1:]]), gaps),
        (y[1:], "`y` must be as long as X, got 59 and 60 values"),
        (np.column_stack([y, y]), r"`y` must .* shape \(60, 2\)"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            quick().fit(container(columns), wrong)


def test_targets_and_features_in_any_wrapping(columns, y):
    table = pd.DataFrame(columns)
    model = quick().fit(table, y)
    for wrapped in (
        [Decimal(float(value)) for value in y],
        pd.Series(y, dtype="double[pyarrow]"),
        pl.Series(y),
    ):
        found = quick().fit(table.astype(object), wrapped).predict(table)
        np.testing.assert_array_equal(found, model.predict(table))
    one = pd.DataFrame([{"a": None, "b": table["b"][0]}])
    gap = pd.DataFrame({"a": [np.nan], "b": table["b"][:1]})
    np.testing.assert_array_equal(model.predict(one), model.predict(gap))


def test_tables_that_are_none(columns, y):
    frame = pd.DataFrame(columns)
    for wrong, message in (
        (frame[[]], "at least one column"),
        (np.empty((N, 0)), r"0 feature\(s\)"),
        (frame.set_axis(["a", "a"], axis=1), "different names, got 'a' 2 times"),
        (pa.table(columns), "of pandas or polars, got pyarrow.lib.Table"),
        (DAYS.to_numpy()[:, None], "`X` must be numeric, got dtype datetime64"),
        (frame["a"], "got a Series of 60 values"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            quick().fit(wrong, y)
    with pytest.raises(ValueError, match="`groups` must be as long as the data, got 3"):
        quick().fit(frame, y, groups=[1, 2, 3])
    with pytest.raises(ValueError, match=r"`X` must have at least two .* 1 sample"):
        quick().fit(frame[:1], y[:1])
    fitted = quick().fit(frame, y)
    with pytest.raises(ValueError, match="`X` must have at least one row, got 0 rows"):
        fitted.predict_dist(frame[:0])
    for none in (3, {"a": [1.0]}, None):
        with pytest.raises(TypeError, match="`X` must be a data frame or an array"):
            fitted.predict(none)
    with pytest.raises(TypeError, match=r"`X` must be .* Series of 2 .*iloc\[\[i\]\]"):
        fitted.predict(frame.iloc[3])


def test_frames_and_arrays_in_turn(columns, y, rng):
    frame = pd.DataFrame(columns)
    plain = quick().fit(frame, y)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        found = plain.predict(frame.to_numpy())
    np.testing.assert_array_equal(found, plain.predict(frame))
    towns = quick().fit(frame.assign(b=rng.choice(["Ulm", "Bonn"], N)), y)
    with (
        pytest.warns(UserWarning, match="valid feature names"),
        pytest.raises(TypeError, match=r"categories or dates \('b'\), got ndarray"),
    ):
        towns.predict(frame.to_numpy())
    for wrong in (frame[["b", "a"]], frame[["a"]], frame.assign(c=1.0)):
        with pytest.raises(ValueError, match="feature names should match"):
            plain.predict(wrong)


def test_offsets_and_units_do_not_matter(rng):
    X = rng.uniform(size=(300, 2))
    y = 3.0 * X[:, 0] + 0.2 * rng.normal(size=300)
    model = LocalExpertRegressor(
        strategy="joint", frame="center", n_thresholds=5, cv=2, random_state=0
    )
    plain, *moved = (
        model.fit(T[:200], y[:200]).predict_dist(T[200:]).crps(y[200:]).mean()
        for T in (X, X + 1e8, 2.0**130 * X)
    )
    assert max(moved) < 1.03 * plain
