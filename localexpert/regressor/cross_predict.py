"""`cross_val_predict_dist`: out-of-fold distributions of any estimator."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold
from sklearn.utils import column_or_1d
from sklearn.utils.parallel import delayed

from localexpert._validation import (
    as_numbers,
    check_integer,
    check_n_jobs,
    check_row_weights,
    check_same_length,
    count_rows,
)
from localexpert.data.folds import Fold, check_groups, check_tests_every_row, make_folds
from localexpert.data.table import take_rows
from localexpert.data.user_learners import name_of_argument
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.distribution.predictors import check_predicts, predict_dist
from localexpert.law.join import append_laws
from localexpert.law.law import Law
from localexpert.progress import run_jobs
from localexpert.regressor.base import check_has_rows

# As many as scikit-learn's own functions have by default.
_N_FOLDS = 5


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
    """Return the distribution of every row by models that have not seen the row.

    As scikit-learn's `cross_val_predict`, of whole distributions.

    Parameters
    ----------
    model : estimator
        That `predict_dist` understands: a regressor with this method, also inside of
        a Pipeline, a search or a TransformedTargetRegressor. Cloned for each fold.
    X : array or data frame of shape (n, p)
    y : array-like of shape (n,)
    cv : int, splitter or iterable of (train, test), optional
        Folds whose test parts hold every row exactly once. None: 5. A number of folds
        is as in scikit-learn `KFold` without shuffling, or `GroupKFold` if there are
        `groups`.
    groups : array-like of shape (n,), optional
        For the splitter, and for `fit` of the model where it takes them.
    sample_weight : array-like of shape (n,), optional
        For `fit` of the model, which must take them (a Pipeline's last step).
    n_jobs : int, optional
        Folds fitted at a time, as in joblib.

    Returns
    -------
    PredictiveDistribution
        Of n rows, in their order, whatever kinds of laws the folds have.

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
    check_has_rows(X, 2)
    table = X if hasattr(X, "shape") else np.asarray(X)
    n = count_rows(table)
    check_same_length(n, "`X`", count_rows(y), "y")
    target = column_or_1d(as_numbers(y, "y"), warn=True)
    labels = check_groups(groups, n)
    folds = make_folds(n, _choose_splitter(cv, labels), target, labels)
    cure = "a DistributionAdapter around the model keeps forecasts of the others"
    check_tests_every_row(folds, n, cure)
    if sample_weight is not None:
        sample_weight = check_row_weights(sample_weight, n)
    given = arguments_of_fit(model, sample_weight=sample_weight, groups=labels)
    ask = delayed(_fit_and_forecast)
    jobs = [ask(clone(model), table, target, fold, given) for fold in folds]
    laws: list[Law] = run_jobs(jobs, n_jobs=n_jobs)
    order = np.concatenate([test for _, test in folds])
    return PredictiveDistribution(append_laws(laws).take(np.argsort(order)))


def _choose_splitter(cv: Any, groups: NDArray[Any] | None) -> Any:
    """Return a splitter or folds; a number keeps groups whole if there are some."""
    if cv is not None and not isinstance(cv, Integral):
        return cv
    k = _N_FOLDS if cv is None else check_integer(cv, "cv", 2)
    return KFold(k) if groups is None else GroupKFold(k)


def arguments_of_fit(model: Any, **given: Any) -> dict[str, Any]:
    """Return weights and groups, if any, by the names that the model's `fit` has.

    Parameters
    ----------
    model : estimator
    **given : array-like or None
        Weights are refused if `fit` takes none; groups are left out then.

    Returns
    -------
    dict of str to array-like
    """
    found = {}
    for key, values in given.items():
        name = None if values is None else name_of_argument(model, key)
        if name is not None:
            found[name] = values
        elif values is not None and key == "sample_weight":
            msg = (
                "`sample_weight` must be None for a model whose `fit` takes no "
                f"weights, got some for {type(model).__name__}."
            )
            raise TypeError(msg)
    return found


def _fit_and_forecast(
    model: Any, X: Any, y: NDArray[Any], fold: Fold, given: Mapping[str, NDArray[Any]]
) -> Law:
    """Return the laws of a fold's test rows, by a model fitted on the others."""
    train, test = fold
    part = {name: values[train] for name, values in given.items()}
    model.fit(take_rows(X, train), y[train], **part)
    return predict_dist(model, take_rows(X, test)).law
