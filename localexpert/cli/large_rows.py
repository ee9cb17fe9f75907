"""`LargeRows`: the training rows of files too large for memory, anew at each pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.cli.cells import Dialect
from localexpert.cli.joined_table import check_same_names, join_tables
from localexpert.cli.options import read_parts_with
from localexpert.cli.raw_table import RawTable
from localexpert.cli.tables import read_tables
from localexpert.cli.targets import with_targets
from localexpert.cli.training_rows import (
    TrainingRows,
    check_weights,
    left_out_by,
    read_weight,
)

# Rows that columns are learned from.
_MOST_LOOKED_AT = 100_000


class LargeRows:
    """Rows of files as parts: features as a schema makes them, target, weight, group.

    The first whole pass tells what could not be read, counts rows, and finds the least
    and greatest target.

    Parameters
    ----------
    options : Namespace
        Of `localexpert fit`.
    paths : sequence of str
        Files, not pipes.
    looked_at : TrainingRows
        Of some of the rows.
    """

    def __init__(
        self, options: Any, paths: Sequence[str], looked_at: TrainingRows
    ) -> None:
        self.options, self.paths = options, paths
        self.schema, self._weight_written = looked_at.schema, looked_at.weight_written
        self.n_rows, self.low, self.high = 0, np.inf, -np.inf
        self._is_known = False
        parts = self.schema.frames([looked_at.table], options.decimal, tells=False)
        frame = next(parts)
        # Names that no feature has.
        beside = max(map(len, frame)) * "'"
        self.target = f"target{beside}"
        self.weight = None if options.weight is None else f"weight{beside}"
        self.key = None if options.group is None else f"group{beside}"

    def parts(self) -> Iterator[Any]:
        """Yield the rows that have a target, part by part."""
        tells, self._is_known = not self._is_known, True
        found: list[tuple[Float64Array, RawTable]] = []
        n_rows, low, high, total = 0, np.inf, -np.inf, 0.0
        dialect = self.schema.dialect(self.options.decimal, self.options.thousands)
        frames = self.schema.frames(
            self._with_targets(dialect, found, tells=tells),
            self.options.decimal,
            thousands=self.options.thousands,
            tells=tells,
        )
        for frame in frames:
            y, table = found.pop()
            frame[self.target] = y
            n_rows, low, high = n_rows + len(y), min(low, y.min()), max(high, y.max())
            if self.weight is not None:
                how = self.options.weight, dialect, self._weight_written
                frame[self.weight] = weight = read_weight(table, *how)
                total += weight.sum()
            if self.key is not None:
                frame[self.key] = table.words(self.options.group, "group", dialect)
            where = f"{table.path}, {table.unit}s from {table.places[0]} on"
            frame.attrs["name"] = where
            yield frame
        if self.weight is not None:
            check_weights(self.options.weight, total)
        self.n_rows, self.low, self.high = n_rows, float(low), float(high)

    def _with_targets(
        self,
        dialect: Dialect,
        found: list[tuple[Float64Array, RawTable]],
        *,
        tells: bool,
    ) -> Iterator[RawTable]:
        """Yield the rows that have a target; each part is noted with its targets."""
        asked = self.options.target, self.options.weight, self.options.group
        wanted = [*self.schema.features, *(name for name in asked if name is not None)]
        y: list[Float64Array] = []
        tables = with_targets(
            read_tables(self.options, self.paths, wanted, ()),
            self.options.target,
            dialect,
            y,
            2,
            self.schema.target_written,
            tells=tells,
        )
        for table in tables:
            found.append((y.pop(), table))
            yield table


def look_at(options: Any, paths: Sequence[str], name: str, n_rows: int) -> RawTable:
    """Return rows from all over files, in their order, and those of one table.

    At least the first row of each part of a file is among them.
    """
    rng = np.random.default_rng(0)
    share = min(_MOST_LOOKED_AT / max(n_rows, 1), 1.0)
    left_out, start = left_out_by(options), 0
    found: list[RawTable] = []
    for path in paths:
        for table in read_parts_with(options, None, path):
            if found:
                check_same_names(found[0], table, left_out)
            drawn = rng.random(len(table)) < share
            drawn[0] = True
            rows = np.flatnonzero(drawn)
            found.append(replace(table.take(rows), rows=start + rows))
            start += len(table)
    return join_tables(found, name, options.decimal, left_out)
