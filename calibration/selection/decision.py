"""A proposal against its reference: who answers, and the report of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibration.selection.report import AutoReport, CandidateScore
from calibration.selection.row_losses import RowLosses
from calibration.typing import Float64Array


def decide(
    method: str,
    names: Sequence[str],
    candidates: Sequence[RowLosses],
    weights: Float64Array,
    proposal: RowLosses,
    max_harm: float,
) -> tuple[Float64Array, AutoReport]:
    """Take a proposal that is hardly worse than the reference, or the reference.

    Parameters
    ----------
    method : {"stack", "select"}
        How the proposal was made.
    names : sequence of str
        Of the candidates, the reference first.
    candidates : sequence of RowLosses
    weights : ndarray of shape (c,)
        Of the candidates in the proposal.
    proposal : RowLosses
    max_harm : float
        Probability of harm from which on the reference is taken; 1 takes all.

    Returns
    -------
    weights : ndarray of shape (c,)
        Those of the answer.
    report : AutoReport
    """
    alone = _all_on_first(len(names))
    harm = proposal.harm(candidates[0])
    # `max_harm` 1 must take a proposal whose harm rounds to 1, too.
    accepted = harm < max_harm or max_harm == 1.0
    accepted = accepted and not bool((weights == alone).all())
    weights = weights if accepted else alone
    scores = {
        name: CandidateScore(
            one.mean, one.error, one.harm(candidates[0]), float(weight)
        )
        for name, one, weight in zip(names, candidates, weights, strict=True)
    }
    found = CandidateScore(proposal.mean, proposal.error, harm, float(accepted))
    return weights, AutoReport(method, names[0], scores, found)


def decide_blindly(
    method: str, names: Sequence[str]
) -> tuple[Float64Array, AutoReport]:
    """Take the reference where there are too few rows to hold any out.

    Parameters
    ----------
    method : {"stack", "select"}
    names : sequence of str

    Returns
    -------
    weights : ndarray of shape (c,)
    report : AutoReport
    """
    alone = _all_on_first(len(names))
    unknown = {
        name: CandidateScore(np.nan, np.nan, np.nan, float(weight))
        for name, weight in zip(names, alone, strict=True)
    }
    proposal = CandidateScore(np.nan, np.nan, np.nan, 0.0)
    return alone, AutoReport(method, names[0], unknown, proposal)


def _all_on_first(n: int) -> Float64Array:
    """Return weights that are all on the first of n candidates."""
    return np.eye(1, n).ravel()
