"""Steps of Adam against those of the paper, in double precision."""

import numpy as np

from localexpert._kernels.small_net import step_by_adam


def test_steps_are_those_of_the_paper(rng):
    theta = rng.normal(size=7).astype(np.float32)
    mean, square = np.zeros(7, np.float32), np.zeros(7, np.float32)
    expected, first, second = theta.astype(float), np.zeros(7), np.zeros(7)
    for step, rate in enumerate([0.01, 0.02, 0.005], 1):
        gradient = rng.normal(size=7).astype(np.float32)
        step_by_adam(theta, gradient, mean, square, step, rate, 0.5)
        first = 0.9 * first + 0.1 * gradient
        second = 0.95 * second + 0.05 * gradient.astype(float) ** 2
        move = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.95**step)) + 1e-8)
        expected = expected * (1 - rate * 0.5) - rate * move
    np.testing.assert_allclose(theta, expected, rtol=1e-4, atol=1e-6)
