"""`summarize`: the summary of scores and labels that do not fit into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calibration._validation import check_integer, check_n_jobs, refuse
from calibration.sources.parts import open_parts
from calibration.summary import ScoreSummary

#: Cells of a summary unless told: some 400 kB.
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

    Every calibrator of scores is fitted to it by `fit_summary`, in memory that does
    not grow with the rows.

    Parameters
    ----------
    parts : path, data frame, list of either, callable, or tuple of Dask arrays
        CSV files, packed or not, Parquet files or folders of these; frames of pandas;
        one of Dask, which is computed as Dask is set; or a function that returns an
        iterator of pandas frames. Or two Dask arrays of shape (n,), scores and labels,
        and a third one of weights if `weight` is given.
    score, label : str
        Columns of scores, and of labels coded 0 and 1.
    weight : str, optional
        Column of numbers of repetitions.
    max_cells : int or None
        Most cells to keep, at least 2; None keeps every distinct score, which needs
        memory for all of them.
    n_jobs : int, optional
        Threads that read parts; None is one, -1 all processors.

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
    given = {"score": score, "label": label, "weight": weight}
    if weight is None:
        del given["weight"]
    for parameter, name in given.items():
        if not isinstance(name, str):
            refuse(parameter, "be the name of a column", f"{name!r}", TypeError)
    columns = {parameter: str(name) for parameter, name in given.items()}
    opened = open_parts(parts, columns)
    job = _Summarize(tuple(columns.values()), max_cells)
    found: ScoreSummary | None = opened.ask(job, n_jobs=n_jobs)
    if found is None:
        refuse("parts", "have at least one row that counts", opened.name)
    return found


@dataclass(frozen=True)
class _Summarize:
    """Summarises a part.

    Parameters
    ----------
    columns : tuple of str
        Of scores, of labels, and perhaps of weights.
    max_cells : int or None
    """

    columns: tuple[str, ...]
    max_cells: int | None

    def __call__(self, name: str, frame: Any) -> ScoreSummary | None:
        """Return the summary of a part, None where no row counts."""
        if len(self.columns) > 2:
            frame = frame[frame[self.columns[2]] != 0]
            if not len(frame):
                return None
        values = [frame[column].to_numpy() for column in self.columns]
        try:
            return ScoreSummary.from_scores(*values, max_cells=self.max_cells)
        except (TypeError, ValueError) as error:
            listed = " and ".join(map(repr, self.columns))
            msg = f"`parts` has no sound rows in {name}, columns {listed}: {error}"
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(msg) from error

    def merge(self, parts: list[ScoreSummary]) -> ScoreSummary:
        """Return the summary of the rows of several."""
        return sum(parts[1:], parts[0])
