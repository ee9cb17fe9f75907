"""Arguments of `fit` for learners of the user's: by what name it takes weights."""

from __future__ import annotations

from typing import Any

from sklearn import get_config
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import has_fit_parameter

from calibration.typing import Float64Array


def name_of_argument(estimator: Any, argument: str = "sample_weight") -> str | None:
    """Return the name by which `fit` takes an argument; wrappers hand it on.

    Parameters
    ----------
    estimator : estimator
        Or a Pipeline, a search or a TransformedTargetRegressor around it.
    argument : str
        As the innermost `fit` calls it.

    Returns
    -------
    str or None

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from localexpert.data.weights import name_of_argument
    >>> name_of_argument(make_pipeline(StandardScaler(), Ridge()))
    'ridge__sample_weight'
    """
    if has_fit_parameter(estimator, argument):
        return argument
    if get_config()["enable_metadata_routing"]:
        request = get_routing_for_object(estimator)
        return argument if argument in request.consumes("fit", [argument]) else None
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = name_of_argument(last, argument)
        return None if inner is None else f"{name}__{inner}"
    if isinstance(estimator, TransformedTargetRegressor):
        return name_of_argument(estimator.regressor, argument)
    if hasattr(estimator, "estimator") and hasattr(estimator, "refit"):  # a search
        return name_of_argument(estimator.estimator, argument)
    return None


def fit_weighted(estimator: Any, X: Any, y: Any, weight: Float64Array) -> Any:
    """Fit an estimator, with the weights where it takes them, and return it."""
    name = name_of_argument(estimator)
    return estimator.fit(X, y, **({} if name is None else {name: weight}))
