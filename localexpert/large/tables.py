"""`fit_large` and `predict_table`: fits and forecasts of tables larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from calibration._validation import (
    check_choice,
    check_flag,
    check_integer,
    refuse,
    show,
)
from calibration.sources import ROWS, Parts, open_parts
from localexpert._validation import check_bounds, check_seed
from localexpert.data.folds import make_folds
from localexpert.distribution.frame import Questions
from localexpert.distribution.predictors import check_predicts, predict_dist
from localexpert.large.rows import CountScores, Draw, Drawn, Roles, Rows
from localexpert.progress import current_progress, show_progress
from localexpert.recalibration.pit import PitRecalibration, furthest_score
from localexpert.regressor.fit_check import FitCheck, unjudged
from localexpert.regressor.regressor import LocalExpertRegressor

#: Rows of a sample unless told.
MOST_TRAIN_ROWS = 250_000
# Rows beyond the sample by which a learning curve is drawn.
_BEYOND = 5000
# With less weight of rows that no model has seen, the sample corrects itself.
_LEAST_UNSEEN = 500.0
# More rows would make the correction no better, and each takes its time to forecast.
_MOST_CORRECTING = 1_000_000


def fit_large(
    model: LocalExpertRegressor,
    parts: Any,
    target: str,
    *,
    max_train_rows: int = MOST_TRAIN_ROWS,
    weight: str | None = None,
    key: str | None = None,
    learning_curve: bool = True,
    rows_per_part: int = ROWS,
) -> LocalExpertRegressor:
    """Fit a regressor on a table of any size, part by part.

    The model learns from a sample in memory. No model has seen the other rows: the PIT
    values of up to a million of them correct the forecasts, if held-out rows confirm
    the correction. Fewer than 500 other rows are not used: then the sample corrects
    its own forecasts.

    Parameters
    ----------
    model : LocalExpertRegressor
        Unfitted; it stays as it is. Its `cv` must be "auto" or an integer, its
        `recalibrate` "pit".
    parts : path, data frame, list of either, or callable
        CSV files, packed or not, Parquet files or folders of these; pandas frames; a
        Dask frame, which Dask computes as it is set, such as by the workers of a
        `distributed.Client`; or a function without arguments that returns an iterator
        of pandas frames, the same rows at each call.
    target : str
        Column of y.
    max_train_rows : int
        Most rows of the sample, and its greatest weight. If there are more distinct
        rows, equal rows count once.
    weight : str, optional
        Column of weights, which are repetitions: a row of weight 3 is the same as
        three equal rows. Rows of weight 0 are left out.
    key : str, optional
        Column that says which rows belong together, such as those of a customer. They
        enter the sample together and stay in one fold. The column is no feature. By
        default equal rows belong together.
    learning_curve : bool
        Whether the report says what more rows would gain, at some half of the time
        of the fit on the sample.
    rows_per_part : int
        Most rows of a part of a file; a row group of Parquet is never parted.

    Returns
    -------
    LocalExpertRegressor
        Fitted: it predicts, saves, explains and reports like any other. `report_` has
        the stages "large", "recalibration" and "learning curve". `oof_distribution_`
        and `check_` are of the corrected forecasts.

    Notes
    -----
    The sample has the rows with the smallest hashes of their content, or of their key.
    So no shuffling is needed. If more than a million rows are left, hashes also draw
    the rows that correct: a million places a PIT value within .0005. So many are drawn
    by their number, whatever their weights. With integer weights the sample, the folds
    and the correction are the same, bit for bit, for every order and partition of the
    table.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from localexpert import LocalExpertRegressor, fit_large
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"x": rng.uniform(size=3000)})
    >>> table["y"] = table["x"] + 0.1 * rng.normal(size=3000)
    >>> plain = LocalExpertRegressor(strategy="shared", random_state=0)
    >>> model = fit_large(plain, table, "y", max_train_rows=500)
    >>> print(model.report_.choices["large"]["chosen"])
    500 of 3000 rows, the others to calibrate by
    >>> bool(abs(model.predict(pd.DataFrame({"x": [0.5]}))[0] - 0.5) < 0.05)
    True
    """
    _check_model(model)
    most = check_integer(max_train_rows, "max_train_rows", 10)
    check_flag(learning_curve, "learning_curve")
    roles = Roles(target, weight, key)
    opened = open_parts(parts, rows_per_part=rows_per_part)
    with unjudged(), show_progress(model.verbose, "fit_large"):
        drawn: Drawn = _ask(opened, Draw(roles, most + _BEYOND), "sample")
        _check(drawn, opened, roles, model)
        sample, beyond = drawn.cut(most)
        if drawn.low < drawn.high and sample.y.min() == sample.y.max():
            got = f"{most}, of which all have y = {show(sample.y[0])}"
            refuse("max_train_rows", "draw rows whose targets differ", got)
        with current_progress().stage("sample fit"):
            own = _prepare(model, drawn, sample)
            share = _share_correcting(drawn, sample)
            if share:
                # Rows that no model has seen correct it better than the sample does.
                own.set_params(recalibrate=None)
            fitted = _fit(roles, own, sample)
        if drawn.low < drawn.high:
            curve = None
            if learning_curve:
                with current_progress().stage("learning curve"):
                    curve = learn_curve(fitted, sample, beyond, partial(_fit, roles))
            if share:
                _correct(fitted, opened, roles, drawn, sample, share)
            _report(fitted, drawn, len(sample), share, curve)
    fitted.set_params(**model.get_params(deep=False))
    if drawn.low < drawn.high:
        fitted.check_.warn()
    return fitted


def _ask(parts: Parts, job: Any, stage: str) -> Any:
    """Make a pass over all parts."""
    progress = current_progress()
    with progress.stage(stage):
        return parts.ask(job, tell=lambda done: progress.reach(done, done))


def _check(
    drawn: Drawn | None, parts: Parts, roles: Roles, model: LocalExpertRegressor
) -> None:
    """Refuse a table with nothing to learn, and one beyond the bounds."""
    n_rows = drawn.n_rows if drawn is not None else 0
    if drawn is None or n_rows < 2:
        rule = "have at least two rows with weight"
        refuse("parts", rule, f"{parts.name} with {n_rows}")
    if len(drawn.rows) < 2:
        refuse("parts", "have rows that differ", f"{n_rows} equal ones")
    if roles.key is not None and drawn.rows.hashes[0] == drawn.rows.hashes[-1]:
        refuse("key", "tell rows apart", f"{roles.key!r} with one value")
    bounds = model.bounds
    if bounds is not None and not isinstance(bounds, str):
        low, high = check_bounds(bounds)
        for y in (drawn.low, drawn.high):
            if not low <= y <= high:
                rule = "hold every y"
                refuse("bounds", rule, f"({show(low)}, {show(high)}) and y = {show(y)}")


def _prepare(
    model: LocalExpertRegressor, drawn: Drawn, sample: Rows
) -> LocalExpertRegressor:
    """Return an unfitted twin, with what the whole table says of bounds."""
    own: LocalExpertRegressor = clone(model).set_params(verbose=0)
    passed = drawn.low < 0.0 <= sample.y.min() or sample.y.max() <= 1.0 < drawn.high
    if own.bounds == "auto" and passed:
        own.set_params(bounds=None)
    return own


def _fit(
    roles: Roles, model: LocalExpertRegressor, sample: Rows
) -> LocalExpertRegressor:
    """Fit a model on the rows of a sample; those of one key stay together."""
    equal = bool((sample.weight == sample.weight[0]).all())
    groups = None
    if roles.key is not None:
        groups = np.unique(sample.hashes, return_inverse=True)[1]
    weight = None if equal else sample.weight
    model.fit(sample.frame, sample.y, weight, groups=groups)
    return model


def _share_correcting(drawn: Drawn, sample: Rows) -> float:
    """Return the share of the other rows that correct, 0 if they are too few."""
    unseen = drawn.weigh_beyond(sample)
    if unseen < _LEAST_UNSEEN:
        return 0.0
    return min(_MOST_CORRECTING / (drawn.n_rows * unseen / drawn.weight), 1.0)


def _correct(
    fitted: LocalExpertRegressor,
    parts: Parts,
    roles: Roles,
    drawn: Drawn,
    sample: Rows,
    share: float,
) -> None:
    """Let the rows that no model has seen correct the forecasts."""
    furthest = furthest_score(drawn.weight)
    last = sample.hashes[-1]
    job = CountScores(fitted, roles, drawn.kinds, last, furthest, share)
    found = _ask(parts, job, "recalibration")
    n_rows = 0 if found is None else found.n_rows
    if found is None or (n_rows, found.check) != (drawn.n_rows, drawn.check):
        other = "other ones" if n_rows == drawn.n_rows else f"{n_rows}"
        cure = "a function must return a new iterator of the same rows, a Dask frame "
        cure += "whose rows are drawn anew is to be persisted"
        got = f"{drawn.n_rows} rows, then {other}: {cure}"
        refuse("parts", "give the same rows at each pass", got)
    recalibration = PitRecalibration(random_state=fitted.random_state)
    fitted._use(recalibration.fit_cells(found.cells))
    known = fitted.oof_targets_, fitted.oof_weights_, check_seed(fitted.random_state)
    fitted.check_ = FitCheck.of(fitted._oof_dist, *known)


def _report(
    fitted: LocalExpertRegressor,
    drawn: Drawn,
    n_sample: int,
    share: float,
    curve: dict[str, Any] | None,
) -> None:
    """Add to a model's report what was used for what."""
    all_others = "the " if share == 1.0 else ""
    rest = f", {all_others}others to calibrate by" * (share > 0.0)
    report = fitted.report_.add(
        "large",
        {
            "chosen": f"{n_sample} of {drawn.n_rows} rows{rest}",
            "rows": drawn.n_rows,
            "sample": n_sample,
            "lowest": drawn.low,
            "highest": drawn.high,
        },
    )
    fitted.report_ = report if curve is None else report.add("learning curve", curve)


