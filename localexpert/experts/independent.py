"""`IndependentExperts`: one classifier per threshold."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Self

import lightgbm as lgb
import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.utils.parallel import delayed
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from calibration import CalibrationWarning
from calibration.typing import Float64Array
from localexpert._validation import are_probabilities, check_answers, show
from localexpert.coordinate.boosting import FoldBoosters
from localexpert.data.directions import Directions, check_directions, read_directions
from localexpert.data.table import Table, take_rows
from localexpert.data.threads import ask_each, one_thread
from localexpert.data.user_learners import name_of_argument, suggest_pipeline
from localexpert.experts.base import Experts, Tasks
from localexpert.progress import run_jobs

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
# Libraries whose estimators take all cores where they are not told a number.
_GREEDY = ("catboost", "lightgbm", "xgboost")
_THREAD_PARAMETERS = ("n_jobs", "nthread", "thread_count")


@dataclass(frozen=True, eq=False)
class Model:
    """The fitted expert of one threshold.

    Decisions d become P = expit(logit(base rate) + (d - mean(d)) / sd(d)), mean and
    deviation over the training rows: increasing in d and of about the right level and
    spread, so that values of different folds compare. Calibration does the rest.

    Parameters
    ----------
    estimator : classifier or None
        None where the training rows all have one label.
    rate : float
        Smoothed share of the label in training.
    mean, spread : float
        Of the decisions of a classifier without `predict_proba`.
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
        **more: Any,
    ) -> Self:
        """Fit a classifier, where labels differ, with more arguments of its `fit`."""
        if labels.all() or not labels.any():
            return cls(None, rate)
        classifier.fit(X, labels, **more)
        if hasattr(classifier, "predict_proba"):
            return cls(classifier, rate)
        decision = _decide(classifier, X)
        mean, spread = float(decision.mean()), float(decision.std())
        # Equal decisions differ by rounding, which must not be blown up.
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
    """Return decisions; refuse what are not so many numbers."""
    rule = f"{type(classifier).__name__} must decide on every row by a number"
    return check_answers(classifier.decision_function(X), X.shape[0], rule)


def check_classifier(classifier: Any, name: str = "classifier") -> None:
    """Refuse what cannot be fitted or yields neither probabilities nor scores."""
    able = all(hasattr(classifier, one) for one in ("fit", "get_params"))
    answers = any(
        hasattr(classifier, one) for one in ("predict_proba", "decision_function")
    )
    if isinstance(classifier, type) or not (able and answers):
        msg = (
            f"`{name}` must be a classifier with `fit` and `predict_proba` or "
            f"`decision_function`, got {classifier!r}."
        )
        raise TypeError(msg)


