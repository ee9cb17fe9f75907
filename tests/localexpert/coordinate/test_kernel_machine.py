"""`KernelMachine` against its equations, term by term."""

import numpy as np
import pytest

from localexpert.coordinate.kernel_machine import KernelMachine, KernelMachines
from tests.regressors import sample_of


def solve_slowly(X, y, w, metric, penalty, smooth):
    """Return f and its gradient in double precision, one row at a time."""
    mean = np.average(y, weights=w)
    spread = np.sqrt(np.average((y - mean) ** 2, weights=w))

    def distance(x, z):
        return np.sqrt((x - z) @ metric @ (x - z))

    every = np.array([[distance(x, z) for z in X] for x in X])
    width = (1.0 if smooth else 3.0) * np.median(every[:200])

    def kernel(distance):
        u = distance / width
        return (1.0 + u if smooth else 1.0) * np.exp(-u)

    left = kernel(every) + penalty * np.diag(w.mean() / w)
    a = np.linalg.solve(left, (y - mean) / spread)

    def f(x):
        near = [c * kernel(distance(x, z)) for c, z in zip(a, X, strict=True)]
        return mean + spread * np.sum(near)

    def slope(x):
        # A row's own term is even around it.
        steps = 1e-6 * np.eye(len(x))
        return np.array([(f(x + step) - f(x - step)) / 2e-6 for step in steps])

    return f, slope


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("n_steps", [0, 1, 2])
def test_predictions_follow_the_equations(rng, n_steps, smooth):
    X, new = rng.normal(size=(40, 3)), rng.normal(size=(7, 3))
    w = rng.uniform(0.5, 2.0, size=40)
    y = X[:, 0] ** 2 + 0.1 * rng.normal(size=40)
    metric = np.eye(3)
    for _ in range(n_steps):
        _, slope = solve_slowly(X, y, w, metric, 0.2, smooth)
        slopes = np.array([slope(x) for x in X])
        outer = slopes.T @ slopes
        metric = outer / np.linalg.eigvalsh(outer)[-1]
    f, _ = solve_slowly(X, y, w, metric, 0.2, smooth)
    # A row without weight says nothing.
    rows, goal = np.vstack([X, [[0.0, 0.0, 9.0]]]), np.append(y, 1e3)
    model = KernelMachine(n_steps, 0.2, smooth).fit(rows, goal, np.append(w, 0.0))
    expected = [f(x) for x in new]
    np.testing.assert_allclose(model.predict(new), expected, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("case", ["one row", "equal rows", "constant y"])
def test_little_to_learn_gives_the_mean(rng, case):
    n = 1 if case == "one row" else 9
    X = np.ones((n, 2)) if case == "equal rows" else rng.normal(size=(n, 2))
    y = np.full(n, 3.0) if case == "constant y" else rng.normal(size=n)
    said = KernelMachine(2, 0.1).fit(X, y, np.ones(n)).predict(X)
    np.testing.assert_allclose(said, y.mean(), atol=1e-5)


def test_weights_below_single_precision_are_nearly_none(rng):
    X, w = rng.normal(size=(60, 3)), np.ones(60)
    w[:9] = 1e-60
    model = KernelMachine(1).fit(X, X[:, 0], w)
    assert np.isfinite(model.predict(X)).all()
    assert np.abs(model.coefficients_[:9]).max() < 1e-9


def test_the_first_fold_chooses_for_all(rng):
    X = rng.normal(size=(300, 6))
    noise = rng.normal(size=300)
    chosen = []
    for y in (np.sin(3.0 * X[:, 0]), noise):
        sample = sample_of(X, y, cv=3)
        machines = KernelMachines(view="bent", n_jobs=None)
        trial = machines.attempt(X, sample, sample.folds[0])
        machines.fit(X, sample, trial)
        np.testing.assert_array_equal(machines.oof_[sample.folds[0][1]], trial.answers)
        chosen.append(machines.regressor)
        assert all(m.get_params() == chosen[-1].get_params() for m in machines.models_)
    smooth, flat = chosen
    assert smooth.penalty < flat.penalty
    assert smooth.n_steps > 0
