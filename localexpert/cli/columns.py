"""`ColumnRule`: what a column of the training file is, and how to read it again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.cli.cells import (
    Cells,
    Dialect,
    Numbers,
    as_texts,
    read_booleans,
    read_numbers,
)
from localexpert.cli.console import count, warn
from localexpert.cli.dates import (
    ORDERS,
    PARTS,
    date_parts,
    find_formats,
    parse_date,
)
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


@dataclass(frozen=True, eq=False)
class ReadColumn:
    """What a rule made of n cells.

    Parameters
    ----------
    features : dict of str to ndarray of shape (n,)
        Numbers, NaN where missing; of a category, codes of int, -1 where missing.
    unread : ndarray of bool, shape (n,)
        Cells that hold something that the rule cannot read.
    """

    features: dict[str, Float64Array | NDArray[np.intp]]
    unread: NDArray[np.bool_]


def learn_rule(
    table: RawTable, name: str, dialect: Dialect, date_order: str | None
) -> ColumnRule:
    """Find out what a column is; what is surprising is said on stderr."""
    cells = table.columns[name]
    numbers = read_numbers(cells, dialect)
    if not numbers.is_word.any():
        return _number_rule(name, numbers.values)
    booleans = read_booleans(cells, dialect)
    if not booleans.is_word.any():
        rule = _number_rule(name, booleans.values)
        return rule if rule.kind == "dropped" else replace(rule, kind="boolean")
    missing = dialect.gaps
    texts = [text for text in as_texts(cells) if text.casefold() not in missing]
    return _date_rule(table, name, texts, dialect, date_order) or _category_rule(
        table, name, texts, numbers, complete=len(texts) == len(table)
    )


def read_column(rule: ColumnRule, cells: Cells, dialect: Dialect) -> ReadColumn:
    """Read cells by the rule of their column."""
    if rule.kind == "category":
        return _read_category(rule, cells, dialect)
    if rule.kind == "date":
        return _read_dates(rule, cells, dialect)
    read = read_booleans if rule.kind == "boolean" else read_numbers
    numbers = read(cells, dialect)
    infinite = np.isinf(numbers.values)
    values = np.where(infinite, np.nan, numbers.values)
    return ReadColumn({rule.name: values}, numbers.is_word | infinite)


def _number_rule(name: str, values: Float64Array) -> ColumnRule:
    finite = np.isfinite(values)
    if not finite.any():
        return ColumnRule(name, "dropped", reason="holds no value")
    if finite.all() and np.ptp(values) == 0.0:
        return ColumnRule(name, "dropped", reason="constant")
    whole = finite.all() and (values == np.floor(values)).all()
    if name.startswith("column ") and whole and len(np.unique(values)) == len(values):
        # As data frames are saved with their index.
        return ColumnRule(name, "dropped", reason="without a name, numbers the rows")
    return ColumnRule(name, "number")


def _date_rule(
    table: RawTable,
    name: str,
    texts: list[str],
    dialect: Dialect,
    date_order: str | None,
) -> ColumnRule | None:
    """Return the rule of a column of dates, None if it is none or ambiguous."""
    formats = find_formats(dict.fromkeys(texts))
    if len(formats) > 1 and date_order is not None:
        formats = [ORDERS[date_order]]
    if len(formats) > 1:
        warn(
            f"column {name!r} may hold dates, but every one can be read day first and "
            "month first; it is taken as a category, unless --date-order says which"
        )
    if len(formats) != 1:
        return None
    rule = ColumnRule(name, "date", date_format=formats[0], parts=PARTS)
    features = _read_dates(rule, table.columns[name], dialect).features
    varying = {key for key, values in features.items() if len(_distinct(values)) > 1}
    if not varying and len(texts) == len(table):
        return ColumnRule(name, "dropped", reason="constant")
    parts = tuple(part for part in PARTS if f"{name}.{part}" in varying)
    return replace(rule, parts=parts)


def _distinct(values: Float64Array | NDArray[np.intp]) -> NDArray[np.generic]:
    return np.unique(values[~np.isnan(values)])


def _category_rule(
    table: RawTable, name: str, texts: list[str], numbers: Numbers, *, complete: bool
) -> ColumnRule:
    """Return the rule of a column of words."""
    n_numbers = int(np.sum(~np.isnan(numbers.values)))
    if n_numbers:
        row = numbers.first_word
        word = table.show(name, row)
        warn(
            f"column {name!r} holds {count(n_numbers, 'number')} and "
            f"{count(int(numbers.is_word.sum()), 'word')}, first {word} in "
            f"{table.where(row)}; it is taken as a category (--missing {word} would "
            "take that word as a gap)"
        )
    categories = tuple(sorted(set(texts)))
    if len(categories) == 1 and complete:
        return ColumnRule(name, "dropped", reason="constant")
    if len(texts) >= _LEAST_NAMES and len(categories) > _SHARE_OF_NAMES * len(texts):
        return ColumnRule(name, "dropped", reason="a different text in each row")
    return ColumnRule(name, "category", categories=categories)


def _read_category(rule: ColumnRule, cells: Cells, dialect: Dialect) -> ReadColumn:
    known = {value: code for code, value in enumerate(rule.categories)}
    texts = as_texts(cells)
    codes = np.array([known.get(text, -1) for text in texts], dtype=np.intp)
    missing = dialect.gaps
    unread = [
        code < 0 and text.casefold() not in missing
        for code, text in zip(codes, texts, strict=True)
    ]
    return ReadColumn({rule.name: codes}, np.array(unread, dtype=bool))


def _read_dates(rule: ColumnRule, cells: Cells, dialect: Dialect) -> ReadColumn:
    texts = as_texts(cells)
    known = {text: parse_date(text, rule.date_format) for text in set(texts)}
    days = np.array(
        [np.nan if (day := known[text]) is None else day for text in texts],
        dtype=np.float64,
    )
    missing = dialect.gaps
    gaps = np.array([text.casefold() in missing for text in texts], dtype=bool)
    parts = date_parts(days)
    features: dict[str, Float64Array | NDArray[np.intp]] = {f"{rule.name}.days": days}
    for part in rule.parts:
        features[f"{rule.name}.{part}"] = parts[part]
    return ReadColumn(features, np.isnan(days) & ~gaps)
