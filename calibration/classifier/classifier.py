"""`CalibratedClassifier`: any scikit-learn classifier with honest probabilities.

`AllPairsClassifier`: one calibrated expert for each pair of classes, joined at the end.
"""

from __future__ import annotations

import numbers
from contextlib import AbstractContextManager
from itertools import combinations
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.svm import LinearSVC
from sklearn.utils import Tags, get_tags, indexable
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted

from calibration._validation import (
    all_or_nothing,
    check_flag,
    check_n_jobs,
    check_verbose,
    count_rows,
    refuse,
    told_of_light,
)
from calibration.base.calibrators import ScoreCalibrator
from calibration.classifier.base import (
    ClassifierAround,
    Fold,
    Rows,
    TrainingData,
    check_groups,
    check_known_classes,
    check_many_classes,
    check_table_rows,
    choose_splitter,
    cross_fit,
    list_folds,
    refuse_repeats,
    route_arguments,
    split_rows,
    take_rows,
    weigh_classes,
)
from calibration.classifier.scores import (
    Response,
    ScoreReader,
    choose_response,
    refuse_pair_scores,
    resolve_binary,
    resolve_calibrator,
    takes_columns,
)
from calibration.monotone.isotonic import VennAbersCalibrator, merge_intervals
from calibration.multiclass.base import MulticlassCalibrator
from calibration.multiclass.binary import couple_pairs, pieces_of_rows
from calibration.selection.auto import AutoCalibrator
from calibration.selection.trials import counting, tick
from calibration.typing import Float64Array


class CalibratedPair(NamedTuple):
    """A fitted classifier and the calibrator of its scores."""

    estimator: Any
    calibrator: ScoreCalibrator | MulticlassCalibrator


