"""Raw tables: what stands in a file as a data frame, before anyone knows what it means.

Columns of a CSV are texts; those of other files keep their types. The index tells where
a row stands: it is called "line" or "row", and has the file before it where there are
several.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from localexpert.reading.files import (
    EXCEL,
    PARQUET,
    FileFormat,
    is_parquet,
    is_stream,
    name_input,
    read_bytes,
    read_text,
    refuse_size,
    unpack,
)
from localexpert.reading.formats import find_decimal
from localexpert.reading.messages import (
    count,
    list_names,
    load_module,
    load_pandas,
    refuse,
    refusing,
)

#: A data frame as it is read.
Frame: TypeAlias = Any

_DELIMITERS = (",", ";", "\t", "|")
_SNIFFED_ROWS = 20
# Letters of one field: longer ones are damage, as of a quote that is never closed.
_MOST_LETTERS = 131_072


def read_table(
    path: str, how: FileFormat | None = None, columns: Collection[str] | None = None
) -> Frame:
    """Return the whole table of a file: CSV, Parquet or Excel, plain or packed.

    Parameters
    ----------
    path : str
        "-" is standard input.
    how : FileFormat, optional
    columns : collection of str, optional
        Those that are wanted; `attrs["names"]` has all names that the file has.

    Returns
    -------
    pandas.DataFrame of shape (n, p)
    """
    return next(_read_parts(path, how or FileFormat(), columns, None))


def read_tables(
    paths: Sequence[str],
    how: FileFormat | None = None,
    columns: Collection[str] | None = None,
    n_rows: int | None = None,
) -> Iterator[Frame]:
    """Yield the tables of files one after another, whole or so many rows at a time.

    Of a plain Parquet file no more is read than a part needs. All of them are opened
    before any is read; those without rows are left out where others have some.
    """
    how = how or FileFormat()
    # What is wrong with the last one is told at once.
    empty = [
        path
        for path in paths
        if is_parquet(path) and not open_parquet(path, path, how, 1).metadata.num_rows
    ]
    if len(empty) < len(paths):
        paths = [path for path in paths if path not in empty]
    for path in paths:
        yield from _read_parts(path, how, columns, n_rows)


def join_tables(frames: Sequence[Frame], left_out: Collection[str] = ()) -> Frame:
    """Return the rows of several tables, each of which knows where it comes from.

    Columns have the order of the first; those that are `left_out` may differ and go.
    """
    if len(frames) == 1:
        return frames[0]
    first, paths = frames[0], [frame.attrs["path"] for frame in frames]
    for other in frames[1:]:
        for one, two in ((first, other), (other, first)):
            lacking = [c for c in two if c not in one and c not in left_out]
            if lacking:
                refuse(
                    f"{one.attrs['path']} has no column {list_names(lacking)}, which "
                    f"{two.attrs['path']} has"
                )
    marks = {frame.attrs.get("decimal") for frame in frames} - {None}
    if len(marks) > 1:
        refuse(
            f"some of {list_names(paths)} write decimal points and some commas; save "
            "them alike"
        )
    names = [name for name in first if name not in left_out]
    # Levels of an index must be unique; parts of one file follow each other.
    level = load_pandas().Index(paths, name="file")
    whole = load_pandas().concat(
        [frame[names].astype(_common_types(frames, names)) for frame in frames],
        keys=range(len(frames)),
    )
    unit = first.index.name or "row"
    whole.index = load_pandas().MultiIndex.from_arrays(
        [level.take(whole.index.codes[0]), whole.index.get_level_values(1)],
        names=["file", unit],
    )
    whole.attrs = {**first.attrs, "decimal": min(marks, default=None)}
    whole.attrs["path"] = paths[0] if len(set(paths)) == 1 else list_names(set(paths))
    return whole


def count_rows(paths: Sequence[str], how: FileFormat) -> int:
    """Return how many rows files have: of Parquet exactly, of CSV at most so many.

    A pipe, which can be read only once, counts as none.
    """
    total = 0
    for path in paths:
        if is_stream(path):
            continue
        file: Any = path
        if not is_parquet(path):
            data = unpack(path, read_bytes(path), how.max_unpacked)
            if data[:4] != PARQUET:
                # Less the header; blank lines are no rows of their own.
                total += max(data.count(b"\n"), data.count(b"\r"))
                total -= data.endswith((b"\n", b"\r"))
                continue
            file = io.BytesIO(data)
        total += int(open_parquet(path, file, how, 1).metadata.num_rows)
    return total


def open_parquet(path: str, file: Any, how: FileFormat, n_rows: int | None) -> Any:
    """Return a ParquetFile of a path or an open file, its footer read.

    What it unpacks to is bounded, or each row group where not all rows are to be read
    at once.
    """
    need = f'{path} is a Parquet file, which needs: pip install "localexpert[io]"'
    load_module("pyarrow", need)
    # A damaged file ends in errors of many classes, some of them pyarrow's own.
    with refusing(f"{path} is a damaged Parquet file", Exception):
        # Buffers of pages to come would be kept until the last row has been read.
        parquet = load_module("pyarrow.parquet", need)
        opened = parquet.ParquetFile(file, pre_buffer=False)
        told = opened.metadata
        groups = [told.row_group(i) for i in range(told.num_row_groups)]
        # A page may say in a few bytes that one value comes a thousand million times.
        sizes = [max(g.total_byte_size, 8 * g.num_rows * g.num_columns) for g in groups]
    if (sum(sizes) if n_rows is None else max(sizes, default=0)) > how.max_unpacked:
        refuse_size(path, how.max_unpacked)
    return opened


def _read_parts(
    path: str, how: FileFormat, columns: Collection[str] | None, n_rows: int | None
) -> Iterator[Frame]:
    """Yield the table of a file in parts, or whole."""
    if is_parquet(path):
        # Not read before it is asked for, row group by row group.
        file = open_parquet(path, path, how, n_rows)
        return _parse_parquet(path, file, columns, n_rows)
    data = unpack(name_input(path), read_bytes(path), how.max_unpacked)
    path = name_input(path)
    if data[:4] == PARQUET:
        file = open_parquet(path, io.BytesIO(data), how, n_rows)
        return _parse_parquet(path, file, columns, n_rows)
    if data[:4] == EXCEL:
        return _parse_excel(path, data, columns, n_rows)
    text = read_text(path, data, how.encoding)
    return _parse_text(path, text, how, columns, n_rows)


def _finish(
    path: str,
    frame: Frame,
    names: Sequence[str],
    unit: str,
    places: NDArray[Any],
    **more: Any,
) -> Frame:
    """Return a frame that knows its names and where its rows stand."""
    frame.index = load_pandas().Index(places, name=unit)
    frame.attrs = {"path": path, "names": tuple(names), **more}
    return frame


def _choose(names: Sequence[str], columns: Collection[str] | None) -> list[int]:
    """Return which columns are wanted; without any, no rows would be read."""
    return [j for j, n in enumerate(names) if columns is None or n in columns] or [0]


def _name_columns(path: str, header: Sequence[Any]) -> list[str]:
    """Return the names in a header; blank ones are numbered."""
    names = [str(name).strip() or f"column {j + 1}" for j, name in enumerate(header)]
    several = sorted({name for name in names if names.count(name) > 1})
    if several:
        refuse(f"{path} has several columns of one name: {list_names(several)}")
    return names


# Texts


def _parse_text(
    path: str,
    text: bytes,
    how: FileFormat,
    columns: Collection[str] | None,
    n_rows: int | None,
) -> Iterator[Frame]:
    """Yield the table of a delimited text in UTF-8."""
    delimiter = how.delimiter or _sniff_delimiter(text)
    header, lines = _find_rows(path, text, delimiter)
    names = _name_columns(path, header)
    chosen = _choose(names, columns)
    # Texts as Python objects: pandas' own kind of texts takes twice as long. Blank
    # lines and the header are read as well, so that rows are counted as here.
    reader = load_pandas().read_csv(
        io.BytesIO(text.lstrip(b"\r\n")),
        engine="c" if delimiter.isascii() else "python",
        sep=delimiter,
        header=None,
        names=range(len(names)),
        usecols=chosen,
        index_col=False,
        dtype=object,
        na_filter=False,
        skip_blank_lines=False,
        chunksize=n_rows or len(lines),
    )
    decimal = how.decimal
    with reader:
        for frame in reader:
            # Rows are numbered on from part to part.
            here = lines[frame.index]
            part = frame[here > 0]
            if len(part):
                part.columns = [names[j] for j in chosen]
                decimal = decimal or find_decimal(part[name] for name in part)
                more = {"delimiter": delimiter, "decimal": decimal}
                yield _finish(path, part, names, "line", here[here > 0], **more)


def _sniff_delimiter(text: bytes) -> str:
    """Return the delimiter that cuts the first rows most evenly, then most often."""

    def evenness(delimiter: str) -> tuple[bool, bool, int]:
        try:
            rows = islice(_read_rows(text, delimiter, strict=False), _SNIFFED_ROWS)
            widths = [len(row) for row in rows if row]
        except csv.Error:
            return False, False, 0
        even = len(set(widths)) == 1
        return even and widths[0] > 1, even, widths[0] if widths else 0

    return max(_DELIMITERS, key=evenness)


def _find_rows(
    path: str, text: bytes, delimiter: str
) -> tuple[list[str], NDArray[np.intp]]:
    """Return the header, and the line in which each row from it on begins.

    pandas tells no lines, and fills short rows. The header and blank lines below it
    count as rows of line 0.
    """
    plain = b'"' not in text and b"\r" not in text and len(delimiter.encode()) == 1
    find = _scan_plain if plain else _scan_quoted
    header, lines, widths = find(path, text, delimiter)
    wrong = np.flatnonzero((widths != len(header)) & (lines > 0))
    if len(wrong):
        fields = count(int(widths[wrong[0]]), "field")
        refuse(
            f"line {lines[wrong[0]]} of {path} has {fields}, its header has "
            f"{len(header)}"
        )
    if not lines.any():
        refuse(f"{path} has a header but no rows")
    return header, lines


_Rows: TypeAlias = tuple[list[str], NDArray[np.intp], NDArray[np.intp]]


def _scan_plain(path: str, text: bytes, delimiter: str) -> _Rows:
    """Return header, lines and widths of rows of a text without quotes."""
    letters = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    if not text.endswith(b"\n"):
        ends = np.append(ends, len(text))
    marks = np.flatnonzero(letters == ord(delimiter))
    lengths = np.diff(ends, prepend=-1) - 1
    if lengths.max() > _MOST_LETTERS:
        fields = np.diff(np.union1d(marks, ends))
        if len(fields) == 0 or fields.max() > _MOST_LETTERS:
            line = int(np.argmax(lengths)) + 1
            refuse(f"{path} has a cell of more than {_MOST_LETTERS} letters in {line=}")
    widths = np.diff(np.searchsorted(marks, ends), prepend=0) + 1
    (filled,) = np.nonzero(lengths)
    first = filled[0]
    begin = ends[first] - lengths[first]
    header = text[begin : ends[first]].decode().split(delimiter)
    lines = np.zeros(len(ends), dtype=np.intp)
    lines[filled[1:]] = filled[1:] + 1
    return header, lines[first:], widths[first:]


def _scan_quoted(path: str, text: bytes, delimiter: str) -> _Rows:
    """Return header, lines and widths of rows by Python's own rules."""
    reader = _read_rows(text, delimiter, strict=True)
    header: list[str] = []
    lines, widths, line = [], [], 1
    try:
        for row in reader:
            if header or row:
                lines.append(line if header and row else 0)
                widths.append(len(row))
            header = header or row
            line = reader.line_num + 1
    except csv.Error as error:
        refuse(f"{path} is no proper table: {error} (line {reader.line_num})")
    return header, np.array(lines, dtype=np.intp), np.array(widths, dtype=np.intp)


