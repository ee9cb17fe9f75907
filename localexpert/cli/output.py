"""What is written: lines on stderr, and files, whole or not at all.

Tables are text, Parquet or Excel, which the name of their file says.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import IO, Any

import numpy as np

from calibration.storage import replacing_file, writable_file
from localexpert.reading import formats
from localexpert.reading.columns import as_texts
from localexpert.reading.messages import count, load_module, refuse, refusing

_TEXT = ("", ".csv", ".tsv", ".csv.gz", ".tsv.gz")
_NEEDS = {".parquet": ("pyarrow.parquet", "io"), ".xlsx": ("openpyxl", "excel")}
# Rows of a sheet, its header among them; digits that its numbers have.
_MOST_ROWS, _MOST_EXACT = 2**20, 10**15
# The name of standard output.
STDOUT = "-"
_NAMES_OF_STDOUT = (STDOUT, "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


# What is said beside the results, a line each on stderr


def warn(message: str) -> None:
    """Print a warning."""
    note(f"warning: {message}")


def note(message: str) -> None:
    """Print what was done without being asked for."""
    # Names out of a file may hold line breaks.
    _print_line(f"localexpert: {' '.join(message.split())}")


def complain(message: str) -> None:
    """Print the error that ends a command."""
    note(f"error: {message}")


def show_table(text: str) -> None:
    """Print lines that are laid out, after an empty one."""
    for line in ["", *text.splitlines()]:
        _print_line(line)


def _print_line(line: str) -> None:
    if sys.stderr is None:
        return
    # They may hold what no terminal can show, too.
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    line = line.encode(encoding, "backslashreplace").decode(encoding)
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        # The results are worth more than what is said beside them.
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


# Files


def read_out(text: str) -> str:
    """Return where an option says that tables go.

    The names of standard output are one: where it is a file, it may be one that is to
    grow, and must not be replaced.
    """
    return STDOUT if text in _NAMES_OF_STDOUT else text


def check_file(path: str, option: str, others: Sequence[str] = ()) -> None:
    """Refuse a path that is no file which can be written, or another of the command."""
    if path == STDOUT:
        refuse(f"{option} must be a file")
    with refusing(f"cannot write {option} {path!r}", OSError, ValueError):
        target = writable_file(path)
        clash = next((name for name in others if _is_same(target, name)), None)
    if clash is not None:
        refuse(f"{option} {path!r} is the same file as {clash!r}")


def check_table(path: str, others: Sequence[str]) -> None:
    """Refuse an --out to which no table can be written: devices and pipes are good."""
    if path == STDOUT:
        return
    check_format(path)
    if not _is_stream(path):
        check_file(path, "--out", others)


def _is_same(target: Path, name: str) -> bool:
    if target.exists() and os.path.exists(name):
        return target.samefile(name)
    return os.path.realpath(name) == str(target)


def _is_stream(path: str) -> bool:
    """Return whether a path is a device or pipe, which no file may replace."""
    with suppress(OSError, ValueError):
        mode = os.stat(path).st_mode
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    return False


def write_table(path: str, noun: str, parts: Iterable[tuple[Any, Conventions]]) -> None:
    """Write a table part by part; it is there whole or not at all.

    Parameters
    ----------
    path : str
        Of a file, whose name says how it is written, a device, or standard output.
    noun : str
        What a row is.
    parts : iterable of (pandas.DataFrame, Conventions)
        Rows with the same columns every time; conventions are those of the first.
    """
    where = "standard output" if path == STDOUT else f"--out {path!r}"
    is_copied, n_rows = path == STDOUT or _is_stream(path), 0
    writer: Any = None
    with refusing(f"cannot write {where}", OSError), ExitStack() as stack:
        if is_copied:
            # Nothing that was sent to a stream can be taken back.
            whole = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "table"
        else:
            whole = stack.enter_context(replacing_file(Path(path)))
        try:
            for frame, how in parts:
                writer = writer or make_writer(path, whole, how)
                writer.write(frame)
                n_rows += len(frame)
        except BaseException:
            with suppress(Exception):
                writer.close()
            raise
        writer.close()
        if is_copied:
            with whole.open("rb") as file:
                _send(file, path)
    if path != STDOUT:
        note(f"wrote {count(n_rows, noun)} to {path}")


def write_out(text: str) -> None:
    """Write to standard output in UTF-8, whatever the terminal's encoding is."""
    _send(io.BytesIO(text.encode("utf-8", "backslashreplace")))


def _send(file: IO[bytes], path: str = STDOUT) -> None:
    """Write a file to standard output, or to a device or pipe."""
    if path != STDOUT:
        with open(path, "wb") as out:
            shutil.copyfileobj(file, out)
        return
    if sys.stdout is None:
        refuse("cannot write to standard output: it is closed")
    with refusing("cannot write to standard output", OSError):
        try:
            sys.stdout.flush()
            shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.flush()
        except OSError:
            # What is still to be written must not fail again at the end.
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
            raise


# How tables are written


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
    if ending.startswith(".tsv"):
        how = replace(how, delimiter="\t")
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
    texts = floats.apply(lambda column: column.map(f"{{:.{digits}g}}".format))
    return frame.assign(**texts.astype(np.float64))


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
    """Row groups; columns of texts stay texts, with gaps as null."""

    def __init__(self, path: Path) -> None:
        self.path, self.arrow = path, load_module("pyarrow", "")
        self.writer: Any = None

    def write(self, frame: Any) -> None:
        table = self.arrow.table({name: self._column(frame[name]) for name in frame})
        if self.writer is None:
            parquet = load_module("pyarrow.parquet", "")
            self.writer = parquet.ParquetWriter(self.path, table.schema)
        self.writer.write_table(table)

    def _column(self, column: Any) -> Any:
        if not formats.holds_texts(column.dtype):
            return self.arrow.array(column, from_pandas=True)
        texts = [text or None for text in as_texts(column)]
        return self.arrow.array(texts, "string")

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


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
        for row in _rounded(frame, self.digits).itertuples(index=False, name=None):
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
