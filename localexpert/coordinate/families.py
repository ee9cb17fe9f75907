"""Families of regressors that predict the centre, each out of fold."""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import lightgbm as lgb
import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.parallel import delayed

from calibration import CalibrationWarning
from calibration.typing import Float64Array
from localexpert._validation import check_answers
from localexpert.data.folds import Fold
from localexpert.data.table import take_rows
from localexpert.data.threads import ask_each
from localexpert.data.user_learners import (
    fit_weighted,
    name_of_argument,
    suggest_pipeline,
)
from localexpert.progress import run_jobs

View: TypeAlias = Literal["given", "codes", "narrow", "dense"]

# Rounds times rows, within these bounds.
_ROUNDS_BY_ROWS = 12_000_000
_LEAST_ROUNDS, _MOST_ROUNDS = 300, 1200
# Above this number of rows fewer and longer steps are taken.
_MANY_ROWS = 10_000
# More columns than these, and than rows, take fewer steps by smaller trees: each node
# looks at all columns, and errors on rows not seen were the same.
_MANY_COLUMNS = 1_000

# A share of fewer rows may be none, which LightGBM refuses.
_LEAST_ROWS_TO_BAG = 10
_FIXED: dict[str, Any] = {
    "objective": "l2",
    "deterministic": True,
    "force_row_wise": True,
    # Threads of LightGBM's own wait spinning: where a core is busy with something
    # else they cost many times what they save. The folds share the cores instead.
    "num_threads": 1,
    "verbosity": -1,
}


def predicts_numbers(learner: Any) -> bool:
    """Say whether something can be cloned, fitted and asked, and is no classifier."""
    able = all(hasattr(learner, name) for name in ("fit", "predict", "get_params"))
    if isinstance(learner, type) or not able:
        return False
    return not (hasattr(learner, "__sklearn_tags__") and is_classifier(learner))


class Trial(NamedTuple):
    """What the fit of one fold gave: a model, and the test part's predictions."""

    model: Any
    answers: Float64Array


class Family(metaclass=ABCMeta):
    """One kind of regressor, fitted fold by fold.

    After `fit` the out-of-fold predictions are `oof_` (n,), NaN in rows that no fold
    tests, and `predict_each` gives those of the models of the folds, whose mean is the
    forecast for new rows.

    Parameters
    ----------
    view : {"given", "codes", "narrow", "dense"}
        Which view of a `Table` the regressor reads.
    """

    view: View
    oof_: Float64Array

    @abstractmethod
    def attempt(self, X: Any, y: Float64Array, fold: Fold, w: Float64Array) -> Trial:
        """Fit one fold, to see whether the others are worth it."""

    @abstractmethod
    def fit(
        self,
        X: Any,
        y: Float64Array,
        folds: Sequence[Fold],
        w: Float64Array,
        first: Trial | None = None,
    ) -> Family:
        """Fit one model per fold; `first` is the trial of the first, if there was."""

    @abstractmethod
    def predict_each(self, X: Any) -> Float64Array:
        """Return every model's predictions, shape (n_models, n)."""

    def suits(self, y: Float64Array) -> bool:
        """Say whether the family is made for such a target."""
        del y
        return True


class BoostedFold(NamedTuple):
    """The booster of a fold and its loss on the test part after every round."""

    booster: lgb.Booster
    curve: list[float]


