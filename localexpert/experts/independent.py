"""`IndependentExperts`: one classifier per threshold."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import lightgbm as lgb
import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.frozen import FrozenEstimator
from sklearn.utils.parallel import delayed

from calibration._jobs import one_thread
from calibration._validation import refuse, show
from calibration.typing import Float64Array
from localexpert._validation import are_probabilities, check_answers
from localexpert.coordinate.boosting import ONE_THREAD, FoldBoosters
from localexpert.data.directions import Directions, check_directions, read_directions
from localexpert.data.learners import (
    ask_each,
    blaming,
    name_of_argument,
    say_unweighted,
    seeded,
    suggest_pipeline,
)
from localexpert.data.table import Table, take_rows
from localexpert.data.unseen import warn_user
from localexpert.experts.base import Experts, Tasks
from localexpert.progress import run_jobs

# These were chosen by the out-of-fold log loss, summed over thresholds, on the sets
# concrete, airfoil, kin8nm, abalone, insurance and seoul_bike.
_PARAMETERS: dict[str, Any] = {
    "learning_rate": 0.1,
    "num_leaves": 15,
    "min_data_in_leaf": 10,
    "lambda_l2": 1.0,
    "max_bin": 127,
    # With LightGBM's 100, most categories of a small table would never be split.
    "min_data_per_group": 10,
    "feature_pre_filter": False,
    **ONE_THREAD,
}
_MOST_ROUNDS, _PATIENCE = 300, 30
# This many thresholds serve to choose the number of rounds.
_N_PILOTS = 5
# Libraries whose estimators use all cores unless a number is set.
_GREEDY = ("catboost", "lightgbm", "xgboost")
_THREAD_PARAMETERS = ("n_jobs", "nthread", "thread_count")


@dataclass(frozen=True, eq=False)
class Model:
    """The fitted expert of one threshold.

    Decisions d become P = expit(logit(base rate) + (d - mean(d)) / sd(d)), with mean
    and deviation over the training rows. P increases in d and has about the right level
    and spread, so values of different folds can be compared. Calibration does the rest.

    Parameters
    ----------
    estimator : classifier or None
        None if all training rows have the same label.
    rate : float
        Smoothed share of the label in training.
    mean, spread : float
        Weighted mean and deviation of the decisions of a classifier without
        `predict_proba`.
    """

    estimator: Any
    rate: float
    mean: float = 0.0
    spread: float = 1.0

    @classmethod
    def fit(
        cls,
        classifier: Any,
        X: Any,
        labels: NDArray[np.bool_],
        rate: float,
        weight: Float64Array,
        **more: Any,
    ) -> Self:
        """Fit a classifier if labels differ. `fit` may get more arguments."""
        if labels.all() or not labels.any():
            return cls(None, rate)
        classifier.fit(X, labels, **more)
        if hasattr(classifier, "predict_proba"):
            return cls(classifier, rate)
        decision = _decide(classifier, X)
        mean = float(np.average(decision, weights=weight))
        variance = np.average((decision - mean) ** 2, weights=weight)
        spread = float(np.sqrt(variance))
        # Equal decisions differ by rounding. Do not divide by such a tiny spread.
        flat = spread <= 1e-9 * abs(mean)
        return cls(classifier, rate, mean, 1.0 if flat else spread)

    def predict(self, X: Any) -> Float64Array:
        """Return P(r <= v | x), shape (n,)."""
        if self.estimator is None:
            return np.full(X.shape[0], self.rate)
        if not hasattr(self.estimator, "predict_proba"):
            decision = _decide(self.estimator, X)
            return expit(float(logit(self.rate)) + (decision - self.mean) / self.spread)
        classes = list(self.estimator.classes_)
        answer = np.asarray(self.estimator.predict_proba(X), dtype=np.float64)
        if len(classes) != 2 or answer.shape != (X.shape[0], 2):
            msg = f"shape {answer.shape} for {X.shape[0]} rows and classes {classes}"
        else:
            p = answer[:, classes.index(True)]
            if are_probabilities(p):
                return np.clip(p, 0.0, 1.0)
            msg = f"values from {show(p.min())} to {show(p.max())}"
            msg = "NaN" if np.isnan(p).any() else msg
        name = type(self.estimator).__name__
        msg = f"{name} must predict probabilities in [0, 1] of two classes, got {msg}"
        raise ValueError(msg)


def _decide(classifier: Any, X: Any) -> Float64Array:
    """Return decisions. Refuse anything but one number per row."""
    rule = f"{type(classifier).__name__} must decide on every row by a number"
    return check_answers(classifier.decision_function(X), X.shape[0], rule)


def check_classifier(classifier: Any, name: str = "classifier") -> None:
    """Refuse anything that cannot learn, or gives neither probabilities nor scores."""
    able = all(hasattr(classifier, one) for one in ("fit", "get_params"))
    answers = any(
        hasattr(classifier, one) for one in ("predict_proba", "decision_function")
    )
    if isinstance(classifier, FrozenEstimator):
        refuse(name, "be a classifier that can be trained", repr(classifier), TypeError)
    if isinstance(classifier, type) or not (able and answers):
        rule = "be a classifier with `fit` and `predict_proba` or `decision_function`"
        refuse(name, rule, repr(classifier), TypeError)


@dataclass(eq=False, repr=False)
class IndependentExperts(Experts):
    """One classifier per threshold, all of the same kind. These are the local experts.

    Parameters
    ----------
    classifier : classifier, optional
        Any scikit-learn classifier, or Pipeline that ends in one, with
        `predict_proba` or `decision_function`. It is cloned for every threshold and
        fold. The default is LightGBM with 15 leaves and a chosen number of rounds, see
        Notes.
    monotone : dict or list of int, optional
        Columns with which the target may only rise (+1) or only fall (-1), by name, or
        by position in an array. Every P(r <= v | x) then falls or rises there. Or a
        list of +1, -1 and 0, one for each column. Only without a `classifier`.
    n_jobs : int, optional
        Number of experts fitted at the same time, as in joblib, with its backend.
    random_state : int, optional
        Seed of the classifiers whose `random_state` is None.

    Attributes
    ----------
    thresholds_ : ndarray of shape (N,)
    oof_probabilities_ : ndarray of shape (n, N)
        Not monotone along the thresholds, because the experts are independent.
    models_ : list of lists
        Fitted experts by fold, then by threshold.
    n_rounds_ : int
        Boosting rounds of the default classifier.

    Notes
    -----
    The default reads strings and categorical types as categories. A classifier that
    you give gets X as it is, and must be able to read it.

    All folds and thresholds of the default have the same number of rounds. For each of
    five thresholds, the folds' held-out log loss gives the best number. The mean of the
    five is used.

    A decision function d becomes expit(logit(base rate) + (d - mean) / sd), with
    weighted mean and deviation over the training rows. If a training part has only one
    class, the task predicts (n1 + 1) / (n + 2).

    If experts run in parallel, each has one thread, and so do the libraries below it.
    An error names the threshold and the fold. Its cause is the classifier's error.

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

    classifier: Any = None
    _: KW_ONLY
    monotone: Directions | None = None
    n_jobs: int | None = None
    random_state: int | None = None
    models_: list[list[Model]] = field(init=False)
    n_rounds_: int = field(init=False)

    def _check_parameters(self) -> None:
        if self.classifier is not None:
            check_classifier(self.classifier)
        if check_directions(self.monotone) is not None and self.classifier is not None:
            rule = "be None with `monotone`, which other learners do not keep"
            refuse("classifier", rule, repr(self.classifier))

    def _fit(self, tasks: Tasks) -> Float64Array:
        rng = np.random.default_rng(self.random_state)
        classifier, options = self.classifier, dict[str, Any]()
        self.takes_codes_ = classifier is None
        if classifier is None:
            classifier = self._make_booster(tasks, int(rng.integers(2**31)))
            options["categorical_feature"] = tasks.table.reader.categories
        name = name_of_argument(classifier)
        if tasks.weighted and name is None:
            warn_user(
                f"{say_unweighted(classifier)}: the experts are fitted without the "
                "weights."
            )
        parallel = effective_n_jobs(self.n_jobs) > 1
        # Twice the weight is half the penalty to a classifier of the user's.
        plain = self.classifier is None or tasks.weight[tasks.present[0]] == 1.0
        if plain and not tasks.weighted:
            name = None
        places = list(np.ndindex(len(tasks.folds), tasks.n_thresholds))
        seeds = rng.integers(2**31, size=len(places)).tolist()
        common = tasks, self._view(tasks.table), name, options
        attempt = delayed(_attempt)
        jobs = [
            attempt(_prepare(classifier, seed, parallel=parallel), *common, *place)
            for place, seed in zip(places, seeds, strict=True)
        ]
        # The libraries under parallel classifiers get one thread each.
        with one_thread() if parallel else nullcontext():
            results = run_jobs(jobs, n_jobs=self.n_jobs)
        oof = np.empty((len(tasks), tasks.n_thresholds))
        self.models_ = [[] for _ in tasks.folds]
        for (number, k), result in zip(places, results, strict=True):
            if isinstance(result, Exception):
                msg = (
                    f"The expert of threshold {tasks.thresholds[k]:g} (number {k}) in "
                    f"fold {number} failed: {result}"
                    f"{suggest_pipeline(tasks.table.given, self.classifier)}"
                )
                raise RuntimeError(msg) from result
            model, oof[tasks.folds[number][1], k] = result
            self.models_[number].append(model)
        return oof

    def _predict(self, table: Table) -> Float64Array:
        X = self._view(table)

        def ask(models: tuple[Model, ...]) -> Float64Array:
            each = [model.predict(X) for model in models]
            return sum(each, np.zeros(len(table))) / len(models)

        columns = list(zip(*self.models_, strict=True))
        with (
            blaming("expert", self.models_[0][0].estimator, X),
            one_thread(n_rows=len(table)),
        ):
            answers = ask_each(ask, columns, len(table), self.n_jobs)
        return np.column_stack(answers)

    def _view(self, table: Table) -> Any:
        return table.codes if self.takes_codes_ else table.given

    def _make_booster(self, tasks: Tasks, seed: int) -> lgb.LGBMClassifier:
        """Return an unfitted booster with one number of rounds for all experts."""
        parameters = dict(_PARAMETERS)
        signs = read_directions(self.monotone, tasks.table.reader)
        if any(signs):
            parameters["monotone_constraints"] = [-sign for sign in signs]
        known = {"objective": "binary", "seed": seed, **parameters}
        known["categorical_feature"] = tasks.table.reader.categories
        folds = [fold for fold in tasks.folds if tasks.weight[fold[1]].any()]
        middles = (np.arange(_N_PILOTS) + 0.5) * tasks.n_thresholds / _N_PILOTS
        rounds = []
        for k in np.unique(middles.astype(int)):
            labels = (tasks.y <= tasks.thresholds[k]).astype(np.float64)
            boosters = FoldBoosters(known, _MOST_ROUNDS, _PATIENCE, self.n_jobs)
            boosters.fit(tasks.table.codes, labels, folds, tasks.weight)
            rounds.append(boosters.n_rounds_)
        self.n_rounds_ = round(float(np.mean(rounds))) if folds else 1
        return lgb.LGBMClassifier(n_estimators=self.n_rounds_, **parameters)


