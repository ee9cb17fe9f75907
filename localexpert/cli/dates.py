"""Dates: which columns hold them, and the numbers they become."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date

import numpy as np

from calibration.typing import Float64Array

_TIME = (
    r"(?:[T ]\s?(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2}(?:[.,]\d{1,9})?))?"
    r"(?: ?(?P<half>[AaPp][Mm]))?(?: ?(?P<zone>Z|UTC|[+-]\d{2}:?\d{2}))?)?"
)
_DAY, _MONTH, _YEAR = r"(?P<d>\d{1,2})", r"(?P<m>\d{1,2})", r"(?P<y>\d{4})"
_NAME = r"(?P<name>[A-Za-z]{3,9})\.?"
# No years of two digits, and no dates without marks: those may be plain numbers.
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
    }.items()
}
# The two that one text may fit alike, by what the user calls them.
ORDERS = {"dmy": "day/month/year", "mdy": "month/day/year"}
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_EPOCH = date(1970, 1, 1).toordinal()
# What a date is told by besides its days since 1970.
PARTS = ("year", "month", "weekday", "hour")


def find_formats(texts: Iterable[str]) -> list[str]:
    """Return the formats in which all texts are dates; none if there is no text."""
    left = list(_FORMATS)
    seen = False
    for text in texts:
        seen = True
        left = [name for name in left if parse_date(text, name) is not None]
        if not left:
            break
    return left if seen else []


def parse_date(text: str, format_name: str) -> float | None:
    """Return days since 1970-01-01 (UTC where a zone is named), or None."""
    match = _FORMATS[format_name].fullmatch(text)
    if match is None:
        return None
    found = match.groupdict()
    month = found.get("m") or _number_month(found.get("name") or "")
    hours = _read_hours(found)
    if hours is None:
        return None
    try:
        day = date(int(found["y"]), int(month), int(found.get("d") or 1))
    except ValueError:
        return None
    return day.toordinal() - _EPOCH + hours / 24.0


def date_parts(days: Float64Array) -> dict[str, Float64Array]:
    """Return the parts of dates by name, each of shape (n,), NaN where missing."""
    known = ~np.isnan(days)
    whole = np.floor(days[known]).astype(np.int64)
    stamps = whole.astype("datetime64[D]")
    months = stamps.astype("datetime64[M]").astype(np.int64)
    numbers = {
        "year": 1970 + months // 12,
        "month": 1 + months % 12,
        "weekday": (whole + 3) % 7,  # 1970-01-01 was a Thursday; Monday is 0
        "hour": np.round(24.0 * (days[known] - whole), 6),
    }
    parts = {}
    for name, values in numbers.items():
        parts[name] = np.full(len(days), np.nan)
        parts[name][known] = values
    return parts


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
