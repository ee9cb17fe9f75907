"""Pool adjacent violators for labels 0 and 1: once, with a row more, and for bags."""

import math

import numpy as np

from calibration._kernels._jit import fused, njit
from calibration._kernels.cells import mix64, next_key, normal, uniform
from calibration.typing import Float64Array, Int64Array, UInt64Array

# If a product of weights is below this, it may have lost digits.
_LEAST_PRODUCT = 1e-280
# Multiplied by this, two such factors are ordinary numbers, and no digit is rounded.
_UNIT = 2.0**600


@fused
def is_no_lower(one0: float, one1: float, two0: float, two1: float) -> bool:
    """Return whether the rate of ones in cell one is at least that in cell two."""
    left, right = one1 * two0, two1 * one0
    if left < _LEAST_PRODUCT and right < _LEAST_PRODUCT:
        left = (one1 * _UNIT) * (two0 * _UNIT)
        right = (two1 * _UNIT) * (one0 * _UNIT)
    return left >= right


@njit
def pool_adjacent_violators(
    weight0: Float64Array, weight1: Float64Array
) -> tuple[Int64Array, Float64Array, Float64Array]:
    """Return the blocks of the isotonic regression of the labels, in O(n).

    The method is that of Ayer et al. (1955). A cell counts weight0 zeros and weight1
    ones. At least one of the two is positive. The means of blocks increase strictly,
    because equal neighbours are pooled. The comparison of w1_left * w0_right with
    w1_right * w0_left needs no division, and is exact for integer weights.

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
        # This is the lemma of Ayer et al. If the mean of a block is not below that of
        # the next, the solution is constant over both. So they may be pooled, and the
        # pool is compared with the block before. Pooled blocks never part, so this is
        # O(n).
        while k > 0 and is_no_lower(block0[k - 1], block1[k - 1], w0, w1):
            k -= 1
            start = starts[k]
            w0 += block0[k]
            w1 += block1[k]
        starts[k], block0[k], block1[k] = start, w0, w1
        k += 1
    return starts[:k].copy(), block0[:k].copy(), block1[:k].copy()


def always_pooled(weight0: Float64Array, weight1: Float64Array) -> Int64Array:
    """Return the first cell of each run that every reweighting pools into one block.

    A cell of ones followed by a cell of zeros violates the order, whatever positive
    weights the two get. So runs of ones, with the zeros that follow them, can be summed
    once before many isotonic regressions on reweighted cells. A cell that holds both
    classes may be left with either one, so it stays alone.
    """
    pure1, pure0 = weight0 == 0.0, weight1 == 0.0
    # Ones before ones or zeros, and zeros before zeros, are together. Zeros before ones
    # are in order, and may stay apart.
    together = pure1[:-1] & (pure1[1:] | pure0[1:]) | pure0[:-1] & pure0[1:]
    return np.append(0, np.flatnonzero(~together) + 1)


def isotonic_rates(weight0: Float64Array, weight1: Float64Array) -> Float64Array:
    """Return the value of the isotonic regression of the labels in each cell."""
    starts, block0, block1 = pool_adjacent_violators(weight0, weight1)
    sizes = np.diff(starts, append=len(weight0))
    return np.repeat(block1 / (block0 + block1), sizes)


@njit
def pools_with_one_more(
    weight0: Float64Array, weight1: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return the block of each cell in the isotonic regression with one 1 added to it.

    For cell i the cumulative sum diagram is that of the cells, but everything before i
    is moved by (-1, -1) (Vovk, Petej & Fedorova 2015, algorithms 1 and 2). The block of
    the added row ends at a corner of the diagram without this row. So one PAV serves
    all cells in O(m): if i grows, the end of the block only moves right. Its left end
    is either the one before or cell i + 1. Only sums of the present cells are formed.
    So real weights lose no digits to a long cumulative sum.

    Returns
    -------
    pool0, pool1 : ndarrays of shape (n_cells,)
        Weight of each class in the block. The added row is included.
    """
    m = len(weight0)
    first, block0, block1 = pool_adjacent_violators(weight0, weight1)
    pool0, pool1 = np.empty(m), np.empty(m)
    top0, top1 = 1.0, 0.0  # the present block, at first worse than any other
    ahead0, ahead1 = 0.0, 0.0  # cells from i to the end of the block
    end = 0  # first PAV block beyond the present block
    for i in range(m):
        # If cell i lies in the present block, `ahead` is what is left of it. Rounding
        # of real weights must not make this negative.
        if end == len(first) or i < first[end]:
            ahead0, ahead1 = max(ahead0, 0.0), max(ahead1, 0.0)
        else:
            ahead0, ahead1 = 0.0, 0.0
        # The block that starts at cell i replaces the present one if it is higher.
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
        # The added row joins the block of cell i. Its value is the rate of that block.
        pool0[i], pool1[i] = top0, top1
        ahead0 -= weight0[i]
        ahead1 -= weight1[i]
    return pool0, pool1


