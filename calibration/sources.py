"""Tables larger than memory, as parts that are read one at a time.

`open_parts` opens frames, functions, files and Dask's collections. `summarize` makes a
summary of their scores.
"""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeVar
from zipfile import BadZipFile

from joblib import Parallel, delayed

from calibration._validation import check_integer, check_n_jobs, refuse
from calibration.summary import ScoreSummary

CSV = (".csv", ".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zip", ".csv.zst")
PARQUET = ".parquet"

_FRAMES = "return an iterator of pandas data frames"
_DAMAGE = (ValueError, OSError, EOFError, zlib.error, lzma.LZMAError, BadZipFile)


def find_parquet(folder: Path) -> list[Path]:
    """Return the Parquet files in a folder and below it, in the order of their names.

    Files and folders whose names begin with a dot or underscore are no data. Engines
    and editors leave marks such as _metadata.parquet and folders such as _temporary.
    """
    return [
        file
        for file in sorted(folder.rglob(f"*{PARQUET}"))
        if file.is_file()
        and not any(part[0] in "_." for part in file.relative_to(folder).parts)
    ]


def find_files(given: Any) -> list[Path]:
    """Return a file, or the Parquet files of a folder in the order of their names.

    Parameters
    ----------
    given : path

    Returns
    -------
    list of Path
    """
    if not isinstance(given, str | PathLike):
        refuse("parts", "list paths or frames alone", type(given).__name__, TypeError)
    path, known = Path(given), (*CSV, PARQUET)
    if path.is_dir():
        if not (files := find_parquet(path)):
            refuse("parts", "be a folder with Parquet files", f"{path} with none")
        return files
    if not path.name.lower().endswith(known):
        listed = ", ".join(known)
        refuse("parts", f"be files that end in one of {listed}", path)
    if not path.is_file():
        refuse("parts", "be files that exist", path, FileNotFoundError)
    return [path]


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """If a file is damaged, say in one line which file it is."""
    try:
        yield
    except _DAMAGE as error:
        said = str(error).partition("\n")[0].rstrip(". ")
        rule = "be whole files"
        refuse("parts", rule, f"{name}, which is no such one: {said}", cause=error)


def _read_csv(
    path: Path, most: int, columns: Sequence[str] | None
) -> Iterator[tuple[str, Any]]:
    """Yield runs of lines. If a column is text in the first run, it is text in all."""
    import pandas as pd

    how: dict[str, Any] = {"chunksize": most, "low_memory": False}
    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):
        # The hash of a row must not depend on the kind of its file. Later versions
        # ensure this.
        how["float_precision"] = "round_trip"
    if columns is not None:
        wanted = frozenset(columns)
        how["usecols"] = lambda name: name in wanted
    with _naming(path.name):
        names = pd.read_csv(path, header=None, nrows=1, dtype=str, na_filter=False)
        with pd.read_csv(path, **how) as chunks:
            first = next(iter(chunks))
    # If two columns have one name, pandas would rename the second.
    check_unique(names.iloc[0][lambda name: name != ""], path.name)
    # If rows are longer than the header, pandas would take the first column for row
    # names.
    if not isinstance(first.index, pd.RangeIndex):
        got = f"{path.name}, whose first row below the header has more"
        refuse("parts", "have no more fields in a row than in the header", got)
    with _naming(path.name):
        others = first.select_dtypes(exclude=["number", "bool"]).items()
        # Truth values must stay so, even if there are gaps among them.
        kinds = {name: pd.api.types.infer_dtype(column) for name, column in others}
        texts = {name: "str" for name, kind in kinds.items() if kind != "boolean"}
        with pd.read_csv(path, **how, dtype=texts) as chunks:
            start = 1
            for frame in chunks:
                whole = start == 1 and len(frame) < most
                yield path.name if whole else f"{path.name}, rows from {start}", frame
                start += len(frame)


def _read_parquet(
    path: Path, most: int, columns: Sequence[str] | None
) -> Iterator[tuple[str, Any]]:
    """Yield functions that read runs of row groups."""
    from pyarrow.parquet import ParquetFile

    with _naming(path.name), ParquetFile(path) as file:
        meta, held = file.metadata, file.schema_arrow.names
        counts = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
    wanted = None if columns is None else [name for name in columns if name in held]
    runs: list[list[int]] = []
    for place, count in enumerate(counts):
        if not runs or sum(counts[i] for i in runs[-1]) + count > most:
            runs.append([])
        runs[-1].append(place)
    for run in runs:
        part = f", row groups {run[0]}-{run[-1]}" if len(runs) > 1 else ""
        yield f"{path.name}{part}", partial(_read_groups, path, run, wanted)


