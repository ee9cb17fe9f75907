"""Scores as log-odds, calibrators that are a formula in them, and folds by rank."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from calibration._kernels.logistic import LogisticProblem, fit_logistic
from calibration._validation import refuse
from calibration.base.calibrators import Scale, ScoreCalibrator
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

# The gap between 1 and the float below it: no probability near 1 is resolved beyond.
_RESOLUTION = 2.0**-53
# Near 0 floats resolve far more. Log-odds beyond this keep their order, not their size.
_STRAIGHT = 53.0 * np.log(2.0)
_LEAST = float(np.finfo(np.float64).tiny)
# Scores that are no probabilities are taken as they are up to this size, and down to
# its inverse: their fourth powers are finite and do not vanish.
_LARGEST = 1e60
# Ridge of maximum likelihood: weak enough (a few thousandths of a row) to leave the
# estimate alone, strong enough to keep it finite where a threshold separates classes.
WEAK_RIDGE = 1e-3
# Rows that a sum of losses tells from one more.
_MOST_UNITS = 1e9
# A fit is started from a condensed summary where that saves passes over the data.
_START_CELLS = 1024


@dataclass(frozen=True)
class LogOddsScale:
    """Turns scores into the coordinate x of parametric maps.

    On the probability scale x = logit(s). First s is clipped to [lower, upper], so that
    0 and 1 have finite log-odds. The bound on log-odds is that of 2^-53, the least that
    1 - s resolves too. Log-odds below it enter as that bound minus log(1 + excess):
    they keep their order and lose their leverage. On the other two scales x = s / unit,
    clipped to [-1e60, 1e60].

    Parameters
    ----------
    scale : {"probability", "logit", "real"}
    lower, upper : float
        Clipping bounds of the probability scale.
    unit : float
        1 unless the scores are mostly beyond 1e60, or below 1e-60.
    """

    scale: Scale
    lower: float = _LEAST
    upper: float = 1.0 - _RESOLUTION
    unit: float = 1.0

    @classmethod
    def of(cls, scale: Scale, summary: ScoreSummary) -> LogOddsScale:
        """Choose the clipping bounds for the scores of a summary.

        If a classifier says exactly 0 (a forest, say), it means "less than my least
        positive score". It does not mean log-odds of -37, which would have all the
        leverage in a fit. So scores of 0 count as half of the least positive score, and
        scores of 1 likewise. Without exact zeros and ones the bound is what floats
        resolve.
        """
        if scale != "probability":
            return cls(scale, unit=_unit_of(summary.scores))
        inner = summary.scores[(summary.scores > 0.0) & (summary.scores < 1.0)]
        # Hard labels have no inner score: count 0 and 1 as one success in n + 1.
        half = 0.5 / (summary.n + 1.0)
        # Half of the least positive score: "less than that", as an assay's value below
        # its limit of detection is read.
        low = 0.5 * inner[0] if len(inner) else half
        high = 0.5 * (1.0 - inner[-1]) if len(inner) else half
        has_zero, has_one = summary.scores[0] == 0.0, summary.scores[-1] == 1.0
        return cls(
            scale,
            max(float(low), _LEAST) if has_zero else _LEAST,
            1.0 - (max(float(high), _RESOLUTION) if has_one else _RESOLUTION),
        )

    def __call__(self, scores: Float64Array) -> Float64Array:
        """Return x of each score, shape (n,)."""
        if self.scale != "probability":
            # Of ends that overflow there is nothing to clip.
            end = _LARGEST * self.unit
            return np.clip(np.clip(scores, -end, end) / self.unit, -_LARGEST, _LARGEST)
        x: Float64Array = logit(np.clip(scores, self.lower, self.upper))
        # Only downwards: 1 - s resolves no more than 2^-53, so x never lies above
        # -_STRAIGHT's mirror image.
        excess = np.maximum(-_STRAIGHT - x, 0.0)
        return np.where(excess > 0.0, -_STRAIGHT - np.log1p(excess), x)


def _unit_of(scores: Float64Array) -> float:
    """Return 1, or near their median size where scores are extreme as a whole.

    Refuse one that is too far out for the unit of the others.
    """
    sizes = np.sort(np.abs(scores[scores != 0.0]))
    # The lower of two in the middle: their sum may overflow.
    size = float(sizes[(len(sizes) - 1) // 2]) if len(sizes) else 1.0
    # A power of 2: dividing by it rounds nothing.
    is_extreme = not 1.0 / _LARGEST <= size <= _LARGEST
    unit = float(2.0 ** (np.frexp(size)[1] - 1)) if is_extreme else 1.0
    if len(sizes) and sizes[-1] / _LARGEST > unit:
        far = scores[np.argmax(np.abs(scores))]
        rule = f"lie within {_LARGEST:g} times their median size, {size:g}"
        refuse("scores", rule, f"{far:g}")
    return unit


class LogOddsCalibrator(ScoreCalibrator):
    """Base of calibrators that are a formula for the log-odds of class 1.

    A subclass writes `_fit_formula` and `_log_odds(x)`, where x is the score on
    `scale_`. For degenerate data `constant_` holds the one log-odds of every score.
    """

    scale_: LogOddsScale
    constant_: float | None

    def __init__(self, *, scale: Scale = "probability"):
        self.scale = scale

    def predict_log_odds(self, scores: ArrayLike) -> Float64Array:
        """Return the calibrated log-odds of class 1, exact where P rounds to 1.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._evaluate(self._read_scores(scores))

    def _fit(self, summary: ScoreSummary) -> None:
        self._remember(summary, None)
        self._fit_formula(summary, self.scale_(summary.scores))

    def _fit_constant(self, summary: ScoreSummary, constant: float) -> None:
        self._remember(summary, float(logit(constant)))

    def _remember(self, summary: ScoreSummary, constant: float | None) -> None:
        # Learned in `fit` and kept: new scores must be moved as the old ones were.
        self.scale_ = LogOddsScale.of(self.scale, summary)
        self.constant_ = constant

    def _find_base_rate(self, summary: ScoreSummary, constant: float | None) -> float:
        # A formula may become constant on its own, where its x are all one.
        if self._learns and self.constant_ is not None:
            constant = float(expit(self.constant_))
        return super()._find_base_rate(summary, constant)

    def _predict(self, values: Float64Array) -> Float64Array:
        return np.asarray(expit(self._evaluate(values)))

    def _answer_log_odds(self, values: Float64Array) -> Float64Array:
        return self._evaluate(values)

    def _evaluate(self, values: Float64Array) -> Float64Array:
        if self.constant_ is not None:
            return np.full(len(values), self.constant_)
        return self._log_odds(self.scale_(values))

    @abstractmethod
    def _fit_formula(self, summary: ScoreSummary, x: Float64Array) -> None:
        """Learn the formula from a summary whose cells lie at `x`."""

    @abstractmethod
    def _log_odds(self, x: Float64Array) -> Float64Array:
        """Return the formula's value at `x`."""


