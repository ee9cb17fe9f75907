"""Cells: sorted distinct scores with the weight of each class, and draws from them."""

import math
from typing import TypeVar

import numpy as np

from calibration._kernels._jit import fused, njit
from calibration.typing import BoolArray, Float64Array, Int64Array, UInt64Array

Bits = TypeVar("Bits", np.uint64, UInt64Array)

# The golden ratio times 2^64, odd: its multiples pass through all 64-bit numbers. The
# other two are the multipliers of variant 13 of Stafford's mixers.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)
_S11 = np.uint64(11)


def mix_bits(z: Bits) -> Bits:
    """Finaliser of SplitMix64 (Steele, Lea & Flood 2014): a bijection of 64 bits.

    Of one number, or of each in an array. Kernels call it as `mix64`.
    """
    z = (z ^ (z >> _S30)) * _MIX1
    z = (z ^ (z >> _S27)) * _MIX2
    return z ^ (z >> _S31)


mix64 = fused(mix_bits)


@fused
def next_key(key: np.uint64) -> np.uint64:
    """Advance a SplitMix64 stream; feed the result to `mix64` for its number."""
    return key + _GOLDEN


@fused
def uniform(key: np.uint64) -> float:
    """Uniform number in (0, 1) from the key of a stream."""
    # 53 bits, all that a float holds; the half keeps 0 and 1 out, where the logarithm
    # is infinite.
    return (float(mix64(key) >> _S11) + 0.5) * 2.0**-53


@fused
def normal(key: np.uint64) -> float:
    """Standard normal number from the key of a stream (Box & Muller 1958)."""
    radius = math.sqrt(-2.0 * math.log(uniform(next_key(key))))
    return radius * math.cos(2.0 * math.pi * uniform(next_key(next_key(key))))


# A cell with more rows than this is dealt over folds by one draw per fold.
_MANY_UNITS = 1000.0


def count_classes(
    sorted0: Float64Array, sorted1: Float64Array
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Merge the two classes' sorted scores into cells that count their rows."""
    # Arrays are made here: each kernel that makes one compiles that, too.
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
    """Fill in the cells and return their number."""
    n0, n1 = len(sorted0), len(sorted1)
    i, j, k = 0, 0, 0
    while i < n0 or j < n1:
        # The lesser of the two heads. Ties of both classes are in one cell.
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
    """Sum the weights of equal neighbours in sorted `scores`; drop empty cells."""
    new = np.append(True, scores[1:] != scores[:-1])
    cell = np.cumsum(new) - 1
    weights = (weight0, weight1)
    sum0, sum1 = (np.asarray(np.bincount(cell, w), np.float64) for w in weights)
    # A cell without weight must not exist: it would be a score that nobody had.
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
    # A sort of two runs that are in order already merges them.
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
    """Finest level in [low, high] at which cells 2**-level hold sorted `scores`.

    There are `max_cells` at most, but for the level `low`; all that lies between the
    least and the greatest has a cell that is an exact integer.
    """
    # Beyond this level floor(score * factor) leaves the exact integers.
    high = min(52 - math.frexp(max(abs(lowest), abs(highest)))[1], high)
    # Fewer cells the coarser the level, so the finest that fits is found by halving.
    while low < high:
        middle = (low + high + 1) // 2
        # A power of two: the product is exact.
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

    A cell's score is its middle, within the least and the greatest value. There are
    none where more than `most` cells lie between these.
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
    """Weight of every cell that one of `n_folds` folds gets, shape (n_cells,).

    Whole units go to folds at random, each on its own (multinomial; a rounded normal
    in cells of very many), and a fraction of a unit to one fold. The draw is a hash
    of seed, score and weight, so that a cell's share is the same whatever else the
    summary holds.
    """
    share = np.zeros(len(weight))
    for i in range(len(weight)):
        units = np.floor(weight[i])
        # Of the bits of the score: equal scores have equal keys in any summary.
        key = mix64(score_bits[i] ^ mix64(seed + np.uint64(units)))
        # One draw a row is exact but slow; a binomial count of a thousand rows is
        # normal to well below its own noise.
        if units > _MANY_UNITS:
            share[i] = _share_of_many(units, n_folds, fold, key)
        else:
            for _ in range(int(units)):
                if _draw_fold(key, n_folds) == fold:
                    share[i] += 1.0
                key = next_key(key)
        # A key of its own (the complement), which no unit of the cell has used.
        if weight[i] > units and _draw_fold(mix64(~key), n_folds) == fold:
            share[i] += weight[i] - units
    return share


@fused
def _draw_fold(key: np.uint64, n_folds: int) -> int:
    return int((mix64(key) >> np.uint64(11)) % np.uint64(n_folds))


@fused
def _share_of_many(units: float, n_folds: int, fold: int, key: np.uint64) -> float:
    """One fold's count of a multinomial draw, by conditional rounded normals."""
    left, count = units, 0.0
    for j in range(fold + 1):
        if j == n_folds - 1:
            return left
        # A multinomial draw is a chain of binomial ones: fold j takes its share of what
        # the folds before it left.
        p = 1.0 / (n_folds - j)
        deviate = normal(mix64(key + np.uint64(j)))
        draw = np.floor(left * p + np.sqrt(left * p * (1.0 - p)) * deviate + 0.5)
        # A normal draw knows no bounds, a count does.
        count = min(max(draw, 0.0), left)
        left -= count
    return count


def group_starts(weight: Float64Array, n_groups: int) -> Int64Array:
    """First cell of each of at most `n_groups` groups of about equal weight.

    A cell goes to group floor(n_groups * mid / total), mid being the cumulative
    weight up to the middle of the cell, so that ties are never split.
    """
    # The centre decides: a heavy cell goes to the group that holds its middle.
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
    # Deviations from a value of the run lose no digits to a far origin.
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
    """Cells at least `least_gap` apart, each amid the cells that it joins.

    From the left, a cell joins the group before it if it lies closer than
    `least_gap` to the middle of that group so far. So a group is narrower than
    2 least_gap, and as no middle lies left of its first cell, the gap is kept
    between groups as well.
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
            # The middle of the range, not the mean: a group stays narrow whatever the
            # weights.
            middle = 0.5 * (first + scores[i])
            i += 1
        middles[k], sum0[k], sum1[k] = middle, total0, total1
        k += 1
    return middles[:k].copy(), sum0[:k].copy(), sum1[:k].copy()
