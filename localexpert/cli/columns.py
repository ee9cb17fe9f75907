"""`ColumnRule`: what a column of the training file is, and how to read it again."""

from __future__ import annotations

from dataclasses import dataclass
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
    read_numbers,
    read_plain,
)
from localexpert.cli.console import count, warn
from localexpert.cli.dates import ORDERS, date_parts, find_formats, read_dates
from localexpert.cli.raw_table import RawTable

Kind: TypeAlias = Literal["number", "boolean", "date", "category", "dropped"]

# From so many texts on, of which nine in ten differ, a column names its rows.
_LEAST_NAMES, _SHARE_OF_NAMES = 20, 0.9


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
    """

    name: str
    kind: Kind
    categories: tuple[str, ...] = ()
    date_format: str = ""
    parts: tuple[str, ...] = ()
    reason: str = ""

    def read(self, cells: Cells, dialect: Dialect) -> Numbers:
        """Return finite numbers, codes of categories, or days; NaN where missing.

        A word is what the rule cannot read.
        """
        if self.kind == "number":
            numbers = read_numbers(cells, dialect)
            infinite = np.isinf(numbers.values)
            values = np.where(infinite, np.nan, numbers.values)
            return Numbers(values, numbers.is_word | infinite)
        texts = Distinct.of(cells, dialect)
        if self.kind == "boolean":
            return texts.read(parse_booleans)
        if self.kind == "date":
            return texts.read(lambda words: read_dates(words, self.date_format))
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
    table: RawTable, name: str, dialect: Dialect, date_order: str | None
) -> ColumnRule:
    """Find out what a column is; what is surprising is said on stderr."""
    cells = table.columns[name]
    plain = read_plain(cells, dialect)
    if plain is not None:
        _warn_of_rounding(name, cells, plain)
        return _number_rule(name, "number", plain)
    texts = Distinct.of(cells, dialect)
    n_held = int(np.sum(~texts.is_gap[texts.codes]))
    # Dates come first: no date is a number, and most can be told at once.
    rule = _date_rule(name, texts.words, date_order, complete=n_held == len(table))
    if rule is not None:
        return rule
    numbers = texts.read(dialect.parse_numbers)
    if not numbers.is_word.any():
        return _number_rule(name, "number", numbers.values)
    booleans = texts.read(parse_booleans)
    if not booleans.is_word.any():
        return _number_rule(name, "boolean", booleans.values)
    return _category_rule(table, name, texts.words, n_held, numbers)


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


def _number_rule(
    name: str, kind: Literal["number", "boolean"], values: Float64Array
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
    return ColumnRule(name, kind)


def _date_rule(
    name: str, texts: list[str], date_order: str | None, *, complete: bool
) -> ColumnRule | None:
    """Return the rule of a column of dates, None if it is none or ambiguous."""
    formats = find_formats(texts)
    if len(formats) > 1 and date_order is not None:
        formats = [ORDERS[date_order]]
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
    parts = date_parts(days)
    varying = tuple(part for part in parts if np.ptp(parts[part]) > 0.0)
    return ColumnRule(name, "date", date_format=formats[0], parts=varying)


def _category_rule(
    table: RawTable, name: str, texts: list[str], n_held: int, numbers: Numbers
) -> ColumnRule:
    """Return the rule of a column of words."""
    n_numbers = int(np.sum(~np.isnan(numbers.values)))
    if n_numbers:
        row = int(np.argmax(numbers.is_word))
        word = table.show(name, row)
        warn(
            f"column {name!r} holds {count(n_numbers, 'number')} and "
            f"{count(int(numbers.is_word.sum()), 'word')}, first {word} in "
            f"{table.where(row)}; it is taken as a category (--missing {word} would "
            "take that word as a gap)"
        )
    categories = tuple(sorted(set(texts)))
    if len(categories) == 1 and n_held == len(table):
        return ColumnRule(name, "dropped", reason="constant")
    if n_held >= _LEAST_NAMES and len(categories) > _SHARE_OF_NAMES * n_held:
        return ColumnRule(name, "dropped", reason="a different text in each row")
    return ColumnRule(name, "category", categories=categories)
