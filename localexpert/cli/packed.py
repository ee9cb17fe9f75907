"""Packed files: no more of them is unpacked than the user allows."""

from __future__ import annotations

import gzip
import io
import zlib
from typing import NoReturn

from localexpert.cli.console import refuse, refusing

#: Bytes that a file may unpack to, unless told.
MOST_BYTES = 4 * 2**30

# Bytes that are unpacked at once.
_PART = 2**20


def unzip(path: str, data: bytes, most: float) -> bytes:
    """Return what is in a gzip file of one or several members."""
    parts: list[bytes] = []
    size = 0
    with (
        refusing(f"{path} is a damaged gzip file", OSError, EOFError, zlib.error),
        gzip.open(io.BytesIO(data)) as file,
    ):
        while part := file.read(_PART):
            parts.append(part)
            size += len(part)
            if size > most:
                refuse_size(path, most)
    return b"".join(parts)


def refuse_size(path: str, most: float) -> NoReturn:
    """Refuse a file that unpacks to more than it may."""
    refuse(
        f"{path} unpacks to more than {most / 2**30:g} GiB; if it is sound, give a "
        "greater --max-unpacked"
    )
