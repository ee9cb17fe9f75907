"""Output: lines on stderr, and files, which are written whole or not at all.

Tables are text, Parquet or Excel; the name of the file says which. By default text has
the delimiter and the decimal mark of the input. Options may change them.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    contextmanager,
    suppress,
)
from decimal import Decimal
from pathlib import Path, PurePath
from typing import IO, Any, TypeAlias

import numpy as np

from calibration.storage import replacing_file, writable_file
from localexpert.reading.columns import as_texts
from localexpert.reading.texts import count, holds_texts, load_module, refuse, refusing

#: Writes a frame, the next part of a table.
Write: TypeAlias = Callable[[Any], None]

_TEXT = ("", ".csv", ".tsv", ".csv.gz", ".tsv.gz")
_NEEDS = {".parquet": ("pyarrow.parquet", "io"), ".xlsx": ("openpyxl", "excel")}
# Rows of a sheet, its header among them; digits that its numbers have.
_MOST_ROWS, _MOST_EXACT = 2**20, 10**15
# The name of standard output.
STDOUT = "-"
_NAMES_OF_STDOUT = (STDOUT, "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


# Lines on stderr beside the results


def warn(message: str) -> None:
    """Print a warning."""
    note(f"warning: {message}")


def note(message: str) -> None:
    """Print what was done without being asked for."""
    # Names out of a file may hold line breaks.
    _print_line(f"localexpert: {' '.join(message.split())}")


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


def write_out(text: str) -> None:
    """Write to standard output in UTF-8, whatever the terminal's encoding is."""
    _send(io.BytesIO(text.encode("utf-8", "backslashreplace")))


def _send(file: IO[bytes]) -> None:
    """Write a file to standard output."""
    if sys.stdout is None:
        refuse("cannot write to standard output: it is closed")
    with refusing("cannot write to standard output", OSError):
        try:
            sys.stdout.flush()
            shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.flush()
        except OSError:
            # The rest of the output must not fail again at the end.
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
            raise


# Files


def name_stdout(text: str) -> str:
    """Return where an option says that tables go.

    All names of standard output become one. If it is a file, the file may be one that
    grows, and must not be replaced.
    """
    return STDOUT if text in _NAMES_OF_STDOUT else text


def check_file(path: str, option: str, others: Sequence[str] = ()) -> None:
    """Refuse a path that cannot be written, or that the command already uses."""
    if path == STDOUT:
        refuse(f"{option} must be a file")
    with refusing(f"cannot write {option} {path!r}", OSError, ValueError):
        target = writable_file(path)
        clash = next((name for name in others if _is_same(target, name)), None)
    if clash is not None:
        refuse(f"{option} {path!r} is the same file as {clash!r}")


def check_table(path: str, others: Sequence[str]) -> None:
    """Refuse an --out to which no table can be written."""
    ending = _ending(path)
    if path == STDOUT:
        return
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
    check_file(path, "--out", others)


def _ending(path: str) -> str:
    """Return .csv or .csv.gz, in small letters."""
    name = PurePath(path.lower())
    return "".join(name.suffixes[-2:]) if name.suffix == ".gz" else name.suffix


def _is_same(target: Path, name: str) -> bool:
    if target.exists() and os.path.exists(name):
        return target.samefile(name)
    return os.path.realpath(name) == str(target)


def write_table(options: Any, noun: str, parts: Iterable[Any]) -> None:
    """Write a table to --out part by part; it is there whole or not at all.

    Parameters
    ----------
    options : Namespace
        With `out`, a file whose name says how it is written, or standard output; and
        with what may be known of the text.
    noun : str
        What a row is.
    parts : iterable of pandas.DataFrame
        Rows with the same columns every time, which know by `attrs` how the input is
        written.
    """
    path, n_rows = options.out, 0
    where = "standard output" if path == STDOUT else f"--out {path!r}"
    with refusing(f"cannot write {where}", OSError), ExitStack() as stack:
        if path == STDOUT:
            # Nothing that was sent can be taken back.
            whole = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "table"
        else:
            whole = stack.enter_context(replacing_file(Path(path)))
        with ExitStack() as table:
            write: Write | None = None
            for frame in parts:
                if write is None:
                    write = table.enter_context(_open(whole, options, frame.attrs))
                write(_rounded(frame, options))
                n_rows += len(frame)
        if path == STDOUT:
            with whole.open("rb") as file:
                _send(file)
    if path != STDOUT:
        note(f"wrote {count(n_rows, noun)} to {path}")


def _rounded(frame: Any, options: Any) -> Any:
    """Return a frame whose floats have so many digits, but for those that are kept."""
    digits = getattr(options, "digits", None)
    if digits is None:
        return frame
    kept = getattr(options, "keep", ())
    floats = frame.drop(columns=list(kept)).select_dtypes(np.float64)
    texts = floats.apply(lambda column: column.map(f"{{:.{digits}g}}".format))
    return frame.assign(**texts.astype(np.float64))


# How tables are written


