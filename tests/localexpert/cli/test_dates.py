"""Dates: only what can mean one day is read as one."""

import datetime as dt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localexpert.cli.dates import (
    find_formats,
    parse_date,
    read_dates,
)
from localexpert.data.dates import PARTS, date_parts


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-02-29", dt.datetime(2024, 2, 29)),
        ("2024/2/9", dt.datetime(2024, 2, 9)),
        ("2024-02-29T18:30", dt.datetime(2024, 2, 29, 18, 30)),
        ("2024-02-29 18:30:15.5", dt.datetime(2024, 2, 29, 18, 30, 15, 500_000)),
        ("2024-02-29T18:30:00Z", dt.datetime(2024, 2, 29, 18, 30)),
        ("2024-02-29T18:30:00+02:00", dt.datetime(2024, 2, 29, 16, 30)),
        ("2024-02-29T18:30:00-0330", dt.datetime(2024, 2, 29, 22, 0)),
        ("2024-02-29 12:05 AM", dt.datetime(2024, 2, 29, 0, 5)),
        ("2024-02", dt.datetime(2024, 2, 1)),
        ("29.2.2024", dt.datetime(2024, 2, 29)),
        ("29/02/2024", dt.datetime(2024, 2, 29)),
        ("2/29/2024 1:30 pm", dt.datetime(2024, 2, 29, 13, 30)),
        ("29 Feb 2024", dt.datetime(2024, 2, 29)),
        ("29-September-2024", dt.datetime(2024, 9, 29)),
        ("Feb. 29, 2024", dt.datetime(2024, 2, 29)),
    ],
)
def test_formats(text, moment):
    formats = find_formats([text])
    assert len(formats) == 1
    days = (moment - dt.datetime(1970, 1, 1)) / dt.timedelta(days=1)
    assert parse_date(text, formats[0]) == pytest.approx(days, abs=1e-9)


@pytest.mark.parametrize(
    "text",
    [
        *("20240229", "2023-02-29", "2024-13-01", "1-2-24", "3.5.24", "0000-01-01"),
        *("12.5", "2024", "10:30", "2024-02-29T25:00", "2024-02-29 13:00 pm"),
        *("2024-02/29", "29 Foo 2024", "", "yesterday", "2024-00", "2024-02-29T10:99"),
    ],
)
def test_what_is_no_date(text):
    assert find_formats([text]) == []


@pytest.mark.parametrize(
    ("texts", "format_name", "first"),
    [
        (["31.12.24", "01.02.69"], "day.month.yy", dt.date(2024, 12, 31)),
        (["1/2/68", "31/12/99"], "day/month/yy", dt.date(2068, 2, 1)),
        (["1/2/70", "12/31/99"], "month/day/yy", dt.date(1970, 1, 2)),
        (["05-Mar-24", "6-may-25"], "day name yy", dt.date(2024, 3, 5)),
        (["29.02.00 18:00"], "day.month.yy", dt.date(2000, 2, 29)),
    ],
)
def test_years_of_two_digits(texts, format_name, first):
    assert find_formats(texts) == [format_name]
    days = np.floor(read_dates(texts, format_name)[0])
    assert days == first.toordinal() - dt.date(1970, 1, 1).toordinal()


@pytest.mark.parametrize(
    "texts",
    [
        *(["1.2.24"], ["01.02.24", "01.02.2024"], ["31/12/24", "12/31/24"]),
        *(["05-03-24"], ["1.10.12", "1.2.3"], ["30.02.24"]),
    ],
)
def test_what_may_be_no_date_with_a_short_year(texts):
    assert find_formats(texts) == []


def test_the_order_of_day_and_month_comes_from_all_rows():
    assert find_formats(["03/04/2025", "05/06/2025"]) == [
        "day/month/year",
        "month/day/year",
    ]
    assert find_formats(["03/04/2025", "13/06/2025"]) == ["day/month/year"]
    assert find_formats(["03/04/2025", "03/31/2025"]) == ["month/day/year"]
    assert find_formats(["13/04/2025", "03/31/2025"]) == []
    assert find_formats([]) == []


@given(st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)))
def test_parts_are_those_of_the_calendar(moment):
    moment = moment.replace(microsecond=0)
    days = parse_date(moment.isoformat(sep=" "), "year-month-day")
    parts = date_parts(np.array([days, np.nan]))
    assert tuple(parts) == PARTS
    got = [values[0] for values in parts.values()]
    hour = moment.hour + moment.minute / 60 + moment.second / 3600
    assert got[:3] == [moment.year, moment.month, moment.weekday()]
    assert got[3] == pytest.approx(hour, abs=1e-5)
    assert all(np.isnan(values[1]) for values in parts.values())


@pytest.mark.parametrize("mark", ["", "T", " "])
def test_many_dates_are_read_as_each_of_them(rng, mark):
    seconds = rng.integers(-(10**10), 10**10, size=300).astype("datetime64[s]")
    texts = [str(moment).replace("T", mark)[: 19 if mark else 10] for moment in seconds]
    want = [parse_date(text, "year-month-day") for text in texts]
    np.testing.assert_array_equal(read_dates(texts, "year-month-day"), want)
    texts[7] = "2024-02-30" + texts[7][10:]
    assert np.flatnonzero(np.isnan(read_dates(texts, "year-month-day"))).tolist() == [7]
