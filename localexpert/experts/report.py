"""What experts said out of fold, and how good each threshold's expert is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration import auc_score, expected_calibration_error, log_loss
from calibration.typing import Float64Array
from localexpert._validation import format_numbers
from localexpert.data.folds import Fold, Rows, number_folds, renumber_folds

# Bits of the significand that probabilities keep, besides the first.
_BITS = 11


@dataclass(frozen=True)
class TaskRecord:
    """Tasks "is it at most v_k?" with their out-of-fold answers.

    Parameters
    ----------
    thresholds : ndarray of shape (N,)
    raw, calibrated : ndarrays of shape (n, N)
        Before and after calibration. Raw ones have the base rates of all rows. After a
        fit both are rounded by `round_odds`.
    below : ndarray of shape (n, N)
    folds : list of (train, test)
    weight : ndarray of shape (n,)
    """

    thresholds: Float64Array
    raw: Float64Array
    calibrated: Float64Array
    below: NDArray[np.bool_]
    folds: list[Fold]
    weight: Float64Array

    def take(self, rows: Rows) -> TaskRecord:
        """Return the answers for some rows, renumbered."""
        return TaskRecord(
            self.thresholds,
            self.raw[rows],
            self.calibrated[rows],
            self.below[rows],
            renumber_folds(self.folds, rows, len(self.weight)),
            self.weight[rows],
        )


def round_odds(p: Float64Array) -> Float64Array:
    """Round probabilities so that odds change by less than one part in 3000.

    The answers for many rows take most of the space of a saved model, and the last
    forty bits of each are noise. Order is kept, and so are 0 and 1.

    Parameters
    ----------
    p : ndarray
        Probabilities in [0, 1].

    Returns
    -------
    ndarray of the same shape

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.experts.report import round_odds
    >>> round_odds(np.array([0.0, 1e-9, 0.1, 0.5, 0.9, 1.0]))
    array([0.00000000e+00, 9.99989425e-10, 1.00006104e-01, 5.00000000e-01,
           8.99993896e-01, 1.00000000e+00])
    """
    # Round relative to the smaller of p and 1 - p, so nearly certain answers stay so.
    smaller = np.minimum(p, 1.0 - p)
    bits = smaller.view(np.int64)
    dropped = 52 - _BITS
    bits += 1 << (dropped - 1)
    bits &= -(1 << dropped)
    return np.where(p < 0.5, smaller, 1.0 - smaller)


# A step map's 0 and 1 are honest at training rows only; elsewhere they are clipped.
_CLIP = 1e-6


@dataclass(frozen=True)
class ExpertReport:
    """Out-of-fold figures of the experts, one row per threshold.

    Parameters
    ----------
    thresholds : ndarray of shape (N,)
        In the coordinate of the frame.
    base_rate : ndarray of shape (N,)
        Weighted share of training rows below the threshold.
    auc : ndarray of shape (N,)
        Area under the ROC curve of the raw probabilities.
    log_loss, log_loss_raw : ndarrays of shape (N,)
        After and before calibration.
    calibration_error, calibration_error_raw : ndarrays of shape (N,)
        Expected calibration error over ten bins of equal frequency.
    accuracy, kappa : ndarrays of shape (N, n_folds)
        At probability one half, after calibration, per fold.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.experts.report import ExpertReport
    >>> from localexpert.experts.report import TaskRecord
    >>> p = np.array([[0.2], [0.8], [0.3], [0.9]])
    >>> below = np.array([[False], [True], [False], [True]])
    >>> first, last = np.array([0, 1]), np.array([2, 3])
    >>> folds = [(last, first), (first, last)]
    >>> record = TaskRecord(np.zeros(1), p, p, below, folds, np.ones(4))
    >>> report = ExpertReport.of(record)
    >>> report.auc, report.accuracy
    (array([1.]), array([[1., 1.]]))
    """

    thresholds: Float64Array
    base_rate: Float64Array
    auc: Float64Array
    log_loss: Float64Array
    log_loss_raw: Float64Array
    calibration_error: Float64Array
    calibration_error_raw: Float64Array
    accuracy: Float64Array
    kappa: Float64Array

    @classmethod
    def of(cls, record: TaskRecord) -> ExpertReport:
        """Measure what experts said out of fold.

        Parameters
        ----------
        record : TaskRecord

        Returns
        -------
        ExpertReport
        """
        raw, calibrated = record.raw, record.calibrated
        below, w = record.below, record.weight
        fold = number_folds(record.folds, len(below))

        def each(measure: Any, p: Float64Array, **options: Any) -> Float64Array:
            pairs = zip(below.T, p.T, strict=True)
            found = [measure(b, q, sample_weight=w, **options) for b, q in pairs]
            return np.array(found)

        folds = [(fold == f) & (w > 0.0) for f in np.unique(fold)]
        hits = [_agreement(below[rows], calibrated[rows], w[rows]) for rows in folds]
        accuracy, kappa = np.array(hits).transpose(1, 2, 0)
        return cls(
            record.thresholds,
            w @ below / w.sum(),
            each(_auc, raw),
            each(log_loss, calibrated, clip=_CLIP),
            each(log_loss, raw, clip=_CLIP),
            each(expected_calibration_error, calibrated),
            each(expected_calibration_error, raw),
            accuracy,
            kappa,
        )

    def __str__(self) -> str:
        names = format_numbers(self.thresholds.tolist(), 4)
        width = max(map(len, ["threshold", *names]))
        lines = [
            "thresholds in the coordinate of the frame",
            f"{'threshold':>{width}}  base rate    AUC  log loss (raw)    "
            "cal. error (raw)  accuracy         kappa",
        ]
        for k in range(len(self.thresholds)):
            hit, kappa = self.accuracy[k], self.kappa[k]
            lines.append(
                f"{names[k]:>{width}}  {self.base_rate[k]:9.3f} "
                f"{self.auc[k]:6.3f}  {self.log_loss[k]:8.4f} "
                f"({self.log_loss_raw[k]:.4f})  {self.calibration_error[k]:6.4f} "
                f"({self.calibration_error_raw[k]:.4f})   "
                f"{hit.mean():.3f} +- {hit.std():.3f}  "
                f"{round(kappa.mean(), 3) + 0.0:.3f} +- {kappa.std():.3f}"
            )
        return "\n".join(lines)


def _auc(
    below: NDArray[np.bool_], p: Float64Array, sample_weight: Float64Array
) -> float:
    """Area under the ROC curve; 1/2 where there is one class only."""
    held = below[sample_weight > 0.0]
    if held.all() or not held.any():
        return 0.5
    return auc_score(below, p, sample_weight=sample_weight)


def _agreement(
    below: NDArray[np.bool_], p: Float64Array, w: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Accuracy at each threshold, and Cohen's kappa (0 where chance alone agrees).

    Written out: scikit-learn's two functions check labels for some milliseconds a
    call, and there is a call for every threshold and fold.
    """
    positive, share = p >= 0.5, w / w.sum()
    both, neither = share @ (positive & below), share @ ~(positive | below)
    over, under = share @ (positive & ~below), share @ (below & ~positive)
    # From counts: 0 to the last bit where one side says the same for all rows.
    room = (both + over) * (over + neither) + (both + under) * (under + neither)
    agreed = both * neither - over * under
    return both + neither, 2.0 * agreed / np.where(room > 0.0, room, 1.0)
