"""The evidence of bins, and sums over all binnings or over those of equal frequency.

The evidence of a bin is the probability of its labels with the event rate integrated
out. The weight of a binning is the product over its bins of evidence and prior. The
prior (eqs. 3.7 and 3.8) of the bin of cells first..last is
exp(opening[first] + closing[last]). `evidences` are packed as `all_bin_evidences`
returns them.

Binnings of equal frequency come from running sums over cells. All B bins but the last
should hold floor(n / B) rows, as in the program of BBQ's authors. A cell goes to the
bin in which its centre in the running weight falls. So ties are never split, and with
integer weights no comparison is rounded.
"""

import math
from typing import Any

import numpy as np

from calibration._kernels._jit import fused, inner, njit
from calibration.typing import Float64Array, Int64Array

# The prior mean of a bin is the mean of the rates at its two edges, held within these.
# The prior is worth two rows, so it holds at least .01 of a row of each class. So no
# label is impossible beforehand.
LEAST_RATE, GREATEST_RATE = 0.005, 0.995


def count_bins(
    sum0: Float64Array,
    sum1: Float64Array,
    edge_rates: Float64Array,
    first: Any,
    end: Any,
) -> tuple[Any, Any, Any]:
    """Return class weights in bins of cells first..end - 1, and their prior means p_b.

    It takes one bin, or arrays of bins. Kernels call it as `_count`.
    """
    # Differences of running sums of real weights may fall below zero.
    n0 = np.maximum(sum0[end] - sum0[first], 0.0)
    n1 = np.maximum(sum1[end] - sum1[first], 0.0)
    rate = 0.5 * (edge_rates[first] + edge_rates[end])
    return n0, n1, np.minimum(np.maximum(rate, LEAST_RATE), GREATEST_RATE)


def bin_moments(n0: Any, n1: Any, rate: Any) -> tuple[Any, Any]:
    """Return the posterior means of event rates of bins, and of their squares.

    It takes one bin, or arrays of bins. Kernels call it as `_moments`.
    """
    # The prior is worth two rows.
    ones, size = n1 + 2.0 * rate, n0 + n1 + 2.0
    mean = ones / size
    return mean, mean * ((ones + 1.0) / (size + 1.0))


_count, _moments = fused(count_bins), fused(bin_moments)


@njit
def log_bin_evidence(n0: float, n1: float, rate: float) -> float:
    """Return the log probability of a bin's labels, in one order.

    The prior is Beta(2 rate, 2 - 2 rate). This is the factor of eq. 3.12's marginal
    likelihood (003) with N' = 2 B. For rate = 1/2 it is n0! n1! / (n + 1)! (K2, eq.
    3.6). By reflection the prior's constant 1 / (Gamma(2 p) Gamma(2 - 2 p)) is
    sin(pi u) / (pi u) with u = 1 - 2 p.
    """
    prior1 = 2.0 * rate
    evidence = math.lgamma(n1 + prior1) + math.lgamma(n0 + (2.0 - prior1))
    evidence -= math.lgamma(n0 + n1 + 2.0)
    angle = math.pi * (1.0 - prior1)
    # At rate 1/2 the quotient is 1, and its logarithm is 0.
    if angle != 0.0:
        evidence += math.log(math.sin(angle) / angle)
    return evidence


