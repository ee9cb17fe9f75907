"""`IndependentExperts`: one classifier per threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import lightgbm as lgb
import numpy as np

from calibration.typing import Float64Array
from localexpert._validation import check_flag
from localexpert.data.directions import Directions, check_directions, read_directions
from localexpert.data.folds import renumber_folds
from localexpert.data.table import Table
from localexpert.data.threads import ask_each, one_thread
from localexpert.experts.base import Experts, Tasks
from localexpert.experts.classifiers import (
    Classifiers,
    Model,
    asks_out_of_bag,
    check_classifier,
)

# Chosen by the log loss out of fold summed over thresholds on the sets concrete,
# airfoil, kin8nm, abalone, insurance and seoul_bike.
_PARAMETERS: dict[str, Any] = {
    "learning_rate": 0.1,
    "num_leaves": 15,
    "min_data_in_leaf": 10,
    "lambda_l2": 1.0,
    "max_bin": 127,
    # LightGBM's 100 would keep most categories of a small table from any split.
    "min_data_per_group": 10,
    "feature_pre_filter": False,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbosity": -1,
}
_MOST_ROUNDS, _PATIENCE = 300, 30
# Thresholds by which the number of rounds is chosen.
_N_PILOTS = 5


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
            classifier, X = _make_booster(tasks, signs, seed), tasks.table.codes
            options["categorical_feature"] = tasks.table.reader.categories
            self.n_rounds_ = classifier.n_estimators
        ours = Classifiers(classifier, X, tasks, rng, self.n_jobs, options)
        if asks_out_of_bag(classifier) and tasks.is_whole:
            fitted = ours.fit_out_of_bag()
            self.models_ = [[model for model, _ in fitted]]
            return np.column_stack([probabilities for _, probabilities in fitted])
        parts = list(tasks.folds)
        if self.refit:
            parts.append((tasks.present, np.empty(0, dtype=np.intp)))
        results = ours.fit(parts)
        oof = np.empty((tasks.n, tasks.n_thresholds))
        for (_, test), experts in zip(tasks.folds, results, strict=False):
            oof[test] = np.column_stack([answers for _, answers in experts])
        kept = results[len(tasks.folds) :] if self.refit else results
        self.models_ = [[model for model, _ in experts] for experts in kept]
        return oof

    def _predict(self, table: Table) -> Float64Array:
        X = table.codes if self.classifier is None else table.given

        def ask(models: tuple[Model, ...]) -> Float64Array:
            return sum((m.predict(X) for m in models), np.zeros(len(table))) / len(
                models
            )

        columns = list(zip(*self.models_, strict=True))
        with one_thread(len(table)):
            answers = ask_each(ask, columns, len(table), self.n_jobs)
        return np.column_stack(answers)


def _make_booster(tasks: Tasks, signs: Sequence[int], seed: int) -> lgb.LGBMClassifier:
    """Return an unfitted booster with one number of rounds for all folds and tasks.

    Parameters
    ----------
    tasks : Tasks
    signs : sequence of int
        The target may only rise (+1) or fall (-1) with features of such signs.
    seed : int

    Returns
    -------
    LGBMClassifier
        Reads codes. Its rounds have the least held-out log loss, mean over folds and
        some thresholds.
    """
    parameters = dict(_PARAMETERS)
    if any(signs):
        parameters["monotone_constraints"] = [-sign for sign in signs]
    middles = (np.arange(_N_PILOTS) + 0.5) * tasks.n_thresholds / _N_PILOTS
    curves = [
        _boost(tasks, k, parameters, seed) for k in np.unique(middles.astype(int))
    ]
    longest = max(map(len, curves))
    mean = np.mean([np.pad(c, (0, longest - len(c)), "edge") for c in curves], axis=0)
    return lgb.LGBMClassifier(n_estimators=int(np.argmin(mean)) + 1, **parameters)


def _boost(tasks: Tasks, k: int, parameters: dict[str, Any], seed: int) -> list[float]:
    """Return the held-out log loss of a task after every round."""
    # Rows without weight have no part in the bins either.
    rows = tasks.present
    folds = renumber_folds(tasks.folds, rows, tasks.n)
    folds = [(train, test) for train, test in folds if len(test)]
    if not folds:
        return [0.0]
    data = lgb.Dataset(
        tasks.table.codes[rows],
        tasks.label(rows, k).astype(np.float64),
        weight=tasks.weights[rows] if tasks.weighted else None,
        categorical_feature=tasks.table.reader.categories,
        params=parameters,
    )
    told = lgb.cv(
        {**parameters, "objective": "binary", "seed": seed},
        data,
        _MOST_ROUNDS,
        folds=folds,
        callbacks=[lgb.early_stopping(_PATIENCE, verbose=False)],
    )
    return list(cast(list[float], told["valid binary_logloss-mean"]))