def _attempt(
    classifier: Any,
    tasks: Tasks,
    X: Any,
    weight_name: str | None,
    options: dict[str, Any],
    number: int,
    k: int,
) -> tuple[Model, Float64Array] | Exception:
    """Fit an expert, and ask it about the test part of its fold.

    `options` are more arguments of `fit`. `weight_name` is the name of its weights. An
    error is returned as a result, and the caller reports it with its task.
    """
    train, test = tasks.folds[number]
    more = dict(options)
    weight = tasks.weight[train]
    if weight_name is not None:
        more[weight_name] = weight
    labels = tasks.y[train] <= tasks.thresholds[k]
    rate = float(tasks.base_rates(train)[k])
    try:
        own = take_rows(X, train)
        model = Model.fit(classifier, own, labels, rate, weight, **more)
        return model, model.predict(take_rows(X, test))
    except Exception as error:
        return error


def _prepare(classifier: Any, seed: int, *, parallel: bool) -> Any:
    """Return a clone with a seed, and with one thread if it would take more."""
    fresh, changes = seeded(classifier, seed), dict[str, Any]()
    parameters = fresh.get_params(deep=True)
    for name, value in parameters.items():
        prefix, _, last = name.rpartition("__")
        if last in _THREAD_PARAMETERS:
            owner = type(parameters[prefix] if prefix else fresh)
            greedy = value is None and owner.__module__.startswith(_GREEDY)
            if greedy or (value not in (None, 1) and parallel):
                changes[name] = 1
    return fresh.set_params(**changes)
