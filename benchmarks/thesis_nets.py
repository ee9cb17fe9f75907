"""The nets of the thesis's chapter 6.1 to the letter, for its tables 27 to 30."""

from __future__ import annotations

import numpy as np
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
    the nets'. `ShallowNetCalibrator` is the package's own.
    """

    def fit(self, scores: np.ndarray, y: np.ndarray) -> ShallowNets:
        """Train all nets at once, on probabilities (n, k) and column numbers."""
        rng = np.random.default_rng(0)
        n, k = scores.shape
        sizes = rng.choice(SIZES, N_NETS)
        # Units beyond a net's own are never on.
        self.on_ = (np.arange(max(SIZES)) < sizes[:, None])[:, None, :]
        self.weights_ = [
            _draw(rng, k, max(SIZES)),
            np.zeros((N_NETS, 1, max(SIZES))),
            _draw(rng, max(SIZES), k),
            np.zeros((N_NETS, 1, k)),
        ]
        sums = [np.full_like(one, START) for one in self.weights_]
        hits = np.eye(k)[y]
        for _ in range(EPOCHS):
            order = rng.permuted(np.tile(np.arange(n), (N_NETS, 1)), axis=1)
            for first in range(0, n, BATCH):
                rows = order[:, first : first + BATCH]
                slopes = self._slopes(scores[rows], hits[rows])
                for i, slope in enumerate(slopes):
                    sums[i] += slope**2
                    self.weights_[i] -= RATE * slope / np.sqrt(sums[i])
        return self

    def predict(self, scores: np.ndarray) -> np.ndarray:
        """Return the mean of the nets' probabilities, shape (n, k)."""
        return self._forward(scores[None])[1].mean(axis=0)

    def _forward(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return hidden units and probabilities of inputs (nets or 1, rows, k)."""
        first, shift, second, bias = self.weights_
        hidden = np.maximum(x @ first + shift, 0.0) * self.on_
        return hidden, softmax(hidden @ second + bias, axis=2)

    def _slopes(self, x: np.ndarray, hits: np.ndarray) -> list[np.ndarray]:
        """Return the gradient of the mean cross-entropy of a batch for each net."""
        hidden, p = self._forward(x)
        wrong = (p - hits) / x.shape[1]
        back = (wrong @ self.weights_[2].swapaxes(1, 2)) * (hidden > 0.0)
        return [
            x.swapaxes(1, 2) @ back,
            back.sum(axis=1, keepdims=True),
            hidden.swapaxes(1, 2) @ wrong,
            wrong.sum(axis=1, keepdims=True),
        ]


def _draw(rng: np.random.Generator, inputs: int, outputs: int) -> np.ndarray:
    """Return Glorot's uniform weights of every net."""
    reach = np.sqrt(6.0 / (inputs + outputs))
    return rng.uniform(-reach, reach, size=(N_NETS, inputs, outputs))
