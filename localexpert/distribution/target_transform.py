"""Distributions of a target that scikit-learn transformed for a regressor."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor

from calibration.typing import Float64Array
from localexpert.distribution.predictive import PredictiveDistribution


@dataclass(frozen=True)
class _OfColumn:
    """A function of a column (m, 1), as scikit-learn's transformers are, of any array.

    Parameters
    ----------
    function : callable
        A function of the user's, or a method of a fitted transformer.
    """

    function: Callable[[Float64Array], Any]

    def __call__(self, y: Float64Array) -> Float64Array:
        column = self.function(y.reshape(-1, 1))
        return np.asarray(column, dtype=np.float64).reshape(y.shape)


def untransform_target(
    model: TransformedTargetRegressor, dist: PredictiveDistribution
) -> PredictiveDistribution:
    """Return the distributions of the target, of those of its transform.

    Parameters
    ----------
    model : TransformedTargetRegressor
        Fitted.
    dist : PredictiveDistribution
        That its regressor forecasts.

    Returns
    -------
    PredictiveDistribution
    """
    if model.transformer is not None:
        back, forth = "inverse_transform", "transform"
        functions = (
            _OfColumn(model.transformer_.inverse_transform),
            _OfColumn(model.transformer_.transform),
        )
        got = f"`transformer`, got {type(model.transformer).__name__}"
    elif model.func is None:
        return dist
    else:
        # Not by the FunctionTransformer of the fit, which refuses infinite ends.
        back, forth = "inverse_func", "func"
        functions = _OfColumn(model.inverse_func), _OfColumn(model.func)
        got = f"`inverse_func`, got {_name(model.inverse_func)}"
    try:
        return dist.transform(*functions)
    except (TypeError, ValueError) as error:
        # In words of the wrapper, which calls the one "func" that is the other here.
        names = {"func": back, "inverse": forth}
        why = re.sub(r"\b(func|inverse)\b", lambda found: names[found[0]], str(error))
        if " finite " in why:
            why += " `bounds` of the regressor keep forecasts to where it is."
        msg = (
            f"{type(model).__name__} forecasts distributions with an increasing "
            f"{got}: {why}"
        )
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(msg) from error


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", function))
