"""The dual of trend filtering against dense linear algebra and linear programs."""

import numpy as np
import pytest
from scipy.optimize import linprog

from calibration._kernels.trend_filter import largest_bend, price_cells


def second_differences(x):
    """Operator from values to changes of slope, shape (m - 2, m)."""
    slopes = np.diff(np.eye(len(x)), axis=0) / np.diff(x)[:, None]
    return np.diff(slopes, axis=0)


@pytest.mark.parametrize("m", [3, 4, 30])
def test_largest_bend_is_the_formula(rng, m):
    x = np.cumsum(rng.choice([0.01, 0.1], m))
    weight, target = rng.integers(1, 9, m).astype(float), rng.uniform(size=m)
    differences = second_differences(x)
    gram = differences / weight @ differences.T
    expected = np.abs(np.linalg.solve(gram, differences @ target)).max()
    assert largest_bend(x, weight, target) == pytest.approx(expected, rel=1e-7)


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


def test_two_cells_cannot_bend():
    x = np.array([0.0, 1.0])
    assert largest_bend(x, np.ones(2), np.array([0.3, 0.7])) == 0.0


def price(x, residual, marks, gaps, bend, fall):
    marks, gaps = marks.copy(), gaps.copy()
    n_new, worst, slack = price_cells(
        x, residual, np.ones(len(x)), marks, gaps, bend, fall, 1e-9
    )
    return n_new, worst, slack, marks, gaps


def test_an_affine_fit_is_told_to_bend_at_its_peaks(rng):
    x = np.sort(rng.uniform(size=50))
    target = np.sin(9.0 * x)
    slope, level = np.polyfit(x, target, 1)
    residual = target - level - slope * x
    u = np.zeros(50)
    u[1:] = np.cumsum(np.cumsum(residual)[:-1] * np.diff(x))
    bend = 0.3 * np.abs(u).max()
    n_new, worst, slack, marks, _ = price(
        x, residual, np.zeros(50), np.ones(49, dtype=np.int64), bend, 0.0
    )
    assert worst == pytest.approx(np.abs(u).max())
    assert slack < 1e-20
    # One kink in every excursion of |u| beyond the bound, of its sign.
    over = np.abs(u) > bend
    starts = np.flatnonzero(np.diff(over.astype(int), prepend=0) == 1)
    assert n_new == len(starts) == np.count_nonzero(marks)
    for start in starts:
        stop = start + np.argmin(over[start:])
        peak = start + np.argmax(np.abs(u[start:stop]))
        assert marks[peak] == np.sign(u[peak])


def test_flat_is_optimal_exactly_where_a_linear_program_finds_a_dual_point(rng):
    """Constant fits: a program tells whether some v in [0, fall] keeps |u| <= bend."""
    verdicts = []
    for _ in range(200):
        m = int(rng.integers(2, 9))
        x = np.sort(rng.uniform(size=m))
        target = np.round(rng.uniform(size=m), 1)
        residual = target - target.mean()
        bend, fall = rng.uniform(0.0, 0.2), rng.uniform(0.0, 0.8)
        n_new, *_ = price(
            x, residual, np.zeros(m), np.zeros(m - 1, dtype=np.int64), bend, fall
        )
        transposed = np.hstack([second_differences(x).T, -np.diff(np.eye(m), axis=0).T])
        bounds = [(-bend, bend)] * (m - 2) + [(0.0, fall)] * (m - 1)
        program = linprog(
            np.zeros(2 * m - 3), A_eq=transposed, b_eq=residual, bounds=bounds
        )
        assert (n_new == 0) == (program.status == 0)
        verdicts.append(n_new == 0)
    assert 20 < sum(verdicts) < 180


def test_parts_of_a_flat_piece_slope_towards_the_data():
    x = np.arange(6.0)
    up = np.array([0.0, 0.0, -1.0, 1.0, 0.0, 0.0])
    flat = np.zeros(5, dtype=np.int64)
    _, _, _, marks, gaps = price(x, up, np.zeros(6), flat, 0.5, 0.1)
    assert set(gaps) == {0, 1}
    rising = np.flatnonzero(gaps)
    assert (np.diff(rising) == 1).all()
    assert marks[rising[0]] == (1.0 if rising[0] > 0 else 0.0)
    assert marks[rising[-1] + 1] == (-1.0 if rising[-1] < 4 else 0.0)
    _, _, _, _, gaps = price(x, -up, np.zeros(6), flat, 0.5, 0.1)
    assert set(gaps) == {0, -1}
    n_new, *_ = price(x, -up, np.zeros(6), flat, 0.5, np.inf)
    assert n_new == 0