def limit_pull(
    ridge: Float64Array | float, distance: Float64Array | float
) -> Float64Array:
    """Return ridges that favour doing nothing by no more than a few rows can tell.

    A ridge r holds a coefficient to doing nothing. If the score says nothing, this
    costs r d^2 / 2 nats, where d is the distance from one to the other. Without a limit
    that is thousands of nats for naive Bayes's log-odds, whose deviation d is 100. For
    distances above 2 the cost is 2 nats, or 2 r for a ridge r > 1.

    Parameters
    ----------
    ridge : float or ndarray of shape (p,)
    distance : float or ndarray of shape (p,)
        From doing nothing to 0, in the unit in which the ridge is.

    Returns
    -------
    ndarray of shape (p,)
    """
    with np.errstate(divide="ignore", over="ignore"):
        most = 4.0 * np.maximum(ridge, 1.0) / np.square(distance)
    return np.asarray(np.minimum(ridge, most))


def fit_coefficients(
    columns: list[Float64Array],
    weight0: Float64Array,
    weight1: Float64Array,
    *,
    ridge: Float64Array | float,
    prior: Float64Array,
    powers: bool = False,
) -> tuple[float, Float64Array]:
    """Fit log-odds = intercept + coef' columns by penalised maximum likelihood.

    The penalty is half of sum_j ridge_j (sd_j (coef_j - prior_j))^2, sd_j the
    weighted standard deviation of column j, and no ridge holds to a prior that is far
    from 0 by more than `limit_pull` allows: a ridge of 1 weighs like about four rows,
    whatever the unit of the scores. The intercept is free, so that the mean prediction
    keeps the base rate.

    Parameters
    ----------
    columns : list of p ndarrays of shape (n_cells,)
    weight0, weight1 : ndarrays of shape (n_cells,)
    ridge : float or ndarray of shape (p,)
    prior : ndarray of shape (p,)
    powers : bool
        Whether columns are powers of the first. Each then counts as spread by at least
        half that power of the first one's deviation. The square of scores that are all
        alike in size varies by rounding alone.

    Returns
    -------
    intercept : float
    coef : ndarray of shape (p,)
    """
    weight = weight0 + weight1
    total = weight.sum()
    design = np.empty((len(columns) + 1, len(weight)))
    design[0] = 1.0
    center, spread = np.empty(len(columns)), np.empty(len(columns))
    for j, column in enumerate(columns):
        center[j] = weight @ column / total
        # Centred columns are at right angles to the intercept, so the penalty on the
        # others leaves the mean prediction alone; in units of their deviation they have
        # one ridge for all.
        np.subtract(column, center[j], out=design[j + 1])
        variance = np.einsum("i,i,i", design[j + 1], design[j + 1], weight) / total
        least = 0.5 * spread[0] ** (j + 1) if powers and j else 0.0
        # A constant column is zero from here on, in any unit.
        spread[j] = max(np.sqrt(variance), least) or 1.0
        design[j + 1] /= spread[j]
    scaled_prior = np.append(0.0, prior * spread)
    penalty = np.append(0.0, limit_pull(ridge, scaled_prior[1:]))
    problem = LogisticProblem(design, weight0, weight1, penalty, scaled_prior)
    theta = solve_logistic(problem)
    coef = theta[1:] / spread
    return float(theta[0] - coef @ center), coef


