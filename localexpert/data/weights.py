"""Sample weights for learners of the user's: by what name `fit` takes them."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from calibration.typing import Float64Array


def name_of_weights(estimator: Any) -> str | None:
    """Return the argument of `fit` that takes weights; a Pipeline hands it on.

    Parameters
    ----------
    estimator : estimator or Pipeline

    Returns
    -------
    str or None

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from localexpert.data.weights import name_of_weights
    >>> name_of_weights(make_pipeline(StandardScaler(), Ridge()))
    'ridge__sample_weight'
    """
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = name_of_weights(last)
        return None if inner is None else f"{name}__{inner}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def fit_weighted(estimator: Any, X: Any, y: Any, weight: Float64Array) -> Any:
    """Fit an estimator, with the weights where it takes them, and return it."""
    name = name_of_weights(estimator)
    return estimator.fit(X, y, **({} if name is None else {name: weight}))
