"""Derivatives of the scaling objectives against differences, and the solver."""

import numpy as np
import pytest

from calibration.multiclass.softmax_map import (
    MatrixProblem,
    VectorProblem,
    solve_scaling,
)
from tests.calibration.multiclass.draws import draw

PROBLEMS = pytest.mark.parametrize("cls", [MatrixProblem, VectorProblem])


def make(cls, rng, n=60, k=4):
    """Return a small problem with weights and a ridge of many sizes."""
    p, y = draw(rng, n, k)
    shape = (k, k + 1) if cls is MatrixProblem else (k, 2)
    weight = rng.integers(1, 4, size=n).astype(float)
    return cls(np.log(p).T.copy(), y, weight, rng.uniform(0.01, 0.1, size=shape))


@PROBLEMS
def test_gradient_and_curvature_are_differences(cls, rng, monkeypatch):
    problem = make(cls, rng)
    # Several blocks, the last one short.
    monkeypatch.setattr("calibration.multiclass.log_probabilities._BLOCK", 25 * 4)
    theta = 0.2 * rng.normal(size=problem.ridge.shape)
    point = problem.at(theta)
    for _ in range(5):
        direction = rng.normal(size=theta.shape)
        ends = [problem.at(theta + h * direction) for h in (1e-6, -1e-6)]
        slope = (ends[0].value - ends[1].value) / 2e-6
        assert (point.gradient * direction).sum() == pytest.approx(slope, rel=1e-6)
        bent = (ends[0].gradient - ends[1].gradient) / 2e-6
        found = problem.curvature(point.p, direction)
        np.testing.assert_allclose(found, bent, rtol=1e-5, atol=1e-8)


@PROBLEMS
def test_blocks_are_parts_of_the_hessian(cls, rng):
    problem = make(cls, rng)
    point = problem.at(0.1 * rng.normal(size=problem.ridge.shape))
    blocks = problem.class_blocks(point.p, slice(None))
    k, d = problem.ridge.shape
    assert blocks.shape == (k, d, d)
    for c in range(k):
        for place in range(d):
            unit = np.zeros((k, d))
            unit[c, place] = 1.0
            column = problem.curvature(point.p, unit)[c]
            np.testing.assert_allclose(blocks[c, :, place], column, atol=1e-12)


@PROBLEMS
def test_the_solver_ends_at_a_gradient_of_nothing(cls, rng):
    problem = make(cls, rng, 300, 5)
    from_zero = solve_scaling(problem)
    from_afar = solve_scaling(problem, 3.0 * rng.normal(size=problem.ridge.shape))
    assert np.abs(problem.at(from_zero).gradient).max() < 1e-9
    np.testing.assert_allclose(from_afar, from_zero, atol=1e-6)


@PROBLEMS
def test_separable_rows_without_a_ridge_end(cls):
    y = np.arange(30) % 3
    z = np.where(np.eye(3)[y].T == 1.0, -0.1, -3.0)
    shape = (3, 4) if cls is MatrixProblem else (3, 2)
    problem = cls(z, y, np.ones(30), np.full(shape, 1e-9))
    theta = solve_scaling(problem)
    assert np.isfinite(theta).all()
    assert problem.at(theta).value < 1e-5
