"""Bases of all calibrators, from a `scale` alone to a map, and criteria of models."""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from typing import Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from calibration._validation import (
    all_or_nothing,
    check_choice,
    check_in_unit,
    check_vector,
    refuse,
    warn_of_light,
)
from calibration.exceptions import CalibrationWarning
from calibration.maps import CalibrationMap
from calibration.storage import Saved
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

Criterion: TypeAlias = Literal["aic", "aicc", "bic"]


def criterion_logs(
    criterion: Criterion, log_likelihood: Float64Array, df: NDArray[np.int64], n: float
) -> Float64Array:
    r"""Return the logarithms of the models' weights, minus half of the criterion.

    Parameters
    ----------
    criterion : {"aic", "aicc", "bic"}
    log_likelihood : ndarray of shape (k,)
    df : ndarray of shape (k,)
        Number of free parameters.
    n : float
        Weight of all rows.

    Returns
    -------
    ndarray of shape (k,)
        :math:`\log L - d` for AIC, :math:`\log L - \frac{d}{2} \log n` for BIC, and
        :math:`\log L - d - d (d + 1) / (n - d - 1)` for AICc. The last is minus
        infinity from d = n - 1 on. If it is minus infinity for all models, the first
        model has 0.
    """
    if criterion == "bic":
        # With less than one row, an extra parameter must not become a gain.
        return np.asarray(log_likelihood - 0.5 * df * max(np.log(n), 0.0))
    if criterion == "aic":
        return log_likelihood - df
    room, charge = n - df - 1.0, np.full(len(df), np.inf)
    np.divide(df * (df + 1.0), room, out=charge, where=room > 0.0)
    logs: Float64Array = log_likelihood - df - charge
    if not (room > 0.0).any():
        logs[0] = 0.0
    return logs


Scale: TypeAlias = Literal["probability", "logit", "real"]

SCALES: tuple[str, ...] = ("probability", "logit", "real")

# A prior is at least the least float of full precision. It is at most the float below
# 1.
_LEAST_RATE = float(np.finfo(np.float64).tiny)
_RESOLUTION = 2.0**-53


class ScaledEstimator(Saved, BaseEstimator, metaclass=ABCMeta):
    """Base of all estimators that take scores. `scale` says what a score is."""

    scale: Scale
    # The scales on which the method makes sense.
    _scales: tuple[str, ...] = SCALES

    def _check_parameters(self) -> None:
        """Refuse invalid constructor arguments. Subclasses add their own checks."""
        check_choice(self.scale, "scale", SCALES)
        if self.scale not in self._scales:
            msg = (
                f"`scale` of {type(self).__name__} must be one of "
                f"{', '.join(map(repr, self._scales))}, got {self.scale!r}: "
                "the method needs probabilities or log-odds."
            )
            raise ValueError(msg)

    def _check_range(self, low: float, high: float) -> None:
        """Refuse probabilities outside [0, 1], given the range of the scores."""
        if self.scale == "probability":
            name = 'scores` with `scale="probability"'
            check_in_unit(float(low), float(high), name)

    def _check_scores(self, scores: ArrayLike) -> Float64Array:
        """Return scores (n,) that are probabilities if `scale` says so."""
        values = check_vector(scores, "scores")
        self._check_range(values.min(), values.max())
        return values

    def _read_scores(self, scores: ArrayLike) -> Float64Array:
        """Return the checked scores of a forecast, if there is a fit."""
        check_is_fitted(self)
        return self._check_scores(scores)


