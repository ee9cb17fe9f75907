"""`ColumnRule`: what a column of the training file is, and how to read it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from calibration.typing import Float64Array
from localexpert.cli.cells import (
    LAST_WHOLE,
    Cells,
    Dialect,
    Distinct,
    Numbers,
    load_pandas,
    parse_booleans,
    read_plain,
)
from localexpert.cli.console import count, quote_name, warn
from localexpert.cli.dates import (
    ORDERS,
    find_formats,
    is_date,
    is_short,
    read_dates,
)
from localexpert.cli.number_formats import (
    PLAIN,
    NumberFormat,
    find_format,
    hint_at_format,
    is_like_number,
    read_numbers,
)
from localexpert.cli.raw_table import RawTable
from localexpert.data.dates import date_parts, varying_parts

Kind: TypeAlias = Literal["number", "boolean", "date", "category", "dropped"]

# From so many texts on, of which nine in ten differ, a column names its rows.
_LEAST_NAMES, _SHARE_OF_NAMES = 20, 0.9
# Fewer numbers in a row than this may follow each other by chance.
_LEAST_IN_ORDER = 5


@dataclass(frozen=True)
class ColumnRule:
    """How one column of a file becomes features.

    Parameters
    ----------
    name : str
    kind : {"number", "boolean", "date", "category", "dropped"}
    categories : tuple of str
        Of a category, the values met in training, in order.
    date_format : str
        Of a date, the format of all its values in training.
    parts : tuple of str
        Of a date, what varied in training besides the day.
    reason : str
        Why a column is dropped.
    written : NumberFormat
        Of a number, how it is written besides digits and decimal mark.
    """

    name: str
    kind: Kind
    categories: tuple[str, ...] = ()
    date_format: str = ""
    parts: tuple[str, ...] = ()
    reason: str = ""
    written: NumberFormat = PLAIN

    def read(self, cells: Cells, dialect: Dialect) -> Numbers:
        """Return finite numbers, codes of categories, or days; NaN where missing.

        A word is what the rule cannot read.
        """
        if self.kind == "number":
            numbers = read_numbers(cells, dialect, self.written)
            infinite = np.isinf(numbers.values)
            values = np.where(infinite, np.nan, numbers.values)
            return Numbers(values, numbers.is_word | infinite, numbers.seen)
        texts = Distinct.of(cells, dialect)
        if self.kind == "boolean":
            return texts.read(parse_booleans)
        if self.kind == "date":
            days = texts.read(lambda words: read_dates(words, self.date_format))
            seen = is_short(self.date_format) and not np.isnan(days.values).all()
            said = f"as dates ({self.date_format}, 69 is 1969 and 68 is 2068)"
            return replace(days, seen=said if seen else "")
        known = {value: float(code) for code, value in enumerate(self.categories)}
        return texts.read(lambda words: list(map(known.get, words)))

    def features(self, values: Float64Array) -> dict[str, Any]:
        """Return what `read` has made of the cells as columns of a data frame."""
        if self.kind == "category":
            codes = np.where(np.isnan(values), -1.0, values).astype(np.intp)
            categories = list(self.categories)
            return {self.name: load_pandas().Categorical.from_codes(codes, categories)}
        if self.kind == "date":
            parts = {"days": values, **(date_parts(values) if self.parts else {})}
            wanted = ("days", *self.parts)
            return {f"{self.name}.{part}": parts[part] for part in wanted}
        return {self.name: values}


def learn_rule(
    table: RawTable,
    name: str,
    dialect: Dialect,
    date_order: str | None,
    *,
    as_category: bool = False,
) -> ColumnRule:
    """Find out what a column is; what is surprising is said on stderr."""
    cells, dialect = table.columns[name], table.dialect_of(name, dialect)
    plain = None if as_category else read_plain(cells, dialect)
    if plain is not None:
        _warn_of_rounding(name, cells, plain)
        return _number_rule(table, name, "number", plain)
    texts = Distinct.of(cells, dialect)
    n_held = int(np.sum(~texts.is_gap[texts.codes]))
    complete = n_held == len(table)
    if as_category:
        return _category_rule(name, texts.words, complete=complete)
    # Dates come first: no date is a number, and most can be told at once.
    rule = _date_rule(name, texts.words, date_order, complete=complete)
    if rule is not None:
        return rule
    written = find_format(texts.words, dialect)
    if written is not None or not n_held:
        written = written or PLAIN
        values = read_numbers(cells, dialect, written).values
        return _number_rule(table, name, "number", values, written)
    booleans = texts.read(parse_booleans)
    if not booleans.is_word.any():
        return _number_rule(table, name, "boolean", booleans.values)
    rule = _category_rule(name, texts.words, complete=complete)
    if n_held >= _LEAST_NAMES and len(set(texts.words)) > _SHARE_OF_NAMES * n_held:
        rule = ColumnRule(name, "dropped", reason="a different text in each row")
    fate = "dropped" if rule.kind == "dropped" else "taken as a category"
    _warn_of_words(table, name, texts, dialect, fate)
    return rule


def _warn_of_rounding(name: str, cells: Cells, values: Float64Array) -> None:
    """Say so if different whole numbers of a column become one, as long keys do."""
    large = np.abs(values) > LAST_WHOLE
    if cells.dtype == object and large.any():
        texts = {text.strip() for text in cells[large]}
        whole = sum(text.lstrip("+-").isdecimal() for text in texts)
        if whole > len(np.unique(values[large])):
            warn(
                f"column {name!r} holds whole numbers beyond 2^53, of which neighbours "
                "are taken as equal (--drop leaves the column out)"
            )


def _warn_of_zeros(name: str, cells: Cells) -> None:
    """Say so if whole numbers begin with zeros, as only the names of things do."""
    texts = map(str.strip, cells)
    first = next((t for t in texts if t[:1] == "0" and t[1:].isdecimal()), None)
    if first is not None:
        warn(
            f"column {name!r} holds digits that begin with zeros, first {first!r}; it "
            f"is read as numbers (--categories {quote_name(name)} keeps the digits)"
        )


def _number_rule(
    table: RawTable,
    name: str,
    kind: Literal["number", "boolean"],
    values: Float64Array,
    written: NumberFormat = PLAIN,
) -> ColumnRule:
    finite = np.isfinite(values)
    if not finite.any():
        return ColumnRule(name, "dropped", reason="holds no value")
    if finite.all() and np.ptp(values) == 0.0:
        return ColumnRule(name, "dropped", reason="constant")
    whole = finite.all() and (values == np.floor(values)).all()
    if name.startswith("column ") and whole and len(np.unique(values)) == len(values):
        # As data frames are saved with their index.
        return ColumnRule(name, "dropped", reason="without a name, numbers the rows")
    if whole and kind == "number":
        if len(values) >= _LEAST_IN_ORDER and table.counts_rows(values):
            warn(
                f"column {name!r} numbers the rows; it is learned from all the same "
                f"(--drop {quote_name(name)} leaves it out)"
            )
        if table.columns[name].dtype == object:
            _warn_of_zeros(name, table.columns[name])
    return ColumnRule(name, kind, written=written)


def _date_rule(
    name: str, texts: list[str], date_order: str | None, *, complete: bool
) -> ColumnRule | None:
    """Return the rule of a column of dates, None if it is none or ambiguous."""
    formats = find_formats(texts)
    if len(formats) > 1 and date_order is not None:
        formats = [f for f in formats if f.startswith(ORDERS[date_order])]
    if len(formats) > 1:
        warn(
            f"column {name!r} may hold dates, but every one can be read day first and "
            "month first; it is taken as a category, unless --date-order says which"
        )
    if len(formats) != 1:
        return None
    days = read_dates(texts, formats[0])
    if complete and np.ptp(days) == 0.0:
        return ColumnRule(name, "dropped", reason="constant")
    parts = varying_parts(days)
    return ColumnRule(name, "date", date_format=formats[0], parts=parts)


def _warn_of_words(
    table: RawTable, name: str, texts: Distinct, dialect: Dialect, fate: str
) -> None:
    """Say so of words that stand among numbers or dates, or are written like them."""
    what: str = "numbers"
    like: Callable[[str], bool] = is_like_number
    if any(map(is_date, texts.words[:_LEAST_NAMES])):
        what, like = "dates", is_date
    found = texts.read(lambda words: [float(like(w)) or None for w in words])
    n_words = int(found.is_word.sum())
    n_found = int(np.sum(~np.isnan(found.values)))
    if n_found == 0 or (what == "dates" and n_found < n_words):
        return
    if n_words:
        row = int(np.argmax(found.is_word))
        cure = f"--missing {table.show(name, row)} would take that word as a gap"
        holds = f"{count(n_found, what[:-1])} and {count(n_words, 'word')}, first"
    else:
        if what == "dates" and len(find_formats(texts.words)) > 1:
            return
        form = PLAIN.within(dialect)
        odd = texts.read(lambda words: list(map(form.parse, words))).is_word
        row = int(np.argmax(odd))
        word = texts.texts[texts.codes[row]]
        cure = hint_at_format(texts.words, dialect, word) if what == "numbers" else ""
        cure = cure or "write all of them in one way"
        holds = f"{what} that cannot all be read in one way, as"
    warn(
        f"column {name!r} holds {holds} {table.show(name, row)} in {table.where(row)}; "
        f"it is {fate} ({cure})"
    )


def _category_rule(name: str, texts: list[str], *, complete: bool) -> ColumnRule:
    """Return the rule of a column of words."""
    categories = tuple(sorted(set(texts)))
    if not categories:
        return ColumnRule(name, "dropped", reason="holds no value")
    if len(categories) == 1 and complete:
        return ColumnRule(name, "dropped", reason="constant")
    return ColumnRule(name, "category", categories=categories)
