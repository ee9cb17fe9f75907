"""Columns of every type: numbers, categories, dates, or a refusal that names them."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import Ridge

from localexpert import (
    LocalExpertRegressor,
    date_features,
    explain_forecast,
    permutation_importance,
)
from localexpert.data.table import Table
from tests.regressors import fast

DAYS = pd.date_range("2020-01-01", periods=3)


def objects(values):
    return pd.Series(list(values), dtype=object)


def arrow(values, dtype):
    return pd.Series(list(values), dtype=pd.ArrowDtype(dtype))


def frame_of(column):
    kind = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    return kind({"t": column})


SECONDS = pd.to_timedelta([1, 2.5, None], "s")


@pytest.mark.parametrize(
    "column",
    [
        objects([1, 2.5, None]),
        objects([np.int8(1), np.float32(2.5), np.nan]),
        objects([Decimal(1), Fraction(5, 2), pd.NA]),
        objects([True, Decimal("2.5"), pd.NaT]),
        pd.array([1.0, 2.5, pd.NA], dtype="Float64"),
        arrow([1.0, 2.5, None], pa.float64()),
        arrow([Decimal(1), Decimal("2.5"), None], pa.decimal128(4, 2)),
        pl.Series([Decimal(1), Decimal("2.5"), None]),
        pl.Series([1, Fraction(5, 2), None], dtype=pl.Object),
        pd.Series(SECONDS),
        arrow(SECONDS, pa.duration("us")),
        pl.Series([dt.timedelta(seconds=1), dt.timedelta(seconds=2.5), None]),
    ],
    ids=lambda column: str(column.dtype),
)
def test_numbers_and_durations_in_any_wrapping(column):
    table = Table.of(frame_of(column))
    assert table.reader.categories == []
    np.testing.assert_array_equal(table.codes[:, 0], [1.0, 2.5, np.nan])


@pytest.mark.parametrize(
    "column",
    [
        ["7", "12", None],
        objects(["7", "12", None]),
        pd.array(["7", "12", None], dtype="string"),
        arrow(["7", "12", None], pa.large_string()),
        arrow(["7", "12", None], pa.dictionary(pa.int32(), pa.string())),
        pl.Series(["7", "12", None]),
        pl.Series(["7", "12", None], dtype=pl.Categorical),
        pl.Series(["7", "12", None], dtype=pl.Object),
    ],
    ids=lambda column: str(getattr(column, "dtype", "list")),
)
def test_texts_are_categories_even_those_of_digits(column):
    table = Table.of(frame_of(column))
    assert table.reader.categories == [0]
    np.testing.assert_array_equal(table.codes[:, 0], [1.0, 0.0, np.nan])


@pytest.mark.parametrize(
    ("column", "got"),
    [
        (objects([1.5, "u", None]), r"'u' \(row 1\).*; a column is all numbers"),
        (objects([[1], [2], [3]]), r"\[1\] \(row 0\)"),
        (objects([{"b": 1}, {}, {}]), r"{'b': 1} \(row 0\)"),
        (objects([np.zeros(2)] * 3), r"array\(\[0., 0.\]\) \(row 0\)"),
        (objects([(1, 2), (1, 3), None]), r"\(1, 2\) \(row 0\)"),
        (objects([1j, 1, 2]), r"1j \(row 0\)"),
        (objects([b"u", b"v", b"u"]), r"b'u' \(row 0\)"),
        (pl.Series([None], dtype=pl.Struct({"b": pl.Int8})), "dtype Struct"),
        (pl.Series([None], dtype=pl.List(pl.Int8)), "dtype List"),
        (pl.Series([None], dtype=pl.Binary), "dtype Binary"),
        (pd.Series(DAYS.to_period("D")), ".*; make dates of periods"),
        (objects([dt.time(3)] * 2), ".*; make seconds of times of day"),
        (pl.Series([dt.time(3)]), ".*; make seconds of times of day"),
        (objects([dt.timedelta(1)] * 2), ".*; `pandas.to_timedelta` gives"),
    ],
)
def test_columns_of_no_kind_are_refused_by_name(column, got):
    table = Table.of(frame_of(column))
    with pytest.raises(TypeError, match=rf"or dates, got {got}") as told:
        _ = table.codes
    assert "in column 't'" in str(told.value)


@pytest.mark.parametrize(
    ("known", "given"),
    [
        (["7", "12"], [7, 12]),
        (["7", "12"], pd.Categorical([7, 12])),
        (["7", "12"], [7.0, np.nan]),
        (["True", "False"], [True, False]),
        (pd.Categorical([7, 12]), ["7", "12"]),
        (["7", "12"], DAYS[:2]),
        (["7", "12"], objects([["7"], ["12"]])),
    ],
)
def test_categories_of_another_kind_are_refused(known, given):
    # They would all be missing without a word.
    reader = Table.of(pd.DataFrame({"zip": known})).reader
    with pytest.raises(TypeError, match=r"`X` must hold categories .* column 'zip'"):
        _ = reader.read(pd.DataFrame({"zip": given})).codes
    if isinstance(given, list):
        with pytest.raises(TypeError, match=r"`X` must hold categories .* 'zip'"):
            _ = reader.read(pl.DataFrame({"zip": given})).codes


@pytest.mark.parametrize(
    ("known", "given"),
    [
        (pd.Categorical([7, 12]), [7.0, 12.0]),
        (pd.Categorical([False, True]), objects([False, True])),
        (pd.Categorical([False, True]), np.array([0, 1])),
        (pd.Categorical(["b", "c"]), pd.Categorical(["b", "c"], ["c", "a", "b"])),
    ],
)
def test_equal_categories_are_known_whatever_their_type(known, given):
    reader = Table.of(pd.DataFrame({"a": known})).reader
    codes = reader.read(pd.DataFrame({"a": given})).codes
    np.testing.assert_array_equal(codes, [[0.0], [1.0]])


def test_gaps_and_wrappings_of_arrays():
    cells = np.array([[1, None], [Decimal("2.5"), pd.NA]], dtype=object)
    np.testing.assert_array_equal(Table.of(cells).codes, [[1, np.nan], [2.5, np.nan]])
    masked = np.ma.masked_array([[1, 9], [2, 9]], mask=[[False, True], [False, True]])
    np.testing.assert_array_equal(Table.of(masked).codes, [[1, np.nan], [2, np.nan]])
    with pytest.raises(ValueError, match="`X` must be numeric: setting an array"):
        Table.of(np.zeros((1, 1))).reader.encode([[1.0], [2.0, 3.0]])


STAMPS = pd.to_datetime(["1969-12-31T18:30", "2020-02-29T00:00", "2021-03-01T01:15"])
ZONED = STAMPS.tz_localize("UTC").tz_convert("America/Lima")


MIDNIGHTS = STAMPS.normalize().where([False, True, True])
DATES = [None, *STAMPS.date[1:]]


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
        pd.Series(MIDNIGHTS),
        objects(DATES),
        arrow(DATES, pa.date32()),
        pl.Series(DATES),
        np.array(["NaT", "2020-02-29", "2021-03-01"], "datetime64[D]"),
        np.array(DATES, dtype=object),
    ],
    ids=lambda column: f"{type(column).__module__.split('.')[0]}, {column.dtype}",
)
def test_dates_of_every_container(column):
    told = date_features(column)
    times = MIDNIGHTS if np.isnan(told["days"][0]) else STAMPS
    days = (times - pd.Timestamp(0)) / pd.Timedelta(days=1)
    np.testing.assert_allclose(told["days"], days, rtol=1e-12)
    np.testing.assert_array_equal(told["hour"], times.hour + times.minute / 60.0)
    np.testing.assert_array_equal(told["year"], times.year)
    np.testing.assert_array_equal(told["month"], times.month)
    np.testing.assert_array_equal(told["weekday"], times.day_of_week)


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
    with pytest.raises(TypeError, match=r"held categories or dates \('day'\), got"):
        reader.read(np.ones((2, 1)))
    numbers = Table.of(pd.DataFrame({"day": [1.0]})).reader
    with pytest.raises(TypeError, match="column 'day'; in `fit` it held no dates"):
        _ = numbers.read(pd.DataFrame({"day": STAMPS})).codes


@pytest.fixture(scope="module")
def sales():
    """Return sales that rise from day to day and fall on Sundays."""
    rng = np.random.default_rng(0)
    days = pd.Series(pd.to_datetime("2024-01-01") + pd.to_timedelta(range(240), "D"))
    X = pd.DataFrame({"noise": rng.normal(size=240), "sold": days})
    fall = 3.0 * (days.dt.day_of_week == 6).to_numpy()
    return X, np.arange(240) / 60 - fall + 0.1 * rng.normal(size=240)


def test_a_model_of_dates_is_saved_and_explained(sales, reload):
    X, y = sales
    model = fast(center=Ridge(), frame=None, n_thresholds=5, cv=2).fit(X, y)
    dist = model.predict_dist(X)
    assert dist.crps(y).mean() < 0.4 * np.std(y)
    for rows in (X, X.assign(sold=X["sold"].dt.tz_localize("UTC"))):
        again = reload(model).predict_dist(rows)
        np.testing.assert_array_equal(again.mean(), dist.mean())
    told = permutation_importance(model, X, y, n_repeats=2, random_state=0)
    assert told.feature_names == ("noise", "sold")
    assert np.argmax(told.crps) == 1
    parts = explain_forecast(model, X[:2], X, n_background=5, random_state=0)
    assert parts.feature_names == ("noise", "sold")


@pytest.mark.parametrize(
    "convert",
    [
        pd.Series,
        lambda times: pd.Series(list(times), dtype=object),
        lambda times: pl.Series(list(times.to_pydatetime())),
    ],
)
def test_a_clock_of_another_zone_is_no_clock_without_one(convert):
    utc = STAMPS.tz_localize("UTC")
    for one, other in [(STAMPS, ZONED), (ZONED, STAMPS)]:
        frames = [frame_of(convert(times)) for times in (one, other, utc)]
        reader = Table.of(frames[0]).reader
        codes = [reader.read(frames[k]).codes for k in (0, 2)]
        np.testing.assert_array_equal(*codes)
        with pytest.raises(TypeError, match=r"X\['t'\]` must have (a|no) time zone as"):
            _ = reader.read(frames[1]).codes


def test_one_zone_that_is_not_utc_is_a_zone():
    for hours in (-5, -1, 1, 2, 3, 9):
        zones = [dt.UTC, dt.timezone(dt.timedelta(hours=hours))]
        zoned = [dt.datetime(2024, 1, 1, tzinfo=zone) for zone in zones]
        for times in (zoned, zoned[::-1]):
            reader = Table.of(frame_of(objects(times))).reader
            with pytest.raises(TypeError, match=r"must have a time zone as in"):
                _ = reader.read(frame_of(STAMPS)).codes


def test_directions_of_dates(sales):
    X, y = sales
    quick = {"n_thresholds": 5, "cv": 2, "random_state": 0}
    model = LocalExpertRegressor(monotone={"sold.days": 1}, **quick).fit(X, y)
    assert model.report_.choices["monotone"] == {"chosen": "sold.days +1"}
    with pytest.raises(ValueError, match=r"columns of `X` \('noise', 'sold.days', "):
        LocalExpertRegressor(monotone={"sold": 1}, **quick).fit(X, y)
    listed = LocalExpertRegressor(monotone=[0, 1], **quick).fit(X, y)
    np.testing.assert_array_equal(listed.predict(X), model.predict(X))
