"""`fit_large`: a regressor of more rows than memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from os import PathLike
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from calibration.sources.source import Source, open_source
from localexpert._validation import (
    check_bounds,
    check_choice,
    check_flag,
    check_integer,
    show,
)
from localexpert.large.checkpoint import Checkpoint
from localexpert.large.learning_curve import LearningCurve, learn_curve
from localexpert.large.passes import Runner
from localexpert.large.pit_pass import PitPass
from localexpert.large.roles import Roles
from localexpert.large.row_sample import RowSample, SamplePass
from localexpert.large.scan import Scan, ScanPass
from localexpert.large.strata import Strata
from localexpert.large.threshold_pass import ThresholdPass, choose_calibrators
from localexpert.large.train_all import check_boosted, train_all
from localexpert.large.unseen_rows import UnseenRows
from localexpert.progress import current_progress, show_progress
from localexpert.recalibration.pit import PitRecalibration, furthest_score
from localexpert.regressor.regressor import LocalExpertRegressor
from localexpert.storage import load

# Rows beyond the sample by which a learning curve is drawn.
_BEYOND = 5000
# Most rows, and share of all, beyond the sample by which training on all others is
# judged, and of those that calibrate after it.
_JUDGES, _SHARE_OF_JUDGES = 50_000, 0.1
_HELD, _SHARE_HELD = 500_000, 0.25
# Fewer rows that no model has seen correct nothing.
_LEAST_UNSEEN = 500.0


def fit_large(
    model: LocalExpertRegressor,
    source: Any,
    target: str,
    *,
    max_train_rows: int = 250_000,
    train: Literal["sample", "all"] = "sample",
    weight: str | None = None,
    key: str | None = None,
    client: Any = None,
    checkpoint: str | PathLike[str] | None = None,
    learning_curve: bool = True,
    rows_per_part: int = 500_000,
) -> LocalExpertRegressor:
    """Fit a regressor on a table of any size, part by part.

    A sample is learned from in memory; all other rows, which no model has seen,
    calibrate: one half of them the probabilities at thresholds, the other half whole
    forecasts. What they say replaces what the sample said only where rows held out
    confirm it.

    Parameters
    ----------
    model : LocalExpertRegressor
        Unfitted; it stays as it is. Its `cv` must be "auto" or an integer, its
        `recalibrate` None or "pit", which here are the same.
    source : path, list of paths, DataFrame, dask.dataframe.DataFrame, or callable
        A Parquet or CSV file, a folder of Parquet files, several files, a frame of
        pandas or Dask, or a function without arguments that returns an iterator of
        pandas frames, the same ones at each call.
    target : str
        Column of y.
    max_train_rows : int
        Most rows of the sample.
    train : {"sample", "all"}
        Whether nets and boosters of centre, scale and experts learn from the rows
        beyond the sample, on disk, but for some that judge and calibrate; what does
        not lower the CRPS of the judges is left out. "all" takes experts by shared
        boosting, and some 200 bytes of memory a row.
    weight : str, optional
        Column of weights; an integer is a number of repetitions.
    key : str, optional
        Column that says which rows belong together, as those of a customer: they are
        drawn into the sample together, and stay in one fold. It is no feature. By
        default equal rows belong together.
    client : distributed.Client, optional
        Whose workers make the passes. What a worker fails at, or dies of, is asked of
        others, and at last of this process. The fit on the sample is done here.
    checkpoint : path, optional
        Folder that keeps what is finished, for the same call to go on from there.
    learning_curve : bool
        Whether the report says what more rows would gain, at a third of the time of
        the fit on the sample.
    rows_per_part : int
        Most rows of a part of a file; a row group of Parquet is never parted.

    Returns
    -------
    LocalExpertRegressor
        Fitted: it predicts, saves, explains and reports like any other. `report_` has
        the stages "large", "unseen calibration", "recalibration", "learning curve".

    Notes
    -----
    The sample is, in each of 64 ranges of y with equal weight (for a target of few
    values: in each value), the rows with the smallest hashes of their content, or of
    their key. So it is drawn without shuffling, and with integer weights the sample,
    the folds, the thresholds and all calibrators are the same, bit for bit, however
    the table is parted and ordered.

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
    check_choice(train, "train", ("sample", "all"))
    if train == "all":
        check_boosted(model)
    check_flag(learning_curve, "learning_curve")
    if client is not None and not hasattr(client, "submit"):
        msg = f"`client` must be a Dask client, got {type(client).__name__}."
        raise TypeError(msg)
    opened = open_source(source, rows_per_part=rows_per_part)
    roles = Roles.of(opened, target, weight, key)
    kept = Checkpoint.of(checkpoint, _terms(model, opened, roles, most, train))
    fit = _LargeFit(model, opened, roles, most, train, Runner(opened, client, kept))
    with show_progress(model.verbose, "fit_large"):
        return fit.run(draws_curve=learning_curve)


