"""Nets that AdaGrad trains, against a rewrite a row at a time."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax

from calibration import ShallowNetCalibrator
from tests.calibration.multiclass.draws import draw


def slow_thesis_nets(p, y, weight, sizes, n_batches, rng):
    """Chapter 6.1 a row at a time: rectified units, AdaGrad, ten rows a step."""
    (n, k), total = p.shape, np.zeros(p.shape)
    for size in sizes:
        into, out = np.sqrt(6 / (k + size)), np.sqrt(6 / (size + k))
        a, b = rng.uniform(-into, into, (k, size)), np.zeros(size)
        v, c = rng.uniform(-out, out, (size, k)), np.zeros(k)
        layers, sums = [a, b, v, c], [np.full(x.shape, 0.1) for x in (a, b, v, c)]
        rounds = -(-10 * n_batches // n)
        order = np.concatenate([rng.permutation(n) for _ in range(rounds)])
        for step in range(n_batches):
            rows = order[10 * step : 10 * step + 10]
            slopes = [np.zeros(x.shape) for x in layers]
            for i in rows:
                hidden = np.maximum(p[i] @ a + b, 0)
                miss = softmax(hidden @ v + c) - np.eye(k)[y[i]]
                back = (v @ miss) * (hidden > 0)
                share = weight[i] / weight[rows].sum()
                parts = (np.outer(p[i], back), back, np.outer(hidden, miss), miss)
                for j in range(4):
                    slopes[j] += share * parts[j]
            for j in range(4):
                sums[j] += slopes[j] ** 2
                layers[j] -= 0.1 * slopes[j] / np.sqrt(sums[j])
        total += softmax(np.maximum(p @ a + b, 0) @ v + c, axis=1)
    return total / len(sizes)


def test_adagrad_trains_the_nets_of_the_thesis(rng):
    p, y = draw(rng, 70, 3)
    p[0] = 1.0, 0.0, 0.0
    weight = rng.integers(1, 4, 70)
    fitted = ShallowNetCalibrator(3, solver="adagrad", n_batches=25, random_state=7)
    found = fitted.fit(p, y, weight).predict(p)
    seeds = np.random.default_rng(7)
    sizes = seeds.integers(4, 8, size=3)
    truth = slow_thesis_nets(p, y, weight, sizes, 25, seeds)
    assert_allclose(found, truth, atol=1e-12)
    # By default a net sees every row 20 times.
    whole = ShallowNetCalibrator(1, solver="adagrad").fit(p, y)
    again = ShallowNetCalibrator(1, solver="adagrad", n_batches=140).fit(p, y)
    assert_array_equal(whole.predict(p), again.predict(p))
