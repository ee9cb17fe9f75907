"""`DistributionRegressor`: what all regressors that forecast distributions share."""

from __future__ import annotations

import reprlib
from abc import abstractmethod
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import column_or_1d
from sklearn.utils.validation import validate_data

from calibration._validation import (
    as_numbers,
    check_same_length,
    check_vector,
    count_rows,
    refuse,
)
from calibration.storage import Saved
from calibration.typing import Float64Array
from localexpert._validation import check_levels, check_row_weights, check_target_size
from localexpert.data.columns import Columns, has_columns, read_array, refuse_infinite
from localexpert.data.folds import check_groups
from localexpert.data.unseen import warn_user
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.law.law import Law
from localexpert.partial.outcomes import is_partial, read_ends

_CHECKS: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": False}


class DistributionRegressor(Saved, RegressorMixin, BaseEstimator):
    """Read tables, save models, and derive all forecasts from `predict_dist`."""

    recalibration_: Any

    @abstractmethod
    def predict_dist(self, X: Any) -> PredictiveDistribution:
        """Return the predictive distribution of every row.

        Parameters
        ----------
        X : array or data frame of shape (n, p)

        Returns
        -------
        PredictiveDistribution
        """

    def predict(self, X: Any) -> Float64Array:
        """Return the mean of every row's distribution.

        Parameters
        ----------
        X : array or data frame of shape (n, p)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self.predict_dist(X).mean()

    def predict_quantiles(self, X: Any, q: ArrayLike) -> Float64Array:
        """Return quantiles of every row's distribution.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
        q : array-like of shape (k,)
            Levels in (0, 1).

        Returns
        -------
        ndarray of shape (n, k)
        """
        return self.predict_dist(X).quantiles(check_levels(q, "q"))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Float64Array:
        """Return the central interval of every row's distribution.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
        coverage : float
            In (0, 1).

        Returns
        -------
        ndarray of shape (n, 2)
        """
        return self.predict_dist(X).interval(coverage)

    def score(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the coefficient of determination, R2, of the means.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
        y : array-like of shape (n,)
            Of two columns, lower and upper ends, only known ones have an R2:
            `crps_scorer` takes right-censored ones, and `log_scorer` all.
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        float
        """
        if is_partial(y):
            lower, y = read_ends(y)
            if (lower < y).any():
                got = f"{(lower < y).sum()} rows known in part"
                refuse("y", "be known in every row", f"{got}: take `crps_scorer`")
        return float(super().score(X, y, sample_weight))

    def _correct(self, law: Law, *, oof: bool = False) -> PredictiveDistribution:
        """Return laws as distributions, corrected by the recalibration, if any."""
        correction = self.recalibration_
        if correction is not None:
            law = correction.apply_oof(law) if oof else correction.apply(law)
        return PredictiveDistribution(law)

    def _check_data(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> tuple[Any, Float64Array, Float64Array, NDArray[Any] | None]:
        """Return features as an array or data frame, target, weights and groups."""
        warn_of_order(X, y=y, sample_weight=sample_weight, groups=groups)
        X = self._validate(X, 2)
        target = _check_target(y, type(self).__name__)
        n = len(target)
        check_same_length(len(X), "`X`", n, "y")
        check_target_size(target)
        # The user's code is two calls up, because `fit` is in between.
        weight = check_row_weights(sample_weight, n, stacklevel=4)
        return X, target, weight, check_groups(groups, n)

    def _check_table(self, X: Any) -> Any:
        """Return the features of new rows, in the columns of `fit`."""
        return self._validate(X, 1, reset=False)

    def _validate(self, X: Any, least: int, **options: Any) -> Any:
        """Return a data frame as it is, and anything else as an array of numbers."""
        if has_columns(X):
            _check_names(X)
        check_has_rows(X, least)
        if not has_columns(X):
            numbers = validate_data(self, _read_cells(X), **options, **_CHECKS)
            refuse_infinite(numbers, None)
            return numbers
        validate_data(self, X, skip_check_array=True, **options)
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def check_has_rows(X: Any, least: int) -> None:
    """Refuse anything that is not a table, and a table of too few rows."""
    n = count_rows(X)
    if n < 0:
        rule = "be a data frame or an array of shape (n, p)"
        refuse("X", rule, reprlib.repr(X), TypeError)
    if hasattr(X, "to_frame") and not has_columns(X):
        got = f"a Series of {n} values: one row of a data frame is `frame.iloc[[i]]`"
        refuse("X", "be a data frame or an array of shape (n, p)", got, TypeError)
    if n < least:
        # scikit-learn's checks look for the first words of this message.
        rows = "1 sample" if n == 1 else f"{n} rows"
        wanted = "one row" if least == 1 else "two rows to learn from"
        refuse("X", f"have at least {wanted}", rows)


def warn_of_order(X: Any, **given: Any) -> None:
    """Warn of a Series with the labels of the table in another order.

    Rows are taken by their position, as scikit-learn does.
    """
    labels: Any = getattr(X, "index", None)
    for name, values in given.items():
        own: Any = getattr(values, "index", None)
        # An index is one of pandas; a list has a method of this name.
        if not (hasattr(labels, "equals") and hasattr(own, "equals")):
            continue
        if len(own) != len(labels) or own.equals(labels) or not labels.is_unique:
            continue
        if own.is_unique and labels.isin(own).all():
            warn_user(
                f"`{name}` has the labels of `X` in another order, but rows are taken "
                f"by position: if the labels are right, pass {name}.loc[X.index]."
            )


def _check_target(y: ArrayLike, owner: str) -> Float64Array:
    """Return a finite target, shape (n,)."""
    if y is None:
        # scikit-learn's checks look for the last words of this message.
        msg = f"`y`: {owner} requires y to be passed, but the target y is None."
        raise ValueError(msg)
    target = as_numbers(y, "y")
    if target.ndim == 2 and target.shape[1] == 1:
        target = column_or_1d(target, warn=True)
    missing = np.isnan(target)
    if target.ndim == 1 and missing.any():
        place = int(np.argmax(missing))
        got = f"{target[place]} at position {place} and {missing.sum()} in all"
        refuse("y", "have no gaps", f"{got}: leave these rows out")
    return check_vector(target, "y")


def _check_names(X: Any) -> None:
    """Refuse a data frame without columns, and one whose columns share a name."""
    columns = Columns.of(X)
    if columns.n_columns == 0:
        refuse("X", "have at least one column", f"shape {X.shape}")
    name, times = Counter(columns.names).most_common(1)[0]
    if times > 1:
        refuse("X", "have columns of different names", f"{name!r} {times} times")


def _read_cells(X: Any) -> Any:
    """Return an array of numbers. scikit-learn checks plain arrays itself."""
    kind = getattr(getattr(X, "dtype", None), "kind", "O")
    plain = kind in "biufc" and not isinstance(X, np.ma.MaskedArray)
    return X if plain else read_array(X)
