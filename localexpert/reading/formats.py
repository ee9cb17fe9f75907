"""How numbers, dates and gaps are written, and how texts are read by it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.reading.messages import load_pandas

_MARKS = (
    "|na|n/a|#n/a|#na|<na>|nan|-nan|nat|null|none|nil|?|??|???|-|--|---|\u2013|\u2014"
    "|.|..|...|#nv|#wert!|#bezug!|#zahl!|#div/0!|#value!|#ref!|#num!|#name?|#null!"
    "|#valeur!|#nombre!|#\u00a1valor!|#valor!|k.a.|k. a.|k.a|keine angabe|n.v.|n. v."
    "|n.b.|n.a.|n. a.|s.d.|s/d|s. d.|n.d.|n/d|n. d.|n.c.|s/o|n.r.|missing|no data"
    "|not available|sin datos|non disponible"
)
#: What stands for nothing, in small letters: marks of programs, and what people write
#: in English, German, French and Spanish tables.
GAPS = frozenset(_MARKS.split("|"))
#: Share of filled cells that say what a column is.
SHARE = 0.95

# Marks between groups of three digits, and what is taken for each of them.
MARKS = {",": ",", ".": r"\.", " ": "[ \u00a0\u2009\u202f]", "'": "['\u2019]"}
OTHER = {".": ",", ",": "."}
_NUMBER = re.compile(
    r"(?P<sign>[+-]?)\s?(?P<before>[$€£¥]|EUR|USD|GBP|CHF|JPY)?\s?(?P<inner>[+-]?)"
    "(?P<rest>[.,]?\\d(?:[\\d.,'\u2019 \u00a0\u2009\u202f]*\\d)?[.,]?"
    r"(?:[eE][+-]?\d+)?)"
    r"\s?(?P<after>[^\d\s.,'+\-][^\d]{0,11}[23]?)?"
)
_YES = ("true", "yes", "y", "ja", "j", "wahr", "oui", "vrai", "si", "sí", "verdadero")
_NO = ("false", "no", "n", "nein", "falsch", "non", "faux", "falso")
_YES_NO = {**dict.fromkeys(_YES, 1.0), **dict.fromkeys(_NO, 0.0)}


@dataclass(frozen=True)
class NumberFormat:
    r"""How the numbers of a column are written.

    Parameters
    ----------
    decimal : {".", ","}
    thousands : {"", ",", ".", " ", "'"}
        What parts groups of three digits; numbers without it are numbers too.
    unit : str
        What stands before or after the numbers and is the same all over. "%" must stand
        behind every number, others may be left out.
    """

    decimal: str = "."
    thousands: str = ""
    unit: str = ""

    def read(self, words: Sequence[str], *, strict: bool = False) -> Float64Array:
        """Return the number that each text is, NaN of what is none, shape (n,).

        If it is strict, points and commas must part thousands wherever they could.
        """
        plain = np.array(words, dtype=object)
        if self.unit or self.thousands or self.decimal == ",":
            plain[:] = [self._simplify(word, strict) for word in words]
        rough = np.asarray(load_pandas().to_numeric(plain, errors="coerce"), np.float64)
        # To the last bit, and without what only Python reads as numbers.
        values = np.full(len(plain), np.nan)
        finite = np.isfinite(rough)
        values[finite] = plain[finite].astype(np.float64)
        return np.where(np.isfinite(values), values, np.nan)

    def _simplify(self, word: str, strict: bool) -> str:
        """Return a number as Python writes it, "" of another text."""
        if self.unit:
            unit, word = split_unit(word)
            if unit != self.unit and (unit or self.unit == "%"):
                return ""
        # Whoever writes decimal commas may write points between thousands.
        mark = self.thousands or ("." if self.decimal == "," else "")
        if mark and _grouped(mark, self.decimal).fullmatch(word):
            word = re.sub(MARKS[mark], "", word)
        elif strict and self.thousands in OTHER and re.match(r"[+-]?\d{4}", word):
            return ""
        if self.decimal == ",":
            return "" if "." in word else word.replace(",", ".")
        return word

    @property
    def text(self) -> str:
        """What is said of the format, with an example; "" for a plain one."""
        said = []
        if self.unit:
            said.append("in percent" if self.unit == "%" else f"in {self.unit}")
        if self.thousands:
            said.append("with thousands marks")
        if not said:
            return ""
        number = f"1{self.thousands}234" if self.thousands else "50"
        before = self.unit in ("$", "€", "£", "¥")
        shown = f"{self.unit}{number}" if before else f"{number} {self.unit}".strip()
        plain = number.replace(self.thousands, "") if self.thousands else number
        return f"{' '.join(said)} ({shown!r} is {plain})"


#: Digits with a decimal point.
PLAIN = NumberFormat()


def find_number_format(
    words: Sequence[str],
    counts: NDArray[np.intp],
    decimal: str,
    thousands: str | None = None,
) -> tuple[NumberFormat, float]:
    """Return the format in which most cells are numbers, and their share.

    Marks between thousands are found where they always stand before three digits and
    no number of more than three digits lacks them; those that are given may be lacking.
    The other decimal mark is tried where this one reads too few.
    """
    form, share = _try_marks(words, counts, decimal, thousands)
    if share < SHARE:
        other = _try_marks(words, counts, OTHER[decimal], thousands)
        form, share = max((form, share), other, key=lambda one: one[1])
    grouped = _grouped(form.thousands, form.decimal) if form.thousands else None
    shown = grouped and any(grouped.fullmatch(split_unit(word)[1]) for word in words)
    return (form if shown else replace(form, thousands="")), share


def _try_marks(
    words: Sequence[str], counts: NDArray[np.intp], decimal: str, thousands: str | None
) -> tuple[NumberFormat, float]:
    """Return the format with a decimal mark that reads most cells, and their share."""
    unit, total = _find_unit(words, counts), max(float(counts.sum()), 1.0)
    best, most = NumberFormat(decimal, "", unit), 0.0
    for mark in (thousands,) if thousands else ("", *MARKS):
        form = NumberFormat(decimal, mark, unit)
        if mark != decimal:
            found = ~np.isnan(form.read(words, strict=not thousands))
            share = float(counts[found].sum()) / total
            best, most = (form, share) if share > most else (best, most)
    return best, most


def split_unit(text: str) -> tuple[str, str]:
    """Return the unit of a number, "" if it has none, and its text without it."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return "", text
    sign, before, inner, rest, after = match.groups()
    if (sign and inner) or (before and after):
        return "", text
    return before or (after or "").strip(), sign + inner + rest


