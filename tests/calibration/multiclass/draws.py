"""Scores and labels that tests of several classes draw."""

import numpy as np


def draw(rng, n=300, k=4, power=2.0):
    """Scores that are too sharp, and labels."""
    p = rng.dirichlet(np.ones(k), size=n)
    y = (rng.uniform(size=(n, 1)) > p.cumsum(axis=1)).sum(axis=1)
    return p**power / (p**power).sum(axis=1, keepdims=True), y


def check_simplex(p, shape):
    """Hold a table to be probabilities."""
    assert p.shape == shape
    assert p.dtype == np.float64
    assert np.isfinite(p).all()
    assert (p > 0.0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)


def temperature_ridge(b, z, weight):
    """A thousandth of a row on b - 1 by the spread of log-probabilities, 4 at most."""
    spread = 2.0 * ((z - z.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    square = weight @ spread / weight.sum()
    return 0.5 * min(1e-3 * square, 4.0) * (b - 1.0) ** 2
