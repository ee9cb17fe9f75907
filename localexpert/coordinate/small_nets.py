"""`SmallNets`: the mean of a few small neural networks, and `Ramps`, their inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin

from calibration.typing import Float64Array, Int64Array
from localexpert._kernels.small_net import run_rows, step_by_adam

# Most ramps of all columns together, because each ramp is an input of every net.
_MOST_RAMPS = 600
# Ramps are about ten times as wide as the columns. So only this many rows are spread
# at a time.
_ROWS_AT_ONCE = 8192


@dataclass(frozen=True)
class Ramps:
    """Piecewise linear encoding of columns.

    The knots k_0 < ... < k_m of a column are quantiles. A number x enters as itself and
    as min(1, max(0, (x - k_j) / (k_j+1 - k_j))) for each j. A net of few steps can only
    learn a bend within a narrow range of x if it is shown this range.

    Parameters
    ----------
    n_columns : int
    column : ndarray of int, shape (n_ramps,)
        The column of each ramp. A column of two values has none, because it is a line
        already.
    low, size : ndarrays of shape (n_ramps,)
        Where each ramp begins, and how far it goes.

    References
    ----------
    Gorishniy, Rubachev & Babenko (2022), On embeddings for numerical features in
    tabular deep learning, section 3.2.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.coordinate.small_nets import Ramps
    >>> x = np.array([[0.0], [1.0], [4.0]])
    >>> Ramps.learn(x, 2).spread(np.array([[0.5], [2.5]]))
    array([[0.5, 0.5, 0. ],
           [2.5, 1. , 0.5]])
    """

    n_columns: int
    column: NDArray[np.intp]
    low: Float64Array
    size: Float64Array

    @classmethod
    def learn(cls, X: Float64Array, n: int) -> Ramps:
        """Place the knots of at most `n` ramps per column of X, shape (n_rows, p)."""
        p = X.shape[1]
        n = min(n, _MOST_RAMPS // max(p, 1))
        levels = np.linspace(0.0, 1.0, n + 1)
        knots = [_place_knots(column, levels) for column in X.T] if n else []
        column = np.repeat(np.arange(p), [len(k) - 1 for k in knots] if n else 0)
        low = np.concatenate([np.empty(0), *(k[:-1] for k in knots)])
        size = np.concatenate([np.empty(0), *map(np.diff, knots)])
        return cls(p, column, low, size)

    @property
    def width(self) -> int:
        """Number of columns that `spread` returns."""
        return self.n_columns + len(self.low)

    def spread(self, X: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return all columns, and then the ramps of all columns."""
        passed = (X[:, self.column] - self.low) / self.size
        return np.hstack([X, np.clip(passed, 0.0, 1.0)])


def _place_knots(column: Float64Array, levels: Float64Array) -> Float64Array:
    """Return the distinct quantiles of a column, but only one if it has two values."""
    knots: Float64Array = np.unique(np.quantile(column, levels))
    return knots if len(np.unique(column)) > 2 else knots[:1]


# Number of rectifiers in a layer. With half of them, small tables had equal errors out
# of fold. But errors on new rows, by the mean of all folds' nets, were 2 % greater.
_HIDDEN = 64
# Rows seen in training, repetitions counted, and bounds on the passes over the data.
_ROWS_SEEN = 100_000
_MOST_PASSES, _PASSES, _LEAST_PASSES = 400, 20, 8
# Beyond this many rows, passes get fewer, with the root of the number of rows.
_MANY_ROWS = 20_000
# Beyond this many inputs, passes get fewer in proportion. With more inputs, a step of
# each weight moves the outputs more. Longer training gained nothing.
_MANY_INPUTS = 300
_LEAST_BATCH, _MOST_BATCH = 32, 256
_RATE = 0.025
_WARM_UP = 0.2
# Nets of ramps bend in the right places from the start. They need this share of passes.
_PASSES_OF_RAMPS = 0.6


