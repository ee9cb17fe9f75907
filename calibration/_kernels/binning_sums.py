"""Sums and maxima over all binnings of m cells, O(m^2) each.

The weight of a binning is the product over its bins of evidence and prior. The prior
(eqs. 3.7 and 3.8) of the bin of cells first..last is exp(opening[first] +
closing[last]); `evidences` are packed as `all_bin_evidences` leaves them.
"""

import math

import numpy as np

from calibration._kernels._jit import njit
from calibration._kernels.bin_evidence import bin_rate
from calibration.typing import Float64Array, Int64Array

# Terms below exp(-50) of the greatest are lost in rounding, 4096 of them together.
_NEGLIGIBLE = -50.0


@njit
def forward_sums(
    evidences: Float64Array, opening: Float64Array, closing: Float64Array
) -> Float64Array:
    """Log of the summed weight of all binnings of the first k cells, k = 0..m.

    Parameters
    ----------
    evidences : ndarray of shape (m (m + 1) / 2,)
    opening, closing : ndarrays of shape (m,)

    Returns
    -------
    ndarray of shape (m + 1,)
        The last one is the log marginal likelihood of the labels.
    """
    m = len(opening)
    forward = np.zeros(m + 1)
    start = np.empty(m)
    terms = np.empty(m)
    place = 0
    for last in range(m):
        # forward[k] sums over where the last bin starts: forward[last + 1] = sum over
        # first of forward[first] * prior * evidence, in logarithms.
        start[last] = forward[last] + opening[last]
        greatest = -np.inf
        for first in range(last + 1):
            terms[first] = start[first] + evidences[place + first]
            greatest = max(greatest, terms[first])
        total = 0.0
        for first in range(last + 1):
            # exp is what costs here; most bins that end at a cell are far too long or
            # too short to matter.
            if terms[first] - greatest > _NEGLIGIBLE:
                total += math.exp(terms[first] - greatest)
        forward[last + 1] = greatest + math.log(total) + closing[last]
        place += last + 1
    return forward


@njit
def posterior_sums(
    evidences: Float64Array,
    opening: Float64Array,
    closing: Float64Array,
    forward: Float64Array,
    sum0: Float64Array,
    sum1: Float64Array,
    edge_rates: Float64Array,
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Posterior moments of every cell's event rate, and where binnings are cut.

    Backwards from the last cell: given a cut after `last`, the bin that ends there
    starts at `first` with probability exp(forward[first] + prior + evidence -
    forward[last + 1]), and that is where the cut before it lies. A bin's moments
    are added to the cells that it covers through their differences.

    Parameters
    ----------
    evidences : ndarray of shape (m (m + 1) / 2,)
    opening, closing : ndarrays of shape (m,)
    forward : ndarray of shape (m + 1,)
        What `forward_sums` returned.
    sum0, sum1, edge_rates : ndarrays of shape (m + 1,)
        As in `all_bin_evidences`.

    Returns
    -------
    mean, square : ndarrays of shape (m,)
        Posterior means of the rate and of its square.
    cut : ndarray of shape (m + 1,)
        Posterior probability of a cut at every edge.
    """
    m = len(opening)
    mean = np.zeros(m + 1)
    square = np.zeros(m + 1)
    cut = np.zeros(m + 1)
    # The end of the last bin is no choice.
    cut[m] = 1.0
    for last in range(m - 1, -1, -1):
        place = last * (last + 1) // 2
        log_rest = closing[last] - forward[last + 1]
        for first in range(last + 1):
            log_share = (
                forward[first] + opening[first] + evidences[place + first] + log_rest
            )
            if log_share < _NEGLIGIBLE or cut[last + 1] == 0.0:
                continue
            share = cut[last + 1] * math.exp(log_share)
            cut[first] += share
            n0 = max(sum0[last + 1] - sum0[first], 0.0)
            n1 = max(sum1[last + 1] - sum1[first], 0.0)
            # First and second moment of the bin's posterior Beta law, whose prior is
            # worth two rows.
            ones = n1 + 2.0 * bin_rate(edge_rates[first], edge_rates[last + 1])
            size = n0 + n1 + 2.0
            bin_mean = share * (ones / size)
            bin_square = bin_mean * ((ones + 1.0) / (size + 1.0))
            # Difference coding: O(1) a bin however many cells it covers.
            mean[first] += bin_mean
            mean[last + 1] -= bin_mean
            square[first] += bin_square
            square[last + 1] -= bin_square
    return np.cumsum(mean)[:m], np.cumsum(square)[:m], cut


@njit
def best_binning(
    evidences: Float64Array, opening: Float64Array, closing: Float64Array
) -> Int64Array:
    """First cell of every bin of the binning of greatest weight (algorithm 1).

    Parameters
    ----------
    evidences : ndarray of shape (m (m + 1) / 2,)
    opening, closing : ndarrays of shape (m,)

    Returns
    -------
    ndarray of shape (n_bins,)
    """
    m = len(opening)
    best = np.zeros(m + 1)
    came_from = np.zeros(m + 1, dtype=np.int64)
    place = 0
    for last in range(m):
        greatest = -np.inf
        for first in range(last + 1):
            # The recursion of `forward_sums` with the greatest in place of the sum.
            value = best[first] + opening[first] + evidences[place + first]
            # `>`: of equal binnings the one whose last bin is longest is kept.
            if value > greatest:
                greatest = value
                came_from[last + 1] = first
        best[last + 1] = greatest + closing[last]
        place += last + 1
    starts = np.empty(m, dtype=np.int64)
    # Walked from the last bin to the first, and turned round at the end.
    count, end = 0, m
    while end > 0:
        end = came_from[end]
        starts[count] = end
        count += 1
    return starts[:count][::-1].copy()
