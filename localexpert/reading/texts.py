"""Texts: how numbers, dates and gaps are written, and messages about tables."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.data.columns import read_seconds

# A message lists at most so many names, and so many letters of a cell.
_MOST_NAMES, _MOST_LETTERS = 8, 40


class TableError(ValueError):
    """A table, or an option about it, that is wrong; the message is one line."""


def refuse(message: str) -> NoReturn:
    """Refuse what the user gave."""
    raise TableError(message)


@contextmanager
def refusing(what: str, *kinds: type[Exception]) -> Iterator[None]:
    """Turn errors of these kinds into errors of the user; `what` comes first."""
    try:
        yield
    except (TableError, BrokenPipeError):  # the latter is the end of the output
        raise
    except kinds as error:
        msg = f"{what}: {getattr(error, 'strerror', None) or error}"
        raise TableError(msg) from error


def load_module(name: str, message: str) -> Any:
    """Return a module, or refuse with a message that says who needs it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise TableError(message) from error


def load_pandas() -> Any:
    """Return the module pandas, which is an optional dependency."""
    return load_module("pandas", 'tables need pandas: pip install "localexpert[io]"')


def list_names(names: Iterable[Any]) -> str:
    """Return names in quotes, the first few of many."""
    return join_few([repr(name) for name in names])


def join_few(texts: list[str], most: int = _MOST_NAMES) -> str:
    """Return texts with commas, the first few of many."""
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more} more" if more > 0 else "")


