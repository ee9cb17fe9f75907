"""Tables as text, Parquet or Excel, which the name of their file says."""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import IO, Any

import numpy as np

from localexpert.reading.messages import load_module, load_pandas, refuse

_TEXT = ("", ".csv", ".tsv", ".csv.gz", ".tsv.gz")
_NEEDS = {".parquet": ("pyarrow.parquet", "io"), ".xlsx": ("openpyxl", "excel")}
# Rows of a sheet, its header among them; digits that its numbers have.
_MOST_ROWS, _MOST_EXACT = 2**20, 10**15
# What texts of a CSV are in Parquet, if all cells of a column are.
_KINDS = {
    "int64": r"0|-?[1-9]\d{0,18}",
    "double": r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?([eE][+-]?\d{1,2})?",
    "bool": r"(?i:true|false)",
    "date32": r"\d{4}-\d\d-\d\d",
    "timestamp[us]": r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?",
}


@dataclass(frozen=True)
class Conventions:
    """How numbers and fields are written as text: as those of the input are.

    Parameters
    ----------
    delimiter, decimal : str
    digits : int or None
        That count, of numbers of ours; None: all, so that reading gives the same bits.
    """

    delimiter: str = ","
    decimal: str = "."
    digits: int | None = None

    @classmethod
    def of(cls, options: Any, frame: Any, digits: int | None = None) -> Conventions:
        """Return those of a table that was read, or of the options."""
        mark = options.delimiter or frame.attrs.get("delimiter", ",")
        decimal = options.decimal or frame.attrs.get("decimal") or "."
        return cls(mark, decimal, digits)


def check_format(path: str) -> None:
    """Refuse a name that does not say how a table is written."""
    ending = _ending(path)
    if ending in _NEEDS:
        module, extra = _NEEDS[ending]
        needed = module.partition(".")[0]
        need = f'--out {path!r} needs {needed}: pip install "localexpert[{extra}]"'
        load_module(module, need)
    elif ending not in _TEXT:
        refuse(
            "--out must end in .csv, .tsv, .csv.gz, .tsv.gz, .parquet or .xlsx, which "
            f"says how the table is written, got {path!r}"
        )


def make_writer(name: str, path: Path, how: Conventions) -> Any:
    """Return what writes a table of this name to a file, part by part."""
    ending = _ending(name)
    if ending == ".parquet":
        return _ParquetWriter(path)
    if ending == ".xlsx":
        return _ExcelWriter(path, how)
    mark = "\t" if ending.startswith(".tsv") else how.delimiter
    how = Conventions(mark, how.decimal, how.digits)
    return _TextWriter(path, how, packed=ending.endswith(".gz"))


def _ending(path: str) -> str:
    """Return .csv or .csv.gz, in small letters."""
    name = PurePath(path.lower())
    return "".join(name.suffixes[-2:]) if name.suffix == ".gz" else name.suffix


def _rounded(frame: Any, digits: int | None) -> Any:
    """Return a frame whose floats have so many digits."""
    if digits is None:
        return frame
    floats = frame.select_dtypes(np.float64)
    return frame.assign(
        **{
            name: floats[name].map(f"{{:.{digits}g}}".format).map(float)
            for name in floats
        }
    )


class _TextWriter:
    """Delimited text, perhaps packed by gzip."""

    def __init__(self, path: Path, how: Conventions, *, packed: bool) -> None:
        self.how, self.begun = how, False
        self.file: IO[bytes] = path.open("wb")
        self.stream: Any = self.file
        if packed:
            # Without the time and the name, so that the same table gives the same file.
            self.stream = gzip.GzipFile("", "wb", fileobj=self.file, mtime=0)

    def write(self, frame: Any) -> None:
        how = {
            "sep": self.how.delimiter,
            "decimal": self.how.decimal,
            "index": False,
            "header": not self.begun,
            "lineterminator": "\n",
        }
        frame = _rounded(frame, self.how.digits)
        text = frame.to_csv(**how)
        if "\r" in text:
            # Of line breaks only those that end a line of ours are seen as such.
            text = frame.to_csv(quoting=csv.QUOTE_ALL, **how)
        self.stream.write(text.encode("utf-8", "backslashreplace"))
        self.begun = True

    def close(self) -> None:
        self.stream.close()
        self.file.close()


class _ParquetWriter:
    """Row groups; with texts, whose kind all rows say, the whole table at the end."""

    def __init__(self, path: Path) -> None:
        self.path, self.kept = path, list[Any]()
        self.writer: Any = None

    def write(self, frame: Any) -> None:
        if self.kept or "object" in map(str, frame.dtypes):
            self.kept.append(frame)
            return
        self._add(
            load_module("pyarrow", "").Table.from_pandas(frame, preserve_index=False)
        )

    def close(self) -> None:
        if self.kept:
            arrow, frame = (
                load_module("pyarrow", ""),
                load_pandas().concat(self.kept),
            )
            self._add(arrow.table({name: _typed(frame[name], arrow) for name in frame}))
        if self.writer is not None:
            self.writer.close()

    def _add(self, table: Any) -> None:
        parquet = load_module("pyarrow.parquet", "")
        if self.writer is None:
            self.writer = parquet.ParquetWriter(self.path, table.schema)
        self.writer.write_table(table)


def _typed(column: Any, arrow: Any) -> Any:
    """Return a column for Parquet: texts as what all of them are, gaps as null."""
    if column.dtype != object:
        return arrow.array(column, from_pandas=True)
    texts = column.astype(str)
    filled = texts[texts != ""]
    array = arrow.array(texts.where(texts != "", None), arrow.string())
    for kind, pattern in _KINDS.items():
        if len(filled) and filled.str.fullmatch(pattern).all():
            try:
                return array.cast(arrow.type_for_alias(kind))
            except arrow.ArrowInvalid:  # no day of the calendar
                break
    return array


class _ExcelWriter:
    """A sheet, which needs no conventions: Excel shows numbers as its user wants."""

    def __init__(self, path: Path, how: Conventions) -> None:
        self.path, self.digits, self.n_rows = path, how.digits, 0
        self.excel = load_module("openpyxl", "")
        self.book = self.excel.Workbook(write_only=True)
        self.sheet = self.book.create_sheet("forecasts")

    def write(self, frame: Any) -> None:
        if not self.n_rows:
            self._add(list(frame))
        if self.n_rows + len(frame) > _MOST_ROWS:
            refuse(f"a sheet of Excel has at most {_MOST_ROWS:,} rows: write a .csv")
        columns = [_rounded(frame, self.digits)[name].tolist() for name in frame]
        for row in zip(*columns, strict=True):
            self._add(row)

    def _add(self, row: Any) -> None:
        self.sheet.append([self._cell(value) for value in row])
        self.n_rows += 1

    def _cell(self, value: Any) -> Any:
        """Return what a cell holds: no text is a formula, no key loses digits."""
        if value is None or value != value or value == "":  # noqa: PLR0124 - NaN
            return None
        is_number = isinstance(value, float | int) and np.isfinite(value)
        if is_number and (isinstance(value, float) or abs(value) < _MOST_EXACT):
            return value
        if hasattr(value, "isoformat") and getattr(value, "tzinfo", None) is None:
            return value
        illegal = self.excel.cell.cell.ILLEGAL_CHARACTERS_RE
        cell = self.excel.cell.WriteOnlyCell(self.sheet)
        cell.value = illegal.sub("?", str(value))
        cell.data_type = "s"
        return cell

    def close(self) -> None:
        self.book.save(self.path)