def _open(
    path: Path, options: Any, marks: dict[Any, Any]
) -> AbstractContextManager[Write]:
    """Return what writes a table of the name in --out to a file, part by part."""
    ending = _ending(options.out)
    if ending == ".parquet":
        return _write_parquet(path)
    if ending == ".xlsx":
        return _write_excel(path)
    mark = options.delimiter or marks.get("delimiter", ",")
    how = {
        "sep": "\t" if ending.startswith(".tsv") else mark,
        "decimal": options.decimal or marks.get("decimal") or ".",
        "index": False,
        "lineterminator": "\n",
    }
    return _write_text(path, how, packed=ending.endswith(".gz"))


@contextmanager
def _write_text(path: Path, how: dict[str, Any], *, packed: bool) -> Iterator[Write]:
    """Write delimited text, perhaps packed by gzip."""
    with ExitStack() as stack:
        stream: Any = stack.enter_context(path.open("wb"))
        if packed:
            # No time and no name, so that the same table gives the same file.
            packing = gzip.GzipFile("", "wb", fileobj=stream, mtime=0)
            stream = stack.enter_context(packing)

        def write(frame: Any) -> None:
            form = {**how, "header": not stream.tell()}
            frame = _marked(frame, how["decimal"])
            text = frame.to_csv(**form)
            if "\r" in text:
                # pandas quotes only cells that hold our own end of a line.
                text = frame.to_csv(quoting=csv.QUOTE_ALL, **form)
            stream.write(text.encode("utf-8", "backslashreplace"))

        yield write


def _marked(frame: Any, decimal: str) -> Any:
    """Return a frame with the decimal mark in objects too, such as cells of Excel."""

    def mark(cell: Any) -> Any:
        is_number = isinstance(cell, float | Decimal)
        return str(cell).replace(".", decimal) if is_number else cell

    held = {name: frame[name] for name in frame if frame[name].dtype.kind == "O"}
    if decimal == "." or not held:
        return frame
    texts = {n: c.astype(object).map(mark, na_action="ignore") for n, c in held.items()}
    return frame.assign(**texts)


@contextmanager
def _write_parquet(path: Path) -> Iterator[Write]:
    """Write row groups; columns of texts stay texts, with gaps as null."""
    arrow, parquet = (load_module(f"pyarrow{name}", "") for name in ("", ".parquet"))

    def convert(column: Any) -> Any:
        if not holds_texts(column.dtype):
            held = arrow.array(column, from_pandas=True)
            # Parts with other categories would have another type.
            if arrow.types.is_dictionary(held.type):
                held = held.cast(held.type.value_type)
            return held.cast("string") if held.type == arrow.null() else held
        return arrow.array([text or None for text in as_texts(column)], "string")

    def fit_to(schema: Any, name: str, held: Any) -> Any:
        """Return a column of a later part in the type of the first, unchanged."""
        kind = schema.field(name).type
        if held.type == kind:
            return held
        with suppress(arrow.ArrowInvalid, arrow.ArrowNotImplementedError):
            made = held.cast(kind)
            if made.cast(held.type).equals(held):
                return made
        return refuse(f"column {name!r} holds {held.type} after {kind}: save it alike")

    with ExitStack() as stack:
        opened: list[Any] = []

        def write(frame: Any) -> None:
            held = {name: convert(frame[name]) for name in frame}
            if not opened:
                writer = parquet.ParquetWriter(path, arrow.table(held).schema)
                opened.append(stack.enter_context(writer))
            schema = opened[0].schema
            held = {name: fit_to(schema, name, held[name]) for name in held}
            opened[0].write_table(arrow.table(held, schema=schema))

        yield write


@contextmanager
def _write_excel(path: Path) -> Iterator[Write]:
    """Write a sheet: Excel shows numbers and days as its user wants."""
    excel, n_rows = load_module("openpyxl", ""), 0
    book = excel.Workbook(write_only=True)
    sheet = book.create_sheet("forecasts")

    def convert(value: Any) -> Any:
        """Return what a cell holds: no text is a formula, no key loses digits."""
        if value is None or (isinstance(value, str) and not value):
            return None
        is_number = isinstance(value, float | int) and np.isfinite(value)
        if is_number and (isinstance(value, float) or abs(value) < _MOST_EXACT):
            return value
        if hasattr(value, "isoformat") and getattr(value, "tzinfo", None) is None:
            return value
        illegal = excel.cell.cell.ILLEGAL_CHARACTERS_RE
        cell = excel.cell.WriteOnlyCell(sheet)
        cell.value, cell.data_type = illegal.sub("?", str(value)), "s"
        return cell

    def write(frame: Any) -> None:
        nonlocal n_rows
        known = frame.astype(object).where(frame.notna(), None)
        held = known.itertuples(index=False, name=None)
        rows = [*([] if n_rows else [list(frame)]), *held]
        n_rows += len(rows)
        if n_rows > _MOST_ROWS:
            refuse(f"a sheet of Excel has at most {_MOST_ROWS:,} rows: write a .csv")
        for row in rows:
            sheet.append([convert(value) for value in row])

    with closing(sheet):
        yield write
    book.save(path)