def _find_unit(words: Sequence[str], counts: NDArray[np.intp]) -> str:
    """Return the unit of half of the cells, or "%" of nearly all."""
    tally: dict[str, int] = {}
    for word, n in zip(words, counts.tolist(), strict=True):
        unit = split_unit(word)[0]
        tally[unit] = tally.get(unit, 0) + n
    unit = max(tally, key=tally.__getitem__, default="")
    least = SHARE if unit == "%" else 0.5
    return unit if tally.get(unit, 0) >= least * counts.sum() else ""


@cache
def _grouped(mark: str, decimal: str) -> re.Pattern[str]:
    """Return the pattern of numbers with marks; none begins with a zero."""
    many = rf"[1-9]\d{{0,2}}(?:{MARKS[mark]}\d{{3}})+"
    return re.compile(rf"[+-]?(?:{many})(?:{re.escape(decimal)}\d*)?")


def read_yes_no(words: Sequence[str]) -> Float64Array:
    """Return 1 for true or yes, 0 for false or no, NaN of another word."""
    found = [_YES_NO.get(word.casefold()) for word in words]
    return np.array(found, dtype=np.float64)


# Dates

_DAY, _MONTH, _YEAR = r"(?P<d>\d{1,2})", r"(?P<m>\d{1,2})", r"(?P<y>\d{4})"
_NAME = r"(?P<m>[^\W\d]{3,9})\.?"
_DATES = {
    "year-month-day": rf"{_YEAR}(?P<mark>[-/.]){_MONTH}(?P=mark){_DAY}",
    "year-month": rf"{_YEAR}-(?P<m>\d\d)(?P<d>)",
    "day.month.year": rf"{_DAY}\.\s?{_MONTH}\.\s?{_YEAR}",
    "day/month/year": rf"{_DAY}(?P<mark>[-/]){_MONTH}(?P=mark){_YEAR}",
    "month/day/year": rf"{_MONTH}(?P<mark>[-/]){_DAY}(?P=mark){_YEAR}",
    "day name year": rf"{_DAY}\.?[ -]{_NAME},?[ -]{_YEAR}",
    "name day year": rf"{_NAME} {_DAY},? {_YEAR}",
}
_TIME = (
    r"(?:[T ]\s?(?P<t>\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?)"
    r"(?: ?(?P<half>[AaPp][Mm]))?(?: ?(?P<zone>Z|UTC|[+-]\d{2}:?\d{2}))?)?"
)
_SHORT = re.compile(r"\d{1,2}(?P<mark>[./-])\d{1,2}(?P=mark)\d{2}(?:[T ].*)?")
#: What users call the orders that one text may fit alike.
ORDERS = {"dmy": "day/", "mdy": "month/"}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov")
_MONTH_OF = {name: str(number) for number, name in enumerate((*_MONTHS, "dec"), 1)}
_MONTH_OF |= {"mär": "3", "mai": "5", "okt": "10", "dez": "12"}


