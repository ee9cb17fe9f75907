"""Calibration and refinement of a score, by recalibrating rows that were held out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from calibration._validation import (
    check_callable,
    check_class_forecasts,
    check_integer,
    told_of_light,
)
from calibration.measures.scores import log_loss
from calibration.typing import Float64Array


@dataclass(frozen=True)
class CrossFittedDecomposition:
    """Parts of a proper score: score = calibration + refinement.

    Parameters
    ----------
    calibration : float
        What recalibration gains on rows that it has not seen; negative where it does
        harm, as it may if the forecasts are calibrated.
    refinement : float
        Score of the recalibrated forecasts.
    score : float
        The score itself.

    Examples
    --------
    >>> from calibration import IdentityCalibrator, cross_fitted_decomposition
    >>> y_true, y_prob = [0, 0, 1, 1], [0.25, 0.5, 0.5, 0.75]
    >>> parts = cross_fitted_decomposition(y_true, y_prob, IdentityCalibrator(), cv=2)
    >>> round(parts.calibration, 4), round(parts.refinement, 4), round(parts.score, 4)
    (0.0, 0.4904, 0.4904)
    """

    calibration: float
    refinement: float
    score: float


def cross_fitted_decomposition(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    recalibrator: Any,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    score: Callable[..., float] = log_loss,
    cv: int = 5,
) -> CrossFittedDecomposition:
    r"""Split a proper score of any number of classes by recalibration out of fold.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels coded 0 and 1, or column numbers, or what `classes` names.
    y_prob : array-like of shape (n,) or (n, k)
        Forecast probabilities of class 1, or of each class.
    recalibrator : calibrator
        Cloned and fitted on probabilities and labels: of two classes a
        `ScoreCalibrator`, of more one whose scores are (n, k).
    sample_weight : array-like of shape (n,), optional
        Numbers of repetitions.
    classes : array-like of shape (k,), optional
        The labels that the columns stand for.
    score : callable
        A proper score `score(y_true, y_prob, *, sample_weight)` such as `log_loss` or
        `brier_score`; bind further arguments with `functools.partial`.
    cv : int
        Number of folds, at least 2.

    Returns
    -------
    CrossFittedDecomposition
        The parts and the score.

    Notes
    -----
    With L(q) the mean score of forecasts q, calibration is :math:`L(p) - \min_g
    L(g(p))` and refinement :math:`\min_g L(g(p))`. The map g of each row is learned
    from the other folds, so that the parts are not flattered by overfitting, and
    calibration is at most what the method of recalibration finds: name it when you
    report the number.

    Equal rows of one label are in one fold, and folds are dealt round the sorted rows
    of each label: the answer depends neither on the order of rows nor on chance, and a
    weight is a number of repetitions if it is one to the recalibrator.

    References
    ----------
    Berta, Holzmueller, Jordan & Bach (2025), Rethinking early stopping: refine, then
    calibrate. DeGroot & Fienberg (1983), The comparison and evaluation of forecasters.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import TemperatureCalibrator, cross_fitted_decomposition
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=2000)
    >>> y = rng.uniform(size=2000) < p
    >>> sharp = p**3 / (p**3 + (1 - p) ** 3)
    >>> for q in (p, sharp):
    ...     parts = cross_fitted_decomposition(y, q, TemperatureCalibrator())
    ...     print(f"{parts.calibration:.3f} + {parts.refinement:.3f}")
    0.000 + 0.490
    0.195 + 0.490
    """
    check_callable(score, "score")
    cv = check_integer(cv, "cv", 2)
    if isinstance(recalibrator, type) or not hasattr(recalibrator, "fit"):
        msg = f"`recalibrator` must have `fit` and `predict`, got {recalibrator!r}."
        raise TypeError(msg)
    labels, forecasts, weights = _merge_rows(
        *check_class_forecasts(y_true, y_prob, sample_weight, classes)
    )
    if len(labels) < cv:
        msg = (
            "`cv` must not be greater than the number of different rows, "
            f"got {cv} folds for {len(labels)} of them."
        )
        raise ValueError(msg)
    recalibrated = np.empty_like(forecasts)
    folds = np.arange(len(labels)) % cv
    for fold in range(cv):
        test = folds == fold
        with told_of_light():
            fitted = clone(recalibrator).fit(
                forecasts[~test], labels[~test], sample_weight=weights[~test]
            )
        recalibrated[test] = fitted.predict(forecasts[test])
    own = float(score(labels, forecasts, sample_weight=weights))
    refinement = float(score(labels, recalibrated, sample_weight=weights))
    return CrossFittedDecomposition(own - refinement, refinement, own)


def _merge_rows(
    labels: NDArray[Any], forecasts: Float64Array, weights: Float64Array
) -> tuple[NDArray[np.int64], Float64Array, Float64Array]:
    """Return distinct rows sorted by label and forecast, with their weights."""
    held = weights > 0.0
    keys = np.column_stack([labels, forecasts])[held]
    rows, places = np.unique(keys, axis=0, return_inverse=True)
    merged = np.zeros(len(rows))
    np.add.at(merged, places.ravel(), weights[held])
    probabilities = np.ascontiguousarray(rows[:, 1:])
    if forecasts.ndim == 1:
        probabilities = probabilities[:, 0]
    return rows[:, 0].astype(np.int64), probabilities, merged
