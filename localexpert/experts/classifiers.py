"""Any classifier as the expert of one threshold."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.utils.parallel import delayed
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from calibration import CalibrationWarning
from calibration.typing import Float64Array
from localexpert._validation import are_probabilities, check_answers, show
from localexpert.data.folds import Fold, Rows
from localexpert.data.table import take_rows
from localexpert.data.user_learners import name_of_argument, suggest_pipeline
from localexpert.experts.base import Tasks
from localexpert.progress import run_jobs

# Libraries whose estimators take all cores where they are not told a number.
_GREEDY = ("catboost", "lightgbm", "xgboost")
_NONE: Float64Array = np.empty(0)
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


@dataclass(frozen=True)
class Classifiers:
    """A classifier, to be cloned and fitted for thresholds and parts of the rows.

    Parameters
    ----------
    classifier : classifier
    X : table of shape (n, p)
        Rows as the classifier reads them.
    tasks : Tasks
    rng : Generator
        Seeds those that have no seed.
    n_jobs : int or None
    options : dict
        More arguments of its `fit`.
    """

    classifier: Any
    X: Any
    tasks: Tasks
    rng: np.random.Generator
    n_jobs: int | None
    options: dict[str, Any] = field(default_factory=dict)

    def fit(self, parts: list[Fold]) -> list[list[tuple[Model, Float64Array]]]:
        """Fit a clone per part and threshold and predict the part's test rows.

        Parameters
        ----------
        parts : list of (train, test)

        Returns
        -------
        list of lists of (model, ndarray of shape (n_test,))
            By part, then by threshold.
        """
        tasks = self.tasks
        weight_name = name_of_argument(self.classifier)
        if tasks.weighted and weight_name is None:
            msg = (
                f"{type(self.classifier).__name__}.fit takes no `sample_weight`: the "
                "experts are fitted without the weights."
            )
            warnings.warn(msg, CalibrationWarning, stacklevel=5)
        seeds = self.rng.integers(2**31, size=(len(parts), tasks.n_thresholds)).tolist()
        parallel = effective_n_jobs(self.n_jobs) > 1
        prepared = [
            [_prepare(self.classifier, seed, parallel=parallel) for seed in row]
            for row in seeds
        ]
        name = weight_name if tasks.weighted else None
        jobs = [
            delayed(self._attempt)(own, part, k, name)
            for part, row in zip(parts, prepared, strict=True)
            for k, own in enumerate(row)
        ]
        # The libraries under parallel classifiers get one thread each.
        with threadpool_limits(limits=1) if parallel else nullcontext():
            results = iter(run_jobs(jobs, n_jobs=self.n_jobs))
        return [
            [self._unwrap(next(results), k, number) for k in range(tasks.n_thresholds)]
            for number in range(len(parts))
        ]

    def fit_out_of_bag(self) -> list[tuple[Model, Float64Array]]:
        """Fit one forest per threshold and read its out-of-bag probabilities.

        Returns
        -------
        list of (model, ndarray of shape (n,))
            By threshold. Rows that every tree has drawn get the smoothed base rate.
        """
        present = self.tasks.present
        absent = np.flatnonzero(self.tasks.weights == 0.0)
        fitted = []
        for model, of_absent in self.fit([(present, absent)])[0]:
            probabilities = np.full(self.tasks.n, model.rate)
            probabilities[absent] = of_absent
            if model.estimator is not None:
                votes = model.estimator.oob_decision_function_
                place = list(model.estimator.classes_).index(True)
                spoken = votes.sum(axis=1) > 0.0  # else NaN or zeros, by version
                probabilities[present[spoken]] = votes[spoken, place]
            fitted.append((model, probabilities))
        return fitted

    def _attempt(
        self, classifier: Any, part: Fold, k: int, weight_name: str | None
    ) -> tuple[Model, Float64Array] | Exception:
        """Fit and ask one expert; an error is a result, told at home with its task."""
        try:
            model = self._fit_one(classifier, part[0], k, weight_name)
            test = part[1]
            answers = model.predict(take_rows(self.X, test)) if len(test) else _NONE
        except Exception as error:
            return error
        return model, answers

    def _fit_one(
        self, classifier: Any, train: Rows, k: int, weight_name: str | None
    ) -> Model:
        labels = self.tasks.label(train, k)
        rate = float(self.tasks.base_rates(train)[k])
        if labels.all() or not labels.any():
            return Model(None, rate)
        options = dict(self.options)
        if weight_name is not None:
            options[weight_name] = self.tasks.weights[train]
        X = take_rows(self.X, train)
        classifier.fit(X, labels, **options)
        if hasattr(classifier, "predict_proba"):
            return Model(classifier, rate)
        decision = _decide(classifier, X)
        mean, spread = float(decision.mean()), float(decision.std())
        # Equal decisions differ by rounding, which must not be blown up.
        flat = spread <= 1e-9 * abs(mean)
        return Model(classifier, rate, mean, 1.0 if flat else spread)

    def _unwrap(
        self, result: tuple[Model, Float64Array] | Exception, k: int, number: int
    ) -> tuple[Model, Float64Array]:
        if isinstance(result, Exception):
            msg = (
                f"The expert of {self.tasks.describe(k, number)} failed: {result}"
                f"{suggest_pipeline(self.tasks.table.given, self.classifier)}"
            )
            raise RuntimeError(msg) from result
        return result


def asks_out_of_bag(classifier: Any) -> bool:
    """Say whether a forest is asked to keep its out-of-bag probabilities."""
    parameters = classifier.get_params(deep=False)
    return bool(parameters.get("oob_score")) and bool(parameters.get("bootstrap"))


def _prepare(classifier: Any, seed: int, *, parallel: bool) -> Any:
    """Return a clone with a seed, and with one thread where it would take more."""
    fresh = clone(classifier)
    changes: dict[str, Any] = {}
    for name, value in fresh.get_params(deep=True).items():
        if name.rsplit("__", 1)[-1] == "random_state" and value is None:
            changes[name] = seed
    inside = fresh.get_params(deep=True).items()
    owners = {"": fresh, **{f"{name}__": value for name, value in inside}}
    for prefix, owner in owners.items():
        if isinstance(owner, type) or not hasattr(owner, "get_params"):
            continue
        greedy = type(owner).__module__.startswith(_GREEDY)
        for name, value in owner.get_params(deep=False).items():
            if name in _THREAD_PARAMETERS and (
                (value is None and greedy) or (value not in (None, 1) and parallel)
            ):
                changes[prefix + name] = 1
    return fresh.set_params(**changes)
