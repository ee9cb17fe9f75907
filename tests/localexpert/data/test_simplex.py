"""Least squares on the simplex against brute force and a generic optimiser."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from localexpert.data.blend import simplex_least_squares


def on_supports(gram):
    """The least value over all supports, each solved by its Lagrange conditions."""
    m, best = len(gram), np.inf
    for size in range(1, m + 1):
        for support in combinations(range(m), size):
            inner = gram[np.ix_(support, support)]
            system = np.block([[inner, np.ones((size, 1))], [np.ones(size), 0.0]])
            w = np.linalg.lstsq(system, np.eye(size + 1)[-1], rcond=None)[0][:size]
            # Rounding at a vertex of the simplex is no reason to pass it over.
            if w.min() >= -1e-9:
                w = np.maximum(w, 0.0) / np.maximum(w, 0.0).sum()
                best = min(best, float(w @ inner @ w))
    return best


def assert_optimal(gram, w):
    """The conditions of Kuhn and Tucker, which are sufficient here."""
    assert w.sum() == pytest.approx(1.0, abs=1e-12)
    assert w.min() >= 0.0
    slopes = gram @ w
    assert slopes.min() >= w @ slopes - 1e-12 * np.abs(gram).max()


@pytest.mark.parametrize("m", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("n", [2, 4, 50])
def test_least_over_all_supports(rng, m, n):
    for _ in range(20):
        errors = rng.normal(size=(n, m)) + 0.5 * rng.normal(size=(n, 1))
        gram = errors.T @ errors
        w = simplex_least_squares(gram)
        assert_optimal(gram, w)
        assert w @ gram @ w == pytest.approx(on_supports(gram), abs=1e-12 * n)


@pytest.mark.parametrize("common", [0.0, 1.0, 10.0])
def test_as_a_generic_optimiser(rng, common):
    errors = rng.normal(size=(100, 6)) + common * rng.normal(size=(100, 1))
    gram = errors.T @ errors / 100.0
    found = minimize(
        lambda w: (w @ gram @ w, 2.0 * gram @ w),
        np.full(6, 1.0 / 6.0),
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * 6,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0},
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    assert_allclose(simplex_least_squares(gram), found.x, atol=2e-6)


def test_the_unit_of_errors_does_not_matter(rng):
    errors = rng.normal(size=(50, 4)) + rng.normal(size=(50, 1))
    gram = errors.T @ errors
    want = simplex_least_squares(gram)
    for unit in (1e-150, 1e-8, 1e150):
        assert_allclose(simplex_least_squares(unit * gram), want, rtol=1e-9)


def test_columns_that_are_the_same_share_what_one_of_them_has(rng):
    errors = rng.normal(size=(50, 3))
    want = simplex_least_squares(errors.T @ errors)
    twice = errors[:, [0, 1, 2, 0, 1]]
    gram = twice.T @ twice
    w = simplex_least_squares(gram)
    assert_optimal(gram, w)
    assert_allclose(w[:3] + np.append(w[3:], 0.0), want, rtol=1e-9)


def test_columns_on_a_line(rng):
    """A third column between two others cannot improve on them."""
    errors = rng.normal(size=(50, 2))
    errors = np.column_stack([errors, errors @ [0.3, 0.7]])
    gram = errors.T @ errors
    w = simplex_least_squares(gram)
    assert_optimal(gram, w)
    assert w @ gram @ w == pytest.approx(on_supports(gram[:2, :2]))


def test_columns_nearly_the_same(rng):
    """Differences near rounding end in weights that are no worse than any."""
    errors = rng.normal(size=(50, 1)) + 1e-9 * rng.normal(size=(50, 5))
    gram = errors.T @ errors
    w = simplex_least_squares(gram)
    assert w.sum() == pytest.approx(1.0)
    assert w.min() >= 0.0
    assert w @ gram @ w <= gram.diagonal().min() * (1.0 + 1e-12)


def test_an_error_of_zero_takes_all():
    gram = np.array([[2.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 3.0]])
    assert_array_equal(simplex_least_squares(gram), [0.0, 1.0, 0.0])
    assert_array_equal(simplex_least_squares(np.zeros((3, 3))), [1.0, 0.0, 0.0])


def test_errors_that_cancel_are_blended_to_zero():
    errors = np.array([[1.0, -3.0, 5.0]])
    w = simplex_least_squares(errors.T @ errors)
    assert abs((errors @ w).item()) < 1e-12


def test_one_column_has_all_the_weight():
    assert_array_equal(simplex_least_squares(np.array([[7.0]])), [1.0])


def test_a_worse_column_on_the_same_side_has_none():
    gram = np.array([[1.0, 1.5], [1.5, 4.0]])
    assert_array_equal(simplex_least_squares(gram), [1.0, 0.0])


def test_columns_of_little_weight_are_left_out_and_the_rest_is_solved_again():
    gram = np.diag([1.0, 1.0, 50.0])
    assert_allclose(simplex_least_squares(gram), np.array([50.0, 50.0, 1.0]) / 101.0)
    assert_allclose(simplex_least_squares(gram, least=0.05), [0.5, 0.5, 0.0])
