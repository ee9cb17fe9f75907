"""`DistributionRegressor`: what all regressors that forecast distributions share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import validate_data

from calibration.typing import Float64Array
from localexpert._validation import check_levels
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.storage import SavedModel


class DistributionRegressor(SavedModel, RegressorMixin, BaseEstimator):
    """How a table is read, what follows from `predict_dist`, and saving."""

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

    def _check_data(self, X: Any, y: ArrayLike) -> tuple[Any, Float64Array]:
        """Return features as an array or data frame, and the target."""
        if hasattr(X, "columns"):
            validate_data(self, X, skip_check_array=True)
            target = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
            target = column_or_1d(target, warn=True)
            check_consistent_length(X, target)
            table = X
        else:
            table, target = validate_data(
                self,
                X,
                y,
                dtype=np.float64,
                ensure_all_finite="allow-nan",
                ensure_min_samples=2,
                y_numeric=True,
            )
        return table, np.asarray(target, dtype=np.float64)

    def _check_table(self, X: Any) -> Any:
        """Return features to predict for, in the columns of `fit`."""
        if hasattr(X, "columns"):
            validate_data(self, X, reset=False, skip_check_array=True)
            return X
        return validate_data(
            self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