class IndependentExperts(Experts):
    """One classifier per threshold, all of a kind: the local experts.

    Parameters
    ----------
    classifier : classifier, optional
        Any scikit-learn classifier, or Pipeline that ends in one, with
        `predict_proba` or `decision_function`; cloned for every threshold and fold.
        Default: LightGBM with 15 leaves whose number of rounds is chosen, see Notes.
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
        Fitted experts by fold, then by threshold.
    n_rounds_ : int
        Boosting rounds of the default.

    Notes
    -----
    The default reads strings and categorical types as categories. To a classifier
    given X is handed on as it is: what a table may hold is for the classifier to say.

    The default's number of rounds is one for all folds and thresholds: the mean over
    five thresholds of that with the least held-out log loss of the folds.

    A decision function d becomes expit(logit(base rate) + (d - mean) / sd), mean and
    deviation over the training rows. A task with one class in a training part predicts
    (n1 + 1) / (n + 2).

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
        monotone: Directions | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ):
        self.classifier = classifier
        self.monotone = monotone
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        if self.classifier is not None:
            check_classifier(self.classifier)
        if check_directions(self.monotone) is not None and self.classifier is not None:
            msg = (
                "`classifier` must be None with `monotone`, which other learners do "
                f"not keep, got {self.classifier!r}."
            )
            raise ValueError(msg)

    def _fit(self, tasks: Tasks) -> Float64Array:
        rng = np.random.default_rng(self.random_state)
        classifier, options = self.classifier, dict[str, Any]()
        if classifier is None:
            classifier = self._make_booster(tasks, int(rng.integers(2**31)))
            options["categorical_feature"] = tasks.table.reader.categories
        name = name_of_argument(classifier)
        if tasks.weighted and name is None:
            msg = (
                f"{type(classifier).__name__}.fit takes no `sample_weight`: the "
                "experts are fitted without the weights."
            )
            warnings.warn(msg, CalibrationWarning, stacklevel=4)
        parallel = effective_n_jobs(self.n_jobs) > 1
        places = list(np.ndindex(len(tasks.folds), tasks.n_thresholds))
        attempt = _Attempt(tasks, self._view(tasks.table), name, options)
        jobs = [
            delayed(attempt)(_prepare(classifier, seed, parallel=parallel), *place)
            for place, seed in zip(
                places, rng.integers(2**31, size=len(places)).tolist(), strict=True
            )
        ]
        # The libraries under parallel classifiers get one thread each.
        with threadpool_limits(limits=1) if parallel else nullcontext():
            results = run_jobs(jobs, n_jobs=self.n_jobs)
        oof = np.empty((len(tasks), tasks.n_thresholds))
        self.models_ = [[] for _ in tasks.folds]
        for (number, k), told in zip(places, results, strict=True):
            if isinstance(told, Exception):
                msg = (
                    f"The expert of {tasks.describe(k, number)} failed: {told}"
                    f"{suggest_pipeline(tasks.table.given, self.classifier)}"
                )
                raise RuntimeError(msg) from told
            model, oof[tasks.folds[number][1], k] = told
            self.models_[number].append(model)
        return oof

    def _predict(self, table: Table) -> Float64Array:
        X = self._view(table)

        def ask(models: tuple[Model, ...]) -> Float64Array:
            each = [model.predict(X) for model in models]
            return sum(each, np.zeros(len(table))) / len(models)

        columns = list(zip(*self.models_, strict=True))
        with one_thread(len(table)):
            answers = ask_each(ask, columns, len(table), self.n_jobs)
        return np.column_stack(answers)

    def _view(self, table: Table) -> Any:
        return table.codes if self.classifier is None else table.given

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


@dataclass(frozen=True, eq=False)
class _Attempt:
    """What fits an expert and asks it about the test part of its fold.

    `options` are more arguments of `fit`, and `weight_name` is that of the weights.
    """

    tasks: Tasks
    X: Any
    weight_name: str | None
    options: dict[str, Any]

    def __call__(
        self, classifier: Any, number: int, k: int
    ) -> tuple[Model, Float64Array] | Exception:
        """Return an error as a result, told at home with its task."""
        tasks, (train, test) = self.tasks, self.tasks.folds[number]
        more = dict(self.options)
        if tasks.weighted and self.weight_name is not None:
            more[self.weight_name] = tasks.weight[train]
        labels = tasks.y[train] <= tasks.thresholds[k]
        rate = float(tasks.base_rates(train)[k])
        try:
            own = take_rows(self.X, train)
            model = Model.fit(classifier, own, labels, rate, **more)
            return model, model.predict(take_rows(self.X, test))
        except Exception as error:
            return error


def _prepare(classifier: Any, seed: int, *, parallel: bool) -> Any:
    """Return a clone with a seed, and with one thread where it would take more."""
    fresh, changes = clone(classifier), dict[str, Any]()
    parameters = fresh.get_params(deep=True)
    for name, value in parameters.items():
        prefix, _, last = name.rpartition("__")
        if last == "random_state" and value is None:
            changes[name] = seed
        if last in _THREAD_PARAMETERS:
            owner = type(parameters[prefix] if prefix else fresh)
            greedy = value is None and owner.__module__.startswith(_GREEDY)
            if greedy or (value not in (None, 1) and parallel):
                changes[name] = 1
    return fresh.set_params(**changes)