def count(n: int, noun: str) -> str:
    """Return "1 row" or "2 rows"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def cut(text: str) -> str:
    """Return a cell short enough for a message."""
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 3]}..."


def as_whole(text: str) -> str:
    """Return a whole number without the ".0" that programs write beside gaps."""
    whole = re.sub("[.,]0$", "", text)
    return whole if whole.removeprefix("-").isdecimal() else text


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
# So many cells of a column show the decimal mark.
_MOST_CELLS = 500
#: Share of filled cells that say what a column is.
SHARE = 0.95

# Marks between groups of three digits, and what is taken for each of them.
_GROUPED = {",": ",", ".": r"\.", " ": "[ \u00a0\u2009\u202f]", "'": "['\u2019]"}
OTHER = {".": ",", ",": "."}
# A number with its unit before or behind it; the sign may stand before the unit.
_NUMBER = re.compile(
    r"(?P<sign>[+-]?)\s?(?P<before>[$€£¥]|EUR|USD|GBP|CHF|JPY)?\s?(?P<inner>[+-]?)"
    "(?P<rest>[.,]?[0-9](?:[0-9.,'\u2019 \u00a0\u2009\u202f]*[0-9])?[.,]?"
    r"(?:[eE][+-]?[0-9]+)?)"
    r"\s?(?P<after>[^\d\s.,'+\-][^\d]{0,11}[23]?)?"
)
# A number that lacks such a unit is another number or code: 3 M, 50 %, 12B.
_BOUND = re.compile(
    "%|(?![cdghlmst])[a-zA-Z]|X+[SL]|(?:[kKMTB]|(?i:th|tsd|mio|mill|mn|mln|mrd|bn|bio)"
    r"|(?i:thousand|million|billion))\.?\s?(?:[$€£¥]|EUR|USD|GBP|CHF|JPY)?"
)
#: Seconds of units of time.
SECONDS = dict.fromkeys(("s", "sec", "second", "seconds"), 1.0)
SECONDS |= dict.fromkeys(("min", "minute", "minutes"), 60.0)
SECONDS |= dict.fromkeys(("h", "hour", "hours"), 3600.0)
SECONDS |= dict.fromkeys(("d", "day", "days"), 86400.0)
# A duration, as pandas and Python write it.
_DURATION = r"-?\d+ days?(?:,? [+-]?\d\d?:\d\d:\d\d(?:\.\d+)?)?"
_YES = ("true", "yes", "y", "ja", "j", "wahr", "oui", "vrai", "si", "sí", "verdadero")
_NO = ("false", "no", "n", "nein", "falsch", "non", "faux", "falso")
_YES_NO = {**dict.fromkeys(_YES, 1.0), **dict.fromkeys(_NO, 0.0)}

# Units of texts, and their numbers without them.
_Parts: TypeAlias = list[tuple[str, str]]


@dataclass(frozen=True)
class NumberFormat:
    r"""How the numbers of a column are written.

    Parameters
    ----------
    decimal : {".", ","}
    thousands : {"", ",", ".", " ", "'"}
        What parts groups of three digits; numbers without it are numbers too.
    unit : str
        What stands before or after the numbers and is the same all over. Some, such as
        "%" and "k", must stand beside every number, others may be left out.
    """

    decimal: str = "."
    thousands: str = ""
    unit: str = ""

    def read(self, words: Sequence[str]) -> Float64Array:
        """Return the number that each text is, NaN of what is none, shape (n,)."""
        return self.read_parts([_split_unit(word) for word in words])

    def read_parts(self, parts: _Parts, *, strict: bool = False) -> Float64Array:
        """Return the numbers of texts that are split already.

        If it is strict, points and commas must part thousands wherever they could.
        """
        # Tables with decimal commas may have points between thousands.
        mark = self.thousands or ("." if self.decimal == "," else "")
        whole = "[0-9]{1,3}" if strict and mark in OTHER else "[0-9]+"
        if mark:
            whole += f"|[1-9][0-9]{{0,2}}(?:{_GROUPED[mark]}[0-9]{{3}})+"
        number = re.compile(
            rf"[+-]?(?:{whole})?(?:{re.escape(self.decimal)}\d*)?(?:e.*)?"
        )
        values = np.full(len(parts), np.nan)
        for place, (unit, digits) in enumerate(parts):
            fits = unit == self.unit or not (unit or self.is_bound)
            if digits and fits and number.fullmatch(digits):
                plain = re.sub(_GROUPED[mark], "", digits) if mark else digits
                values[place] = float(plain.replace(self.decimal, "."))
        return np.where(np.isinf(values), np.nan, values)

    @property
    def is_bound(self) -> bool:
        """Whether the unit must stand beside every number."""
        return _BOUND.fullmatch(self.unit) is not None

    @property
    def text(self) -> str:
        """A description of the format; "" for a plain one."""
        unit = "percent (50 % is 50)" if self.unit == "%" else self.unit
        said = f"in {unit}" if unit else ""
        mark = self.thousands
        return f"{said} with thousands marks (1{mark}234 is 1234)" if mark else said


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
    parts = [_split_unit(word) for word in words]
    form, share = _try_marks(parts, counts, decimal, thousands)
    if share < SHARE:
        other = _try_marks(parts, counts, OTHER[decimal], thousands)
        form, share = max((form, share), other, key=lambda one: one[1])
    return form, share


def _try_marks(
    parts: _Parts, counts: NDArray[np.intp], decimal: str, thousands: str | None
) -> tuple[NumberFormat, float]:
    """Return the format with a decimal mark that reads most cells, and their share."""
    total = max(float(counts.sum()), 1.0)
    held = [j for j, (_, digits) in enumerate(parts) if digits]
    parts, counts = [parts[j] for j in held], counts[held]
    units = Counter[str]()
    for (unit, _), n in zip(parts, counts.tolist(), strict=True):
        units[unit] += n
    unit, n_usual = units.most_common(1)[0] if units else ("", 0)
    # Half of the cells say what the unit is, or nearly all if none may lack it.
    least = SHARE if NumberFormat(unit=unit).is_bound else 0.5
    unit = unit if n_usual >= least * total else ""
    best, most = NumberFormat(decimal, "", unit), 0.0
    letters = "".join(digits for _, digits in parts)
    for mark in ("", thousands) if thousands else ("", OTHER[decimal], " ", "'"):
        # Marks that no number holds read no more than "" or " " does.
        if mark.strip() and not re.search(_GROUPED[mark], letters):
            continue
        form = NumberFormat(decimal, mark, unit)
        values = form.read_parts(parts, strict=not thousands)
        share = float(counts[~np.isnan(values)].sum()) / total
        best, most = (form, share) if share > most else (best, most)
    return best, most


def _split_unit(text: str) -> tuple[str, str]:
    """Return the unit of a number and its text without it, small; "" are lacking."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return "", ""
    sign, before, inner, rest, after = match.groups()
    if (sign and inner) or (before and after):
        return "", ""
    return before or (after or "").strip(), (sign + inner + rest).lower()


