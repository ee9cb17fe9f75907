"""Forecasts and regressors as skpro's objects, for those who work with skpro.

Needs the extra `localexpert[skpro]`. Without skpro this file can be imported, as tests
and documentation do, but no object can be made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from calibration._validation import check_same_length, refuse
from calibration.typing import Float64Array
from localexpert._validation import check_targets
from localexpert.distribution.predictive import (
    PredictiveDistribution,
    check_distribution,
)
from localexpert.distribution.predictors import predict_dist
from localexpert.law.law import Law
from localexpert.regressor.regressor import LocalExpertRegressor

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["LocalExpertProba", "SkproForecast"]

_cause: ModuleNotFoundError | None = None


class _NeedsSkpro:
    """A base class without objects of its own."""

    def __init__(self, **_: Any) -> None:
        msg = f"`{type(self).__name__}` needs skpro: pip install 'localexpert[skpro]'."
        raise ModuleNotFoundError(msg, name="skpro") from _cause


try:
    from skpro.distributions.base import BaseDistribution
    from skpro.regression.base import BaseProbaRegressor
except ModuleNotFoundError as error:
    _cause = error
    BaseDistribution = BaseProbaRegressor = _NeedsSkpro


# What each kind of law answers without approximation, by skpro's names.
_OF_ALL = ["mean", "var", "energy", "cdf", "surv", "ppf"]
_OF_DENSITIES = ["pdf", "log_pdf"]
_OF_MASSES = ["pmf", "log_pmf"]
_EXACT = {
    "continuous": _OF_ALL + _OF_DENSITIES,
    "discrete": _OF_ALL + _OF_MASSES,
    "mixed": _OF_ALL + _OF_DENSITIES + _OF_MASSES,
}


class SkproForecast(BaseDistribution):
    """A forecast in skpro's interface, answered by the forecast's own methods.

    A frame of n rows and one column. Nothing is sampled or read off a grid: `cdf`,
    `surv`, `ppf`, `pdf`, `log_pdf`, `mean`, `var` and `energy` (hence skpro's CRPS)
    are those of the forecast.

    Parameters
    ----------
    forecast : PredictiveDistribution
        Of n rows.
    index : index-like of length n, optional
        Labels of the rows, by default their numbers. A forecast of one row with
        neither `index` nor `columns` is a scalar.
    columns : index-like of length 1, optional
        Name of the target, by default 0.

    Notes
    -----
    `pdfnorm` is a quadrature; `sample` is skpro's own, by quantiles of draws from
    numpy's global state, which `forecast.rvs` does not touch.

    skpro keeps densities and masses apart. Of a discrete forecast `pmf` has the
    probabilities and `pdf` is 0; of a mixed one `pdf` is the continuous part alone,
    which integrates to less than 1, and `pmf` the atoms. The density that
    `forecast.pdf` gives a value of positive probability, which is that probability
    over the width of the value's cell, has no place there. So skpro's log loss, which
    asks for `log_pdf` alone, is infinite for discrete forecasts and blind to the
    atoms of mixed ones: take `localexpert.log_score` of `forecast`. Neither has it
    names for modes, shortest intervals or expected shortfalls; these too are methods
    of `forecast`.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.skpro import SkproForecast
    >>> rows = [[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]]
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> shown = SkproForecast(
    ...     dist, index=["a", "b"], columns=["y"]
    ... )  # doctest: +SKIP
    >>> shown.pmf(1.0)  # doctest: +SKIP
         y
    a  0.5
    b  0.1
    """

    index: Any  # set by skpro, as pandas indexes
    columns: Any

    _tags: ClassVar[dict[str, Any]] = {
        "capabilities:approx": ["pdfnorm"],
        "capabilities:exact": _EXACT["mixed"],
        "distr:measuretype": "mixed",  # of an object: what its law is
        "distr:paramtype": "nonparametric",
    }

    def __init__(
        self, forecast: PredictiveDistribution, index: Any = None, columns: Any = None
    ):
        self.forecast = forecast
        super().__init__(index=index, columns=columns)
        if forecast.law.all_jumps:
            kind = "discrete"
        else:
            kind = "mixed" if forecast.law.has_jumps else "continuous"
        tags = {"distr:measuretype": kind, "capabilities:exact": _EXACT[kind]}
        self.set_tags(**tags)

    def _init_shape_bc(self, index: Any = None, columns: Any = None) -> None:
        """Set the shape, () or (n, 1), and the labels not given."""
        import pandas as pd

        n = len(check_distribution(self.forecast, "forecast"))
        self._shape: tuple[int, ...] = ()
        if n == 1 and index is None and columns is None:
            return
        self.index = pd.RangeIndex(n) if index is None else self.index
        self.columns = pd.RangeIndex(1) if columns is None else self.columns
        check_same_length(n, "`forecast`", len(self.index), "index")
        if len(self.columns) != 1:
            refuse("columns", "have one label", len(self.columns))
        self._shape = (n, 1)

    def _boilerplate(self, method: str, columns: Any = None, **values: Any) -> Any:
        """Answer; a frame's one column is ours, whatever a transformer calls it."""
        for name, held in values.items():
            if self._shape and hasattr(held, "columns") and held.shape[1] == 1:
                values[name] = held.set_axis(self.columns, axis=1)
        return super()._boilerplate(method, columns=columns, **values)

    def _iloc(self, rowidx: Any = None, colidx: Any = None) -> Any:
        """Subset by whatever picks from an array: skpro's own takes positions."""
        rows = _positions(rowidx, len(self.forecast))
        return super()._iloc(rowidx=rows, colidx=_positions(colidx, 1))

    def _get_indexer_like_pandas(self, index: Any, keys: Any) -> NDArray[np.intp]:
        """Return the places of labels; refuse those that are not there."""
        return _check_found(super()._get_indexer_like_pandas(index, keys), keys)

    def _at(self, rowidx: Any = None, colidx: Any = None) -> Any:
        """Return the forecast of a row; refuse labels that are not there."""
        for index, label in ((self.index, rowidx), (self.columns, colidx)):
            if label is not None:
                _check_found(index.get_indexer_for([label]), [label])
        return super()._at(rowidx, colidx)

    def _subset_param(
        self,
        val: PredictiveDistribution,
        rowidx: Any,
        colidx: Any,
        coerce_scalar: bool = False,  # noqa: ARG002
    ) -> PredictiveDistribution:
        """Return the forecast of some rows; there is but one column."""
        if colidx is not None:
            np.zeros(1)[colidx]  # an IndexError where there is no such column
        return val if rowidx is None else val[rowidx]

    def _asked(
        self, method: Callable[[Any], Float64Array], values: Any
    ) -> Float64Array:
        """Return a method's answers at values of the shape, in it."""
        return method(np.reshape(values, -1)).reshape(self._shape)

    def _cdf(self, x: ArrayLike) -> Float64Array:
        return self._asked(self.forecast.cdf, x)

    def _surv(self, x: ArrayLike) -> Float64Array:
        return self._asked(self.forecast.sf, x)

    def _ppf(self, p: ArrayLike) -> Float64Array:
        return self._asked(self.forecast.ppf, p)

    def _log_pdf(self, x: ArrayLike) -> Float64Array:
        law = self.forecast.law.clipped
        given = np.reshape(x, -1)
        at = check_targets(given, "x", len(law), finite=False).reshape(-1, 1)
        if law.all_jumps or law.curve is None:
            return np.full(self._shape, -np.inf)
        with np.errstate(divide="ignore"):
            found = np.log(law.rest) + law.curve.densities(at)[1][:, 0]
        return np.asarray(found.reshape(self._shape))

    def _pdf(self, x: ArrayLike) -> Float64Array:
        return np.asarray(np.exp(self._log_pdf(x)))

    def _pmf(self, x: ArrayLike) -> Float64Array:
        return self._asked(self.forecast.pmf, x)

    def _log_pmf(self, x: ArrayLike) -> Float64Array:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._pmf(x)))

    def _mean(self) -> Float64Array:
        return self.forecast.mean().reshape(self._shape)

    def _var(self) -> Float64Array:
        return self.forecast.var().reshape(self._shape)

    def _energy_x(self, x: ArrayLike) -> Any:
        """Return E abs(Y - x), shape (n,)."""
        y = np.asarray(x, dtype=np.float64).reshape(-1)
        below, above = self.forecast.partial_means(y)
        return below + above if self._shape else float(below[0] + above[0])

    def _energy_self(self) -> Any:
        """Return E abs(Y - Y'), which is 2 (E abs(Y - x) - crps(x)) for every x."""
        middle = self.forecast.median()
        energy = 2.0 * (self._energy_x(middle) - self.forecast.crps(middle))
        return energy if self._shape else float(energy[0])

    def pdfnorm(self, a: float = 2) -> Any:
        """Return the integral of pdf(x)^a, of the continuous part where there are two.

        Parameters
        ----------
        a : float
            At least 1.

        Returns
        -------
        DataFrame of the shape, or float
        """
        import pandas as pd

        law = self.forecast.law.clipped
        norms = np.zeros(len(law))
        if law.curve is not None and not law.all_jumps:
            y, shares = law.curve.nodes()
            density = np.exp(law.curve.densities(y)[1])
            norms = law.rest**a * (shares * density ** (a - 1)).sum(axis=1)
        if not self._shape:
            return float(norms[0])
        return pd.DataFrame(norms[:, None], index=self.index, columns=self.columns)

    def _pmf_support(
        self, lower: float, upper: float, max_points: int = 100
    ) -> Float64Array:
        """Return the values that have probabilities, for skpro's plots."""
        law = self.forecast.law.clipped
        values = np.unique(law.steps()[0]) if law.all_jumps else law.atoms
        return values[(values >= lower) & (values <= upper)][:max_points]

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:  # noqa: ARG003
        """Return parameters for skpro's tests: a law of every kind, and a scalar.

        Parameters
        ----------
        parameter_set : str
            There is one set.

        Returns
        -------
        list of dict
        """
        quantiles = [[-2.0, 0.0, 2.5], [-3.0, 1.0, 6.0], [-1.0, 5.0, 12.0]]
        smooth = PredictiveDistribution.from_quantiles(quantiles, [0.1, 0.5, 0.9])
        masses = np.array([[0.0], [0.3], [0.6]])
        mixed = Law(smooth.law.curve, np.zeros(1), masses, np.full(1, 0.1))
        rows = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.0, 1.0, 0.0]])
        few = PredictiveDistribution.from_arrays(atoms=[0.0, 1.0, 3.0], masses=rows)
        forecasts = [smooth, PredictiveDistribution(mixed), few]
        frames = [{"forecast": each, "index": [1, 2, 5]} for each in forecasts]
        return [*frames, *({"forecast": each[1]} for each in forecasts)]


def _positions(index: Any, n: int) -> NDArray[np.intp] | int | None:
    """Return the positions that an index, slice or mask picks from n."""
    if index is None or np.isscalar(index):
        return cast("int | None", index)
    # Numpy makes floats of an empty list.
    kind = None if np.size(index) else np.intp
    picks = index if isinstance(index, slice) else np.asarray(index, kind)
    return np.arange(n)[picks]


def _check_found(places: NDArray[np.intp], keys: Any) -> NDArray[np.intp]:
    """Refuse places of -1, by which pandas means a label that is not there."""
    if np.any(places < 0):
        msg = f"labels must be in the index, got {list(keys)}."
        raise KeyError(msg)
    return places


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
    """Return the table without a mixture of names, which scikit-learn refuses."""
    kinds = {isinstance(name, str) for name in X.columns}
    return X if len(kinds) < 2 else X.set_axis(X.columns.astype(str), axis=1)