def unpenalised_loss(
    design: Float64Array, cells: ScoreSummary, theta: Float64Array
) -> float:
    """Return the logistic loss of the cells, summed by weight."""
    f = theta @ design
    losses0, losses1 = np.logaddexp(0.0, f), np.logaddexp(0.0, -f)
    return float(cells.weight1 @ losses1 + cells.weight0 @ losses0)


def limit_units(problem: LogisticProblem) -> LogisticProblem:
    """Return a problem of the same solution whose weights do not add up to too much.

    Steps are judged by the last digits of sums. With very many rows these are noise.
    """
    total = problem.weight0.sum() + problem.weight1.sum()
    if total <= _MOST_UNITS:
        return problem
    share = _MOST_UNITS / total
    return problem._replace(
        weight0=share * problem.weight0,
        weight1=share * problem.weight1,
        penalty=share * problem.penalty,
    )


def solve_logistic(problem: LogisticProblem) -> Float64Array:
    """Return the minimiser of the penalised logistic loss, from a warm start.

    The start is the solution on runs of cells summed together, which is close to
    the full one where there are many cells, and costs next to nothing.
    """
    problem = limit_units(problem)
    design, weight0, weight1 = problem[:3]
    m = design.shape[1]
    start = np.zeros(len(design))
    if m > 8 * _START_CELLS:
        runs = np.linspace(0, m, _START_CELLS, endpoint=False).astype(np.int64)
        sum0, sum1 = np.add.reduceat(weight0, runs), np.add.reduceat(weight1, runs)
        weight = weight0 + weight1
        # Each run at its mean row: close enough to start from.
        coarse = np.stack([np.add.reduceat(row * weight, runs) for row in design])
        coarse /= sum0 + sum1
        few = problem._replace(design=coarse, weight0=sum0, weight1=sum1)
        start = fit_logistic(few, start)[0]
    return fit_logistic(problem, start)[0]


def deal_by_rank(
    cells: ScoreSummary, n_folds: int, random_state: int | None
) -> list[tuple[ScoreSummary, ScoreSummary]]:
    """Return (rest, fold) pairs of a summary, those whose rest holds both classes.

    `ScoreSummary.split` assigns by a hash of the score. Here rows go to folds by the
    rank of their cell. So folds do not depend on the unit of the scores, nor on the
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