@dataclass
class _LargeFit:
    """The passes and fits of one call."""

    model: LocalExpertRegressor
    source: Source
    roles: Roles
    most: int
    train: str
    runner: Runner

    def run(self, *, draws_curve: bool) -> LocalExpertRegressor:
        """Scan, draw, fit on the sample, and calibrate by all others."""
        scan, n_parts = self.runner.run(ScanPass(self.roles))
        self._check_scan(scan)
        kept = self.runner.checkpoint
        kept.follow(scan.arrays())
        strata, found = self._draw(scan, n_parts)
        sample, last = found.cut(strata)
        kept.follow(sample.arrays())
        with current_progress().stage("sample fit"):
            fitted: LocalExpertRegressor = kept.model(
                "model", load, lambda: self._fit(sample, scan)
            )
        if scan.low == scan.high:
            fitted.set_params(**self.model.get_params(deep=False))
            return fitted
        beyond = found.take(found.hashes > last[strata.place(found.y)])
        curve = None
        if draws_curve:
            with current_progress().stage("learning curve"):
                curve = learn_curve(
                    fitted, sample, strata, beyond, lambda m, s: _fit(m, s, self.roles)
                )
        unseen = UnseenRows(fitted, self.roles, strata, last)
        if self.train == "all" and len(beyond):
            unseen = self._go_on(unseen, scan, found, beyond, n_parts)
        told = []
        if len(beyond):
            told = self._calibrate(unseen, scan, n_parts)
        return self._finish(unseen.model, scan, sample, told, curve)

    def _check_scan(self, scan: Scan) -> None:
        """Refuse a table without rows, and one beyond the bounds."""
        if scan.n_rows < 2:
            msg = (
                "`source` must have at least two rows with weight, got "
                f"{self.source.name} with {scan.n_rows}."
            )
            raise ValueError(msg)
        bounds = self.model.bounds
        if bounds is not None and not isinstance(bounds, str):
            low, high = check_bounds(bounds)
            for y in (scan.low, scan.high):
                if not low <= y <= high:
                    msg = (
                        f"`bounds` must hold every y, got ({show(low)}, {show(high)}) "
                        f"and y = {show(y)}."
                    )
                    raise ValueError(msg)

    def _draw(self, scan: Scan, n_parts: int) -> tuple[Strata, RowSample]:
        """Return the strata, and the sample with some rows beyond it."""
        strata = Strata.of(scan, self.most, single=self.roles.key is not None)
        share = min(_BEYOND / scan.n_rows, 1.0)
        if self.train == "all":
            share = min(_JUDGES / scan.n_rows, _SHARE_OF_JUDGES)
        quota = strata.quota + np.ceil(share * strata.weight)
        reach = strata.reach(quota)
        found, _ = self.runner.run(
            job := SamplePass(self.roles, strata, quota, reach), n_parts
        )
        if not job.is_enough(found):
            # Many rows of one hash: all are looked at.
            whole = SamplePass(self.roles, strata, quota, np.ones(len(quota)))
            self.runner.checkpoint.follow({"reach": whole.reach})
            found, _ = self.runner.run(whole, n_parts)
        return strata, found

    def _fit(self, sample: RowSample, scan: Scan) -> LocalExpertRegressor:
        """Fit the model on the sample, with what the whole table says of bounds."""
        own = clone(self.model).set_params(recalibrate=None, verbose=0)
        passed = scan.low < 0.0 <= sample.y.min() or sample.y.max() <= 1.0 < scan.high
        if own.bounds == "auto" and passed:
            own.set_params(bounds=None)
        return _fit(own, sample, self.roles)

    def _go_on(
        self,
        unseen: UnseenRows,
        scan: Scan,
        found: RowSample,
        judges: RowSample,
        n_parts: int,
    ) -> UnseenRows:
        """Let the model learn from all rows, but for those that are held out."""
        beyond = unseen.last.copy()
        np.maximum.at(beyond, unseen.strata.place(found.y), found.hashes)
        share = min(_HELD / scan.n_rows, _SHARE_HELD)
        apart = replace(unseen, held=share, beyond=beyond)
        with current_progress().stage("all rows"):
            model = self.runner.checkpoint.model(
                "trained", load, lambda: train_all(apart, self.runner, judges, n_parts)
            )
        if model.report_.choices["all rows"]["chosen"].startswith("sample"):
            return replace(unseen, model=model)
        return replace(apart, model=model)

    def _calibrate(
        self, unseen: UnseenRows, scan: Scan, n_parts: int
    ) -> list[dict[str, Any]]:
        """Let the rows that no model has seen calibrate; say what they changed."""
        model, kept = unseen.model, self.runner.checkpoint
        told = []
        if model.calibrator is not None:
            counts, _ = self.runner.run(ThresholdPass(unseen), n_parts)
            told = choose_calibrators(model, counts)
            kept.follow(counts.arrays())
        job = PitPass(unseen, furthest_score(scan.weight))
        found, _ = self.runner.run(job, n_parts)
        if found.weight.sum(axis=1).min() * len(found.weight) < _LEAST_UNSEEN:
            return told
        seed = model.random_state
        model._use(PitRecalibration(random_state=seed).fit_cells(found.cells))
        return told

    def _finish(
        self,
        fitted: LocalExpertRegressor,
        scan: Scan,
        sample: RowSample,
        told: list[dict[str, Any]],
        curve: LearningCurve | None,
    ) -> LocalExpertRegressor:
        """Give the model the user's parameters, and a report of what was used."""
        fitted.set_params(**self.model.get_params(deep=False))
        rest = ", the others to calibrate by" if len(sample) < scan.n_rows else ""
        report = fitted.report_.add(
            "large",
            {
                "chosen": f"{len(sample)} of {scan.n_rows} rows{rest}",
                "rows": scan.n_rows,
                "sample": len(sample),
                "lowest": scan.low,
                "highest": scan.high,
                "unseen categories": _count_unseen(scan, sample),
            },
        )
        for number, one in enumerate(told):
            of = "unseen calibration" + (f" {number + 1}" if number else "")
            report = report.add(of, one)
        if curve is not None:
            report = report.add("learning curve", curve.choices())
        fitted.report_ = report
        return fitted


