"""`CalibratedClassifier`: any scikit-learn classifier with honest probabilities."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.svm import LinearSVC
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted

from calibration._validation import (
    check_flag,
    check_n_jobs,
    check_verbose,
    refuse,
    told_of_light,
)
from calibration.base.calibrators import ScoreCalibrator, forget_fit
from calibration.classifier.base import (
    ClassifierAround,
    Rows,
    TrainingData,
    check_groups,
    check_known_classes,
    check_many_classes,
    check_table_rows,
    choose_splitter,
    cross_fit,
    refuse_repeats,
    route_arguments,
    split_rows,
    weigh_classes,
)
from calibration.classifier.scores import (
    Response,
    ScoreReader,
    choose_response,
    refuse_pair_scores,
    resolve_calibrator,
    takes_columns,
)
from calibration.monotone.venn_abers import VennAbersCalibrator, merge_intervals
from calibration.multiclass.base import MulticlassCalibrator
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
        Any classifier with `predict_proba` or `decision_function`. Wrapped in
        `sklearn.frozen.FrozenEstimator` it is not fitted again: only the calibrator
        is, on all rows given, and `cv` and `ensemble` are not used. Default:
        `LinearSVC`, which has no probabilities of its own.
    calibrator : ScoreCalibrator, MulticlassCalibrator or str, optional
        Cloned and fitted on held-out scores. One of binary scores is of more classes
        one for each, `OneVsRestCalibrator(calibrator)`. A name is one of
        `calibrator_names(n_classes)`, or "vector" or "matrix", which are
        `SoftmaxCalibrator(name)`, and so is "temperature" of more than two classes.
        "auto": `AutoCalibrator()`, which may do nothing. Default:
        `LogisticCalibrator()`, of more than two classes
        `SoftmaxCalibrator("matrix", penalty=1.0)`.
    cv : int, splitter or iterable of (train, test), optional
        Folds that yield the held-out scores. Default: 5 stratified folds, fewer
        (with a `CalibrationWarning`) if a class has fewer rows. An integer is never
        lowered but refused. Training parts must hold every class.
    ensemble : bool
        False: one calibrator is fitted on the held-out scores of all folds, and one
        classifier on all rows. True: the classifier of each fold keeps a calibrator
        of its own, and the probabilities are averaged (those of Venn-Abers
        calibrators are merged: the cross Venn-Abers predictor). See the notes.
    response : {"auto", "predict_proba", "decision_function"}
        The method that yields scores; "auto" prefers `predict_proba`.
    n_jobs : int, optional
        Number of classifiers fitted at a time, as in joblib. No result depends on it.
    verbose : int
        1 shows a bar on stderr that counts fits, and folds of `AutoCalibrator`; 0
        nothing.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The labels, sorted; of two, probabilities calibrated are those of `classes_[1]`.
    class_prior_ : ndarray of shape (k,)
        Shares of the classes in the weight of the rows that calibrators were fitted
        on: the prior under which `predict_proba` holds, `old` of `shift_prior`.
    calibrated_pairs_ : list of (estimator, calibrator)
        One fitted pair, or with `ensemble=True` one per fold.
    estimator_ : classifier
        The fitted classifier, where there is one pair.
    calibrator_ : ScoreCalibrator or MulticlassCalibrator
        The fitted calibrator, where there is one pair.
    response_ : {"predict_proba", "decision_function"}
        The method asked for scores.
    oof_scores_ : ndarray of shape (n,), or (n, k) of a MulticlassCalibrator
        Held-out scores that calibrators were fitted on. NaN: the row is in no test
        part. The mean, if it is in several (`ensemble=True` only). Not there if the
        classifier was frozen.
    n_features_in_ : int
        If the classifier has it.
    feature_names_in_ : ndarray of shape (n_features,)
        If the classifier has it.

    Notes
    -----
    The calibrator's `scale` is set by the response, whatever the values look like:
    "probability" for `predict_proba`, "real" for `decision_function`, unless the
    calibrator given says `scale="logit"`: only its user can know that a decision
    function is a log-odds. Methods without a meaning on real scores refuse them.

    Neither kind of `ensemble` is the better one. On 23 public tables of 100 to 1500
    training rows, with forests, boosted trees, logistic regression and naive Bayes,
    log loss was .281 with False and .287 with True, Brier score .0846 and .0828, each
    within two standard errors. Forests did better with False (log loss .221 and .223),
    boosted trees and logistic regression with True (.218 and .216; .286 and .281). The
    default keeps one classifier, a fifth of the memory and of the time of a forecast.

    `X` is handed on as it is: what a table may hold is for the classifier to say.
    `sample_weight` goes to the calibrators and, if its `fit` takes them, to the
    classifier. It does not move the limits of the folds: repeating rows equals
    weighting them if `cv` keeps the repetitions in one fold.

    With metadata routing enabled, `fit` routes to `estimator.fit` and to the `split`
    of the splitter; otherwise `groups` go to the splitter, and further arguments to
    `estimator.fit`, those with a value per row cut to the rows of the fold.

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

    Three classes, by a calibrator that has a name:

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
    # Groups are the splitter's, to whom they are routed, and of no use to `fit`.
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
            Handed to the classifier as it is.
        y : array-like of shape (n,)
            Any labels, two of them or more.
        sample_weight : array-like of shape (n,), optional
            Non-negative numbers of repetitions.
        groups : array-like of shape (n,), optional
            Rows that belong together: for the splitter, which without a `cv` or with
            a number is a `StratifiedGroupKFold`. Not used of a frozen classifier.
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
            classes = check_known_classes(labels, estimator)
        else:
            classes = check_many_classes(labels)
        calibrator = resolve_calibrator(self.calibrator, response, len(classes))
        if len(classes) > 2 and response == "decision_function":
            refuse_pair_scores(estimator)
        forget_fit(self)
        params, split_params = route_arguments(
            self, estimator, routed, fit_params, groups
        )
        data = TrainingData(X, labels, params)
        self.response_, self.classes_ = response, classes
        read = ScoreReader(response, classes, takes_columns(calibrator, len(classes)))
        targets = read.targets(labels)
        if frozen:
            self.class_prior_ = weigh_classes(labels, classes, weights)
            with self._counting(0, 1, calibrator):
                known = [(read(estimator, X), targets, weights)]
                self._keep([estimator], calibrator, known)
            return self
        splitter = choose_splitter(self.cv, labels, classes, groups)
        folds = split_rows(splitter, data, split_params)
        if not self.ensemble:
            refuse_repeats(folds, len(labels), " with `ensemble=False`")
        parts = [test for _, test in folds]
        tested = np.concatenate(parts)
        self.class_prior_ = weigh_classes(labels[tested], classes, weights[tested])
        refit = not self.ensemble
        with self._counting(len(folds) + refit, 1 if refit else len(folds), calibrator):
            models, held_out = cross_fit(
                estimator, data, folds, read, refit=refit, n_jobs=self.n_jobs
            )
            # Held-out scores of all folds together: each comes from a classifier that
            # has not seen its row.
            pooled = np.concatenate(held_out)
            self.oof_scores_ = _average_rows(pooled, tested, len(labels))
            if refit:
                parts, held_out = [tested], [pooled]
            known = [
                (scores, targets[rows], weights[rows])
                for scores, rows in zip(held_out, parts, strict=True)
            ]
            self._keep(models, calibrator, known)
        return self

    def predict_proba(self, X: Any) -> Float64Array:
        """Return calibrated probabilities.

        Parameters
        ----------
        X : array-like, sparse array or data frame of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, k)
            Columns in the order of `classes_`; rows sum to 1.
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
        if read.columns:
            return positive
        return np.column_stack([1.0 - positive, positive])

    def predict_interval(self, X: Any, **options: Any) -> Float64Array:
        """Return intervals of the probability of `classes_[1]`, of two classes.

        Parameters
        ----------
        X : array-like, sparse array or data frame of shape (n, n_features)
        **options : dict
            Of the calibrator's `predict_interval`, for instance `coverage`.

        Returns
        -------
        ndarray of shape (n, 2)
            Lower and upper bounds, as the calibrator means them: those of an
            `IsotonicCalibrator` hold the event rate, those of a
            `VennAbersCalibrator` are its two probabilities.
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
            # The mean of intervals holds nothing with a known probability.
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
        return (
            super()
            .get_metadata_routing()
            .add(
                splitter=self.cv,
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
        # A seed, for there is no `random_state` here through which to ask for one.
        return LinearSVC(random_state=0)

    def _counting(
        self, n_models: int, n_calibrators: int, calibrator: Any
    ) -> AbstractContextManager[None]:
        """Return the bar of so many fits."""
        trials = calibrator.n_folds if isinstance(calibrator, AutoCalibrator) else 0
        total = n_models + n_calibrators * (1 + trials)
        return counting(total, check_verbose(self.verbose), "classifier")

    def _keep(
        self, models: list[Any], calibrator: Any, known: list[tuple[Any, ...]]
    ) -> None:
        """Fit a calibrator for each model on its scores, targets and weights."""
        with told_of_light():
            # Here and not in the workers, whose warnings would be lost.
            fitted = []
            for rows in known:
                fitted.append(clone(calibrator).fit(*rows))
                tick()
        pairs = zip(models, fitted, strict=True)
        self.calibrated_pairs_ = [CalibratedPair(*pair) for pair in pairs]
        if len(models) == 1:
            self.estimator_, self.calibrator_ = self.calibrated_pairs_[0]
        self._note_features(models[0])

    def _reader(self) -> ScoreReader:
        """Return what reads scores for the fitted calibrators."""
        first = self.calibrated_pairs_[0].calibrator
        columns = takes_columns(first, len(self.classes_))
        return ScoreReader(self.response_, self.classes_, columns)


def _average_rows(pooled: Float64Array, tested: Rows, n: int) -> Float64Array:
    """Return scores by row; a repeated split tests one several times, others none."""
    counts = np.bincount(tested, minlength=n)
    columns = pooled.reshape(len(pooled), -1).T
    sums = [np.bincount(tested, column, n) for column in columns]
    with np.errstate(invalid="ignore"):
        means = np.where(counts > 0, np.array(sums) / counts, np.nan)
    return means.T.reshape(n, *pooled.shape[1:])
