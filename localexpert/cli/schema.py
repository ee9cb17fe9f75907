"""`Schema`: what the columns of a training file are, and new files read as it was."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from localexpert.cli.cells import Dialect, Numbers, load_pandas, spelled_gaps
from localexpert.cli.columns import ColumnRule, learn_rule
from localexpert.cli.console import count, join_few, list_names, note, refuse, warn
from localexpert.cli.number_formats import PLAIN, NumberFormat
from localexpert.cli.raw_table import RawTable


@dataclass(frozen=True)
class Schema:
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
    thousands : {"", ",", ".", " ", "'"}
        Mark between thousands of the training file, where the user named it.
    target_written : NumberFormat
        How the numbers of the target are written.
    """

    target: str
    rules: tuple[ColumnRule, ...]
    others: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    decimal: str = "."
    thousands: str = ""
    target_written: NumberFormat = PLAIN

    @classmethod
    def learn(
        cls,
        table: RawTable,
        target: str,
        others: Collection[str],
        dialect: Dialect,
        date_order: str | None = None,
        categories: Collection[str] = (),
        written: NumberFormat = PLAIN,
    ) -> Schema:
        """Find out what each column is; what is dropped is said on stderr.

        Those among `categories` are no numbers; the target is, `written` as it is.
        """
        rules = tuple(
            learn_rule(table, name, dialect, date_order, as_category=name in categories)
            for name in table.columns
            if name != target and name not in others
        )
        _note_gaps(table, [rule.name for rule in rules], dialect)
        by_reason: dict[str, list[str]] = {}
        for rule in rules:
            if rule.kind == "dropped":
                by_reason.setdefault(rule.reason, []).append(rule.name)
        for reason, names in by_reason.items():
            warn(f"dropped ({reason}): {list_names(names)}")
        if not any(rule.kind != "dropped" for rule in rules):
            refuse(f"{table.path} has no column to learn {target!r} from")
        marks = dialect.missing, dialect.decimal, dialect.thousands
        return cls(target, rules, tuple(others), *marks, written)

    def dialect(self, decimal: str, thousands: str | None = None) -> Dialect:
        """Return how a file writes its values."""
        return Dialect(decimal, self.missing, thousands or self.thousands)

    @property
    def used(self) -> tuple[ColumnRule, ...]:
        """Rules of the columns that become features."""
        return tuple(rule for rule in self.rules if rule.kind != "dropped")

    @property
    def features(self) -> list[str]:
        """Names of the columns that become features."""
        return [rule.name for rule in self.used]

    def frame(
        self,
        tables: Iterable[RawTable],
        decimal: str,
        known: Collection[str] = (),
        thousands: str | None = None,
    ) -> Any:
        """Return the features of all parts of a file as one data frame."""
        parts = list(self.frames(tables, decimal, known, thousands))
        return load_pandas().concat(parts, ignore_index=True)

    def frames(
        self,
        tables: Iterable[RawTable],
        decimal: str,
        known: Collection[str] = (),
        thousands: str | None = None,
        *,
        tells: bool = True,
    ) -> Iterator[Any]:
        """Yield the features of each part of files as a data frame of shape (n, p).

        A column of another kind is refused at the end of its file. After the last, what
        could not be read in all parts is told if `tells`, and columns that the model
        does not know, but for those in `known`.
        """
        pandas = load_pandas()
        dialect = self.dialect(decimal, thousands)
        unread = [_Unread(rule) for rule in self.used]
        extra: dict[str, str] = {}
        path = None
        for table in tables:
            if table.path != path:
                path = table.path
                self._check_columns(table)
                self._find_extra(table, known, extra)
                for tally in unread:
                    tally.begin_file()
            frame: dict[str, Any] = {}
            for tally in unread:
                rule = tally.rule
                how = table.dialect_of(rule.name, dialect)
                column = rule.read(table.columns[rule.name], how)
                tally.add(table, column)
                for wanted, values in rule.features(column.values).items():
                    name = wanted
                    while name in frame:
                        name += "'"
                    frame[name] = values
            yield pandas.DataFrame(frame)
        for tally in unread:
            tally.check()
        if tells:
            _note_extra(extra)
            _tell(unread)

    def _check_columns(self, table: RawTable) -> None:
        """Refuse a file that lacks a feature."""
        lacking = [name for name in self.features if name not in table.columns]
        if lacking:
            refuse(
                f"{table.path} lacks {count(len(lacking), 'column')} that the model "
                f"was trained on: {list_names(lacking)}"
            )

    def _find_extra(
        self, table: RawTable, known: Collection[str], extra: dict[str, str]
    ) -> None:
        """Add columns that the model does not know, with the file that has them."""
        met = {self.target, *self.others, *known, *(rule.name for rule in self.rules)}
        for name in table.names or table.columns:
            if name not in met:
                extra.setdefault(name, table.path)