def _read_groups(path: Path, groups: list[int], columns: list[str] | None) -> Any:
    """Return some row groups, with the index that pandas has written."""
    from pyarrow.parquet import ParquetFile

    with _naming(path.name), ParquetFile(path) as file:
        return file.read_row_groups(
            groups, columns=columns, use_pandas_metadata=True
        ).to_pandas()


ROWS = 500_000

Answer = TypeVar("Answer")

# Number of answers that are merged at once.
_WIDE = 4
# A model in a graph is larger than the size from which Dask warns.
_LARGE = "distributed.admin.large-graph-warning-threshold"


class Job(Protocol[Answer]):
    """A question for every part, and a way to join the answers."""

    def __call__(self, name: str, frame: Any) -> Answer | None:
        """Return the answer of a part with rows, or None if its rows do not count."""
        ...

    def merge(self, parts: list[Answer]) -> Answer:
        """Return the joined answer of several parts, in their order."""
        ...


@dataclass(frozen=True, eq=False)
class Parts:
    """A table as parts. Each pass reads them anew.

    Parameters
    ----------
    read : callable
        Returns an iterator. It yields the name of each part and its frame, or a
        function or delayed object of Dask that returns this frame.
    name : str
        What messages call the table.
    columns : mapping of str to str or None
        The columns that each part must have, and that are used, by the parameters that
        name them. None means all columns.
    by_dask : bool
        Whether frames are delayed objects of Dask.
    """

    read: Callable[[], Iterable[tuple[str, Any]]]
    name: str
    columns: Mapping[str, str] | None = None
    by_dask: bool = False

    def ask(
        self,
        job: Job[Any],
        *,
        n_jobs: int | None = None,
        tell: Callable[[int], None] | None = None,
    ) -> Any:
        """Ask something of every part that has rows, and merge the answers.

        Parameters
        ----------
        job : Job
        n_jobs : int, optional
            Number of threads that read parts.
        tell : callable, optional
            Gets the number of parts that are done. It is not called for parts of Dask.

        Returns
        -------
        object
            None if no part has rows.
        """
        if self.by_dask:
            return self._ask_dask(job)
        how = partial(ask_part, job, self.columns)
        answers: Iterable[Any] = (how(name, frame) for name, frame in self.read())
        if n_jobs is not None:
            call = Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator")
            answers = call(delayed(how)(name, frame) for name, frame in self.read())
        held: list[Any] = []
        for done, answer in enumerate(answers, 1):
            held.append(answer)
            if len(held) > _WIDE:
                held = [merge_some(job, held)]
            if tell is not None:
                tell(done)
        return merge_some(job, held)

    def _ask_dask(self, job: Job[Any]) -> Any:
        """Compute the answers where the partitions are, and merge them as a tree."""
        import dask
        from dask.delayed import delayed as plan

        # Import it before the setting below. If it were first imported there, it would
        # lose the other settings.
        with suppress(ImportError):
            import distributed  # noqa: F401

        # Make the job one node of the graph. Otherwise it would be copied for each
        # partition.
        held = plan(job, pure=False, traverse=False)
        ask, join = plan(ask_part, pure=False), plan(merge_some, pure=False)
        nodes = [ask(held, self.columns, name, frame) for name, frame in self.read()]
        while len(nodes) > 1:
            starts = range(0, len(nodes), _WIDE)
            nodes = [join(held, nodes[start : start + _WIDE]) for start in starts]
        with dask.config.set({_LARGE: "64GiB"}):
            return nodes[0].compute()


