"""`JoinedTable`: the rows of several files as one table, if they hold the same."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from localexpert.cli.cells import Cells, Dialect, Distinct, as_texts, read_plain
from localexpert.cli.console import list_names, quote_name, refuse
from localexpert.cli.dates import find_formats
from localexpert.cli.number_formats import find_format
from localexpert.cli.raw_table import RawTable

# A file and the names of its columns.
Named: TypeAlias = tuple[str, Sequence[str]]


@dataclass(frozen=True, eq=False)
class JoinedTable(RawTable):
    """Rows of several files, each of which knows where it comes from.

    Parameters
    ----------
    files : tuple of (str, str)
        Path, and what its places count.
    file_of : ndarray of int, shape (n,)
        The file of each row.
    """

    files: tuple[tuple[str, str], ...] = ()
    file_of: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))

    def take(self, rows: NDArray[np.intp]) -> JoinedTable:
        """Return some rows, which keep their places in their files."""
        taken = super().take(rows)
        assert isinstance(taken, JoinedTable)
        return replace(taken, file_of=self.file_of[rows])

    def where(self, row: int) -> str:
        """Return where in which file a row is."""
        path, unit = self.files[self.file_of[row]]
        return f"{unit} {self.places[row]} of {path}"

    def count_by_file(self, rows: NDArray[np.intp]) -> dict[str, int]:
        """Return how many of some rows each file has, by its path."""
        counts = np.bincount(self.file_of[rows], minlength=len(self.files)).tolist()
        paths = [path for path, _ in self.files]
        return dict(zip(paths, counts, strict=True))

    def check_kinds(self, names: Collection[str], dialect: Dialect) -> None:
        """Refuse a column that is of one kind in one file and of another in the next.

        A file may hold nothing but gaps in it.
        """
        rows_of = [np.flatnonzero(self.file_of == k) for k in range(len(self.files))]
        for name in names:
            how = self.dialect_of(name, dialect)
            first: tuple[str, int] | None = None
            for number, rows in enumerate(rows_of):
                kind = _kind_of(self.columns[name][rows], how)
                if not kind:
                    continue
                first = first or (kind, number)
                if kind != first[0]:
                    self._refuse_change(name, first, (kind, number), how)
            if first and not _is_of_kind(first[0], self.columns[name], how):
                refuse(
                    f"column {name!r} holds {first[0]} in every file, written in "
                    "different ways: write all of them in one way, or "
                    f"{_cures(name)}"
                )

    def _refuse_change(
        self, name: str, first: tuple[str, int], other: tuple[str, int], how: Dialect
    ) -> None:
        """Refuse it by the first cell that is not what all of a file are."""
        pure, odd = (first, other) if other[0] == "words" else (other, first)
        column = self.columns[name]
        rows = np.flatnonzero(self.file_of == odd[1]).tolist()
        row = next(
            (r for r in rows if _kind_of(column[r : r + 1], how) not in ("", pure[0])),
            rows[0],
        )
        refuse(
            f"column {name!r} holds {pure[0]} in {self.files[pure[1]][0]} but "
            f"{self.show(name, row)} in {self.where(row)}: save it alike in all, or "
            f"{_cures(name)}"
        )


def join_tables(
    tables: Sequence[RawTable], name: str, decimal: str, left_out: Collection[str] = ()
) -> RawTable:
    """Return the rows of tables of one or more files one after another.

    Columns that are `left_out` may differ, and hold nothing. `decimal` is how numbers
    of one file become texts beside texts of another.
    """
    if len(tables) == 1:
        return tables[0]
    for table in tables[1:]:
        check_same_names(tables[0], table, left_out)
    names = list(dict.fromkeys(n for t in tables for n in (t.names or t.columns)))
    repeated = dict.fromkeys(n for table in tables for n in table.repeated)
    pointed = frozenset.intersection(*(table.pointed for table in tables))
    files = list(dict.fromkeys((table.path, table.unit) for table in tables))
    numbers = [files.index((table.path, table.unit)) for table in tables]
    rows = [table.rows for table in tables if table.rows is not None]
    return JoinedTable(
        name,
        {n: _join(tables, n, decimal, pointed, left_out) for n in names},
        np.concatenate([table.places for table in tables]),
        repeated=tuple(repeated),
        names=tuple(names),
        pointed=pointed,
        rows=np.concatenate(rows) if len(rows) == len(tables) else None,
        files=tuple(files),
        file_of=np.repeat(numbers, [len(table) for table in tables]),
    )


def check_same_names(first: RawTable, other: RawTable, but: Collection[str]) -> None:
    """Refuse a table whose columns are not those of the first, in any order."""
    names = [table.names or tuple(table.columns) for table in (first, other)]
    check_names((first.path, names[0]), (other.path, names[1]), but)


def check_names(first: Named, other: Named, but: Collection[str]) -> None:
    """Refuse a file whose columns are not those of the first, but for some."""
    for (path, names), (without, held) in ((first, other), (other, first)):
        lacking = [name for name in names if name not in held and name not in but]
        if lacking:
            noun = "column" if len(lacking) == 1 else "columns"
            refuse(f"{without} has no {noun} {list_names(lacking)}, which {path} has")


def _join(
    tables: Sequence[RawTable],
    name: str,
    decimal: str,
    pointed: Collection[str],
    left_out: Collection[str],
) -> Cells:
    """Return a column of all tables: numbers if it is of numbers in each."""
    if name in left_out:
        return np.full(sum(map(len, tables)), "", dtype=object)
    parts = [table.columns[name] for table in tables]
    if any(part.dtype == object for part in parts):
        for number, (table, part) in enumerate(zip(tables, parts, strict=True)):
            has_points = part.dtype != object or name in table.pointed
            if has_points and name not in pointed:
                texts = [text.replace(".", decimal) for text in as_texts(part)]
                parts[number] = np.array(texts, dtype=object)
    return np.concatenate(parts)


def _kind_of(cells: Cells, dialect: Dialect) -> str:
    """Return what cells are, "" of gaps alone."""
    plain = read_plain(cells, dialect)
    if plain is not None:
        return "" if np.isnan(plain).all() else "numbers"
    words = Distinct.of(cells, dialect).words
    if not words:
        return ""
    if find_formats(words):
        return "dates"
    return "numbers" if find_format(words, dialect) is not None else "words"


def _is_of_kind(kind: str, cells: Cells, dialect: Dialect) -> bool:
    """Return whether all cells can be read as one kind."""
    return kind == "words" or _kind_of(cells, dialect) == kind


def _cures(name: str) -> str:
    quoted = quote_name(name)
    return f"say --categories {quoted} (it is no number) or --drop {quoted}"
