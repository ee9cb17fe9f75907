"""Sums over columns against their equations."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import Lasso

from localexpert.coordinate.small_nets import Ramps
from localexpert.coordinate.sums import AdditiveRidge, FewLines, Lines, Products
from localexpert.data.table import Table


# With 12 features there are more columns than rows.
@pytest.mark.parametrize("n_features", [2, 12])
def test_ridge_solves_the_penalised_normal_equations(rng, n_features):
    X, y = rng.normal(size=(90, n_features)), rng.normal(size=90)
    y += np.abs(X[:, 0])
    w = rng.uniform(0.5, 2.0, 90)
    model = AdditiveRidge().fit(X, y, w)
    assert model.predict(X) @ w == pytest.approx(y @ w)
    B = Ramps.learn(X, 10).spread(X)
    assert_allclose(model.predict(X), model.intercept_ + B @ model.coefficients_)
    B = B - np.average(B, axis=0, weights=w)
    spread = np.sqrt(np.average(B**2, axis=0, weights=w))
    B, z = B / spread, y - np.average(y, weights=w)
    gram, cross = B.T @ (w[:, None] * B) / w.sum(), B.T @ (w * z) / w.sum()
    root = np.sqrt(w / w.sum())[:, None] * B
    n = w.sum() ** 2 / (w @ w)
    best = None
    for penalty in np.logspace(-9.0, 3.0, 37):
        inverse = np.linalg.inv(gram + penalty * np.eye(len(gram)))
        freedom = 1.0 + np.trace(root @ inverse @ root.T)
        error = np.average((z - B @ (inverse @ cross)) ** 2, weights=w)
        score = error / (1.0 - freedom / n) ** 2
        if freedom < 0.5 * n and (best is None or score < best[0]):
            best = score, inverse @ cross
    assert_allclose(model.coefficients_ * spread, best[1], atol=1e-8)


def test_straight_lines_are_straight_beyond_the_bend(rng):
    """They go on for one range beyond training, no more."""
    X = np.exp(rng.normal(size=(300, 3)))
    y = X @ [1.0, 2.0, 0.5] + 7.0
    table, w = Table.of(X), np.append(np.ones(299), 0.0)
    dense = table.dense_inputs.transform(table.codes, "straight")
    model = Lines().fit(dense, np.append(y[:-1], 1e6), w)
    np.testing.assert_allclose(model.predict(dense), y, rtol=1e-3)
    low, high = X[:-1].min(axis=0), X[:-1].max(axis=0)
    new = np.stack([high + 0.9 * (high - low), high + 1e6, high + 1e9])
    got = model.predict(table.dense_inputs.transform(new, "straight"))
    np.testing.assert_allclose(got[0], new[0] @ [1.0, 2.0, 0.5] + 7.0, rtol=1e-3)
    assert got[1] == got[2]
    end = (2.0 * high - low) @ [1.0, 2.0, 0.5] + 7.0
    np.testing.assert_allclose(got[1], end, rtol=1e-3)


def test_products_are_the_surface_within_the_range_of_training(rng):
    X = rng.normal(size=(200, 3))

    def surface(x):
        return 3.0 * x[:, 0] * x[:, 1] - x[:, 2] ** 2 + x[:, 0] + 5.0

    w = np.append(np.ones(199), 0.0)
    model = Products().fit(X, np.append(surface(X)[:-1], 1e6), w)
    low, high = X[:-1].min(axis=0), X[:-1].max(axis=0)
    new = rng.normal(size=(5000, 3))
    expected = surface(np.clip(new, low, high))
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-3, atol=1e-3)


def test_few_lines_are_those_of_the_lasso(rng):
    X, w = rng.normal(size=(120, 30)), rng.integers(0, 3, 120) * 1.0
    X[:, 7] = 4.0
    y = X @ np.where(np.arange(30) < 3, 2.0, 0.0) + rng.normal(size=120)
    model = FewLines().fit(X, y, w)
    mean, mean_y = np.average(X, axis=0, weights=w), np.average(y, weights=w)
    spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=w))
    Z = (X - mean) / np.where(spread > 0.0, spread, 1.0)
    n, most = w.sum() ** 2 / (w @ w), np.abs((w * (y - mean_y)) @ Z).max() / w.sum()
    best = np.inf
    for share in np.logspace(0.0, -3.5, 30):
        lasso = Lasso(share * most, tol=1e-9, max_iter=10_000)
        said = lasso.fit(Z, y, sample_weight=w).predict(Z)
        freedom = (1 + np.count_nonzero(lasso.coef_)) / n
        score = np.average((said - y) ** 2, weights=w) / (1.0 - freedom) ** 2
        if freedom < 0.5 and score < best:
            best, expected = score, said
    assert_allclose(model.predict(X), expected, atol=1e-3)
    assert 3 <= np.count_nonzero(model.coefficients_) < 29


def test_many_rows_with_a_period_are_drawn(rng):
    X = np.column_stack([np.arange(100_001) % 2, rng.normal(size=100_001)])
    y, w = X @ [3.0, 1.0], (np.arange(100_001) % 4 > 0) * 1.0
    for kind in (AdditiveRidge, Lines, FewLines, Products):
        miss = kind().fit(X, np.where(w > 0.0, y, 1e6), w).predict(X) - y
        assert np.abs(miss).max() < 0.05


def test_few_lines_do_not_hang_on_the_order_of_alike_columns(rng):
    X = rng.normal(size=(400, 1)) + 0.03 * rng.normal(size=(400, 60))
    y, order = X @ rng.normal(size=60) + rng.normal(size=400), rng.permutation(60)
    first = FewLines().fit(X, y, np.ones(400)).predict(X)
    second = FewLines().fit(X[:, order], y, np.ones(400)).predict(X[:, order])
    assert_allclose(first, second, atol=1e-3 * y.std())


def test_a_small_difference_of_two_columns_is_found(rng):
    x, difference = rng.normal(size=200), rng.normal(size=200)
    X = np.column_stack([x, x + 1e-3 * difference])
    y = 2.0 * difference + rng.normal(size=200)
    miss = Lines().fit(X, y, np.ones(200)).predict(X) - 2.0 * difference
    assert np.std(miss) < 0.2


@pytest.mark.parametrize("kind", [AdditiveRidge, Lines, FewLines, Products])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_fewer_rows_than_columns(rng, kind, n):
    X, y = rng.normal(size=(n, 8)), rng.normal(size=n)
    model = kind().fit(X, y, np.ones(n))
    assert np.isfinite(model.predict(rng.normal(size=(3, 8)))).all()
