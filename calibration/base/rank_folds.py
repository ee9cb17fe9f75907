"""Folds of a summary whose rows are dealt by rank, each with what is left to learn."""

from __future__ import annotations

import numpy as np

from calibration.summary import ScoreSummary
from calibration.typing import Float64Array


def deal_by_rank(
    cells: ScoreSummary, n_folds: int, random_state: int | None
) -> list[tuple[ScoreSummary, ScoreSummary]]:
    """Return (rest, fold) pairs of a summary, those whose rest holds both classes.

    `ScoreSummary.split` deals by a hash of the score. Here rows are dealt by the rank
    of their cell, so that folds do not depend on the unit of the scores, nor on the
    last digit of a logit.

    Parameters
    ----------
    cells : ScoreSummary
    n_folds : int
    random_state : int or None

    Returns
    -------
    list of (ScoreSummary, ScoreSummary)
        Empty for rows too few for two folds.
    """
    ranks = np.arange(cells.n_cells, dtype=np.float64)
    ranked = ScoreSummary(ranks, cells.weight0, cells.weight1)
    folds = ranked.split(n_folds, random_state)
    pairs = []
    for fold in folds if len(folds) > 1 else []:
        rest = ranked - fold
        if min(rest.n0, rest.n1) > 0.0:
            pairs.append((_at(rest, cells.scores), _at(fold, cells.scores)))
    return pairs


def _at(part: ScoreSummary, scores: Float64Array) -> ScoreSummary:
    """Return a summary of ranks as one of the scores that have these ranks."""
    held = scores[part.scores.astype(np.int64)]
    return ScoreSummary(held, part.weight0, part.weight1)