def are_most(values: Float64Array, counts: NDArray[np.intp]) -> bool:
    """Return whether nearly all cells have a value, given how many hold each word."""
    return bool(counts[~np.isnan(values)].sum() >= SHARE * counts.sum())


def read_durations(words: Sequence[str]) -> Float64Array:
    """Return the seconds of durations such as "3 days 04:05:06", NaN of other words."""
    found = load_pandas().Series(words, dtype=object)
    found = found.where(found.str.fullmatch(_DURATION).astype(bool))
    return read_seconds(load_pandas().to_timedelta(found, errors="coerce"))


def read_yes_no(words: Sequence[str]) -> Float64Array:
    """Return 1 for true or yes, 0 for false or no, NaN of another word."""
    found = [_YES_NO.get(word.casefold()) for word in words]
    return np.array(found, dtype=np.float64)


# Dates

_DAY, _MONTH, _YEAR = r"(?P<d>\d{1,2})", r"(?P<m>\d{1,2})", r"(?P<y>\d{4})"
_NAME = r"(?P<m>[^\W\d]{3,9})\.?"
_DATES = {
    "year-month-day": rf"{_YEAR}(?P<mark>[-/.]){_MONTH}(?P=mark){_DAY}",
    "day.month.year": rf"{_DAY}\.\s?{_MONTH}\.\s?{_YEAR}",
    "day/month/year": rf"{_DAY}(?P<mark>[-/]){_MONTH}(?P=mark){_YEAR}",
    "month/day/year": rf"{_MONTH}(?P<mark>[-/]){_DAY}(?P=mark){_YEAR}",
    "day name year": rf"{_DAY}\.?[ -]{_NAME},?[ -]{_YEAR}",
    "name day year": rf"{_NAME} {_DAY},? {_YEAR}",
}
#: A date whose year has two digits.
SHORT_DATE = re.compile(r"\d{1,2}(?P<mark>[./-])\d{1,2}(?P=mark)\d{2}(?:[T ].*)?")
#: What users call the orders that one text may fit alike.
ORDERS = {"dmy": "day/", "mdy": "month/"}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov")
_MONTH_OF = {name: str(number) for number, name in enumerate((*_MONTHS, "dec"), 1)}
_MONTH_OF |= {"mär": "3", "mai": "5", "okt": "10", "dez": "12"}
# The calendar repeats itself after 400 years. The years that `datetime` knows.
_TURN = np.timedelta64(146_097, "D")
_FIRST, _END = np.datetime64("0001-01-01"), np.datetime64("10000-01-01")


def find_date_formats(words: Sequence[str], counts: NDArray[np.intp]) -> list[str]:
    """Return the formats in which nearly all cells are dates, those of most first."""
    shares = {}
    for name in _DATES:
        # The first words show that a column holds no dates.
        if not np.isnat(read_dates(words[:20], name)).all():
            shares[name] = counts[~np.isnat(read_dates(words, name))].sum()
    most = max(shares.values(), default=0)
    enough = most > 0 and most >= SHARE * counts.sum()
    return [name for name, share in shares.items() if enough and share == most]


