"""Dates: which columns hold them, and the numbers they become."""

from __future__ import annotations

import re
from datetime import date

import numpy as np

from calibration.typing import Float64Array
from localexpert.cli.cells import load_pandas

_TIME = (
    r"(?:[T ]\s?(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2}(?:[.,]\d{1,9})?))?"
    r"(?: ?(?P<half>[AaPp][Mm]))?(?: ?(?P<zone>Z|UTC|[+-]\d{2}:?\d{2}))?)?"
)
_DAY, _MONTH, _YEAR = r"(?P<d>\d{1,2})", r"(?P<m>\d{1,2})", r"(?P<y>\d{4})"
_NAME = r"(?P<name>[A-Za-z]{3,9})\.?"
_SHORT = r"(?P<y>\d{2})"
# No dates without marks: those may be plain numbers. Years of two digits only where
# versions, sections of text and plain numbers do not look alike.
_FORMATS = {
    name: re.compile(pattern + _TIME)
    for name, pattern in {
        "year-month-day": rf"{_YEAR}(?P<mark>[-/.]){_MONTH}(?P=mark){_DAY}",
        "year-month": rf"{_YEAR}-(?P<m>\d\d)",
        "day.month.year": rf"{_DAY}\.{_MONTH}\.{_YEAR}",
        "day/month/year": rf"{_DAY}(?P<mark>[-/]){_MONTH}(?P=mark){_YEAR}",
        "month/day/year": rf"{_MONTH}(?P<mark>[-/]){_DAY}(?P=mark){_YEAR}",
        "day name year": rf"{_DAY}[ -]{_NAME}[ -],? ?{_YEAR}",
        "name day year": rf"{_NAME} {_DAY},? {_YEAR}",
        "day.month.yy": rf"(?P<d>\d\d)\.(?P<m>\d\d)\.{_SHORT}",
        "day/month/yy": rf"{_DAY}/{_MONTH}/{_SHORT}",
        "month/day/yy": rf"{_MONTH}/{_DAY}/{_SHORT}",
        "day name yy": rf"{_DAY}[ -]{_NAME}[ -]{_SHORT}",
    }.items()
}
# How those begin that one text may fit alike, by what the user calls them.
ORDERS = {"dmy": "day/", "mdy": "month/"}
# The last year of two digits that is in this century, as POSIX has it.
_PIVOT = 68
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_EPOCH = date(1970, 1, 1).toordinal()


def find_formats(texts: list[str]) -> list[str]:
    """Return the formats in which all texts are dates; none if there is no text."""
    likely = [f for f in _FORMATS if texts and parse_date(texts[0], f) is not None]
    return [f for f in likely if not np.isnan(read_dates(texts, f)).any()]


def read_dates(texts: list[str], format_name: str) -> Float64Array:
    """Return days since 1970-01-01 (UTC where a zone is named), NaN of no date."""
    days = _read_iso(texts) if format_name == "year-month-day" else None
    if days is None:
        parsed = [parse_date(text, format_name) for text in texts]
        days = np.array(parsed, dtype=np.float64)
    return days


def _read_iso(texts: list[str]) -> Float64Array | None:
    """Return the days if all texts are as computers write dates, fast."""
    widths = set(map(len, texts))
    if widths not in ({10}, {19}):
        return None
    format_code = "%Y-%m-%d" + texts[0][10:11] + "%H:%M:%S" * (widths == {19})
    moments = load_pandas().to_datetime(texts, format=format_code, errors="coerce")
    if moments.isna().any():
        return None
    seconds = moments.to_numpy().astype("datetime64[s]").astype(np.int64)
    days, seconds = np.divmod(seconds, 86_400)
    minutes, second = np.divmod(seconds, 60)
    # As `_read_hours` adds them, to the last bit.
    hours = minutes // 60 + minutes % 60 / 60.0 + second / 3600.0
    return np.asarray(days + hours / 24.0)


def parse_date(text: str, format_name: str) -> float | None:
    """Return days since 1970-01-01 (UTC where a zone is named), or None."""
    match = _FORMATS[format_name].fullmatch(text)
    if match is None:
        return None
    found = match.groupdict()
    year, month = found["y"], found.get("m") or _number_month(found.get("name") or "")
    hours = _read_hours(found)
    if hours is None:
        return None
    try:
        day = date(_full_year(year), int(month), int(found.get("d") or 1))
    except ValueError:
        return None
    return day.toordinal() - _EPOCH + hours / 24.0


def is_date(text: str) -> bool:
    """Return whether a text is a date in any format."""
    return bool(find_formats([text]))


def is_short(format_name: str) -> bool:
    """Return whether years of a format have two digits."""
    return format_name.endswith("yy")


def _full_year(text: str) -> int:
    """Return a year of four digits, or that of its last two, 1969 to 2068."""
    year = int(text)
    return year if len(text) > 2 else year + (2000 if year <= _PIVOT else 1900)


def _number_month(name: str) -> int:
    """Return 1 to 12 of an English name or its first letters, 0 of another word."""
    small = name.casefold()
    return next((i for i, m in enumerate(_MONTHS, 1) if m.startswith(small)), 0)


def _read_hours(found: dict[str, str | None]) -> float | None:
    """Return hours since midnight UTC; None if the clock has no such time."""
    if found["H"] is None:
        return 0.0
    hour, minute = int(found["H"]), int(found["M"] or 0)
    second = float((found["S"] or "0").replace(",", "."))
    half = (found["half"] or "").casefold()
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "pm" else 0)
    if hour > 23 or minute > 59 or second >= 60.0:
        return None
    zone = found["zone"] or "Z"
    shift = 0.0
    if zone[0] in "+-":
        shift = int(zone[:3]) + int(zone[0] + zone[-2:]) / 60.0
    return hour + minute / 60.0 + second / 3600.0 - shift
