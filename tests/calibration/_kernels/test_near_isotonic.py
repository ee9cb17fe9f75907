"""The near-isotonic path and its forest, against exact fractions and programs."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import xlog1py, xlogy

from calibration._kernels.near_isotonic import (
    average_nodes,
    blocks_at,
    fuse_equal,
    log_likelihoods,
    trace_path,
)
from calibration.monotone.enir import NearIsotonicPath
from tests.calibration._kernels.test_pav import random_cells


def solve(weight0, weight1, penalty):
    """The path's solution at a penalty, per cell."""
    starts, ones, weight = fuse_equal(weight0, weight1)
    tree, penalties, _ = trace_path(ones, weight)
    step = np.searchsorted(penalties, penalty, side="right") - 1
    nodes, runs = blocks_at(tree, step)
    reach = min(penalty, penalties[-1])
    values = (tree.ones[nodes] + reach * tree.pull[nodes]) / tree.weight[nodes]
    return np.repeat(values, np.diff(starts[runs], append=len(weight0)))


def fuse_blocks(blocks):
    """Join neighbours (value, class 1, weight, number of cells) of one value."""
    fused = [blocks[0]]
    for block in blocks[1:]:
        if block[0] == fused[-1][0]:
            sums = (a + b for a, b in zip(fused.pop()[1:], block[1:], strict=True))
            fused.append((block[0], *sums))
        else:
            fused.append(block)
    return fused


def exact_path(weight0, weight1):
    """The naive algorithm in fractions: [(penalty, value per cell, blocks)]."""
    counts = [(int(b), int(a + b)) for a, b in zip(weight0, weight1, strict=True)]
    blocks = [(Fraction(ones, weight), ones, weight, 1) for ones, weight in counts]
    penalty, path = Fraction(0), []
    while True:
        blocks = fuse_blocks(blocks)
        values = [block[0] for block in blocks]
        cells = np.repeat([float(v) for v in values], [block[3] for block in blocks])
        path.append((float(penalty), cells, len(blocks)))
        falls = [0, *(int(a > b) for a, b in pairwise(values)), 0]
        slopes = [
            Fraction(before - after, block[2])
            for (before, after), block in zip(pairwise(falls), blocks, strict=True)
        ]
        waits = [
            (a - b) / (slope_b - slope_a)
            for (a, slope_a), (b, slope_b) in pairwise(zip(values, slopes, strict=True))
            if slope_a != slope_b
        ]
        wait = min((w for w in waits if w > 0), default=None)
        if wait is None:
            return path
        penalty += wait
        blocks = [
            (block[0] + wait * slope, *block[1:])
            for block, slope in zip(blocks, slopes, strict=True)
        ]


@pytest.mark.parametrize("kind", ["pure", "runs", "mixed", "counts", "chain"])
def test_equals_the_naive_algorithm_in_exact_fractions(rng, kind):
    """Breakpoints one by one: simultaneous merges are one step, none is lost."""
    for m in [1, 2, 3, 6, 12, 40] * 3:
        weight0, weight1 = random_cells(rng, m, kind)
        if kind == "chain":  # D1: more than two neighbours meet
            weight0, weight1 = np.arange(m) % 2.0, np.arange(1, m + 1) % 2.0
        path = exact_path(weight0, weight1)
        starts, ones, weight = fuse_equal(weight0, weight1)
        _, penalties, n_blocks = trace_path(ones, weight)
        assert len(starts) == path[0][2]
        steps = path[1:] or path
        np.testing.assert_allclose(penalties, [p for p, _, _ in steps], rtol=1e-13)
        assert n_blocks.tolist() == [k for _, _, k in steps]
        for penalty, values, _ in path:
            ours = solve(weight0, weight1, penalty)
            np.testing.assert_allclose(ours, values, atol=1e-13)


def test_cells_of_one_rate_are_one_run_whatever_their_real_weights(rng):
    weight = rng.uniform(size=200)
    starts, ones, total = fuse_equal(weight, 3.0 * weight)
    assert starts.tolist() == [0]
    assert ones[0] / total[0] == pytest.approx(0.75, abs=1e-14)


def test_violation_sees_every_kind_of_error():
    weight0, weight1 = np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 1.0])
    # The conditions of optimality need the cells alone, and not the path.
    cells = NearIsotonicPath(weight0, weight1, *[None] * 4)
    assert cells.violation([0.75, 0.25, 1.0], 0.25) == 0.0
    # Fell too little, fell too much, rose though pulled, and the last sum is not 0.
    for values, expected in [
        ([0.9, 0.1, 1.0], 0.15),
        ([0.6, 0.4, 1.0], 0.15),
        ([0.75, 0.25, 0.9], 0.1),
        ([0.5, 0.5, 1.0], 0.25),
        ([0.2, 0.6, 1.0], 0.8),
    ]:
        assert math.isclose(cells.violation(values, 0.25), expected), values


@pytest.mark.parametrize("kind", ["pure", "runs", "mixed", "counts", "real"])
def test_likelihoods_and_averages_are_those_of_solutions(rng, kind):
    weight0, weight1 = random_cells(rng, 60, kind)
    starts, ones, weight = fuse_equal(weight0, weight1)
    tree, penalties, n_blocks = trace_path(ones, weight)
    for share in (0.1, 0.5, 1.0):
        steps = np.flatnonzero(rng.uniform(size=len(penalties)) < share)
        steps = np.union1d(steps, len(penalties) - 1)
        given = tree, steps, penalties[steps]
        solutions = np.array([solve(weight0, weight1, p) for p in penalties[steps]])
        floor = 0.5 / (weight.sum() + 1.0)
        p = np.clip(solutions, floor, 1.0 - floor)
        expected = (xlogy(weight1, p) + xlog1py(weight0, -p)).sum(axis=1)
        np.testing.assert_allclose(log_likelihoods(*given, floor), expected, rtol=1e-12)
        weights = rng.uniform(size=len(steps))
        nodes, runs = blocks_at(tree, steps[0])
        assert len(nodes) == n_blocks[steps[0]]
        means = average_nodes(*given, weights)[nodes]
        cells = np.repeat(means, np.diff(starts[runs], append=60))
        np.testing.assert_allclose(cells, weights @ solutions, atol=1e-13)
