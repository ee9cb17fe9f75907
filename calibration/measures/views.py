"""Forecasts of any number of classes as sets of binary ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation import check_choice, check_class_forecasts
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

View: TypeAlias = Literal["micro", "classwise", "top_label", "confidence"]


def part_forecasts(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    sample_weight: ArrayLike | None,
    classes: ArrayLike | None,
    view: View,
) -> Iterator[tuple[float, ScoreSummary]]:
    """Yield sets of binary forecasts, each with its share of a mean over the sets.

    Forecasts (n,) are one set already, whatever the view.

    Parameters
    ----------
    y_true : array-like of shape (n,)
    y_prob : array-like of shape (n,) or (n, k)
    sample_weight : array-like of shape (n,), optional
    classes : array-like of shape (k,), optional
    view : {"micro", "classwise", "top_label", "confidence"}

    Yields
    ------
    share : float
        The shares of all sets add up to 1.
    forecasts : ScoreSummary
        Distinct forecasts of the set, with the weights of what happened.
    """
    check_choice(view, "view", get_args(View))
    labels, forecasts, weights = check_class_forecasts(
        y_true, y_prob, sample_weight, classes
    )
    if forecasts.ndim == 1:
        yield 1.0, ScoreSummary.from_scores(forecasts, labels, weights)
    elif view == "micro":
        k = forecasts.shape[1]
        hits = labels[:, None] == np.arange(k)
        # Their sum stays below 2^53; a power of two rounds nothing.
        unit = 2.0 ** np.ceil(np.log2(k))
        repeated = None if sample_weight is None else np.repeat(weights / unit, k)
        yield 1.0, ScoreSummary.from_scores(forecasts.ravel(), hits.ravel(), repeated)
    elif view == "classwise":
        for column, chances in enumerate(forecasts.T):
            hits = labels == column
            share = 1.0 / forecasts.shape[1]
            yield share, ScoreSummary.from_scores(chances, hits, weights)
    else:
        yield from _part_winners(
            labels, forecasts, weights, by_label=view != "confidence"
        )


def _part_winners(
    labels: NDArray[Any],
    forecasts: Float64Array,
    weights: Float64Array,
    *,
    by_label: bool,
) -> Iterator[tuple[float, ScoreSummary]]:
    """Yield the greatest chance of each row with whether it was right."""
    top = np.argmax(forecasts, axis=1)
    chances, hits = forecasts[np.arange(len(top)), top], labels == top
    if not by_label:
        yield 1.0, ScoreSummary.from_scores(chances, hits, weights)
        return
    total = weights.sum()
    for label in np.unique(top[weights > 0.0]):
        rows = top == label
        share = float(weights[rows].sum() / total)
        yield share, ScoreSummary.from_scores(chances[rows], hits[rows], weights[rows])