class SummaryEstimator(ScaledEstimator):
    """Base of estimators that are fitted on scores and labels, so on their summary."""

    # Whether the fit depends on the labels. If it does not, one class is no problem.
    _learns: bool = True

    def fit(
        self, scores: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from scores and their labels.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)
            Scores on the scale that `scale` names.
        y : array-like of shape (n,)
            Labels coded 0 and 1.
        sample_weight : array-like of shape (n,), optional
            Non-negative numbers of repetitions.

        Returns
        -------
        self
        """
        summary = ScoreSummary.from_scores(scores, y, sample_weight)
        if self._learns:
            warn_of_light(sample_weight)
        return self.fit_summary(summary)

    def fit_summary(self, summary: ScoreSummary) -> Self:
        """Fit from a summary of scores and labels. `fit` makes one and calls this.

        Parameters
        ----------
        summary : ScoreSummary

        Returns
        -------
        self
        """
        if not isinstance(summary, ScoreSummary):
            refuse("summary", "be a ScoreSummary", type(summary).__name__, TypeError)
        self._check_parameters()
        self._check_range(summary.scores[0], summary.scores[-1])
        with all_or_nothing(self):
            self._learn(summary)
        return self

    @abstractmethod
    def _learn(self, summary: ScoreSummary) -> None:
        """Learn from a checked summary, whatever it contains."""


class ScoreCalibrator(SummaryEstimator):
    """Base of calibrators fitted on scores alone.

    All of them follow these conventions:

    - `scores` are float64 vectors (n,). (n, 1) is accepted. `y` holds the two
      classes coded 0 and 1. `sample_weight` counts repetitions.
    - `scale` says what a score is: "probability" (in [0, 1]), "logit" (log-odds) or
      "real" (any number that grows with the chance of class 1). It is never guessed.
    - `predict` returns P(y = 1 | score), shape (n,).
    - `n_fit_` is the weight of the rows of the fit. `base_rate_` is the share of
      class 1 in it, and `llr` returns what a score says beyond this share.
    - If there is only one class or one distinct score, the fitted answer is the
      constant (n1 + 1) / (n + 2), with a `CalibrationWarning`.

    A subclass stores its parameters in the constructor. It writes `_fit`,
    `_fit_constant` and `_predict`. Bases write the last two for it: `MapCalibrator`
    (the state is one map), `BlockCalibrator` (it has intervals, too) and
    `LogOddsCalibrator` (the state is a formula).
    """

    base_rate_: float
    n_fit_: float

    def predict(self, scores: ArrayLike) -> Float64Array:
        """Return the calibrated probability of class 1.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._predict(self._read_scores(scores))

    def llr(self, scores: ArrayLike) -> Float64Array:
        r"""Return log-likelihood ratios: evidence that is free of the training prior.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)

        Returns
        -------
        ndarray of shape (n,)
            It is -inf where `predict` says 0, and +inf where it says 1.

        Notes
        -----
        By Bayes's rule the log-odds of class 1 given a score are

        .. math:: \log\frac{f_1(s)}{f_0(s)} + \log\frac{\pi}{1 - \pi},

        Here :math:`f_k` is the density of scores in class k, and :math:`\pi` is the
        prior. The first term does not depend on the prior. It is returned as
        logit(`predict`) - logit(`base_rate_`). Add the log-odds of another prior to get
        the forecast under that prior. Those of `base_rate_` give the forecast itself.
        If the data hold no evidence either way (one class, or one score), it is 0.

        References
        ----------
        Brummer & du Preez (2013), The PAV algorithm optimizes binary proper scoring
        rules.
        """
        values = self._read_scores(scores)
        # Models saved by versions without `base_rate_` still predict.
        cure = "%(name)s has no `base_rate_`, which `llr` needs: fit it again."
        check_is_fitted(self, "base_rate_", msg=cure)
        return self._evidence(values)

    def _learn(self, summary: ScoreSummary) -> None:
        constant = find_constant(self, summary, stacklevel=5) if self._learns else None
        if constant is None:
            self._fit(summary)
        else:
            self._fit_constant(summary, constant)
        self.base_rate_ = self._find_base_rate(summary, constant)
        self.n_fit_ = summary.n

    def _find_base_rate(self, summary: ScoreSummary, constant: float | None) -> float:
        """Return the prior under which the fitted answers hold, in (0, 1)."""
        if constant is not None:
            # If all scores have the same answer, it is no evidence.
            return constant
        return prior_rate(summary)

    def _evidence(self, values: Float64Array) -> Float64Array:
        """Return the log-likelihood ratio of checked scores."""
        return self._answer_log_odds(values) - float(logit(self.base_rate_))

    def _answer_log_odds(self, values: Float64Array) -> Float64Array:
        """Return the log-odds of the forecast for checked scores."""
        return np.asarray(logit(self._predict(values)))

    @abstractmethod
    def _fit(self, summary: ScoreSummary) -> None:
        """Learn from a summary with both classes and two or more distinct scores."""

    @abstractmethod
    def _fit_constant(self, summary: ScoreSummary, constant: float) -> None:
        """Become the constant map."""

    @abstractmethod
    def _predict(self, values: Float64Array) -> Float64Array:
        """Return probabilities of checked scores."""


