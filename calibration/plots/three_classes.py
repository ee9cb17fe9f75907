"""Scores of three classes as a calibrator takes them, and what it makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from calibration._validation import as_numbers, check_rows, check_table
from calibration.typing import Float64Array


def read_scores(
    calibrator: Any, scores: ArrayLike
) -> tuple[Float64Array, Float64Array]:
    """Return scores as the calibrator takes them, and as probabilities."""
    table = as_numbers(scores, "scores")
    if table.ndim != 2 or table.shape[1] != 3:
        msg = (
            "`scores` must have shape (n, 3), a column for each corner of a triangle, "
            f"got shape {table.shape}."
        )
        raise ValueError(msg)
    if _takes_logits(calibrator):
        return table, softmax(check_table(table, "scores"), axis=1)
    return table, check_rows(table, "scores")


def as_scores(calibrator: Any, probabilities: Float64Array) -> Float64Array:
    """Return probabilities as scores of a calibrator."""
    if _takes_logits(calibrator):
        return np.log(probabilities)
    return probabilities


def predict_rows(calibrator: Any, table: Float64Array) -> Float64Array:
    """Return the calibrated probabilities, which must be rows for rows."""
    if not callable(getattr(calibrator, "predict", None)):
        msg = (
            "`calibrator` must have a method predict(scores), "
            f"got {type(calibrator).__name__}."
        )
        raise TypeError(msg)
    after = check_rows(calibrator.predict(table), "calibrator.predict(scores)")
    if after.shape != table.shape:
        msg = (
            f"`calibrator.predict(scores)` must have the shape of its scores, "
            f"{table.shape}, got shape {after.shape}."
        )
        raise ValueError(msg)
    return after


def _takes_logits(calibrator: Any) -> bool:
    """Say whether scores are logits to a calibrator; others take probabilities."""
    return bool(getattr(calibrator, "scale", "probability") == "logit")
