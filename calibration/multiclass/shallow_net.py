"""Nets of one hidden layer that correct the probabilities of several classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from calibration._jobs import one_thread
from calibration._kernels.rectified_net import descend_by_batches
from calibration._validation import (
    as_numbers,
    check_choice,
    check_finite,
    check_integer,
    check_number,
    check_optional_seed,
    check_order,
    check_same_length,
    names_of_columns,
    refuse,
)
from calibration.multiclass.base import ClassScale, MulticlassCalibrator
from calibration.multiclass.class_scores import (
    LEAST,
    ClassScores,
    LogProbabilityScale,
    column_blocks,
    log_softmax,
    read_class_scores,
)
from calibration.multiclass.softmax_map import SoftmaxMap, fit_temperature
from calibration.typing import Float64Array, Int64Array

# Steps of L-BFGS, then the number of pairs of steps and gradients that it remembers,
# then the largest entry of the gradient at which it stops. More steps make no better
# nets.
_MAX_STEPS = 60
_MEMORY = 20
_TOLERANCE = 1e-7
# If there are more rows than this, nets are first trained on some of them, and then for
# fewer steps.
_START_ROWS = 8_192
_MORE_STEPS = 20
# AdaGrad as in chapter 6.1 of the thesis. The chapter leaves open the first sums of
# squares, which are TensorFlow's here, and how long to train.
_RATE, _BATCH = 0.1, 10
_FIRST_SQUARES = 0.1
_PASSES = 20


@dataclass(frozen=True, eq=False)
class HiddenLayer:
    """V u(W x + c) + b, a correction of k log-probabilities.

    Parameters
    ----------
    slopes : ndarray of shape (h, d)
        W.
    shifts : ndarray of shape (h,)
        c.
    heights : ndarray of shape (k, h)
        V.
    intercept : ndarray of shape (k,)
        b.
    rectified : bool
        Whether u is max(., 0) instead of tanh.
    """

    slopes: Float64Array
    shifts: Float64Array
    heights: Float64Array
    intercept: Float64Array
    rectified: bool = False

    @classmethod
    def draw(
        cls, rng: np.random.Generator, h: int, d: int, k: int, rectified: bool = False
    ) -> HiddenLayer:
        """Draw units, each of which looks in a direction of its own.

        They correct nothing yet. Rectified ones already do: all their parameters are
        drawn, by Glorot's uniform law.
        """
        if rectified:
            far, near = np.sqrt(6.0 / (d + h)), np.sqrt(6.0 / (h + k))
            slopes = rng.uniform(-far, far, size=(d, h)).T
            heights = rng.uniform(-near, near, size=(h, k)).T
            return cls(slopes, np.zeros(h), heights, np.zeros(k), rectified)
        slopes = rng.standard_normal((h, d)) / np.sqrt(d)
        return cls(slopes, rng.standard_normal(h), np.zeros((k, h)), np.zeros(k))

    def units(self, inputs: Float64Array) -> Float64Array:
        """Return the values (h, n) of the units for inputs (d, n)."""
        raw = self.slopes @ inputs + self.shifts[:, None]
        return np.maximum(raw, 0.0) if self.rectified else np.tanh(raw)

    def correct(self, z: Float64Array, inputs: Float64Array) -> Float64Array:
        """Return log-probabilities z (k, n), corrected by inputs (d, n)."""
        corrections = self.heights @ self.units(inputs) + self.intercept[:, None]
        return log_softmax(z + corrections)

    def flatten(self) -> Float64Array:
        """Return all parameters in one vector."""
        parts = (self.slopes, self.shifts, self.heights, self.intercept)
        return np.concatenate([part.ravel() for part in parts])

    def filled(self, theta: Float64Array) -> HiddenLayer:
        """Return a layer of this shape with the parameters of a vector."""
        k, h = self.heights.shape
        ends = np.cumsum([self.slopes.size, h, k * h])
        slopes, shifts, heights, intercept = np.split(theta, ends)
        slopes = slopes.reshape(self.slopes.shape)
        return HiddenLayer(slopes, shifts, heights.reshape(k, h), intercept)


@dataclass(frozen=True, eq=False)
class NetProblem:
    r"""Mean cross-entropy of corrected log-probabilities, and a ridge.

    .. math:: CE + \frac{r}{n} \|\theta - \theta_0\|^2

    Here :math:`\theta_0` are the drawn parameters. Nets differ because they are held to
    different parameters, and not because training stops at different times.

    Parameters
    ----------
    z : ndarray of shape (k, n_rows)
        Log-probabilities to correct.
    inputs : ndarray of shape (d, n_rows)
    labels : ndarray of shape (n_rows,)
        Column numbers.
    weight : ndarray of shape (n_rows,)
        Numbers of repetitions, n in all.
    ridge : float
        r.
    """

    z: Float64Array
    inputs: Float64Array
    labels: Int64Array
    weight: Float64Array
    ridge: float

    def train(self, drawn: HiddenLayer) -> HiddenLayer:
        """Return the layer of least objective that L-BFGS finds from a drawn layer.

        Parameters
        ----------
        drawn : HiddenLayer

        Returns
        -------
        HiddenLayer
        """
        start, every = drawn.flatten(), -(-len(self.labels) // _START_ROWS)
        if every == 1:
            return drawn.filled(self._descend(start, drawn, _MAX_STEPS))
        start = self._thinned(every)._descend(start, drawn, _MAX_STEPS)
        return drawn.filled(self._descend(start, drawn, _MORE_STEPS))

    def train_by_batches(
        self, drawn: HiddenLayer, rng: np.random.Generator, n_batches: int | None
    ) -> HiddenLayer:
        """Return the layer that AdaGrad finds without the ridge, with ten rows a step.

        Parameters
        ----------
        drawn : HiddenLayer
        rng : Generator
            Source of the order of the rows. Each pass has a new order.
        n_batches : int or None
            Number of steps. None means 20 passes over the rows.

        Returns
        -------
        HiddenLayer
        """
        n = len(self.labels)
        n_rows = _PASSES * n if n_batches is None else _BATCH * n_batches
        passes = [rng.permutation(n) for _ in range(-(-n_rows // n))]
        order = np.concatenate(passes)[:n_rows]
        layers = (
            np.column_stack([drawn.slopes, drawn.shifts]),
            np.column_stack([drawn.heights, drawn.intercept]),
        )
        rows = np.column_stack([self.inputs.T, np.ones(n)])
        descend_by_batches(
            layers, rows, self.labels, self.weight, order, _BATCH, _RATE, _FIRST_SQUARES
        )
        (slopes, shifts), (heights, intercept) = (np.split(a, [-1], 1) for a in layers)
        return HiddenLayer(slopes, shifts[:, 0], heights, intercept[:, 0], True)

    def value_and_gradient(
        self, theta: Float64Array, shape: HiddenLayer, anchor: Float64Array
    ) -> tuple[float, Float64Array]:
        """Return the objective and its gradient, at parameters in one vector.

        Parameters
        ----------
        theta : ndarray of shape (p,)
        shape : HiddenLayer
            Any layer of the shape that the parameters have.
        anchor : ndarray of shape (p,)
            The ridge holds the parameters to these.

        Returns
        -------
        value : float
        gradient : ndarray of shape (p,)
        """
        layer = shape.filled(theta)
        away = theta - anchor
        rate = self.ridge / float(self.weight.sum())
        value, gradient = rate * float(away @ away), 2.0 * rate * away
        share = self.weight / self.weight.sum()
        for some in column_blocks(self.inputs):
            loss, slope = self._block(layer, some, share[some])
            value += loss
            gradient += slope
        return value, gradient

    def _block(
        self, layer: HiddenLayer, some: slice, share: Float64Array
    ) -> tuple[float, Float64Array]:
        """Return the cross-entropy of some rows, and its gradient."""
        x, labels = self.inputs[:, some], self.labels[some]
        places = np.arange(len(labels))
        units = layer.units(x)
        logs = layer.heights @ units + layer.intercept[:, None]
        logs += self.z[:, some]
        log_softmax(logs)
        loss = -float(share @ logs[labels, places])
        residual = np.exp(logs, out=logs)
        residual[labels, places] -= 1.0
        residual *= share
        inner = layer.heights.T @ residual
        inner *= 1.0 - units**2
        parts = inner @ x.T, inner.sum(axis=1), residual @ units.T, residual.sum(axis=1)
        return loss, HiddenLayer(*parts).flatten()

    def _descend(
        self, start: Float64Array, drawn: HiddenLayer, steps: int
    ) -> Float64Array:
        options: Any = {"maxiter": steps, "maxcor": _MEMORY}
        options |= {"gtol": _TOLERANCE, "ftol": 0}
        held = drawn, drawn.flatten()
        objective = self.value_and_gradient
        found = minimize(objective, start, held, "L-BFGS-B", jac=True, options=options)
        return np.asarray(found.x, dtype=np.float64)

    def _thinned(self, step: int) -> NetProblem:
        """Return the problem of every `step`-th row, with a ridge in proportion."""
        rows = (self.z[:, ::step], self.inputs[:, ::step])
        z, inputs = map(np.ascontiguousarray, rows)
        weight = self.weight[::step]
        ridge = self.ridge * float(weight.sum() / self.weight.sum())
        return NetProblem(z, inputs, self.labels[::step], weight, ridge)


# Side information is used as it is up to this size, and down to its inverse.
_LARGEST = 1e60


@dataclass(frozen=True, eq=False)
class NetEnsemble:
    """Fitted nets, and the mean of their probabilities.

    Parameters
    ----------
    base : SoftmaxMap
        Scores to log-probabilities at a temperature.
    centre, spread : ndarrays of shape (d, 1)
        Mean and spread of the inputs: log-probabilities, then side information.
    layers : tuple of HiddenLayer
        Rectified layers see probabilities. They have no log-probabilities to correct.
    """

    base: SoftmaxMap
    centre: Float64Array
    spread: Float64Array
    layers: tuple[HiddenLayer, ...]

    @classmethod
    def learn(
        cls,
        data: ClassScores,
        scale: str,
        sizes: Sequence[int],
        rng: np.random.Generator,
        ridge: float | None,
        n_batches: int | None = None,
    ) -> NetEnsemble:
        """Train one net for each number of hidden units.

        Without a ridge they are the nets of the thesis, which learn from probabilities,
        some rows at a time.
        """
        k, by_batches = data.scores.shape[1], ridge is None
        if by_batches:
            # At the temperature 1 and without a ridge, z is the logarithm of p.
            logs = LogProbabilityScale(scale)
            base = SoftmaxMap(logs, data.n, 1.0, 0.0, np.zeros((k, 2)))
            z = np.zeros((k, len(data.labels)))
            raw = _join(np.exp(base.prepare(data.scores)), data.side)
        else:
            # They are mixed with the uniform law, as for a penalised matrix. So they
            # are bounded.
            base = replace(fit_temperature(data, scale), penalty=1.0)
            z = base.prepare(data.scores)
            raw = _join(z, data.side)
        centre, spread = _standardize(raw, data.weight / data.n)
        if by_batches:
            # Probabilities enter unchanged.
            centre[:k], spread[:k] = 0.0, 1.0
        inputs = (raw - centre) / spread
        problem = NetProblem(z, inputs, data.labels, data.weight, ridge or 0.0)
        layers = []
        # Their matrices are small, so threads would mostly wait for each other.
        with one_thread("blas"):
            for size in sizes:
                drawn = HiddenLayer.draw(rng, size, len(raw), k, by_batches)
                layers.append(
                    problem.train_by_batches(drawn, rng, n_batches)
                    if by_batches
                    else problem.train(drawn)
                )
        return cls(base, centre, spread, tuple(layers))

    def probabilities(
        self, table: Float64Array, side: Float64Array | None
    ) -> Float64Array:
        """Return calibrated probabilities of scores (m, k), shape (m, k)."""
        out = np.empty_like(table)
        for some in column_blocks(table.T):
            z = self.base.prepare(table[some])
            seen = np.exp(z) if self.layers[0].rectified else z
            raw = _join(seen, None if side is None else side[some])
            if self.layers[0].rectified:
                z = np.zeros_like(z)
            inputs = (raw - self.centre) / self.spread
            p = sum(np.exp(layer.correct(z, inputs)) for layer in self.layers)
            out[some] = np.asarray(p).T
        return np.asarray(out / out.sum(axis=1, keepdims=True))


class ShallowNetCalibrator(MulticlassCalibrator):
    r"""Nets with one small hidden layer, which may look at side information as well.

    Parameters
    ----------
    n_nets : int
        Number of nets whose probabilities are averaged.
    hidden_units : (int, int)
        Least and greatest number of hidden units. Each net draws its own number.
    penalty : float
        Ridge that holds the nets near their start, in rows. For "lbfgs" only.
    solver : {"lbfgs", "adagrad"}
        "adagrad" trains the nets of the thesis, which are different: see Notes.
    n_batches : int, optional
        Steps of "adagrad", with ten rows each. Default: as many as 20 passes take.
    random_state : int or None
        Seed of the nets. None draws one.
    classes : sequence of k names, optional
        Names of the columns. Default: their numbers, 0 to k - 1.
    scale : {"probability", "logit"}
        What a score is.

    Attributes
    ----------
    n_side_ : int
        Columns of side information.
    side_names_ : list of str
        Their names if they were in a data frame. `predict` refuses others.
    nets_ : NetEnsemble
        The fitted nets.

    Notes
    -----
    Let z be the log-probabilities at the temperature of `SoftmaxCalibrator`, mixed with
    the uniform law as they are there. Let x be the standardised z and side information.
    A net gives

    .. math:: S\bigl(z + V \tanh(W x + c) + b\bigr),

    where S is the softmax. It minimises the cross-entropy plus :math:`\frac{\lambda}{n}
    \|\theta - \theta_0\|^2`, where :math:`\lambda` is `penalty`. The parameters are
    held near the start :math:`\theta_0`: V and b start at 0, W and c at normal random
    numbers. Each net is held to its own start, so nets differ (an anchored ensemble).
    The solver is L-BFGS on all rows at once, for 60 steps.

    The thesis's nets see only the probabilities. They have rectified units, and no z to
    correct. AdaGrad trains them at a rate of 0.1 on batches of 10 rows
    (``solver="adagrad"``). A row's weight counts within its batch, and the order of
    rows matters. We compared mean log losses on eight tables with naive Bayes and
    forests (``benchmarks/shallow_net.py``). These nets have 0.405. The thesis's nets
    have 0.541 after 20 passes over the rows, and 0.640 after the 200 batches that were
    the default of its library. `SoftmaxCalibrator` has 0.435.

    With "lbfgs", equal rows are merged first and then sorted. So integer weights are
    repetitions to the last digit, and the order of rows does not matter.

    References
    ----------
    Naeini (2016), Obtaining accurate probabilities using classifier calibration,
    chapter 6.1. Pearce, Leibfried & Brintrup (2020), Uncertainty in neural networks:
    approximately Bayesian ensembling (anchors).

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import ShallowNetCalibrator, log_loss
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], size=1000)
    >>> y = (rng.uniform(size=(1000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> bold = p**2 / (p**2).sum(axis=1, keepdims=True)
    >>> nets = ShallowNetCalibrator().fit(bold, y)
    >>> log_loss(y, nets.predict(bold)) < log_loss(y, bold) - 0.05
    True

    The hour of the day helps to find the class:

    >>> hour = np.where(y == 2, rng.uniform(0, 12, 1000), rng.uniform(0, 24, 1000))
    >>> wise = ShallowNetCalibrator().fit(bold, y, side=hour)
    >>> log_loss(y, wise.predict(bold, hour)) < log_loss(y, nets.predict(bold)) - 0.1
    True
    """

    n_side_: int
    side_names_: list[str]
    nets_: NetEnsemble

    def __init__(
        self,
        n_nets: int = 10,
        hidden_units: tuple[int, int] = (4, 7),
        *,
        penalty: float = 0.3,
        solver: Literal["lbfgs", "adagrad"] = "lbfgs",
        n_batches: int | None = None,
        random_state: int | None = 0,
        classes: Sequence[Any] | None = None,
        scale: ClassScale = "probability",
    ):
        self.n_nets = n_nets
        self.hidden_units = hidden_units
        self.penalty = penalty
        self.solver = solver
        self.n_batches = n_batches
        self.random_state = random_state
        self.classes = classes
        self.scale = scale

    def fit(
        self,
        scores: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        side: ArrayLike | None = None,
    ) -> Self:
        """Learn from scores, their labels and side information.

        Parameters
        ----------
        scores : array-like of shape (n, k)
            Scores on the scale that `scale` names.
        y : array-like of shape (n,)
            Column numbers, or names among `classes`.
        sample_weight : array-like of shape (n,), optional
            Non-negative numbers of repetitions.
        side : array-like of shape (n,) or (n, s), optional
            Finite numbers known about each row, besides its scores.

        Returns
        -------
        self
        """
        self._check_parameters()
        known = None if side is None else _read_side(side)
        settings = self.classes, self.scale, known
        self._learn_table(read_class_scores(scores, y, sample_weight, *settings))
        # This is set for a constant too, because `predict` asks for what was given
        # here.
        self.n_side_ = 0 if known is None else known.shape[1]
        self.side_names_ = names_of_columns(side)
        return self

    def predict(self, scores: ArrayLike, side: ArrayLike | None = None) -> Float64Array:
        """Return the calibrated probabilities of the classes.

        Parameters
        ----------
        scores : array-like of shape (n, k)
        side : array-like of shape (n,) or (n, s), optional
            Side information, if and only if the fit had some.

        Returns
        -------
        ndarray of shape (n, k)
            Rows sum to 1.
        """
        table = self._read_table(scores)
        known = None if side is None else _read_side(side)
        if known is not None:
            check_same_length(len(table), "scores", len(known), "side")
        found = 0 if known is None else known.shape[1]
        if found != self.n_side_:
            given = "None" if known is None else f"{found}"
            refuse("side", f"have the {self.n_side_} columns of the fit", given)
        if self.n_side_:
            check_order(side, self.side_names_, "side", allow_others=False)
        if self.constant_ is not None:
            return np.tile(self.constant_, (len(table), 1))
        return np.maximum(self.nets_.probabilities(table, known), LEAST)

    def llr(self, scores: ArrayLike, side: ArrayLike | None = None) -> Float64Array:
        """Return log-likelihoods of the classes: evidence free of the training prior.

        Parameters
        ----------
        scores : array-like of shape (n, k)
        side : array-like of shape (n,) or (n, s), optional
            Side information, if and only if the fit had some.

        Returns
        -------
        ndarray of shape (n, k)
            As in `MulticlassCalibrator`.
        """
        return self._find_llr(self.predict(scores, side))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer(self.n_nets, "n_nets", 1)
        units: Any = self.hidden_units
        if not isinstance(units, tuple | list) or len(units) != 2:
            rule = "be a pair of whole numbers such as (4, 7)"
            refuse("hidden_units", rule, f"{units!r}", TypeError)
        low = check_integer(units[0], "hidden_units", 1)
        check_integer(units[1], "hidden_units", low)
        check_number(self.penalty, "penalty", 0.0, open_low=True)
        check_choice(self.solver, "solver", ("lbfgs", "adagrad"))
        if self.n_batches is not None:
            check_integer(self.n_batches, "n_batches", 1)
        check_optional_seed(self.random_state)

    def _fit_table(self, data: ClassScores) -> None:
        rng = np.random.default_rng(self.random_state)
        low, high = self.hidden_units
        sizes = rng.integers(low, high + 1, size=self.n_nets).tolist()
        self.n_side_ = 0 if data.side is None else data.side.shape[1]
        how: tuple[Any, ...] = (None, self.n_batches)
        if self.solver == "lbfgs":
            data, how = data.merged(), (float(self.penalty),)
        self.nets_ = NetEnsemble.learn(data, self.scale, sizes, rng, *how)

    def _predict_table(self, table: Float64Array) -> Float64Array:
        return self.nets_.probabilities(table, None)


def _standardize(
    raw: Float64Array, share: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return mean and deviation (d, 1) of inputs (d, n), infinite for constant ones."""
    centre = (raw @ share)[:, None]
    spread = np.sqrt((raw - centre) ** 2 @ share)[:, None]
    # Nothing is learned from a constant input, whatever its rounding is.
    flat = spread <= np.maximum(1e-12 * np.abs(centre), 1.0 / _LARGEST)
    return centre, np.where(flat, np.inf, spread)


def _join(z: Float64Array, side: Float64Array | None) -> Float64Array:
    """Return log-probabilities (k, n) above side information (n, s)."""
    return z if side is None else np.vstack([z, side.T])


def _read_side(side: ArrayLike) -> Float64Array:
    """Return side information as finite numbers of shape (n, s), s >= 1."""
    table = as_numbers(side, "side")
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or table.shape[1] == 0:
        refuse("side", "have shape (n,) or (n, s)", f"shape {np.shape(side)}")
    check_finite(table, "side")
    return np.clip(table, -_LARGEST, _LARGEST)
