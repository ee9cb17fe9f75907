"""`learn_curve`: what more rows would still gain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from localexpert.data.folds import make_folds
from localexpert.large.rows import Rows
from localexpert.progress import current_progress

# Shares of the sample that are learned from besides all of it.
_SHARES = (1.0 / 16.0, 1.0 / 4.0)
# Fewer rows tell nothing of more.
_LEAST_ROWS = 200
# What each further step gains of the one before, at most.
_MOST_RATIO = 0.95
# Rows that are forecast together.
_CHUNK = 2000


def learn_curve(
    model: Any, sample: Rows, beyond: Rows, fit: Callable[[Any, Rows], Any]
) -> dict[str, Any] | None:
    """Fit a model's like on parts of its sample, and try all of them on other rows.

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

    With errors a + b n^-c each step to four times the rows gains a constant share of
    what the step before it did.

    Parameters
    ----------
    first, second, third : float
        CRPS, each of four times the rows of the one before.

    Returns
    -------
    float

    Examples
    --------
    >>> from localexpert.large.learning_curve import expected_gain
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
    """Return an unfitted model that learns as the fitted one did at last.

    What was tried and not taken is not tried again, and there are no more folds:
    fewer rows would ask for more of both.
    """
    less = clone(model).set_params(verbose=0)
    if isinstance(less.cv, str):
        less.set_params(cv=n_folds)
    report = model.report_.choices
    weights = report.get("experts", {}).get("weights", {})
    plain = "roads" not in report and list(weights) == ["shared"]
    if plain and model.strategy == "auto" and model.roads == "auto":
        less.set_params(strategy="shared")
    return less


def _mean_crps(model: Any, rows: Rows) -> float:
    """Return the mean CRPS of forecasts, before they are recalibrated."""
    losses = []
    for start in range(0, len(rows), _CHUNK):
        part = rows.take(slice(start, start + _CHUNK))
        law = model._law(model.reader_.read(part.frame))
        losses.append(law.crps(part.y[:, None])[:, 0])
    return float(np.average(np.concatenate(losses), weights=rows.weight))