@njit
def all_bin_evidences(
    sum0: Float64Array, sum1: Float64Array, edge_rates: Float64Array
) -> Float64Array:
    """Return the log evidence of every bin of neighbouring cells, in O(m^2).

    Parameters
    ----------
    sum0, sum1, edge_rates : ndarrays of shape (m + 1,)
        Weight of each class below every edge of the m cells, and the rate there.

    Returns
    -------
    ndarray of shape (m (m + 1) / 2,)
        The bin of cells first..last is at place last (last + 1) / 2 + first.
    """
    m = len(sum0) - 1
    evidences = np.empty(m * (m + 1) // 2)
    # Pack by last cell, because the recursions take all bins that end at one cell
    # together.
    place = 0
    for last in range(m):
        for first in range(last + 1):
            n0, n1, rate = _count(sum0, sum1, edge_rates, first, last + 1)
            evidences[place] = log_bin_evidence(n0, n1, rate)
            place += 1
    return evidences


# Terms below exp(-50) of the greatest are lost in rounding, even 4096 of them together.
_NEGLIGIBLE = -50.0


@njit
def forward_sums(
    evidences: Float64Array, opening: Float64Array, closing: Float64Array
) -> Float64Array:
    """Return log summed weights of all binnings of the first k cells, k = 0..m.

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
        # forward[k] sums over where the last bin starts. So forward[last + 1] is the
        # sum over first of forward[first] * prior * evidence, in logarithms.
        start[last] = forward[last] + opening[last]
        greatest = -np.inf
        for first in range(last + 1):
            terms[first] = start[first] + evidences[place + first]
            greatest = max(greatest, terms[first])
        total = 0.0
        for first in range(last + 1):
            # exp is the main cost. Most bins that end at a cell are far too long or too
            # short to matter.
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
    """Return posterior moments of every cell's event rate, and where binnings are cut.

    Go backwards from the last cell. Given a cut after `last`, the bin that ends there
    starts at `first` with probability
    exp(forward[first] + prior + evidence - forward[last + 1]). The cut before it lies
    there too. The moments of a bin are added to the cells that it covers through their
    differences.

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
    # The end of the last bin is fixed.
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
            n0, n1, rate = _count(sum0, sum1, edge_rates, first, last + 1)
            bin_mean, bin_square = _moments(n0, n1, rate)
            # Keep differences, so that a bin costs O(1), however many cells it covers.
            mean[first] += share * bin_mean
            mean[last + 1] -= share * bin_mean
            square[first] += share * bin_square
            square[last + 1] -= share * bin_square
    return np.cumsum(mean)[:m], np.cumsum(square)[:m], cut


@njit
def best_binning(
    evidences: Float64Array, opening: Float64Array, closing: Float64Array
) -> Int64Array:
    """Return the first cells of the bins of the heaviest binning (algorithm 1).

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
            # This is the recursion of `forward_sums` with the greatest in the place of
            # the sum.
            value = best[first] + opening[first] + evidences[place + first]
            # With `>`, if binnings are equal, the one with the longest last bin is
            # kept.
            if value > greatest:
                greatest = value
                came_from[last + 1] = first
        best[last + 1] = greatest + closing[last]
        place += last + 1
    starts = np.empty(m, dtype=np.int64)
    # Walk from the last bin to the first, and turn the order round at the end.
    count, end = 0, m
    while end > 0:
        end = came_from[end]
        starts[count] = end
        count += 1
    return starts[:count][::-1].copy()


# This many cells are scored for all binnings before the next, so sums stay in cache.
_BLOCK = 16384


def twice_centres(sum0: Float64Array, sum1: Float64Array) -> Float64Array:
    """Return twice the weight below each cell's centre, and twice all weight, (m + 1,).

    They are integers if weights are integers, although a centre may lie at a half.
    """
    below = sum0 + sum1
    return np.append(below[:-1] + below[1:], 2.0 * below[-1])


@inner
def _twice_rows(centres: Float64Array, n_bins: int) -> float:
    """Return twice the rows that all bins but the last should hold."""
    return float(2.0 * np.floor(0.5 * centres[-1] / n_bins))


@inner
def _find_cell(centres: Float64Array, goal: float, low: int, guess: int) -> int:
    """Return the first cell from `low` on whose centre is at least `goal`, or m.

    The search gallops up from `guess`, which costs little if the guess is right.
    """
    high, step = min(guess, len(centres) - 1), 1
    # The last of the centres lies above any goal.
    while centres[high] < goal:
        low, high = high + 1, min(high + step, len(centres) - 1)
        step *= 2
    return low + int(np.searchsorted(centres[low:high], goal))


@njit
def quantile_starts(centres: Float64Array, n_bins: int) -> Int64Array:
    """Return the first cell of each of the at most `n_bins` bins that hold a cell."""
    rows = _twice_rows(centres, n_bins)
    starts = np.zeros(n_bins, dtype=np.int64)
    count, end, width = 1, 0, 0
    for number in range(1, n_bins):
        start = _find_cell(centres, number * rows, end, end + width)
        # Bins have about equal numbers of cells. Guess that the next bin is as wide.
        width, end = start - end, start
        # A bin without cells is left out, and so is one that would start at the end.
        if starts[count - 1] < start < len(centres) - 1:
            starts[count] = start
            count += 1
    return starts[:count].copy()


@njit
def score_quantile_bins(
    sum0: Float64Array,
    sum1: Float64Array,
    edge_rates: Float64Array,
    centres: Float64Array,
    numbers: Int64Array,
) -> Float64Array:
    """Return the log evidence of binnings with these `numbers` of bins.

    Parameters
    ----------
    sum0, sum1, edge_rates : ndarrays of shape (m + 1,)
        Weight of each class below every edge of the m cells, and the rate there.
    centres : ndarray of shape (m + 1,)
        What `twice_centres` returned.
    numbers : ndarray of shape (k,)

    Returns
    -------
    ndarray of shape (k,)
    """
    m = len(sum0) - 1
    scores = np.zeros(len(numbers))
    low = np.zeros(len(numbers), dtype=np.int64)
    high = np.zeros(len(numbers), dtype=np.int64)
    # Bin `number` has the cells low..high - 1. Bin 0 is the empty one before all.
    number = np.zeros(len(numbers), dtype=np.int64)
    # Blocks are outside, binnings within. So the running sums of a block are read from
    # memory once for all binnings. Each binning goes on where it stopped.
    for block in range(0, m, _BLOCK):
        stop = min(block + _BLOCK, m)
        for k in range(len(numbers)):
            first, end = low[k], high[k]
            while end <= stop and number[k] <= numbers[k]:
                if end > first:
                    n0, n1, rate = _count(sum0, sum1, edge_rates, first, end)
                    scores[k] += log_bin_evidence(n0, n1, rate)
                number[k] += 1
                guess = end + (end - first)
                first, end = end, m
                if number[k] < numbers[k]:
                    goal = number[k] * _twice_rows(centres, numbers[k])
                    end = _find_cell(centres, goal, first, guess)
            low[k], high[k] = first, end
    return scores
