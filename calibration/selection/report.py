"""What `AutoCalibrator` chooses by held-out trials, and has to say of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.multiclass.held_out import simplest_of_best
from calibration.selection.pool import pool_logs
from calibration.selection.trials import Rows, Trials
from calibration.typing import Float64Array

# Nats that each weight of a proposal costs, of more than two classes: it is judged on
# the rows that it was learned on. Half of what AIC charges, as a ridge holds it.
_CHARGE = 0.5


@dataclass(frozen=True)
class CandidateScore:
    """What a candidate scored on held-out rows.

    Parameters
    ----------
    log_loss : float
        Mean log loss; nan where there were too few rows to hold any out. Of a
        candidate without hope it is told by the first fold, from its difference to
        the reference.
    standard_error : float
        Its standard error.
    probability_of_harm : float
        Probability that it is worse than the reference.
    weight : float
        Weight of its log-odds in the answer.

    Examples
    --------
    >>> from calibration.selection.report import CandidateScore
    >>> CandidateScore(0.31, 0.02, 0.07, 1.0).probability_of_harm
    0.07
    """

    log_loss: float
    standard_error: float
    probability_of_harm: float
    weight: float


@dataclass(frozen=True)
class AutoReport:
    """What each candidate scored, and what was made of it; its string is a table.

    Parameters
    ----------
    method : {"stack", "select"}
        How the proposal was made.
    reference : str
        Candidate that must not be done worse than: doing nothing ("identity"), or
        for real scores, which are no probabilities, the first candidate.
    candidates : dict of str to CandidateScore
        The simplest first. The weights are those of the answer.
    proposal : CandidateScore
        The stack, or the candidate selected; its `weight` is 1 if it became the
        answer and 0 if the reference did.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration.selection.auto import AutoCalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=500)
    >>> y = rng.uniform(size=500) < scores**2
    >>> report = AutoCalibrator("select").fit(scores, y).report_
    >>> report.chosen, report.accepted
    (('platt',), True)
    """

    method: str
    reference: str
    candidates: dict[str, CandidateScore]
    proposal: CandidateScore

    @property
    def accepted(self) -> bool:
        """Whether the proposal became the answer, and not the reference."""
        return self.proposal.weight == 1.0

    @property
    def chosen(self) -> tuple[str, ...]:
        """Names of the candidates with a weight in the answer."""
        return tuple(name for name, one in self.candidates.items() if one.weight > 0.0)

    def __str__(self) -> str:
        """Return the scores as a table."""
        kind = "the stack" if self.method == "stack" else "the candidate selected"
        verdict = f"{kind}, " + ("taken" if self.accepted else "turned down")
        width = max(len(verdict), *map(len, self.candidates))
        title = f"{'held-out':<{width}}  log loss   error  P(harm)  weight"
        lines = [_line(name, one, width) for name, one in self.candidates.items()]
        proposal = _line(verdict, self.proposal, width)
        return "\n".join([title, *lines, proposal, f"harm against {self.reference}"])


def _line(name: str, score: CandidateScore, width: int) -> str:
    """Return one row of the table."""
    return (
        f"{name:<{width}}  {score.log_loss:8.4f}  {score.standard_error:6.4f}  "
        f"{score.probability_of_harm:7.3f}  {score.weight:6.3f}"
    )


def choose(
    names: Sequence[str],
    trials: Trials | None,
    rows: Rows,
    method: str,
    max_harm: float,
) -> tuple[Float64Array, AutoReport]:
    """Propose candidates by their trials; take them if they are hardly a harm.

    Parameters
    ----------
    names : sequence of c str
        Of all candidates, the reference first.
    trials : Trials or None
        None where there were too few rows: the reference is taken.
    rows : Rows
        What was tried on.
    method : {"stack", "select"}
    max_harm : float
        Probability of harm from which on the reference is taken; 1 takes all.

    Returns
    -------
    weights : ndarray of shape (c,)
        Those of the answer.
    report : AutoReport
    """
    alone = np.eye(1, len(names)).ravel()
    if trials is None:
        unknown = {
            name: CandidateScore(np.nan, np.nan, np.nan, float(weight))
            for name, weight in zip(names, alone, strict=True)
        }
        proposal = CandidateScore(np.nan, np.nan, np.nan, 0.0)
        return alone, AutoReport(method, names[0], unknown, proposal)
    losses = [trials.losses(one) for one in trials.logs]
    if method == "stack":
        weights = trials.stack()
    else:
        weights = np.eye(len(losses))[simplest_of_best(losses, near=1.0)]
    pooled = losses[0]
    if is_proposal := bool(weights[0] != 1.0 or weights[1:].any()):
        pooled = trials.losses(rows.limit(pool_logs(weights, trials.logs)))
    charge = 0.0
    if len(trials.weight) > 2:
        charge = _CHARGE * np.count_nonzero(weights[1:])
    harm = pooled.harm(losses[0], charge)
    # `max_harm` 1 must take a proposal whose harm rounds to 1, too.
    accepted = is_proposal and (harm < max_harm or max_harm == 1.0)
    found = dict(zip(trials.names, weights.tolist(), strict=True))
    answer = np.array([found.get(name, 0.0) for name in names]) if accepted else alone
    of_all = dict(zip(trials.names, losses, strict=True))
    scores = {}
    for name, weight in zip(names, answer.tolist(), strict=True):
        one, other = trials.given_up.get(name) or (of_all[name], losses[0])
        mean = losses[0].mean + one.less(other).mean
        scores[name] = CandidateScore(mean, one.error, one.harm(other), weight)
    verdict = CandidateScore(pooled.mean, pooled.error, harm, float(accepted))
    return answer, AutoReport(method, names[0], scores, verdict)