def read_dates(words: Sequence[str], name: str) -> NDArray[np.datetime64]:
    """Return moments in UTC of dates in a format, NaT of other texts, shape (n,)."""
    # Objects all along: pandas 3 adds no texts of one type to gaps of another.
    texts = load_pandas().Series(words, dtype=object)
    iso = texts.where(texts.str.match(r"\d{4}-\d") & (name == "year-month-day"))
    if iso.isna().any():
        clock = r"(?:[T ]\s?(?P<t>\d{1,2}:.*))?"
        parts = texts.str.extract(f"^(?:{_DATES[name]}{clock})$").astype(object)
        month = parts["m"]
        if "name" in name:
            month = month.str[:3].str.lower().map(_MONTH_OF).astype(object)
        days = parts["y"] + "-" + month + "-" + parts["d"]
        days = days.where(parts["t"].isna(), days + "T" + parts["t"])
        iso = iso.where(iso.notna(), days)
    return _read_iso(iso)


def _read_iso(texts: Any) -> NDArray[np.datetime64]:
    """Return moments in UTC of texts of ISO 8601, NaT of others, shape (n,)."""
    # pandas reads 1678 to 2261, so each year is moved to its like from 1700 to 2099.
    near, turns = list(texts), np.zeros(len(texts), dtype=int)
    far = ~texts.str.match("1[789]|20", na=True).to_numpy(bool)
    for place in np.flatnonzero(far).tolist():
        year, rest = int(near[place][:4]), near[place][4:]
        turns[place], year = divmod(year - 1700, 400)
        # A far year without a day is a code, as 4711-3.
        near[place] = f"{1700 + year}{rest}" if re.match(r"-\d+-\d", rest) else None
    iso = load_pandas().Series(near, dtype=object)
    # Apart: after a time with a zone pandas reads those without one in the same zone.
    zoned = iso.str.match(".{10}.*[zZ+-]", na=False).to_numpy(bool)
    moments = np.full(len(iso), "NaT", dtype="datetime64[us]")
    for held in (zoned, ~zoned):
        read = load_pandas().to_datetime(
            iso[held], format="ISO8601", utc=True, errors="coerce"
        )
        moments[held] = read.dt.tz_localize(None).to_numpy("datetime64[us]")
    moments += turns * _TURN
    known = (moments >= _FIRST) & (moments < _END)
    return np.where(known, moments, np.datetime64("NaT", "us"))


def holds_texts(dtype: Any) -> bool:
    """Return whether a column of a data frame may hold texts, in any pandas."""
    return str(dtype) in ("object", "str", "string")


def decimal_of(frame: Any, given: str | None = None) -> str | None:
    """Return the decimal mark that a file or the user knows, or columns show."""
    known: str | None = frame.attrs.get("decimal") or given
    if known or "decimal" in frame.attrs:
        return known
    return find_decimal(frame.iloc[:, j] for j in range(frame.shape[1]))


def choose_decimal(
    frame: Any, given: str | None = None, usual: str | None = None
) -> str:
    """Return the decimal mark of a table: what it tells, the usual one, or a guess."""
    return decimal_of(frame, given) or usual or guess_decimal(frame)


def guess_decimal(frame: Any) -> str:
    """Return the likely mark: semicolons part fields where numbers need commas."""
    return "," if frame.attrs.get("delimiter") == ";" else "."


def find_decimal(columns: Iterable[Any]) -> str | None:
    """Return the decimal mark that columns of texts show, None if they do not.

    A column tells it if nearly all of its cells are numbers with one mark alone: 1,5
    or 1.234,5 does, 1,234 does not.
    """
    votes: set[str] = set()
    for column in columns:
        if not holds_texts(column.dtype):
            continue
        texts = column.iloc[:_MOST_CELLS].drop_duplicates()
        words = [t.strip() for t in texts if isinstance(t, str)]
        words = [w for w in words if w.casefold() not in GAPS]
        if any("," in w or "." in w for w in words):
            parts = [_split_unit(word) for word in words]
            counts = np.ones(len(words), dtype=np.intp)
            shares = {mark: _try_marks(parts, counts, mark, None)[1] for mark in OTHER}
            votes |= {m for m, o in OTHER.items() if shares[m] >= SHARE > shares[o]}
    return votes.pop() if len(votes) == 1 else None