def _fit(
    model: LocalExpertRegressor, sample: RowSample, roles: Roles
) -> LocalExpertRegressor:
    """Fit a model on the rows of a sample; those of one key stay together."""
    equal = bool((sample.weight == sample.weight[0]).all())
    groups = None
    if roles.key is not None:
        groups = np.unique(sample.hashes, return_inverse=True)[1]
    return model.fit(
        sample.frame, sample.y, None if equal else sample.weight, groups=groups
    )


def _count_unseen(scan: Scan, sample: RowSample) -> dict[str, int]:
    """Return how many values of texts the sample lacks: they count as missing."""
    lacks = {
        name: len(held - set(sample.frame[name].dropna()))
        for name, held in scan.texts.items()
    }
    return {name: count for name, count in lacks.items() if count}


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


def _terms(
    model: LocalExpertRegressor, source: Source, roles: Roles, most: int, train: str
) -> dict[str, Any]:
    """Return what a checkpoint must have in common with this call."""
    parameters = model.get_params(deep=False)
    ours = ("verbose", "n_jobs")
    return {
        "model": {k: repr(v) for k, v in sorted(parameters.items()) if k not in ours},
        "source": [] if source.in_order else [p.identity() for p in source.parts],
        "target": roles.target,
        "weight": roles.weight,
        "key": roles.key,
        "max_train_rows": most,
        "train": train,
    }
