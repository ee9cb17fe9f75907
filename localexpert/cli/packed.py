"""Packed files: no more of them is unpacked than the user allows."""

from __future__ import annotations

import zlib
from typing import NoReturn

from localexpert.cli.console import refuse, refusing

#: Bytes that a file may unpack to, unless told.
MOST_BYTES = 4 * 2**30

# Bytes that are unpacked at once: what is left of them is copied at each member's end.
_WINDOW = 2**16
# For zlib: gzip's header and trailer, whose checksum is checked.
_GZIP = 31


def unzip(path: str, data: bytes, most: float) -> bytes:
    """Return what is in a gzip file of one or several members."""
    parts: list[bytes] = []
    size = start = 0
    whole = True
    while start < len(data):
        if whole and data[start] == 0:
            start += 1  # such bytes may fill up the last block of a tape
            continue
        if whole:
            member = zlib.decompressobj(_GZIP)
        window = data[start : start + _WINDOW]
        with refusing(f"{path} is a damaged gzip file", zlib.error):
            parts.append(member.decompress(window))
        size += len(parts[-1])
        if size > most:
            refuse_size(path, most)
        start += len(window) - len(member.unused_data)
        whole = member.eof
    if not whole:
        refuse(f"{path} is a damaged gzip file: it ends too early")
    return b"".join(parts)


def refuse_size(path: str, most: float) -> NoReturn:
    """Refuse a file that unpacks to more than it may."""
    refuse(
        f"{path} unpacks to more than {most / 2**30:g} GiB; if it is sound, give a "
        "greater --max-unpacked"
    )
