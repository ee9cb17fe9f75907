"""Confidence intervals for the predictions of a logistic regression."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import pinvh
from scipy.special import expit, ndtri
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.utils.validation import check_is_fitted, validate_data

from calibration._validation import (
    as_numbers,
    check_choice,
    check_finite,
    check_level,
    check_weights,
    refuse,
)
from calibration.typing import Float64Array


def logistic_intervals(
    model: LogisticRegression,
    X_train: ArrayLike,
    X: ArrayLike,
    *,
    coverage: float = 0.95,
    scale: Literal["probability", "logit"] = "probability",
    sample_weight: ArrayLike | None = None,
) -> Float64Array:
    r"""Return an interval for each prediction of a fitted logistic regression.

    Parameters
    ----------
    model : sklearn.linear_model.LogisticRegression
        It is fitted on two classes, with an L2 penalty or none.
    X_train : array-like of shape (n_train, n_features)
        The rows on which it was fitted.
    X : array-like of shape (n, n_features)
        The rows to predict.
    coverage : float
        Level of the interval, in (0, 1).
    scale : {"probability", "logit"}
        Whether intervals are for P(y = `model.classes_[1]`) or for its log-odds.
    sample_weight : array-like of shape (n_train,), optional
        The weights with which it was fitted.

    Returns
    -------
    ndarray of shape (n, 2)
        Lower and upper bounds, around ``predict_proba`` or ``decision_function``.

    Notes
    -----
    F = sum_i w_i p_i (1 - p_i) x_i x_i' is the information, and L is the penalty's
    second derivative. The estimate has covariance V = (F + L)^+ F (F + L)^+, so the
    log-odds eta = x' theta have the standard error se = sqrt(x' V x). The delta method
    gives p -+ z p (1 - p) se, cut to [0, 1]. The interval does not cover the bias that
    a penalty brings.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from calibration.neighbours.logistic_intervals import logistic_intervals
    >>> X = np.arange(8.0)[:, None]
    >>> model = LogisticRegression(C=np.inf).fit(X, [0, 0, 1, 0, 1, 0, 1, 1])
    >>> logistic_intervals(model, X, [[3.5]], coverage=0.5).round(2)
    array([[0.36, 0.64]])
    """
    _check_model(model)
    coverage = check_level(coverage, "coverage")
    check_choice(scale, "scale", ("probability", "logit"))
    train = _design(model, X_train, "X_train")
    rows = _design(model, X, "X")
    weight = check_weights(sample_weight, len(train))
    theta = np.append(model.intercept_, model.coef_)
    p = expit(train @ theta)
    information = train.T @ (train * (weight * p * (1.0 - p))[:, None])
    inverse = _pseudo_inverse(information + np.diag(_penalty(model)))
    # Use the sandwich, because a penalised estimate varies less than the inverse of its
    # Hessian says.
    covariance = inverse @ information @ inverse
    # This is x' V x per row. If it is 0, rounding may leave less than nothing.
    variance = np.einsum("ij,jk,ik->i", rows, covariance, rows, optimize=True)
    radius = ndtri(0.5 + 0.5 * coverage) * np.sqrt(np.maximum(variance, 0.0))
    center = rows @ theta
    if scale == "logit":
        return np.column_stack([center - radius, center + radius])
    center = expit(center)
    radius = center * (1.0 - center) * radius
    low = np.maximum(center - radius, 0.0)
    return np.column_stack([low, np.minimum(center + radius, 1.0)])


def _check_model(model: Any) -> None:
    """Refuse models for which the formula does not hold."""
    # The one with folds has several strengths of its penalty.
    folded = isinstance(model, LogisticRegressionCV)
    if folded or not isinstance(model, LogisticRegression):
        rule = "be a sklearn.linear_model.LogisticRegression"
        refuse("model", rule, type(model).__name__, TypeError)
    check_is_fitted(model)
    if len(model.classes_) != 2:
        refuse("model", "know two classes", len(model.classes_))
    if model.penalty not in ("deprecated", "l2", None) or model.l1_ratio:
        rule = "have an L2 penalty or none"
        refuse("model", rule, f"penalty={model.penalty!r}, l1_ratio={model.l1_ratio!r}")
    if model.class_weight is not None:
        rule = "have no `class_weight`, which is no number of repetitions"
        refuse("model", rule, f"{model.class_weight!r}")


def _penalty(model: LogisticRegression) -> Float64Array:
    """Return second derivatives (n_features + 1,) of the penalty, intercept first."""
    # scikit-learn minimises C * loss + |coef|^2 / 2. Only the intercept of liblinear is
    # a feature of constant value, so only it is penalised.
    ridge = np.full(1 + model.coef_.shape[1], 1.0 / model.C)
    free = model.solver != "liblinear" or not model.fit_intercept
    ridge[0] = 0.0 if free else ridge[0] / model.intercept_scaling**2
    return np.zeros_like(ridge) if model.penalty is None else ridge


def _pseudo_inverse(hessian: Float64Array) -> Float64Array:
    """Invert a positive semidefinite matrix, whose columns may repeat in any unit."""
    # Use units of its own diagonal, so that the rank is judged alike for columns of any
    # size.
    unit = np.sqrt(np.diag(hessian))
    unit[unit == 0.0] = 1.0
    units = np.outer(unit, unit)
    return np.asarray(pinvh(hessian / units) / units)


def _design(model: LogisticRegression, X: ArrayLike, name: str) -> Float64Array:
    """Return rows with the intercept's column in front, shape (n, n_features + 1)."""
    table = as_numbers(X, name)
    n_features = model.coef_.shape[1]
    if table.ndim != 2 or table.shape[1] != n_features or not len(table):
        rule = f"have shape (n, {n_features}) as in the fit of `model`, n >= 1"
        refuse(name, rule, f"shape {table.shape}")
    if hasattr(model, "feature_names_in_"):
        validate_data(model, X, reset=False, skip_check_array=True)
    check_finite(table, name)
    constant = 1.0 if model.fit_intercept else 0.0
    return np.column_stack([np.full(len(table), constant), table])
