"""Forecasts, priors and labels as they are given, read and checked."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from calibration._validation import (
    as_numbers,
    check_columns,
    check_labels,
    check_number,
    check_probabilities,
    check_rows,
    check_same_length,
    check_weights,
    show,
)
from calibration.typing import Float64Array, Int64Array

# Of the sum of a prior.
_ROUNDING = 1e-6


def read_forecasts(p: ArrayLike, name: str) -> Float64Array:
    """Return probabilities (n,) of class 1, or (n, k)."""
    numbers = as_numbers(p, name)
    if numbers.ndim < 2 or numbers.shape[1:] == (1,):
        return check_probabilities(numbers, name)
    return check_rows(numbers, name)


def read_prior(prior: ArrayLike, name: str, rows: Float64Array) -> Float64Array:
    """Return the prior of each class, shape (k,), positive and of sum 1."""
    if rows.ndim == 1:
        if isinstance(prior, np.ndarray) and prior.size == 1:
            prior = prior.item()
        share = check_number(prior, name, 0.0, 1.0, open_low=True, open_high=True)
        return np.array([1.0 - share, share])
    shares = as_numbers(prior, name)
    if shares.shape != rows.shape[1:]:
        msg = (
            f"`{name}` must hold a prior for each of the {rows.shape[1]} classes, got "
            f"shape {shares.shape}."
        )
        raise ValueError(msg)
    bad = ~((shares > 0.0) & (shares < 1.0))
    if bad.any():
        msg = f"`{name}` must lie in (0, 1), got {show(shares[bad][0])}."
        raise ValueError(msg)
    total = float(shares.sum())
    if abs(total - 1.0) > _ROUNDING:
        msg = f"`{name}` must sum to 1, got a sum of {show(total)}."
        raise ValueError(msg)
    return shares


def read_labelled_rows(
    p_old: ArrayLike,
    y_old: ArrayLike,
    rows: Float64Array,
    sample_weight: ArrayLike | None = None,
) -> tuple[Float64Array, Int64Array, Float64Array]:
    """Return forecasts and columns of rows with labels, two of each class or more.

    Parameters
    ----------
    p_old : array-like of shape (m,) or (m, k)
    y_old : array-like of shape (m,)
    rows : ndarray of shape (n,) or (n, k)
        Forecasts whose kind they must be of.
    sample_weight : array-like of shape (m,), optional
        Numbers of repetitions; rows of weight 0 are left out.

    Returns
    -------
    forecasts : ndarray of shape (m,) or (m, k)
    columns, weight : ndarrays of shape (m,)
    """
    held = read_forecasts(p_old, "p_old")
    if held.shape[1:] != rows.shape[1:]:
        msg = (
            f"`p_old` must have the columns of `p`, shape {rows.shape}, got shape "
            f"{held.shape}."
        )
        raise ValueError(msg)
    k = 2 if held.ndim == 1 else held.shape[1]
    if held.ndim == 1:
        columns = check_labels(y_old, "y_old").astype(np.int64)
    else:
        columns = check_columns(y_old, k, None, "y_old")
    check_same_length(len(held), "`p_old`", len(columns), "y_old")
    weight = check_weights(sample_weight, len(columns), "sample_weight_old")
    counts = np.bincount(columns, weights=weight, minlength=k)
    if counts.min() < 2.0:
        j = int(np.argmin(counts))
        msg = f"`y_old` must hold every class twice or more, got {counts[j]:g} of {j}."
        raise ValueError(msg)
    kept = weight > 0.0
    return held[kept], columns[kept], weight[kept]


def class_ratios(rows: Float64Array, prior: Float64Array) -> Float64Array:
    """Return densities of the classes, shape (n, k), up to a factor of the row."""
    table = np.column_stack([1.0 - rows, rows]) if rows.ndim == 1 else rows
    # The greatest of a row is 1, whatever the prior: nothing overflows.
    with np.errstate(divide="ignore"):
        logs = np.log(table) - np.log(prior)
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))
