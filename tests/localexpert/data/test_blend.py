"""Blends of forecasts: least squares on the simplex, against brute force."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from localexpert.data.blend import robust_weights, simplex_least_squares
from tests.simplex import least_on_simplex


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


@pytest.mark.parametrize("m", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("n", [2, 4, 50])
def test_no_other_weights_are_better(rng, m, n):
    for _ in range(20):
        errors = rng.normal(size=(n, m)) + 0.5 * rng.normal(size=(n, 1))
        # Some columns are the same, and the unit of all does not matter.
        for columns in (np.arange(m), rng.integers(m, size=m)):
            gram = errors[:, columns].T @ errors[:, columns]
            w = simplex_least_squares(gram)
            assert w.sum() == pytest.approx(1.0, abs=1e-12)
            assert w.min() >= 0.0
            # The conditions of Kuhn and Tucker, which are sufficient here.
            slopes = gram @ w
            assert slopes.min() >= w @ slopes - 1e-12 * np.abs(gram).max()
            assert w @ gram @ w == pytest.approx(on_supports(gram), abs=1e-12 * n)
            for unit in (2.0**-500, 2.0**500):
                assert_array_equal(simplex_least_squares(unit * gram), w)


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


def test_columns_of_little_weight_are_left_out_and_the_rest_is_solved_again():
    gram = np.diag([1.0, 1.0, 50.0])
    assert_allclose(simplex_least_squares(gram), np.array([50.0, 50.0, 1.0]) / 101.0)
    assert_allclose(simplex_least_squares(gram, least=0.05), [0.5, 0.5, 0.0])


def test_robust_weights_have_the_least_loss_of_huber(rng):
    y, errors = rng.normal(size=400), rng.standard_t(3, (3, 400))
    errors *= [[1.0], [1.3], [2.0]]
    said = dict(zip("abc", y + errors, strict=True))
    w = np.where(np.abs(errors).sum(axis=0) > 3.0, 0.2, 3.0)
    shares = np.array([*robust_weights(said, y, w, least=0.0).values()])
    missed = np.abs(shares @ errors)
    edge = np.quantile(missed, 0.5, weights=w, method="inverted_cdf")

    def loss(x):
        error = np.abs(x @ errors)
        return w @ np.where(error < edge, 0.5 * error**2, edge * (error - edge / 2))

    assert_allclose(shares, least_on_simplex(loss, 3), atol=2e-3)


def test_nothing_missed_and_nothing_to_choose(rng):
    y, w = rng.normal(size=20), np.ones(20)
    assert robust_weights({"true": y, "not": -y}, y, w, least=0.05) == {"true": 1.0}
    level = robust_weights({"a": 0 * y, "b": 0 * y}, 0 * y, w, least=0.05)
    assert sum(level.values()) == pytest.approx(1.0)
