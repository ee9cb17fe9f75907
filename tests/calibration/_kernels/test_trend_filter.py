"""Trend filters and their duals, against generic solvers."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from calibration._kernels.pav import pool_adjacent_violators
from calibration._kernels.trend_filter import largest_bend, trend_filter_path

# Uncompiled kernels get smaller problems.
MANY = 300 if numba.config.DISABLE_JIT else 4096


def operators(x):
    """Differences of values and changes of slope as matrices."""
    differences = np.diff(np.eye(len(x)), axis=0)
    return differences, np.diff(differences / np.diff(x)[:, None], axis=0)


def objective(p, x, weight, target, bend, fall):
    differences, bends = operators(x)
    falls = np.maximum(-(differences @ p), 0.0).sum()
    cost = 0.5 * weight @ (p - target) ** 2 + bend * np.abs(bends @ p).sum()
    if np.isinf(fall):
        assert falls <= 1e-9
        return cost
    return cost + fall * falls


def solve_dual(x, weight, target, bend, fall):
    """Solve the dual by the bounded least squares of scipy; return p and its gap.

    min |W^(-1/2) (D'u - E'v) - W^(1/2) z|^2 over |u| <= bend, 0 <= v <= fall.
    """
    differences, bends = operators(x)
    root = np.sqrt(weight)
    matrix, low, high = bends.T, np.full(len(bends), -bend), np.full(len(bends), bend)
    if fall > 0.0:
        matrix = np.hstack([matrix, -differences.T])
        low = np.append(low, np.zeros(len(x) - 1))
        high = np.append(high, np.full(len(x) - 1, fall))
    found = lsq_linear(
        matrix / root[:, None], root * target, (low, high), "bvls", 1e-14, max_iter=5000
    )
    p = target - matrix @ found.x / weight
    dual = 0.5 * weight @ (target**2 - p**2)
    return p, dual


def draw_problem(rng, kind):
    m = int(rng.integers(3, 15))
    if kind == "labels":
        x, weight = np.linspace(0.0, 1.0, m), np.ones(m)
    elif kind == "close":
        x = np.cumsum(rng.choice([1e-5, 0.01, 0.2], m))
        weight = rng.integers(1, 50, m).astype(float)
    else:
        x, weight = np.sort(rng.uniform(size=m)), rng.uniform(0.1, 5.0, m)
    target = rng.binomial(np.ceil(weight).astype(int), 0.5) / np.ceil(weight)
    return (x - x[0]) / (x[-1] - x[0]), weight, target


@pytest.mark.parametrize("share", [0.0, 0.02, 0.2, np.inf])
@pytest.mark.parametrize("kind", ["labels", "close", "real"])
def test_equals_a_generic_solver(rng, kind, share):
    n_sure = 0
    for _ in range(25):
        x, weight, target = draw_problem(rng, kind)
        fall = share * weight.sum()
        bends = largest_bend(x, weight, target) * np.logspace(0.1, -4, 6)
        values, *_ = trend_filter_path(x, weight, target, bends, fall)
        for bend, p in zip(bends, values, strict=True):
            ours = objective(p, x, weight, target, bend, fall)
            expected, dual = solve_dual(x, weight, target, bend, fall)
            # Its dual is a bound whether or not it came to its end; mostly it did.
            assert ours >= dual - 1e-10
            if ours <= dual + 1e-10:
                n_sure += 1
                assert np.abs(p - expected).max() < 1e-4
    assert n_sure >= 0.95 * 150


def exact_gap(p, x, weight, target, bend):
    """Relative gap of p to a dual point in the box, in extended precision."""
    x, weight, target, p = (np.longdouble(a) for a in (x, weight, target, p))
    running = np.cumsum(weight * (target - p))
    u = np.append(0.0, np.cumsum(running[:-1] * np.diff(x)))
    u[-1] = 0.0
    u *= min(1.0, bend / np.abs(u).max())
    rates = np.diff(u) / np.diff(x)
    moved = np.diff(np.concatenate([[0.0], rates, [0.0]])) / weight
    kinks = np.diff(np.diff(p) / np.diff(x))
    primal = 0.5 * weight @ (p - target) ** 2 + bend * np.abs(kinks).sum()
    dual = 0.5 * weight @ (target**2 - (target - moved) ** 2)
    return float((primal - dual) / primal)


@pytest.mark.parametrize("rows", [1, 250])
@pytest.mark.parametrize("law", ["wave", "line"])
def test_gap_on_many_cells_is_what_it_is_said_to_be(rng, law, rows):
    x = np.cumsum(np.maximum(rng.exponential(1.0 / MANY, MANY), 1e-5))
    x = (x - x[0]) / (x[-1] - x[0])
    rate = 0.5 + 0.3 * np.sin(8.0 * x) if law == "wave" else 0.1 + 0.8 * x
    weight = np.full(MANY, float(rows))
    target = rng.binomial(rows, rate) / rows
    bends = largest_bend(x, weight, target) * np.logspace(0, -4, 50)
    values, _, freedom, gaps = trend_filter_path(x, weight, target, bends, 0.0)
    assert freedom[0] == 2
    assert freedom[-1] > 25
    assert gaps.max() < 1e-8
    for k in (0, 10, 30, 49):
        assert -1e-12 < exact_gap(values[k], x, weight, target, bends[k]) < 1e-8
    # The certificate tells a worse map from the best one.
    other = values[10] + 0.01 * np.sin(5.0 * x)
    assert exact_gap(other, x, weight, target, bends[10]) > 1e-5


def test_marks_are_the_kinks_and_freedom_counts_them(rng):
    x = np.sort(rng.uniform(size=200))
    target = (rng.uniform(size=200) < x).astype(float)
    weight = np.ones(200)
    shares = np.append([3.0, 1.0, 0.999], np.logspace(-0.3, -3, 12))
    bends = largest_bend(x, weight, target) * shares
    values, marks, freedom, _ = trend_filter_path(x, weight, target, bends, 0.0)
    kinks = np.diff(np.diff(values) / np.diff(x))
    np.testing.assert_array_equal(
        np.where(np.abs(kinks) > 1e-9, np.sign(kinks), 0.0), marks[:, 1:-1]
    )
    np.testing.assert_array_equal(freedom, 2 + (marks != 0.0).sum(axis=1))
    # Affine from lambda_max on, and not below.
    assert freedom[:3].tolist() == [2, 2, 3]


def test_without_bending_cost_an_increasing_filter_is_isotonic(rng):
    x = np.linspace(0.0, 1.0, 80)
    weight1 = rng.integers(0, 4, 80).astype(float)
    weight0 = 4.0 - weight1
    starts, sum0, sum1 = pool_adjacent_violators(weight0, weight1)
    expected = np.repeat(sum1 / (sum0 + sum1), np.diff(starts, append=80))
    bends = np.logspace(-1, -12, 12)
    target, four = weight1 / 4.0, np.full(80, 4.0)
    values, _, freedom, _ = trend_filter_path(x, four, target, bends, np.inf)
    np.testing.assert_allclose(values[-1], expected, atol=1e-6)
    assert (np.diff(values, axis=1) >= 0.0).all()
    assert freedom[-1] == len(starts)


@pytest.mark.parametrize("fall", [0.0, 0.3, np.inf])
@given(
    labels=st.lists(st.integers(0, 3), min_size=2, max_size=25),
    gaps=st.lists(st.sampled_from([1e-5, 1e-3, 0.1, 1.0]), min_size=24, max_size=24),
)
def test_any_runs_and_gaps_are_solved(fall, labels, gaps):
    """Runs, ties, alternation and exact fits: the certificate always closes."""
    m = len(labels)
    x = np.append(0.0, np.cumsum(gaps[: m - 1]))
    x /= x[-1]
    weight, target = np.full(m, 3.0), np.array(labels) / 3.0
    bends = max(largest_bend(x, weight, target), 1e-6) * np.logspace(0, -4, 7)
    values, _, freedom, gap = trend_filter_path(x, weight, target, bends, fall)
    assert np.isfinite(values).all()
    assert (gap < 1e-8).all()
    assert (freedom <= m).all()
    assert values.min() > -2.0
    assert values.max() < 3.0


def test_largest_bend_keeps_digits_where_cells_nearly_coincide():
    """Rows split over cells 1e-9 apart have the penalty of the cells as one."""
    x = np.array([0.0, 0.2, 0.5, 0.9, 1.0])
    weight = np.array([3.0, 4.0, 5.0, 2.0, 6.0])
    target = np.array([0.1, 0.6, 0.2, 0.9, 0.4])
    split = np.insert(x, 3, 0.5 + 1e-9)
    weights = np.insert(weight, 3, 3.0)
    weights[2] = 2.0
    together = largest_bend(x, weight, target)
    apart = largest_bend(split, weights, np.insert(target, 3, 0.2))
    assert apart == pytest.approx(together, rel=1e-7)
