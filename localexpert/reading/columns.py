"""`ColumnRule`: what a column of the training table is, and how it is read again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.data.dates import holds_dates, read_days
from localexpert.reading.formats import (
    GAPS,
    ORDERS,
    OTHER,
    PLAIN,
    SHARE,
    NumberFormat,
    are_short_dates,
    find_date_formats,
    find_number_format,
    read_dates,
    read_yes_no,
)
from localexpert.reading.messages import cut, load_pandas, refuse

Kind: TypeAlias = Literal["number", "boolean", "date", "category", "dropped"]
Column: TypeAlias = Any  # a Series of pandas

# From so many texts on, of which nine in ten differ, a column names its rows.
_LEAST_NAMES, _SHARE_OF_NAMES = 20, 0.9
# Fewer numbers in a row than this may follow each other by chance.
_LEAST_IN_ORDER = 5
# float64 holds all whole numbers up to here, and not all beyond.
_LAST_WHOLE = 2**53
# Nines that stand for nothing are so many times as far out as all other numbers.
_FAR = 10.0
_NINES = re.compile(r"-?9{3,}")
# Different odd cells of a column that are kept, and letters of each.
_MOST_ODD, _MOST_LETTERS = 1000, 80


@dataclass(frozen=True)
class OddCell:
    """A text in a column that is not what the column is.

    Parameters
    ----------
    column : str
    text : str
    count : int
        Cells that hold it.
    where : str
        The first of them, as "line 17 of claims.csv".
    why : str
        What it is, and what has become of it.
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


