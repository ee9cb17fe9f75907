"""Tables in several files: which ones, and that they hold the same columns."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from localexpert.cli.cells import load_module
from localexpert.cli.console import join_few, refuse, warn
from localexpert.cli.joined_table import check_names
from localexpert.cli.options import read_parts_with
from localexpert.cli.parquet import open_parquet
from localexpert.cli.raw_table import RawTable
from localexpert.cli.read_file import STDIN, is_parquet, name_input

_SUFFIX = ".parquet"
_INDEX = "__index_level_"


def find_tables(paths: Sequence[str]) -> list[str]:
    """Return files, and of each folder its Parquet files in the order of their names.

    Those whose names begin with a dot or underscore are marks that engines leave.
    """
    found: list[str] = []
    for path in paths:
        if path == STDIN or not os.path.isdir(path):
            found.append(path)
            continue
        inside = sorted(Path(path).rglob(f"*{_SUFFIX}"))
        files = [str(file) for file in inside if file.name[0] not in "._"]
        if not files:
            hint = ""
            if any(file.suffix == ".csv" for file in Path(path).iterdir()):
                hint = f"; name CSV files themselves, as in {Path(path) / '*.csv'}"
            refuse(f"{path} is a folder without a file *{_SUFFIX}{hint}")
        found += files
    if found.count(STDIN) > 1:
        refuse("standard input can be read only once")
    repeated = _find_repeated(found)
    if repeated:
        warn(f"named more than once, and read as often: {join_few(repeated)}")
    return found


def read_tables(
    options: Any, paths: Sequence[str], features: Collection[str], kept: Collection[str]
) -> Iterator[RawTable]:
    """Yield the tables of files one after another, in parts.

    Parquet files are compared before any is read: what is wrong with the last is told
    at once. Those without rows are left out where others have some.
    """
    wanted = {*features, *kept}
    files = [path for path in paths if is_parquet(path)]
    empty = _compare(files, features, kept, options.max_unpacked)
    if len(empty) < len(paths):
        paths = [path for path in paths if path not in empty]
    for path in paths:
        yield from read_parts_with(options, wanted, path)


def find_alike(
    options: Any, paths: Sequence[str], left_out: Collection[str]
) -> list[str]:
    """Return the files that hold rows, if those of Parquet hold the same columns.

    Columns that are left out may differ. Without any rows all files are returned.
    """
    files = [path for path in paths if is_parquet(path)]
    held: list[tuple[str, list[str]]] = []
    for path in files:
        opened = open_parquet(path, path, options.max_unpacked, 1)
        if opened.metadata.num_rows:
            # What pandas numbers rows by is no column.
            names = opened.schema_arrow.names
            held.append((path, [n for n in names if not n.startswith(_INDEX)]))
            check_names(held[0], held[-1], left_out)
    names = {name for _, some in held for name in some}.difference(left_out)
    empty = _compare(files, names, (), options.max_unpacked)
    if len(empty) == len(paths):
        return list(paths)
    if empty:
        warn(f"left out, for they have no rows: {join_few(sorted(empty))}")
    return [path for path in paths if path not in empty]


def name_tables(given: Sequence[str]) -> str:
    """Return what files and folders are called together, without their folders."""
    name = os.path.basename(os.path.normpath(name_input(given[0])))
    more = len(given) - 1
    return f"{name} and {more} more" if more else name


def _find_repeated(paths: Sequence[str]) -> list[str]:
    """Return files that others before them are, by whatever name."""
    met: set[str] = set()
    repeated = []
    for path in paths:
        own = os.path.realpath(path)
        if own in met:
            repeated.append(path)
        met.add(own)
    return repeated


def _compare(
    files: Sequence[str], features: Collection[str], kept: Collection[str], most: float
) -> set[str]:
    """Return the files without rows; refuse those whose columns are not as before."""
    empty = set()
    first: dict[str, tuple[str, Any]] = {}
    for path in files:
        opened = open_parquet(path, path, most, 1)
        if not opened.metadata.num_rows:
            empty.add(path)
            continue
        for column in opened.schema_arrow:
            name = column.name
            if name not in features and name not in kept:
                continue
            before, held = first.setdefault(name, (path, column.type))
            alike = column.type == held if name in kept else True
            if not alike or not _are_of_one_kind(column.type, held):
                refuse(
                    f"column {name!r} is {column.type} in {path} and {held} in "
                    f"{before}; save it alike in both"
                )
        lacking = [name for name in first if name not in opened.schema_arrow.names]
        if lacking:
            before = first[lacking[0]][0]
            refuse(f"{path} has no column {lacking[0]!r}, which {before} has")
    return empty


def _are_of_one_kind(one: Any, other: Any) -> bool:
    """Return whether types of Arrow are both of numbers, texts or whatever they are."""
    return (
        one == other
        or "gaps" in (_kind(one), _kind(other))
        or (_kind(one) == _kind(other) != "")
    )


def _kind(given: Any) -> str:
    types = load_module("pyarrow.types", "")
    if types.is_dictionary(given):
        given = given.value_type
    if types.is_null(given):
        return "gaps"
    if types.is_integer(given) or types.is_floating(given) or types.is_decimal(given):
        return "numbers"
    if types.is_string(given) or types.is_large_string(given):
        return "texts"
    return "times" if types.is_temporal(given) else ""
