"""`Experts`: out-of-fold probabilities that the target lies below each threshold."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from calibration._validation import (
    all_or_nothing,
    check_n_jobs,
    check_same_length,
    check_vector,
    check_weights,
    make_rng,
    refuse,
    show,
)
from calibration.typing import Float64Array
from localexpert._validation import are_probabilities, check_increasing
from localexpert.data.folds import Rows, Sample, check_folds, check_trains
from localexpert.data.table import Table, TableReader


@dataclass(frozen=True, eq=False)
class Tasks(Sample):
    """A sample and thresholds. Task k is to predict whether `y <= thresholds[k]`.

    Rows of weight zero are in no training part, as if they were absent.

    Parameters
    ----------
    table : Table of shape (n, p)
    y : ndarray of shape (n,)
        Targets, or residuals in the frame.
    weight : ndarray of shape (n,)
        Ones if no weights were given.
    folds : list of (train, test)
        No row is in two test parts. Rows in no test part only train.
    thresholds : ndarray of shape (N,)
        Increasing. Each has a row on both sides.
    """

    thresholds: Float64Array = field(kw_only=True)

    @classmethod
    def check(
        cls,
        X: Any,
        r: ArrayLike,
        thresholds: ArrayLike,
        folds: Sequence[tuple[ArrayLike, ArrayLike]],
        sample_weight: ArrayLike | None,
    ) -> Tasks:
        """Refuse data on which no expert can be fitted."""
        table, targets = Table.of(X), check_vector(r, "r")
        check_same_length(len(targets), "`r`", len(table), "X")
        weights = check_weights(sample_weight, len(targets))
        cuts = check_vector(thresholds, "thresholds")
        check_increasing(cuts, "thresholds")
        present = targets[weights > 0.0]
        if cuts[0] < present.min() or cuts[-1] >= present.max():
            ends = f"[{show(present.min())}, {show(present.max())})"
            rule = f"lie in the range of `r`, {ends}"
            refuse("thresholds", rule, f"{show(cuts[0])} to {show(cuts[-1])}")
        pairs = [
            (np.asarray(train, dtype=np.intp), np.asarray(test, dtype=np.intp))
            for train, test in folds
        ]
        check_folds(pairs, len(weights), "folds")
        check_trains(pairs, weights, "folds")
        checked = [(train[weights[train] > 0.0], test) for train, test in pairs]
        return cls(table, targets, weights, checked, thresholds=cuts)

    @property
    def n_thresholds(self) -> int:
        """Number of tasks."""
        return len(self.thresholds)

    @property
    def present(self) -> Rows:
        """Rows with a weight above zero."""
        return np.flatnonzero(self.weight > 0.0)

    @property
    def weighted(self) -> bool:
        """Whether rows with a weight have different weights."""
        return bool(np.ptp(self.weight[self.weight > 0.0]) > 0.0)

    @cached_property
    def below(self) -> Rows:
        """How many thresholds are less than each y, (n,). From there its label is 1."""
        return np.searchsorted(self.thresholds, self.y, side="left")

    def base_rates(self, rows: Rows) -> Float64Array:
        """Return the smoothed share of class 1 per task, shape (N,).

        This is the constant (n1 + 1) / (n + 2), counted by weights. It is the answer
        without features.
        """
        weight = self.weight[rows]
        below = np.bincount(self.below[rows], weight, minlength=self.n_thresholds + 1)
        return np.asarray((np.cumsum(below)[:-1] + 1.0) / (weight.sum() + 2.0))


class Experts(BaseEstimator, metaclass=ABCMeta):
    """Base of the strategies that learn P(r <= v_k | x) for every threshold v_k.

    All strategies follow these conventions:

    - `X` is an array of shape (n, p), NaN where missing, or a data frame, in which
      strings, objects and categorical types are categories. `predict` needs the
      columns of `fit` in the same order.
    - `oof_probabilities_` are out of fold: no model that helped to make a row's
      probability has seen the row's `r`.
    - Probabilities lie in [0, 1]. They are as the learners give them. They are not
      calibrated, and they only increase in the threshold if a strategy says so.
    - Rows with `sample_weight` zero do not change the fit, but get out-of-fold
      probabilities like other rows.
    - No result depends on `n_jobs`. The same `random_state` gives the same result.

    A subclass stores its parameters in the constructor and writes `_fit`, which
    returns the out-of-fold probabilities, and `_predict`. Both get a `Table`: rows as
    the user gave them (`given`), or as numbers (`codes`, `dense`).
    """

    thresholds_: Float64Array
    oof_probabilities_: Float64Array
    reader_: TableReader
    # An out-of-fold answer may come from fewer models than the answer to a new row, and
    # then has more noise. This is the difference, as a share of p (1 - p).
    spared_: float = 0.0

    def fit(
        self,
        X: Any,
        r: ArrayLike,
        thresholds: ArrayLike,
        folds: Sequence[tuple[ArrayLike, ArrayLike]],
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the experts fold by fold.

        Parameters
        ----------
        X : array, data frame or Table of shape (n, p)
            Features.
        r : array-like of shape (n,)
            Targets, or residuals in the frame.
        thresholds : array-like of shape (N,)
            Strictly increasing. Each has a row on both sides.
        folds : list of (train, test)
            Row numbers. No row is in two test parts. `oof_probabilities_` describes
            the rows in a test part. See `make_folds`.
        sample_weight : array-like of shape (n,), optional
            Non-negative weights.

        Returns
        -------
        self
        """
        self.check_parameters()
        tasks = Tasks.check(X, r, thresholds, folds, sample_weight)
        with all_or_nothing(self):
            self.reader_ = tasks.table.reader
            self.thresholds_ = tasks.thresholds
            answers = self._fit(tasks)
            if not tasks.is_whole and np.shape(answers)[:1] == (len(tasks),):
                answers = answers[tasks.judged]
            self.oof_probabilities_ = self._check_answers(answers, len(tasks.judged))
        return self

    def predict(self, X: Any) -> Float64Array:
        """Return P(r <= v_k | x) of new rows.

        Parameters
        ----------
        X : array, data frame or Table of shape (n, p)
            Features, in the columns of `fit`.

        Returns
        -------
        ndarray of shape (n, N)
            The mean over the models of the folds.
        """
        check_is_fitted(self)
        # A stage passes rows that it has read. A user passes raw rows.
        table = X if isinstance(X, Table) else self.reader_.read(X)
        return self._check_answers(self._predict(table), len(table))

    def _check_answers(self, p: Float64Array, n: int) -> Float64Array:
        """Refuse invalid answers of a strategy, because no later stage checks them."""
        if np.shape(p) != (n, len(self.thresholds_)):
            wrong = f"shape {np.shape(p)} for {n} rows"
        elif are_probabilities(p):
            return p
        else:
            wrong = f"values from {show(np.min(p))} to {show(np.max(p))}"
        msg = (
            f"{type(self).__name__} must say a probability in [0, 1] for every row and "
            f"threshold, got {wrong}."
        )
        raise ValueError(msg)

    def check_parameters(self) -> None:
        """Refuse invalid constructor arguments before the fit starts."""
        check_n_jobs(getattr(self, "n_jobs", None))
        make_rng(getattr(self, "random_state", None))
        self._check_parameters()

    def _check_parameters(self) -> None:
        """Refuse invalid constructor arguments."""

    @abstractmethod
    def _fit(self, tasks: Tasks) -> Float64Array:
        """Fit the models and return the out-of-fold probabilities, shape (n, N)."""

    @abstractmethod
    def _predict(self, table: Table) -> Float64Array:
        """Return probabilities, shape (n, N), of a table with the right columns."""
