"""Bases of calibrators of several classes, and the simplest one: doing nothing."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit
from sklearn.utils.validation import check_is_fitted

from calibration._validation import (
    all_or_nothing,
    check_class_names,
    check_order,
    refuse,
    warn_of_light,
)
from calibration.base.calibrators import SCALES, ScaledEstimator, ScoreCalibrator
from calibration.base.log_odds import LogOddsCalibrator
from calibration.exceptions import CalibrationWarning
from calibration.multiclass.class_scores import (
    LEAST,
    ClassScores,
    LogProbabilityScale,
    check_score_table,
    positive_shares,
    read_class_scores,
    to_probabilities,
)
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

ClassScale: TypeAlias = Literal["probability", "logit"]


class MulticlassCalibrator(ScaledEstimator):
    """Base of calibrators of k >= 2 classes.

    All of them follow these conventions:

    - `scores` are float64 tables (n, k), a column for each class. `scale` says what
      they are: "probability" (non-negative, rows sum to 1 within 1e-5) or "logit" (any
      numbers whose softmax is the probability).
    - `y` holds column numbers, 0 to k - 1, or the names that `classes` gives to the
      columns. `sample_weight` counts repetitions.
    - A data frame is refused if it has the names of `classes` in another order, or
      the names of the data frame of the fit, `feature_names_in_`.
    - `predict` returns probabilities (n, k) whose rows sum to 1.
    - `class_prior_` (k,) holds the share of each class in the weight of the rows of
      the fit, or (n_c + 1) / (n + k) if a class has no row. `llr` returns what scores
      say beyond these shares.
    - A class without rows keeps a small positive probability. If there is one class
      only, or all rows of scores are equal, the answer is the constant
      (n_c + 1) / (n + k) for each class c, with a `CalibrationWarning`. Rows that weigh
      less than the number of classes are still used, with a `CalibrationWarning`.

    - No class is ruled out: a probability that rounds to 0 is the least positive float.

    A subclass stores its parameters in the constructor, with `classes` and `scale`
    among them. It writes `_fit_table` and `_predict_table`.
    """

    classes: Sequence[Any] | None
    classes_: NDArray[Any]
    constant_: Float64Array | None
    class_prior_: Float64Array
    _scales: tuple[str, ...] = ("probability", "logit")

    def fit(
        self, scores: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from scores and their labels.

        Parameters
        ----------
        scores : array-like of shape (n, k)
            Scores on the scale that `scale` names.
        y : array-like of shape (n,)
            Column numbers, or names among `classes`.
        sample_weight : array-like of shape (n,), optional
            Non-negative numbers of repetitions.

        Returns
        -------
        self
        """
        self._check_parameters()
        read = read_class_scores(scores, y, sample_weight, self.classes, self.scale)
        return self._learn_table(read)

    def _learn_table(self, data: ClassScores) -> Self:
        """Learn from checked rows, or settle on a constant."""
        k = data.scores.shape[1]
        classes = np.arange(k)
        if self.classes is not None:
            classes = np.asarray(check_class_names(self.classes, k))
        with all_or_nothing(self):
            self.classes_ = classes
            if data.names:
                self.feature_names_in_ = np.array(data.names, dtype=object)
            self.constant_ = self._find_constant(data)
            if self.constant_ is None:
                self._fit_table(data)
            self._settle_prior(data)
        return self

    def fit_rows(self, data: ClassScores) -> Self:
        """Learn from checked rows of two or more classes, for a fit within a fit.

        Parameters
        ----------
        data : ClassScores

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            self.classes_, self.constant_ = np.arange(data.scores.shape[1]), None
            self._fit_table(data)
            self._settle_prior(data)
        return self

    def log_predict(self, table: Float64Array) -> Float64Array:
        """Return log-probabilities of checked scores. They are always finite.

        Parameters
        ----------
        table : ndarray of shape (n, k)

        Returns
        -------
        ndarray of shape (k, n)
        """
        return LogProbabilityScale("probability")(self._predict_table(table))

    def predict(self, scores: ArrayLike) -> Float64Array:
        """Return the calibrated probabilities of the classes.

        Parameters
        ----------
        scores : array-like of shape (n, k)

        Returns
        -------
        ndarray of shape (n, k)
            Rows sum to 1.
        """
        table = self._read_table(scores)
        if self.constant_ is not None:
            return np.tile(self.constant_, (len(table), 1))
        return np.maximum(self._predict_table(table), LEAST)

    def llr(self, scores: ArrayLike) -> Float64Array:
        r"""Return log-likelihoods of the classes: evidence without the training prior.

        Parameters
        ----------
        scores : array-like of shape (n, k)

        Returns
        -------
        ndarray of shape (n, k)
            The greatest value of a row is 0.

        Notes
        -----
        By Bayes's rule, with :math:`f_j` the density of scores in class j,

        .. math:: \log p_j(s) - \log \pi_j = \log f_j(s) - \log f(s),

        The last term is the same for all classes, so the greatest value of a row takes
        its place. What is left does not depend on the prior. Add the logarithms of any
        prior and take the softmax: this is the forecast under that prior. With
        `class_prior_` it is the forecast itself. With two classes, the second column
        less the first is `llr` of a calibrator of one score.

        References
        ----------
        Brummer & du Preez (2006), Application-independent evaluation of speaker
        detection.
        """
        return self._find_llr(self.predict(scores))

    def _find_llr(self, p: Float64Array) -> Float64Array:
        """Return the log-likelihoods of the classes, for forecasts (n, k)."""
        # Models saved by versions without this attribute still predict.
        cure = "%(name)s has no `class_prior_`, which `llr` needs: fit it again."
        check_is_fitted(self, "class_prior_", msg=cure)
        logs = np.log(p) - np.log(self.class_prior_)
        return np.asarray(logs - logs.max(axis=1, keepdims=True))

    def _settle_prior(self, data: ClassScores) -> None:
        """Learn the prior, all of it positive, under which the fitted answers hold."""
        # If all scores have one answer, this answer is no evidence.
        shares = positive_shares(data.counts)
        self.class_prior_ = shares if self.constant_ is None else self.constant_

    def _read_table(self, scores: ArrayLike) -> Float64Array:
        """Return checked scores with the columns of the fit."""
        check_is_fitted(self)
        table = check_score_table(scores, self.scale)
        k = len(self.classes_)
        if table.shape[1] != k:
            rule = f"have the {k} columns of the fit"
            refuse("scores", rule, f"{table.shape[1]} columns")
        check_order(scores, self.classes_, "scores")
        check_order(scores, getattr(self, "feature_names_in_", ()), "scores")
        return table

    def _find_constant(self, data: ClassScores) -> Float64Array | None:
        """Return the constant answer to degenerate data, with a warning, or None."""
        k = data.scores.shape[1]
        held = np.unique(data.labels)
        if len(held) == 1:
            problem = f"`y` holds class {self.classes_[held[0]]!s} only"
        elif (data.scores == data.scores[0]).all():
            problem = "rows of `scores` are all equal"
        else:
            if data.n < k:
                msg = (
                    f"`scores` has {k} columns, and the rows weigh {data.n:g}: "
                    f"{type(self).__name__} learns of fewer rows than classes."
                )
                warnings.warn(msg, CalibrationWarning, stacklevel=4)
            return None
        # Laplace's rule of succession says neither 0 nor 1.
        msg = (
            f"{problem}; {type(self).__name__} predicts the constant "
            "(n_c + 1) / (n + k) of each class."
        )
        warnings.warn(msg, CalibrationWarning, stacklevel=4)
        return np.asarray((data.counts + 1.0) / (data.n + k))

    @abstractmethod
    def _fit_table(self, data: ClassScores) -> None:
        """Learn from rows of two or more classes."""

    @abstractmethod
    def _predict_table(self, table: Float64Array) -> Float64Array:
        """Return probabilities of checked scores."""


class EitherCalibrator(LogOddsCalibrator, MulticlassCalibrator):
    """Base of calibrators of scores (n,) of two classes, and of tables (n, k).

    The shape of the scores in `fit` decides. A fitted calibrator has `classes_` if and
    only if it takes tables. A subclass writes the four methods of its bases.
    """

    # A number for scores (n,), an array (k,) for tables.
    constant_: Any
    _scales = SCALES

    def fit(
        self, scores: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from scores and their labels.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1) or (n, k)
            Scores of class 1 of two, or a column for each class.
        y : array-like of shape (n,)
            Labels coded 0 and 1. For tables: column numbers, or names among `classes`.
        sample_weight : array-like of shape (n,), optional
            Non-negative numbers of repetitions.

        Returns
        -------
        self
        """
        shape = np.shape(scores)
        if len(shape) == 2 and shape[1] != 1:
            self._check_parameters()
            if self.scale not in MulticlassCalibrator._scales:
                msg = (
                    f"`scale` of {type(self).__name__} must be one of 'probability', "
                    f"'logit' for scores of shape (n, k), got {self.scale!r}."
                )
                raise ValueError(msg)
            read = read_class_scores(scores, y, sample_weight, self.classes, self.scale)
            return self._learn_table(read)
        if self.classes is not None:
            rule = "be None for scores of shape (n,), whose labels are 0 and 1"
            refuse("classes", rule, f"{self.classes!r}")
        # The bases do the same work. Their warnings count the calls up to the user's.
        summary = ScoreSummary.from_scores(scores, y, sample_weight)
        if self._learns:
            warn_of_light(sample_weight)
        return self.fit_summary(summary)

    def predict(self, scores: ArrayLike) -> Float64Array:
        """Return calibrated probabilities.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, k)
            As in `fit`.

        Returns
        -------
        ndarray of shape (n,) or (n, k)
            Probability of class 1 of two, or of all classes.
        """
        return self._as_fitted().predict(self, scores)

    def llr(self, scores: ArrayLike) -> Float64Array:
        """Return evidence without the training prior.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, k)
            As in `fit`.

        Returns
        -------
        ndarray of shape (n,) or (n, k)
            As in `ScoreCalibrator`, or in `MulticlassCalibrator`.
        """
        return self._as_fitted().llr(self, scores)

    def _as_fitted(self) -> type[ScoreCalibrator] | type[MulticlassCalibrator]:
        """Return the base that knows the shape of the scores of the fit."""
        check_is_fitted(self)
        return MulticlassCalibrator if hasattr(self, "classes_") else ScoreCalibrator


