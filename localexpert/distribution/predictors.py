"""`predict_dist`: distributions from any model that forecasts them, wrapped or not."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from calibration._validation import refuse
from calibration.typing import Float64Array
from localexpert.distribution.predictive import PredictiveDistribution

_KNOWN = "a Pipeline, a search, a TransformedTargetRegressor or a FrozenEstimator"


def predict_dist(model: Any, X: Any) -> PredictiveDistribution:
    """Return the distributions that a model forecasts, also inside scikit-learn.

    scikit-learn's wrappers pass on `predict` only. This function asks the regressor
    inside, and does what the wrapper does before and after `predict`.

    Parameters
    ----------
    model : fitted estimator
        A model with a method `predict_dist`, or wrappers of one, nested in any order:
        `Pipeline` (its steps transform `X`), `GridSearchCV` and others that have a
        `best_estimator_`, `TransformedTargetRegressor` (its transformer must increase,
        and is applied to the law of the forecast), `FrozenEstimator`.
    X : array or data frame of shape (n, p)
        A table that `model.predict` takes.

    Returns
    -------
    PredictiveDistribution
        Forecasts of n rows.

    Notes
    -----
    Some steps of a Pipeline have no `transform`: those of imbalanced-learn only pick
    rows to fit on. They are left out. Other meta-estimators are refused, because they
    may forecast something else than the regressor inside (by a vote, in a boosting
    step, or from chosen features).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from localexpert import LocalExpertRegressor, predict_dist
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(60, 1))
    >>> quick = LocalExpertRegressor(
    ...     strategy="joint", frame=None, n_thresholds=5, cv=2, random_state=0
    ... )
    >>> model = make_pipeline(StandardScaler(), quick)
    >>> predict_dist(model.fit(X, X[:, 0] + rng.normal(size=60)), X[:3])
    PredictiveDistribution(n=3, smooth)
    """
    kind = type(find_forecaster(model)).__name__
    dist = _ask(model, X)
    if not isinstance(dist, PredictiveDistribution):
        got = f"{type(dist).__name__} of {kind}.predict_dist"
        refuse("model", "forecast a PredictiveDistribution", got, TypeError)
    return dist


def find_forecaster(model: Any, name: str = "model") -> Any:
    """Return the model that has a method `predict_dist`: this one or one inside it.

    Parameters
    ----------
    model : estimator
        Fitted or not.
    name : str
        Name of the argument in messages.

    Returns
    -------
    estimator
    """
    inner, places = _unwrap(model)
    if not _forecasts(inner):
        got = type(inner).__name__
        if isinstance(inner, type):
            got = f"the class {inner.__name__} where a fitted object is needed"
        where = f" as {', in '.join(reversed(places))}" if places else ""
        got = f"{got}{where}; it is found inside {_KNOWN}"
        refuse(name, "have a method predict_dist", got, TypeError)
    return inner


def innermost(model: Any) -> Any:
    """Return the forecaster inside all wrappers, or the first that does not open."""
    return _unwrap(model)[0]


def check_predicts(model: Any, name: str = "model") -> None:
    """Refuse a model that does not forecast distributions."""
    find_forecaster(model, name)


def open_same(model: Any, *, pipelines: bool = False) -> Any:
    """Return the estimator inside that forecasts the same as its wrappers do.

    Parameters
    ----------
    model : fitted estimator
        A model that forecasts distributions.
    pipelines : bool
        Whether to open a Pipeline too; its last step gets another table.

    Returns
    -------
    estimator
        If a wrapper transforms the target, this wrapper.
    """
    closed = (TransformedTargetRegressor, *(() if pipelines else (Pipeline,)))
    return _unwrap(model, closed)[0]


def _forecasts(model: Any) -> bool:
    method = getattr(model, "predict_dist", None)
    return not isinstance(model, type) and callable(method)


def _open(model: Any) -> tuple[Any, str] | None:
    """Return the estimator in a wrapper, the fitted one if there is one, and its place.

    None if the model is no wrapper that is known.
    """
    if isinstance(model, type):
        return None
    kind = type(model).__name__
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        return last, f"step {name!r} of {kind}"
    if isinstance(model, TransformedTargetRegressor):
        return getattr(model, "regressor_", model.regressor), f"`regressor` of {kind}"
    if isinstance(model, FrozenEstimator):
        return model.estimator, f"`estimator` of {kind}"
    if hasattr(model, "best_estimator_"):
        return model.best_estimator_, f"`best_estimator_` of {kind}"
    if hasattr(model, "estimator") and hasattr(model, "refit"):  # an unfitted search
        return model.estimator, f"`estimator` of {kind}"
    return None


def _unwrap(model: Any, closed: tuple[type, ...] = ()) -> tuple[Any, list[str]]:
    """Return the model inside all wrappers, and the places on the way.

    Wrappers of the types in `closed` stay closed.
    """
    places: list[str] = []
    # A frozen model passes on every method, and has none of its own.
    while isinstance(model, FrozenEstimator) or not (
        _forecasts(model) or isinstance(model, closed)
    ):
        opened = _open(model)
        if opened is None:
            break
        model, place = opened
        places.append(place)
    return model, places


def _ask(model: Any, X: Any) -> Any:
    """Return the answer of the forecaster inside, as the model would pass it on."""
    opened = None if _forecasts(model) else _open(model)
    if opened is None:
        return model.predict_dist(X)
    inner = opened[0]
    check_is_fitted(model)
    if hasattr(model, "refit") and not hasattr(model, "best_estimator_"):
        rule = f"not be False for a forecast of {type(model).__name__}"
        refuse("refit", rule, f"{model.refit!r}")
    if isinstance(model, TransformedTargetRegressor):
        return _untransform_target(model, _ask(inner, X))
    if isinstance(model, Pipeline):
        for _, step in model.steps[:-1]:
            # "passthrough" has no transform. Steps that only pick rows have none, too.
            if hasattr(step, "transform"):
                X = step.transform(X)
    return _ask(inner, X)


def _untransform_target(
    model: TransformedTargetRegressor, dist: PredictiveDistribution
) -> PredictiveDistribution:
    """Return the distributions of the target from those of the transformed target."""
    if model.transformer is not None:
        back, forth = "inverse_transform", "transform"
        inner = model.transformer_
        calls = inner.inverse_transform, inner.transform
        got = f"`transformer`, got {type(model.transformer).__name__}"
    elif model.func is None:
        return dist
    else:
        # The fitted FunctionTransformer refuses infinite ends, so use the functions.
        back, forth = "inverse_func", "func"
        calls = model.inverse_func, model.func
        name = getattr(model.inverse_func, "__name__", model.inverse_func)
        got = f"`inverse_func`, got {name}"
    try:
        return dist.transform(*(_of_column(call) for call in calls))
    except (TypeError, ValueError) as error:
        # Use the wrapper's names: its "func" is the inverse here.
        names = {"func": back, "inverse": forth}
        why = re.sub(r"\b(func|inverse)\b", lambda found: names[found[0]], str(error))
        if " finite " in why:
            why += " `bounds` of the regressor keep forecasts where it is finite."
        need = f"{type(model).__name__} forecasts distributions with an increasing"
        msg = f"{need} {got}: {why}"
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(msg) from error


def _of_column(function: Callable[[Float64Array], Any]) -> Any:
    """Let a function of a column (m, 1), as transformers are, take any array."""

    def call(y: Float64Array) -> Float64Array:
        column = function(y.reshape(-1, 1))
        return np.asarray(column, dtype=np.float64).reshape(y.shape)

    return call
