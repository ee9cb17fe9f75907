"""How many rows files have, before they are read as tables."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence

from localexpert.cli.packed import unpack
from localexpert.cli.parquet import open_parquet
from localexpert.cli.read_file import (
    PARQUET,
    STDIN,
    is_parquet,
    name_input,
    read_bytes,
)


def count_rows(paths: Sequence[str], most_bytes: float) -> int:
    """Return how many rows files have: of Parquet exactly, of CSV at most so many.

    A pipe, which can be read only once, counts as none.
    """
    return sum(_count(path, most_bytes) for path in paths if not is_stream(path))


def is_stream(path: str) -> bool:
    """Return whether a path is standard input or a pipe: it is read only once."""
    return path == STDIN or (os.path.exists(path) and not os.path.isfile(path))


def _count(path: str, most_bytes: float) -> int:
    if is_parquet(path):
        return int(open_parquet(path, path, most_bytes, 1).metadata.num_rows)
    data = unpack(name_input(path), read_bytes(path), most_bytes)
    if data[:4] == PARQUET:
        opened = open_parquet(path, io.BytesIO(data), most_bytes, 1)
        return int(opened.metadata.num_rows)
    # Less the header; blank lines, and breaks within quotes, are no rows of their own.
    return max(data.count(b"\n"), data.count(b"\r")) - data.endswith((b"\n", b"\r"))