class IdentityCalibrator(EitherCalibrator):
    """Predict the score itself. Every other calibrator has to beat this one.

    Parameters
    ----------
    classes : sequence of k names, optional
        Names of the columns of scores (n, k). Default: their numbers, 0 to k - 1.
    scale : {"probability", "logit"}
        What a score is. A log-odds gives the probability 1 / (1 + exp(-s)), and a row
        of logits gives the softmax.

    Examples
    --------
    >>> from calibration import IdentityCalibrator
    >>> IdentityCalibrator().fit([0.2, 0.8], [0, 1]).predict([0.3])
    array([0.3])
    >>> scores = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]
    >>> IdentityCalibrator().fit(scores, [0, 1]).predict(scores[:1])
    array([[0.5 , 0.25, 0.25]])
    """

    logs_: LogProbabilityScale
    _scales = ("probability", "logit")
    _learns = False

    def __init__(
        self, *, classes: Sequence[Any] | None = None, scale: ClassScale = "probability"
    ):
        self.classes = classes
        self.scale = scale

    def _fit_formula(self, summary: ScoreSummary, x: Float64Array) -> None:
        """Learn nothing."""

    def _predict(self, values: Float64Array) -> Float64Array:
        # Log-odds would clip the outermost probabilities, so do not use them here.
        if self.scale == "probability":
            return values.copy()
        return super()._predict(values)

    def _answer_log_odds(self, values: Float64Array) -> Float64Array:
        if self.scale == "probability":
            return np.asarray(logit(values))
        return super()._answer_log_odds(values)

    def _log_odds(self, x: Float64Array) -> Float64Array:
        return x

    def _find_constant(self, data: ClassScores) -> None:
        """Return None, since nothing is learned from the labels."""

    def _fit_table(self, data: ClassScores) -> None:
        # If a logarithm is needed, a 0 counts as the value learned here.
        self.logs_ = LogProbabilityScale.of(self.scale, data.scores, data.n)

    def _predict_table(self, table: Float64Array) -> Float64Array:
        if self.scale == "probability":
            return np.asarray(table / table.sum(axis=1, keepdims=True))
        return to_probabilities(self.logs_(table))

    def log_predict(self, table: Float64Array) -> Float64Array:
        """Return log-probabilities of checked scores (n, k), shape (k, n)."""
        return self.logs_(table)