class MapCalibrator(ScoreCalibrator):
    """Base of calibrators whose fitted state is one `CalibrationMap`, `map_`."""

    map_: CalibrationMap

    def __init__(self, *, scale: Scale = "probability"):
        self.scale = scale

    def _fit_constant(self, summary: ScoreSummary, constant: float) -> None:
        self.map_ = constant_map(summary, constant)

    def _predict(self, values: Float64Array) -> Float64Array:
        return self.map_(values)


class BlockCalibrator(MapCalibrator):
    """Base of calibrators whose map knows the weight of each class in its blocks."""

    def predict_interval(
        self, scores: ArrayLike, coverage: float = 0.9
    ) -> Float64Array:
        """Return an interval for the event rate of each score's block.

        It is that of `CalibrationMap.interval`.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)
        coverage : float
            Level of the interval, in (0, 1).

        Returns
        -------
        ndarray of shape (n, 2)
            Lower and upper bounds.
        """
        check_is_fitted(self)
        return self.map_.interval(self._read_scores(scores), coverage)


def constant_map(summary: ScoreSummary, value: float) -> CalibrationMap:
    """Return the map with one value everywhere, and all weight in one block."""
    block = (summary.scores[0], value, summary.n0, summary.n1)
    return CalibrationMap.step(*(np.array([number]) for number in block))


def prior_rate(summary: ScoreSummary) -> float:
    """Return the base rate, which is in (0, 1) even if there is only one class."""
    if summary.n0 == 0.0 or summary.n1 == 0.0:
        return _laplace_rate(summary)
    # Weights may differ by more than floats below 1 resolve.
    return min(max(summary.base_rate, _LEAST_RATE), 1.0 - _RESOLUTION)


def _laplace_rate(summary: ScoreSummary) -> float:
    """Return (n1 + 1) / (n + 2), which is neither 0 nor 1.

    This is Laplace's rule of succession: the mean of the posterior under a uniform
    prior.
    """
    return (summary.n1 + 1.0) / (summary.n + 2.0)


def find_constant(
    calibrator: BaseEstimator, summary: ScoreSummary, *, stacklevel: int
) -> float | None:
    """Return the constant answer to degenerate data, with a warning, or return None.

    Parameters
    ----------
    calibrator : BaseEstimator
        The warning names it.
    summary : ScoreSummary
    stacklevel : int
        The stack level of the warning, counted from here.

    Returns
    -------
    float or None
    """
    if summary.n0 == 0.0 or summary.n1 == 0.0:
        problem = f"`y` holds class {int(summary.n1 > 0.0)} only"
    elif summary.n_cells == 1:
        problem = f"`scores` are all equal to {summary.scores[0]:g}"
    else:
        return None
    constant = _laplace_rate(summary)
    msg = (
        f"{problem}; {type(calibrator).__name__} predicts the constant "
        f"(n1 + 1) / (n + 2) = {constant:.4g}."
    )
    warnings.warn(msg, CalibrationWarning, stacklevel=stacklevel)
    return constant
