"""Any classifier as the expert of one threshold."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol

import numpy as np
from joblib import effective_n_jobs
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.utils.parallel import delayed
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from calibration import CalibrationWarning
from calibration.typing import Float64Array
from localexpert._validation import are_probabilities, check_answers, show
from localexpert.data.folds import Fold
from localexpert.data.table import take_rows
from localexpert.data.user_learners import name_of_argument, suggest_pipeline
from localexpert.experts.tasks import Tasks
from localexpert.progress import run_jobs

# Libraries whose estimators take all cores where they are not told a number.
_GREEDY = ("catboost", "lightgbm", "xgboost")
_THREAD_PARAMETERS = ("n_jobs", "nthread", "thread_count")


class Model(Protocol):
    """A fitted expert of one threshold."""

    def predict(self, X: Any) -> Float64Array:
        """Return P(r <= v | x), shape (n,)."""


class ConstantModel(NamedTuple):
    """The expert of a task whose training rows all have one label."""

    probability: float

    def predict(self, X: Any) -> Float64Array:
        """Return the constant, shape (n,)."""
        return np.full(X.shape[0], self.probability)


class ProbabilityModel(NamedTuple):
    """A fitted classifier with `predict_proba`."""

    estimator: Any

    def predict(self, X: Any) -> Float64Array:
        """Return the probability of class 1, shape (n,)."""
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


class DecisionModel(NamedTuple):
    """A fitted classifier with `decision_function` only.

    P = expit(logit(base rate) + (d - mean(d)) / sd(d)), mean and deviation over the
    training rows: increasing in d and of about the right level and spread, so that
    values of different folds compare. Calibration does the rest.
    """

    estimator: Any
    offset: float
    mean: float
    spread: float

    def predict(self, X: Any) -> Float64Array:
        """Return the probability of class 1, shape (n,)."""
        decision = _decide(self.estimator, X)
        return expit(self.offset + (decision - self.mean) / self.spread)


def _decide(classifier: Any, X: Any) -> Float64Array:
    """Return decisions; refuse what are not so many numbers."""
    rule = f"{type(classifier).__name__} must decide on every row by a number"
    return check_answers(classifier.decision_function(X), X.shape[0], rule)


class _Failure(NamedTuple):
    """What went wrong, carried home from a worker."""

    error: Exception
    classifier: Any


def check_classifier(classifier: Any, name: str = "classifier") -> None:
    """Refuse what cannot be fitted or yields neither probabilities nor scores."""
    answers = any(
        hasattr(classifier, name) for name in ("predict_proba", "decision_function")
    )
    if not (hasattr(classifier, "fit") and hasattr(classifier, "get_params")):
        answers = False
    if isinstance(classifier, type) or not answers:
        msg = (
            f"`{name}` must be a classifier with `fit` and `predict_proba` or "
            f"`decision_function`, got {classifier!r}."
        )
        raise TypeError(msg)


def fit_classifiers(
    classifier: Any,
    X: Any,
    tasks: Tasks,
    parts: list[Fold],
    rng: np.random.Generator,
    n_jobs: int | None,
    options: dict[str, Any],
) -> list[list[tuple[Model, Float64Array]]]:
    """Fit a clone per part and threshold and predict the part's test rows.

    Parameters
    ----------
    classifier : classifier
    X : table of shape (n, p)
        Rows as the classifier reads them.
    tasks : Tasks
    parts : list of (train, test)
    rng : Generator
    n_jobs : int or None
    options : dict
        More arguments of its `fit`.

    Returns
    -------
    list of lists of (model, ndarray of shape (n_test,))
        By part, then by threshold.
    """
    weight_name = name_of_argument(classifier)
    if tasks.weighted and weight_name is None:
        msg = (
            f"{type(classifier).__name__}.fit takes no `sample_weight`: the experts "
            "are fitted without the weights."
        )
        warnings.warn(msg, CalibrationWarning, stacklevel=5)
    seeds = rng.integers(2**31, size=(len(parts), tasks.n_thresholds))
    parallel = effective_n_jobs(n_jobs) > 1
    jobs = [
        delayed(_attempt)(
            _prepare(classifier, int(seeds[number, k]), parallel=parallel),
            X,
            tasks,
            part,
            k,
            weight_name if tasks.weighted else None,
            options,
        )
        for number, part in enumerate(parts)
        for k in range(tasks.n_thresholds)
    ]
    with _one_thread_each(parallel):
        results = iter(run_jobs(jobs, n_jobs=n_jobs))
    return [
        [_unwrap(next(results), tasks, k, number) for k in range(tasks.n_thresholds)]
        for number in range(len(parts))
    ]


def fit_out_of_bag(
    classifier: Any, tasks: Tasks, rng: np.random.Generator, n_jobs: int | None
) -> list[tuple[Model, Float64Array]]:
    """Fit one forest per threshold and read its out-of-bag probabilities.

    Returns
    -------
    list of (model, ndarray of shape (n,))
        By threshold. Rows that every tree has drawn get the smoothed base rate.
    """
    seeds = rng.integers(2**31, size=tasks.n_thresholds).tolist()
    parallel = effective_n_jobs(n_jobs) > 1
    part: Fold = (tasks.present, np.flatnonzero(tasks.weights == 0.0))
    weight_name = "sample_weight" if tasks.weighted else None
    jobs = [
        delayed(_attempt)(
            _prepare(classifier, seed, parallel=parallel),
            tasks.table.given,
            tasks,
            part,
            k,
            weight_name,
            {},
        )
        for k, seed in enumerate(seeds)
    ]
    with _one_thread_each(parallel):
        results = run_jobs(jobs, n_jobs=n_jobs)
    rates = tasks.base_rates(tasks.present)
    fitted = []
    for k, result in enumerate(results):
        model, of_absent = _unwrap(result, tasks, k, len(tasks.folds))
        probabilities = np.full(tasks.n, rates[k])
        probabilities[part[1]] = of_absent
        if isinstance(model, ProbabilityModel):
            votes = model.estimator.oob_decision_function_
            place = list(model.estimator.classes_).index(True)
            spoken = votes.sum(axis=1) > 0.0  # else NaN or zeros, by version
            probabilities[tasks.present[spoken]] = votes[spoken, place]
        fitted.append((model, probabilities))
    return fitted


def asks_out_of_bag(classifier: Any) -> bool:
    """Say whether a forest is asked to keep its out-of-bag probabilities."""
    parameters = classifier.get_params(deep=False)
    return bool(parameters.get("oob_score")) and bool(parameters.get("bootstrap"))


def _attempt(
    classifier: Any,
    X: Any,
    tasks: Tasks,
    part: Fold,
    k: int,
    weight_name: str | None,
    options: dict[str, Any],
) -> tuple[Model, Float64Array] | _Failure:
    """Fit and ask one expert; an error is a result, told at home with its task."""
    _, test = part
    try:
        model = _fit_one(classifier, X, tasks, part, k, weight_name, options)
        probabilities = np.empty(0)
        if len(test):
            probabilities = model.predict(take_rows(X, test))
    except Exception as error:
        return _Failure(error, clone(classifier))
    return model, probabilities


def _fit_one(
    classifier: Any,
    X: Any,
    tasks: Tasks,
    part: Fold,
    k: int,
    weight_name: str | None,
    options: dict[str, Any],
) -> Model:
    train, _ = part
    labels = tasks.label(train, k)
    rate = float(tasks.base_rates(train)[k])
    if labels.all() or not labels.any():
        return ConstantModel(rate)
    if weight_name is not None:
        options = {**options, weight_name: tasks.weights[train]}
    X = take_rows(X, train)
    classifier.fit(X, labels, **options)
    if hasattr(classifier, "predict_proba"):
        return ProbabilityModel(classifier)
    decision = _decide(classifier, X)
    mean, spread = float(decision.mean()), float(decision.std())
    # Equal decisions differ by rounding, which must not be blown up.
    if spread <= 1e-9 * abs(mean):
        spread = 1.0
    return DecisionModel(classifier, float(logit(rate)), mean, spread)


def _unwrap(
    result: tuple[Model, Float64Array] | _Failure, tasks: Tasks, k: int, number: int
) -> tuple[Model, Float64Array]:
    if isinstance(result, _Failure):
        msg = (
            f"The expert of {tasks.describe(k, number)} failed: {result.error}"
            f"{suggest_pipeline(tasks.table.given, result.classifier)}"
        )
        raise RuntimeError(msg) from result.error
    return result


def _prepare(classifier: Any, seed: int, *, parallel: bool) -> Any:
    """Return a clone with a seed, and with one thread where it would take more."""
    fresh = clone(classifier)
    changes: dict[str, Any] = {}
    for name, value in fresh.get_params(deep=True).items():
        if name.rsplit("__", 1)[-1] == "random_state" and value is None:
            changes[name] = seed
    for owner, prefix in _nested_estimators(fresh):
        greedy = type(owner).__module__.startswith(_GREEDY)
        for name, value in owner.get_params(deep=False).items():
            if name in _THREAD_PARAMETERS and (
                (value is None and greedy) or (value not in (None, 1) and parallel)
            ):
                changes[prefix + name] = 1
    return fresh.set_params(**changes)


def _nested_estimators(estimator: Any) -> Iterator[tuple[Any, str]]:
    """Yield an estimator and all inside it, with the prefix of their parameters."""
    yield estimator, ""
    for name, value in estimator.get_params(deep=True).items():
        if hasattr(value, "get_params") and not isinstance(value, type):
            yield value, f"{name}__"


def _one_thread_each(parallel: bool) -> AbstractContextManager[Any]:
    """Keep the libraries under parallel classifiers to one thread each."""
    return threadpool_limits(limits=1) if parallel else nullcontext()
