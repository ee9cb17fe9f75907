"""Files as raw tables: data frames of what stands in them, before it means anything.

Columns of a CSV are texts; those of other files keep their types. The index tells where
a row stands: it is called "line" or "row", and has the file before it where there are
several. `attrs` has the path, the names of all columns, and the marks of a CSV.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, NoReturn, TypeAlias
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from calibration import CalibrationWarning
from calibration.sources import find_parquet
from localexpert.reading.texts import (
    OTHER,
    count,
    find_decimal,
    list_names,
    load_module,
    load_pandas,
    refuse,
    refusing,
)

#: A data frame as it is read.
Frame: TypeAlias = Any
#: The name of standard input.
STDIN = "-"
#: Bytes that a file may unpack to by default.
MOST_BYTES = 4 * 2**30

_PARQUET, _ZIP = b"PAR1", b"PK\x03\x04"
# Bytes that are unpacked at once.
_PART = 2**20
# Each library reports damage by another error. Zip files ask for passwords and methods
# of packing by a RuntimeError.
_DAMAGE: tuple[type[Exception], ...] = (OSError, EOFError, ValueError, RuntimeError)
_DAMAGE += (zlib.error, lzma.LZMAError, zipfile.BadZipFile)
# How files begin, what they are called, and how what is in them is opened.
_PACKED: dict[bytes, tuple[str, Any]] = {
    b"\x1f\x8b": ("gzip", gzip.open),
    b"BZh": ("bzip2", bz2.open),
    b"\xfd7zXZ\0": ("xz", lzma.open),
    _ZIP: ("zip", zipfile.ZipFile),
}
_DELIMITERS = (",", ";", "\t", "|")
_SNIFFED_ROWS, _SNIFFED_CELLS = 20, 1000


@dataclass(frozen=True)
class FileFormat:
    """How files are written, as the user says; None is found for each file.

    Parameters
    ----------
    delimiter : str, optional
        Character between the fields of a CSV.
    decimal : {".", ","}, optional
        By default the other one, if one of them parts thousands.
    encoding : str, optional
        Of text. By default UTF-8, or UTF-16 that says so, or else cp1252.
    max_unpacked : float
        Most bytes that a packed file may unpack to.
    thousands : {",", ".", " ", "'"}, optional
        Between groups of three digits.
    """

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    max_unpacked: float = MOST_BYTES
    thousands: str | None = None

    @property
    def marks(self) -> dict[str, str]:
        """Marks in numbers, as far as the user says."""
        decimal = self.decimal or OTHER.get(self.thousands or "")
        marks = {"decimal": decimal, "thousands": self.thousands}
        return {name: mark for name, mark in marks.items() if mark}


def name_input(path: str) -> str:
    """Return what messages call a file, which may be standard input."""
    return "standard input" if path == STDIN else path


def name_tables(given: Sequence[str]) -> str:
    """Return what files and folders are called together, without their folders."""
    name = os.path.basename(os.path.normpath(name_input(given[0])))
    return f"{name} and {len(given) - 1} more" if len(given) > 1 else name


def is_stream(path: str) -> bool:
    """Return whether a path is standard input or a pipe: it is read only once."""
    return path == STDIN or (os.path.exists(path) and not os.path.isfile(path))


def is_parquet(path: str) -> bool:
    """Return whether a path is a Parquet file that can be read in any order."""
    try:
        with open(path, "rb") as file:
            return os.path.isfile(path) and file.read(4) == _PARQUET
    except (OSError, ValueError):
        return False


def find_tables(paths: Sequence[str]) -> list[str]:
    """Return the files. A folder stands for its Parquet files, in the order of names.

    Names that begin with a dot or an underscore are left out, because engines give such
    names to files that hold no rows.
    """
    found: list[str] = []
    for path in paths:
        inside = [path]
        if path != STDIN and os.path.isdir(path):
            inside = list(map(str, find_parquet(Path(path))))
        if not inside:
            refuse(f"{path} has no file *.parquet in it; name CSV files themselves")
        found += inside
    if found.count(STDIN) > 1:
        refuse("standard input can be read only once")
    real = [os.path.realpath(path) for path in found]
    if repeated := [path for j, path in enumerate(found) if real[j] in real[:j]]:
        msg = f"named more than once, and read as often: {list_names(repeated)}"
        warn(msg, CalibrationWarning, stacklevel=2)
    return found


def read_table(path: str, how: FileFormat | None = None) -> Frame:
    """Read a whole file as a table: CSV, Parquet or Excel, compressed or not.

    Parameters
    ----------
    path : str
        "-" is standard input.
    how : FileFormat, optional

    Returns
    -------
    pandas.DataFrame of shape (n, p)
    """
    return next(_File(path, how or FileFormat()).read())


def read_tables(
    paths: Sequence[str],
    how: FileFormat | None = None,
    columns: Collection[str] | None = None,
    n_rows: int | None = None,
) -> Iterator[Frame]:
    """Yield the tables of files one after another, whole or so many rows at a time.

    From a plain Parquet file only the rows of a part are read. All files are opened
    before any is read, so that an error in the last is found at once. Files without
    rows are left out if others have some.
    """
    files = [_File(path, how or FileFormat(), columns, n_rows) for path in paths]
    filled = [f for f in files if not is_parquet(f.path) or f.count_rows()]
    for file in filled or files:
        yield from file.read()


def join_tables(frames: Sequence[Frame], left_out: Collection[str] = ()) -> Frame:
    """Return the rows of several tables; each row keeps its file and place.

    Columns have the order of the first table. Those in `left_out` need not be in every
    table; if one lacks them, they are dropped.
    """
    if len(frames) == 1:
        return frames[0]
    first, paths = frames[0], [frame.attrs["path"] for frame in frames]
    for other in frames[1:]:
        for one, two in ((first, other), (other, first)):
            if lacking := [n for n in two if n not in one and n not in left_out]:
                without, has = one.attrs["path"], two.attrs["path"]
                refuse(
                    f"{without} has no column {list_names(lacking)}, which {has} has"
                )
    marks = {frame.attrs["path"]: frame.attrs.get("decimal") for frame in frames}
    check_marks(marks)
    names = [name for name in first if all(name in frame for frame in frames)]
    pandas = load_pandas()
    # Types that differ, as of texts and numbers, become objects.
    kinds = {n: {frame[n].dtype for frame in frames} for n in names}
    unlike = dict.fromkeys([n for n in names if len(kinds[n]) > 1], object)
    whole = pandas.concat([frame[names].astype(unlike) for frame in frames])
    files = pandas.Categorical(np.repeat(paths, [len(frame) for frame in frames]))
    unit = first.index.name or "row"
    whole.index = pandas.MultiIndex.from_arrays([files, whole.index], names=["", unit])
    several = paths[0] if len(set(paths)) == 1 else list_names(dict.fromkeys(paths))
    whole.attrs = first.attrs | {"path": several}
    if any(marks.values()):
        whole.attrs["decimal"] = next(filter(None, marks.values()))
    return whole


def check_marks(marks: Mapping[str, str | None]) -> None:
    """Refuse files, by their paths, whose decimal marks are known to differ."""
    if len({*marks.values()} - {None}) > 1:
        refuse(f"{list_names(marks)} differ in decimal marks: save them alike")


def count_rows(paths: Sequence[str], how: FileFormat) -> int:
    """Return how many rows files have; of CSV at most so many.

    A pipe, which can be read only once, counts as none.
    """
    return sum(_File(p, how, n_rows=1).count_rows() for p in paths if not is_stream(p))


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


@dataclass(frozen=True)
class _File:
    """A file that is read, perhaps in parts of `n_rows`, perhaps only some columns."""

    path: str
    how: FileFormat
    columns: Collection[str] | None = None
    n_rows: int | None = None

    @property
    def name(self) -> str:
        """What messages call the file."""
        return name_input(self.path)

    def read(self) -> Iterator[Frame]:
        """Yield the table in parts, or whole."""
        held = self._open()
        if not isinstance(held, bytes):
            # Not read before it is asked for, row group by row group.
            return self._read_parquet(held)
        if held[:4] == _ZIP:
            return self._read_excel(held)
        return self._read_text(_decode(self.name, held, self.how.encoding))

    def count_rows(self) -> int:
        """Return how many rows there are; of CSV at most so many."""
        held = self._open()
        if not isinstance(held, bytes):
            return int(held.metadata.num_rows)
        if held[:4] == _ZIP:
            return sum(map(len, self._read_excel(held)))
        # Less the header. Blank lines are counted, though they are no rows.
        return max(len(held.splitlines()) - 1, 0)

    def _open(self) -> Any:
        """Return a ParquetFile, or what is in another file, unpacked."""
        if is_parquet(self.path):
            return self._open_parquet(self.path)
        data = _unpack(self.name, read_bytes(self.path), self.how.max_unpacked)
        return self._open_parquet(io.BytesIO(data)) if data[:4] == _PARQUET else data

    def _name_columns(self, header: Sequence[Any]) -> tuple[list[str], list[int]]:
        """Return the names in a header, blank ones numbered, and which are wanted.

        At least one is: without any, no rows would be read.
        """
        names = [str(name).strip() or f"column {j}" for j, name in enumerate(header, 1)]
        if several := sorted({name for name in names if names.count(name) > 1}):
            refuse(
                f"{self.name} has several columns of one name: {list_names(several)}"
            )
        if self.columns is None:
            return names, list(range(len(names)))
        return names, [j for j, name in enumerate(names) if name in self.columns] or [0]

    def _finish(
        self, frame: Frame, names: Sequence[str], places: Any, **marks: str | None
    ) -> Frame:
        """Return a frame that knows where it comes from; CSV has a delimiter."""
        frame.columns = [names[j] for j in self._name_columns(names)[1]]
        unit = "line" if marks else "row"
        frame.index = load_pandas().Index(places, name=unit)
        known = {"path": self.name, "names": tuple(names)}
        frame.attrs = known | self.how.marks | marks
        return frame

    def _read_text(self, text: bytes) -> Iterator[Frame]:
        """Yield the table of a delimited text in UTF-8."""
        delimiter = self.how.delimiter
        if delimiter is None:
            delimiter = max(_DELIMITERS, key=lambda mark: _cuts_evenly(text, mark))
        decimal, n_rows = self.how.marks.get("decimal"), 0
        parts = _find_parts(self.name, text, delimiter, self.n_rows)
        names, chosen = self._name_columns(next(parts)[1][0])
        if not text.endswith((b"\n", b"\r")):
            msg = f"{self.name} does not end with a line break: if it was cut off, rows"
            msg += " are lacking, and its last cell may be half of one"
            warn(msg, CalibrationWarning, stacklevel=5)
        for lines, cells in parts:
            n_rows += len(lines)
            held = {j: _share(cells[:, j]) for j in chosen}
            frame = load_pandas().DataFrame(held, copy=False)
            decimal = decimal or find_decimal(frame[name] for name in frame)
            yield self._finish(
                frame, names, lines, delimiter=delimiter, decimal=decimal
            )
        if not n_rows:
            refuse(f"{self.name} has a header but no rows")

    def _open_parquet(self, file: Any) -> Any:
        """Return a ParquetFile of a path or an open file, its footer read.

        What it unpacks to is bounded, or each row group where not all rows are to be
        read at once.
        """
        need = f'{self.name} needs: pip install "localexpert[io]"'
        parquet, most = load_module("pyarrow.parquet", need), self.how.max_unpacked
        # A damaged file ends in errors of many classes; some of them are pyarrow's.
        with refusing(f"{self.name} is a damaged Parquet file", Exception):
            # Buffers of pages to come would be kept until the last row has been read.
            opened = parquet.ParquetFile(file, pre_buffer=False)
            meta = opened.metadata
            groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
            # A page may say in a few bytes that a value comes a thousand million times.
            sizes = [
                max(g.total_byte_size, 8 * g.num_rows * g.num_columns) for g in groups
            ]
        if (sum(sizes) if self.n_rows is None else max(sizes, default=0)) > most:
            _refuse_size(self.name, most)
        return opened

    def _read_parquet(self, file: Any) -> Iterator[Frame]:
        """Yield the table of a ParquetFile, whose columns keep the types of Arrow."""
        damaged, schema = f"{self.name} is a damaged Parquet file", file.schema_arrow
        with refusing(damaged, Exception):
            # What pandas numbers rows by is a column only if it has a name.
            index = (schema.pandas_metadata or {}).get("index_columns", ())
            unnamed = [n for n in map(str, index) if n.startswith("__index_level_")]
            held = [name for name in schema.names if name not in unnamed]
            # pandas only describes an index of evenly spaced numbers.
            even = [one for one in index if isinstance(one, dict) and one["name"]]
        if not held or not file.metadata.num_rows:
            refuse(f"{self.name} has no rows")
        names, chosen = self._name_columns([*held, *(one["name"] for one in even)])
        stored, start = [held[j] for j in chosen if j < len(held)], 1
        with refusing(damaged, Exception):
            if self.n_rows is None:
                batches = [file.read(columns=stored)]
            else:
                batches = file.iter_batches(self.n_rows, columns=stored)
            for batch in batches:
                frame = batch.to_pandas(types_mapper=_find_type, ignore_metadata=True)
                places = np.arange(start, start + len(frame))
                start += len(frame)
                for one in even if len(stored) < len(chosen) else ():
                    frame[one["name"]] = one["start"] + one["step"] * (places - 1)
                if len(frame):
                    yield self._finish(frame, names, places)

    def _read_excel(self, data: bytes) -> Iterator[Frame]:
        """Yield the first sheet of an Excel file, its cells as they are."""
        need = f'{self.name} needs: pip install "localexpert[excel]"'
        load_module("openpyxl", need)
        pandas, damaged = load_pandas(), f"{self.name} is a damaged Excel file"
        how = {"header": None, "dtype": object, "na_filter": False}
        with refusing(damaged, Exception), pandas.ExcelFile(io.BytesIO(data)) as book:
            first, *others = book.sheet_names
            sheet = pandas.read_excel(book, first, **how)
        if others:
            msg = f"{self.name} has {1 + len(others)} sheets: {first!r} alone is read"
            warn(msg, CalibrationWarning, stacklevel=3)
        filled = np.flatnonzero((sheet != "").any(axis=1))
        if len(filled) < 2:
            refuse(f"{self.name} has no rows")
        names, chosen = self._name_columns(list(sheet.iloc[filled[0]]))
        yield self._finish(sheet.iloc[filled[1:], chosen], names, filled[1:] + 1)


def _find_type(kind: Any) -> Any:
    """Return the type of pandas for one of Arrow; pandas knows no views of texts."""
    if (name := str(kind)).endswith("_view"):
        kind = load_module("pyarrow", "").type_for_alias(name.removesuffix("_view"))
    return load_pandas().ArrowDtype(kind)


def _unpack(path: str, data: bytes, most: float) -> bytes:
    """Return what is in a packed file, or the data themselves if they are not packed.

    Files of gzip, bzip2 or xz may have several members, a zip file must have one.
    An Excel file stays as it is.
    """
    kind = next((start for start in _PACKED if data.startswith(start)), None)
    if kind is None:
        return data
    name, opened = _PACKED[kind]
    with refusing(f"{path} is a damaged {name} file", *_DAMAGE), ExitStack() as stack:
        file = stack.enter_context(opened(io.BytesIO(data)))
        if kind == _ZIP:
            member = _only_member(path, file, most)
            if member is None:
                return data
            file = stack.enter_context(file.open(member))
        parts = iter(lambda: file.read(_PART), b"")
        unpacked = b"".join(islice(parts, int(min(most, 2**50) // _PART) + 1))
        if len(unpacked) > most:
            _refuse_size(path, most)
    return unpacked


def _only_member(path: str, archive: zipfile.ZipFile, most: float) -> str | None:
    """Return the name of the one file in a zip file, None of an Excel file."""
    # A Mac adds files that are not the user's.
    held = [info.filename for info in archive.infolist() if not info.is_dir()]
    names = [name for name in held if not name.startswith("__MACOSX/")]
    if "xl/workbook.xml" in names:
        if sum(info.file_size for info in archive.infolist()) > most:
            _refuse_size(path, most)
        return None
    if len(names) != 1:
        shown = f"{len(names)}: {list_names(names)}" if names else "none"
        refuse(f"{path} must hold one file to be read as a table, and holds {shown}")
    return names[0]


def _refuse_size(path: str, most: float) -> NoReturn:
    refuse(
        f"{path} unpacks to more than {most / 2**30:g} GiB; if it is sound, give a "
        "greater --max-unpacked"
    )


# Texts


def _decode(path: str, data: bytes, encoding: str | None) -> bytes:
    """Return a text as UTF-8; refuse what is no text, or is empty."""
    marked = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    chosen = encoding or ("utf-16" if marked else "utf-8")
    try:
        text = data.decode(chosen)
    except UnicodeError as error:
        start = error.start if isinstance(error, UnicodeDecodeError) else 0
        line = data.count(b"\n", 0, start) + 1
        bad = f"{path} is not {chosen} text (byte 0x{data[start]:02x} in line {line})"
        # Control characters tell that it is no text at all.
        if encoding or marked or re.search(rb"[\x00-\x08\x0e-\x1f]", data):
            refuse(f"{bad}; give another --encoding")
        with refusing(bad, UnicodeError):
            text = data.decode("cp1252")
        bad += "; it is read as cp1252, as Windows writes it (--encoding names another)"
        warn(bad, CalibrationWarning, stacklevel=5)
    text = text.lstrip("\ufeff")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        refuse(f"{path} is not a text file: a zero byte in line {line}")
    if not text.strip():
        refuse(f"{path} is empty")
    return text.encode("utf-8", "replace")


def _open_text(text: bytes, newline: str | None) -> io.TextIOWrapper:
    """Return a file of UTF-8 text; a StringIO would take four bytes a letter."""
    return io.TextIOWrapper(io.BytesIO(text), encoding="utf-8", newline=newline)


def _read_rows(text: bytes, delimiter: str, *, strict: bool = True) -> Any:
    """Return a reader of rows of UTF-8 text by Python's rules."""
    return csv.reader(_open_text(text, ""), delimiter=delimiter, strict=strict)


