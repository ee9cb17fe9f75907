"""What `fit` and `predict` are given: right answers, or refusals that name the culprit.

Refusals come before anything is fitted, whatever the container of the features.
"""

from decimal import Decimal
from fractions import Fraction

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
@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (lambda _: DAYS, TypeError, "`y` must be numeric, got dtype datetime64"),
        (lambda _: DAYS - DAYS[0], TypeError, "`y` must be numeric, got dtype timed"),
        (
            lambda _: pd.Series([pd.NaT, *DAYS[1:]]),
            TypeError,
            "`y` must be numeric, got dtype datetime64",
        ),
        (lambda _: DAYS.to_period("D"), TypeError, r"`y` .* got Period\('2020"),
        (
            lambda _: pl.Series([None, *DAYS[1:].to_pydatetime()]),
            TypeError,
            "`y` must be numeric, got dtype datetime64",
        ),
        (
            lambda y: y.astype(str),
            TypeError,
            "`y` must be numeric, got '.*' at position 0; convert texts to numbers",
        ),
        (
            lambda y: y.astype(str).astype(object),
            TypeError,
            "`y` must be numeric, got '.*' at position 0",
        ),
        (lambda y: y + 1j, TypeError, "`y` must be numeric, got dtype complex128"),
        (lambda _: [[1], [2, 3]], ValueError, "`y` must be numeric: setting an array"),
        (
            lambda y: [None, *y[1:]],
            ValueError,
            "`y` must have no gaps, got nan at position 0 and 1",
        ),
        (
            lambda y: pd.array([pd.NA, *y[1:]]),
            ValueError,
            "`y` must have no gaps, got nan at position 0 and 1",
        ),
        (lambda y: y[1:], ValueError, "`y` must be as long as X, got 59 and 60 values"),
        (lambda y: np.column_stack([y, y]), ValueError, r"`y` must .* shape \(60, 2\)"),
    ],
)
def test_targets_that_are_none(columns, y, container, spoil, error, message):
    with pytest.raises(error, match=message):
        quick().fit(container(columns), spoil(y))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda y: y.astype(object),
        lambda y: [Decimal(float(value)) for value in y],
        lambda y: [Fraction(float(value)) for value in y],
        lambda y: pd.Series(y, dtype="Float64"),
        lambda y: pd.Series(y, dtype="double[pyarrow]"),
        pl.Series,
    ],
    ids=["object", "Decimal", "Fraction", "nullable", "arrow", "polars"],
)
def test_targets_in_any_wrapping(columns, y, wrap):
    table = pd.DataFrame(columns)
    plain = quick().fit(table, y).predict(table)
    np.testing.assert_array_equal(quick().fit(table, wrap(y)).predict(table), plain)


def test_tables_that_are_none(columns, y):
    frame = pd.DataFrame(columns)
    for empty in (frame[[]], pl.DataFrame(), np.empty((N, 0))):
        with pytest.raises(ValueError, match=r"at least one column|0 feature\(s\)"):
            quick().fit(empty, y)
    twice = frame.set_axis(["a", "a"], axis=1)
    with pytest.raises(ValueError, match="of different names, got 'a' 2 times"):
        quick().fit(twice, y)
    with pytest.raises(TypeError, match=r"of pandas or polars, got pyarrow.lib.Table"):
        quick().fit(pa.table(columns), y)
    with pytest.raises(TypeError, match="`X` must be numeric, got dtype datetime64"):
        quick().fit(DAYS.to_numpy()[:, None], y)
    with pytest.raises(ValueError, match="`X` must be numeric: setting an array"):
        quick().fit([[1.0], [2.0, 3.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="`groups` must be as long as the data, got 3"):
        quick().fit(frame, y, groups=[1, 2, 3])
    with pytest.raises(
        ValueError, match=r"`X` must have at least two rows .* 1 sample"
    ):
        quick().fit(frame[:1], y[:1])
    fitted = quick().fit(frame, y)
    with pytest.raises(ValueError, match="`X` must have at least one row, got 0 rows"):
        fitted.predict_dist(frame[:0])
    for none in (3, "abc", {"a": [1.0]}, None):
        with pytest.raises(TypeError, match="`X` must be a data frame or an array"):
            fitted.predict(none)


def test_numbers_as_objects_are_no_categories(columns, y):
    frame = pd.DataFrame(columns)
    plain = quick().fit(frame, y).predict(frame)
    wrapped = frame.astype(object)
    np.testing.assert_array_equal(quick().fit(wrapped, y).predict(wrapped), plain)
    model = quick().fit(frame, y)
    np.testing.assert_array_equal(model.predict(wrapped), plain)
    one = pd.DataFrame([{"a": None, "b": frame["b"][0]}])
    gap = pd.DataFrame({"a": [np.nan], "b": frame["b"][:1]})
    np.testing.assert_array_equal(model.predict(one), model.predict(gap))


def test_frames_and_arrays_in_turn(columns, y, rng):
    frame = pd.DataFrame(columns)
    plain = quick().fit(frame, y)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        found = plain.predict(frame.to_numpy())
    np.testing.assert_array_equal(found, plain.predict(frame))
    arrays = quick().fit(frame.to_numpy(), y)
    with pytest.warns(UserWarning, match="X has feature names, but Local"):
        np.testing.assert_array_equal(arrays.predict(frame), found)
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


@pytest.mark.slow
def test_wide_tables_are_fitted(rng):
    X = rng.normal(size=(100, 5000))
    y = X[:, 0] + 0.3 * rng.normal(size=100)
    model = LocalExpertRegressor(random_state=0).fit(X, y)
    assert model.oof_distribution_.crps(y).mean() < 0.9 * 0.57 * y.std()


def test_a_row_that_is_a_series_is_told_how_to_come(columns, y):
    frame = pd.DataFrame(columns)
    model = quick().fit(frame, y)
    with pytest.raises(TypeError, match=r"`X` must be .* Series of 2 .*iloc\[\[i\]\]"):
        model.predict(frame.iloc[3])
    with pytest.raises(TypeError, match="got a Series of 60 values"):
        quick().fit(frame["a"], y)
    assert model.predict(frame.iloc[[3]]).shape == (1,)