def _read_rows(text: bytes, delimiter: str, *, strict: bool) -> Any:
    """Return a reader of rows of UTF-8 text by Python's own rules."""
    stream = io.TextIOWrapper(io.BytesIO(text), encoding="utf-8", newline="")
    return csv.reader(stream, delimiter=delimiter, strict=strict)


# Files that know types


def _parse_parquet(
    path: str, file: Any, columns: Collection[str] | None, n_rows: int | None
) -> Iterator[Frame]:
    """Yield the table of a ParquetFile, only of columns that are wanted."""
    damaged = f"{path} is a damaged Parquet file"
    with refusing(damaged, Exception):
        told = (file.schema_arrow.pandas_metadata or {}).get("index_columns", ())
        # What pandas numbers rows by is no column.
        held = [name for name in file.schema_arrow.names if name not in map(str, told)]
    if not held or not file.metadata.num_rows:
        refuse(f"{path} has no rows")
    names = _name_columns(path, held)
    chosen = [held[j] for j in _choose(names, columns)]
    start = 1
    batches = iter([None]) if n_rows is None else _batches(file, n_rows, chosen)
    while True:
        with refusing(damaged, Exception):
            batch = next(batches, "end")
            if batch == "end":
                return
            arrow = file.read(columns=chosen) if batch is None else batch
            frame = _as_frame(arrow)
        if len(frame):
            places = np.arange(start, start + len(frame))
            start += len(frame)
            frame.columns = [names[held.index(name)] for name in chosen]
            yield _finish(path, frame, names, "row", places)


