"""Families of regressors that predict the centre, each out of fold.

A family has a `view`, which tells how it reads tables, and three methods. `attempt`
fits one fold, to see whether the other folds are worth the time. `fit` fits one model
per fold. The first model may come from the trial. `oof_` (n,) are the predictions out
of fold, NaN in rows that no fold tests. `predict_each` returns the predictions of all
folds' models, of shape (n_models, n). Their mean is the forecast for new rows. Boosted
trees are moved, so that their mean is the answer of a model of all rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.utils.parallel import delayed

from calibration._validation import refuse
from calibration.typing import Float64Array
from localexpert._validation import check_answers
from localexpert.coordinate.boosting import FoldBoosters
from localexpert.coordinate.small_nets import unbias
from localexpert.data.folds import Fold, Sample
from localexpert.data.learners import (
    ask_each,
    blaming,
    fit_weighted,
    name_of_argument,
    say_unweighted,
)
from localexpert.data.table import Shape, take_rows
from localexpert.data.unseen import warn_user
from localexpert.progress import run_jobs

View: TypeAlias = Literal["given", "codes", "narrow"] | Shape

# Rounds times rows, within these bounds.
_ROUNDS_BY_ROWS = 12_000_000
_LEAST_ROUNDS, _MOST_ROUNDS = 300, 1200
# Above this number of rows fewer and longer steps are taken.
_MANY_ROWS = 10_000
# If there are more columns than this, and more than rows, there are fewer steps and
# smaller trees. Each node looks at all columns, and errors on new rows were the same.
_MANY_COLUMNS = 1_000
# Trees times rows, within these bounds, and the most rows that a tree draws. With fewer
# trees, each draws so few rows that every row is out of some bag.
_TREES_BY_ROWS = 2_000_000
_LEAST_TREES, _MOST_TREES = 20, 100
_MOST_ROWS = 40_000
# A trial only needs this many trees, of this many rows.
_TREES_OF_A_TRIAL = 30
_ROWS_OF_A_TRIAL = 20_000


def predicts_numbers(learner: Any) -> bool:
    """Say whether a learner can be cloned and fitted, and predicts numbers."""
    able = all(hasattr(learner, name) for name in ("fit", "predict", "get_params"))
    if isinstance(learner, type) or not able:
        return False
    return not (hasattr(learner, "__sklearn_tags__") and is_classifier(learner))


class Trial(NamedTuple):
    """What the fit of one fold gave: a model, and the test part's predictions."""

    model: Any
    answers: Float64Array


