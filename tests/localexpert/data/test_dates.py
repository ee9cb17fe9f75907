"""Dates of every container become the same numbers, in tables and in whole models."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import Ridge

from localexpert import (
    LocalExpertRegressor,
    SharedBoosting,
    date_features,
    explain_forecast,
    load,
    permutation_importance,
)
from localexpert.data.table import Table

STAMPS = pd.to_datetime(["1969-12-31T18:30", "2020-02-29T00:00", "2021-03-01T01:15"])
DAYS = [-1 + 18.5 / 24, 18321.0, 18687 + 1.25 / 24]
ZONED = STAMPS.tz_localize("UTC").tz_convert("America/Lima")


def arrow(values, dtype):
    return pd.Series(list(values), dtype=pd.ArrowDtype(dtype))


def with_gap(values):
    return [None, *list(values)[1:]]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(STAMPS),
        pd.Series(STAMPS.astype("datetime64[s]")),
        pd.Series(ZONED),
        pd.Series(list(ZONED), dtype=object),
        pd.Series([t.to_pydatetime() for t in STAMPS], dtype=object),
        arrow(STAMPS, pa.timestamp("ns")),
        arrow(ZONED, pa.timestamp("ms", "America/Lima")),
        pl.Series(list(STAMPS.to_pydatetime())),
        pl.Series(list(STAMPS.to_pydatetime())).dt.replace_time_zone("UTC"),
        STAMPS.to_numpy().astype("datetime64[m]"),
    ],
    ids=lambda column: f"{type(column).__module__.split('.')[0]}, {column.dtype}",
)
def test_timestamps_of_every_container(column):
    told = date_features(column)
    np.testing.assert_allclose(told["days"], DAYS, rtol=1e-12)
    assert told["year"].tolist() == [1969, 2020, 2021]
    assert told["month"].tolist() == [12, 2, 3]
    assert told["weekday"].tolist() == [2, 5, 0]
    assert told["hour"].tolist() == [18.5, 0, 1.25]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(with_gap(STAMPS.normalize())),
        pd.Series(with_gap(STAMPS.date), dtype=object),
        arrow(with_gap(STAMPS.date), pa.date32()),
        pl.Series(with_gap(STAMPS.date)),
        np.array(["NaT", "2020-02-29", "2021-03-01"], "datetime64[D]"),
    ],
    ids=lambda column: str(column.dtype),
)
def test_days_and_gaps_of_every_container(column):
    told = date_features(column)
    np.testing.assert_array_equal(told["days"], [np.nan, 18321, 18687])
    np.testing.assert_array_equal(told["weekday"], [np.nan, 5, 0])
    np.testing.assert_array_equal(told["hour"], [np.nan, 0, 0])


def test_only_dates_have_features():
    for column in (pd.Series([1, 2]), np.array(["2020-01-01"]), [STAMPS[0]]):
        with pytest.raises(TypeError, match="`dates` must be a column of dates, got"):
            date_features(column)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_a_table_holds_what_varies(kind):
    frame = kind(
        {
            "size": [1.0, 2.0, 3.0],
            "day": list(STAMPS.date),
            "day.days": [7, 8, 9],
            "town": ["b", "a", None],
        }
    )
    table = Table.of(frame).with_columns(more=np.ones(3))
    names = ["size", "day.days_", "day.year", "day.month", "day.weekday"]
    assert table.reader.features.names == (*names, "day.days", "town", "more")
    assert table.reader.column_of == [0, 1, 1, 1, 1, 2, 3, 4]
    assert table.reader.categories == [6]
    np.testing.assert_array_equal(table.codes[2], [3, 18687, 2021, 3, 0, 9, np.nan, 1])
    again = table.reader.read(table.given).codes
    np.testing.assert_array_equal(again, table.codes)


def test_new_rows_must_hold_dates_too():
    reader = Table.of(pd.DataFrame({"day": STAMPS})).reader
    gaps = reader.read(pd.DataFrame({"day": [None, np.nan]})).codes
    assert np.isnan(gaps).all()
    with pytest.raises(TypeError, match="hold dates as in `fit` in column 'day', got"):
        _ = reader.read(pd.DataFrame({"day": ["2020-01-01"]})).codes
    with pytest.raises(
        TypeError, match=r"held categories or dates \('day'\), got ndarray"
    ):
        reader.read(np.ones((2, 1)))
    numbers = Table.of(pd.DataFrame({"day": [1.0]})).reader
    with pytest.raises(TypeError, match="column 'day'; in `fit` it held no dates"):
        _ = numbers.read(pd.DataFrame({"day": STAMPS})).codes


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.to_timedelta([90, None, 1.5], "s")),
        arrow(pd.to_timedelta([90, None, 1.5], "s"), pa.duration("us")),
        pl.Series([dt.timedelta(seconds=90), None, dt.timedelta(seconds=1.5)]),
    ],
    ids=lambda column: str(column.dtype),
)
def test_durations_are_seconds(column):
    kind = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    codes = Table.of(kind({"wait": column})).codes
    np.testing.assert_array_equal(codes[:, 0], [90, np.nan, 1.5])


@pytest.mark.parametrize(
    ("column", "cure"),
    [
        (pd.Series(STAMPS.to_period("D")), "make dates of periods"),
        (pd.Series([dt.time(3)] * 2, dtype=object), "make seconds of times of day"),
        (pl.Series([dt.time(3)]), "make seconds of times of day"),
        (pd.Series([dt.timedelta(1)] * 2, dtype=object), "`pandas.to_timedelta` gives"),
    ],
)
def test_other_times_are_refused_by_name(column, cure):
    kind = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    with pytest.raises(TypeError, match=f"got .* in column 'day'; {cure}"):
        _ = Table.of(kind({"day": column})).codes


@pytest.fixture(scope="module")
def sales():
    """Return sales that rise from day to day and fall on Sundays."""
    rng = np.random.default_rng(0)
    days = pd.Series(pd.to_datetime("2024-01-01") + pd.to_timedelta(range(240), "D"))
    X = pd.DataFrame({"noise": rng.normal(size=240), "sold": days})
    fall = 3.0 * (days.dt.day_of_week == 6).to_numpy()
    return X, np.arange(240) / 60 - fall + 0.1 * rng.normal(size=240)


@pytest.fixture(scope="module")
def model(sales):
    experts = SharedBoosting(max_rounds=40, random_state=0)
    quick = {"center": Ridge(), "frame": None, "n_thresholds": 5, "cv": 2}
    return LocalExpertRegressor(strategy=experts, random_state=0, **quick).fit(*sales)


def test_a_model_of_dates_is_saved_and_explained(model, sales, tmp_path):
    X, y = sales
    dist = model.predict_dist(X)
    assert dist.crps(y).mean() < 0.4 * np.std(y)
    path = tmp_path / "model.zip"
    model.save(path)
    for rows in (X, X.assign(sold=X["sold"].dt.tz_localize("UTC"))):
        again = load(path).predict_dist(rows)
        np.testing.assert_array_equal(again.mean(), dist.mean())
    told = permutation_importance(model, X, y, n_repeats=2, random_state=0)
    assert told.feature_names == ("noise", "sold")
    assert np.argmax(told.crps) == 1
    parts = explain_forecast(model, X[:2], X, n_background=5, random_state=0)
    assert parts.feature_names == ("noise", "sold")


def test_directions_of_dates(sales):
    X, y = sales
    quick = {"n_thresholds": 5, "cv": 2, "random_state": 0}
    model = LocalExpertRegressor(monotone={"sold.days": 1}, **quick).fit(X, y)
    assert model.report_.choices["monotone"] == {"chosen": "sold.days +1"}
    with pytest.raises(ValueError, match=r"columns of `X` \('noise', 'sold.days', "):
        LocalExpertRegressor(monotone={"sold": 1}, **quick).fit(X, y)
    listed = LocalExpertRegressor(monotone=[0, 1], **quick).fit(X, y)
    np.testing.assert_array_equal(listed.predict(X), model.predict(X))
