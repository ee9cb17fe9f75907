"""`TableReader` and `TableModel`: a model that reads new files as its training file."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.cli.cells import Dialect, parse_number, read_numbers
from localexpert.cli.columns import ColumnRule, ReadColumn, learn_rule, read_column
from localexpert.cli.console import UserError, count, join_few, list_names, note, warn
from localexpert.cli.raw_table import RawTable
from localexpert.cli.read_file import load_pandas
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.regressor.regressor import LocalExpertRegressor
from localexpert.reporting.climatology import Climatology


@dataclass(frozen=True)
class TableReader:
    """How a file becomes features: what was learnt from the training file.

    Parameters
    ----------
    target : str
        Name of the column that is forecast.
    rules : tuple of ColumnRule
        Of every column that may be a feature, in the order of the training file.
    others : tuple of str
        Columns that the user kept from the features: weights, groups, left out.
    missing : tuple of str
        What stands for nothing besides the usual.
    decimal : {".", ","}
        Decimal mark of the training file.
    """

    target: str
    rules: tuple[ColumnRule, ...]
    others: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    decimal: str = "."

    @classmethod
    def learn(
        cls,
        table: RawTable,
        target: str,
        others: Collection[str],
        dialect: Dialect,
        date_order: str | None = None,
    ) -> TableReader:
        """Find out what each column is; what is dropped is said on stderr."""
        rules = tuple(
            learn_rule(table, name, dialect, date_order)
            for name in table.columns
            if name != target and name not in others
        )
        by_reason: dict[str, list[str]] = {}
        for rule in rules:
            if rule.kind == "dropped":
                by_reason.setdefault(rule.reason, []).append(rule.name)
        for reason, names in by_reason.items():
            warn(f"dropped ({reason}): {list_names(names)}")
        if not any(rule.kind != "dropped" for rule in rules):
            msg = f"{table.path} has no column to learn {target!r} from"
            raise UserError(msg)
        return cls(target, rules, tuple(others), dialect.missing, dialect.decimal)

    @property
    def used(self) -> tuple[ColumnRule, ...]:
        """Rules of the columns that become features."""
        return tuple(rule for rule in self.rules if rule.kind != "dropped")

    def frame(
        self, table: RawTable, decimal: str = ".", known: Collection[str] = ()
    ) -> Any:
        """Return the features of a file as a data frame of shape (n, p).

        Columns that the model does not know are told of, but for those in `known`.
        """
        self._check_columns(table, known)
        pandas = load_pandas()
        dialect = Dialect(decimal, self.missing)
        features: dict[str, Any] = {}
        unread: dict[str, list[tuple[str, NDArray[np.bool_]]]] = {}
        for rule in self.used:
            column = read_column(rule, table.columns[rule.name], dialect)
            _check_readable(table, rule, column)
            for wanted, values in column.features.items():
                name = wanted
                while name in features:
                    name += "'"
                features[name] = (
                    pandas.Categorical.from_codes(values, list(rule.categories))
                    if rule.kind == "category"
                    else values
                )
            if column.unread.any():
                what = "categories not met in training"
                if rule.kind != "category":
                    what = "values that are not finite numbers or dates as in training"
                unread.setdefault(what, []).append((rule.name, column.unread))
        for what, found in unread.items():
            shown = [f"{name!r} ({count(int(b.sum()), 'row')})" for name, b in found]
            warn(f"{what}, taken as missing: {join_few(shown)}")
        return pandas.DataFrame(features)

    def _check_columns(self, table: RawTable, known: Collection[str]) -> None:
        """Refuse a file that lacks a feature, and say what else it holds."""
        names = [rule.name for rule in self.used]
        lacking = [name for name in names if name not in table.columns]
        if lacking:
            msg = (
                f"{table.path} lacks {count(len(lacking), 'column')} that the model "
                f"was trained on: {list_names(lacking)}"
            )
            raise UserError(msg)
        met = {self.target, *self.others, *known, *(rule.name for rule in self.rules)}
        extra = [name for name in table.columns if name not in met]
        if extra:
            note(
                f"ignored {count(len(extra), 'column')} of {table.path} that the model "
                f"does not know: {list_names(extra)}"
            )


@dataclass(frozen=True, eq=False)
class TableModel:
    """A fitted regressor with what it takes to use it on files.

    What `localexpert fit` saves. In Python `predict_dist(frame)` takes what
    `reader.frame(table)` returns.

    Parameters
    ----------
    reader : TableReader
    model : LocalExpertRegressor
        Fitted.
    climatology : Climatology
        Distribution of the training target.
    """

    reader: TableReader
    model: LocalExpertRegressor
    climatology: Climatology

    def predict_dist(self, frame: Any) -> PredictiveDistribution:
        """Return the predictive distribution of every row of features."""
        return self.model.predict_dist(frame)


def read_column_of_numbers(
    table: RawTable, name: str, role: str, dialect: Dialect
) -> Float64Array:
    """Return a column that must hold finite numbers or gaps (NaN), shape (n,)."""
    numbers = read_numbers(table.column(name, role), dialect)
    wrong = numbers.is_word | np.isinf(numbers.values)
    if wrong.any():
        row = int(np.argmax(wrong))
        text = table.show(name, row)
        hint = ""
        if dialect.decimal == "." and parse_number(text[1:-1], ",") is not None:
            hint = "; if that is a number with a decimal comma, say --decimal ,"
        msg = (
            f"{role} {name!r} must hold finite numbers, got {text} in "
            f"{table.where(row)}{hint}"
        )
        raise UserError(msg)
    return numbers.values


def _check_readable(table: RawTable, rule: ColumnRule, column: ReadColumn) -> None:
    """Refuse a column of another kind: one that holds values, none of them readable."""
    values = next(iter(column.features.values()))
    if rule.kind == "category" or not column.unread.any():
        return
    if np.isnan(values).all():
        row = int(np.argmax(column.unread))
        kinds = {"number": "numbers", "boolean": "true or false"}
        want = kinds.get(rule.kind, f"dates ({rule.date_format})")
        msg = (
            f"column {rule.name!r} must hold {want} as in training, got "
            f"{table.show(rule.name, row)} in {table.where(row)}"
        )
        raise UserError(msg)
