"""Distributions from any estimator: out of fold, or as one of our regressors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import check_is_fitted

from calibration._validation import (
    all_or_nothing,
    as_numbers,
    check_integer,
    check_n_jobs,
    check_same_length,
    count_rows,
    refuse,
)
from calibration.typing import Float64Array
from localexpert._validation import check_row_weights, check_seed, speaking_of
from localexpert.data.folds import (
    Fold,
    Rows,
    Sample,
    check_groups,
    check_tests_every_row,
    judged_rows,
    make_folds,
    renumber_folds,
)
from localexpert.data.honest_rows import find_copies
from localexpert.data.learners import name_of_argument, seeded
from localexpert.data.table import Table, take_rows
from localexpert.data.unseen import unseen_silently, warn_user
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.distribution.predictors import check_predicts, innermost, predict_dist
from localexpert.law.join import gather_laws
from localexpert.law.law import Law
from localexpert.progress import run_jobs
from localexpert.recalibration.conformal import make_recalibration, set_aside
from localexpert.regressor.base import (
    DistributionRegressor,
    check_has_rows,
    warn_of_order,
)

# scikit-learn's own functions have the same default.
_N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Forecasts:
    """How fitted estimators are asked, and how a `DistributionAdapter` reads them.

    Parameters
    ----------
    forecast, levels, level_name, bounds
        As the user gave them to the fit.
    """

    forecast: Callable[[Any, Any], Any] | None
    levels: ArrayLike | None
    level_name: str | None
    bounds: tuple[float | None, float | None] | None

    def law(self, fitted: Any, X: Any) -> Law:
        """Return the laws of rows, as they are before any recalibration."""
        if self.level_name is not None:
            answer: Any = np.column_stack([one.predict(X) for one in fitted])
        elif self.forecast is None:
            answer = predict_dist(fitted, X)
        else:
            answer = self.forecast(fitted, X)
        with speaking_of(values="forecast", frozen="forecast"):
            return self._read(answer, len(X))

    def _read(self, answer: Any, n: int) -> Law:
        """Return the laws that a forecast of n rows stands for."""
        if isinstance(answer, PredictiveDistribution):
            dist = answer
        elif hasattr(answer, "dist"):
            dist = PredictiveDistribution.from_scipy(answer)
            if not any(map(np.ndim, (*answer.args, *answer.kwds.values()))):
                # Numbers as parameters are those of every row.
                dist = dist[np.zeros(n, dtype=np.intp)]
        elif self.levels is not None:
            dist = self.from_quantiles(answer)
        else:
            one = "a PredictiveDistribution, a frozen law of scipy.stats"
            rule = f"return {one}, or an array of quantiles where `levels` are given"
            refuse("forecast", rule, type(answer).__name__, TypeError)
        check_same_length(n, "`X`", len(dist), "forecast")
        return dist.law

    def from_quantiles(self, values: Any) -> PredictiveDistribution:
        """Return distributions of which the quantiles at `levels` are known."""
        assert self.levels is not None
        return PredictiveDistribution.from_quantiles(
            values, self.levels, bounds=self.bounds
        )


@dataclass(eq=False, repr=False)
class DistributionAdapter(DistributionRegressor):
    """Turn any estimator that can forecast a distribution into one of our regressors.

    You can score it, search its parameters, draw it, report on it, and pool it in a
    `DistributionEnsemble`, as you can with a `LocalExpertRegressor`. Its forecasts of
    the training rows are out of fold. They can also serve to recalibrate it.

    Parameters
    ----------
    estimator : estimator
        An estimator of any library that has scikit-learn's `fit`. Use a Pipeline if
        the table needs preparing. The estimator gets the table as `fit` gets it.
    forecast : callable, optional
        ``forecast(fitted, X)`` returns a `PredictiveDistribution`, a frozen law of
        `scipy.stats`, or with `levels` an array of quantiles, a row for each of X.
        None: the estimator's own `predict_dist` is called, or its `predict` if there
        is a `level_name`. To pickle the model, define the function in a module.
    levels : array-like of shape (k,), optional
        Levels of quantiles in (0, 1), increasing.
    level_name : str, optional
        Name of the level parameter, for an estimator that predicts one quantile
        ("alpha" in LightGBM, "quantile" in scikit-learn). One clone is fitted for each
        of `levels`. `fit` warns if the level changes no prediction, as with LightGBM
        without ``objective="quantile"``.
    bounds : (float, float), optional
        Least and greatest possible y. Only used with quantiles.
    cv : "auto", int, splitter or iterable
        Folds for the out-of-fold forecasts. No row may be in two test parts. Rows in no
        test part are only used for training, as with `TimeSeriesSplit`.
    recalibrate : {"pit", "conformal"}, Recalibration or None
        As for `LocalExpertRegressor`.
    random_state : int, optional
        Seed of the folds, the recalibration, and parts of the estimator without one.

    Attributes
    ----------
    estimator_ : estimator or list of estimators
        Fitted on all rows. With `level_name`, one estimator for each level.
    oof_distribution_ : PredictiveDistribution
        Forecasts of the rows `fitted_rows_`. Each comes from estimators that have not
        seen the row.
    oof_prediction_ : ndarray of shape (m,)
        Their means.
    recalibration_ : Recalibration or None
        Fitted.
    fitted_rows_ : ndarray of int
        Rows that the `oof_` attributes describe. These are the rows that `cv` tests,
        without those that a recalibration held out.

    Examples
    --------
    A linear regression with normal errors:

    >>> import numpy as np
    >>> from scipy import stats
    >>> from sklearn.linear_model import BayesianRidge
    >>> from localexpert import DistributionAdapter, crps_score
    >>> def normal(fitted, X):
    ...     return stats.norm(*fitted.predict(X, return_std=True))
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 2))
    >>> y = 3 * X[:, 0] + rng.normal(size=200)
    >>> model = DistributionAdapter(BayesianRidge(), normal, random_state=0).fit(X, y)
    >>> model.predict_dist(X[:3])
    PredictiveDistribution(n=3, smooth)
    >>> round(crps_score(y, model.oof_distribution_), 2)
    0.55
    """

    estimator: Any
    forecast: Callable[[Any, Any], Any] | None = None
    _: KW_ONLY
    levels: ArrayLike | None = None
    level_name: str | None = None
    bounds: tuple[float | None, float | None] | None = None
    cv: Any = "auto"
    recalibrate: Any = None
    random_state: int | None = None

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the estimator, on all rows and out of fold.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
            Passed to the estimator, which must then accept weights. Rows of weight 0
            are forecast out of fold, but nothing is learned from them.
        groups : array-like of shape (n,), optional
            Rows of one group stay in one fold. Passed on if the estimator's `fit`
            accepts groups.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            asked = self.forecasts_ = self._check_parameters()
            given, target, weight, groups = self._check_data(
                X, y, sample_weight, groups
            )
            seed = check_seed(self.random_state)
            recalibration = make_recalibration(self.recalibrate, seed)
            extra = arguments_of_fit(
                self.estimator,
                sample_weight=None if sample_weight is None else weight,
                groups=groups,
            )
            table = Table.of(given, weight)
            if groups is None:
                groups = find_copies(table, weight, self.cv, seed)
            n = len(target)
            rows, aside = np.arange(n), np.arange(0)
            if recalibration is not None and recalibration.holds_out:
                rows, aside = set_aside(weight, self.cv, groups, seed)
            parts = None if groups is None else groups[rows]
            sample = Sample(table.take(rows), target[rows], weight[rows], [])
            dealt = sample.deal(self.cv, parts, seed).folds
            folds = [(rows[train], rows[test]) for train, test in dealt]

            def fit_on(train: Rows) -> Any:
                return self._fit_estimator(given, target, extra, train, seed)

            def forecast(train: Rows, test: Rows) -> Law:
                return asked.law(fit_on(train), take_rows(given, test))

            with unseen_silently():
                law = _laws_out_of_fold(forecast, folds)
            judged = judged_rows(folds)
            trained = rows[weight[rows] > 0.0]
            self.estimator_ = fit_on(trained)
            if self.level_name is not None:
                self._warn_of_one_level(take_rows(given, trained), target[trained])
            if recalibration is not None and len(aside):
                aside_law = asked.law(self.estimator_, take_rows(given, aside))
                recalibration.fit(aside_law, target[aside], weight[aside])
            elif recalibration is not None:
                known = renumber_folds(folds, judged, n)
                recalibration.fit(law, target[judged], weight[judged], known)
            self.recalibration_, self.fitted_rows_ = recalibration, judged
            self.oof_distribution_ = self._correct(law, oof=True)
            self.oof_prediction_ = self.oof_distribution_.mean()
            return self

    def predict_dist(self, X: Any) -> PredictiveDistribution:
        """Return the predictive distribution of every row.

        Parameters
        ----------
        X : array or data frame of shape (n, p)

        Returns
        -------
        PredictiveDistribution
        """
        check_is_fitted(self)
        table = self._check_table(X)
        return self._correct(self.forecasts_.law(self.estimator_, table))

    def _check_parameters(self) -> Forecasts:
        """Refuse parameters that cannot work. Return how forecasts are asked for."""
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            rule = "be an object with a method `fit`"
            refuse("estimator", rule, repr(self.estimator), TypeError)
        if self.forecast is None:
            self._check_own_forecast()
        elif not callable(self.forecast) or self.level_name is not None:
            named = self.level_name is not None
            rule = "be None where `level_name` is given" if named else "be callable"
            refuse("forecast", rule, repr(self.forecast), TypeError)
        if self.bounds is not None and self.levels is None:
            rule = "be None where there are no `levels`: a distribution has its own"
            refuse("bounds", rule, f"{self.bounds!r}")
        asked = Forecasts(self.forecast, self.levels, self.level_name, self.bounds)
        if self.levels is not None:
            # A forecast of no rows is enough to show faults of levels or bounds.
            asked.from_quantiles(np.zeros((0, np.size(self.levels))))
        return asked

    def _check_own_forecast(self) -> None:
        if self.level_name is None:
            if not hasattr(innermost(self.estimator), "predict_dist"):
                where = "where the estimator has no `predict_dist`"
                rule = f"be a function of the fitted estimator and X {where}"
                got = f"None for a {type(self.estimator).__name__}"
                refuse("forecast", rule, got, TypeError)
        elif self.levels is None:
            refuse("levels", "be given with `level_name`", repr(self.levels))
        else:
            self._at_level(0.5)

    def _fit_estimator(
        self,
        X: Any,
        y: Float64Array,
        extra: dict[str, NDArray[Any]],
        rows: Rows,
        seed: int,
    ) -> Any:
        """Return the estimator, or one for each level, fitted on some rows."""
        part, own = take_rows(X, rows), {name: v[rows] for name, v in extra.items()}
        if self.level_name is None:
            return seeded(self.estimator, seed).fit(part, y[rows], **own)
        levels = np.asarray(self.levels, dtype=np.float64).tolist()
        each = [seeded(self._at_level(level), seed) for level in levels]
        return [one.fit(part, y[rows], **own) for one in each]

    def _at_level(self, level: float) -> Any:
        """Return an unfitted estimator of one quantile."""
        try:
            return clone(self.estimator).set_params(**{str(self.level_name): level})
        except ValueError as error:
            rule = f"be a parameter of {type(self.estimator).__name__}"
            refuse("level_name", rule, repr(self.level_name), cause=error)

    def _warn_of_one_level(self, X: Any, y: Float64Array) -> None:
        """Warn if the quantiles of targets differ, and those predicted do not."""
        ends = np.asarray(self.levels, dtype=np.float64)[[0, -1]]
        low, high = np.quantile(y, ends, method="inverted_cdf")
        first, *_, last = self.estimator_
        if low < high and np.array_equal(first.predict(X), last.predict(X)):
            warn_user(
                f"`level_name={self.level_name!r}` changes nothing: predictions at the "
                f"levels {ends[0]:g} and {ends[1]:g} are equal in every row. Give the "
                'estimator the loss of quantiles (objective="quantile" in LightGBM, '
                'loss="quantile" in scikit-learn), or name the parameter that sets '
                "the level."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Estimators of other libraries may have no tags. `fit` refuses anything that
        # is not an estimator.
        if hasattr(self.estimator, "__sklearn_tags__"):
            tags.input_tags.allow_nan = get_tags(self.estimator).input_tags.allow_nan
        return tags


def cross_val_predict_dist(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    cv: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> PredictiveDistribution:
    """Return a distribution of every row, from models that have not seen the row.

    This is scikit-learn's `cross_val_predict` for whole distributions.

    Parameters
    ----------
    model : estimator
        A model that the function `predict_dist` accepts: a regressor with this method.
        It may be inside a Pipeline, a search or a TransformedTargetRegressor. It is
        cloned for each fold.
    X : array or data frame of shape (n, p)
    y : array-like of shape (n,)
    cv : int, splitter or iterable of (train, test), optional
        Folds whose test parts hold every row exactly once. None means 5 folds. A number
        means scikit-learn's `KFold` without shuffling, or `GroupKFold` if there are
        `groups`.
    groups : array-like of shape (n,), optional
        Passed to the splitter, and to the model's `fit` if it accepts groups.
    sample_weight : array-like of shape (n,), optional
        Passed to the model's `fit`, which must accept weights (in a Pipeline, the last
        step must).
    n_jobs : int, optional
        Number of folds fitted at the same time, as in joblib.

    Returns
    -------
    PredictiveDistribution
        Of the n rows in their order. The folds may have different kinds of laws.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from localexpert import LocalExpertRegressor, cross_val_predict_dist
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(60, 1))
    >>> quick = LocalExpertRegressor(
    ...     strategy="joint", frame=None, n_thresholds=5, cv=2, random_state=0
    ... )
    >>> model = make_pipeline(StandardScaler(), quick)
    >>> y = X[:, 0] + rng.normal(size=60)
    >>> cross_val_predict_dist(model, X, y, cv=2)
    PredictiveDistribution(n=60, smooth)
    """
    check_predicts(model)
    check_n_jobs(n_jobs)
    warn_of_order(X, y=y, sample_weight=sample_weight, groups=groups)
    check_has_rows(X, 2)
    table = X if hasattr(X, "shape") else np.asarray(X)
    n = count_rows(table)
    check_same_length(n, "`X`", count_rows(y), "y")
    target = column_or_1d(as_numbers(y, "y"), warn=True)
    labels = check_groups(groups, n)
    if cv is None or isinstance(cv, Integral):
        k = _N_FOLDS if cv is None else check_integer(cv, "cv", 2)
        cv = KFold(k) if labels is None else GroupKFold(k)
    folds = make_folds(n, cv, target, labels)
    cure = "a DistributionAdapter around the model keeps forecasts of the others"
    check_tests_every_row(folds, n, cure)
    if sample_weight is not None:
        sample_weight = check_row_weights(sample_weight, n)
    given = arguments_of_fit(model, sample_weight=sample_weight, groups=labels)

    def forecast(train: Rows, test: Rows) -> Law:
        part = {name: values[train] for name, values in given.items()}
        fitted = clone(model).fit(take_rows(table, train), target[train], **part)
        return predict_dist(fitted, take_rows(table, test)).law

    return PredictiveDistribution(_laws_out_of_fold(forecast, folds, n_jobs))


def _laws_out_of_fold(
    forecast: Callable[[Rows, Rows], Law], folds: list[Fold], n_jobs: int | None = None
) -> Law:
    """Return the laws of all tested rows in order; `forecast` gives those of a fold."""
    laws = run_jobs([delayed(forecast)(*fold) for fold in folds], n_jobs=n_jobs)
    return gather_laws(laws, [test for _, test in folds])


def arguments_of_fit(model: Any, **given: Any) -> dict[str, Any]:
    """Return the weights and groups under the names that the model's `fit` uses.

    Parameters
    ----------
    model : estimator
    **given : array-like or None
        Weights are refused if `fit` accepts none. Groups are left out in that case.
        Both are refused if metadata routing has not been told what to do with them.

    Returns
    -------
    dict of str to array-like
    """
    found = {}
    for key, values in given.items():
        name = None if values is None else name_of_argument(model, key)
        if name is not None:
            found[name] = values
        elif values is not None and _is_unset(model, key):
            inner = type(innermost(model)).__name__
            how = f"call its set_fit_request({key}=True), or False"
            refuse(key, f"be asked for by {inner}, or declined: {how}", "neither")
        elif values is not None and key == "sample_weight":
            rule = "be None for a model whose `fit` takes no weights"
            refuse("sample_weight", rule, f"some for {type(model).__name__}", TypeError)
    return found


def _is_unset(model: Any, key: str) -> bool:
    """Say whether metadata routing is told nothing about an argument of `fit`."""
    if not get_config()["enable_metadata_routing"]:
        return False
    request = getattr(get_routing_for_object(innermost(model)), "fit", None)
    return request is not None and request.requests.get(key, False) is None
