"""`AllPairsClassifier`: an expert for each pair of classes, calibrated, then joined."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from functools import partial
from itertools import combinations
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import Tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from calibration._validation import (
    check_choice,
    check_n_jobs,
    check_optional_seed,
    told_of_light,
)
from calibration.base.calibrators import ScoreCalibrator, forget_fit
from calibration.classifier.base import ClassifierAround
from calibration.classifier.calibrators import resolve_binary
from calibration.classifier.classifier import CalibratedClassifier
from calibration.classifier.folds import (
    Fold,
    Rows,
    TrainingData,
    check_table_rows,
    choose_splitter,
    cross_fit,
    number_rows,
    refuse_repeats,
    split_rows,
)
from calibration.classifier.labels import check_many_classes
from calibration.classifier.pairs import CalibratedPair
from calibration.classifier.responses import Response, choose_response, read_scores
from calibration.classifier.routes import route_arguments
from calibration.multiclass.coupling import Coupling, couple_pairs, square_pairs
from calibration.typing import Float64Array


class _Match(NamedTuple):
    """Two classes: their labels, their rows, and folds that number these from 0."""

    labels: NDArray[Any]
    rows: Rows
    folds: list[Fold]

    @property
    def tested(self) -> Rows:
        """Rows of the test parts of all folds, of those that number the data."""
        rows: Rows = self.rows[np.concatenate([test for _, test in self.folds])]
        return rows


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
    coupling : {"least_squares", "log_loss", "pkpd"}
        How pairs are joined; see `couple_pairs`. "log_loss" weighs each pair by its
        rows.
    cv : int, splitter or iterable of (train, test), optional
        Folds that yield the held-out scores. Default: 5 stratified folds of the rows of
        each pair, fewer (with a `CalibrationWarning`) if a class has fewer rows. An
        integer is never lowered but refused. Folds given number all rows, and each pair
        has its share of them.
    response : {"auto", "predict_proba", "decision_function"}
        The method that yields scores; "auto" prefers `predict_proba`.
    n_jobs : int, optional
        Number of pairs learned at a time, as in joblib. No result depends on it.
    random_state : int, optional
        Seed by which rows are dealt to the folds of an integer or default `cv`; None:
        in the order of the rows. The estimator has a seed of its own.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The labels, sorted.
    class_weight_ : ndarray of shape (k,)
        Weight of the rows of each class.
    experts_ : list of (estimator, calibrator)
        Of the pairs (0, 1), (0, 2), ..., (k - 2, k - 1) of `classes_`.
    response_ : {"predict_proba", "decision_function"}
        The method asked for scores.
    n_features_in_ : int
        If the classifier has it.
    feature_names_in_ : ndarray of shape (n_features,)
        If the classifier has it.

    Notes
    -----
    The expert of classes i < j is trained on the rows of these two only. For each fold
    a clone is trained on the others, its scores of the fold are kept, and the
    calibrator is fitted on the scores of all folds: it sees no score of a row that its
    classifier had learned. Then one clone is trained on all rows of the pair.

    `sample_weight` goes to the calibrators and, if its `fit` takes them, to the
    classifiers.

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

    class_weight_: Float64Array
    experts_: list[CalibratedPair]
    response_: Response

    def __init__(
        self,
        estimator: Any = None,
        calibrator: ScoreCalibrator | str | None = None,
        *,
        coupling: Coupling = "least_squares",
        cv: Any = None,
        response: Literal["auto", "predict_proba", "decision_function"] = "auto",
        n_jobs: int | None = None,
        random_state: int | None = None,
    ):
        self.estimator = estimator
        self.calibrator = calibrator
        self.coupling = coupling
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
        check_choice(self.coupling, "coupling", get_args(Coupling))
        check_n_jobs(self.n_jobs)
        check_optional_seed(self.random_state)
        if isinstance(self.estimator, FrozenEstimator):
            msg = (
                "`estimator` must be a classifier that can be trained on each pair of "
                f"classes, got {self.estimator!r}."
            )
            raise TypeError(msg)
        estimator, expert = self._resolve_estimator(), self._make_expert()
        response = choose_response(estimator, self.response)
        calibrator = resolve_binary(self.calibrator, response)
        X, labels, weights, routed = self._read_rows(X, y, sample_weight)
        forget_fit(self)
        params, _ = route_arguments(expert, estimator, routed, {})
        self.classes_ = check_many_classes(labels)
        self.class_weight_ = np.array(
            [weights[labels == label].sum() for label in self.classes_]
        )
        self.response_ = response
        data = TrainingData(X, labels, params)
        self.experts_ = self._fit_experts(estimator, calibrator, data, weights)
        self._note_features(self.experts_[0].estimator)
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
        check_table_rows(X)
        k = len(self.classes_)
        below = [
            expert.calibrator.predict(
                read_scores(expert.estimator, X, self.response_, self.classes_[[i, j]])
            )
            for expert, (i, j) in zip(
                self.experts_, combinations(range(k), 2), strict=True
            )
        ]
        weight = self.class_weight_[:, None] + self.class_weight_
        return couple_pairs(square_pairs(below, k), self.coupling, pair_weight=weight)

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

    def _fit_experts(
        self,
        estimator: Any,
        calibrator: ScoreCalibrator,
        data: TrainingData,
        weights: Float64Array,
    ) -> list[CalibratedPair]:
        """Return a classifier and a calibrator of each pair of classes."""
        matches = list(self._match(data))
        fits = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_expert)(clone(estimator), data, match, self.response_)
            for match in matches
        )
        experts = []
        for match, (model, scores) in zip(matches, fits, strict=True):
            tested = match.tested
            positive = data.y[tested] == match.labels[1]
            with told_of_light():
                # Here and not in the workers, whose warnings would be lost.
                fitted = clone(calibrator).fit(scores, positive, weights[tested])
            experts.append(CalibratedPair(model, fitted))
        return experts

    def _match(self, data: TrainingData) -> Iterator[_Match]:
        """Yield each pair of classes with its rows and its folds."""
        given = None
        if self.cv is not None and not isinstance(self.cv, numbers.Integral):
            splitter = choose_splitter(self.cv, data.y, self.classes_)
            n = len(data.y)
            given = [
                (number_rows(train, n), number_rows(test, n))
                for train, test in splitter.split(data.X, data.y)
            ]
            refuse_repeats(given, n)
        for labels in combinations(self.classes_, 2):
            pair = np.array(labels, dtype=self.classes_.dtype)
            rows = np.flatnonzero(np.isin(data.y, pair))
            y = data.y[rows]
            if given is None:
                splitter = choose_splitter(self.cv, y, pair)
                if self.random_state is not None:
                    splitter = StratifiedKFold(
                        splitter.n_splits, shuffle=True, random_state=self.random_state
                    )
            else:
                splitter = choose_splitter(_restrict(given, rows), y, pair)
            # The rows themselves stand for the table: folds have to do with labels.
            folds = split_rows(splitter, TrainingData(rows, y, {}), {})
            yield _Match(pair, rows, folds)


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


def _fit_expert(
    estimator: Any, data: TrainingData, match: _Match, response: Response
) -> tuple[Any, Float64Array]:
    """Return a classifier of two classes, and its scores of held-out rows."""
    read = partial(read_scores, response=response, classes=match.labels)
    part = data.take(match.rows)
    models, scores = cross_fit(
        estimator, part, match.folds, read, refit=True, n_jobs=None
    )
    return models[0], np.concatenate(scores)
