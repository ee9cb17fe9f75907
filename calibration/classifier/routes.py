"""Which argument of `fit` goes where: to the classifier, or to the splitter."""

from __future__ import annotations

from typing import Any
from warnings import warn

from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import has_fit_parameter

from calibration.exceptions import CalibrationWarning
from calibration.typing import Float64Array


def routing_enabled() -> bool:
    """Say whether scikit-learn routes metadata."""
    return bool(get_config()["enable_metadata_routing"])


def route_arguments(
    router: Any,
    estimator: Any,
    weights: Float64Array | None,
    fit_params: dict[str, Any],
    groups: ArrayLike | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments of `estimator.fit` and of the splitter's `split`.

    Parameters
    ----------
    router : classifier
        Whose `fit` was called with them.
    estimator : classifier
        To be fitted.
    weights : ndarray of shape (n,) or None
    fit_params : dict
    groups : array-like of shape (n,), optional

    Returns
    -------
    params, split_params : dict
    """
    split_params = {} if groups is None else {"groups": groups}
    if routing_enabled():
        given = {**fit_params, **split_params}
        routed = process_routing(router, "fit", sample_weight=weights, **given)
        return dict(routed.estimator.fit), dict(routed.splitter.split)
    if weights is None:
        return fit_params, split_params
    if has_fit_parameter(estimator, "sample_weight"):
        return {**fit_params, "sample_weight": weights}, split_params
    if not isinstance(estimator, FrozenEstimator):
        msg = (
            f"{type(estimator).__name__}.fit takes no `sample_weight`: the weights "
            "reach the calibrator only."
        )
        warn(msg, CalibrationWarning, stacklevel=3)
    return fit_params, split_params
