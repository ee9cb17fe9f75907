"""`LearningCurve`: what more rows would still gain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from localexpert.data.folds import make_folds
from localexpert.large.row_sample import RowSample
from localexpert.large.strata import Strata
from localexpert.progress import current_progress

# Shares of the sample that are learned from besides all of it.
_SHARES = (1.0 / 16.0, 1.0 / 4.0)
# Fewer rows tell nothing of more.
_LEAST_ROWS = 200
# What each further step gains of the one before, at most.
_MOST_RATIO = 0.95
# Rows that are forecast together.
_CHUNK = 2000


@dataclass(frozen=True)
class LearningCurve:
    """CRPS of rows that no model has seen, by the number of rows learned from.

    Parameters
    ----------
    rows : list of int
        Each four times the one before.
    crps : list of float
    """

    rows: list[int]
    crps: list[float]

    @property
    def gain(self) -> float | None:
        """Share of the CRPS that four times the rows would gain, as the steps go on.

        With errors a + b n^-c each step gains a constant share of what the step before
        it did, and four times the rows are one step more.
        """
        if len(self.crps) < 3:
            return None
        first, second = -np.diff(self.crps)[-2:]
        if min(first, second) <= 0.0:
            return 0.0
        ratio = min(second / first, _MOST_RATIO)
        return float(second * ratio / self.crps[-1])

    def choices(self) -> dict[str, Any]:
        """Return the curve, ready for JSON.

        Returns
        -------
        dict
        """
        losses = {str(n): loss for n, loss in zip(self.rows, self.crps, strict=True)}
        gain = self.gain
        told = "nothing is known" if gain is None else f"{100.0 * gain:.2g} % of CRPS"
        return {"losses": losses, "chosen": f"4 times the rows would gain {told}"}


def learn_curve(
    model: Any, sample: RowSample, strata: Strata, beyond: RowSample, fit: Any
) -> LearningCurve | None:
    """Fit a model's like on parts of its sample, and try all of them on other rows.

    Parameters
    ----------
    model : LocalExpertRegressor
        Fitted on the sample.
    sample : RowSample
    strata : Strata
        By which it was drawn: its parts are the smallest hashes, too.
    beyond : RowSample
        Rows that were not drawn.
    fit : callable
        Takes an unfitted model and a sample.

    Returns
    -------
    LearningCurve or None
        None where there are too few rows.
    """
    if len(beyond) < _LEAST_ROWS or len(sample) * _SHARES[0] < _LEAST_ROWS:
        return None
    rows, crps = [], []
    n_folds = len(make_folds(len(sample)))
    for share in _SHARES:
        less = np.maximum(np.floor(strata.quota * share), 0.0)
        part = sample.within(replace(strata, quota=less), less)
        with current_progress().stage(f"{len(part)} rows"):
            fitted = fit(_like(model, n_folds), part)
        rows.append(len(part))
        crps.append(mean_crps(fitted, beyond))
    return LearningCurve([*rows, len(sample)], [*crps, mean_crps(model, beyond)])


def _like(model: Any, n_folds: int) -> Any:
    """Return an unfitted model that learns as the fitted one did at last.

    What was tried and not taken is not tried again, and there are no more folds:
    fewer rows would ask for more of both.
    """
    less = clone(model).set_params(verbose=0)
    if isinstance(less.cv, str):
        less.set_params(cv=n_folds)
    report = model.report_.choices
    plain = "roads" not in report and list(
        report.get("experts", {}).get("weights", {})
    ) == ["shared"]
    if plain and model.strategy == "auto" and model.roads == "auto":
        return less.set_params(strategy="shared")
    return less


def mean_crps(model: Any, rows: RowSample) -> float:
    """Return the mean CRPS of forecasts, before they are recalibrated.

    Parameters
    ----------
    model : LocalExpertRegressor
    rows : RowSample

    Returns
    -------
    float
    """
    total = 0.0
    for start in range(0, len(rows), _CHUNK):
        part = rows.take(np.arange(start, min(start + _CHUNK, len(rows))))
        law = model._law(model.reader_.read(part.frame))
        total += float(part.weight @ law.crps(part.y[:, None])[:, 0])
    return total / float(rows.weight.sum())