def _note_extra(extra: dict[str, str]) -> None:
    """Say which columns are of no use, each for the first file that has it."""
    for path in dict.fromkeys(extra.values()):
        names = [name for name, first in extra.items() if first == path]
        note(
            f"ignored {count(len(names), 'column')} of {path} that the model "
            f"does not know: {list_names(names)}"
        )


def _note_gaps(table: RawTable, names: list[str], dialect: Dialect) -> None:
    """Say which words of a file are taken for nothing."""
    found = [spelled_gaps(table.columns[name], dialect) for name in names]
    n_columns = sum(map(bool, found))
    if n_columns:
        words = list_names(sorted(set().union(*found)))
        note(f"read as gaps in {count(n_columns, 'column')}: {words}")


class _Unread:
    """Cells that a rule could not read, over all parts of files."""

    def __init__(self, rule: ColumnRule) -> None:
        self.rule = rule
        self.n_cells = self.n_cells_before = self.n_read = 0
        self.first = self.first_here = self.seen = ""

    def begin_file(self) -> None:
        """Check the file so far, and go on with another."""
        self.check()
        self.n_cells_before, self.n_read, self.first_here = self.n_cells, 0, ""

    def add(self, table: RawTable, column: Numbers) -> None:
        """Count those of one part."""
        if not self.first_here and column.is_word.any():
            row = int(np.argmax(column.is_word))
            shown = f"{table.show(self.rule.name, row)} in {table.where(row)}"
            self.first_here, self.first = shown, self.first or shown
        self.seen = self.seen or column.seen
        self.n_cells += int(column.is_word.sum())
        self.n_read += int(np.sum(~np.isnan(column.values)))

    def check(self) -> None:
        """Refuse a column of another kind: it holds values, none of them readable."""
        rule = self.rule
        n_words = self.n_cells - self.n_cells_before
        if n_words and not self.n_read and rule.kind != "category":
            numbers = f"numbers {rule.written.text}".strip()
            kinds = {"number": numbers, "boolean": "true or false"}
            want = kinds.get(rule.kind, f"dates ({rule.date_format})")
            refuse(
                f"column {rule.name!r} must hold {want} as in training, "
                f"got {self.first_here}"
            )


def _tell(unread: list[_Unread]) -> None:
    """Say which cells are taken as missing."""
    found: dict[str, list[str]] = {}
    seen: dict[str, list[str]] = {}
    for tally in unread:
        if tally.seen:
            seen.setdefault(tally.seen, []).append(tally.rule.name)
        if tally.n_cells:
            what = "values that are not finite numbers or dates as in training"
            if tally.rule.kind == "category":
                what = "categories not met in training"
            rows = count(tally.n_cells, "row")
            shown = f"{tally.rule.name!r} ({rows}, first {tally.first})"
            found.setdefault(what, []).append(shown)
    for said, names in seen.items():
        note(f"read {said}: {list_names(names)}")
    for what, columns in found.items():
        warn(f"{what}, taken as missing: {join_few(columns)}")