class CalibratedClassifier(ClassifierAround):
    r"""A classifier of two classes or more whose probabilities are calibrated.

    Parameters
    ----------
    estimator : classifier, optional
        Any classifier with `predict_proba` or `decision_function`. If it is wrapped in
        `sklearn.frozen.FrozenEstimator`, it is not fitted again. Then only the
        calibrator is fitted, on all rows given, and `cv` and `ensemble` are not used.
        Default: `LinearSVC`, which has no probabilities of its own.
    calibrator : ScoreCalibrator, MulticlassCalibrator or str, optional
        It is cloned and fitted on held-out scores. With more than two classes, a
        calibrator of binary scores means one for each class,
        `OneVsRestCalibrator(calibrator)`. A name is one of
        `calibrator_names(n_classes)`, or "vector" or "matrix". These two mean
        `SoftmaxCalibrator(name)`, and so does "temperature" with more than two classes.
        "auto" means `AutoCalibrator()`, which may do nothing. Default:
        `LogisticCalibrator()`; with more than two classes `SoftmaxCalibrator("matrix",
        penalty=1.0)`.
    cv : int, splitter or iterable of (train, test), optional
        Folds that yield the held-out scores. Default: 5 stratified folds. There are
        fewer (with a `CalibrationWarning`) if a class has fewer rows. An integer is
        never lowered: it is refused if it is too large. Training parts must hold every
        class.
    ensemble : bool
        False: one calibrator is fitted on the held-out scores of all folds, and one
        classifier on all rows. True: the classifier of each fold keeps its own
        calibrator, and the probabilities are averaged. The probabilities of Venn-Abers
        calibrators are merged instead. This is the cross Venn-Abers predictor. See the
        notes.
    response : {"auto", "predict_proba", "decision_function"}
        The method that yields scores. "auto" prefers `predict_proba`.
    n_jobs : int, optional
        Number of classifiers fitted at a time, as in joblib. It changes no result.
    verbose : int
        1 shows a bar on stderr that counts fits, and folds of `AutoCalibrator`. 0 shows
        nothing.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The sorted labels. With two, calibrated probabilities are those of
        `classes_[1]`.
    class_prior_ : ndarray of shape (k,)
        Shares of the classes in the weight of the rows that calibrators were fitted on,
        or (n_c + 1) / (n + k) if a class has no row. `predict_proba` holds under
        this prior. It is `old` of `shift_prior`.
    calibrated_pairs_ : list of (estimator, calibrator)
        One fitted pair, or one per fold with `ensemble=True`.
    estimator_ : classifier
        The fitted classifier, if there is one pair.
    calibrator_ : ScoreCalibrator or MulticlassCalibrator
        The fitted calibrator, if there is one pair.
    response_ : {"predict_proba", "decision_function"}
        The method that yields the scores.
    oof_scores_ : ndarray of shape (n,), or (n, k) of a MulticlassCalibrator
        Held-out scores that calibrators were fitted on. NaN means that the row is in no
        test part. If it is in several (`ensemble=True` only), the score is the mean.
        The attribute is missing if the classifier was frozen.
    n_features_in_ : int
        Only if the classifier has it.
    feature_names_in_ : ndarray of shape (n_features,)
        Only if the classifier has it.

    Notes
    -----
    The response sets the calibrator's `scale`, whatever the values look like. It is
    "probability" for `predict_proba`. For `decision_function` it is "real" with two
    classes and "logit" with more. The exception is a calibrator given with
    `scale="logit"`: only its user can know that a decision function is a log-odds.
    Methods that have no meaning on real scores refuse them.

    Neither value of `ensemble` is better in general. We tried 23 public tables of 100
    to 1500 training rows, with forests, boosted trees, logistic regression and naive
    Bayes. Log loss was .281 with False and .287 with True. Brier score was .0846 and
    .0828. Both differences are within two standard errors. Forests did better with
    False (log loss .221 and .223). Boosted trees and logistic regression did better
    with True (.218 and .216; .286 and .281). The default keeps one classifier: it needs
    a fifth of the memory and of the time of a forecast.

    `X` is passed on unchanged: the classifier decides what a table may hold.
    `sample_weight` goes to the calibrators. It also goes to the classifier, if its
    `fit` takes weights. Weights do not change the folds. So repeating rows equals
    weighting them only if `cv` keeps the repetitions in one fold.

    With metadata routing enabled, `fit` routes to `estimator.fit` and to the `split` of
    the splitter. Otherwise `groups` go to the splitter, and further arguments go to
    `estimator.fit`. Arguments with a value per row are cut to the rows of the fold.

    References
    ----------
    Platt (1999), Probabilistic outputs for support vector machines (held-out scores).
    Zadrozny & Elkan (2002), Transforming classifier scores into accurate multiclass
    probability estimates.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.metrics import log_loss
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from calibration import CalibratedClassifier
    >>> X, y = make_classification(1000, random_state=0)
    >>> bayes = GaussianNB().fit(X[:500], y[:500])
    >>> calibrated = CalibratedClassifier(GaussianNB()).fit(X[:500], y[:500])
    >>> round(log_loss(y[500:], bayes.predict_proba(X[500:])), 2)
    0.33
    >>> round(log_loss(y[500:], calibrated.predict_proba(X[500:])), 2)
    0.22

    Three classes, with a calibrator given by name:

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CalibratedClassifier(GaussianNB(), "temperature").fit(X, y)
    >>> model.predict_proba(X[:2]).round(2)
    array([[1., 0., 0.],
           [1., 0., 0.]])
    """

    calibrated_pairs_: list[CalibratedPair]
    estimator_: Any
    calibrator_: ScoreCalibrator | MulticlassCalibrator
    response_: Response
    oof_scores_: Float64Array
    class_prior_: Float64Array
    # Groups are routed to the splitter. `fit` of a classifier has no use for them.
    __metadata_request__fit: ClassVar[dict[str, str]] = {"groups": UNUSED}

    def __init__(
        self,
        estimator: Any = None,
        calibrator: ScoreCalibrator | MulticlassCalibrator | str | None = None,
        *,
        cv: Any = None,
        ensemble: bool = False,
        response: Literal["auto", "predict_proba", "decision_function"] = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.ensemble = ensemble
        self.response = response
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the classifiers and their calibrators.

        Parameters
        ----------
        X : array-like, sparse array or data frame of shape (n, n_features)
            It is passed to the classifier unchanged.
        y : array-like of shape (n,)
            Any labels. There must be two or more.
        sample_weight : array-like of shape (n,), optional
            Non-negative numbers of repetitions.
        groups : array-like of shape (n,), optional
            Rows that belong together, for the splitter. Without a `cv`, or with a
            number, it is a `StratifiedGroupKFold`. A frozen classifier does not use
            them.
        **fit_params : dict
            Passed to `fit` of the classifier, or routed.

        Returns
        -------
        self
        """
        check_flag(self.ensemble, "ensemble")
        check_n_jobs(self.n_jobs)
        check_verbose(self.verbose)
        estimator = self._resolve_estimator()
        response = choose_response(estimator, self.response)
        X, labels, weights, routed = self._read_rows(X, y, sample_weight)
        groups = check_groups(groups, len(labels))
        frozen = isinstance(estimator, FrozenEstimator)
        if frozen:
            check_is_fitted(estimator)
            classes = check_known_classes(labels, estimator, weights)
        else:
            classes = check_many_classes(labels)
        calibrator = resolve_calibrator(self.calibrator, response, len(classes))
        if len(classes) > 2 and response == "decision_function":
            refuse_pair_scores(estimator)
        with all_or_nothing(self):
            params, split_params = route_arguments(
                self, estimator, routed, fit_params, groups
            )
            data = TrainingData(X, labels, params)
            self.response_, self.classes_ = response, classes
            columns = takes_columns(calibrator, len(classes))
            read = ScoreReader(response, classes, columns)
            if frozen:
                self.class_prior_ = weigh_classes(labels, classes, weights)
                with self._counting(0, 1, calibrator):
                    known = [(read(estimator, X), read.targets(labels), weights)]
                    self._keep([estimator], calibrator, known)
                return self
            splitter = choose_splitter(self.cv, labels, classes, groups)
            folds = split_rows(splitter, data, split_params)
            if not self.ensemble:
                refuse_repeats(folds, len(labels), " with `ensemble=False`")
            self._fit_folds(estimator, calibrator, data, folds, read, weights)
        return self

    def predict_proba(self, X: Any) -> Float64Array:
        """Return calibrated probabilities.

        Parameters
        ----------
        X : array-like, sparse array or data frame of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, k)
            The columns are in the order of `classes_`. Rows sum to 1.
        """
        check_is_fitted(self)
        check_table_rows(X)
        read = self._reader()
        asked = [(one, read(model, X)) for model, one in self.calibrated_pairs_]
        if len(asked) > 1 and isinstance(asked[0][0], VennAbersCalibrator):
            positive = merge_intervals([va.predict_interval(s) for va, s in asked])
        else:
            answers = [one.predict(scores) for one, scores in asked]
            positive = np.mean(answers, axis=0)
        return positive if read.columns else np.column_stack([1.0 - positive, positive])

    def predict_interval(self, X: Any, **options: Any) -> Float64Array:
        """Return intervals of the probability of `classes_[1]`, for two classes.

        Parameters
        ----------
        X : array-like, sparse array or data frame of shape (n, n_features)
        **options : dict
            Options of the calibrator's `predict_interval`, for instance `coverage`.

        Returns
        -------
        ndarray of shape (n, 2)
            Lower and upper bounds, as the calibrator means them. Those of an
            `IsotonicCalibrator` hold the event rate. Those of a `VennAbersCalibrator`
            are its two probabilities.
        """
        check_is_fitted(self)
        check_table_rows(X)
        estimator, calibrator = self.calibrated_pairs_[0]
        if not hasattr(calibrator, "predict_interval"):
            rule = (
                "have intervals, as IsotonicCalibrator and VennAbersCalibrator have "
                "for two classes"
            )
            refuse("calibrator", rule, f"{calibrator!r}", TypeError)
        if len(self.calibrated_pairs_) > 1:
            # The coverage of a mean of intervals is not known.
            rule = "be False for intervals, which are of one calibrator"
            refuse("ensemble", rule, f"{len(self.calibrated_pairs_)} of them")
        scores = self._reader()(estimator, X)
        return np.asarray(calibrator.predict_interval(scores, **options))

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the routes of `fit`: to `estimator.fit` and `cv.split`.

        Returns
        -------
        MetadataRouter
        """
        dealt = self.cv is None or isinstance(self.cv, numbers.Integral)
        return (
            super()
            .get_metadata_routing()
            .add(
                splitter=StratifiedGroupKFold() if dealt else self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._resolve_estimator()).input_tags
        for name in ("sparse", "allow_nan", "string", "categorical", "positive_only"):
            setattr(tags.input_tags, name, getattr(inner, name))
        return tags

    def _default_estimator(self) -> Any:
        # The seed is fixed, because there is no `random_state` parameter here.
        return LinearSVC(random_state=0)

    def _fit_folds(
        self,
        estimator: Any,
        calibrator: Any,
        data: TrainingData,
        folds: list[Fold],
        read: ScoreReader,
        weights: Float64Array,
    ) -> None:
        """Fit classifiers on folds, and calibrators on their held-out scores."""
        targets = read.targets(data.y)
        parts = [test for _, test in folds]
        tested = np.concatenate(parts)
        self.class_prior_ = weigh_classes(data.y[tested], read.classes, weights[tested])
        refit = not self.ensemble
        with self._counting(len(folds) + refit, 1 if refit else len(folds), calibrator):
            models, held_out = cross_fit(
                estimator, data, folds, read, refit=refit, n_jobs=self.n_jobs
            )
            # Take held-out scores of all folds together. Each comes from a classifier
            # that has not seen its row.
            pooled = np.concatenate(held_out)
            self.oof_scores_ = _average_rows(pooled, tested, len(data.y))
            if refit:
                parts, held_out = [tested], [pooled]
            # Rows of weight 0 alone cannot calibrate a model.
            kept = [j for j, rows in enumerate(parts) if weights[rows].any()]
            known = [(held_out[j], targets[parts[j]], weights[parts[j]]) for j in kept]
            self._keep([models[j] for j in kept], calibrator, known)

    def _counting(
        self, n_models: int, n_calibrators: int, calibrator: Any
    ) -> AbstractContextManager[None]:
        """Return the progress bar for this number of fits."""
        trials = calibrator.n_folds if isinstance(calibrator, AutoCalibrator) else 0
        total = n_models + n_calibrators * (1 + trials)
        return counting(total, check_verbose(self.verbose), "classifier")

    def _keep(
        self, models: list[Any], calibrator: Any, known: list[tuple[Any, ...]]
    ) -> None:
        """Fit a calibrator for each model on its scores, targets and weights."""
        self.calibrated_pairs_ = []
        with told_of_light():
            # Warn here and not in the workers, because their warnings would be lost.
            for model, rows in zip(models, known, strict=True):
                fitted = clone(calibrator).fit(*rows)
                self.calibrated_pairs_.append(CalibratedPair(model, fitted))
                tick()
        if len(models) == 1:
            self.estimator_, self.calibrator_ = self.calibrated_pairs_[0]
        self._note_features(models[0])

    def _reader(self) -> ScoreReader:
        """Return the reader of scores for the fitted calibrators."""
        first = self.calibrated_pairs_[0].calibrator
        columns = takes_columns(first, len(self.classes_))
        return ScoreReader(self.response_, self.classes_, columns)


def _average_rows(pooled: Float64Array, tested: Rows, n: int) -> Float64Array:
    """Return scores by row. A repeated split tests a row several times, or never."""
    counts = np.bincount(tested, minlength=n)
    columns = pooled.reshape(len(pooled), -1).T
    sums = [np.bincount(tested, column, n) for column in columns]
    with np.errstate(invalid="ignore"):
        means = np.where(counts > 0, np.array(sums) / counts, np.nan)
    return means.T.reshape(n, *pooled.shape[1:])


class AllPairsClassifier(ClassifierAround):
    r"""A classifier of k classes, made of k (k - 1) / 2 calibrated ones for pairs.

    Parameters
    ----------
    estimator : classifier, optional
        Any classifier with `predict_proba` or `decision_function`. It is cloned for
        each pair. Default: `LogisticRegression`.
    calibrator : ScoreCalibrator or str, optional
        It is cloned for each pair and fitted on held-out scores. It may be a name of
        `calibrator_names()`. Default: `LogisticCalibrator()`.
    cv : int, splitter or iterable of (train, test), optional
        Folds that yield the held-out scores. Default: 5 stratified folds of the rows of
        each pair. There are fewer (with a `CalibrationWarning`) if a class has fewer
        rows. An integer is never lowered: it is refused if it is too large. If folds
        are given, they number all rows, and each pair takes its part of them.
    response : {"auto", "predict_proba", "decision_function"}
        The method that yields scores. "auto" prefers `predict_proba`.
    n_jobs : int, optional
        Number of classifiers fitted at a time, as in joblib. It changes no result.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The sorted labels.
    experts_ : list of CalibratedClassifier
        One for each of the pairs (0, 1), (0, 2), ..., (k - 2, k - 1) of `classes_`.
    response_ : {"predict_proba", "decision_function"}
        The method that yields the scores.
    n_features_in_ : int
        Only if the classifier has it.
    feature_names_in_ : ndarray of shape (n_features,)
        Only if the classifier has it.

    Notes
    -----
    The expert of classes i < j is a `CalibratedClassifier`. It is fitted on the rows of
    these two classes only. Its calibrator sees no score of a row from which its
    classifier had learned.

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
    >>> model = AllPairsClassifier(SVC()).fit(X, y)
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
    ):
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.response = response
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train and calibrate the expert of each pair.

        Parameters
        ----------
        X : array-like, sparse array or data frame of shape (n, n_features)
            It is passed to the classifiers unchanged.
        y : array-like of shape (n,)
            There must be two labels or more.
        sample_weight : array-like of shape (n,), optional
            Non-negative numbers of repetitions.

        Returns
        -------
        self
        """
        check_n_jobs(self.n_jobs)
        if isinstance(self.estimator, FrozenEstimator):
            rule = "be a classifier that can be trained on each pair of classes"
            refuse("estimator", rule, f"{self.estimator!r}", TypeError)
        estimator = self._resolve_estimator()
        response = choose_response(estimator, self.response)
        resolve_binary(self.calibrator, response)
        X, labels, _, routed = self._read_rows(X, y, sample_weight)
        with all_or_nothing(self):
            self.classes_ = check_many_classes(labels)
            self.response_ = response
            folds = self._read_folds(X, labels)
            experts = []
            for pair in combinations(self.classes_, 2):
                held = np.isin(labels, np.array(pair, self.classes_.dtype))
                rows = np.flatnonzero(held)
                weight = None if routed is None else routed[rows]
                if weight is not None and not weight.any():
                    # Neither class has weight, so the expert's answer does not matter.
                    weight = None
                with told_of_light():
                    expert = self._make_expert()
                    if folds is not None:
                        expert.set_params(cv=_restrict(folds, rows))
                    experts.append(expert.fit(take_rows(X, rows), labels[rows], weight))
            self.experts_ = experts
            self._note_features(experts[0])
        return self

    def predict_proba(self, X: Any) -> Float64Array:
        """Return calibrated probabilities.

        Parameters
        ----------
        X : array-like, sparse array or data frame of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, k)
            The columns are in the order of `classes_`.
        """
        check_is_fitted(self, "experts_")
        check_table_rows(X)
        (table,), k, found = indexable(X), len(self.classes_), []
        for rows in pieces_of_rows(count_rows(table), k):
            some = take_rows(table, rows)
            # Copy the column, because a view would keep its whole table in memory.
            chances = (one.predict_proba(some)[:, 1].copy() for one in self.experts_)
            found.append(couple_pairs(chances, k))
        return np.concatenate(found)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = self._make_expert().__sklearn_tags__().input_tags
        return tags

    def _make_expert(self) -> CalibratedClassifier:
        """Return the unfitted calibrated classifier that all experts copy."""
        return CalibratedClassifier(
            self._resolve_estimator(),
            self.calibrator,
            cv=self.cv,
            response=self.response,
            n_jobs=self.n_jobs,
        )

    def _default_estimator(self) -> Any:
        return LogisticRegression(max_iter=1000)

    def _read_folds(self, X: Any, labels: NDArray[Any]) -> list[Fold] | None:
        """Return the given folds of all rows, or None if `cv` is a number of folds."""
        if self.cv is None or isinstance(self.cv, numbers.Integral):
            return None
        splitter = choose_splitter(self.cv, labels, self.classes_)
        folds = list_folds(splitter, X, labels)
        refuse_repeats(folds, len(labels))
        return folds


def _restrict(folds: list[Fold], rows: Rows) -> list[Fold]:
    """Return the folds of all rows cut to some rows, if they still have a test part."""
    # Rows are sorted, so the search gives the place of a row among them.
    cut = [
        [np.searchsorted(rows, part[np.isin(part, rows)]) for part in fold]
        for fold in folds
    ]
    return [(train, test) for train, test in cut if len(test)]
