"""A step of AdaGrad against slopes by finite differences."""

import numpy as np
from scipy.special import log_softmax

from calibration._kernels.rectified_net import descend_by_batches


def cross_entropy(layers, rows, labels, share):
    units = np.maximum(rows @ layers[0].T, 0.0)
    logs = log_softmax(np.column_stack([units, np.ones(len(rows))]) @ layers[1].T, 1)
    return -share @ logs[np.arange(len(rows)), labels]


def test_a_step_follows_the_slopes_of_the_weighted_cross_entropy(rng):
    n, d, h, k = 7, 3, 5, 4
    rows = np.column_stack([rng.normal(size=(n, d)), np.ones(n)])
    labels, weight = rng.integers(k, size=n), rng.uniform(size=n)
    start = rng.normal(size=(h, d + 1)), rng.normal(size=(k, h + 1))
    layers = start[0].copy(), start[1].copy()
    batches = [np.array([4, 0, 6]), np.array([1, 1, 5]), np.array([2])]
    order = np.concatenate(batches)
    descend_by_batches(layers, rows, labels, weight, order, 3, 0.2, 0.1)
    squares = [np.full(layer.shape, 0.1) for layer in start]
    for some in batches:
        share = weight[some] / weight[some].sum()
        slopes = [np.empty(layer.shape) for layer in start]
        for layer, slope in zip(start, slopes, strict=True):
            for place in np.ndindex(layer.shape):
                held, ends = layer[place], []
                for step in (-1e-6, 1e-6):
                    layer[place] = held + step
                    ends.append(cross_entropy(start, rows[some], labels[some], share))
                layer[place] = held
                slope[place] = (ends[1] - ends[0]) / 2e-6
        for i, slope in enumerate(slopes):
            squares[i] += slope**2
            start[i][:] -= 0.2 * slope / np.sqrt(squares[i])
    for found, truth in zip(layers, start, strict=True):
        np.testing.assert_allclose(found, truth, atol=1e-7)
