"""Bagged isotonic regression: many reweighted fits on cells sorted once."""

import math

import numpy as np

from calibration._kernels._jit import fused, njit
from calibration._kernels.hashing import mix64, next_key, normal, uniform
from calibration._kernels.pav import pool_adjacent_violators
from calibration.typing import Float64Array, Int64Array, UInt64Array

# Above this mean a Poisson draw is a rounded normal: its skewness is below 0.18.
_NORMAL_MEAN = 30.0
# Drawing rows one by one costs the number of draws; with more of them than this per
# slot, one Poisson count per slot is cheaper.
_DRAWS_PER_SLOT = 16


@fused
def _guide(cumulative: Float64Array) -> Int64Array:
    """Slot at which a search in each of n_slots equal pieces of the total starts."""
    n_slots = len(cumulative)
    # As many pieces as slots, so that from a piece's start a draw passes two slots on
    # average, whatever the weights (a guide table: Chen & Asau 1974).
    step = cumulative[-1] / n_slots
    guide = np.empty(n_slots, dtype=np.int64)
    slot = 0
    for piece in range(n_slots):
        while slot < n_slots - 1 and cumulative[slot] <= piece * step:
            slot += 1
        guide[piece] = slot
    return guide


@fused
def _draw_rows(
    cumulative: Float64Array, guide: Int64Array, n_draws: int, key: np.uint64
) -> Float64Array:
    """Counts per slot of `n_draws` rows drawn with replacement (multinomial)."""
    n_slots = len(cumulative)
    counts = np.zeros(n_slots)
    total = cumulative[-1]
    for _ in range(n_draws):
        key = next_key(key)
        u = uniform(key)
        # u < 1, but its product with n_slots may round up to n_slots.
        slot = guide[min(int(u * n_slots), n_slots - 1)]
        # Slots of weight 0 repeat the sum before them: `<=` passes them over.
        while slot < n_slots - 1 and cumulative[slot] <= u * total:
            slot += 1
        counts[slot] += 1.0
    return counts


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


@fused
def _draw_counts(weights: Float64Array, rate: float, key: np.uint64) -> Float64Array:
    """Poisson bootstrap: independent counts per slot with mean `rate` * weight."""
    counts = np.empty(len(weights))
    for slot in range(len(weights)):
        # A stream a slot: what one draws does not depend on how many numbers the slots
        # before it took.
        stream = mix64(key + np.uint64(slot))
        counts[slot] = _draw_poisson(rate * weights[slot], stream)
    return counts


@fused
def _add_fit(
    counts: Float64Array, low: Float64Array, high: Float64Array, jumps: Float64Array
) -> None:
    """Fit one bag and add the jumps of its step function to `jumps`, in place.

    A group that the bag misses takes the value of the nearest group that it holds.
    """
    n_groups, m = len(counts) // 2, 0
    drawn = np.empty(n_groups, dtype=np.int64)
    weight0, weight1 = np.empty(n_groups), np.empty(n_groups)
    # PAV takes no cells without weight; those that the bag missed are filled in below.
    for group in range(n_groups):
        if counts[2 * group] + counts[2 * group + 1] > 0.0:
            drawn[m] = group
            weight0[m], weight1[m] = counts[2 * group], counts[2 * group + 1]
            m += 1
    starts, block0, block1 = pool_adjacent_violators(weight0[:m], weight1[:m])
    before = 0.0
    for k in range(len(starts)):
        value = block1[k] / (block0[k] + block1[k])
        first = 0
        if k > 0:
            last_left, first = drawn[starts[k] - 1], drawn[starts[k]]
            # Halved before they are added: scores near the largest float must not
            # overflow.
            middle = 0.5 * high[last_left] + 0.5 * low[first]
            while (
                first - 1 > last_left
                and 0.5 * low[first - 1] + 0.5 * high[first - 1] >= middle
            ):
                first -= 1
        # Steps are added up by their jumps: a bag costs its number of blocks, not of
        # cells, and one cumulative sum at the end makes all bags one function.
        jumps[first] += value - before
        before = value


@njit
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
    n_slots = 2 * len(weight0)
    slots, cumulative = np.empty(n_slots), np.empty(n_slots)
    total = 0.0
    # Class 0 of a group and class 1 of it are neighbours: one draw finds both.
    for slot in range(n_slots):
        group = slot // 2
        slots[slot] = weight0[group] if slot % 2 == 0 else weight1[group]
        total += slots[slot]
        cumulative[slot] = total
    guide = _guide(cumulative)
    jumps = np.zeros(len(weight0))
    for seed in seeds:
        # Poisson counts add up to n_draws on average only. Isotonic regression does not
        # notice: a common factor of all weights cancels.
        if n_draws > _DRAWS_PER_SLOT * len(slots):
            counts = _draw_counts(slots, n_draws / total, mix64(seed))
        else:
            counts = _draw_rows(cumulative, guide, n_draws, mix64(seed))
        _add_fit(counts, low, high, jumps)
    for group in range(1, len(jumps)):
        jumps[group] += jumps[group - 1]
    return jumps