def _batches(file: Any, n_rows: int, columns: list[str]) -> Iterator[Any]:
    table = load_module("pyarrow", "").Table
    for batch in file.iter_batches(batch_size=n_rows, columns=columns):
        yield table.from_batches([batch])


def _as_frame(arrow: Any) -> Frame:
    """Return a table of Arrow as a frame that keeps its types."""
    pandas, types = load_pandas(), load_module("pyarrow.types", "")
    for place, kind in enumerate(arrow.schema.types):
        if types.is_dictionary(kind):
            flat = arrow.column(place).cast(kind.value_type)
            arrow = arrow.set_column(place, arrow.column_names[place], flat)
    return arrow.to_pandas(types_mapper=pandas.ArrowDtype, ignore_metadata=True)


def _common_types(frames: Sequence[Frame], names: Sequence[str]) -> dict[str, Any]:
    """Return the type of each column that all frames can have: objects if unlike."""
    kinds = {name: {frame[name].dtype for frame in frames} for name in names}
    return {n: next(iter(k)) if len(k) == 1 else object for n, k in kinds.items()}


def _parse_excel(
    path: str, data: bytes, columns: Collection[str] | None, n_rows: int | None
) -> Iterator[Frame]:
    """Yield the first sheet of an Excel file, its cells as they are."""
    need = f'{path} is an Excel file, which needs: pip install "localexpert[excel]"'
    load_module("openpyxl", need)
    with refusing(f"{path} is a damaged Excel file", Exception):
        sheet = load_pandas().read_excel(
            io.BytesIO(data),
            header=None,
            dtype=object,
            na_filter=False,
            engine="openpyxl",
        )
    filled = np.flatnonzero((sheet != "").any(axis=1))
    if len(filled) < 2:
        refuse(f"{path} has no rows")
    names = _name_columns(path, list(sheet.iloc[filled[0]]))
    chosen = _choose(names, columns)
    rows = filled[1:]
    for start in range(0, len(rows), n_rows or len(rows)):
        here = rows[start : start + (n_rows or len(rows))]
        frame = sheet.iloc[here, chosen]
        frame.columns = [names[j] for j in chosen]
        yield _finish(path, frame, names, "row", here + 1)
