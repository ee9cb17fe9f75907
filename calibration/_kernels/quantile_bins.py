"""Equal-frequency binnings with any number of bins, from running sums over cells.

All B bins but the last are to hold floor(n / B) rows, as in the program of BBQ's
authors. A cell goes where its centre in the running weight falls, so that ties are
never split; for integer weights no comparison is rounded.
"""

import numpy as np

from calibration._kernels._jit import inner, njit
from calibration._kernels.bin_evidence import bin_rate, log_bin_evidence
from calibration.typing import Float64Array, Int64Array

# Cells that are scored for all binnings before the next: their sums stay in cache.
_BLOCK = 16384


@njit
def running_sums(
    weight0: Float64Array, weight1: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Weight of each class below every edge of m cells, each of shape (m + 1,)."""
    return np.append(0.0, np.cumsum(weight0)), np.append(0.0, np.cumsum(weight1))


@njit
def _twice_centre(sum0: Float64Array, sum1: Float64Array, cell: int) -> float:
    """Twice the weight below the centre of a cell: an integer if weights are."""
    below = sum0[cell] + sum1[cell]
    # With integer weights a centre may lie at a half; twice that is exact.
    return float(below + (sum0[cell + 1] + sum1[cell + 1]))


@njit
def _find_cell(sum0: Float64Array, sum1: Float64Array, rows: float, guess: int) -> int:
    """First cell whose centre lies above `rows` or on it; m if there is none.

    The search gallops away from `guess`, which costs nothing where that is right.
    """
    m, goal = len(sum0) - 1, 2.0 * rows
    low = high = min(guess, m)
    step = 1
    # Now all cells before `low` are too far left and `high` is the guess; the step
    # doubles until the goal is passed.
    while high < m and _twice_centre(sum0, sum1, high) < goal:
        low, high = high + 1, min(high + step, m)
        step *= 2
    while low > 0 and _twice_centre(sum0, sum1, low - 1) >= goal:
        low, high = max(low - step, 0), low - 1
        step *= 2
    while low < high:
        middle = (low + high) >> 1
        if _twice_centre(sum0, sum1, middle) >= goal:
            high = middle
        else:
            low = middle + 1
    return low


@inner
def _bin_rows(sum0: Float64Array, sum1: Float64Array, n_bins: int) -> float:
    """Rows that all bins but the last are to hold."""
    return float(np.floor((sum0[-1] + sum1[-1]) / n_bins))


@njit
def quantile_starts(sum0: Float64Array, sum1: Float64Array, n_bins: int) -> Int64Array:
    """First cell of each of the at most `n_bins` bins that hold any cell."""
    rows = _bin_rows(sum0, sum1, n_bins)
    starts = np.zeros(n_bins, dtype=np.int64)
    count, end, width = 1, 0, 0
    for number in range(1, n_bins):
        start = _find_cell(sum0, sum1, number * rows, end + width)
        # Bins have about equal numbers of cells: the next one is guessed to be as wide.
        width, end = start - end, start
        # A bin without cells is left out, and so is one that would start at the end.
        if starts[count - 1] < start < len(sum0) - 1:
            starts[count] = start
            count += 1
    return starts[:count].copy()


@njit
def score_quantile_bins(
    sum0: Float64Array,
    sum1: Float64Array,
    edge_rates: Float64Array,
    numbers: Int64Array,
) -> Float64Array:
    """Log evidence of the binnings with these numbers of bins, O(sum of numbers).

    Parameters
    ----------
    sum0, sum1, edge_rates : ndarrays of shape (m + 1,)
        Weight of each class below every edge of the m cells, and the rate there.
    numbers : ndarray of shape (k,)

    Returns
    -------
    ndarray of shape (k,)
    """
    m = len(sum0) - 1
    scores = np.zeros(len(numbers))
    low = np.zeros(len(numbers), dtype=np.int64)
    high = np.zeros(len(numbers), dtype=np.int64)
    # Bin `number` is that of cells low..high - 1; bin 0 is the empty one before all.
    number = np.zeros(len(numbers), dtype=np.int64)
    # Blocks outside, binnings within: the running sums of a block are read from memory
    # once for all binnings, and each goes on where it stopped.
    for block in range(0, m, _BLOCK):
        stop = min(block + _BLOCK, m)
        for k in range(len(numbers)):
            first, end = low[k], high[k]
            while end <= stop and number[k] <= numbers[k]:
                if end > first:
                    n0 = max(sum0[end] - sum0[first], 0.0)
                    n1 = max(sum1[end] - sum1[first], 0.0)
                    rate = bin_rate(edge_rates[first], edge_rates[end])
                    scores[k] += log_bin_evidence(n0, n1, rate)
                number[k] += 1
                guess = end + (end - first)
                first, end = end, m
                if number[k] < numbers[k]:
                    rows = _bin_rows(sum0, sum1, numbers[k])
                    end = _find_cell(sum0, sum1, number[k] * rows, guess)
            low[k], high[k] = first, end
    return scores


@njit
def average_quantile_bins(
    sum0: Float64Array,
    sum1: Float64Array,
    edge_rates: Float64Array,
    numbers: Int64Array,
    shares: Float64Array,
) -> tuple[Int64Array, Float64Array, Float64Array]:
    """Weighted mean of the binnings with these numbers of bins, as one step function.

    Parameters
    ----------
    sum0, sum1, edge_rates, numbers
        As in `score_quantile_bins`.
    shares : ndarray of shape (k,)
        Weights of the binnings, which add up to one.

    Returns
    -------
    starts : ndarray of shape (n_steps,)
        First cell of every step.
    mean, square : ndarrays of shape (n_steps,)
        Means over binnings of the posterior mean of the event rate and its square.
    """
    m = len(sum0) - 1
    jumps = np.empty((numbers.sum(), 2))
    cells = np.empty(len(jumps), dtype=np.int64)
    count = 0
    for k in range(len(numbers)):
        starts = quantile_starts(sum0, sum1, numbers[k])
        mean_before, square_before = 0.0, 0.0
        for b in range(len(starts)):
            first = starts[b]
            end = starts[b + 1] if b + 1 < len(starts) else m
            n0 = max(sum0[end] - sum0[first], 0.0)
            n1 = max(sum1[end] - sum1[first], 0.0)
            ones = n1 + 2.0 * bin_rate(edge_rates[first], edge_rates[end])
            size = n0 + n1 + 2.0
            # Moments of the Beta posterior of the bin, whose prior is worth two rows.
            mean = shares[k] * (ones / size)
            square = mean * ((ones + 1.0) / (size + 1.0))
            # A step function is kept as its jumps: the sum of all binnings is a sum of
            # jumps.
            cells[count] = first
            jumps[count, 0] = mean - mean_before
            jumps[count, 1] = square - square_before
            mean_before, square_before = mean, square
            count += 1
    return _sum_jumps(cells[:count], jumps[:count])


@inner
def _sum_jumps(
    cells: Int64Array, jumps: Float64Array
) -> tuple[Int64Array, Float64Array, Float64Array]:
    """Add up jumps (k, 2) at cells into two step functions."""
    order = np.argsort(cells, kind="mergesort")
    starts, ranked = cells[order], jumps[order]
    last = np.append(np.flatnonzero(np.diff(starts)), len(starts) - 1)
    levels0, levels1 = np.cumsum(ranked[:, 0]), np.cumsum(ranked[:, 1])
    return starts[last], levels0[last], levels1[last]