# Above this mean, a Poisson draw is a rounded normal, because its skewness is below
# 0.18.
_NORMAL_MEAN = 30.0
# The cost of drawing rows one by one is the number of draws. With more draws than this
# per slot, one Poisson count per slot is cheaper.
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
            # Slots of weight 0 repeat the sum before them. `<=` passes them over.
            while slot < n_slots - 1 and cumulative[slot] <= u * total:
                slot += 1
            counts[bag, slot] += 1.0


@fused
def _draw_poisson(mean: float, key: np.uint64) -> float:
    """Return one Poisson count, by inversion or (for a large mean) a rounded normal."""
    if mean > _NORMAL_MEAN:
        draw = mean + math.sqrt(mean) * normal(key)
        return max(0.0, math.floor(draw + 0.5))
    u = uniform(next_key(key))
    count, mass = 0.0, math.exp(-mean)
    cumulated = mass
    # A u near 1 may lie above the sum of all rounded masses. Then mass underflows and
    # ends the search.
    while u > cumulated and mass > 0.0:
        count += 1.0
        mass *= mean / count
        cumulated += mass
    return count


@njit
def _draw_counts(
    weights: Float64Array, rate: float, seeds: UInt64Array, counts: Float64Array
) -> None:
    """Draw a Poisson bootstrap: independent counts with means `rate` * weight."""
    for bag in range(len(seeds)):
        key = mix64(seeds[bag])
        for slot in range(len(weights)):
            # Each slot has its own stream. So its draw does not depend on how many
            # numbers the slots before it took.
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

    If a bag misses a group, the group takes the value of the nearest group in the bag.
    `places` and `blocks` (2, n_groups) are room for the first and the last group of
    blocks, and for their weight of each class.
    """
    for bag in range(len(counts)):
        m = 0
        for group in range(len(low)):
            first, last = group, group
            w0, w1 = counts[bag, 2 * group], counts[bag, 2 * group + 1]
            # PAV takes no cells without weight. Groups that the bag missed are filled
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
                # Halve before adding, because scores near the largest float must not
                # overflow.
                middle = 0.5 * high[left] + 0.5 * low[first]
                while (
                    first - 1 > left
                    and 0.5 * low[first - 1] + 0.5 * high[first - 1] >= middle
                ):
                    first -= 1
            # Steps are added by their jumps. So a bag costs its number of blocks, not
            # of cells. One cumulative sum at the end makes one function of all bags.
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
    """Return the sum over bags of isotonic fits, at every group of cells.

    Parameters
    ----------
    weight0, weight1, low, high : ndarrays of shape (n_groups,)
        Weight of each class in a group of cells that are always pooled, and the least
        and greatest score of the group.
    n_draws : int
        Number of rows that each bag draws with replacement.
    seeds : ndarray of shape (n_bags,)
        One seed per bag, so that bags may be shared out in any way.
    """
    # Class 0 and class 1 of a group are neighbours, so that one draw finds both.
    slots = np.column_stack([weight0, weight1]).ravel()
    cumulative, n_slots = np.cumsum(slots), len(slots)
    counts = np.zeros((len(seeds), n_slots))
    # Poisson counts add up to n_draws only on average. This does not change isotonic
    # regression, because a common factor of all weights cancels.
    if n_draws > _DRAWS_PER_SLOT * n_slots:
        _draw_counts(slots, n_draws / cumulative[-1], seeds, counts)
    else:
        # The total is cut into n_slots equal pieces. A search in a piece starts at this
        # slot. From there a draw passes two slots on average, whatever the weights are
        # (a guide table: Chen & Asau 1974).
        starts = np.arange(n_slots) * (cumulative[-1] / n_slots)
        guide = np.searchsorted(cumulative, starts, "right").clip(max=n_slots - 1)
        _draw_rows(cumulative, guide, n_draws, seeds, counts)
    jumps = np.zeros(len(weight0))
    places = np.empty((2, len(weight0)), dtype=np.int64)
    _add_fits(counts, low, high, places, np.empty(places.shape), jumps)
    return np.cumsum(jumps)
