"""Bagged isotonic regression."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from calibration._kernels.bags import sum_of_bags
from calibration._kernels.pav import always_pooled
from calibration._validation import check_integer, check_number, check_optional_seed
from calibration.base.calibrators import MapCalibrator, Scale
from calibration.maps import CalibrationMap
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

# Bags are fitted in chunks of this size whatever the number of threads, so that the
# order of additions, hence the last bit of the result, never depends on it.
_CHUNK = 8


class BaggedIsotonicCalibrator(MapCalibrator):
    r"""The mean of isotonic regressions on bootstrap samples.

    Parameters
    ----------
    n_bags : int
        Number of bootstrap samples.
    max_samples : float
        Size of a sample as a share of n; rows are drawn with replacement.
    random_state : int, RandomState instance or None
        Source of the seeds of the bags.
    n_jobs : int
        Threads to use; the result does not depend on it.
    scale : {"probability", "logit", "real"}
        What a score is.

    Attributes
    ----------
    map_ : CalibrationMap
        The average map: constant over scores that every bag pools, linear between.

    Notes
    -----
    1. Scores are sorted once. Neighbouring cells that every reweighting pools are
       summed.
    2. A bag draws ``max_samples * n`` rows with replacement, as counts per cell.
    3. PAV on the reweighted cells, O(n).
    4. Its steps are added to a running sum; 2-4 are repeated `n_bags` times.
    5. The sum divided by `n_bags` is one increasing map, as fast to apply as a
       single isotonic regression.

    A score that a bag did not draw takes the value of the nearest that it did. In a
    bounded summary with many rows per cell the counts are independent Poisson.

    References
    ----------
    Normandin (2017), Local expert regression and calibration for probabilistic
    classification (talk).

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import BaggedIsotonicCalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=2000)
    >>> y = rng.uniform(size=2000) < scores**2
    >>> bagged = BaggedIsotonicCalibrator(100, random_state=0).fit(scores, y)
    >>> np.abs(bagged.predict([0.2, 0.5, 0.8]) - [0.04, 0.25, 0.64]).max() < 0.05
    np.True_
    """

    def __init__(
        self,
        n_bags: int = 500,
        max_samples: float = 1.0,
        random_state: int | np.random.RandomState | None = None,
        *,
        n_jobs: int = 1,
        scale: Scale = "probability",
    ):
        self.n_bags = n_bags
        self.max_samples = max_samples
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer(self.n_bags, "n_bags", 1)
        check_number(self.max_samples, "max_samples", 0.0, 1.0, open_low=True)
        check_integer(self.n_jobs, "n_jobs", 1)
        if not isinstance(self.random_state, np.random.RandomState):
            check_optional_seed(self.random_state)

    def _fit(self, summary: ScoreSummary) -> None:
        first = always_pooled(summary.weight0, summary.weight1)
        last = np.append(first[1:] - 1, summary.n_cells - 1)
        low, high = summary.scores[first], summary.scores[last]
        # Groups that every bag pools: fewer cells for all bags, and the same fits.
        weight0 = np.add.reduceat(summary.weight0, first)
        weight1 = np.add.reduceat(summary.weight1, first)
        n_draws = max(1, round(self.max_samples * summary.n))

        def fit_chunk(seeds: NDArray[np.uint64]) -> Float64Array:
            return sum_of_bags(weight0, weight1, low, high, n_draws, seeds)

        chunks = self._seed_chunks()
        # Threads and not processes: the kernel lets go of the interpreter's lock.
        with ThreadPoolExecutor(self.n_jobs) as pool:
            total = sum(pool.map(fit_chunk, chunks), np.zeros(len(first)))
        # Rounding of the running sums must not undo monotonicity or the unit range.
        values = np.clip(np.maximum.accumulate(total / self.n_bags), 0.0, 1.0)
        self.map_ = _plateaus(low, high, values)

    def _seed_chunks(self) -> list[NDArray[np.uint64]]:
        """Seeds of the bags, in chunks that threads share out."""
        source = check_random_state(self.random_state)
        # Drawn once from the user's source; all else follows from these four numbers.
        entropy = source.randint(0, 2**31 - 1, size=4)
        state = np.random.SeedSequence(entropy.tolist())
        seeds = state.generate_state(self.n_bags, np.uint64).astype(np.uint64)
        return [seeds[i : i + _CHUNK] for i in range(0, self.n_bags, _CHUNK)]


def _plateaus(
    low: Float64Array, high: Float64Array, values: Float64Array
) -> CalibrationMap:
    """Return the map that is values[g] on [low[g], high[g]] and linear between.

    Neighbouring groups of one value share a plateau; a plateau of one point is one
    knot.
    """
    new = np.concatenate([[True], values[1:] != values[:-1]])
    first = np.flatnonzero(new)
    last = np.append(first[1:] - 1, len(values) - 1)
    ends = np.column_stack([low[first], high[last]]).ravel()
    heights = np.repeat(values[first], 2)
    kept = np.concatenate([[True], np.diff(ends) > 0.0])
    return CalibrationMap.linear(ends[kept], heights[kept])
