"""The nets of the thesis's chapter 6.1 to the letter, for its tables 27 to 30."""

from __future__ import annotations

import numpy as np
from numba import njit
from scipy.special import softmax

N_NETS = 10
SIZES = (4, 5, 6, 7)
RATE, BATCH = 0.1, 10
# What the thesis does not say: rectified units, as its software's default, which also
# starts AdaGrad's sums of squares so; and how long to train.
START = 0.1
EPOCHS = 20


class ShallowNets:
    """Ten nets on the k probabilities, one hidden layer of 4 to 7 units each.

    Cross-entropy, AdaGrad of rate .1, batches of 10 rows; the forecast is the mean of
    the nets'.

    Parameters
    ----------
    n_batches : int, optional
        Of each net; default 20 passes over the rows.
    """

    def __init__(self, n_batches: int | None = None):
        self.n_batches = n_batches

    def fit(self, scores: np.ndarray, y: np.ndarray) -> ShallowNets:
        """Train the nets on probabilities (n, k) and column numbers."""
        rng = np.random.default_rng(0)
        n, k = scores.shape
        self.nets_ = []
        for size in rng.choice(SIZES, N_NETS):
            # A row for each input, the last for the shift.
            first = np.vstack([_draw(rng, k, size), np.zeros(size)])
            second = np.vstack([_draw(rng, size, k), np.zeros(k)])
            n_rows = EPOCHS * n if self.n_batches is None else BATCH * self.n_batches
            passes = [rng.permutation(n) for _ in range(-(-n_rows // n))]
            order = np.concatenate(passes)[:n_rows]
            _train(np.ascontiguousarray(scores), y, order, first, second)
            self.nets_.append((first, second))
        return self

    def predict(self, scores: np.ndarray) -> np.ndarray:
        """Return the mean of the nets' probabilities, shape (n, k)."""
        total = np.zeros_like(scores)
        for first, second in self.nets_:
            hidden = np.maximum(scores @ first[:-1] + first[-1], 0.0)
            total += softmax(hidden @ second[:-1] + second[-1], axis=1)
        return total / len(self.nets_)


def _draw(rng: np.random.Generator, inputs: int, outputs: int) -> np.ndarray:
    """Return Glorot's uniform weights."""
    reach = np.sqrt(6.0 / (inputs + outputs))
    return rng.uniform(-reach, reach, size=(inputs, outputs))


@njit(cache=True)
def _train(scores, y, order, first, second):
    """Take AdaGrad's steps, a batch each, on both layers in place."""
    sums = np.full_like(first, START), np.full_like(second, START)
    for start in range(0, len(order), BATCH):
        slopes = batch_slopes(scores, y, order[start : start + BATCH], first, second)
        _step(first, sums[0], slopes[0])
        _step(second, sums[1], slopes[1])


@njit(cache=True)
def _step(layer, total, slope):
    total += slope * slope
    layer -= RATE * slope / np.sqrt(total)


@njit(cache=True)
def batch_slopes(scores, y, rows, first, second):
    """Return the gradient of the mean cross-entropy of some rows, by layer."""
    size, k = first.shape[1], scores.shape[1]
    slopes = np.zeros_like(first), np.zeros_like(second)
    hidden, back, p = np.empty(size), np.empty(size), np.empty(k)
    for row in rows:
        for h in range(size):
            hidden[h] = first[k, h]
            for j in range(k):
                hidden[h] += scores[row, j] * first[j, h]
            hidden[h] = max(hidden[h], 0.0)
        for j in range(k):
            p[j] = second[size, j]
            for h in range(size):
                p[j] += hidden[h] * second[h, j]
        p -= p.max()
        p = np.exp(p)
        p /= p.sum() * len(rows)
        p[y[row]] -= 1.0 / len(rows)
        slopes[1][size] += p
        for h in range(size):
            back[h] = 0.0
            if hidden[h] > 0.0:
                for j in range(k):
                    back[h] += p[j] * second[h, j]
                    slopes[1][h, j] += hidden[h] * p[j]
        for j in range(k):
            for h in range(size):
                slopes[0][j, h] += scores[row, j] * back[h]
        slopes[0][k] += back
    return slopes