@dataclass(eq=False, repr=False)
class SmallNets(RegressorMixin, BaseEstimator):
    """The mean of small nets. Each is trained for a fixed number of steps.

    A net has two hidden layers of 64 rectifiers. It minimises the squared error of the
    standardised target by Adam with decoupled decay. The step length rises for a fifth
    of the time and then falls as a cosine. So no validation set is needed.

    Parameters
    ----------
    decay : float
        Share of the step length by which parameters shrink in every step.
    n_nets : int
    random_state : int
    n_ramps : int
        Number of ramps of each column, see `Ramps`. They are inputs beside the columns.

    References
    ----------
    Loshchilov & Hutter (2019), Decoupled weight decay regularization.
    Smith & Topin (2019), Super-convergence (one cycle of step lengths).
    """

    decay: float = 0.03
    n_nets: int = 2
    random_state: int = 0
    n_ramps: int = 0

    def fit(
        self, X: Float64Array, y: Float64Array, sample_weight: Float64Array
    ) -> Self:
        """Fit every net from its own seed."""
        # With weights of mean 1, the step length means the same as without weights.
        w = sample_weight / sample_weight.mean()
        self.mean_ = float(w @ y / w.sum())
        self.spread_ = float(np.sqrt(w @ (y - self.mean_) ** 2 / w.sum())) or 1.0
        target = (y - self.mean_) / self.spread_
        self.ramps_ = Ramps.learn(X, self.n_ramps)
        inputs = np.empty((len(X), self.ramps_.width), dtype=np.float32)
        for rows, block in self._read(X):
            inputs[rows] = block
        batch, n_passes = plan_training(*inputs.shape)
        if self.n_ramps:
            n_passes = round(_PASSES_OF_RAMPS * n_passes)
        rates = step_lengths(n_passes * max(1, len(y) // batch))
        # Nets only differ in their start and in the order of rows.
        streams = [
            np.random.default_rng([self.random_state, j]) for j in range(self.n_nets)
        ]
        # Single precision is twice as fast, and its errors are far below the noise.
        theta = np.array([draw_start(inputs.shape[1], rng) for rng in streams])
        orders = (
            np.array([rng.permutation(len(y)) for rng in streams])
            for _ in range(n_passes)
        )
        train_networks(
            theta, inputs, target, w, orders, rates, _HIDDEN, batch, self.decay
        )
        self.nets_ = list(theta)
        return self

    def predict(self, X: Float64Array) -> Float64Array:
        """Return the mean of the nets, shape (n,)."""
        width = self.ramps_.width
        views = [view_layers(theta[None, :], width, _HIDDEN) for theta in self.nets_]
        nets = [
            [np.ascontiguousarray(layer[0]) for layer in layers] for layers in views
        ]
        total = np.zeros(len(X))
        for rows, inputs in self._read(X):
            for first, second, last in nets:
                total[rows] += run_rows(first, second, last[:, 0].copy(), inputs)
        return self.mean_ + self.spread_ * total / len(self.nets_)

    def _read(self, X: Float64Array) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """Yield inputs of some rows at a time. Ramps are shifted to lie around 0."""
        for start in range(0, len(X), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            inputs = self.ramps_.spread(X[rows])
            inputs[:, X.shape[1] :] -= 0.5
            yield rows, np.ascontiguousarray(inputs, dtype=np.float32)


class NetsOfLogarithm(SmallNets):
    """Nets of the logarithm of a positive target.

    They answer f exp(m). The factor f makes the answers for the training rows unbiased,
    see `unbias`. Before f, all answers are inside the range of y.
    """

    def fit(
        self, X: Float64Array, y: Float64Array, sample_weight: Float64Array
    ) -> Self:
        """Fit every net to the logarithm, and the factor."""
        self.range_ = float(np.log(y.min())), float(np.log(y.max()))
        self.factor_ = 1.0
        super().fit(X, np.log(y), sample_weight)
        answers = self.predict(X)
        self.factor_ = unbias(answers, y, sample_weight)
        return self

    def predict(self, X: Float64Array) -> Float64Array:
        """Return the answers in units of y, shape (n,)."""
        return self.factor_ * np.exp(np.clip(super().predict(X), *self.range_))


def unbias(answers: Float64Array, y: Float64Array, w: Float64Array) -> float:
    """Return the factor f of least squares, sum w answers (y - f answers) = 0.

    The exponential of the mean logarithm is smaller than the mean (Jensen).
    """
    return float((w * answers) @ y / ((w * answers) @ answers))


def plan_training(n: int, n_inputs: int) -> tuple[int, int]:
    """Return the rows of a step and the passes over `n` rows."""
    passes = float(np.clip(_ROWS_SEEN / n, _PASSES, _MOST_PASSES))
    if n > _MANY_ROWS:
        passes = max(_PASSES * np.sqrt(_MANY_ROWS / n), _LEAST_PASSES)
    passes = max(passes * min(1.0, _MANY_INPUTS / n_inputs), _LEAST_PASSES)
    # Make at least some 100 steps per pass. Fewer and larger steps learn less.
    batch = int(np.clip(n // 100, _LEAST_BATCH, _MOST_BATCH))
    return batch, round(passes)


def step_lengths(n_steps: int) -> Float64Array:
    """Return step lengths that rise linearly to the most, and fall as a cosine."""
    time = np.arange(n_steps) / n_steps
    fall = 0.5 * (1.0 + np.cos(np.pi * (time - _WARM_UP) / (1.0 - _WARM_UP)))
    return np.where(time < _WARM_UP, time / _WARM_UP, fall) * _RATE


def draw_start(p: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return random parameters of a net (He et al. 2015). Its last layer is small."""
    h = _HIDDEN
    # Variance 2 / inputs keeps the variance of rectified layers (their eq. 10). Random
    # biases spread the bends over the data. A small last layer starts at the mean.
    layers = [
        rng.normal(0.0, np.sqrt(2.0 / p), p * h),
        rng.normal(0.0, 0.5, h),
        rng.normal(0.0, np.sqrt(2.0 / h), h * h),
        rng.normal(0.0, 0.5, h),
        rng.normal(0.0, np.sqrt(0.1 / h), h),
        np.zeros(1),
    ]
    return np.concatenate(layers).astype(np.float32)


def train_networks(
    theta: NDArray[np.float32],
    X: NDArray[np.floating],
    y: NDArray[np.floating],
    w: NDArray[np.floating],
    orders: Iterable[Int64Array],
    rates: Float64Array,
    n_hidden: int,
    batch: int,
    decay: float,
) -> None:
    """Fit nets of two hidden layers of rectifiers to squared error, in place.

    The nets do not depend on each other. Their products are computed together, because
    for products as small as those of one net the call takes as long as the work.

    Parameters
    ----------
    theta : ndarray of shape (n_nets, p h + h + h h + h + h + 1)
        Weights and biases, layer by layer, in C order. h is `n_hidden`.
    X : ndarray of shape (n, p)
    y, w : ndarrays of shape (n,)
        Targets and weights.
    orders : iterable of n_passes ndarrays of shape (n_nets, n)
        Order of the rows for every net, pass by pass.
    rates : ndarray of shape (n_passes * max(1, n // batch),)
        Step lengths.
    n_hidden, batch : int
    decay : float
        See `step_by_adam`.
    """
    n, p = X.shape
    # A row is the inputs, a 1 for the bias, the target and the weight.
    rows = np.ones((n, p + 3), np.float32)
    rows[:, :p], rows[:, p + 1], rows[:, p + 2] = X, y, w
    # Adam treats each parameter separately, so one step can serve all nets.
    vector = theta.reshape(-1)
    gradient, mean, square = (np.zeros_like(vector) for _ in range(3))
    nets = view_layers(theta, p, n_hidden)
    parts = view_layers(gradient.reshape(theta.shape), p, n_hidden)
    n_batches = max(1, n // batch)
    ends = (np.arange(n_batches + 1) * n // n_batches).tolist()
    batches = (order[:, i:j] for order in orders for i, j in pairwise(ends))
    # An overflow gives parameters that are not finite, without a warning.
    with np.errstate(all="ignore"):
        for step, (rate, some) in enumerate(zip(rates, batches, strict=True), 1):
            _fill_gradient(nets, parts, rows[some])
            step_by_adam(vector, gradient, mean, square, step, rate, decay)


def view_layers(
    vectors: NDArray[np.float32], p: int, h: int
) -> list[NDArray[np.float32]]:
    """Return the layers of nets as views. Writing to a layer writes to the vectors.

    The last row of each layer is its bias. The shapes are (n_nets, p + 1, h),
    (n_nets, h + 1, h) and (n_nets, h + 1, 1).
    """
    # Slices: `np.split` would take half of the time that a net needs for one row.
    second = (p + 1) * h
    last = second + (h + 1) * h
    return [
        vectors[:, :second].reshape(-1, p + 1, h),
        vectors[:, second:last].reshape(-1, h + 1, h),
        vectors[:, last:].reshape(-1, h + 1, 1),
    ]


def _fill_gradient(
    nets: list[NDArray[np.float32]],
    gradient: list[NDArray[np.float32]],
    rows: NDArray[np.float32],
) -> None:
    """Write the gradient of half the weighted mean squared error over a batch.

    `rows` has the shape (n_nets, size of the batch, p + 3).
    """
    k, size, _ = rows.shape
    in_first, in_second, in_last = nets
    d_first, d_second, d_last = gradient
    h = in_first.shape[2]
    inputs, targets, weights = rows[:, :, :-2], rows[:, :, -2:-1], rows[:, :, -1:]
    # Forward: two layers of rectifiers, and a linear output. The last unit of a layer
    # is 1. It multiplies the bias of the next layer. Operations are in place if
    # possible: batches are small, and new arrays would take a third of the time.
    zeros = np.zeros((k, size, h + 1), np.float32)
    first, second = np.ones((2, k, size, h + 1), np.float32)
    np.matmul(inputs, in_first, out=first[:, :, :h])
    # An array of zeros takes a third of the time of the number 0.
    np.maximum(first, zeros, out=first)
    np.matmul(first, in_second, out=second[:, :, :h])
    np.maximum(second, zeros, out=second)
    miss = second @ in_last
    miss -= targets
    miss *= weights
    miss *= np.float32(1.0 / size)
    # Backward: the chain rule, from the output to the inputs. A rectifier only passes a
    # derivative on if it is open.
    np.matmul(second.mT, miss, out=d_last)
    back = miss * in_last.mT
    back *= second > zeros
    np.matmul(first.mT, back[:, :, :h], out=d_second)
    back = back[:, :, :h] @ in_second.mT
    back *= first > zeros
    np.matmul(inputs.mT, back[:, :, :h], out=d_first)
