"""Pool adjacent violators for labels 0 and 1: once, with a row more, and in bags."""

import math

import numpy as np

from calibration._kernels._jit import fused, njit
from calibration._kernels.cells import mix64, next_key, normal, uniform
from calibration.typing import Float64Array, Int64Array, UInt64Array

# Below this a product of weights may have lost digits, down to the last.
_LEAST_PRODUCT = 1e-280
# Two such factors times this are numbers like others, and no digit is rounded.
_UNIT = 2.0**600


@fused
def is_no_lower(one0: float, one1: float, two0: float, two1: float) -> bool:
    """Whether the first of two cells has at least the second's rate of ones."""
    left, right = one1 * two0, two1 * one0
    if left < _LEAST_PRODUCT and right < _LEAST_PRODUCT:
        left = (one1 * _UNIT) * (two0 * _UNIT)
        right = (two1 * _UNIT) * (one0 * _UNIT)
    return left >= right


@njit
def pool_adjacent_violators(
    weight0: Float64Array, weight1: Float64Array
) -> tuple[Int64Array, Float64Array, Float64Array]:
    """Blocks of the isotonic regression of the labels (Ayer et al. 1955), O(n).

    A cell counts weight0 zeros and weight1 ones; some of the two is positive. The
    blocks' means increase strictly: equal neighbours are pooled. Comparing
    w1_left * w0_right with w1_right * w0_left needs no division and is exact for
    integer weights.

    Returns
    -------
    starts, block0, block1 : ndarrays of shape (n_blocks,)
        First cell of each block and the weight of each class in it.
    """
    m = len(weight0)
    starts = np.empty(m, dtype=np.int64)
    block0 = np.empty(m)
    block1 = np.empty(m)
    k = 0
    for i in range(m):
        start, w0, w1 = i, weight0[i], weight1[i]
        # The lemma of Ayer et al.: where a block's mean is not below that of the next
        # the solution is constant over both, so they may be pooled and the pool
        # compared with the block before. Once pooled they never part, hence O(n).
        while k > 0 and is_no_lower(block0[k - 1], block1[k - 1], w0, w1):
            k -= 1
            start = starts[k]
            w0 += block0[k]
            w1 += block1[k]
        starts[k], block0[k], block1[k] = start, w0, w1
        k += 1
    return starts[:k].copy(), block0[:k].copy(), block1[:k].copy()


def always_pooled(weight0: Float64Array, weight1: Float64Array) -> Int64Array:
    """First cell of each run that every reweighting pools into one block.

    A cell of ones followed by a cell of zeros violates the order whatever (positive)
    weights the two get, so runs of ones with the zeros that follow them can be
    summed once before any number of isotonic regressions on reweighted cells. A
    cell that holds both classes may come out with either, so it is kept alone.
    """
    pure1, pure0 = weight0 == 0.0, weight1 == 0.0
    # Ones and then ones or zeros; zeros and then zeros. Zeros and then ones are in
    # order, and may stay apart.
    together = pure1[:-1] & (pure1[1:] | pure0[1:]) | pure0[:-1] & pure0[1:]
    return np.append(0, np.flatnonzero(~together) + 1)


def isotonic_rates(weight0: Float64Array, weight1: Float64Array) -> Float64Array:
    """Value of the isotonic regression of the labels in each cell."""
    starts, block0, block1 = pool_adjacent_violators(weight0, weight1)
    sizes = np.diff(starts, append=len(weight0))
    return np.repeat(block1 / (block0 + block1), sizes)


