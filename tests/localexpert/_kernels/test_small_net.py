"""Small networks: outputs, gradients and steps against numpy."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from localexpert._kernels.small_net import run_rows, step_by_adam
from localexpert.coordinate.small_nets import train_networks


@pytest.mark.parametrize("h", [1, 2, 7, 64])
def test_outputs_are_those_of_products_of_matrices(h, rng):
    first, second, last, rows = (
        rng.normal(size=shape).astype(np.float32)
        for shape in ((6, h), (h + 1, h), (h + 1,), (40, 5))
    )
    inner = np.maximum(rows.astype(float) @ first[:-1] + first[-1], 0.0)
    outer = np.maximum(inner @ second[:-1] + second[-1], 0.0)
    expected = outer @ last[:-1] + last[-1]
    out = run_rows(first, second, last, rows)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)
    alone = [run_rows(first, second, last, rows[i : i + 1])[0] for i in range(40)]
    np.testing.assert_array_equal(out, alone)


def half_loss(theta, X, y, w, h):
    sizes = [X.shape[1] * h, h, h * h, h, h]
    w1, b1, w2, b2, w3, b3 = np.split(theta, np.cumsum(sizes))
    first = np.maximum(X @ w1.reshape(-1, h) + b1, 0.0)
    out = np.maximum(first @ w2.reshape(h, h) + b2, 0.0) @ w3 + b3
    return 0.5 * np.mean(w * (out - y) ** 2)


@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_steps_of_each_net_are_those_of_adam_on_the_true_gradient(rng, decay):
    n, p, h, rates = 9, 2, 3, np.array([0.01, 0.02, 0.005, 0.01])
    X, y = rng.normal(size=(n, p)), rng.normal(size=n)
    w = rng.uniform(0.5, 2.0, n)
    start = rng.normal(size=(2, p * h + h + h * h + 2 * h + 1))
    theta = start.astype(np.float32)
    # In each of two passes both nets take four rows, then the other five.
    orders = np.array([[rng.permutation(n) for _ in range(2)] for _ in range(2)])
    narrow = [a.astype(np.float32) for a in (X, y, w)]
    train_networks(theta, *narrow, orders, rates, h, 4, decay)
    expected = start.copy()
    for net in range(2):
        batches = [part for order in orders[:, net] for part in np.split(order, [4])]
        mean = square = 0.0
        for k, (rate, at) in enumerate(zip(rates, batches, strict=True), 1):
            gradient = approx_fprime(
                expected[net], half_loss, 1e-7, X[at], y[at], w[at], h
            )
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.95 * square + 0.05 * gradient**2
            step = mean / (1 - 0.9**k) / (np.sqrt(square / (1 - 0.95**k)) + 1e-8)
            expected[net] = expected[net] * (1 - rate * decay) - rate * step
    np.testing.assert_allclose(theta, expected, atol=2e-4)


def test_means_of_gradients_that_have_ended_are_zero(rng):
    # Not numbers below the least normal one, with which processors are slow.
    theta, gradient = rng.normal(size=(2, 5)).astype(np.float32)
    mean, square = np.zeros((2, 5), np.float32)
    step_by_adam(theta, gradient, mean, square, 1, 0.01, 0.0)
    for step in range(2, 1600):
        step_by_adam(theta, np.zeros_like(theta), mean, square, step, 0.01, 0.0)
        normal = np.finfo(np.float32).tiny
        assert all(((a == 0.0) | (np.abs(a) > normal)).all() for a in (mean, square))
    assert not mean.any()
    assert not square.any()
