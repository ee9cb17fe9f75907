"""Piecewise-linear fits on given knots against dense linear algebra."""

import numpy as np
import pytest

from calibration._kernels.trend_filter import (
    fill_pieces,
    fit_affine,
    fit_pieces,
    kinks_of,
)


def hats(x, knots):
    """Hat functions of the knots at all cells, shape (m, k)."""
    return np.column_stack([np.interp(x, x[knots], row) for row in np.eye(len(knots))])


@pytest.fixture
def data(rng):
    x = np.cumsum(rng.choice([1e-5, 0.01, 0.1], 40))
    weight = rng.uniform(0.5, 30.0, 40)
    return x, weight, rng.uniform(size=40)


KNOTS = np.array([0, 3, 4, 17, 30, 39])
FREE = np.ones(5, dtype=np.int64)


def test_without_penalties_it_is_least_squares(data):
    x, weight, target = data
    basis, root = hats(x, KNOTS), np.sqrt(weight)
    expected = np.linalg.lstsq(basis * root[:, None], root * target, rcond=None)[0]
    got = fit_pieces(x, weight, target, KNOTS, np.zeros(6), FREE, 0.0, 0.0)
    np.testing.assert_allclose(got, expected, rtol=1e-9)
    np.testing.assert_allclose(fill_pieces(x, KNOTS, got), basis @ got, rtol=1e-9)


def test_penalties_shift_the_normal_equations(data):
    """Stationarity of the objective, with signs and states held, piece by piece."""
    x, weight, target = data
    signs = np.array([0.0, 1.0, -1.0, -1.0, 1.0, 0.0])
    states = np.array([1, -1, 0, 1, 0])
    bend, fall = 0.03, 0.2
    values = fit_pieces(x, weight, target, KNOTS, signs, states, bend, fall)
    assert values[2] == values[3]
    assert values[4] == values[5]
    # Knots 2 and 3, and 4 and 5, are one unknown each.
    tied = np.eye(6)[:, [0, 1, 2, 4]]
    tied[3, 2] = tied[5, 3] = 1.0

    def objective(unknowns):
        c = tied @ unknowns
        p = hats(x, KNOTS) @ c
        falls = -np.diff(c)[states < 0].sum()
        bends = signs @ kinks_of(x, KNOTS, c)
        return 0.5 * weight @ (p - target) ** 2 + bend * bends + fall * falls

    best = values[[0, 1, 2, 4]]
    for direction in np.eye(4):
        # The objective is quadratic: a central difference is its derivative.
        ahead, back = objective(best + direction), objective(best - direction)
        assert ahead - back == pytest.approx(0.0, abs=1e-7 * abs(ahead))
        assert ahead > objective(best)


def test_kinks_are_changes_of_slope(data):
    x, _, _ = data
    values = np.array([0.0, 1.0, 0.5, 0.5, 0.9, 0.2])
    slopes = np.diff(values) / np.diff(x[KNOTS])
    kinks = kinks_of(x, KNOTS, values)
    np.testing.assert_allclose(kinks[1:-1], np.diff(slopes))
    assert kinks[0] == kinks[-1] == 0.0


def test_affine_fit_is_that_of_polyfit(data):
    x, weight, target = data
    slope, level = np.polyfit(x, target, 1, w=np.sqrt(weight))
    np.testing.assert_allclose(fit_affine(x, weight, target), level + slope * x)