def _cuts_evenly(text: bytes, delimiter: str) -> tuple[bool, bool, bool, int]:
    """Return how evenly a mark cuts the first rows, then into how many fields.

    A mark in the header ranks above a mark that cuts nothing.
    """
    try:
        rows = islice(_read_rows(text, delimiter, strict=False), _SNIFFED_ROWS)
        widths = [len(row) for row in rows if row] or [0]
    except csv.Error:
        return False, False, False, 0
    even = len(set(widths)) == 1
    several = widths[0] > 1
    return even and several, several, even, widths[0]


def _find_parts(
    path: str, text: bytes, delimiter: str, n_rows: int | None
) -> Iterator[tuple[Sequence[int], NDArray[np.object_]]]:
    """Yield where rows begin, and their cells (n, width): the header, then so many.

    Text without quotes is cut at its marks alone: Python's rules would cut it there
    too, in three times the time.
    """
    plain = b'"' not in text
    plain &= max(map(len, _open_text(text, None))) <= csv.field_size_limit()
    rows = _find_lines(text) if plain else _find_rows(path, text, delimiter)
    width, most = 0, 1
    while part := list(islice(rows, most or None)):
        lines, held = zip(*part, strict=True)
        sizes = [row.count(delimiter) + 1 if plain else len(row) for row in held]
        width, most = width or sizes[0], n_rows or 0
        for line, size in zip(lines, sizes, strict=True):
            if size != width:
                fields = count(size, "field")
                refuse(f"line {line} of {path} has {fields}, its header has {width}")
        if plain:
            joined = "".join(held).removesuffix("\n").replace("\n", delimiter)
            cells = np.array(joined.split(delimiter), dtype=object)
        else:
            cells = np.fromiter(chain.from_iterable(held), object)
        yield lines, cells.reshape(-1, width)


def _find_lines(text: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the lines that are not empty, and their numbers."""
    lines = enumerate(_open_text(text, None), 1)
    return ((number, line) for number, line in lines if line != "\n")


def _find_rows(path: str, text: bytes, delimiter: str) -> Iterator[tuple[int, Any]]:
    """Yield the line in which a row begins, and its fields, by Python's rules."""
    line, rows = 1, _read_rows(text, delimiter)
    with refusing(f"{path} is no proper table", csv.Error):
        for row in rows:
            if row:
                yield line, row
            line = rows.line_num + 1


def _share(cells: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return texts, equal ones as one object if the first show that many are equal."""
    first = cells[:_SNIFFED_CELLS].tolist()
    if len(set(first)) > len(first) // 2:
        return np.ascontiguousarray(cells)
    known = dict[str, str]()
    return np.fromiter(map(known.setdefault, cells, cells), object, len(cells))
