"""Softmax regression on log-probabilities: matrix, vector and temperature scaling."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from calibration._validation import (
    check_choice,
    check_integer,
    check_number,
    check_optional_seed,
    is_auto,
    refuse,
)
from calibration.exceptions import CalibrationWarning
from calibration.multiclass.base import ClassScale, MulticlassCalibrator
from calibration.multiclass.class_scores import (
    ClassScores,
    RowLosses,
    deal_by_class,
    draw_rows,
    simplest_of_best,
)
from calibration.multiclass.softmax_map import SoftmaxMap, fit_path, fit_temperature
from calibration.typing import Float64Array

_STRUCTURES = ("matrix", "vector", "temperature")
# Multipliers of the ridge that are tried. The most careful is first.
PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
# Beyond this many classes, the k^2 parameters of a matrix cost more than they bring.
MOST_MATRIX_CLASSES = 150
# Penalties are tried on rows that hold at most this many numbers. The ridge counts in
# rows, so with fewer rows its multiplier is much the same.
_TRIAL_NUMBERS = 3_000_000
# Held-out losses differ by far more than the error of such a fit.
_TRIAL_TOLERANCE = 1e-6


class SoftmaxCalibrator(MulticlassCalibrator):
    r"""Softmax regression on log-probabilities, with a ridge towards doing nothing.

    Parameters
    ----------
    structure : {"matrix", "vector", "temperature"}
        "matrix" mixes the logits. "vector" stretches each logit by its own number.
        "temperature" stretches all by one number.
    penalty : float or "auto"
        Multiplier of the ridge of a matrix or vector. 1 is that of structured matrix
        scaling, and 0 means no ridge. "auto" chooses from 1 to 0.003 by
        cross-validation. The ridge of the temperature is always a thousandth of a row.
    n_folds : int
        Number of folds of "auto".
    random_state : int or None
        Seed of the folds. None draws one.
    classes : sequence of k names, optional
        Names of the columns. Default: their numbers, 0 to k - 1.
    scale : {"probability", "logit"}
        What a score is.

    Attributes
    ----------
    structure_ : str
        The fitted structure. It is "vector" instead of a matrix if there are more than
        150 classes, and "temperature" if rows weigh less than the number of classes.
    penalty_ : float or None
        The multiplier. It is None for a temperature.
    inverse_temperature_ : float
        Inverse of the temperature that comes first.
    coef_ : ndarray of shape (k, k), or (k,) of a vector; not of a temperature
        Factors of the log-probabilities at that temperature: I + W, or 1 + v.
    intercept_ : ndarray of shape (k,)
        It is missing for a temperature.
    cv_losses_ : dict of float to float
        Mean held-out log loss of each multiplier. Only with "auto".
    map_ : SoftmaxMap
        All of this as a function.

    Notes
    -----
    Let z = log p. The temperature is the b > 0 with the least mean cross-entropy CE of
    S(b z), where S is the softmax. It has the weak ridge of `TemperatureCalibrator`,
    which keeps b finite if classes are separable. A matrix and a vector start from
    :math:`z' = \log\bigl((1 - \tfrac{1}{n+1}) S(b z) + \tfrac{1}{(n+1) k}\bigr)`:

    .. math:: S((I + W) z' + b), \quad CE + \lambda \Bigl(\tfrac{k}{n} \sum_j b_j^2
        + \tfrac{k}{n} \sum_j W_{jj}^2
        + \tfrac{k (k-1)}{n} \sum_{i \ne j} W_{ij}^2\Bigr),

    A vector has no last sum. :math:`\lambda` is `penalty`. Both problems are convex,
    and are solved until no entry of the gradient exceeds 1e-9. n is the sum of the
    weights, so weights are repetitions. Without a penalty z' is b z. This is matrix
    scaling of log p, or Dirichlet calibration. For two classes it is beta calibration.

    A probability of exactly 0 counts as half of the least positive one seen in
    training. The temperature alone mixes rows that hold a 0 with the uniform law as
    above, so that no class is ruled out.

    "auto" takes the largest multiplier whose mean held-out loss is within a quarter of
    a standard error (of the paired difference) of the best. A whole standard error was
    tried on sixty pairs of tables and classifiers: it gave up a third of the gain, and
    prevented no harm.

    References
    ----------
    Guo, Pleiss, Sun & Weinberger (2017), On calibration of modern neural networks.
    Kull et al. (2019), Beyond temperature scaling (Dirichlet calibration). Berta,
    Holzmueller, Jordan & Bach (2025), Structured matrix scaling for multi-class
    calibration.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import SoftmaxCalibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], size=3000)
    >>> y = (rng.uniform(size=(3000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> bold = p**2 / (p**2).sum(axis=1, keepdims=True)
    >>> calibrator = SoftmaxCalibrator("temperature").fit(bold, y)
    >>> round(calibrator.inverse_temperature_, 1)
    0.5
    >>> np.abs(SoftmaxCalibrator().fit(bold, y).predict(bold) - p).max() < 0.1
    np.True_
    """

    structure_: str
    penalty_: float | None
    inverse_temperature_: float
    coef_: Float64Array
    intercept_: Float64Array
    cv_losses_: dict[float, float]
    map_: SoftmaxMap

    def __init__(
        self,
        structure: Literal["matrix", "vector", "temperature"] = "matrix",
        penalty: float | Literal["auto"] = "auto",
        *,
        n_folds: int = 4,
        random_state: int | None = 0,
        classes: Sequence[Any] | None = None,
        scale: ClassScale = "probability",
    ):
        self.structure = structure
        self.penalty = penalty
        self.n_folds = n_folds
        self.random_state = random_state
        self.classes = classes
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.structure, "structure", _STRUCTURES)
        if not is_auto(self.penalty):
            if isinstance(self.penalty, str):
                refuse("penalty", 'be a number or "auto"', f"{self.penalty!r}")
            check_number(self.penalty, "penalty", 0.0)
        check_integer(self.n_folds, "n_folds", 2)
        check_optional_seed(self.random_state)

    def _fit_table(self, data: ClassScores) -> None:
        self.structure_ = self._find_structure(data)
        if self.structure_ == "temperature":
            self.map_ = fit_temperature(data, self.scale)
        else:
            auto = is_auto(self.penalty)
            penalty = self._choose_penalty(data) if auto else float(self.penalty)
            (self.map_,) = fit_path(data, self.scale, self.structure_, [penalty])
            matrix = self.map_.theta[:, :-1]
            is_matrix = self.structure_ == "matrix"
            self.coef_ = np.eye(len(matrix)) + matrix if is_matrix else 1 + matrix[:, 0]
            self.intercept_ = self.map_.theta[:, -1].copy()
        self.penalty_ = self.map_.penalty
        self.inverse_temperature_ = self.map_.inverse_temperature

    def _predict_table(self, table: Float64Array) -> Float64Array:
        return self.map_.probabilities(table)

    def log_predict(self, table: Float64Array) -> Float64Array:
        """Return log-probabilities of checked scores (n, k), shape (k, n)."""
        return self.map_.log_probabilities(table)

    def _find_structure(self, data: ClassScores) -> str:
        """Return the structure that fits the data, and warn if it is another one."""
        k = data.scores.shape[1]
        if data.n < k:
            # The base has warned that there are fewer rows than classes.
            return "temperature"
        if self.structure != "matrix" or k <= MOST_MATRIX_CLASSES:
            return self.structure
        msg = (
            f'`structure="matrix"` has at most {MOST_MATRIX_CLASSES} classes, '
            f'got {k}; SoftmaxCalibrator fits "vector" instead.'
        )
        warnings.warn(msg, CalibrationWarning, stacklevel=5)
        return "vector"

    def _choose_penalty(self, data: ClassScores) -> float:
        """Return the multiplier by cross-validation."""
        k = data.scores.shape[1]
        data = draw_rows(data.merged(), _TRIAL_NUMBERS // k, self.random_state)
        folds = deal_by_class(data, self.n_folds, self.random_state)
        if not folds:
            return PENALTIES[0]
        losses = []
        for rest, held in folds:
            settings = self.scale, self.structure_, PENALTIES, _TRIAL_TOLERANCE
            maps = fit_path(rest, *settings)
            places = held.labels, np.arange(len(held.labels))
            losses.append([-one.log_probabilities(held.scores)[places] for one in maps])
        weight = np.concatenate([held.weight for _, held in folds])
        of_penalties = map(np.concatenate, zip(*losses, strict=True))
        table = [RowLosses(one, weight) for one in of_penalties]
        means = (one.mean for one in table)
        self.cv_losses_ = dict(zip(PENALTIES, means, strict=True))
        return PENALTIES[simplest_of_best(table)]