def _check_model(model: Any) -> None:
    """Refuse what cannot be fitted part by part."""
    if not isinstance(model, LocalExpertRegressor):
        refuse("model", "be a LocalExpertRegressor", type(model).__name__, TypeError)
    if model.cv != "auto" and not isinstance(model.cv, Integral):
        refuse("model", 'have cv="auto" or a number of folds', f"{model.cv!r}")
    if model.recalibrate != "pit":
        why = "for rows that no model has seen recalibrate"
        rule = f'have recalibrate="pit", {why}'
        refuse("model", rule, f"{model.recalibrate!r}")


# Shares of the sample that are learned from besides all of it.
_SHARES = (1.0 / 16.0, 1.0 / 4.0)
# Fewer rows tell nothing of more.
_LEAST_ROWS = 200
# What each further step gains of the one before, at most.
_MOST_RATIO = 0.95


def learn_curve(
    model: Any, sample: Rows, beyond: Rows, fit: Callable[[Any, Rows], Any]
) -> dict[str, Any] | None:
    """Fit models like this one on parts of its sample, and score them on other rows.

    Parameters
    ----------
    model : LocalExpertRegressor
        Fitted on the sample.
    sample : Rows
        In the order of their hashes, so its first rows are a sample, too.
    beyond : Rows
        Rows that were not drawn.
    fit : callable
        Takes an unfitted model and a sample.

    Returns
    -------
    dict or None
        For the report; None where there are too few rows.
    """
    if len(beyond) < _LEAST_ROWS or len(sample) * _SHARES[0] < _LEAST_ROWS:
        return None
    losses = {}
    less = _like(model, len(make_folds(len(sample))))
    for share in _SHARES:
        part = sample.take(slice(int(share * len(sample))))
        with current_progress().stage(f"{len(part)} rows"):
            losses[str(len(part))] = _mean_crps(fit(clone(less), part), beyond)
    losses[str(len(sample))] = _mean_crps(model, beyond)
    gain = 100.0 * expected_gain(*losses.values())
    chosen = f"4 times the rows would gain {gain:.2g} % of CRPS"
    return {"losses": losses, "chosen": chosen}


