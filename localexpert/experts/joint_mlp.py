"""`JointMLP`: one small neural network with an output per threshold."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.neural_network import MLPClassifier

from calibration.typing import Float64Array
from localexpert._validation import check_integer, check_number
from localexpert.data.dense_inputs import DenseInputs
from localexpert.data.folds import Rows
from localexpert.data.table import Table
from localexpert.data.threads import ask_each, one_thread, thread_pool
from localexpert.experts.base import Experts
from localexpert.experts.common_rounds import BrierSum, find_rounds
from localexpert.experts.tasks import Tasks


class JointMLP(Experts):
    """One multilayer perceptron per fold, with an output for every threshold.

    Parameters
    ----------
    hidden : tuple of int
        Sizes of the hidden layers.
    alpha : float
        Ridge penalty on the weights.
    learning_rate : float
        Step length of Adam.
    batch_size : int
        Rows in a step.
    max_iter : int
        Most passes over the rows; their number is chosen as the rounds of
        `SharedBoosting` are: one for all folds, by the held-out Brier score summed
        over thresholds.
    refit : bool
        Fit one network to all rows for prediction instead of averaging those of the
        folds.
    n_jobs : int, optional
        Networks fitted at a time, in threads.
    random_state : int, optional
        Seed.

    Attributes
    ----------
    thresholds_ : ndarray of shape (N,)
    oof_probabilities_ : ndarray of shape (n, N)
        Nearly, not strictly, increasing along the thresholds.
    n_rounds_ : int
        Passes over the rows.

    Notes
    -----
    `DenseInputs` says how columns enter. Weights need scikit-learn 1.7 or newer.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.experts import JointMLP
    >>> from localexpert.data.folds import make_folds
    >>> X = np.linspace(0.0, 1.0, 200)[:, None]
    >>> folds = make_folds(200, 2, random_state=0)
    >>> experts = JointMLP(batch_size=20, max_iter=60, random_state=0)
    >>> experts = experts.fit(X, X[:, 0], [0.25, 0.5, 0.75], folds)
    >>> experts.predict([[0.1], [0.62]]).round()
    array([[1., 1., 1.],
           [0., 0., 1.]])
    """

    n_rounds_: int
    networks_: list[tuple[DenseInputs, MLPClassifier]]

    def __init__(
        self,
        *,
        hidden: tuple[int, ...] = (64, 64),
        alpha: float = 1e-3,
        learning_rate: float = 3e-3,
        batch_size: int = 128,
        max_iter: int = 200,
        refit: bool = False,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ):
        self.hidden = hidden
        self.alpha = alpha
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        for size in self.hidden:
            check_integer(size, "hidden", 1)
        check_number(self.alpha, "alpha", 0.0)
        check_number(self.learning_rate, "learning_rate", 0.0, open_low=True)
        check_integer(self.batch_size, "batch_size", 1)
        check_integer(self.max_iter, "max_iter", 1)

    def _fit(self, tasks: Tasks) -> Float64Array:
        encoded = tasks.table.codes
        rng = np.random.default_rng(self.random_state)
        seeds = rng.integers(2**31, size=len(tasks.folds) + 1).tolist()
        models = [
            self._start(tasks, encoded, train, test, seed)
            for (train, test), seed in zip(tasks.folds, seeds[:-1], strict=True)
        ]
        with thread_pool(self.n_jobs) as pool:
            shares = [tasks.weights[test].sum() for _, test in tasks.folds]
            self.n_rounds_ = find_rounds(models, shares, self.max_iter, pool)
        oof = np.empty((tasks.n, tasks.n_thresholds))
        for model, (_, test) in zip(models, tasks.folds, strict=True):
            oof[test] = model.recall(self.n_rounds_)
        if self.refit:
            nobody = np.empty(0, dtype=np.intp)
            model = self._start(tasks, encoded, tasks.present, nobody, seeds[-1])
            model.train(self.n_rounds_)
            models = [model]
        self.networks_ = [(model.inputs, model.network) for model in models]
        return oof

    def _predict(self, table: Table) -> Float64Array:
        encoded = table.codes
        with one_thread(len(encoded)):
            answers = ask_each(
                lambda pair: _ask(pair[1], pair[0].transform(encoded)),
                self.networks_,
                len(encoded),
                self.n_jobs,
            )
        mean: Float64Array = np.mean(answers, axis=0)[:, : len(self.thresholds_)]
        return mean

    def _start(
        self, tasks: Tasks, encoded: Float64Array, train: Rows, test: Rows, seed: int
    ) -> _NetworkInTraining:
        inputs = DenseInputs.learn(encoded[train], self.reader_.categories)
        network = MLPClassifier(
            hidden_layer_sizes=self.hidden,
            alpha=self.alpha,
            learning_rate_init=self.learning_rate,
            batch_size=min(self.batch_size, len(train)),
            random_state=seed,
        )
        return _NetworkInTraining(network, inputs, tasks, encoded, train, test)


class _NetworkInTraining:
    """A network, its training and held-out rows, and its states at every look."""

    def __init__(
        self,
        network: MLPClassifier,
        inputs: DenseInputs,
        tasks: Tasks,
        encoded: Float64Array,
        train: Rows,
        test: Rows,
    ):
        self.network = network
        self.inputs = inputs
        self.X = inputs.transform(encoded[train])
        # A single column would be taken for a target of two classes.
        cuts = np.arange(max(2, tasks.n_thresholds))
        below = np.minimum(tasks.count_below(train), tasks.n_thresholds)
        self.labels = (below[:, None] <= cuts).astype(int)
        if tasks.n_thresholds == 1:
            self.labels[:, 1] = self.labels[:, 0]
        self.options = {}
        if tasks.weighted:
            mean = tasks.weights[train].mean()
            self.options = {"sample_weight": tasks.weights[train] / mean}
        self.X_held = inputs.transform(encoded[test])
        self.measure = BrierSum(tasks, test) if len(test) else None
        self.n_thresholds = tasks.n_thresholds
        self.n_rounds = 0
        self.states: dict[int, Any] = {}

    def train(self, n_rounds: int) -> None:
        """Go over the training rows so many times."""
        classes = np.arange(self.labels.shape[1])
        for _ in range(n_rounds):
            self.network.partial_fit(
                self.X, self.labels, classes=classes, **self.options
            )
        self.n_rounds += n_rounds

    def advance(self, n_rounds: int) -> float:
        """Train on, remember the state, and return the loss on the held-out rows."""
        self.train(n_rounds)
        state = (self.network.coefs_, self.network.intercepts_)
        self.states[self.n_rounds] = deepcopy(state)
        answers = _ask(self.network, self.X_held)[:, : self.n_thresholds]
        return self.measure(answers) if self.measure else 0.0

    def recall(self, n_rounds: int) -> Float64Array:
        """Go back to the state after some rounds; return the held-out answers."""
        self.network.coefs_, self.network.intercepts_ = self.states[n_rounds]
        return _ask(self.network, self.X_held)[:, : self.n_thresholds]


def _ask(network: MLPClassifier, X: Float64Array) -> Float64Array:
    return np.asarray(network.predict_proba(X), dtype=np.float64)
