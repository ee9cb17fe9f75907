"""`Experts`: out-of-fold probabilities that the target lies below each threshold."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from calibration.typing import Float64Array
from localexpert._validation import (
    are_probabilities,
    check_n_jobs,
    make_rng,
    show,
)
from localexpert.data.table import Table, TableReader
from localexpert.experts.tasks import Tasks


class Experts(BaseEstimator, metaclass=ABCMeta):
    """Base of the strategies that learn P(r <= v_k | x) for every threshold v_k.

    Conventions, stated once for all of them:

    - `X` is an array of shape (n, p), NaN where missing, or a data frame, in which
      strings, objects and categorical types are categories. `predict` wants the
      columns of `fit` in their order.
    - `oof_probabilities_` are out of fold: no model that had a part in a row's
      probability has seen the row's `r`.
    - Probabilities lie in [0, 1]. They are as the learners give them: neither
      calibrated nor, unless a strategy says so, increasing in the threshold.
    - Rows with `sample_weight` zero are as if they were absent, but get out-of-fold
      probabilities like any other.
    - No result depends on `n_jobs`; one `random_state` gives one result.

    A subclass stores its parameters in the constructor and writes `_fit`, which
    returns the out-of-fold probabilities, and `_predict`. Both get a `Table`: rows as
    the user gave them (`given`), or as numbers (`codes`, `dense`).
    """

    thresholds_: Float64Array
    oof_probabilities_: Float64Array
    reader_: TableReader

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
            Strictly increasing, each with a row on both sides.
        folds : list of (train, test)
            Row numbers; no row is in two test parts, and `oof_probabilities_` are of
            those that are in one. See `make_folds`.
        sample_weight : array-like of shape (n,), optional
            Non-negative weights.

        Returns
        -------
        self
        """
        self.check_parameters()
        tasks = Tasks.check(X, r, thresholds, folds, sample_weight)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self.reader_ = tasks.table.reader
        self.thresholds_ = tasks.thresholds
        answers = self._fit(tasks)
        if not tasks.is_whole and np.shape(answers)[:1] == (tasks.n,):
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
            The mean over the models of the folds, or what the refit says.
        """
        check_is_fitted(self)
        table = self._read(X)
        return self._check_answers(self._predict(table), len(table))

    def _read(self, X: Any) -> Table:
        """Return new rows, of a stage that has read them or of a user."""
        return X if isinstance(X, Table) else self.reader_.read(X)

    def _check_answers(self, p: Float64Array, n: int) -> Float64Array:
        """Refuse what a strategy may not say, for nothing after it would notice."""
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
        """Refuse invalid constructor arguments, before anything is learned."""
        check_n_jobs(getattr(self, "n_jobs", None))
        make_rng(getattr(self, "random_state", None))
        self._check_parameters()

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse invalid constructor arguments."""

    @abstractmethod
    def _fit(self, tasks: Tasks) -> Float64Array:
        """Fit the models and return the out-of-fold probabilities, shape (n, N)."""

    @abstractmethod
    def _predict(self, table: Table) -> Float64Array:
        """Return probabilities, shape (n, N), of a table with the right columns."""