def expected_gain(first: float, second: float, third: float) -> float:
    """Return the share of the last CRPS that four times the rows would gain.

    If errors are a + b n^-c, each step to four times the rows gains a constant share of
    the gain of the step before.

    Parameters
    ----------
    first, second, third : float
        CRPS, each of four times the rows of the one before.

    Returns
    -------
    float

    Examples
    --------
    >>> from localexpert.large.tables import expected_gain
    >>> errors = [1.0 + n**-0.5 for n in (100.0, 400.0, 1600.0, 6400.0)]
    >>> true = (errors[2] - errors[3]) / errors[2]
    >>> bool(abs(expected_gain(*errors[:3]) - true) < 1e-12)
    True
    """
    before, last = first - second, second - third
    if min(before, last) <= 0.0:
        return 0.0
    return last * min(last / before, _MOST_RATIO) / third


def _like(model: Any, n_folds: int) -> Any:
    """Return an unfitted model with the choices of the fitted one.

    It does not try choices again that were not taken, and it has no more folds. With
    fewer rows the model would otherwise do more of both.
    """
    less = clone(model).set_params(verbose=0)
    if isinstance(less.cv, str):
        less.set_params(cv=n_folds)
    report = model.report_.choices
    weights = report.get("experts", {}).get("weights", {})
    roads = report.get("roads", {}).get("weights", ["frame"])
    plain = list(roads) == ["frame"] and list(weights) == ["shared"]
    if plain and model.strategy == "auto" and model.roads == "auto":
        less.set_params(strategy="shared")
    return less


def _mean_crps(model: Any, rows: Rows) -> float:
    """Return the mean CRPS of forecasts, before they are recalibrated."""
    losses = model._law(model.reader_.read(rows.frame)).crps(rows.y[:, None])[:, 0]
    return float(np.average(losses, weights=rows.weight))


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
    kinds = "a data frame of pandas, polars or Dask, a table of pyarrow or an array"
    return refuse("table", f"be {kinds} with two axes", got, TypeError)


def _batches(table: Any, kind: str, size: int) -> Iterator[Any]:
    """Yield the rows of a table, so many at a time, as models take them."""
    for start in range(0, len(table), size):
        rows = slice(start, start + size)
        if kind == "pyarrow":
            yield table.slice(start, size).to_pandas()
        else:
            yield table.iloc[rows] if kind == "pandas" else table[rows]


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