def ask_part(
    job: Job[Any], columns: Mapping[str, str] | None, name: str, frame: Any
) -> Any:
    """Return the answer of a job to one part, or None if the part has no rows.

    Parameters
    ----------
    job : Job
    columns : mapping of str to str or None
    name : str
    frame : pandas.DataFrame, or callable that returns one

    Returns
    -------
    object
    """
    frame = frame() if callable(frame) else frame
    if not _is_frame(frame):
        refuse("parts", _FRAMES, f"{type(frame).__name__} as {name}", TypeError)
    name = frame.attrs.get("name", name)
    check_unique(frame.columns, name)
    if columns is not None:
        check_columns(columns, name, frame)
        frame = frame[list(columns.values())]
    if not len(frame):
        return None
    try:
        return job(name, frame)
    except Exception as error:
        error.add_note(f"This is said of {name}.")
        raise


def check_unique(names: Any, part: str) -> None:
    """Refuse a part in which two columns have one name.

    Parameters
    ----------
    names : pandas.Index or pandas.Series
    part : str
        Name of the part in messages.
    """
    if (twice := names.duplicated()).any():
        got = f"{next(iter(names[twice]))!r} twice in {part}"
        refuse("parts", "have columns of different names", got)


def check_columns(columns: Mapping[str, str], name: str, frame: Any) -> None:
    """Refuse a part that lacks a column.

    Parameters
    ----------
    columns : mapping of str to str
        The columns, by the parameters that name them.
    name : str
        Name of the part in messages.
    frame : pandas.DataFrame
    """
    for parameter, column in columns.items():
        if column not in frame.columns:
            held = ", ".join(map(repr, frame.columns))
            rule = "be a column of all parts"
            refuse(parameter, rule, f"{column!r}; {name} has {held}")


def merge_some(job: Job[Any], answers: list[Any]) -> Any:
    """Return one answer for several. Some of them may be of parts without rows.

    Parameters
    ----------
    job : Job
    answers : list of object or None

    Returns
    -------
    object or None
    """
    held = [answer for answer in answers if answer is not None]
    return job.merge(held) if held else None


def open_parts(
    parts: Any, columns: Mapping[str, str] | None = None, *, rows_per_part: int = ROWS
) -> Parts:
    """Return a table of any size as parts.

    Parameters
    ----------
    parts : path, data frame, list of either, or callable
        CSV files, packed or not, Parquet files, or folders of these. Or frames of
        pandas, or one frame of Dask. Or a function without arguments that returns an
        iterator of pandas frames. Each call must give the same rows.
    columns : mapping of str to str, optional
        The columns that are used, by the parameters that name them.
    rows_per_part : int
        Greatest number of rows of a part of a file. A row group of Parquet is never
        divided.

    Returns
    -------
    Parts
    """
    most = check_integer(rows_per_part, "rows_per_part", 1)
    # Find out without importing Dask.
    if _is_frame(parts) and type(parts).__module__.startswith("dask"):
        nodes = partial(_number, "partition", parts.to_delayed())
        return Parts(nodes, "the Dask frame", columns, by_dask=True)
    if _is_frame(parts):
        return Parts(lambda: [("the frame", parts)], "the frame", columns)
    if callable(parts):
        frames = lambda: _number("frame", parts())  # noqa: E731
        return Parts(frames, "what the function returns", columns)
    if isinstance(parts, str | PathLike):
        return _of_files([parts], str(parts), most, columns)
    if not isinstance(parts, list | tuple):
        rule = (
            "be a path, a data frame of pandas or Dask, a list of paths or frames, or "
            "a function that returns an iterator of frames"
        )
        refuse("parts", rule, type(parts).__name__, TypeError)
    if not parts:
        refuse("parts", "list at least one file or frame", "an empty list")
    if all(map(_is_frame, parts)):
        return Parts(partial(_number, "frame", parts), "the frames", columns)
    return _of_files(parts, "the files", most, columns)


def _of_files(
    paths: Sequence[Any], name: str, most: int, columns: Mapping[str, str] | None
) -> Parts:
    """Return the parts of files and folders, one file after another."""
    wanted = None if columns is None else list(columns.values())
    files = [file for path in paths for file in find_files(path)]

    def read() -> Iterator[tuple[str, Any]]:
        for file in files:
            is_parquet = file.name.lower().endswith(PARQUET)
            read_parts = _read_parquet if is_parquet else _read_csv
            yield from read_parts(file, most, wanted)

    return Parts(read, name, columns)


