"""`LocalExpertProba`: a regressor of predictive distributions as one of skpro's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import clone

from localexpert._validation import refuse
from localexpert.distribution.predictors import predict_dist
from localexpert.regressor.regressor import LocalExpertRegressor
from localexpert.skpro.bases import BaseProbaRegressor
from localexpert.skpro.forecast import SkproForecast

if TYPE_CHECKING:
    from pandas import DataFrame


class LocalExpertProba(BaseProbaRegressor):
    """`LocalExpertRegressor`, or any regressor with `predict_dist`, for skpro.

    `predict_proba` returns a `SkproForecast`, which carries the forecast as it is;
    `predict_quantiles`, `predict_interval` and `predict_var` follow from it, and
    `predict` is that of the estimator. skpro's pipelines, searches, benchmarks and
    metrics take it as they take their own regressors.

    Parameters
    ----------
    estimator : regressor with `fit`, `predict` and `predict_dist`, optional
        Cloned before it is fitted. None: ``LocalExpertRegressor()``.

    Attributes
    ----------
    estimator_ : regressor
        The fitted one; all that skpro has no name for is asked of it.

    Notes
    -----
    skpro's `fit` knows no weights or groups of rows, and its regressors of this kind
    have one target: fit the estimator itself where these are needed, and show its
    forecasts to skpro as ``SkproForecast(estimator.predict_dist(X))``. What skpro
    cannot say of discrete and mixed forecasts is told at `SkproForecast`.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from localexpert import LocalExpertRegressor
    >>> from localexpert.skpro import LocalExpertProba
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"size": rng.uniform(size=200)})
    >>> y = pd.DataFrame({"price": 3 * X["size"] + rng.normal(size=200)})
    >>> quick = LocalExpertRegressor(
    ...     frame=None, strategy="joint", n_thresholds=9, random_state=0
    ... )
    >>> model = LocalExpertProba(quick).fit(X, y)  # doctest: +SKIP
    >>> model.predict_proba(X.head(2)).shape  # doctest: +SKIP
    (2, 1)
    >>> list(model.predict_interval(X.head(2), coverage=0.8))  # doctest: +SKIP
    [('price', 0.8, 'lower'), ('price', 0.8, 'upper')]
    """

    _tags: ClassVar[dict[str, Any]] = {
        "capability:multioutput": False,
        "capability:missing": True,
        "X_inner_mtype": "pd_DataFrame_Table",
        "y_inner_mtype": "pd_DataFrame_Table",
    }

    def __init__(self, estimator: Any = None):
        self.estimator = estimator
        super().__init__()

    def _fit(self, X: DataFrame, y: DataFrame, C: Any = None) -> LocalExpertProba:  # noqa: ARG002
        if y.shape[1] != 1:
            refuse("y", "have one column", y.shape[1])
        chosen = LocalExpertRegressor() if self.estimator is None else self.estimator
        self.estimator_ = clone(chosen)
        self.estimator_.fit(_named(X), y.iloc[:, 0].to_numpy(dtype=np.float64))
        return self

    def _predict(self, X: DataFrame) -> DataFrame:
        import pandas as pd

        point = self.estimator_.predict(_named(X))
        return pd.DataFrame({self._target: point}, index=X.index)

    def _predict_proba(self, X: DataFrame) -> SkproForecast:
        dist = predict_dist(self.estimator_, _named(X))
        return SkproForecast(dist, index=X.index, columns=[self._target])

    @property
    def _target(self) -> Any:
        """Name of the target in `fit`."""
        return next(iter(self._get_columns()))

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:  # noqa: ARG003
        """Return parameters for skpro's tests: two quick regressors.

        Parameters
        ----------
        parameter_set : str
            There is one set.

        Returns
        -------
        list of dict
        """
        from sklearn.linear_model import LinearRegression
        from sklearn.naive_bayes import GaussianNB

        quick: dict[str, Any] = {"cv": 2, "n_thresholds": 3, "calibrator": None}
        quick |= {"smoothing": 0.1, "random_state": 0}
        experts = LocalExpertRegressor(
            GaussianNB(), frame="center", center=LinearRegression(), **quick
        )
        forest = LocalExpertRegressor(strategy="joint", frame=None, **quick)
        return [{"estimator": experts}, {"estimator": forest}]


def _named(X: DataFrame) -> DataFrame:
    """Return the table with names of strings only: scikit-learn refuses a mixture."""
    return X.set_axis(X.columns.astype(str), axis=1)
