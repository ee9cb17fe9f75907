"""`summarize`: the summary of scores and labels that do not fit into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from calibration._validation import check_integer, check_n_jobs
from calibration.sources.dask_part import DaskPart
from calibration.sources.part import Part
from calibration.sources.score_reader import (
    ScoreReader,
    merge_stream,
    merge_summaries,
    merge_tree,
)
from calibration.sources.source import Source, open_source
from calibration.summary import ScoreSummary

#: Cells of a summary unless told: some 400 kB.
MAX_CELLS = 2**14


def summarize(
    source: Any,
    score: str = "score",
    label: str = "label",
    weight: str | None = None,
    *,
    max_cells: int | None = MAX_CELLS,
    n_jobs: int | None = None,
    client: Any = None,
) -> ScoreSummary:
    """Return the summary of scores and labels of any number, read part by part.

    Every calibrator of scores is fitted to it by `fit_summary`, in memory that does
    not grow with the rows.

    Parameters
    ----------
    source : path, list of paths, data frame, callable, or tuple of Dask arrays
        A Parquet or CSV file, a folder of Parquet files, several files, a data frame
        of pandas or Dask, or a function that returns an iterator of pandas frames. Or
        two Dask arrays of shape (n,), scores and labels, and a third one of weights.
    score, label : str
        Columns of scores, and of labels coded 0 and 1; not looked at for arrays.
    weight : str, optional
        Column of numbers of repetitions.
    max_cells : int or None
        Most cells to keep, at least 2; None keeps every distinct score, which needs
        memory for all of them.
    n_jobs : int, optional
        Threads that read parts of files; None is one, -1 all processors.
    client : distributed.Client, optional
        Of the cluster that reads the parts; without one, files are read here, and
        Dask's collections as Dask is set. A function is always called here.

    Returns
    -------
    ScoreSummary
        The same whatever the parts are and in any order, bit for bit with whole
        weights or none. A score is moved by at most `max_displacement`.

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
    if client is not None and not callable(getattr(client, "compute", None)):
        msg = f"`client` must be a Client of Dask, got {type(client).__name__}."
        raise TypeError(msg)
    if _are_arrays(source):
        return _whole(_of_arrays(source, max_cells, client))
    opened = open_source(source)
    names = _check_names(opened, score, label, weight)
    how = ScoreReader(names, max_cells)
    by_dask = not opened.in_order and (
        client is not None or any(isinstance(part, DaskPart) for part in opened.parts)
    )
    if by_dask:
        return _whole(_compute(_plan(opened.parts, how), client))
    read = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    parts = read(delayed(how.read)(part) for part in opened.parts)
    return _whole(merge_stream(parts))


def _check_names(
    source: Source, score: Any, label: Any, weight: Any
) -> tuple[str, ...]:
    """Return the columns to read, or name the parameter that names none."""
    given = {"score": score, "label": label, "weight": weight}
    if weight is None:
        del given["weight"]
    for parameter, name in given.items():
        if not isinstance(name, str):
            msg = f"`{parameter}` must be the name of a column, got {name!r}."
            raise TypeError(msg)
        if name not in source.kinds:
            held = ", ".join(map(repr, source.columns))
            msg = (
                f"`{parameter}` must be a column of {source.name}, which has {held}; "
                f"got {name!r}."
            )
            raise ValueError(msg)
    return tuple(given.values())


def _whole(summary: ScoreSummary | None) -> ScoreSummary:
    if summary is None:
        msg = "`source` must have at least one row that counts, got none."
        raise ValueError(msg)
    return summary


def _plan(parts: Iterable[Part], how: ScoreReader) -> Any:
    """Return Dask's plan to read and merge parts."""
    from dask.delayed import delayed as plan

    leaves = [
        plan(how.of_partition)(part.without_data(), part.delayed)
        if isinstance(part, DaskPart)
        else plan(how.read)(part)
        for part in parts
    ]
    return merge_tree(leaves, plan(merge_summaries))


def _compute(planned: Any, client: Any) -> ScoreSummary | None:
    """Compute what is planned on the cluster, or as Dask is set."""
    if client is None:
        summary: ScoreSummary | None = planned.compute()
    else:
        summary = client.compute(planned).result()
    return summary


def _are_arrays(source: Any) -> bool:
    """Say whether a source is a tuple or list of Dask arrays."""
    return isinstance(source, tuple | list) and any(map(_is_array, source))


def _is_array(thing: Any) -> bool:
    library = type(thing).__module__.partition(".")[0]
    return library.startswith("dask") and hasattr(thing, "chunks")


def _of_arrays(arrays: Any, max_cells: int | None, client: Any) -> ScoreSummary | None:
    """Return the summary of Dask arrays, block by block."""
    names = ("scores", "labels", "weights")[: len(arrays)]
    sound = len(arrays) in (2, 3) and all(map(_is_array, arrays))
    if not sound or any(array.ndim != 1 for array in arrays):
        got = ", ".join(
            f"shape {array.shape}" if _is_array(array) else type(array).__name__
            for array in arrays
        )
        msg = (
            "`source` must be two or three Dask arrays of shape (n,): scores, labels "
            f"and perhaps weights; got {got}."
        )
        raise ValueError(msg)
    scores, *others = arrays
    known = not any(np.isnan(sum(array.chunks[0])) for array in arrays)
    if known and len({len(array) for array in arrays}) > 1:
        lengths = " and ".join(str(len(array)) for array in arrays)
        msg = f"`source` must be Dask arrays of one length, got {lengths} values."
        raise ValueError(msg)
    if known:
        others = [other.rechunk(scores.chunks) for other in others]
    if any(other.numblocks != scores.numblocks for other in others):
        msg = (
            "`source` must be Dask arrays of the same blocks where their sizes are "
            "unknown, got other numbers of them."
        )
        raise ValueError(msg)
    how = ScoreReader(names, max_cells)
    return _compute(_plan_blocks([scores, *others], how), client)


def _plan_blocks(arrays: list[Any], how: ScoreReader) -> Any:
    """Return Dask's plan to summarise and merge blocks."""
    from dask.delayed import delayed as plan

    blocks: Iterator[tuple[Any, ...]] = zip(
        *(array.to_delayed() for array in arrays), strict=True
    )
    leaves = [
        plan(how.summarize)(f"block {number}", *block)
        for number, block in enumerate(blocks)
    ]
    return merge_tree(leaves, plan(merge_summaries))