@dataclass
class FoldBoosters:
    """One booster per fold, all with the same number of rounds.

    The rounds are those with the least mean validation loss over folds, so that no
    fold's out-of-fold predictions are tuned on themselves alone.

    Parameters
    ----------
    parameters : mapping
        LightGBM parameters; deterministic ones are added.
    max_rounds : int
    patience : int
        The first fold stops after so many rounds without gain, and the others where
        it does.
    n_jobs : int, optional
        Folds fitted at a time, in threads.
    """

    parameters: Mapping[str, Any]
    max_rounds: int
    patience: int = 50
    n_jobs: int | None = None

    def fit(
        self,
        table: Float64Array,
        target: Float64Array,
        folds: Sequence[Fold],
        w: Float64Array,
        first: BoostedFold | None = None,
    ) -> Float64Array:
        """Boost every fold and return the out-of-fold predictions, shape (n,).

        They are NaN in rows that no fold tests.
        `first` is the first fold's booster, where there is one already.
        """
        first = first or self.boost(table, target, folds[0], w)
        jobs = [
            delayed(self.boost)(table, target, fold, w, len(first.curve))
            for fold in folds[1:]
        ]
        rest = run_jobs(jobs, n_jobs=self.n_jobs, prefer="threads")
        fits = [first, *rest]
        self.models_ = [fit.booster for fit in fits]
        # A booster that can split no more stays as it is.
        longest = len(first.curve)
        # One number for all: a fold that stopped at its own best would have chosen it
        # by the rows that it predicts.
        curves = [np.pad(f.curve, (0, longest - len(f.curve)), "edge") for f in fits]
        mean = np.mean(curves, axis=0)
        self.n_rounds_ = int(np.argmin(mean)) + 1
        oof = np.full(len(target), np.nan)
        for model, (_, test) in zip(self.models_, folds, strict=True):
            oof[test] = self._ask(model, table[test])
        return oof

    def predict_each(self, table: Float64Array) -> Float64Array:
        """Return the predictions of the folds' models, shape (n_folds, n)."""
        answers = ask_each(
            lambda model: self._ask(model, table), self.models_, len(table), self.n_jobs
        )
        return np.array(answers)

    def boost(
        self,
        table: Float64Array,
        target: Float64Array,
        fold: Fold,
        w: Float64Array,
        n_rounds: int | None = None,
    ) -> BoostedFold:
        """Boost a fold for some rounds, or until its loss falls no more."""
        train, test = fold
        parameters = {**self.parameters, **_FIXED}
        if len(train) < _LEAST_ROWS_TO_BAG:
            parameters["bagging_fraction"] = 1.0
        data = lgb.Dataset(table[train], target[train], weight=w[train])
        held = lgb.Dataset(table[test], target[test], weight=w[test], reference=data)
        record: dict[str, Any] = {}
        callbacks = [lgb.record_evaluation(record)]
        if n_rounds is None:
            callbacks.append(lgb.early_stopping(self.patience, verbose=False))
        booster = lgb.train(
            parameters,
            data,
            n_rounds or self.max_rounds,
            valid_sets=[held],
            callbacks=callbacks,
        )
        return BoostedFold(booster, record["valid_0"]["l2"])

    def _ask(self, model: lgb.Booster, table: Float64Array) -> Float64Array:
        # Without a number LightGBM takes the last call's threads.
        answer = model.predict(table, num_iteration=self.n_rounds_, num_threads=1)
        return cast(Float64Array, answer)


