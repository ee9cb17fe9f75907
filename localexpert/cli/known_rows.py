"""Rows of tables as a model takes them, part by part: new ones, or with a target."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from calibration.typing import Float64Array
from localexpert.cli.args import format_of
from localexpert.cli.console import note, warn
from localexpert.cli.table_model import TableModel
from localexpert.reading.files import Frame, read_tables
from localexpert.reading.messages import (
    count,
    join_few,
    list_names,
    load_pandas,
    refuse,
)
from localexpert.reading.reader import check_column, tell_odd_cells

#: A table as it is read, its features, and its targets (n,).
Known: TypeAlias = tuple[Frame, Any, Float64Array]

# Rows that are read and forecast at once.
BATCH = 20_000


def read_features(
    options: Any,
    model: TableModel,
    paths: Sequence[str],
    roles: Mapping[str, str],
    odd: list[Any] | None = None,
) -> Iterator[tuple[Frame, Any]]:
    """Yield parts of files, and their features; what is odd is said after the last.

    Further columns are wanted for the roles that they have.
    """
    reader, found = model.reader, [] if odd is None else odd
    columns, is_first = {*reader.feature_names_, *roles}, True
    for frame in read_tables(paths, format_of(options), columns, BATCH):
        for name, role in roles.items():
            check_column(frame, name, role)
        if is_first and (unknown := reader.find_unknown(frame, roles)):
            note(
                f"columns that training did not have are ignored: {list_names(unknown)}"
            )
        is_first = False
        yield frame, reader.transform(frame, odd=found)
    tell_odd_cells(found)


def read_known(
    options: Any, model: TableModel, paths: Sequence[str], kept: Collection[str] = ()
) -> Iterator[Known]:
    """Yield the rows of files that have a target; what was left out is said at last."""
    target = model.target if options.target is None else options.target
    if target is None:
        refuse(f"--target must name a column: {options.model} was fitted in Python")
    n_rows, n_found = 0, 0
    odd: list[Any] = []
    roles = {**dict.fromkeys(kept, "column"), target: "target"}
    for frame, features in read_features(options, model, paths, roles, odd):
        y = model.reader.read_target(frame, target, odd)
        known = ~np.isnan(y)
        n_rows, n_found = n_rows + len(y), n_found + int(known.sum())
        if known.any():
            yield frame[known], features[known], y[known]
        else:
            warn(f"{frame.attrs['path']} has no row with a target {target!r}")
    if not n_found:
        refuse(f"{join_few(list(paths))} has no row with a target {target!r}")
    if n_found < n_rows:
        warn(f"left out {count(n_rows - n_found, 'row')} without a target {target!r}")


def join_known(parts: Iterable[Known]) -> Known:
    """Return the rows of all parts."""
    frames, features, targets = zip(*parts, strict=True)
    join = load_pandas().concat
    return join(frames), join(features), np.concatenate(targets)
