"""`KnownRows`: rows with known targets, from one file or several, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.cli.cells import load_pandas
from localexpert.cli.options import COLUMN, MODEL, Option
from localexpert.cli.out_column import OutColumn, lay_aside
from localexpert.cli.schema import Schema
from localexpert.cli.tables import read_tables
from localexpert.cli.targets import with_targets
from localexpert.large.rows import shares_of

#: A model and tables with known targets.
KNOWN_ROWS: tuple[Option, ...] = (
    MODEL,
    (
        "table",
        "rows with known targets, not used in training: files, or folders of Parquet",
        {"nargs": "+"},
    ),
    ("--target", "its name here, if not as in training", COLUMN),
)


@dataclass(frozen=True, eq=False)
class KnownRows:
    """Rows that have a target.

    Parameters
    ----------
    frame : pandas.DataFrame of shape (n, p)
        Features.
    y : ndarray of shape (n,)
        Targets.
    kept : dict of str to OutColumn
        Further columns, as they stand in the files.
    """

    frame: Any
    y: Float64Array
    kept: dict[str, OutColumn]

    def __len__(self) -> int:
        return len(self.y)

    @classmethod
    def join(cls, parts: Sequence[KnownRows]) -> KnownRows:
        """Return the rows of all parts, which keep their index."""
        if len(parts) == 1:
            return parts[0]
        frame = load_pandas().concat([part.frame for part in parts])
        kept = {
            name: OutColumn.join([part.kept[name] for part in parts])
            for name in parts[0].kept
        }
        return cls(frame, np.concatenate([part.y for part in parts]), kept)

    def take(self, rows: NDArray[np.intp]) -> KnownRows:
        """Return some rows."""
        kept = {name: column.take(rows) for name, column in self.kept.items()}
        return KnownRows(self.frame.iloc[rows], self.y[rows], kept)


def read_known(
    options: Any,
    schema: Schema,
    paths: Sequence[str],
    target: str,
    kept: Iterable[str] = (),
) -> Iterator[KnownRows]:
    """Yield the rows of files that have a target, numbered from 0 on by their index."""
    dialect = schema.dialect(options.decimal, options.thousands)
    y: list[Float64Array] = []
    parts: dict[str, list[OutColumn]] = {name: [] for name in kept}
    tables = with_targets(
        read_tables(options, paths, {*schema.features, target}, parts),
        target,
        dialect,
        y,
        written=schema.target_written,
    )
    tables = lay_aside(tables, parts, dialect, "column")
    marks = options.decimal, [target, *parts], options.thousands
    start = 0
    for frame in schema.frames(tables, *marks):
        frame.index += start
        start += len(frame)
        beside = {name: columns.pop() for name, columns in parts.items()}
        yield KnownRows(frame, y.pop(), beside)


def draw_rows(parts: Iterable[KnownRows], most: int) -> tuple[KnownRows, int]:
    """Return at most so many rows in their order, and how many there are.

    Those with the least hashes of their numbers are drawn: of the same rows the same,
    whatever the parts are. At no time are more than twice as many held, and a part.
    """
    held: list[KnownRows] = []
    n = 0
    for part in parts:
        held.append(part)
        n += len(part)
        if sum(map(len, held)) > 2 * most:
            held = [_least(held, most)]
    return _least(held, most), n


def _least(held: Sequence[KnownRows], most: int) -> KnownRows:
    """Return the rows of the least hashes, in their order."""
    rows = KnownRows.join(held)
    if len(rows) <= most:
        return rows
    hashes = shares_of(rows.frame.index.to_numpy().astype(np.uint64), "drawn rows")
    return rows.take(np.sort(np.argpartition(hashes, most - 1)[:most]))


def target_name(options: Any, schema: Schema) -> str:
    """Return what the target is called in the files of a command."""
    return schema.target if options.target is None else options.target
