"""Cells: sorted distinct scores with the weight of each class, and draws from them."""

import math
from typing import TypeVar

import numpy as np

from calibration._kernels._jit import fused, njit
from calibration.typing import BoolArray, Float64Array, Int64Array, UInt64Array

Bits = TypeVar("Bits", np.uint64, UInt64Array)

# This is the golden ratio times 2^64. It is odd, so its multiples pass through all
# 64-bit numbers. The other two are the multipliers of variant 13 of Stafford's mixers.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)
_S11 = np.uint64(11)


def mix_bits(z: Bits) -> Bits:
    """Mix 64 bits by the finaliser of SplitMix64 (Steele, Lea & Flood 2014).

    This is a bijection. It takes one number, or an array of them. Kernels call it as
    `mix64`.
    """
    z = (z ^ (z >> _S30)) * _MIX1
    z = (z ^ (z >> _S27)) * _MIX2
    return z ^ (z >> _S31)


mix64 = fused(mix_bits)


@fused
def next_key(key: np.uint64) -> np.uint64:
    """Advance a SplitMix64 stream. `mix64` of the result is its next number."""
    return key + _GOLDEN


@fused
def uniform(key: np.uint64) -> float:
    """Return a uniform number in (0, 1) from the key of a stream."""
    # Take 53 bits, all that a float holds. The half keeps out 0 and 1, where the
    # logarithm is infinite.
    return (float(mix64(key) >> _S11) + 0.5) * 2.0**-53


@fused
def normal(key: np.uint64) -> float:
    """Return a standard normal number from the key of a stream (Box & Muller 1958)."""
    radius = math.sqrt(-2.0 * math.log(uniform(next_key(key))))
    return radius * math.cos(2.0 * math.pi * uniform(next_key(next_key(key))))


# If a cell has more rows than this, one draw per fold deals them over folds.
_MANY_UNITS = 1000.0


