"""`DriftMonitor`: what monitors of all kinds of forecasts have in common."""

from __future__ import annotations

import hashlib
import warnings
from abc import ABCMeta, abstractmethod
from typing import Any

import numpy as np
from scipy.special import gammaln, xlogy
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from calibration._validation import check_integer, check_level, check_number, is_auto
from calibration.base.calibrators import forget_fit
from calibration.drift.advice import Advice
from calibration.exceptions import CalibrationWarning
from calibration.typing import Float64Array

#: Standard errors of a fit that are no shift.
ERRORS = 1.25
#: Rows of a first batch that a tolerance can be learned from.
FIRST_ROWS = 50.0
# Logarithm of the largest e-value that is a number.
_MOST = 700.0
# A batch that equals one of those before by no greater chance is that batch again.
_LEAST_CHANCE = 1e-9
# Frames from a warning here to the line of a user's `partial_fit`.
_UP = 4


class DriftMonitor(BaseEstimator, metaclass=ABCMeta):
    """Base of monitors: e-values batch by batch, their record, and the alarm."""

    n_fit: int
    tolerance: float | str
    alpha: float
    memory: float
    tolerance_: float
    alarm_: bool
    alarm_row_: float | None
    n_rows_: float
    n_batches_: int
    log_e_: float
    history_: dict[str, Float64Array]
    _seen_: tuple[str, ...]

    @property
    def e_value_(self) -> float:
        """The e-value of all batches so far, against the null."""
        return float(np.exp(min(self.log_e_, _MOST)))

    @abstractmethod
    def advise(self) -> Advice:
        """Return what to do, and the evidence for it."""

    @abstractmethod
    def _onset_batch(self) -> int:
        """Number of the batch with which the change began, if there is one."""

    def find_onset(self) -> float | None:
        """Return after how many rows the change began, None as long as no alarm.

        Returns
        -------
        float or None
            The likeliest end of a batch; 0 if nothing was ever right.
        """
        check_is_fitted(self)
        if not self.alarm_:
            return None
        first = self._onset_batch()
        return float(self.history_["row"][first - 1]) if first else 0.0

    def _check_parameters(self) -> None:
        check_integer(self.n_fit, "n_fit", 1)
        if not is_auto(self.tolerance):
            check_number(self.tolerance, "tolerance", 0.0)
        check_level(self.alpha, "alpha")
        check_number(self.memory, "memory", 1.0)

    @property
    def _is_new(self) -> bool:
        return not hasattr(self, "n_batches_")

    def _check_first(self, n: float) -> None:
        """Refuse a first batch that is too small to learn a tolerance from."""
        if is_auto(self.tolerance) and n < FIRST_ROWS:
            msg = (
                "`tolerance` is learned from the forecasts of the first batch, which "
                f"must have at least {FIRST_ROWS:g} rows, got {n:g}: join batches, or "
                "say the tolerance."
            )
            raise ValueError(msg)

    def _set_tolerance(self, information: float = 1.0) -> None:
        """Set the tolerance by what a row tells of a shift."""
        if isinstance(self.tolerance, str):
            self.tolerance_ = ERRORS / float(np.sqrt(self.n_fit * information))
        else:
            self.tolerance_ = float(self.tolerance)

    @property
    def _surest(self) -> float:
        """Chance that no forecast is taken to be below, or its complement above."""
        return 1.0 / (self.n_fit + 2.0)

    def _start(self) -> None:
        """Begin the record."""
        forget_fit(self)
        self.alarm_, self.alarm_row_ = False, None
        self.n_rows_, self.n_batches_, self.log_e_ = 0.0, 0, 0.0
        self.history_ = {}
        self._seen_ = ()

    def _is_repeated(self, rows: Float64Array, weight: Float64Array) -> bool:
        r"""Say whether a batch has been seen, its rows in any order; remember it.

        Rows drawn from any law of their own equal the batch by a chance of at most
        :math:`\frac{n!}{\prod c_i!} \prod (c_i / n)^{c_i}`, with :math:`c_i` the number
        of each. Only where that is tiny the batch is taken for a repeated one.

        Parameters
        ----------
        rows : ndarray of shape (n, k)
            Forecasts and outcomes.
        weight : ndarray of shape (n,)
        """
        # In single precision: forecasts of rows in another order may differ in a bit.
        cells, place = np.unique(rows.astype(np.float32), axis=0, return_inverse=True)
        counts = np.bincount(place.ravel(), weights=weight)
        data = cells.tobytes() + counts.astype(np.float32).tobytes()
        digest = hashlib.sha256(data).hexdigest()[:32]
        if digest not in self._seen_:
            self._seen_ += (digest,)
            return False
        n = counts.sum()
        ways = gammaln(n + 1.0) - gammaln(counts + 1.0).sum()
        chance = len(self._seen_) * np.exp(ways + xlogy(counts, counts / n).sum())
        is_chance = bool(chance > _LEAST_CHANCE)
        told = (
            "counted, for so few different rows may be equal by chance"
            if is_chance
            else "not counted again"
        )
        msg = f"A batch holds the same {n:g} rows as one before it: it is {told}."
        warnings.warn(msg, CalibrationWarning, stacklevel=_UP)
        return not is_chance

    def _record(
        self, n: float, parts: dict[str, tuple[float, float]], **facts: float
    ) -> None:
        """Add a batch of n rows: the share and log e-value of each part, and facts."""
        self.n_rows_ += n
        self.n_batches_ += 1
        shares, logs = np.array(list(parts.values())).T
        # A mean of e-processes is one.
        self.log_e_ = float(np.logaddexp.reduce(np.log(shares) + logs))
        row: dict[str, Any] = {"row": self.n_rows_, "n": n, "log_e": self.log_e_}
        row |= {f"log_e_{name}": log for name, (_, log) in parts.items()} | facts
        for name, value in row.items():
            before = self.history_.get(name, np.empty(0))
            self.history_[name] = np.append(before, value)
        if not self.alarm_ and self.log_e_ >= -np.log(self.alpha):
            self.alarm_, self.alarm_row_ = True, self.n_rows_

    def _leader(self) -> str:
        """Name of the part with the greatest e-value."""
        parts = [name for name in self.history_ if name.startswith("log_e_")]
        best = max(parts, key=lambda name: self.history_[name][-1])
        return best.removeprefix("log_e_")
