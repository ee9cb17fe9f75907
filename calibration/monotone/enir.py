"""Near-isotonic regression, its path of solutions, and the ensemble of them (ENIR)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibration._kernels.near_isotonic import (
    MergeTree,
    average_nodes,
    blocks_at,
    fuse_equal,
    log_likelihoods,
    trace_path,
)
from calibration._kernels.pav import pool_adjacent_violators
from calibration._validation import (
    check_flag,
    check_number,
    check_same_length,
    check_vector,
)
from calibration.base.calibrators import MapCalibrator, Scale
from calibration.maps import CalibrationMap, block_starts
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array, Int64Array

# The solutions that are left out weigh less than this together.
_NEGLIGIBLE = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class NearIsotonicPath:
    r"""Near-isotonic regression of the labels at every penalty at once.

    Build it with `from_summary`.

    Parameters
    ----------
    weight0, weight1 : ndarrays of shape (n_cells,)
        Weight of each class in the cells, by increasing score.
    penalties : ndarray of shape (n_steps,)
        The breakpoints: increasing penalties at which blocks merge. From the last one
        on, the solution is the isotonic regression. If the labels increase from the
        start, the only breakpoint is 0.
    n_blocks : ndarray of shape (n_steps,)
        Number of blocks of the solution at each breakpoint.
    run_starts : ndarray of shape (n_runs,)
        First cell of each run of equal neighbours. They move as one.
    tree : MergeTree
        All blocks, and which block merges into which.

    Notes
    -----
    Let y be the event rates and w the weights of the cells. The solution at penalty
    :math:`\lambda` minimises

    .. math:: \tfrac12 \sum_i w_i (y_i - b_i)^2
        + \lambda \sum_i \max(b_i - b_{i+1}, 0).

    Between breakpoints every block is a line in :math:`\lambda` of slope (1{it lies
    below the block before} - 1{it lies above the block after}) / weight. Blocks that
    meet never part, so the whole path is one forest of blocks. It takes O(n log n) time
    and O(n) memory.

    References
    ----------
    Tibshirani, Hoefling & Tibshirani (2011), Nearly-isotonic regression.

    Examples
    --------
    >>> from calibration import ScoreSummary
    >>> from calibration.monotone.enir import NearIsotonicPath
    >>> summary = ScoreSummary.from_scores([0.1, 0.2, 0.3, 0.4], [1, 1, 0, 1])
    >>> path = NearIsotonicPath.from_summary(summary)
    >>> path.penalties.round(3), path.n_blocks
    (array([0.667]), array([2]))
    >>> path.solution(0.1)
    array([0.95, 0.95, 0.1 , 1.  ])
    >>> path.violation(path.solution(0.1), 0.1) < 1e-12
    True
    >>> round(path.violation([1.0, 0.9, 0.1, 1.0], 0.1), 3)  # not a solution
    0.1
    """

    weight0: Float64Array
    weight1: Float64Array
    penalties: Float64Array
    n_blocks: Int64Array
    run_starts: Int64Array
    tree: MergeTree

    @classmethod
    def from_summary(cls, summary: ScoreSummary) -> NearIsotonicPath:
        """Trace the path of a summary of scores and labels.

        Parameters
        ----------
        summary : ScoreSummary

        Returns
        -------
        NearIsotonicPath
        """
        weight0, weight1 = summary.weight0, summary.weight1
        run_starts, ones, weight = fuse_equal(weight0, weight1)
        tree, penalties, n_blocks = trace_path(ones, weight)
        return cls(weight0, weight1, penalties, n_blocks, run_starts, tree)

    def __repr__(self) -> str:
        return (
            f"NearIsotonicPath(n_cells={len(self.weight0)}, "
            f"n_steps={len(self.penalties)}, penalty up to {self.penalties[-1]:.4g}, "
            f"n_blocks from {len(self.run_starts)} to {self.n_blocks[-1]})"
        )

    def solution(self, penalty: float) -> Float64Array:
        """Return the value of every cell at a penalty, in O(n_cells).

        Parameters
        ----------
        penalty : float
            At least 0. The solution at 0 is the event rates of the cells.

        Returns
        -------
        ndarray of shape (n_cells,)
        """
        penalty = check_number(penalty, "penalty", 0.0)
        step = int(np.searchsorted(self.penalties, penalty, side="right")) - 1
        nodes, runs = blocks_at(self.tree, step)
        # Beyond the last breakpoint no block moves, so no penalty is too large.
        reach = min(penalty, float(self.penalties[-1]))
        ones = self.tree.ones[nodes] + reach * self.tree.pull[nodes]
        sizes = np.diff(self.run_starts[runs], append=len(self.weight0))
        return np.repeat(ones / self.tree.weight[nodes], sizes)

    def violation(self, values: ArrayLike, penalty: float) -> float:
        r"""Return the greatest breach of the conditions of optimality, in O(n).

        Parameters
        ----------
        values : array-like of shape (n_cells,)
            Values of the cells, from any source.
        penalty : float
            At least 0.

        Returns
        -------
        float
            0 up to rounding if and only if `values` is the solution at `penalty`. The
            running sums :math:`u_k = \sum_{i \le k} w_i (y_i - b_i)` must lie in
            :math:`[0, \lambda]`. They must be :math:`\lambda` where values fall from
            cell k to the next, and 0 where they rise and at the end. The unit is that
            of weights.
        """
        checked = check_vector(values, "values")
        check_same_length(len(self.weight0), "the cells", len(checked), "values")
        penalty = check_number(penalty, "penalty", 0.0)
        # Use wide sums, because rounding must not pass for a violation if there are
        # many cells.
        weight = self.weight0 + self.weight1
        running = np.cumsum(self.weight1 - weight * checked, dtype=np.longdouble)
        low = penalty * np.append(checked[:-1] > checked[1:], False)
        high = penalty * np.append(checked[:-1] >= checked[1:], False)
        return float(np.maximum(low - running, running - high).max(initial=0.0))

    def log_likelihood(self, steps: Int64Array) -> Float64Array:
        """Return the Bernoulli log-likelihood of the labels at some breakpoints.

        Probabilities are clipped to [1 / (2n + 2), 1 - 1 / (2n + 2)].

        Parameters
        ----------
        steps : ndarray of int, shape (k,)
            Positions in `penalties`.

        Returns
        -------
        ndarray of shape (k,)
            They never increase along the path. If the penalty grows, the value of each
            block moves away from its event rate.
        """
        floor = 0.5 / (float(self.weight0.sum() + self.weight1.sum()) + 1.0)
        return log_likelihoods(self.tree, steps, self.penalties[steps], floor)

    def bic_weights(self) -> tuple[Int64Array, Float64Array]:
        r"""Return the breakpoints' weights by the Bayesian information criterion.

        Returns
        -------
        steps : ndarray of int, shape (k,)
            Positions in `penalties` of the solutions that matter. The weights of all
            others add up to less than 1e-12.
        weights : ndarray of shape (k,)
            Proportional to :math:`\exp(-BIC / 2)`, with a parameter per block.

        Notes
        -----
        The likelihood never increases along the path. Take two breakpoints whose
        likelihoods are known. Between them, no likelihood is above that of the first,
        and no solution has fewer blocks than the last. If that bound is too low to
        matter, no breakpoint between them is evaluated. Otherwise the middle one is
        evaluated, and so on.
        """
        n = float(self.weight0.sum() + self.weight1.sum())
        # A parameter costs log(n) / 2. With less than one row, it must not become a
        # gain.
        charge = 0.5 * max(np.log(n), 0.0)
        least = np.log(_NEGLIGIBLE / len(self.penalties))
        steps = self._halvings()
        likelihood = self.log_likelihood(steps)
        while True:
            score = likelihood - charge * self.n_blocks[steps]
            best = score.max()
            bound = likelihood[:-1] - charge * self.n_blocks[steps[1:] - 1]
            wide = np.flatnonzero((np.diff(steps) > 1) & (bound >= best + least))
            if len(wide) == 0:
                break
            middle = (steps[wide] + steps[wide + 1]) // 2
            likelihood = np.insert(likelihood, wide + 1, self.log_likelihood(middle))
            steps = np.insert(steps, wide + 1, middle)
        kept = score >= best + least
        weights = np.exp(score[kept] - best)
        return steps[kept], weights / weights.sum()

    def average(
        self, steps: Int64Array, weights: Float64Array
    ) -> tuple[Int64Array, Float64Array]:
        """Return the weighted mean of the solutions at some breakpoints.

        No solution is formed. The cost is that of the finest solution.

        Parameters
        ----------
        steps : ndarray of int, shape (k,)
            Increasing positions in `penalties`.
        weights : ndarray of shape (k,)

        Returns
        -------
        starts : ndarray of int, shape (n_blocks,)
            First cell of each block of the first of the solutions.
        values : ndarray of shape (n_blocks,)
        """
        means = average_nodes(self.tree, steps, self.penalties[steps], weights)
        nodes, runs = blocks_at(self.tree, int(steps[0]))
        return self.run_starts[runs], means[nodes]

    def _halvings(self) -> Int64Array:
        """Return first and last step, and steps between where n_blocks about halves."""
        n_blocks = self.n_blocks
        goals = n_blocks[0] / 2.0 ** np.arange(np.log2(n_blocks[0] / n_blocks[-1]) + 1)
        steps = np.searchsorted(-n_blocks, -goals)
        last = len(n_blocks) - 1
        return np.unique(np.concatenate([[0], np.minimum(steps, last), [last]]))


class ENIRCalibrator(MapCalibrator):
    r"""Ensemble of near-isotonic regressions.

    Near-isotonic regressions allow some scores to be in the wrong order, at a price. If
    the price is zero, they are the event rates of the cells. If it is high, they are
    the isotonic regression. The calibrator averages over all prices.

    Parameters
    ----------
    monotone : bool
        Project the average on the increasing maps. This is the isotonic regression of
        its values. Each value weighs as much as the rows from which it was learned.
    scale : {"probability", "logit", "real"}
        What a score is. The fit depends on the order of scores only.

    Attributes
    ----------
    map_ : CalibrationMap
        The average, in steps. A step lies midway between the last score of one block
        and the first of the next.
    penalties_ : ndarray of shape (n_models,)
        Increasing penalties of the regressions that were averaged.
    n_blocks_ : ndarray of shape (n_models,)
        Their numbers of blocks.
    model_weights_ : ndarray of shape (n_models,)
        Their weights in the average, which add up to 1.

    Notes
    -----
    The models are the solutions at all breakpoints of `NearIsotonicPath`, except
    penalty 0 (unless the labels increase from the start). They are weighted by
    :math:`\exp(-BIC / 2)` with

    .. math:: BIC = -2 \sum_i [w_{1i} \log p_i + w_{0i} \log(1 - p_i)]
        + n_{blocks} \log n,

    where p is clipped to [1/(2n + 2), 1 - 1/(2n + 2)], and n is the sum of weights.
    Solutions that together weigh less than 1e-12 are left out. The value of a block is
    a line in the penalty, so the average needs only running sums of the weights and of
    weight times penalty. It takes O(n log n) time and O(n) memory.

    References
    ----------
    Pakdaman Naeini & Cooper (2016), Binary classifier calibration using an ensemble
    of near isotonic regression models. Pakdaman Naeini (2017), Obtaining accurate
    probabilities using classifier calibration, section 3.3.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration.monotone.enir import ENIRCalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=5000)
    >>> p = 0.5 + 0.4 * np.sin(8 * scores)  # the order of scores is wrong at times
    >>> enir = ENIRCalibrator().fit(scores, rng.uniform(size=5000) < p)
    >>> bool(np.sqrt(np.mean((enir.predict(scores) - p) ** 2)) < 0.05)
    True
    """

    penalties_: Float64Array
    n_blocks_: Int64Array
    model_weights_: Float64Array

    def __init__(self, *, monotone: bool = False, scale: Scale = "probability"):
        self.monotone = monotone
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_flag(self.monotone, "monotone")

    def _fit(self, summary: ScoreSummary) -> None:
        path = NearIsotonicPath.from_summary(summary)
        steps, self.model_weights_ = path.bic_weights()
        self.penalties_, self.n_blocks_ = path.penalties[steps], path.n_blocks[steps]
        first, values = path.average(steps, self.model_weights_)
        if self.monotone:
            weight = np.add.reduceat(summary.weight, first)
            # Each value counts as that many rows of each class, so PAV takes weighted
            # means.
            start, zeros, ones = pool_adjacent_violators(
                weight * (1.0 - values), weight * values
            )
            first, values = first[start], ones / (zeros + ones)
        # Rounding of running sums must not leave the unit range.
        self.map_ = CalibrationMap.step(
            block_starts(summary.scores, first), np.clip(values, 0.0, 1.0)
        )

    def _fit_constant(self, summary: ScoreSummary, constant: float) -> None:
        super()._fit_constant(summary, constant)
        self.penalties_, self.model_weights_ = np.zeros(1), np.ones(1)
        self.n_blocks_ = np.ones(1, dtype=np.int64)