class BoostedTrees(Family):
    """LightGBM with a common number of rounds.

    Parameters
    ----------
    logarithm : bool
        Boost the logarithm of a positive, skewed target. The mean of the exponential
        is not the exponential of the mean: one factor for all rows corrects it.
    """

    view: View = "codes"

    def __init__(
        self, *, logarithm: bool = False, random_state: int, n_jobs: int | None
    ):
        self.logarithm = logarithm
        self.random_state = random_state
        self.n_jobs = n_jobs

    def suits(self, y: Float64Array) -> bool:
        """Say whether a logarithm, if there is to be one, can be of use."""
        if not self.logarithm:
            return True
        deviation = y - y.mean()
        return bool(y.min() > 0.0 and np.mean(deviation**3) > np.std(y) ** 3)

    def attempt(self, X: Any, y: Float64Array, fold: Fold, w: Float64Array) -> Trial:
        """Boost one fold until its loss falls no more."""
        boosters = self._boosters(*X.shape)
        model = boosters.boost(X, self._forward(y), fold, w)
        best = int(np.argmin(model.curve)) + 1
        answers = model.booster.predict(X[fold[1]], num_iteration=best, num_threads=1)
        return Trial(model, self._backward(np.asarray(answers)))

    def fit(
        self,
        X: Any,
        y: Float64Array,
        folds: Sequence[Fold],
        w: Float64Array,
        first: Trial | None = None,
    ) -> BoostedTrees:
        """Boost every fold."""
        self.boosters_ = self._boosters(*X.shape)
        start = None if first is None else first.model
        # exp of a mean of logs is too small (Jensen): the factor makes the out-of-fold
        # answers unbiased in least squares, sum w m (y - f m) = 0.
        logs = self.boosters_.fit(X, self._forward(y), folds, w, start)
        self.factor_ = 1.0
        if self.logarithm:
            held = np.isfinite(logs)
            oof = np.exp(logs[held])
            w, y = w[held], y[held]
            self.factor_ = float((w * oof) @ y / ((w * oof) @ oof))
        self.oof_ = self._backward(logs)
        return self

    def predict_each(self, X: Any) -> Float64Array:
        """Return the predictions of the folds' models."""
        return self._backward(self.boosters_.predict_each(X))

    def _forward(self, y: Float64Array) -> Float64Array:
        return np.log(y) if self.logarithm else y

    def _backward(self, answers: Float64Array) -> Float64Array:
        if not self.logarithm:
            return answers
        return getattr(self, "factor_", 1.0) * np.exp(answers)

    def _boosters(self, n: int, n_columns: int) -> FoldBoosters:
        wide = n_columns > max(n, _MANY_COLUMNS)
        # Small steps and few rows in a leaf: the centre is judged by squared error, and
        # the folds' common number of rounds keeps it from following the noise.
        parameters = {
            "learning_rate": 0.12 if wide or n > _MANY_ROWS else 0.06,
            "num_leaves": 8 if wide else 31,
            "min_data_in_leaf": int(np.clip(n // 50, 1, 5)),
            "bagging_fraction": 0.8,
            "bagging_freq": 1,
            "feature_fraction_bynode": 0.7,
            "seed": self.random_state,
        }
        rounds = int(np.clip(_ROUNDS_BY_ROWS // n, _LEAST_ROUNDS, _MOST_ROUNDS))
        return FoldBoosters(parameters, rounds, n_jobs=self.n_jobs)


class Fitted(Family):
    """Any scikit-learn regressor, cloned for every fold.

    Parameters
    ----------
    regressor : regressor
    view : {"given", "codes", "narrow", "dense"}
    n_jobs : int or None
    parameter : str
        Of the user's, that the regressor comes from: named where it fails.
    """

    def __init__(
        self,
        regressor: Any,
        *,
        view: View,
        n_jobs: int | None,
        parameter: str = "center",
    ):
        self.regressor = regressor
        self.view = view
        self.n_jobs = n_jobs
        self.parameter = parameter

    def attempt(self, X: Any, y: Float64Array, fold: Fold, w: Float64Array) -> Trial:
        """Fit one fold's clone."""
        train, test = fold
        model = clone(self.regressor)
        try:
            fit_weighted(model, take_rows(X, train), y[train], w[train])
            return Trial(model, ask(model, take_rows(X, test)))
        except Exception as error:
            msg = (
                f"`{self.parameter}`: {type(model).__name__} failed: {error}"
                f"{suggest_pipeline(X, self.regressor)}"
            )
            raise RuntimeError(msg) from error

    def fit(
        self,
        X: Any,
        y: Float64Array,
        folds: Sequence[Fold],
        w: Float64Array,
        first: Trial | None = None,
    ) -> Fitted:
        """Fit a clone on the training part of every fold."""
        if np.ptp(w[w > 0.0]) > 0.0 and name_of_argument(self.regressor) is None:
            msg = (
                f"`{self.parameter}`: {type(self.regressor).__name__}.fit takes no "
                "`sample_weight` and is fitted without the weights."
            )
            warnings.warn(msg, CalibrationWarning, stacklevel=2)
        done = [] if first is None else [first]
        jobs = [delayed(self.attempt)(X, y, fold, w) for fold in folds[len(done) :]]
        trials = done + run_jobs(jobs, n_jobs=self.n_jobs, prefer="threads")
        self.models_ = [trial.model for trial in trials]
        self.oof_ = np.full(len(y), np.nan)
        for trial, (_, test) in zip(trials, folds, strict=True):
            self.oof_[test] = trial.answers
        return self

    def predict_each(self, X: Any) -> Float64Array:
        """Return the predictions of the folds' models."""
        answers = ask_each(
            lambda model: ask(model, X), self.models_, len(X), self.n_jobs
        )
        return np.array(answers)


def ask(model: Any, X: Any) -> Float64Array:
    """Return a model's predictions; refuse what are not so many numbers."""
    rule = f"{type(model).__name__} must predict a number for every row"
    return check_answers(model.predict(X), len(X), rule)
