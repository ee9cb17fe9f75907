"""`Advice`: what to do about a calibrator, and the evidence for it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import entr, log_expit, logit

from calibration._kernels.logistic import LogisticProblem
from calibration.base.log_odds import solve_logistic
from calibration.exceptions import CalibrationWarning
from calibration.monotone.isotonic import IsotonicCalibrator
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

#: What can be done, the least first.
ACTIONS = ("nothing", "shift", "shift and slope", "recalibrate", "refit")
# Rows' worth of information that pull a correction to none; folds that judge it.
_PULL, _FOLDS = 4.0, 5
# And information that holds a slope where it is.
_FIXED = 1e12
# Nats by which more must be better than less.
_WORTH = 2.0
# Share of the promised information below which the scores themselves have aged, and
# rows that it takes to say so.
_LEAST_SHARE, _LEAST_ROWS = 0.5, 200.0


@dataclass(frozen=True)
class Advice:
    """What to do, and why.

    Parameters
    ----------
    action : {"nothing", "shift", "shift and slope", "recalibrate", "refit"}
        The least that helps.
    evidence : dict of str to float
        What each of the first four gains in log-likelihood, in nats, over doing
        nothing, on rows since the onset that it was not learned from.
    n : float
        Rows since the onset.
    offset, slope : float
        The line that corrects the log-odds of these rows; of whole distributions the
        mean and standard deviation of the normal scores of the transforms.
    delivered : float
        Information that the forecasts carry on these rows, once corrected, over what
        they promise; below one half they are to be refitted. NaN where there are too
        few rows to tell.

    Examples
    --------
    >>> from calibration import CalibrationMonitor
    >>> monitor = CalibrationMonitor().fit([0.2, 0.7, 0.6, 0.9] * 20, [0, 1, 0, 1] * 20)
    >>> monitor.advise().action
    'nothing'
    """

    action: str
    evidence: dict[str, float]
    n: float
    offset: float
    slope: float
    delivered: float


def choose_action(evidence: dict[str, float], delivered: float, *, alarm: bool) -> str:
    """Return the least action that is as good as the best, by 2 nats."""
    if not alarm:
        return ACTIONS[0]
    if delivered < _LEAST_SHARE:
        return ACTIONS[-1]
    best = max(evidence[name] for name in ACTIONS[1:-1])
    return next(name for name in ACTIONS[1:] if evidence[name] >= best - _WORTH)


def held_out_gains(cells: ScoreSummary) -> dict[str, float]:
    """Return what each correction gains, in nats, on rows it has not learned from."""
    gains = dict.fromkeys(ACTIONS[:-1], 0.0)
    if cells.n < 2.0 * _FOLDS:
        return gains
    for fold in cells.split(_FOLDS, 0):
        try:
            rest = cells - fold
        except ValueError:  # all rows are in one fold
            return gains
        base = log_likelihood(fold, fold.scores)
        for name, moved in _correct(rest, fold.scores).items():
            gains[name] += log_likelihood(fold, moved) - base
    return gains


def _correct(rest: ScoreSummary, f: Float64Array) -> dict[str, Float64Array]:
    """Return log-odds (n,) by each correction that the rest of the rows teaches."""
    shift, line = fit_line(rest, slope=False), fit_line(rest)
    with warnings.catch_warnings():
        # One class only: its constant is an answer like any other.
        warnings.simplefilter("ignore", CalibrationWarning)
        isotonic = IsotonicCalibrator(scale="logit").fit_summary(rest)
    least = 1.0 / (rest.n + 2.0)
    return {
        "shift": f + shift[0],
        "shift and slope": line[0] + line[1] * f,
        "recalibrate": logit(np.clip(isotonic.predict(f), least, 1.0 - least)),
    }


def fit_line(cells: ScoreSummary, *, slope: bool = True) -> Float64Array:
    """Return the line (2,) of the log-odds that fits best.

    Parameters
    ----------
    cells : ScoreSummary
        Of log-odds.
    slope : bool
        False holds it at 1.
    """
    f = cells.scores
    problem = LogisticProblem(
        np.stack([np.ones(len(f)), f]),
        cells.weight0,
        cells.weight1,
        np.array([_PULL, _PULL if slope else _FIXED]),
        np.array([0.0, 1.0]),
    )
    return solve_logistic(problem)


def log_likelihood(cells: ScoreSummary, f: Float64Array) -> float:
    """Return the log-likelihood of the rows of cells that have log-odds f."""
    return float(cells.weight1 @ log_expit(f) + cells.weight0 @ log_expit(-f))


def delivered_share(cells: ScoreSummary, evidence: dict[str, float]) -> float:
    r"""Return the information that scores carry over what they promise.

    Promised, were they calibrated, is :math:`h(\bar p) - \overline{h(p)}` a row, h the
    entropy of a coin; carried is :math:`h(\bar y)` less the log loss after the
    correction that gains the most.
    """
    if cells.n < _LEAST_ROWS or min(cells.n0, cells.n1) == 0.0:
        return float("nan")
    p = np.exp(log_expit(cells.scores))
    weight = cells.weight / cells.n
    promised = _coin(weight @ p) - weight @ _coin(p)
    gained = log_likelihood(cells, cells.scores) + max(evidence.values())
    loss = -gained / cells.n
    if promised <= 0.0:
        return float("nan")
    return float((_coin(np.asarray(cells.base_rate)) - loss) / promised)


def _coin(p: Float64Array) -> Float64Array:
    """Entropy of coins, in nats."""
    return np.asarray(entr(p) + entr(1.0 - p))


def gather(
    parts: Sequence[ScoreSummary],
    *,
    least: float | None = None,
    max_cells: int | None = None,
) -> ScoreSummary:
    """Return one summary of the rows of several.

    Parameters
    ----------
    parts : sequence of ScoreSummary
    least : float, optional
        Makes probabilities log-odds, of which none is surer.
    max_cells : int, optional
    """
    p, weight0, weight1 = np.hstack(
        [[one.scores, one.weight0, one.weight1] for one in parts]
    )
    scores = p if least is None else logit(np.clip(p, least, 1.0 - least))
    labels = np.repeat([0.0, 1.0], len(p))
    weight = np.append(weight0, weight1)
    return ScoreSummary.from_scores(
        np.tile(scores, 2), labels, weight, max_cells=max_cells
    )