@dataclass(frozen=True, eq=False)
class Cells:
    """A column of n texts as its k different ones: each of them is looked at once.

    Parameters
    ----------
    texts : list of str
        Without blanks at their ends.
    codes : ndarray of int, shape (n,)
        Which text each cell holds.
    is_gap : ndarray of bool, shape (k,)
    """

    texts: list[str]
    codes: NDArray[np.intp]
    is_gap: NDArray[np.bool_]

    @classmethod
    def of(cls, column: Column, dialect: Dialect) -> Cells:
        """Find the different texts of a column."""
        codes, found = load_pandas().factorize(as_texts(column, dialect.decimal))
        texts = [text.strip() for text in found]
        is_gap = np.array([text.casefold() in dialect.gaps for text in texts], bool)
        return cls(texts, codes, is_gap)

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
        Of a number, values that stand for nothing, such as 99999999.
    reason : str
        Why a column is dropped.
    """

    name: str
    kind: Kind
    categories: tuple[Any, ...] = ()
    date_format: str = ""
    written: NumberFormat | None = PLAIN
    sentinels: tuple[float, ...] = ()
    reason: str = ""

    @property
    def text(self) -> str:
        """What the column must hold, in words."""
        if self.kind == "number":
            return f"numbers {self.written.text if self.written else ''}".strip()
        if self.kind == "boolean":
            return "yes or no"
        return f"dates ({self.date_format})" if self.date_format else "dates"

    def read(self, column: Column, dialect: Dialect) -> tuple[Any, NDArray[np.bool_]]:
        """Return the values of a column (n,), and which cells it should not hold.

        Numbers are float64, dates datetime64, categories a Categorical; what is odd or
        a gap is missing.
        """
        if self.kind == "category":
            return self._read_category(column, dialect)
        typed = read_typed(column)
        if typed is None:
            return self._read_texts(column, dialect)
        kind, values = typed
        if (kind == "date") != (self.kind == "date"):
            missing = np.full(len(column), np.nan)
            return missing, np.asarray(column.notna())
        if kind == "date":
            return values, np.zeros(len(column), dtype=bool)
        odd = np.isinf(values)
        if self.kind == "boolean":
            odd |= ~np.isin(values, (0.0, 1.0)) & ~np.isnan(values)
        elif self.written and self.written.unit == "%":
            odd |= ~np.isnan(values)
        return self._without(values, odd), odd

    def _without(self, values: Any, odd: NDArray[np.bool_]) -> Any:
        """Return numbers without what is odd or stands for nothing."""
        return np.where(odd | np.isin(values, self.sentinels), np.nan, values)

    def _read_texts(
        self, column: Column, dialect: Dialect
    ) -> tuple[Any, NDArray[np.bool_]]:
        """Return what a column of texts holds."""
        percent = self.written is not None and self.written.unit == "%"
        if self.kind == "number" and not percent:
            plain = read_plain(as_texts(column, dialect.decimal), dialect.decimal)
            if plain is not None:
                return self._without(plain, np.isinf(plain)), np.isinf(plain)
        cells = Cells.of(column, dialect)
        words, counts = cells.words, cells.counts
        if self.kind == "date":
            days = self._read_dates(words, counts)
            odd = cells.spread(np.isnat(days), False)
            return cells.spread(days, np.datetime64("NaT")), odd
        if self.kind == "boolean":
            values = read_yes_no(words)
        else:
            values = self._read_numbers(words, counts, dialect)
        odd = cells.spread(np.isnan(values), False)
        return self._without(cells.spread(values, np.nan), odd), odd

    def _read_numbers(
        self, words: list[str], counts: NDArray[np.intp], dialect: Dialect
    ) -> Float64Array:
        """Return the numbers of words, by the marks of this table or of training."""
        if self.written is None:
            form, share = find_number_format(words, counts, dialect.decimal)
            flags = read_yes_no(words)
            return form.read(words) if share >= SHARE else flags
        own = replace(
            self.written, thousands=dialect.thousands or self.written.thousands
        )
        forms = [own]
        if own.decimal != dialect.decimal:
            mark = OTHER.get(own.thousands, own.thousands)
            forms.insert(0, replace(own, decimal=dialect.decimal, thousands=mark))
        read = [form.read(words) for form in forms]
        return max(read, key=lambda values: int(counts[~np.isnan(values)].sum()))

    def _read_dates(self, words: list[str], counts: NDArray[np.intp]) -> Any:
        """Return the dates of words, in the format of training if it is known."""
        found = [self.date_format] if self.date_format else []
        found = found or find_date_formats(words, counts)
        if len(found) == 1:
            return read_dates(words, found[0])
        return np.full(len(words), "NaT", "datetime64[us]")

    def _read_category(
        self, column: Column, dialect: Dialect
    ) -> tuple[Any, NDArray[np.bool_]]:
        """Return a column of words as codes of the categories met in training."""
        cells = Cells.of(column, dialect)
        known = {_as_text(c, "."): code for code, c in enumerate(self.categories)}
        codes = np.array([known.get(word, -1) for word in cells.words], dtype=np.intp)
        made = load_pandas().Categorical.from_codes(
            cells.spread(codes, -1), list(self.categories)
        )
        return made, cells.spread(codes < 0, False)


# What cells hold


def read_typed(column: Column) -> tuple[str, Any] | None:
    """Return the values of a column with a type of its own, None of one of texts.

    Their kind is "number", "boolean" or "date".
    """
    kind = getattr(column.dtype, "kind", "O")
    name = str(column.dtype).lower()
    if kind == "O" and name == "object":
        held = load_pandas().api.types.infer_dtype(column, skipna=True)
        if held in ("integer", "floating", "decimal", "mixed-integer-float", "boolean"):
            kind = "b" if held == "boolean" else "f"
            column = column.where(column.notna(), np.nan)
        elif not held.startswith("date"):
            return None
    if kind in "biuf" or name.startswith(("decimal", "bool")):
        values = np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        return ("boolean" if kind == "b" else "number"), values
    return ("date", column) if holds_dates(column) else None


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


def read_plain(texts: NDArray[np.object_], decimal: str) -> Float64Array | None:
    """Return the numbers of texts if all are plain or empty: most columns are."""
    try:
        joined = "\0".join(texts)
        # Python reads 1_000 as a number, and blanks and points may part thousands.
        if "_" in joined or (decimal == "," and "." in joined) or "n" in joined:
            return None
        if decimal == ",":
            texts = np.array(joined.replace(",", ".").split("\0"), dtype=object)
        return np.where(texts == "", "nan", texts).astype(np.float64)
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


# What a column is


@dataclass(eq=False)
class Learner:
    """Finds out what the columns of a training table are.

    Parameters
    ----------
    frame : pandas.DataFrame of shape (n, p)
    dialect : Dialect
    odd : list of OddCell
        What is odd is added here.
    said : list of str
        What is worth a warning is added here.
    """

    frame: Any
    dialect: Dialect
    odd: list[OddCell] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def learn(self, name: str, *, as_category: bool = False) -> ColumnRule:
        """Return the rule of a column."""
        column = self.frame[name]
        typed = None if as_category else read_typed(column)
        if typed is not None:
            return self._typed_rule(name, *typed)
        texts = as_texts(column, self.dialect.decimal)
        plain = None if as_category else read_plain(texts, self.dialect.decimal)
        if plain is not None:
            form = NumberFormat(self.dialect.decimal)
            return self._number_rule(ColumnRule(name, "number", written=form), plain)
        cells = Cells.of(column, self.dialect)
        self._note_gaps(name, cells)
        rule = None if as_category else self._find_rule(name, cells)
        if rule is None:
            return self._category_rule(name, cells, as_category=as_category)
        values, odd = rule.read(column, self.dialect)
        self.odd += list_odd(self.frame, name, odd, f"not {rule.text}, taken as a gap")
        if rule.kind == "date":
            return self._date_rule(rule, values)
        return self._number_rule(rule, values)

    def learn_numbers(self, name: str, role: str) -> ColumnRule:
        """Return the rule of a column that must hold numbers, such as a target."""
        before = len(self.said)
        rule = self.learn(name)
        if rule.kind in ("category", "date") or (
            rule.kind == "dropped" and not rule.reason.startswith(("const", "holds"))
        ):
            form = NumberFormat(self.dialect.decimal)
            rule = ColumnRule(name, "number", written=form)
            row = int(np.argmax(rule.read(self.frame[name], self.dialect)[1]))
            told = "; ".join(self.said[before:])
            refuse(
                f"{role} {name!r} must hold finite numbers, got "
                f"{show(self.frame, name, row)} in {where(self.frame, row)}"
                + (f" ({told})" if told else "")
            )
        # What is said of features is not to be said of it.
        self.said = self.said[:before]
        return (
            rule if rule.kind != "dropped" else replace(rule, kind="number", reason="")
        )

    def _typed_rule(self, name: str, kind: str, values: Any) -> ColumnRule:
        if kind == "date":
            return self._date_rule(ColumnRule(name, "date"), values)
        rule = ColumnRule(name, "boolean" if kind == "boolean" else "number")
        return self._number_rule(rule, values)

    def _find_rule(self, name: str, cells: Cells) -> ColumnRule | None:
        """Return what nearly all filled cells are; None of words."""
        words, counts = cells.words, cells.counts
        if not words:
            return ColumnRule(name, "number")
        # Dates come first: no date is a number, and most can be told at once.
        dates = find_date_formats(words, counts)
        order = self.dialect.date_order
        if len(dates) > 1 and order is not None:
            dates = [name for name in dates if name.startswith(ORDERS[order])]
        if len(dates) == 1:
            return ColumnRule(name, "date", date_format=dates[0])
        if dates:
            self.said.append(
                f"column {name!r} may hold dates, but every one can be read day first "
                "and month first; it is taken as words, unless --date-order says which"
            )
            return None
        marks = self.dialect.decimal, self.dialect.thousands
        form, share = find_number_format(words, counts, *marks)
        if share >= SHARE:
            return ColumnRule(name, "number", written=form)
        flags = counts[~np.isnan(read_yes_no(words))].sum()
        if flags >= SHARE * counts.sum():
            return ColumnRule(name, "boolean")
        self._tell_of_words(name, cells, form, share)
        return None

    def _tell_of_words(
        self, name: str, cells: Cells, form: NumberFormat, share: float
    ) -> None:
        """Say what numbers and dates a column of words holds."""
        words = cells.words
        if are_short_dates(words):
            self.said.append(
                f"column {name!r} holds years of two digits, such as {words[0]!r}, and "
                "is taken as words: write years with four"
            )
        elif share >= 1.0 - SHARE:
            odd = cells.spread(np.isnan(form.read(words)), False)
            row = int(np.argmax(odd))
            self.said.append(
                f"column {name!r} holds {100.0 * share:.0f} % numbers, but also "
                f"{show(self.frame, name, row)} ({where(self.frame, row)}); it is "
                "taken as words"
            )
        elif share > 0.0:
            found = cells.spread(~np.isnan(form.read(words)), False)
            why = "a number among words, kept as a word"
            self.odd += list_odd(self.frame, name, found, why)

    def _note_gaps(self, name: str, cells: Cells) -> None:
        """List the words that are taken for nothing."""
        spelled = cells.is_gap & np.array([text != "" for text in cells.texts], bool)
        why = "read as a gap"
        self.odd += list_odd(self.frame, name, spelled[cells.codes], why)

    def _number_rule(self, rule: ColumnRule, values: Float64Array) -> ColumnRule:
        name, finite = rule.name, np.isfinite(values)
        infinite = np.isinf(values)
        self.odd += list_odd(self.frame, name, infinite, "infinite, taken as a gap")
        if rule.kind == "number":
            rule = replace(rule, sentinels=_find_sentinels(values[finite]))
            odd = np.isin(values, rule.sentinels)
            why = "far from all others and repeated, taken as a gap"
            self.odd += list_odd(self.frame, name, odd, why)
            finite &= ~odd
        held = values[finite]
        if len(held) == 0:
            return ColumnRule(name, "dropped", reason="holds no value")
        if finite.all() and np.ptp(held) == 0.0:
            return ColumnRule(name, "dropped", reason="constant")
        if rule.kind == "number" and (held == np.floor(held)).all():
            return self._whole_rule(rule, values, complete=bool(finite.all()))
        return rule

    def _whole_rule(
        self, rule: ColumnRule, values: Float64Array, *, complete: bool
    ) -> ColumnRule:
        """Say what whole numbers may be besides amounts: names of rows or of things."""
        name, texts = rule.name, as_texts(self.frame[rule.name])
        differ = complete and len(np.unique(values)) == len(values)
        if name.startswith("column ") and differ:
            # As data frames are saved with their index.
            reason = "without a name, numbers the rows"
            return ColumnRule(name, "dropped", reason=reason)
        if complete and len(values) >= _LEAST_IN_ORDER and self._counts_rows(values):
            self.said.append(
                f"column {name!r} numbers the rows; it is learned from all the same "
                "(--drop leaves it out)"
            )
        zeros = (t for t in map(str.strip, texts) if t[:1] == "0" and t[1:].isdecimal())
        if first := next(zeros, ""):
            self.said.append(
                f"column {name!r} holds digits that begin with zeros, first {first!r}; "
                "it is read as numbers (--categories keeps the digits)"
            )
        large = np.abs(values) > _LAST_WHOLE
        if large.any() and len(set(texts[large])) > len(np.unique(values[large])):
            self.said.append(
                f"column {name!r} holds whole numbers beyond 2^53, of which neighbours "
                "are taken as equal (--drop leaves the column out)"
            )
        return rule

    def _counts_rows(self, values: Float64Array) -> bool:
        """Return whether values number the rows, or the lines of the file."""
        places = self.frame.index.get_level_values(-1)
        steps = np.diff(values)
        if (steps == 1.0).all():
            return True
        return places.dtype.kind == "i" and bool((steps == np.diff(places)).all())

    def _date_rule(self, rule: ColumnRule, values: Any) -> ColumnRule:
        days = read_days(load_pandas().Series(values))
        if not len(days) or np.isnan(days).all():
            return ColumnRule(rule.name, "dropped", reason="holds no value")
        if np.ptp(days) == 0.0:  # NaN where there are gaps
            return ColumnRule(rule.name, "dropped", reason="constant")
        return rule

    def _category_rule(
        self, name: str, cells: Cells, *, as_category: bool
    ) -> ColumnRule:
        """Return the rule of a column of words."""
        categories, n_held = tuple(sorted(cells.words)), int(cells.counts.sum())
        if not categories:
            return ColumnRule(name, "dropped", reason="holds no value")
        if len(categories) == 1 and n_held == len(self.frame):
            return ColumnRule(name, "dropped", reason="constant")
        many = n_held >= _LEAST_NAMES and len(categories) > _SHARE_OF_NAMES * n_held
        if many and not as_category:
            return ColumnRule(name, "dropped", reason="a different text in each row")
        return ColumnRule(name, "category", categories=categories)


def _find_sentinels(values: Float64Array) -> tuple[float, ...]:
    """Return repeated numbers of nines that are far beyond all others."""
    found, counts = np.unique(values, return_counts=True)
    ends = [(v, n) for v, n in zip(found, counts, strict=True) if abs(v) >= 999.0]
    nines = {float(v) for v, n in ends if n > 1 and _NINES.fullmatch(f"{v:.0f}")}
    rest = [abs(v) for v in found if v not in nines]
    limit = _FAR * max(rest, default=np.inf)
    return tuple(sorted(v for v in nines if abs(v) > limit))
