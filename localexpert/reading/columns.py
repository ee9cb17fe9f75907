"""`ColumnRule`: the kind of a column in training, and how it is read again."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.data.columns import has_zone, holds_dates, read_moments, read_seconds
from localexpert.reading.texts import (
    GAPS,
    ORDERS,
    OTHER,
    PLAIN,
    SECONDS,
    SHARE,
    SHORT_DATE,
    NumberFormat,
    are_most,
    as_whole,
    count,
    cut,
    find_date_formats,
    find_number_format,
    holds_texts,
    join_few,
    load_pandas,
    read_dates,
    read_durations,
    read_yes_no,
    refuse,
)

Column: TypeAlias = Any  # a Series of pandas

# A column names its rows if it has so many texts and nine in ten of them differ.
_LEAST_NAMES, _SHARE_OF_NAMES = 20, 0.9
# Fewer numbers may follow each other by chance.
_LEAST_STEPS = 4
# float64 holds all whole numbers up to here, and not all beyond.
_LAST_WHOLE = 2**53
# Nines are gaps if they are so many times as far out as all other numbers.
_FAR = 10.0
_NINES = np.array([sign * (10.0**k - 1.0) for k in range(3, 16) for sign in (-1, 1)])
_ZEROS = re.compile(r"\0\s*(0\d+)\s*\0")
# A time with its zone, as ISO 8601 and Python write it.
_UTC, _OTHER_ZONE = r"[zZ]|[+-]00:?(?:00)?(?::00)?", r"[+-]\d\d:?(?:\d\d)?(?::\d\d)?"
_ZONED = re.compile(rf":\d\d.*(?:(?P<utc>{_UTC})|{_OTHER_ZONE})\s*$")
# At most so many different odd cells of a column are kept, with so many letters.
_MOST_ODD, _MOST_LETTERS = 1000, 80
# A message names at most so many words of a column.
_MOST_NAMED = 4


@dataclass(frozen=True)
class OddCell:
    """A text in a column that does not fit the kind of the column.

    Parameters
    ----------
    column : str
    text : str
    count : int
        Cells that hold it.
    where : str
        The first of them, as "line 17 of claims.csv".
    why : str
        Why it does not fit, and how it was read.
    """

    column: str
    text: str
    count: int
    where: str
    why: str


@dataclass(frozen=True)
class Dialect:
    """How a table writes its values: decimal mark, mark of thousands, gaps, dates."""

    decimal: str = "."
    thousands: str | None = None
    gaps: frozenset[str] = GAPS
    date_order: str | None = None

    def __post_init__(self) -> None:
        """Refuse a mark that would be two things at once."""
        if self.decimal == self.thousands:
            refuse(
                f"--decimal and --thousands must differ, got {self.decimal!r} for both"
            )

    @property
    def gap_numbers(self) -> tuple[float, ...]:
        """Numbers that stand for nothing, however they are written."""
        form = NumberFormat(self.decimal, self.thousands or "")
        values = form.read(sorted(self.gaps - GAPS))
        return tuple(values[~np.isnan(values)].tolist())


@dataclass(frozen=True, eq=False)
class Cells:
    """A column of n texts as its k different ones: each of them is looked at once.

    Parameters
    ----------
    texts : list of str
        Without blanks at their ends, if they are not known with them.
    codes : ndarray of int, shape (n,)
        Which text each cell holds.
    is_gap : ndarray of bool, shape (k,)
    """

    texts: list[str]
    codes: NDArray[np.intp]
    is_gap: NDArray[np.bool_]

    @classmethod
    def of(cls, column: Column, dialect: Dialect, known: Collection[str] = ()) -> Cells:
        """Find the different texts of a column; those that are known are no gaps."""
        factorize = load_pandas().factorize
        codes, found = factorize(as_texts(column, dialect.decimal))
        texts = [text if text in known else text.strip() for text in found]
        again, texts = factorize(np.array(texts, dtype=object))
        is_gap = [t.casefold() in dialect.gaps and t not in known for t in texts]
        return cls(list(texts), again[codes], np.array(is_gap, dtype=bool))

    @property
    def words(self) -> list[str]:
        """The texts that stand for something."""
        return [t for t, gap in zip(self.texts, self.is_gap, strict=True) if not gap]

    @property
    def counts(self) -> NDArray[np.intp]:
        """Cells that hold each word."""
        return np.bincount(self.codes, minlength=len(self.texts))[~self.is_gap]

    def spread(self, values: Any, missing: Any) -> Any:
        """Return the value of each cell, from those of the words."""
        every = np.full(len(self.texts), missing, dtype=np.asarray(values).dtype)
        every[~self.is_gap] = values
        return every[self.codes]


@dataclass(frozen=True)
class ColumnRule:
    """How one column of a table becomes a feature.

    Parameters
    ----------
    name : str
    kind : {"number", "boolean", "date", "category", "dropped"}
    categories : tuple
        Of a category, the values met in training, in order.
    date_format : str
        Of a date, the format of its texts in training; "" is to be found out.
    written : NumberFormat or None
        Of a number, how it was written; None is to be found out.
    sentinels : tuple of float
        Of a number, values that stand for nothing, such as 99999999 or -1.
    reason : str
        Why a column is dropped.
    zoned : bool or None
        Of a date, whether times in training had a zone; None if that was UTC alone.
    """

    name: str
    kind: str
    categories: tuple[Any, ...] = ()
    date_format: str = ""
    written: NumberFormat | None = PLAIN
    sentinels: tuple[float, ...] = ()
    reason: str = ""
    zoned: bool | None = None

    @property
    def text(self) -> str:
        """What the column holds, in words."""
        if self.kind == "number":
            return f"numbers {self.written.text if self.written else ''}".strip()
        if self.kind == "category":
            held = [cut(str(value)) for value in self.categories]
            return f"{count(len(held), 'word')}: {join_few(held, _MOST_NAMED)}"
        kind_names = {"boolean": "yes or no", "date": "dates", "dropped": "dropped"}
        more = self.reason or self.date_format
        return kind_names[self.kind] + (f" ({more})" if more else "")

    def read(self, column: Column, dialect: Dialect) -> tuple[Any, NDArray[np.bool_]]:
        """Return the values of a column (n,), and which cells it should not hold.

        Numbers are float64, dates datetime64, categories a Categorical; what is odd or
        a gap is missing.
        """
        typed, held = None, {_as_text(value, ".") for value in self.categories}
        if self.kind != "category":
            typed = read_typed(column) or read_plain(column, dialect)
        if typed is None:
            # A gap is written as nothing.
            return self.read_cells(Cells.of(column, dialect, held - {""}), dialect)
        return self.read_values(*typed)

    def as_feature(self, values: Any) -> Any:
        """Return values (n,) as a model takes them: times with a zone have a type."""
        return load_pandas().DatetimeIndex(values, tz="UTC") if self.zoned else values

    def read_values(self, kind: str, values: Any) -> tuple[Any, NDArray[np.bool_]]:
        """Return what values (n,) of a kind are here, and which should not be."""
        unit = self.written.unit if self.written else "s"
        if kind == "duration" and unit in SECONDS:
            kind, values = "number", values / SECONDS[unit]
        if kind == "number":
            values = np.where(np.isin(values, self.sentinels), np.nan, values)
        known = ~load_pandas().isna(values)
        if kind == "duration" or (kind == "date") != (self.kind == "date"):
            return np.full(len(values), np.nan), known
        if kind == "date":
            return values, np.zeros(len(values), dtype=bool)
        odd = np.isinf(values)
        if self.kind == "boolean":
            odd |= ~np.isin(values, (0.0, 1.0)) & known
        elif self.written and self.written.is_bound:
            odd |= known
        return np.where(odd, np.nan, values), odd

    def read_cells(
        self, cells: Cells, dialect: Dialect
    ) -> tuple[Any, NDArray[np.bool_]]:
        """Return what a column of texts holds, and which cells it should not hold."""
        words, counts = cells.words, cells.counts
        if self.kind == "category":
            known = {_as_text(c, "."): code for code, c in enumerate(self.categories)}
            for text, code in [*known.items()]:
                known.setdefault(as_whole(text), code)
            found = [known.get(word, known.get(as_whole(word), -1)) for word in words]
            codes = np.array(found, dtype=np.intp)
            made = load_pandas().Categorical.from_codes(
                cells.spread(codes, -1), list(self.categories)
            )
            return made, cells.spread(codes < 0, False)
        if self.kind == "date":
            days = self._read_dates(words, counts)
            odd = cells.spread(np.isnat(days), False)
            return cells.spread(days, np.datetime64("NaT", "us")), odd
        if self.kind == "boolean":
            values = read_yes_no(words)
        else:
            values = self._read_numbers(words, counts, dialect)
        odd = cells.spread(np.isnan(values), False)
        if self.kind == "number":
            values = np.where(np.isin(values, self.sentinels), np.nan, values)
        return cells.spread(values, np.nan), odd

    def _read_numbers(
        self, words: list[str], counts: NDArray[np.intp], dialect: Dialect
    ) -> Float64Array:
        """Return the numbers of words, by the marks of this table or of training."""
        if self.written is None:
            if are_most(durations := read_durations(words), counts):
                return durations
            marks = dialect.decimal, dialect.thousands
            form, share = find_number_format(words, counts, *marks)
            return form.read(words) if share >= SHARE else read_yes_no(words)
        trained, mark = self.written, self.written.thousands
        if trained.decimal != dialect.decimal:
            # Decimal commas go with points between thousands, found or not.
            mark = mark or ("." if trained.decimal == "," else "")
            mark = OTHER.get(mark, mark)
        mark = dialect.thousands or mark
        here = replace(trained, decimal=dialect.decimal, thousands=mark)
        read = [form.read(words) for form in dict.fromkeys([here, trained])]
        best = max(read, key=lambda values: int(counts[~np.isnan(values)].sum()))
        if trained.unit in SECONDS and np.isnan(best).any():
            others = read_durations(words) / SECONDS[trained.unit]
            best = np.where(np.isnan(best), others, best)
        return best

    def _read_dates(self, words: list[str], counts: NDArray[np.intp]) -> Any:
        """Return the dates of words, in the format of training if it is known."""
        found = [self.date_format] if self.date_format else []
        found = found or find_date_formats(words, counts)
        days = read_dates(words, "year-month-day")
        # One text may be read in one way only.
        if len(found) == 1 and np.isnat(days).any():
            days = np.where(np.isnat(days), read_dates(words, found[0]), days)
        return days


# What cells hold


def read_typed(column: Column) -> tuple[str, Any] | None:
    """Return the values of a column that has a type; None if it holds texts.

    Their kind is "number", "boolean", "date" or "duration", whose values are seconds.
    """
    if holds_texts(column.dtype):
        if len(column) and isinstance(column.iloc[0], str):
            return None  # at once: texts, perhaps with others among them
        column = column.convert_dtypes()
    if holds_dates(column):
        return "date", read_moments(column)
    if column.dtype.kind == "m":
        return "duration", read_seconds(column)
    pandas = load_pandas()
    if not pandas.api.types.is_numeric_dtype(column.dtype):
        return None
    values = np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    is_boolean = pandas.api.types.is_bool_dtype(column.dtype)
    return ("boolean" if is_boolean else "number"), values


def as_texts(column: Column, decimal: str = ".") -> NDArray[np.object_]:
    """Return a column as a CSV would hold it, gaps as "", shape (n,)."""
    if column.dtype != object:
        column = column.astype(object)
    cells = column.to_numpy()
    if load_pandas().api.types.infer_dtype(cells, skipna=False) == "string":
        return np.asarray(cells)
    gaps = load_pandas().isna(cells)
    held = [
        "" if gap else _as_text(cell, decimal)
        for cell, gap in zip(cells, gaps, strict=True)
    ]
    return np.array(held, dtype=object)


def _as_text(cell: Any, decimal: str) -> str:
    """Return one value as a text: whole numbers without a decimal point."""
    if isinstance(cell, float | np.floating):
        cell = float(cell)
        whole = cell.is_integer() and abs(cell) <= _LAST_WHOLE
        return f"{cell:.0f}" if whole else repr(cell).replace(".", decimal)
    return str(cell)


def read_plain(column: Column, dialect: Dialect) -> tuple[str, Float64Array] | None:
    """Return "number" and values if all texts are plain or empty: most columns are."""
    texts, decimal = as_texts(column, dialect.decimal), dialect.decimal
    try:
        joined = "\0".join(texts)
        # Python reads 1_000 and nan as numbers, and points may part thousands.
        if any(mark in joined for mark in ("_nN." if decimal == "," else "_nN")):
            return None
        if decimal == ",":
            texts = np.array(joined.replace(",", ".").split("\0"), dtype=object)
        if "\0\0" in f"\0{joined}\0":
            texts = np.where(texts == "", "nan", texts)
        return "number", texts.astype(np.float64)
    except ValueError:
        return None


def where(frame: Any, row: int) -> str:
    """Return where in a table a row is, as "line 17 of claims.csv"."""
    label, path = frame.index[row], frame.attrs.get("path", "")
    if isinstance(label, tuple):
        path, label = label[0], label[-1]
    unit = frame.index.names[-1] or "row"
    return f"{unit} {label}" + (f" of {path}" if path else "")


def show(frame: Any, name: str, row: int) -> str:
    """Return one cell in quotes, cut if it is long."""
    return repr(cut(as_texts(frame[name].iloc[[row]])[0].strip()))


def list_odd(
    frame: Any, name: str, odd: NDArray[np.bool_], why: str
) -> Iterator[OddCell]:
    """Yield the different texts among some cells of a column, those of most first."""
    (rows,) = np.nonzero(odd)
    if len(rows):
        cells = as_texts(frame[name].iloc[rows])
        codes, texts = load_pandas().factorize(cells)
        counts = np.bincount(codes)
        _, first = np.unique(codes, return_index=True)
        for j in np.argsort(-counts, kind="stable")[:_MOST_ODD]:
            text = texts[j].strip()[:_MOST_LETTERS]
            place = where(frame, int(rows[first[j]]))
            yield OddCell(name, text, int(counts[j]), place, why)


def find_zones(column: Column, values: Any) -> Float64Array:
    """Return 1 for dates (n,) with a time zone, 0 without, NaN for UTC and gaps."""
    if column.dtype.kind == "M":
        zones = np.full(len(column), has_zone(column), dtype=np.float64)
    else:
        codes, texts = load_pandas().factorize(as_texts(column))
        found = [_ZONED.search(text) for text in texts]
        each = [0.0 if one is None else np.nan if one["utc"] else 1.0 for one in found]
        zones = np.array(each, dtype=np.float64)[codes]
    return np.where(load_pandas().isna(values), np.nan, zones)


def list_odd_zones(frame: Any, rule: ColumnRule, values: Any) -> Iterator[OddCell]:
    """Yield the dates (n,) with a time zone where training had none, or without one."""
    if rule.zoned is not None:
        odd = find_zones(frame[rule.name], values) == (not rule.zoned)
        said = "without" if rule.zoned else "with"
        why = f"{said} a time zone, unlike others in training, read in UTC"
        yield from list_odd(frame, rule.name, odd, why)


# What a column is


@dataclass(eq=False)
class Learner:
    """Finds the kinds of the columns of a training table.

    Parameters
    ----------
    frame : pandas.DataFrame of shape (n, p)
    dialect : Dialect
    odd : list of OddCell
        Odd cells are added to this list.
    said : list of str
        Texts for warnings are added to this list.
    """

    frame: Any
    dialect: Dialect
    odd: list[OddCell] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def learn(self, name: str, *, as_category: bool = False) -> tuple[ColumnRule, Any]:
        """Return the rule of a column, and the feature that it becomes.

        A column without information is dropped.
        """
        rule, values = self.find(name, as_category=as_category)
        held, n = load_pandas().Series(values), len(values)
        known = held.dropna()
        n_different = len(rule.categories) if rule.kind == "category" else len(known)
        if rule.kind != "category" and n_different and known.min() == known.max():
            n_different = 1
        whole = rule.kind == "number" and bool((held % 1 == 0).all())
        # Data frames are often saved with their index.
        is_index = whole and str(name).startswith("column ") and held.is_unique
        names = rule.kind == "category" and not as_category
        names &= len(known) >= _LEAST_NAMES
        names &= n_different > _SHARE_OF_NAMES * len(known)
        reasons = {
            "holds no value": n_different == 0,
            "constant": n_different == 1 and len(known) == n,
            "a different text in each row": names,
            "without a name, numbers the rows": is_index,
        }
        if reason := next((why for why, holds in reasons.items() if holds), ""):
            return ColumnRule(name, "dropped", reason=reason), None
        steps = np.diff(held) if whole else np.empty(0)
        if len(steps) >= _LEAST_STEPS and (steps == 1.0).all():
            self.said.append(
                f"column {name!r} numbers the rows; it is learned from all the same "
                "(--drop leaves it out)"
            )
        texts = "\0".join(as_texts(self.frame[name])) if whole else ""
        if zeros := _ZEROS.search(f"\0{texts}\0"):
            self.said.append(
                f"column {name!r} holds digits that begin with zeros, first "
                f"{zeros[1]!r}; it is read as numbers (--categories keeps the digits)"
            )
        return rule, rule.as_feature(values)

    def find(
        self, name: str, role: str = "", *, as_category: bool = False
    ) -> tuple[ColumnRule, Any]:
        """Return the rule of a column and its values; what is odd in it is listed.

        With a role, such as that of a target, it must hold numbers.
        """
        column, dialect, before = self.frame[name], self.dialect, len(self.said)
        how: Any = {"written": NumberFormat(dialect.decimal)}
        how["sentinels"] = dialect.gap_numbers
        rule, typed = ColumnRule(name, "category", **how), None
        if not as_category:
            typed = read_typed(column) or read_plain(column, dialect)
            rule = replace(rule, kind=typed[0] if typed else "number")
        if rule.kind == "duration":
            rule = replace(rule, kind="number", written=NumberFormat(unit="s"))
        if typed is not None:
            values, odd = rule.read_values(*typed)
            isna = load_pandas().isna
            spelled = isna(values) & ~isna(typed[1]) & ~odd
        else:
            cells = Cells.of(column, dialect)
            rule = self._find_rule(rule, cells)
            values, odd = rule.read_cells(cells, dialect)
            spelled = cells.is_gap & (np.array(cells.texts, object) != "")
            spelled = spelled[cells.codes]
            if rule.kind == "number":
                spelled |= np.isnan(values) & ~odd & ~cells.is_gap[cells.codes]
        self.odd += list_odd(self.frame, name, spelled, "read as a gap")
        if role and rule.kind not in ("number", "boolean"):
            form = ColumnRule(name, "number", **how)
            row = int(np.argmax(form.read(column, dialect)[1]))
            cell = f"{show(self.frame, name, row)} in {where(self.frame, row)}"
            why = "".join(f" ({said})" for said in self.said[before:])
            refuse(f"{role} {name!r} must hold finite numbers, got {cell}{why}")
        self.odd += list_odd(self.frame, name, odd, f"not {rule.text}, taken as a gap")
        if rule.kind == "date":
            zones = find_zones(column, values)
            known = zones[~np.isnan(zones)]
            rule = replace(rule, zoned=bool(known.any()) if len(known) else None)
            self.odd += list_odd_zones(self.frame, rule, values)
        if rule.kind == "number" and not role:
            found = _find_sentinels(values)
            rule = replace(rule, sentinels=(*rule.sentinels, *found))
            far = np.isin(values, found)
            why = "far beyond all others and repeated, taken as a gap"
            self.odd += list_odd(self.frame, name, far, why)
            values = np.where(far, np.nan, values)
        return rule, values

    def _find_rule(self, rule: ColumnRule, cells: Cells) -> ColumnRule:
        """Return the kind of nearly all filled cells; words if no other kind fits."""
        words, counts, name = cells.words, cells.counts, rule.name
        category = replace(rule, kind="category", categories=tuple(sorted(words)))
        if not words or rule.kind == "category":
            return category if words else rule
        # Dates come first: no date is a number, and most are found at once.
        dates = find_date_formats(words, counts)
        if len(dates) > 1 and self.dialect.date_order is not None:
            dates = [d for d in dates if d.startswith(ORDERS[self.dialect.date_order])]
        if len(dates) == 1:
            return replace(rule, kind="date", date_format=dates[0])
        marks = self.dialect.decimal, self.dialect.thousands
        form, share = find_number_format(words, counts, *marks)
        if share >= SHARE:
            return replace(rule, written=form)
        if are_most(read_durations(words), counts):
            return replace(rule, written=NumberFormat(unit="s"))
        if are_most(read_yes_no(words), counts):
            return replace(rule, kind="boolean")
        said = ""
        if dates:
            said = "dates that may have the day or the month first (--date-order)"
        elif all(map(SHORT_DATE.fullmatch, words)):
            said = f"years of two digits, as {words[0]!r} (write four)"
        elif share >= 1.0 - SHARE:
            row = int(np.argmax(cells.spread(np.isnan(form.read(words)), False)))
            cell = f"{show(self.frame, name, row)} in {where(self.frame, row)}"
            said = f"{100.0 * share:.0f} % numbers, and what is none, first {cell}"
        elif share > 0.0:
            found = cells.spread(~np.isnan(form.read(words)), False)
            why = "a number among words, kept as a word"
            self.odd += list_odd(self.frame, name, found, why)
        if said:
            self.said.append(f"column {name!r} holds {said}; it is taken as words")
        return category


def _find_sentinels(values: Float64Array) -> tuple[float, ...]:
    """Return repeated numbers of nines that are far beyond all others."""
    is_nines = np.isin(values, _NINES)
    found, counts = np.unique(values[is_nines], return_counts=True)
    rest = np.abs(values[~is_nines & ~np.isnan(values)])
    limit = _FAR * max(rest.max(initial=0.0), 1.0) if len(rest) else np.inf
    far = found[(counts > 1) & (np.abs(found) > limit)]
    return tuple(far.tolist())
