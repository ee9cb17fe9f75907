"""What `AutoCalibrator` has to say of its choice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CandidateScore:
    """What a candidate scored on held-out rows.

    Parameters
    ----------
    log_loss : float
        Mean log loss; nan where there were too few rows to hold any out.
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
