"""`predict_table`: forecasts of the rows of a table as a table, part by part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from localexpert._validation import check_choice, check_integer
from localexpert.distribution.frame import Questions
from localexpert.distribution.predictors import check_predicts, predict_dist

#: Rows that are forecast at once: enough for speed, and some 100 MB.
BATCH = 50_000


def predict_table(
    model: Any,
    table: Any,
    *,
    quantiles: ArrayLike | None = None,
    interval: ArrayLike | None = None,
    exceed: ArrayLike | None = None,
    dtype: str = "float64",
    batch_size: int = BATCH,
) -> Any:
    """Return the forecasts of a model for the rows of a table as a table.

    Rows are forecast in batches, so besides the answers only one batch needs memory.
    The answers of a row do not depend on its batch. Engines call this function with
    each part of a table. It takes a Dask table as a whole.

    Parameters
    ----------
    model : fitted estimator
        One with a method `predict_dist`, or a wrapper of one; see `predict_dist`.
    table : data frame or array of shape (n, p)
        A table of pandas, polars, pyarrow (a Table) or Dask with the columns of the
        fit, or an array. It may have no rows.
    quantiles : float or array-like, optional
        Levels in [0, 1]; 0.05, 0.5 and 0.95 if nothing else is asked for.
    interval : float or array-like, optional
        Coverages of central intervals.
    exceed : float or array-like, optional
        Values v of the probabilities P(Y > v).
    dtype : {"float64", "float32"}
        Type of the answers.
    batch_size : int
        Rows that are forecast at once.

    Returns
    -------
    data frame of n rows
        A table of the same library; pandas for an array. It has the columns of
        `PredictiveDistribution.to_frame`: mean, std and, as asked for, q0.05, low_0.9
        and high_0.9, p_above_100. The index of pandas and Dask is kept. A Dask table is
        computed when it is needed, partition by partition, and its graph holds the
        model once.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from localexpert import LocalExpertRegressor, predict_table
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"a": rng.uniform(size=60)})
    >>> model = LocalExpertRegressor(
    ...     strategy="joint", frame=None, n_thresholds=5, cv=2, random_state=0
    ... ).fit(X, X["a"] + rng.normal(size=60))
    >>> new = pd.DataFrame({"a": [0.1, 0.9]}, index=["low", "high"])
    >>> predict_table(model, new, quantiles=0.5, exceed=1.0).columns.to_list()
    ['mean', 'std', 'q0.5', 'p_above_1']
    """
    check_predicts(model)
    asked = Questions.of(quantiles, interval, exceed)
    check_choice(dtype, "dtype", ("float64", "float32"))
    size = check_integer(batch_size, "batch_size", 1)
    kind = _kind_of(table)
    if kind == "dask":
        return _predict_dask(model, table, asked, dtype, size)
    answers = _answer(model, _batches(table, kind, size), len(table), asked, dtype)
    if kind == "polars":
        return type(table)(dict(zip(asked.names, answers.T, strict=True)))
    if kind == "pyarrow":
        return type(table).from_arrays(list(answers.T), names=asked.names)
    return _as_pandas(answers, asked, table.index if kind == "pandas" else None)


def _kind_of(table: Any) -> str:
    """Return the library of a table that can be read, or refuse it by name."""
    of = type(table)
    library, name = of.__module__.partition(".")[0], of.__name__
    if isinstance(table, np.ndarray) and table.ndim == 2:
        return "numpy"
    # Modules of Dask's frames are called otherwise from version to version.
    if library.startswith("dask") and name == "DataFrame":
        return "dask"
    if (library, name) in (("pyarrow", "Table"), ("polars", "DataFrame")):
        return library
    if hasattr(table, "iloc") and getattr(table, "ndim", 0) == 2:
        return "pandas"
    is_array = isinstance(table, np.ndarray)
    got = f"shape {table.shape}" if is_array else f"{library}.{name}"
    msg = (
        "`table` must be a data frame of pandas, polars or Dask, a table of pyarrow or "
        f"an array with two axes, got {got}."
    )
    raise TypeError(msg)


def _batches(table: Any, kind: str, size: int) -> Iterator[Any]:
    """Yield the rows of a table, so many at a time, as models take them."""
    for start in range(0, len(table), size):
        if kind == "pandas":
            yield table.iloc[start : start + size]
        elif kind == "pyarrow":
            yield table.slice(start, size).to_pandas()
        else:
            yield table[start : start + size]


def _answer(
    model: Any, batches: Iterator[Any], n: int, asked: Questions, dtype: str
) -> NDArray[Any]:
    """Return the answers for n rows, shape (n, k), a column one after another."""
    answers = np.empty((len(asked.names), n), dtype=dtype)
    start = 0
    for batch in batches:
        columns = asked.answers(predict_dist(model, batch))
        for row, name in zip(answers, asked.names, strict=True):
            row[start : start + len(batch)] = columns[name]
        start += len(batch)
    return answers.T


def _as_pandas(answers: NDArray[Any], asked: Questions, index: Any) -> Any:
    """Return answers as a data frame of pandas, which shares their memory."""
    import pandas

    return pandas.DataFrame(answers, index=index, columns=asked.names, copy=False)


def _predict_dask(
    model: Any, table: Any, asked: Questions, dtype: str, size: int
) -> Any:
    """Return a Dask data frame of answers; each partition is asked when computed."""
    from dask.delayed import delayed

    # The model is one node of the graph: an argument would be copied for each partition
    # and hashed. It is not scattered: a worker that holds it alone may be lost.
    held = delayed(model, pure=False, traverse=False)
    meta = _as_pandas(np.empty((0, len(asked.names)), dtype), asked, table._meta.index)
    return table.map_partitions(_predict_part, held, asked, dtype, size, meta=meta)


def _predict_part(
    part: Any, model: Any, asked: Questions, dtype: str, size: int
) -> Any:
    """Return the answers for one partition, which may have no rows."""
    answers = _answer(model, _batches(part, "pandas", size), len(part), asked, dtype)
    return _as_pandas(answers, asked, part.index)
