"""Files that are no tables here: told by how they begin, and what to do with them."""

from __future__ import annotations

import re
from pathlib import PurePath

from localexpert.cli.console import refuse

_SAVE = "save the table as CSV or Parquet"
_UNPACK = "unpack it first"
_SHEET = "save the sheet as CSV"
# How files begin.
_STARTS: dict[bytes, tuple[str, str]] = {
    b"\x28\xb5\x2f\xfd": ("a zstd file", f"{_UNPACK} (zstd -d)"),
    b"\x04\x22\x4d\x18": ("an lz4 file", _UNPACK),
    b"7z\xbc\xaf\x27\x1c": ("a 7z file", _UNPACK),
    b"Rar!": ("a rar file", _UNPACK),
    b"\x1f\x9d": ("a compressed file (.Z)", _UNPACK),
    b"\x1f\x8b": ("packed twice", _UNPACK),
    b"BZh": ("packed twice", _UNPACK),
    b"\xfd7zXZ\0": ("packed twice", _UNPACK),
    b"PK\x03\x04": ("packed twice", _UNPACK),
    b"PK\x05\x06": ("an empty zip file", _SAVE),
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ("an Excel file (.xls)", _SHEET),
    b"ARROW1": ("a Feather file", "save it as Parquet (frame.to_parquet)"),
    b"FEA1": ("a Feather file", "save it as Parquet (frame.to_parquet)"),
    b"ORC": ("an ORC file", _SAVE),
    b"Obj\x01": ("an Avro file", _SAVE),
    b"\x89HDF\r\n": ("an HDF5 file", _SAVE),
    b"SQLite format 3\0": ("an SQLite database", _SAVE),
    b"\x93NUMPY": ("a NumPy array", _SAVE),
    b"\x80\x04\x95": ("a pickle", _SAVE),
    b"\x80\x05\x95": ("a pickle", _SAVE),
    b"<stata_dta>": ("a Stata file", _SAVE),
    b"$FL2": ("an SPSS file", _SAVE),
    b"RDX3\n": ("an R file", _SAVE),
    b"%PDF-": ("a PDF", _SAVE),
}
# Of texts, which may begin with blanks; a header of a table may begin with a brace.
_TEXTS: dict[str, re.Pattern[bytes]] = {
    "a JSON file": re.compile(rb'\[\s*[\[{]|\{\s*"[^"]*"\s*:'),
    "an HTML page": re.compile(rb"<!doctype\s+html|<html[\s>]", re.IGNORECASE),
    "an XML file": re.compile(rb"<\?xml\s"),
}
# Of names, where it begins as many files do.
_SUFFIXES = {
    **dict.fromkeys((".xls", ".xlsx", ".xlsb", ".ods", ".numbers"), _SHEET),
    **dict.fromkeys((".sas7bdat", ".xpt", ".dta", ".sav", ".por"), _SAVE),
    **dict.fromkeys((".rds", ".rdata", ".mat", ".pkl", ".pickle", ".dbf"), _SAVE),
    **dict.fromkeys((".br", ".lzma", ".lz", ".sz", ".snappy"), _UNPACK),
}
_BLANKS = b"\xef\xbb\xbf \t\r\n"
_TAR = slice(257, 262)


def refuse_foreign(path: str, data: bytes) -> None:
    """Refuse data that are neither a delimited text nor a Parquet file."""
    for start, (kind, cure) in _STARTS.items():
        if data.startswith(start):
            refuse(f"{path} is {kind}; {cure}")
    if data[_TAR] == b"ustar":
        refuse(f"{path} is a tar archive; {_UNPACK}")
    text = data[:4096].lstrip(_BLANKS)
    for kind, pattern in _TEXTS.items():
        if pattern.match(text):
            refuse(f"{path} is {kind}; {_SAVE}")


def cure_of(path: str) -> str:
    """Return what to do with a file that is no text, by its name."""
    return _SUFFIXES.get(PurePath(path).suffix.lower(), "")