def find_date_formats(words: Sequence[str], counts: NDArray[np.intp]) -> list[str]:
    """Return the formats in which nearly all cells are dates, those of most first."""
    least, shares = SHARE * counts.sum(), {}
    # A column of words is told by its first ones.
    if any(is_date(word) for word in words[:20]):
        for name in _DATES:
            found = ~np.isnat(read_dates(words, name))
            if found.any() and counts[found].sum() >= least:
                shares[name] = counts[found].sum()
    return [name for name, share in shares.items() if share == max(shares.values())]


def read_dates(words: Sequence[str], name: str) -> NDArray[np.datetime64]:
    """Return moments in UTC of dates in a format, NaT of other texts, shape (n,)."""
    pandas = load_pandas()
    widths = set(map(len, words))
    if name == "year-month-day" and widths in ({10}, {19}):
        form = f"%Y-%m-%d{words[0][10:11]}%H:%M:%S" if widths == {19} else "%Y-%m-%d"
        moments = pandas.to_datetime(words, format=form, errors="coerce")
        if not moments.isna().any():
            return np.asarray(moments.to_numpy(), dtype="datetime64[us]")
    texts = pandas.Series(words, dtype=object)
    # Objects all along: pandas 3 adds no texts of one type to gaps of another.
    parts = texts.str.extract(f"^(?:{_DATES[name]}{_TIME})$").astype(object)
    month = parts["m"]
    if "name" in name:
        month = month.str[:3].str.lower().map(_MONTH_OF).astype(object)
    iso = parts["y"] + "-" + month + "-" + parts["d"].replace("", "01")
    clock = parts["t"].str.replace(",", ".").astype(object)
    for row in parts.index[parts["half"].notna()]:
        clock[row] = _of_24_hours(clock[row], parts["half"][row])
    zone = parts["zone"].fillna("Z").replace("UTC", "Z").astype(object)
    iso = iso.where(parts["t"].isna(), iso + "T" + clock + zone)
    moments = pandas.to_datetime(iso, format="ISO8601", utc=True, errors="coerce")
    return np.asarray(moments.dt.tz_localize(None).to_numpy(), dtype="datetime64[us]")


def _of_24_hours(clock: str, half: str) -> str:
    """Return a time of a clock with twelve hours by 24; "x" if it has no such."""
    hour, _, rest = clock.partition(":")
    if not 1 <= int(hour) <= 12:
        return "x"
    return f"{int(hour) % 12 + 12 * (half.lower() == 'pm'):02d}:{rest}"


def is_date(text: str) -> bool:
    """Return whether a text looks like a date in any format."""
    return any(re.fullmatch(date + _TIME, text) for date in _DATES.values())


def are_short_dates(words: Iterable[str]) -> bool:
    """Return whether all texts look like dates whose years have two digits."""
    return all(_SHORT.fullmatch(word) for word in words)


def holds_texts(dtype: Any) -> bool:
    """Return whether a column of a data frame may hold texts, in any pandas."""
    return str(dtype) in ("object", "str", "string")


def find_decimal(columns: Iterable[Any], most: int = 500) -> str | None:
    """Return the decimal mark that columns of texts show, None if they do not.

    A column tells it if nearly all of its cells are numbers with one mark alone: 1,5
    or 1.234,5 does, 1,234 does not.
    """
    votes: set[str] = set()
    for column in columns:
        if not holds_texts(column.dtype):
            continue
        texts = column.iloc[:most].drop_duplicates()
        words = [t.strip() for t in texts if isinstance(t, str)]
        words = [w for w in words if w.casefold() not in GAPS]
        if not any("," in w or "." in w for w in words):
            continue
        counts = np.ones(len(words), dtype=np.intp)
        shares = {mark: _try_marks(words, counts, mark, None)[1] for mark in OTHER}
        votes |= {m for m, o in OTHER.items() if shares[m] >= SHARE > shares[o]}
    return votes.pop() if len(votes) == 1 else None
