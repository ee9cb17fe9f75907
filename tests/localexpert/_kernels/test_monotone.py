"""Row-wise projection against scipy's isotonic regression and a general optimiser."""

import numpy as np
import pytest
from scipy.optimize import isotonic_regression, minimize

from localexpert._kernels.law_curve import increase_rows


@pytest.mark.parametrize("k", [1, 2, 5, 25])
def test_without_rises_it_is_isotonic_regression(rng, k):
    values = np.round(rng.normal(size=(40, k)), 1)
    weights = rng.uniform(0.1, 2, k)
    got = increase_rows(values, weights, np.zeros(k - 1))
    for row, out in zip(values, got, strict=True):
        np.testing.assert_allclose(out, isotonic_regression(row, weights=weights).x)


def test_least_rises_are_kept_at_least_cost(rng):
    values, weights = rng.normal(size=(5, 4)), rng.uniform(0.5, 2, 4)
    rises = np.array([0.1, 0.0, 0.3])
    got = increase_rows(values, weights, rises)
    assert (np.diff(got, axis=1) >= rises - 1e-12).all()
    for row, out in zip(values, got, strict=True):
        best = minimize(
            lambda x, row=row: weights @ (x - row) ** 2,
            np.cumsum(np.append(0, rises)),
            constraints={"type": "ineq", "fun": lambda x: np.diff(x) - rises},
            tol=1e-12,
        )
        np.testing.assert_allclose(out, best.x, atol=1e-5)