def count_classes(
    sorted0: Float64Array, sorted1: Float64Array
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Merge the sorted scores of both classes into cells that count their rows."""
    # Arrays are made here. Each kernel that makes one would have to compile that too.
    n = len(sorted0) + len(sorted1)
    scores, weights = np.empty(n), np.zeros((2, n))
    k = _count_classes(sorted0, sorted1, scores, weights)
    return scores[:k].copy(), weights[0, :k].copy(), weights[1, :k].copy()


@njit
def _count_classes(
    sorted0: Float64Array,
    sorted1: Float64Array,
    scores: Float64Array,
    weights: Float64Array,
) -> int:
    """Write the cells, and return their number."""
    n0, n1 = len(sorted0), len(sorted1)
    i, j, k = 0, 0, 0
    while i < n0 or j < n1:
        # Take the smaller of the two next scores. Ties of both classes are in one cell.
        if j == n1 or (i < n0 and sorted0[i] <= sorted1[j]):
            score = sorted0[i]
        else:
            score = sorted1[j]
        scores[k] = score
        while i < n0 and sorted0[i] == score:
            weights[0, k] += 1.0
            i += 1
        while j < n1 and sorted1[j] == score:
            weights[1, k] += 1.0
            j += 1
        k += 1
    return k


def collapse_ties(
    scores: Float64Array, weight0: Float64Array, weight1: Float64Array
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Sum the weights of equal neighbours in sorted `scores`, and drop empty cells."""
    new = np.append(True, scores[1:] != scores[:-1])
    cell = np.cumsum(new) - 1
    weights = (weight0, weight1)
    sum0, sum1 = (np.asarray(np.bincount(cell, w), np.float64) for w in weights)
    # A cell without weight must not exist, because no row has its score.
    held = (sum0 > 0.0) | (sum1 > 0.0)
    return scores[new][held], sum0[held], sum1[held]


def merge_cells(
    scores_a: Float64Array,
    weight0_a: Float64Array,
    weight1_a: Float64Array,
    scores_b: Float64Array,
    weight0_b: Float64Array,
    weight1_b: Float64Array,
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Add the cells of b to those of a."""
    both = np.concatenate([scores_a, scores_b])
    # A stable sort of two sorted runs merges them.
    order = both.argsort(kind="stable")
    weight0 = np.concatenate([weight0_a, weight0_b])[order]
    weight1 = np.concatenate([weight1_a, weight1_b])[order]
    return collapse_ties(both[order], weight0, weight1)


@njit
def finest_level(
    scores: Float64Array,
    max_cells: int,
    low: int,
    high: int,
    lowest: float,
    highest: float,
) -> int:
    """Return the finest level in [low, high] whose cells 2**-level can hold the scores.

    The sorted `scores` are then in at most `max_cells` cells, except at the level
    `low`. Every number between the least and the greatest has a cell that is an exact
    integer.
    """
    # Beyond this level, floor(score * factor) may be no exact integer.
    high = min(52 - math.frexp(max(abs(lowest), abs(highest)))[1], high)
    # A coarser level has fewer cells. So halve the range to find the finest that fits.
    while low < high:
        middle = (low + high + 1) // 2
        # The factor is a power of two, so the product is exact.
        factor = math.ldexp(1.0, middle)
        count, last = 0, -np.inf
        for score in scores:
            cell = np.floor(score * factor)
            if cell != last:
                count, last = count + 1, cell
                if count > max_cells:
                    break
        if count <= max_cells:
            low = middle
        else:
            high = middle - 1
    return low


@njit
def count_rounded(
    values: Float64Array, ones: BoolArray, level: int, most: int
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Count the rows of each class in the cells 2**-level, in any order of rows.

    The score of a cell is its middle, within the least and the greatest value. If there
    are more than `most` cells between these, no cells are returned.
    """
    lowest, highest = values[0], values[0]
    for value in values:
        lowest, highest = min(lowest, value), max(highest, value)
    factor = math.ldexp(1.0, level)
    first = np.floor(lowest * factor)
    span = np.floor(highest * factor) - first
    m = 0 if span >= most else int(span) + 1
    weight0, weight1 = np.zeros(m), np.zeros(m)
    for i in range(len(values) if m else 0):
        cell = int(np.floor(values[i] * factor) - first)
        if ones[i]:
            weight1[cell] += 1.0
        else:
            weight0[cell] += 1.0
    middles = (first + np.arange(m) + 0.5) / factor
    held = (weight0 > 0.0) | (weight1 > 0.0)
    # Adding zero turns -0.0 into 0.0.
    middles = np.minimum(np.maximum(middles, lowest), highest) + 0.0
    return middles[held], weight0[held], weight1[held]


@njit
def fold_share(
    score_bits: UInt64Array,
    weight: Float64Array,
    n_folds: int,
    fold: int,
    seed: np.uint64,
) -> Float64Array:
    """Return the weight of every cell that one of `n_folds` folds gets, (n_cells,).

    Each whole unit goes to a random fold. So the counts are multinomial, or rounded
    normals in cells with very many units. A fraction of a unit goes to one fold. The
    draw is a hash of seed, score and weight. So the share of a cell is the same,
    whatever else the summary holds.
    """
    share = np.zeros(len(weight))
    for i in range(len(weight)):
        units = np.floor(weight[i])
        # Use the bits of the score, so that equal scores have equal keys in any
        # summary.
        key = mix64(score_bits[i] ^ mix64(seed + np.uint64(units)))
        # One draw for each row is exact but slow. A binomial count of a thousand rows
        # is normal, up to far less than its own noise.
        if units > _MANY_UNITS:
            share[i] = _share_of_many(units, n_folds, fold, key)
        else:
            for _ in range(int(units)):
                if _draw_fold(key, n_folds) == fold:
                    share[i] += 1.0
                key = next_key(key)
        # The fraction has a key of its own (the complement), which no unit has used.
        if weight[i] > units and _draw_fold(mix64(~key), n_folds) == fold:
            share[i] += weight[i] - units
    return share


@fused
def _draw_fold(key: np.uint64, n_folds: int) -> int:
    return int((mix64(key) >> np.uint64(11)) % np.uint64(n_folds))


@fused
def _share_of_many(units: float, n_folds: int, fold: int, key: np.uint64) -> float:
    """Return the count of one fold in a multinomial draw, by rounded normals."""
    left, count = units, 0.0
    for j in range(fold + 1):
        if j == n_folds - 1:
            return left
        # A multinomial draw is a chain of binomial ones. Fold j takes its share of what
        # the folds before it have left.
        p = 1.0 / (n_folds - j)
        deviate = normal(mix64(key + np.uint64(j)))
        draw = np.floor(left * p + np.sqrt(left * p * (1.0 - p)) * deviate + 0.5)
        # A normal draw has no bounds, but a count has.
        count = min(max(draw, 0.0), left)
        left -= count
    return count


def group_starts(weight: Float64Array, n_groups: int) -> Int64Array:
    """Return the first cell of each of at most `n_groups` groups of about equal weight.

    A cell goes to group floor(n_groups * mid / total). Here mid is the cumulative
    weight up to the middle of the cell. So ties are never split.
    """
    # A heavy cell goes to the group that holds its middle.
    place = np.zeros(len(weight))
    np.cumsum(weight[:-1], out=place[1:])
    total = place[-1] + weight[-1]
    place += 0.5 * weight
    place /= total
    group = np.minimum((n_groups * place).astype(np.int64), n_groups - 1)
    return np.append(0, np.flatnonzero(group[1:] != group[:-1]) + 1)


def group_means(
    values: Float64Array, weight: Float64Array, starts: Int64Array
) -> Float64Array:
    """Return the weighted mean of each run of values that starts at `starts`."""
    # Take deviations from a value of the run. They lose no digits if the origin is far.
    origin = values[starts]
    apart = values - np.repeat(origin, np.diff(starts, append=len(values)))
    moved = np.add.reduceat(weight * apart, starts)
    return np.asarray(origin + moved / np.add.reduceat(weight, starts))


@njit
def join_close_cells(
    scores: Float64Array,
    weight0: Float64Array,
    weight1: Float64Array,
    least_gap: float,
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return cells at least `least_gap` apart, each in the middle of those it joins.

    From the left, a cell joins the group before it if it lies closer than `least_gap`
    to the present middle of that group. So a group is narrower than 2 least_gap. No
    middle lies left of the first cell of its group, so the gap is kept between groups
    too.
    """
    m = len(scores)
    middles, sum0, sum1 = np.empty(m), np.empty(m), np.empty(m)
    k, i = 0, 0
    while i < m:
        first, middle = scores[i], scores[i]
        total0, total1 = weight0[i], weight1[i]
        i += 1
        while i < m and scores[i] - middle < least_gap:
            total0 += weight0[i]
            total1 += weight1[i]
            # Take the middle of the range, not the mean, so that a group stays narrow
            # whatever the weights are.
            middle = 0.5 * (first + scores[i])
            i += 1
        middles[k], sum0[k], sum1[k] = middle, total0, total1
        k += 1
    return middles[:k].copy(), sum0[:k].copy(), sum1[:k].copy()
