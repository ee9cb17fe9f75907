"""Files: their bytes, plain or packed, from disk or standard input, and their kinds."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn
from warnings import warn

from calibration import CalibrationWarning
from localexpert.reading.messages import join_few, list_names, refuse, refusing

#: The name of standard input.
STDIN = "-"
#: Bytes that a file may unpack to, unless told.
MOST_BYTES = 4 * 2**30
#: How a Parquet file begins, and an Excel file.
PARQUET, EXCEL = b"PAR1", b"PK\x03\x04"

# Bytes that are unpacked at once.
_PART = 2**20
# Each library says of damage in its own way; zip files ask for passwords and methods of
# packing by a RuntimeError.
_DAMAGE = (
    *(OSError, EOFError, ValueError, RuntimeError),
    *(zlib.error, lzma.LZMAError, zipfile.BadZipFile),
)
# How files begin, what they are called, and how what is in them is opened.
_PACKED: dict[bytes, tuple[str, Callable[[IO[bytes]], Any]]] = {
    b"\x1f\x8b": ("gzip", gzip.open),
    b"BZh": ("bzip2", bz2.open),
    b"\xfd7zXZ\0": ("xz", lzma.open),
    b"PK\x03\x04": ("zip", zipfile.ZipFile),
}
# What else files may be, by how they begin, and what to do with them.
_SAVE, _UNPACK = "save the table as CSV or Parquet", "unpack it first"
_FOREIGN: dict[bytes, str] = {
    rb"\x28\xb5\x2f\xfd": f"a zstd file; {_UNPACK} (zstd -d)",
    rb"7z\xbc\xaf|Rar!|\x04\x22\x4d\x18": f"an archive; {_UNPACK}",
    rb"\x1f\x8b|BZh|\xfd7zXZ\x00|PK\x03\x04": f"packed twice; {_UNPACK}",
    rb"(?s).{257}ustar": f"a tar archive; {_UNPACK}",
    rb"\xd0\xcf\x11\xe0\xa1\xb1": "an old Excel file (.xls); save it as .xlsx or CSV",
    rb"ARROW1|FEA1": "a Feather file; save it as Parquet (frame.to_parquet)",
    rb"\x89HDF": f"an HDF5 file; {_SAVE}",
    rb"SQLite format 3": f"an SQLite database; {_SAVE}",
    rb"\x93NUMPY|\x80[\x04\x05]\x95": f"an array or a pickle; {_SAVE}",
    rb"%PDF-": f"a PDF; {_SAVE}",
    # Texts may begin with blanks; a header of a table may begin with a brace.
    rb'\s*(\[\s*[\[{]|\{\s*"[^"]*"\s*:)': f"a JSON file; {_SAVE}",
    rb"(?i)\s*(<!doctype\s+html|<html[\s>]|<\?xml\s)": f"an HTML or XML page; {_SAVE}",
}


@dataclass(frozen=True)
class FileFormat:
    """What the user says of files; None is found out, once for each file.

    Parameters
    ----------
    delimiter : str, optional
        What parts the fields of a CSV, one character.
    decimal : {".", ","}, optional
    encoding : str, optional
        Of text. By default UTF-8, or UTF-16 that says so, or else cp1252.
    max_unpacked : float
        Most bytes that a packed file may unpack to.
    """

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    max_unpacked: float = MOST_BYTES


def name_input(path: str) -> str:
    """Return what messages call a file, which may be standard input."""
    return "standard input" if path == STDIN else path


def is_stream(path: str) -> bool:
    """Return whether a path is standard input or a pipe: it is read only once."""
    return path == STDIN or (os.path.exists(path) and not os.path.isfile(path))


def find_tables(paths: Sequence[str]) -> list[str]:
    """Return files, and of each folder its Parquet files in the order of their names.

    Those whose names begin with a dot or underscore are marks that engines leave.
    """
    found: list[str] = []
    for path in paths:
        if path == STDIN or not os.path.isdir(path):
            found.append(path)
            continue
        inside = sorted(Path(path).rglob("*.parquet"))
        files = [str(file) for file in inside if file.name[0] not in "._"]
        if not files:
            hint = (
                "; name CSV files themselves" if any(Path(path).glob("*.csv")) else ""
            )
            refuse(f"{path} is a folder without a file *.parquet{hint}")
        found += files
    if found.count(STDIN) > 1:
        refuse("standard input can be read only once")
    own = [os.path.realpath(path) for path in found]
    repeated = [path for j, path in enumerate(found) if own[j] in own[:j]]
    if repeated:
        warn(
            f"named more than once, and read as often: {join_few(repeated)}",
            CalibrationWarning,
            stacklevel=2,
        )
    return found


def name_tables(given: Sequence[str]) -> str:
    """Return what files and folders are called together, without their folders."""
    name = os.path.basename(os.path.normpath(name_input(given[0])))
    return f"{name} and {len(given) - 1} more" if len(given) > 1 else name


def read_bytes(path: str) -> bytes:
    """Return the bytes of a file or of standard input."""
    if path != STDIN:
        with refusing(f"cannot read {path!r}", OSError, ValueError):
            return Path(path).read_bytes()
    if sys.stdin is None or sys.stdin.closed:
        refuse("cannot read standard input: it is closed")
    if sys.stdin.isatty():
        refuse(
            "standard input is a terminal; send it a table, as in "
            "`zcat table.csv.gz | localexpert COMMAND ... -`"
        )
    with refusing("cannot read standard input", OSError, ValueError):
        return sys.stdin.buffer.read()


def is_parquet(path: str) -> bool:
    """Return whether a path is a Parquet file that can be read in any order."""
    try:
        with open(path, "rb") as file:
            return os.path.isfile(path) and file.read(4) == PARQUET
    except (OSError, ValueError):
        return False


def unpack(path: str, data: bytes, most: float) -> bytes:
    """Return what is in a packed file, or the data themselves if they are not packed.

    Files of gzip, bzip2 or xz may have several members, a zip file must have one.
    An Excel file stays as it is.
    """
    for start, (name, opened) in _PACKED.items():
        if not data.startswith(start):
            continue
        with ExitStack() as stack:
            stack.enter_context(refusing(f"{path} is a damaged {name} file", *_DAMAGE))
            file = stack.enter_context(opened(io.BytesIO(data)))
            if isinstance(file, zipfile.ZipFile):
                member = _only_member(path, file, most)
                if member is None:
                    return data
                file = stack.enter_context(file.open(member))
            return _read_at_most(path, file, most)
    return data


def _read_at_most(path: str, file: Any, most: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := file.read(_PART):
        parts.append(part)
        size += len(part)
        if size > most:
            refuse_size(path, most)
    return b"".join(parts)


def _only_member(path: str, archive: zipfile.ZipFile, most: float) -> str | None:
    """Return the name of the one file in a zip file, None of an Excel file."""
    names = [
        info.filename
        for info in archive.infolist()
        # What a Mac adds is no file of the user's.
        if not info.is_dir() and not info.filename.startswith("__MACOSX/")
    ]
    if "xl/workbook.xml" in names:
        if sum(info.file_size for info in archive.infolist()) > most:
            refuse_size(path, most)
        return None
    if "model.skops" in names:
        refuse(f"{path} is a saved model, not a table")
    if "mimetype" in names or any(name.startswith("xl/") for name in names):
        refuse(f"{path} is an office document; save the sheet as CSV")
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


def read_text(path: str, data: bytes, encoding: str | None) -> bytes:
    """Return a text as UTF-8; refuse what is no text, or is empty."""
    for start, kind in _FOREIGN.items():
        if re.match(start, data):
            refuse(f"{path} is {kind}")
    marked = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    chosen = encoding or ("utf-16" if marked else "utf-8-sig")
    try:
        text = data.decode(chosen)
    except UnicodeError as error:
        text = _guess_encoding(path, data, error, chosen if encoding or marked else "")
    text = text.lstrip("\ufeff")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        refuse(f"{path} is not a text file: a zero byte in line {line}; {_SAVE}")
    if not text.strip():
        refuse(f"{path} is empty")
    return text.encode("utf-8", "replace")


def _guess_encoding(path: str, data: bytes, error: UnicodeError, named: str) -> str:
    """Return a text that is no UTF-8, of which nothing else was named, as cp1252."""
    start = error.start if isinstance(error, UnicodeDecodeError) else 0
    line = data.count(b"\n", 0, start) + 1
    where = f"byte 0x{data[start]:02x} in line {line}"
    if named:
        refuse(f"{path} is not {named} text: {where}; give another --encoding")
    # Control characters tell that it is no text at all.
    try:
        if re.search(rb"[\x00-\x08\x0e-\x1f]", data):
            raise error
        text = data.decode("cp1252")
    except UnicodeError:
        refuse(f"{path} is not a text file: {where} is not UTF-8; {_SAVE}")
    warn(
        f"{path} is not UTF-8 ({where}); it is read as cp1252, as Windows writes it "
        "(--encoding names another)",
        CalibrationWarning,
        stacklevel=2,
    )
    return text