@njit
def pools_with_one_more(
    weight0: Float64Array, weight1: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Block of each cell in the isotonic regression that adds one 1 to it, O(m).

    For cell i the cumulative sum diagram is that of the cells with everything
    before i moved by (-1, -1) (Vovk, Petej & Fedorova 2015, algorithms 1 and 2).
    The block of the added row ends at a corner of the diagram without it, so one
    PAV serves all cells: as i grows, the block's end only moves right, and its left
    end is either the one before or cell i + 1. Only sums of the cells at hand are
    formed, so real weights lose no digits to a long cumulative sum.

    Returns
    -------
    pool0, pool1 : ndarrays of shape (n_cells,)
        Weight of each class in the block, the added row included.
    """
    m = len(weight0)
    first, block0, block1 = pool_adjacent_violators(weight0, weight1)
    pool0, pool1 = np.empty(m), np.empty(m)
    top0, top1 = 1.0, 0.0  # the block at hand; at first worse than any
    ahead0, ahead1 = 0.0, 0.0  # cells from i to the end of the block
    end = 0  # first PAV block beyond the block at hand
    for i in range(m):
        # Where cell i lies within the block at hand, `ahead` is what is left of it;
        # rounding of real weights must not make that negative.
        if end == len(first) or i < first[end]:
            ahead0, ahead1 = max(ahead0, 0.0), max(ahead1, 0.0)
        else:
            ahead0, ahead1 = 0.0, 0.0
        # The block that starts at cell i replaces the one at hand if it is higher.
        new0, new1 = ahead0, ahead1 + 1.0
        # Slopes are compared by cross products, as in PAV.
        if new1 * top0 > top1 * new0:
            while end < len(first) and new1 * block0[end] >= block1[end] * new0:
                new0 += block0[end]
                new1 += block1[end]
                ahead0 += block0[end]
                ahead1 += block1[end]
                end += 1
            top0, top1 = new0, new1
        # The added row is in the block that cell i is in: its value is that block's
        # rate.
        pool0[i], pool1[i] = top0, top1
        ahead0 -= weight0[i]
        ahead1 -= weight1[i]
    return pool0, pool1


# Above this mean a Poisson draw is a rounded normal: its skewness is below 0.18.
_NORMAL_MEAN = 30.0
# Drawing rows one by one costs the number of draws; with more of them than this per
# slot, one Poisson count per slot is cheaper.
_DRAWS_PER_SLOT = 16


@njit
def _draw_rows(
    cumulative: Float64Array,
    guide: Int64Array,
    n_draws: int,
    seeds: UInt64Array,
    counts: Float64Array,
) -> None:
    """Count `n_draws` rows drawn with replacement (multinomial), (n_bags, n_slots)."""
    n_slots = len(cumulative)
    total = cumulative[-1]
    for bag in range(len(seeds)):
        key = mix64(seeds[bag])
        for _ in range(n_draws):
            key = next_key(key)
            u = uniform(key)
            # u < 1, but its product with n_slots may round up to n_slots.
            slot = guide[min(int(u * n_slots), n_slots - 1)]
            # Slots of weight 0 repeat the sum before them: `<=` passes them over.
            while slot < n_slots - 1 and cumulative[slot] <= u * total:
                slot += 1
            counts[bag, slot] += 1.0


@fused
def _draw_poisson(mean: float, key: np.uint64) -> float:
    """One Poisson count: by inversion, or rounded normal for a large mean."""
    if mean > _NORMAL_MEAN:
        draw = mean + math.sqrt(mean) * normal(key)
        return max(0.0, math.floor(draw + 0.5))
    u = uniform(next_key(key))
    count, mass = 0.0, math.exp(-mean)
    cumulated = mass
    # A u near 1 may lie above all that the rounded masses add up to; then mass
    # underflows and ends the search.
    while u > cumulated and mass > 0.0:
        count += 1.0
        mass *= mean / count
        cumulated += mass
    return count


@njit
def _draw_counts(
    weights: Float64Array, rate: float, seeds: UInt64Array, counts: Float64Array
) -> None:
    """Poisson bootstrap: independent counts per slot with mean `rate` * weight."""
    for bag in range(len(seeds)):
        key = mix64(seeds[bag])
        for slot in range(len(weights)):
            # A stream a slot: what one draws does not depend on how many numbers the
            # slots before it took.
            stream = mix64(key + np.uint64(slot))
            counts[bag, slot] = _draw_poisson(rate * weights[slot], stream)


@njit
def _add_fits(
    counts: Float64Array,
    low: Float64Array,
    high: Float64Array,
    places: Int64Array,
    blocks: Float64Array,
    jumps: Float64Array,
) -> None:
    """Fit the bags and add the jumps of their step functions to `jumps`, in place.

    A group that a bag misses takes the value of the nearest group that it holds.
    `places` and `blocks` (2, n_groups) are room for the first and the last group of
    blocks, and for their weight of either class.
    """
    for bag in range(len(counts)):
        m = 0
        for group in range(len(low)):
            first, last = group, group
            w0, w1 = counts[bag, 2 * group], counts[bag, 2 * group + 1]
            # PAV takes no cells without weight; those that the bag missed are filled
            # in below.
            if w0 + w1 == 0.0:
                continue
            while m > 0 and is_no_lower(blocks[0, m - 1], blocks[1, m - 1], w0, w1):
                m -= 1
                first = places[0, m]
                w0 += blocks[0, m]
                w1 += blocks[1, m]
            places[0, m], places[1, m] = first, last
            blocks[0, m], blocks[1, m] = w0, w1
            m += 1
        before = 0.0
        for k in range(m):
            value = blocks[1, k] / (blocks[0, k] + blocks[1, k])
            first = 0
            if k > 0:
                left, first = places[1, k - 1], places[0, k]
                # Halved before they are added: scores near the largest float must not
                # overflow.
                middle = 0.5 * high[left] + 0.5 * low[first]
                while (
                    first - 1 > left
                    and 0.5 * low[first - 1] + 0.5 * high[first - 1] >= middle
                ):
                    first -= 1
            # Steps are added up by their jumps: a bag costs its number of blocks, not
            # of cells, and one cumulative sum at the end makes all bags one function.
            jumps[first] += value - before
            before = value


def sum_of_bags(
    weight0: Float64Array,
    weight1: Float64Array,
    low: Float64Array,
    high: Float64Array,
    n_draws: int,
    seeds: UInt64Array,
) -> Float64Array:
    """Sum over bags of the isotonic fits' values at every group of cells.

    Parameters
    ----------
    weight0, weight1, low, high : ndarrays of shape (n_groups,)
        Weight of each class in a group of cells that are always pooled, and the
        group's least and greatest score.
    n_draws : int
        Rows drawn with replacement per bag.
    seeds : ndarray of shape (n_bags,)
        One seed per bag, so that bags may be shared out in any way.
    """
    # Class 0 of a group and class 1 of it are neighbours: one draw finds both.
    slots = np.column_stack([weight0, weight1]).ravel()
    cumulative, n_slots = np.cumsum(slots), len(slots)
    counts = np.zeros((len(seeds), n_slots))
    # Poisson counts add up to n_draws on average only. Isotonic regression does not
    # notice: a common factor of all weights cancels.
    if n_draws > _DRAWS_PER_SLOT * n_slots:
        _draw_counts(slots, n_draws / cumulative[-1], seeds, counts)
    else:
        # The slot at which a search in each of n_slots equal pieces of the total
        # starts: from there a draw passes two slots on average, whatever the weights
        # (a guide table: Chen & Asau 1974).
        starts = np.arange(n_slots) * (cumulative[-1] / n_slots)
        guide = np.searchsorted(cumulative, starts, "right").clip(max=n_slots - 1)
        _draw_rows(cumulative, guide, n_draws, seeds, counts)
    jumps = np.zeros(len(weight0))
    places = np.empty((2, len(weight0)), dtype=np.int64)
    _add_fits(counts, low, high, places, np.empty(places.shape), jumps)
    return np.cumsum(jumps)
