"""Fitted classifiers with the calibrators of their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from calibration._validation import told_of_light
from calibration.base.calibrators import ScoreCalibrator
from calibration.classifier.folds import (
    Fold,
    Rows,
    TrainingData,
    cross_fit,
    refuse_repeats,
)
from calibration.classifier.responses import ScoreReader
from calibration.monotone.venn_abers import VennAbersCalibrator, merge_intervals
from calibration.multiclass.base import MulticlassCalibrator
from calibration.typing import Float64Array


class CalibratedPair(NamedTuple):
    """A fitted classifier and the calibrator of its scores."""

    estimator: Any
    calibrator: ScoreCalibrator | MulticlassCalibrator


def takes_columns(calibrator: ScoreCalibrator | MulticlassCalibrator) -> bool:
    """Say whether a calibrator takes scores (n, k), not those of one class."""
    return isinstance(calibrator, MulticlassCalibrator)


def fit_frozen(
    estimator: Any,
    calibrator: ScoreCalibrator | MulticlassCalibrator,
    data: TrainingData,
    weights: Float64Array,
    read: ScoreReader,
) -> CalibratedPair:
    """Return a fitted classifier with the calibrator of its scores of all rows."""
    scores = read(estimator, data.X)
    with told_of_light():
        calibrator.fit(scores, read.targets(data.y), weights)
    return CalibratedPair(estimator, calibrator)


def fit_folds(
    estimator: Any,
    calibrator: ScoreCalibrator | MulticlassCalibrator,
    data: TrainingData,
    folds: list[Fold],
    weights: Float64Array,
    read: ScoreReader,
    *,
    ensemble: bool,
    n_jobs: int | None,
) -> tuple[list[CalibratedPair], Float64Array]:
    """Fit a pair for each fold, or one on the held-out scores of all of them.

    Returns
    -------
    pairs : list of CalibratedPair
    scores : ndarray of shape (n,) or (n, k)
        The held-out scores.
    """
    parts = [test for _, test in folds]
    tested = np.concatenate(parts)
    if not ensemble:
        refuse_repeats(folds, len(data.y), " with `ensemble=False`")
    models, scores = cross_fit(
        estimator, data, folds, read, refit=not ensemble, n_jobs=n_jobs
    )
    # Held-out scores of all folds together: each comes from a classifier that has
    # not seen its row.
    pooled = np.concatenate(scores)
    held_out = _average_rows(pooled, tested, len(data.y))
    if not ensemble:
        parts, scores = [tested], [pooled]
    targets = read.targets(data.y)
    with told_of_light():
        calibrators = [
            # Here and not in the workers, whose warnings would be lost.
            clone(calibrator).fit(score, targets[rows], weights[rows])
            for score, rows in zip(scores, parts, strict=True)
        ]
    pairs = zip(models, calibrators, strict=True)
    return [CalibratedPair(*pair) for pair in pairs], held_out


def predict_pairs(
    pairs: Sequence[CalibratedPair], read: ScoreReader, X: Any
) -> Float64Array:
    """Return the mean of what the pairs predict, shape (n, k)."""
    asked = [(pair.calibrator, read(pair.estimator, X)) for pair in pairs]
    if len(asked) > 1 and isinstance(asked[0][0], VennAbersCalibrator):
        positive = merge_intervals([va.predict_interval(s) for va, s in asked])
    else:
        answers = [one.predict(scores) for one, scores in asked]
        positive = np.mean(answers, axis=0)
    if read.columns:
        return positive
    return np.column_stack([1.0 - positive, positive])


def interval_of_pairs(
    pairs: Sequence[CalibratedPair],
    read: ScoreReader,
    X: Any,
    options: Mapping[str, Any],
) -> Float64Array:
    """Return what the calibrator of the only pair says, shape (n, 2)."""
    estimator, calibrator = pairs[0]
    if not hasattr(calibrator, "predict_interval"):
        msg = (
            "`calibrator` must have intervals, as IsotonicCalibrator and "
            f"VennAbersCalibrator have for two classes, got {calibrator!r}."
        )
        raise TypeError(msg)
    if len(pairs) > 1:
        # The mean of intervals holds nothing with a known probability.
        msg = (
            "`ensemble` must be False for intervals, which are of one calibrator, "
            f"got {len(pairs)} of them."
        )
        raise ValueError(msg)
    scores = read(estimator, X)
    return np.asarray(calibrator.predict_interval(scores, **options))


def _average_rows(pooled: Float64Array, tested: Rows, n: int) -> Float64Array:
    """Return scores by row; a repeated split tests one several times, others none."""
    counts = np.bincount(tested, minlength=n)
    columns = pooled.reshape(len(pooled), -1).T
    sums = [np.bincount(tested, column, n) for column in columns]
    with np.errstate(invalid="ignore"):
        means = np.where(counts > 0, np.array(sums) / counts, np.nan)
    return means.T.reshape(n, *pooled.shape[1:])
