"""`AllPairsClassifier`: an expert for each pair of classes, calibrated, then joined."""

from __future__ import annotations

import numbers
from itertools import combinations
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from calibration._validation import (
    check_n_jobs,
    check_optional_seed,
    refuse,
    told_of_light,
)
from calibration.base.calibrators import ScoreCalibrator, forget_fit
from calibration.classifier.base import (
    ClassifierAround,
    Fold,
    LabelledRows,
    Rows,
    check_many_classes,
    choose_splitter,
    number_rows,
    refuse_repeats,
    take_rows,
)
from calibration.classifier.classifier import CalibratedClassifier
from calibration.classifier.scores import Response, choose_response, resolve_binary
from calibration.multiclass.all_pairs import join_pairs
from calibration.typing import Float64Array


class AllPairsClassifier(ClassifierAround):
    r"""A classifier of k classes made of k (k - 1) / 2 calibrated ones of two.

    Parameters
    ----------
    estimator : classifier, optional
        Any classifier with `predict_proba` or `decision_function`, cloned for each
        pair. Default: `LogisticRegression`.
    calibrator : ScoreCalibrator or str, optional
        Cloned for each pair and fitted on held-out scores, or the name of one, of
        `calibrator_names()`; default `LogisticCalibrator()`.
    cv : int, splitter or iterable of (train, test), optional
        Folds that yield the held-out scores. Default: 5 stratified folds of the rows of
        each pair, fewer (with a `CalibrationWarning`) if a class has fewer rows. An
        integer is never lowered but refused. Folds given number all rows, and each pair
        has its share of them.
    response : {"auto", "predict_proba", "decision_function"}
        The method that yields scores; "auto" prefers `predict_proba`.
    n_jobs : int, optional
        Number of classifiers fitted at a time, as in joblib. No result depends on it.
    random_state : int, optional
        Seed by which rows are dealt to the folds of an integer or default `cv`; None:
        in the order of the rows. The estimator has a seed of its own.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The labels, sorted.
    experts_ : list of CalibratedClassifier
        Of the pairs (0, 1), (0, 2), ..., (k - 2, k - 1) of `classes_`.
    response_ : {"predict_proba", "decision_function"}
        The method asked for scores.
    n_features_in_ : int
        If the classifier has it.
    feature_names_in_ : ndarray of shape (n_features,)
        If the classifier has it.

    Notes
    -----
    The expert of classes i < j is a `CalibratedClassifier` of the rows of these two
    only: its calibrator sees no score of a row that its classifier had learned.

    References
    ----------
    Hastie & Tibshirani (1998), Classification by pairwise coupling. Wu, Lin & Weng
    (2004), Probability estimates for multi-class classification by pairwise coupling.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.svm import SVC
    >>> from calibration import AllPairsClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = AllPairsClassifier(SVC(), random_state=0).fit(X, y)
    >>> model.predict_proba(X[:2]).round(2)
    array([[0.96, 0.03, 0.01],
           [0.95, 0.04, 0.02]])
    >>> losses = -cross_val_score(model, X, y, scoring="neg_log_loss")
    >>> round(float(losses.mean()), 2)
    0.14
    """

    experts_: list[CalibratedClassifier]
    response_: Response

    def __init__(
        self,
        estimator: Any = None,
        calibrator: ScoreCalibrator | str | None = None,
        *,
        cv: Any = None,
        response: Literal["auto", "predict_proba", "decision_function"] = "auto",
        n_jobs: int | None = None,
        random_state: int | None = None,
    ):
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.response = response
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train and calibrate the expert of each pair.

        Parameters
        ----------
        X : array-like, sparse array or data frame of shape (n, n_features)
            Handed to the classifiers as it is.
        y : array-like of shape (n,)
            Two labels or more.
        sample_weight : array-like of shape (n,), optional
            Non-negative numbers of repetitions.

        Returns
        -------
        self
        """
        check_n_jobs(self.n_jobs)
        check_optional_seed(self.random_state)
        if isinstance(self.estimator, FrozenEstimator):
            rule = "be a classifier that can be trained on each pair of classes"
            refuse("estimator", rule, f"{self.estimator!r}", TypeError)
        estimator = self._resolve_estimator()
        response = choose_response(estimator, self.response)
        resolve_binary(self.calibrator, response)
        rows = self._read_rows(X, y, sample_weight)
        forget_fit(self)
        self.classes_ = check_many_classes(rows.labels)
        self.response_ = response
        folds = self._read_folds(rows)
        with told_of_light():
            self.experts_ = [
                self._fit_expert(rows, np.array(pair, self.classes_.dtype), folds)
                for pair in combinations(self.classes_, 2)
            ]
        self._note_features(self.experts_[0])
        return self

    def predict_proba(self, X: Any) -> Float64Array:
        """Return calibrated probabilities.

        Parameters
        ----------
        X : array-like, sparse array or data frame of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, k)
            Columns in the order of `classes_`.
        """
        check_is_fitted(self)
        chances = (expert.predict_proba(X)[:, 1] for expert in self.experts_)
        return join_pairs(chances, len(self.classes_))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = self._make_expert().__sklearn_tags__().input_tags
        return tags

    def _make_expert(self) -> CalibratedClassifier:
        """Return the calibrated classifier that each expert is."""
        return CalibratedClassifier(
            self._resolve_estimator(), self.calibrator, response=self.response
        )

    def _default_estimator(self) -> Any:
        return LogisticRegression(max_iter=1000)

    def _read_folds(self, rows: LabelledRows) -> list[Fold] | None:
        """Return the folds that are given, of all rows; None of a number of folds."""
        if self.cv is None or isinstance(self.cv, numbers.Integral):
            return None
        n = len(rows.labels)
        splitter = choose_splitter(self.cv, rows.labels, self.classes_)
        folds = [
            (number_rows(train, n), number_rows(test, n))
            for train, test in splitter.split(rows.X, rows.labels)
        ]
        refuse_repeats(folds, n)
        return folds

    def _fit_expert(
        self, rows: LabelledRows, pair: NDArray[Any], folds: list[Fold] | None
    ) -> CalibratedClassifier:
        """Return the calibrated classifier of two classes."""
        some = np.flatnonzero(np.isin(rows.labels, pair))
        y, cv = rows.labels[some], self.cv
        if folds is not None:
            cv = _restrict(folds, some)
        elif self.random_state is not None:
            n_folds = choose_splitter(cv, y, pair).n_splits
            cv = StratifiedKFold(n_folds, shuffle=True, random_state=self.random_state)
        weight = None if rows.routed is None else rows.routed[some]
        expert = self._make_expert()
        expert.set_params(cv=cv, n_jobs=self.n_jobs)
        return expert.fit(take_rows(rows.X, some), y, weight)


def _restrict(folds: list[Fold], rows: Rows) -> list[Fold]:
    """Return what folds of all rows are to some of them, those with a test part."""
    parts = []
    for train, test in folds:
        learned, held_out = train[np.isin(train, rows)], test[np.isin(test, rows)]
        if len(held_out):
            # Rows are sorted: the place of a row is its number among them.
            places = np.searchsorted(rows, learned), np.searchsorted(rows, held_out)
            parts.append(places)
    return parts
