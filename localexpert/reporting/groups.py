"""Numbers as people write them, columns of a table, and rows in groups by them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration._validation import refuse
from calibration.typing import Float64Array
from localexpert.data.table import Table
from localexpert.plots.inputs import group_numbers, label_rows

# p-values below it are not told apart.
_LEAST_P = 1e-4
# Powers of ten between which numbers are written without an exponent.
_SMALLEST, _GREATEST = -4, 9
# Values of features from here on are written with marks of thousands.
_MARKED = 10_000


def show(value: float, digits: int = 4) -> str:
    """Return a number with some significant digits."""
    if not math.isfinite(value):
        return {"nan": "missing", "inf": "\u221e"}.get(str(value), "\u2212\u221e")
    power = math.floor(math.log10(abs(value))) if value else 0
    if _SMALLEST <= power < _GREATEST:
        text = _trim(f"{value:,.{max(digits - 1 - power, 0)}f}")
    else:
        digit, exponent = f"{value:.{digits - 1}e}".split("e")
        text = f"{_trim(digit)}e{int(exponent)}"
    return text.replace("-", "\u2212")


def show_feature(value: float, digits: int = 4) -> str:
    """Return a value of a feature; years and other short numbers have no marks."""
    text = show(value, digits)
    return text.replace(",", "") if abs(value) < _MARKED else text


def show_percent(share: float, digits: int = 1) -> str:
    """Return a share as a percentage."""
    return f"{100.0 * share:.{digits}f}\u00a0%".replace("-", "\u2212")


def show_level(level: float) -> str:
    """Return a level that someone chose as a percentage, with the digits it has."""
    return f"{show(100.0 * level, 6)}\u00a0%"


def show_p(p_value: float) -> str:
    """Return a p-value with its sign, without digits that mean nothing."""
    if p_value < _LEAST_P:
        return f"p < {_LEAST_P:.4f}"
    return f"p = {show(p_value, 2)}"


def count(n: int, noun: str) -> str:
    """Return a number of things, "1 row" or "1,200 rows"."""
    return f"{n:,} {noun if n == 1 else f'{noun}s'}"


def _trim(digits: str) -> str:
    """Return digits without zeros that end a fraction."""
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


MISSING = "missing"
# Numbers of more values than _MOST_NUMBERS are put into _N_BINS bins; of more names
# than _MOST_NAMES the rare ones are one group.
_MOST_NUMBERS, _N_BINS, _MOST_NAMES = 8, 5, 10


@dataclass(frozen=True, eq=False)
class Column:
    """The values of one feature in n rows.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Numbers, NaN where missing; or numbers of the names.
    names : list of str or None
        Of the values of a category.
    """

    values: Float64Array
    names: list[str] | None

    @property
    def is_missing(self) -> NDArray[np.bool_]:
        """Which rows have no value, shape (n,)."""
        return np.isnan(self.values)

    def take(self, rows: NDArray[np.intp]) -> Column:
        """Return some rows."""
        return Column(self.values[rows], self.names)

    def text(self, row: int) -> str:
        """Return the value of a row as a text."""
        value = self.values[row]
        if self.names is None or np.isnan(value):
            return show_feature(value)
        return self.names[int(value)]


def read_columns(table: Table) -> tuple[list[str], list[Column]]:
    """Return the names of a table's features, and their values."""
    codes, features = table.codes, table.reader.features
    categories = table.reader.category_codes.items()
    values = {j: [str(value) for value in values] for j, values in categories}
    n = features.n_columns
    names = [str(name) for name in features.names or (f"x{j}" for j in range(n))]
    return names, [Column(codes[:, j], values.get(j)) for j in range(n)]


@dataclass(frozen=True, eq=False)
class Grouping:
    """Rows put into groups.

    Parameters
    ----------
    name : str
    labels : list of str
        Of the groups.
    group : ndarray of shape (n,)
        Number of each row's group.
    """

    name: str
    labels: list[str]
    group: NDArray[np.intp]

    @classmethod
    def of(cls, name: str, column: Column) -> Grouping:
        """Group rows by the values of a column; missing ones are a group."""
        values, missing = column.values, column.is_missing
        if column.names is not None:
            labels, group = _group_names(column.names, values, values[~missing])
        else:
            how = _MOST_NUMBERS, _N_BINS, show_feature, ("{} to <{}", "{} to {}")
            labels, group = group_numbers(values, *how)
        group[missing] = len(labels)
        met, group = np.unique(group, return_inverse=True)
        return cls(name, [[*labels, MISSING][g] for g in met], group)


def number_names(groupings: Sequence[Grouping]) -> list[Grouping]:
    """Return groupings of different names: of two towns the last is "town (2)"."""
    made: dict[str, Grouping] = {}
    for one in groupings:
        name, k = one.name, 1
        while name in made:
            k += 1
            name = f"{one.name} ({k})"
        made[name] = replace(one, name=name)
    return [*made.values()]


def read_groups(X: Any, groups: Any) -> list[tuple[str, Column]]:
    """Return the columns to group the rows of a table by, with their names."""
    if isinstance(groups, str) or not isinstance(groups, Mapping | Sequence):
        rule = "be a list of column names or a mapping of names to arrays"
        refuse("groups", rule, type(groups).__name__, TypeError)
    given = [str(name) for name in groups]
    if len(set(given)) < len(given):
        refuse("groups", "have names that differ as texts", f"{given}")
    if isinstance(groups, Mapping):
        found = []
        for name, labels in groups.items():
            values, names = label_rows(labels, len(X), "X", f"groups[{name!r}]")
            found.append((str(name), Column(values.astype(np.float64), names)))
        return found
    table = Table.of(X)
    names, columns = read_columns(table)
    keys, places = list(table.reader.features.names or names), []
    for key in groups:
        if key not in keys and str(key) not in names:
            refuse("groups", f"name columns of `X`, {names}", f"{key!r}")
        # The first of several columns with one name.
        places.append(keys.index(key) if key in keys else names.index(str(key)))
    return [(names[place], columns[place]) for place in places]


def _group_names(names: list[str], values: Any, known: Any) -> Any:
    """Return the frequent names in order, and the rest as one group."""
    count = np.bincount(known.astype(np.intp), minlength=len(names))
    kept = np.flatnonzero(count)
    if len(kept) > _MOST_NAMES:
        frequent = np.argsort(-count, kind="stable")[: _MOST_NAMES - 1]
        kept = np.sort(frequent)
    place = np.full(len(names) + 1, len(kept))
    place[kept] = np.arange(len(kept))
    group = place[np.where(np.isnan(values), len(names), values).astype(np.intp)]
    return [*(names[j] for j in kept), "all others"], group
