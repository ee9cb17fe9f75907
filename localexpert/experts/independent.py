"""`IndependentExperts`: one classifier per threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert._validation import check_flag
from localexpert.data.directions import Directions, check_directions, read_directions
from localexpert.data.table import Table
from localexpert.data.threads import ask_each, one_thread
from localexpert.experts.base import Experts
from localexpert.experts.classifiers import (
    Model,
    asks_out_of_bag,
    check_classifier,
    fit_classifiers,
    fit_out_of_bag,
)
from localexpert.experts.default_booster import make_booster
from localexpert.experts.tasks import Tasks


class IndependentExperts(Experts):
    """One classifier per threshold, all of a kind: the local experts.

    Parameters
    ----------
    classifier : classifier, optional
        Any scikit-learn classifier, or Pipeline that ends in one, with
        `predict_proba` or `decision_function`; cloned for every threshold and fold.
        Default: LightGBM with 15 leaves whose number of rounds is chosen, see Notes.
    refit : bool
        Fit the experts once more, to all rows, for prediction instead of averaging
        those of the folds.
    monotone : dict or list of int, optional
        Columns, by name or of an array by position, in which the target may only
        rise (+1) or fall (-1): every P(r <= v | x) falls or rises there. Or a list of
        +1, -1 and 0, one for each column. Without a `classifier` only.
    n_jobs : int, optional
        Experts fitted at a time, as in joblib, by whatever backend is set there.
    random_state : int, optional
        Seed of the classifiers whose `random_state` is None.

    Attributes
    ----------
    thresholds_ : ndarray of shape (N,)
    oof_probabilities_ : ndarray of shape (n, N)
        Not monotone along the thresholds: the experts know nothing of one another.
    models_ : list of lists
        Fitted experts by fold, then by threshold; one list after a refit, or where
        out-of-bag probabilities were used.
    n_rounds_ : int
        Boosting rounds of the default.

    Notes
    -----
    The default reads strings and categorical types as categories. To a classifier
    given X is handed on as it is: what a table may hold is for the classifier to say.

    The default's number of rounds is one for all folds and thresholds: the one with
    the least held-out log loss, averaged over the folds at five thresholds.

    A decision function d becomes expit(logit(base rate) + (d - mean) / sd), mean and
    deviation over the training rows. A forest with `oob_score=True` is fitted once
    per threshold, and its out-of-bag probabilities are used; the folds are not, unless
    they leave rows untested. A
    task with one class in a training part predicts (n1 + 1) / (n + 2).

    Where experts run in parallel each has one thread, libraries below included.
    Errors name the threshold and the fold, with the classifier's error as cause.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from localexpert.experts import IndependentExperts
    >>> from localexpert.data.folds import make_folds
    >>> X = np.linspace(0.0, 1.0, 200)[:, None]
    >>> folds = make_folds(200, 2, random_state=0)
    >>> experts = IndependentExperts(LogisticRegression(C=1e4))
    >>> experts = experts.fit(X, X[:, 0], [0.25, 0.5, 0.75], folds)
    >>> experts.predict([[0.1], [0.6]]).round()
    array([[1., 1., 1.],
           [0., 0., 1.]])
    """

    models_: list[list[Model]]
    n_rounds_: int

    def __init__(
        self,
        classifier: Any = None,
        *,
        refit: bool = False,
        monotone: Directions | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ):
        self.classifier = classifier
        self.refit = refit
        self.monotone = monotone
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        if self.classifier is not None:
            check_classifier(self.classifier)
        check_flag(self.refit, "refit")
        if check_directions(self.monotone) is not None and self.classifier is not None:
            msg = (
                "`classifier` must be None with `monotone`, which other learners do "
                f"not keep, got {self.classifier!r}."
            )
            raise ValueError(msg)

    def _fit(self, tasks: Tasks) -> Float64Array:
        rng = np.random.default_rng(self.random_state)
        classifier, X = self.classifier, tasks.table.given
        options: dict[str, Any] = {}
        if classifier is None:
            signs = read_directions(self.monotone, tasks.table.reader)
            seed = int(rng.integers(2**31))
            classifier, X = make_booster(tasks, signs, seed), tasks.table.codes
            options["categorical_feature"] = tasks.table.reader.categories
            self.n_rounds_ = classifier.n_estimators
        if asks_out_of_bag(classifier) and tasks.is_whole:
            fitted = fit_out_of_bag(classifier, tasks, rng, self.n_jobs)
            self.models_ = [[model for model, _ in fitted]]
            return np.column_stack([probabilities for _, probabilities in fitted])
        parts = list(tasks.folds)
        if self.refit:
            parts.append((tasks.present, np.empty(0, dtype=np.intp)))
        results = fit_classifiers(
            classifier, X, tasks, parts, rng, self.n_jobs, options
        )
        return self._keep(tasks, results)

    def _keep(
        self,
        tasks: Tasks,
        results: list[list[tuple[Model, Float64Array]]],
    ) -> Float64Array:
        """Keep the models that predict; return the out-of-fold probabilities."""
        oof = np.empty((tasks.n, tasks.n_thresholds))
        for (_, test), experts in zip(tasks.folds, results, strict=False):
            oof[test] = np.column_stack([answers for _, answers in experts])
        kept = results[len(tasks.folds) :] if self.refit else results
        self.models_ = [[model for model, _ in experts] for experts in kept]
        return oof

    def _predict(self, table: Table) -> Float64Array:
        X = table.codes if self.classifier is None else table.given
        columns = list(zip(*self.models_, strict=True))
        with one_thread(len(table)):
            answers = ask_each(
                lambda models: _predict_mean(models, X),
                columns,
                len(table),
                self.n_jobs,
            )
        return np.column_stack(answers)


def _predict_mean(models: tuple[Model, ...], X: Any) -> NDArray[np.float64]:
    total = np.zeros(X.shape[0])
    for model in models:
        total += model.predict(X)
    return total / len(models)
