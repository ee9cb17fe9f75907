"""The path of the lasso against scikit-learn's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Lasso

from localexpert._kernels.lasso import lasso_path


@pytest.mark.parametrize("p", [1, 6, 90])
def test_each_penalty_has_its_least_loss(rng, p):
    X, y = rng.normal(size=(60, p)), rng.normal(size=60)
    X[:, p // 2] = X[:, 0]
    y += 2.0 * X[:, 0]
    gram, along = X.T @ X / 60.0, X.T @ y / 60.0
    penalties = np.abs(along).max() * np.array([1.0, 0.5, 0.1, 0.02])
    paths = lasso_path(gram, along, penalties, 1e9)
    assert not paths[0].any()

    def loss(b, penalty):
        return 0.5 * b @ gram @ b - b @ along + penalty * np.abs(b).sum()

    for b, penalty in zip(paths, penalties, strict=True):
        lasso = Lasso(penalty, fit_intercept=False, tol=1e-12, max_iter=100_000)
        assert loss(b, penalty) < loss(lasso.fit(X, y).coef_, penalty) + 1e-6


def test_a_path_ends_where_it_has_too_many_numbers():
    gram, along = np.eye(5), np.array([5.0, -4.0, 3.0, -2.0, 0.0])
    gram[4, 4] = 0.0
    paths = lasso_path(gram, along, np.array([4.5, 3.5, 1.0, 0.5]), 1.0)
    assert_allclose(paths[0], [0.5, 0.0, 0.0, 0.0, 0.0])
    assert_allclose(paths[1], [1.5, -0.5, 0.0, 0.0, 0.0])
    assert_array_equal(paths[2:], 0.0)
    assert not lasso_path(gram, 0.0 * along, np.zeros(2), 9.0).any()