def _number(kind: str, frames: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Yield frames with names that count them."""
    if not hasattr(frames, "__iter__"):
        refuse("parts", _FRAMES, type(frames).__name__, TypeError)
    for number, frame in enumerate(frames):
        yield f"{kind} {number}", frame


def _is_frame(thing: Any) -> bool:
    return hasattr(thing, "columns") and hasattr(thing, "iloc")


#: Default number of cells of a summary. They take about 400 kB.
MAX_CELLS = 2**14


def summarize(
    parts: Any,
    score: str = "score",
    label: str = "label",
    weight: str | None = None,
    *,
    max_cells: int | None = MAX_CELLS,
    n_jobs: int | None = None,
) -> ScoreSummary:
    """Return the summary of scores and labels of any number, read part by part.

    Every calibrator of scores is fitted to it by `fit_summary`. The memory for this
    does not grow with the rows.

    Parameters
    ----------
    parts : path, data frame, list of either, or callable
        CSV files, packed or not, Parquet files, or folders of these. Or frames of
        pandas, or one frame of Dask, which is computed as Dask is set. Or a function
        that returns an iterator of pandas frames.
    score, label : str
        Columns of scores, and of labels coded 0 and 1.
    weight : str, optional
        Column of numbers of repetitions.
    max_cells : int or None
        Greatest number of cells to keep, at least 2. None keeps every distinct score,
        and needs memory for all of them.
    n_jobs : int, optional
        Number of threads that read parts. None means one, -1 means all processors.

    Returns
    -------
    ScoreSummary
        If weights are whole numbers, or if there are none, it is the same bit for bit,
        whatever the parts and their order are. A score is moved by at most
        `max_displacement`.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from calibration import IsotonicCalibrator, summarize
    >>> def months():
    ...     for seed in range(12):
    ...         p = np.random.default_rng(seed).uniform(size=1000)
    ...         came = np.random.default_rng([seed, 1]).uniform(size=1000) < p
    ...         yield pd.DataFrame({"p": p, "came": came})
    >>> year = summarize(months, "p", "came", max_cells=512)
    >>> year
    ScoreSummary(n_cells=512, n=12000, base_rate=0.4952, max_displacement=0.00195312)
    >>> IsotonicCalibrator().fit_summary(year).predict([0.5]).round(1)
    array([0.5])
    """
    if max_cells is not None:
        max_cells = check_integer(max_cells, "max_cells", 2)
    check_n_jobs(n_jobs)
    columns = {"score": score, "label": label}
    if weight is not None:
        columns["weight"] = weight
    for parameter, name in columns.items():
        if not isinstance(name, str):
            refuse(parameter, "be the name of a column", f"{name!r}", TypeError)
    if len(set(columns.values())) < len(columns):
        got = ", ".join(columns.values())
        refuse("score`, `label` and `weight", "be different", got)
    opened = open_parts(parts, columns)
    job = _Summarize(tuple(columns.values()), max_cells)
    found: ScoreSummary | None = opened.ask(job, n_jobs=n_jobs)
    if found is None:
        refuse("parts", "have at least one row that counts", opened.name)
    return found


@dataclass(frozen=True)
class _Summarize:
    """Makes the summary of a part.

    Parameters
    ----------
    columns : tuple of str
        Columns of scores, of labels, and perhaps of weights.
    max_cells : int or None
    """

    columns: tuple[str, ...]
    max_cells: int | None

    def __call__(self, name: str, frame: Any) -> ScoreSummary | None:
        """Return the summary of a part, or None if no row counts."""
        weighted = len(self.columns) > 2
        values = [frame[column].to_numpy(copy=weighted) for column in self.columns]
        if weighted:
            # A gap in a nullable column is not a weight of 0. It is refused below.
            is_zero = (frame[[self.columns[2]]] == 0).fillna(False)
            is_out = is_zero.to_numpy(bool).any(axis=1)
            if is_out.all():
                return None
            # Keep these rows, whatever they hold, because messages tell the place of a
            # row.
            values[0][is_out] = values[1][is_out] = 0
        try:
            return ScoreSummary.from_scores(*values, max_cells=self.max_cells)
        except (TypeError, ValueError) as error:
            listed = " and ".join(map(repr, self.columns))
            msg = f"`parts` has no sound rows in {name}, columns {listed}: {error}"
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(msg) from error

    def merge(self, parts: list[ScoreSummary]) -> ScoreSummary:
        """Return the summary of the rows of several parts."""
        return sum(parts[1:], parts[0])
