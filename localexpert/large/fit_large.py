"""`fit_large`: a regressor of more rows than memory."""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

from calibration.sources.parts import ROWS, Parts, open_parts
from localexpert._validation import check_bounds, check_flag, check_integer, show
from localexpert.large.learning_curve import learn_curve
from localexpert.large.passes import CountScores, Draw, Drawn
from localexpert.large.rows import Roles, Rows
from localexpert.progress import current_progress, show_progress
from localexpert.recalibration.pit import PitRecalibration, furthest_score
from localexpert.regressor.regressor import LocalExpertRegressor

# Rows beyond the sample by which a learning curve is drawn.
_BEYOND = 5000
# Less weight of rows that no model has seen corrects nothing.
_LEAST_UNSEEN = 500.0


def fit_large(
    model: LocalExpertRegressor,
    parts: Any,
    target: str,
    *,
    max_train_rows: int = 250_000,
    weight: str | None = None,
    key: str | None = None,
    learning_curve: bool = True,
    rows_per_part: int = ROWS,
) -> LocalExpertRegressor:
    """Fit a regressor on a table of any size, part by part.

    A sample is learned from in memory. All other rows, which no model has seen, correct
    its forecasts by their PIT values, where rows held out confirm the correction.

    Parameters
    ----------
    model : LocalExpertRegressor
        Unfitted; it stays as it is. Its `cv` must be "auto" or an integer, its
        `recalibrate` None or "pit", which here are the same.
    parts : path, data frame, list of either, or callable
        CSV files, packed or not, Parquet files or folders of these; frames of pandas;
        one of Dask, which is computed as Dask is set, as by the workers of a
        `distributed.Client`; or a function without arguments that returns an iterator
        of pandas frames, the same rows at each call.
    target : str
        Column of y.
    max_train_rows : int
        Most rows of the sample, and its most weight. Equal rows count once where there
        are more distinct ones.
    weight : str, optional
        Column of weights, which are repetitions: a row of weight 3 is the same as
        three equal rows. Rows of weight 0 are left out.
    key : str, optional
        Column that says which rows belong together, as those of a customer: they are
        drawn into the sample together, and stay in one fold. It is no feature. By
        default equal rows belong together.
    learning_curve : bool
        Whether the report says what more rows would gain, at a third of the time of
        the fit on the sample.
    rows_per_part : int
        Most rows of a part of a file; a row group of Parquet is never parted.

    Returns
    -------
    LocalExpertRegressor
        Fitted: it predicts, saves, explains and reports like any other. `report_` has
        the stages "large", "recalibration" and "learning curve".

    Notes
    -----
    The sample is the rows with the smallest hashes of their content, or of their key.
    So it is drawn without shuffling, and with integer weights the sample, the folds
    and the correction are the same, bit for bit, however the table is parted and
    ordered.

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
    roles = Roles.of(target, weight, key)
    opened = open_parts(parts, rows_per_part=rows_per_part)
    with show_progress(model.verbose, "fit_large"):
        drawn: Drawn = _ask(opened, Draw(roles, most + _BEYOND), "sample")
        _check(drawn, opened, roles, model)
        sample, beyond = drawn.cut(most)
        with current_progress().stage("sample fit"):
            fitted = _fit(roles, _prepare(model, drawn, sample), sample)
        if drawn.low < drawn.high:
            curve = None
            if learning_curve:
                with current_progress().stage("learning curve"):
                    how = partial(_fit, roles)
                    curve = learn_curve(fitted, sample, beyond, how)
            if len(beyond):
                _correct(fitted, opened, roles, drawn, sample)
            _report(fitted, drawn, sample, curve)
    fitted.set_params(**model.get_params(deep=False))
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
        msg = (
            f"`parts` must have at least two rows with weight, got {parts.name} with "
            f"{n_rows}."
        )
        raise ValueError(msg)
    if len(drawn.rows) < 2:
        msg = f"`parts` must have rows that differ, got {n_rows} equal ones."
        raise ValueError(msg)
    if roles.key is not None and drawn.rows.hashes[0] == drawn.rows.hashes[-1]:
        msg = f"`key` must tell rows apart, got {roles.key!r} with one value."
        raise ValueError(msg)
    bounds = model.bounds
    if bounds is not None and not isinstance(bounds, str):
        low, high = check_bounds(bounds)
        for y in (drawn.low, drawn.high):
            if not low <= y <= high:
                msg = (
                    f"`bounds` must hold every y, got ({show(low)}, {show(high)}) "
                    f"and y = {show(y)}."
                )
                raise ValueError(msg)


def _prepare(
    model: LocalExpertRegressor, drawn: Drawn, sample: Rows
) -> LocalExpertRegressor:
    """Return an unfitted twin, with what the whole table says of bounds."""
    own: LocalExpertRegressor = clone(model)
    own.set_params(recalibrate=None, verbose=0)
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


def _correct(
    fitted: LocalExpertRegressor, parts: Parts, roles: Roles, drawn: Drawn, sample: Rows
) -> None:
    """Let the rows that no model has seen correct the forecasts."""
    furthest = furthest_score(drawn.weight)
    job = CountScores(fitted, roles, drawn.kinds, sample.hashes[-1], furthest)
    found = _ask(parts, job, "recalibration")
    n_rows = 0 if found is None else found.n_rows
    if found is None or (n_rows, found.check) != (drawn.n_rows, drawn.check):
        other = "other ones" if n_rows == drawn.n_rows else f"{n_rows}"
        msg = (
            f"`parts` must give the same rows at each pass, got {drawn.n_rows} rows, "
            f"then {other}: a function must return a new iterator of the same rows, a "
            "Dask frame whose rows are drawn anew is to be persisted."
        )
        raise ValueError(msg)
    if found.cells.weight.sum() >= _LEAST_UNSEEN:
        recalibration = PitRecalibration(random_state=fitted.random_state)
        fitted._use(recalibration.fit_cells(found.cells))


def _report(
    fitted: LocalExpertRegressor,
    drawn: Drawn,
    sample: Rows,
    curve: dict[str, Any] | None,
) -> None:
    """Add to a model's report what was used for what."""
    whole = sample.hashes[-1] == drawn.rows.hashes[-1]
    rest = "" if whole else ", the others to calibrate by"
    report = fitted.report_.add(
        "large",
        {
            "chosen": f"{len(sample)} of {drawn.n_rows} rows{rest}",
            "rows": drawn.n_rows,
            "sample": len(sample),
            "lowest": drawn.low,
            "highest": drawn.high,
        },
    )
    fitted.report_ = report if curve is None else report.add("learning curve", curve)


def _check_model(model: Any) -> None:
    """Refuse what cannot be fitted part by part."""
    if not isinstance(model, LocalExpertRegressor):
        msg = f"`model` must be a LocalExpertRegressor, got {type(model).__name__}."
        raise TypeError(msg)
    if model.cv != "auto" and not isinstance(model.cv, Integral):
        msg = f'`model` must have cv="auto" or a number of folds, got {model.cv!r}.'
        raise ValueError(msg)
    if model.recalibrate not in (None, "pit"):
        msg = (
            '`model` must have recalibrate=None or "pit", for rows that no model has '
            f"seen recalibrate, got {model.recalibrate!r}."
        )
        raise ValueError(msg)
