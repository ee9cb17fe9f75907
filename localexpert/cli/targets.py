"""Targets: the rows of a file that have one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from calibration.typing import Float64Array
from localexpert.cli.cells import Dialect
from localexpert.cli.console import count, join_few, note, refuse, warn
from localexpert.cli.number_formats import PLAIN, NumberFormat
from localexpert.cli.raw_table import RawTable


def with_targets(
    tables: Iterable[RawTable],
    name: str,
    dialect: Dialect,
    found: list[Float64Array],
    least: int = 1,
    written: NumberFormat = PLAIN,
    *,
    tells: bool = True,
) -> Iterator[RawTable]:
    """Yield the rows that have a target; the targets are appended to `found`.

    What was left out is said after the last, if `tells`.
    """
    found_in: dict[str, int] = {}
    n_rows, n_found, seen = 0, 0, ""
    for table in tables:
        numbers = table.numbers(name, "target", dialect, written)
        y, seen = numbers.values, seen or numbers.seen
        rows = np.flatnonzero(~np.isnan(y))
        for path, n_here in table.count_by_file(rows).items():
            found_in[path] = found_in.get(path, 0) + n_here
        n_rows, n_found = n_rows + len(y), n_found + len(rows)
        if len(rows):
            found.append(y[rows])
            yield table.take(rows)
    where = join_few(list(found_in))
    if n_found < least > 1:
        refuse(
            f"{where} must have at least {least} rows with a target {name!r}, "
            f"got {n_found}"
        )
    if not n_found:
        refuse(f"{where} has no row with a target {name!r}")
    if seen and tells:
        note(f"target {name!r} is read {seen}")
    if n_found < n_rows and tells:
        warn(f"left out {count(n_rows - n_found, 'row')} without a target {name!r}")
        without = [path for path, n_here in found_in.items() if not n_here]
        if without:
            warn(f"there is no target {name!r} in any row of {join_few(without)}")
