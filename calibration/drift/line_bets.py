"""`LineBets`: evidence that a line of the log-odds, learned earlier, fits better."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import log_expit

from calibration._kernels.logistic import LogisticProblem
from calibration.base.log_odds import solve_logistic
from calibration.drift.binary_rows import summarise
from calibration.drift.onset_mixture import OnsetMixture
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

# Cells of the rows that a line is learned from, and the strength of its prior.
_CELLS, _PULL = 200, 25.0


@dataclass
class LineBets:
    r"""An e-process against all shifts within the tolerance, row by row.

    The line a + b f of the log-odds f is learned on earlier batches, older ones
    counting less. A row's factor is the likelihood of the line's log-odds over that of
    the nearest in :math:`f \pm \tau \max(1, |f|)`. Its mean is at most 1 whatever the
    row's log-odds in that range are: it is 1 at the near end, and less further in.

    Parameters
    ----------
    tolerance : float
    memory : float
        Rows after which a row counts half.
    mixture : OnsetMixture
    line : ndarray of shape (2,)
        Intercept and slope that are bet on next.
    recent : ScoreSummary or None
        Rows that the line was learned from.
    """

    tolerance: float
    memory: float
    mixture: OnsetMixture = field(default_factory=lambda: OnsetMixture(np.zeros(1)))
    line: Float64Array = field(default_factory=lambda: np.array([0.0, 1.0]))
    recent: ScoreSummary | None = None

    def step(self, f: Float64Array, cells: ScoreSummary) -> None:
        """Bet on the outcomes of a batch with log-odds f (n_cells,), then learn."""
        reach = self.tolerance * np.maximum(1.0, np.abs(f))
        said = self.line[0] + self.line[1] * f
        near = np.clip(said, f - reach, f + reach)
        gain1 = cells.weight1 @ (log_expit(said) - log_expit(near))
        gain0 = cells.weight0 @ (log_expit(-said) - log_expit(-near))
        self.mixture.step(np.array([gain1 + gain0]), cells.n)
        self._learn(f, cells)

    def _learn(self, f: Float64Array, cells: ScoreSummary) -> None:
        """Learn the next line from the rows so far, forgetting the older ones."""
        new = summarise(f, cells.weight0, cells.weight1, _CELLS)
        if self.recent is not None:
            new = self.recent * 0.5 ** (cells.n / self.memory) + new
        self.recent = new
        self.line = fit_line(new, _PULL)

    @property
    def log_e(self) -> float:
        """Logarithm of the e-value."""
        return self.mixture.log_value


def fit_line(cells: ScoreSummary, pull: float, *, slope: bool = True) -> Float64Array:
    """Return the line (2,) of the log-odds that fits best.

    Parameters
    ----------
    cells : ScoreSummary
        Of log-odds.
    pull : float
        Rows' worth of information that pull the line to the log-odds themselves.
    slope : bool
        False holds it at 1.
    """
    f = cells.scores
    penalty = np.array([pull, pull if slope else 1e12])
    problem = LogisticProblem(
        np.stack([np.ones(len(f)), f]),
        cells.weight0,
        cells.weight1,
        penalty,
        np.array([0.0, 1.0]),
    )
    return solve_logistic(problem)