@dataclass(eq=False, kw_only=True)
class BoostedTrees:
    """LightGBM with a common number of rounds.

    Parameters
    ----------
    logarithm : bool
        Boost the logarithm of a positive, skewed target. The mean of the exponential is
        not the exponential of the mean. One factor for all rows corrects this.
    n_values : mapping of int to int, optional
        Columns of categories, and how many values they have. Trees read means of the
        target instead of codes. The order of codes tells nothing about y, and a column
        of many values needs many splits.
    """

    logarithm: bool = False
    n_values: Mapping[int, int] | None = None
    random_state: int
    n_jobs: int | None
    view: View = field(default="codes", init=False)

    def attempt(self, X: Any, sample: Sample, fold: Fold) -> Trial:
        """Boost one fold until its loss stops falling."""
        boosters = self._boosters(sample.weight, X.shape[1])
        model = boosters.start(X, self._target(sample), fold, sample.weight)
        answers = model.answer(boosters.boost([model]))
        return Trial(model, np.exp(answers) if self.logarithm else answers)

    def fit(self, X: Any, sample: Sample, first: Trial | None = None) -> Self:
        """Boost every fold, and then all rows for as many rounds."""
        self.boosters_ = self._boosters(sample.weight, X.shape[1])
        start = None if first is None else first.model
        y, w, folds = sample.y, sample.weight, sample.folds
        target = self._target(sample)
        self.oof_ = self.boosters_.fit(X, target, folds, w, start)
        # One more booster, of all rows, see `predict_each`. (Nets gain nothing by it.)
        every = np.flatnonzero(w), folds[0][1]
        self.whole_ = self.boosters_.start(X, target, every, w)
        self.whole_.grow(self.boosters_.n_rounds_)
        if self.logarithm:
            held = np.isfinite(self.oof_)
            self.factor_ = unbias(np.exp(self.oof_[held]), y[held], w[held])
            self.oof_ = self.factor_ * np.exp(self.oof_)
        return self

    def predict_each(self, X: Any) -> Float64Array:
        """Return the predictions of the folds' models, moved towards that of all rows.

        A booster of all rows has seen more, but a mean of boosters is smoother. Halfway
        the squared error was .995 of that of the folds' mean, over 66 tables and two
        splits (worst 1.10). All the way it was 1.010 (worst 1.45).
        """
        answers = self.boosters_.predict_each(X)
        answers += 0.5 * (self.whole_.predict(X) - answers.mean(axis=0))
        return self.factor_ * np.exp(answers) if self.logarithm else answers

    def _target(self, sample: Sample) -> Float64Array:
        return np.log(sample.y) if self.logarithm else sample.y

    def _boosters(self, weight: Float64Array, n_columns: int) -> FoldBoosters:
        n = int(np.count_nonzero(weight))
        wide, many = n_columns > max(n, _MANY_COLUMNS), n > _MANY_ROWS
        # Small steps, and few rows in a leaf. The centre is judged by squared error.
        # The common number of rounds keeps it from following the noise. With 31 leaves
        # and steps of .06 the error of 66 tables was 1 % greater, and the time 1.4.
        parameters = {
            "learning_rate": 0.12 if wide or many else 0.09,
            "num_leaves": 8 if wide else 31 if many else 20,
            "min_data_in_leaf": int(np.clip(n // 50, 1, 5)),
            "bagging_fraction": 0.8,
            "bagging_freq": 1,
            "feature_fraction_bynode": 0.7,
            "seed": self.random_state,
        }
        rounds = int(np.clip(_ROUNDS_BY_ROWS // n, _LEAST_ROUNDS, _MOST_ROUNDS))
        return FoldBoosters(
            parameters, rounds, n_jobs=self.n_jobs, n_values=self.n_values
        )


@dataclass(eq=False)
class Fitted:
    """Any scikit-learn regressor, cloned for every fold.

    Parameters
    ----------
    regressor : regressor
    view : {"given", "codes", "narrow", "bent", "straight", "logarithm"}
    n_jobs : int or None
    parameter : str
        Name of the user's parameter that gave the regressor. Errors name it.
    """

    regressor: Any
    view: View = field(kw_only=True)
    n_jobs: int | None = field(kw_only=True)
    parameter: str = field(default="center", kw_only=True)

    def attempt(self, X: Any, sample: Sample, fold: Fold) -> Trial:
        """Fit one fold's clone."""
        train, test = fold
        model, y, w = clone(self.regressor), sample.y[train], sample.weight[train]
        with blaming(self.parameter, self.regressor, X):
            fit_weighted(model, take_rows(X, train), y, w)
            return Trial(model, ask(model, take_rows(X, test)))

    def fit(self, X: Any, sample: Sample, first: Trial | None = None) -> Self:
        """Fit a clone on the training part of every fold."""
        w, folds = sample.weight, sample.folds
        if np.ptp(w[w > 0.0]) > 0.0 and name_of_argument(self.regressor) is None:
            warn_user(
                f"`{self.parameter}`: {say_unweighted(self.regressor)} and is fitted "
                "without the weights."
            )
        done = [] if first is None else [first]
        rest = folds[len(done) :]
        jobs = [delayed(Fitted.attempt)(self, X, sample, fold) for fold in rest]
        trials = done + run_jobs(jobs, n_jobs=self.n_jobs, prefer="threads")
        self.models_ = [trial.model for trial in trials]
        self.oof_ = np.full(len(sample), np.nan)
        for trial, (_, test) in zip(trials, folds, strict=True):
            self.oof_[test] = trial.answers
        return self

    def predict_each(self, X: Any) -> Float64Array:
        """Return the predictions of the folds' models."""
        with blaming(self.parameter, self.regressor, X):
            each = ask_each(partial(ask, X=X), self.models_, len(X), self.n_jobs)
        return np.array(each)


@dataclass(eq=False)
class Forest:
    """Extremely random trees on bootstrap samples. Their number and size are bounded.

    A random forest instead scored .2 % worse. Taking the better of the two on one fold
    was no better.

    Parameters
    ----------
    random_state : int
    n_jobs : int, optional

    References
    ----------
    Geurts, Ernst & Wehenkel (2006), Extremely randomized trees.
    """

    random_state: int = field(kw_only=True)
    n_jobs: int | None = field(kw_only=True)
    # The trees of scikit-learn read single precision.
    view: View = field(default="narrow", init=False)

    def attempt(self, X: Any, sample: Sample, fold: Fold) -> Trial:
        """Grow a smaller forest on one fold's training part."""
        train, test = fold
        y, w = sample.y, sample.weight
        model = self.make(len(train)).set_params(
            n_estimators=_TREES_OF_A_TRIAL,
            max_samples=_ROWS_OF_A_TRIAL if len(train) > _ROWS_OF_A_TRIAL else None,
        )
        model.fit(X[train], y[train], sample_weight=w[train])
        return Trial(model, model.predict(X[test]))

    def fit(self, X: Any, sample: Sample, first: Trial | None = None) -> Self:
        """Grow one forest on all rows of positive weight. Folds play no part."""
        del first
        y, w = sample.y, sample.weight
        rows = np.flatnonzero(w > 0.0)
        self.model_ = self.make(len(rows)).set_params(
            oob_score=True, n_jobs=self.n_jobs
        )
        self.model_.fit(X[rows], y[rows], sample_weight=w[rows])
        for tree in self.model_.estimators_:
            slim_tree(tree.tree_)
        self.oof_ = np.empty(len(y))
        absent = np.flatnonzero(w <= 0.0)
        if len(absent):
            self.oof_[absent] = self.predict_each(X[absent])[0]
        # A row is predicted by the trees that have not drawn it. This is as honest as
        # folds, and needs one forest instead of five.
        self.oof_[rows] = self.model_.oob_prediction_
        return self

    def predict_each(self, X: Any) -> Float64Array:
        """Return the forest's prediction as the one row."""
        rows = np.ascontiguousarray(X, dtype=np.float32)
        if rows.shape[1] != self.model_.n_features_in_:
            refuse("X", f"have {self.model_.n_features_in_} columns", rows.shape[1])
        total = np.zeros(len(rows))
        # Go tree by tree, always in the same order. For a single row scikit-learn's own
        # loop takes ten times as long.
        for tree in self.model_.estimators_:
            total += tree.tree_.predict(rows)[:, 0]
        return total[None, :] / len(self.model_.estimators_)

    def make(self, n: int) -> Any:
        """Return an unfitted forest for `n` rows."""
        return ExtraTreesRegressor(
            bootstrap=True,
            n_estimators=int(np.clip(_TREES_BY_ROWS // n, _LEAST_TREES, _MOST_TREES)),
            # If there are many trees, more rows per tree take longer and gain little.
            max_samples=_MOST_ROWS if n > _MOST_ROWS else None,
            random_state=self.random_state,
        )


Family: TypeAlias = BoostedTrees | Fitted | Forest


def slim_tree(tree: Any) -> None:
    """Set the training figures of a scikit-learn tree to zero, and round its numbers.

    This makes a saved forest half as large. Rows are compared in single precision, so a
    cut can be rounded down to it without effect.
    """
    for numbers in (tree.impurity, tree.n_node_samples, tree.weighted_n_node_samples):
        numbers[:] = 0
    cuts = tree.threshold
    near = cuts.astype(np.float32)
    cuts[:] = np.where(near > cuts, np.nextafter(near, np.float32(-np.inf)), near)
    inner = tree.children_left >= 0
    tree.value[:] = np.where(inner[:, None, None], 0.0, tree.value.astype(np.float32))


def mass_of(w: Float64Array) -> Float64Array:
    """Return weights to judge by. Rows without weight are better than no rows."""
    return w if w.any() else np.ones(len(w))


def ask(model: Any, X: Any) -> Float64Array:
    """Return a model's predictions. Refuse anything but one number per row."""
    rule = f"{type(model).__name__} must predict a number for every row"
    return check_answers(model.predict(X), len(X), rule)
