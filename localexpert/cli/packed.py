"""Packed files: no more of them is unpacked than the user allows."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from typing import IO, Any, NoReturn

from localexpert.cli.console import list_names, refuse, refusing

#: Bytes that a file may unpack to, unless told.
MOST_BYTES = 4 * 2**30

# Bytes that are unpacked at once.
_PART = 2**20
# Each library says of damage in its own way; zip files ask for passwords and methods of
# packing by a RuntimeError.
_DAMAGE = (
    *(OSError, EOFError, ValueError, RuntimeError),
    *(zlib.error, lzma.LZMAError, zipfile.BadZipFile),
)
# How files begin, what they are called, and how what is in them is opened.
_KINDS: dict[bytes, tuple[str, Callable[[IO[bytes]], Any]]] = {
    b"\x1f\x8b": ("gzip", gzip.open),
    b"BZh": ("bzip2", bz2.open),
    b"\xfd7zXZ\0": ("xz", lzma.open),
    b"PK\x03\x04": ("zip", zipfile.ZipFile),
}
# What programs that know tables write into zip files, and what they call it.
_OFFICE = {
    "xl/": "an Excel file; save the sheet as CSV",
    "mimetype": "an office document; save the sheet as CSV",
    "arrays.bin": "a saved model, not a table",
}


def unpack(path: str, data: bytes, most: float) -> bytes:
    """Return what is in a packed file, or the data themselves if they are not packed.

    Files of gzip, bzip2 or xz may have several members, a zip file must have one.
    """
    for start, (name, opened) in _KINDS.items():
        if data.startswith(start):
            with ExitStack() as stack:
                stack.enter_context(
                    refusing(f"{path} is a damaged {name} file", *_DAMAGE)
                )
                file = stack.enter_context(opened(io.BytesIO(data)))
                if isinstance(file, zipfile.ZipFile):
                    file = stack.enter_context(file.open(_only_member(path, file)))
                return _read(path, file, most)
    return data


def _read(path: str, file: Any, most: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := file.read(_PART):
        parts.append(part)
        size += len(part)
        if size > most:
            refuse_size(path, most)
    return b"".join(parts)


def _only_member(path: str, archive: zipfile.ZipFile) -> str:
    """Return the name of the one file in a zip file."""
    names = [
        info.filename
        for info in archive.infolist()
        # What a Mac adds is no file of the user's.
        if not info.is_dir() and not info.filename.startswith("__MACOSX/")
    ]
    for start, kind in _OFFICE.items():
        if any(name.startswith(start) for name in names):
            refuse(f"{path} is {kind}")
    if len(names) != 1:
        held = f"{len(names)}: {list_names(names)}" if names else "none"
        refuse(f"{path} must hold one file to be read as a table, and holds {held}")
    return names[0]


def refuse_size(path: str, most: float) -> NoReturn:
    """Refuse a file that unpacks to more than it may."""
    refuse(
        f"{path} unpacks to more than {most / 2**30:g} GiB; if it is sound, give a "
        "greater --max-unpacked"
    )
