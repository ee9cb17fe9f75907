"""`JointXGBoost`: boosted trees whose leaves hold one number per threshold."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert._validation import check_integer, check_number
from localexpert.data.folds import Rows
from localexpert.data.table import Table
from localexpert.data.threads import thread_pool
from localexpert.experts.base import Experts
from localexpert.experts.common_rounds import BrierSum, find_rounds
from localexpert.experts.tasks import Tasks


class JointXGBoost(Experts):
    """One XGBoost model per fold, with vector leaves: a tree serves all thresholds.

    Needs xgboost: ``pip install 'localexpert[xgboost]'``, or ``xgboost-cpu`` in its
    place, which is the same without the code for graphics cards and far smaller.

    Parameters
    ----------
    learning_rate : float
    max_depth : int
    min_child_weight : float
        Least sum of p (1 - p) over a leaf's rows, averaged over thresholds.
    subsample, colsample : float
        Shares of the rows and of the features that a tree may use.
    l2 : float
        Ridge penalty on the values of leaves.
    max_rounds : int
        Most rounds; their number is chosen as that of `SharedBoosting` is.
    n_jobs : int, optional
        Folds boosted at a time, in threads.
    random_state : int, optional
        Seed.

    Attributes
    ----------
    thresholds_ : ndarray of shape (N,)
    oof_probabilities_ : ndarray of shape (n, N)
        Nearly, not strictly, increasing along the thresholds.
    n_rounds_ : int
        Rounds of every model.

    Notes
    -----
    Every threshold starts at its base rate. Categories are ordered by their codes;
    missing values go to the better side of a split.

    Examples
    --------
    >>> from localexpert import JointXGBoost, LocalExpertRegressor
    >>> model = LocalExpertRegressor(strategy=JointXGBoost(max_depth=3))
    >>> model.strategy.max_depth
    3
    """

    n_rounds_: int
    boosters_: list[Any]
    starts_: list[Float64Array]

    def __init__(
        self,
        *,
        learning_rate: float = 0.1,
        max_depth: int = 6,
        min_child_weight: float = 1.0,
        subsample: float = 0.8,
        colsample: float = 0.8,
        l2: float = 1.0,
        max_rounds: int = 500,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ):
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.min_child_weight = min_child_weight
        self.subsample = subsample
        self.colsample = colsample
        self.l2 = l2
        self.max_rounds = max_rounds
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        _load_xgboost()
        check_number(self.learning_rate, "learning_rate", 0.0, open_low=True)
        check_integer(self.max_depth, "max_depth", 1)
        check_number(self.min_child_weight, "min_child_weight", 0.0)
        check_number(self.subsample, "subsample", 0.0, 1.0, open_low=True)
        check_number(self.colsample, "colsample", 0.0, 1.0, open_low=True)
        check_number(self.l2, "l2", 0.0)
        check_integer(self.max_rounds, "max_rounds", 1)

    def _fit(self, tasks: Tasks) -> Float64Array:
        encoded = tasks.table.codes
        rng = np.random.default_rng(self.random_state)
        seeds = rng.integers(2**31, size=len(tasks.folds)).tolist()
        models = [
            _VectorBooster(self._parameters(seed), tasks, encoded, train, test)
            for (train, test), seed in zip(tasks.folds, seeds, strict=True)
        ]
        with thread_pool(self.n_jobs) as pool:
            shares = [tasks.weights[test].sum() for _, test in tasks.folds]
            self.n_rounds_ = find_rounds(models, shares, self.max_rounds, pool)
        self.boosters_ = [model.booster[: self.n_rounds_] for model in models]
        self.starts_ = [model.start for model in models]
        oof = np.empty((tasks.n, tasks.n_thresholds))
        for booster, start, (_, test) in zip(
            self.boosters_, self.starts_, tasks.folds, strict=True
        ):
            oof[test] = _ask(booster, encoded[test], start)
        return oof

    def _predict(self, table: Table) -> Float64Array:
        encoded = table.codes
        answers = [
            _ask(booster, encoded, start)
            for booster, start in zip(self.boosters_, self.starts_, strict=True)
        ]
        mean: Float64Array = np.mean(answers, axis=0)
        return mean

    def _parameters(self, seed: int) -> dict[str, Any]:
        return {
            "objective": "binary:logistic",
            "multi_strategy": "multi_output_tree",
            "tree_method": "hist",
            "learning_rate": self.learning_rate,
            "max_depth": self.max_depth,
            "min_child_weight": self.min_child_weight,
            "subsample": self.subsample,
            "colsample_bytree": self.colsample,
            "lambda": self.l2,
            "base_score": 0.5,
            "nthread": 1,
            "seed": seed,
            # Its generator belongs to a thread, and rounds change threads.
            "seed_per_iteration": True,
            "verbosity": 0,
        }


class _VectorBooster:
    """A model under way, its training rows, and its fold's test rows."""

    def __init__(
        self,
        parameters: dict[str, Any],
        tasks: Tasks,
        encoded: Float64Array,
        train: Rows,
        test: Rows,
    ):
        xgboost = _load_xgboost()
        labels = tasks.r[train][:, None] <= tasks.thresholds
        weights = tasks.weights[train]
        rates = (weights @ labels + 0.5) / (weights.sum() + 1.0)
        self.start = np.log(rates) - np.log1p(-rates)
        self.data = xgboost.DMatrix(
            encoded[train],
            labels.astype(np.float32),
            weight=weights if tasks.weighted else None,
            base_margin=np.tile(self.start, (len(train), 1)),
            nthread=1,
        )
        self.booster = xgboost.Booster(parameters, [self.data])
        self.X = encoded[test]
        self.measure = BrierSum(tasks, test)

    def advance(self, n_rounds: int) -> float:
        """Add rounds and return the mean loss on the held-out rows."""
        done = self.booster.num_boosted_rounds()
        for number in range(done, done + n_rounds):
            self.booster.update(self.data, number)
        return self.measure(_ask(self.booster, self.X, self.start))


def _ask(booster: Any, X: Float64Array, start: Float64Array) -> Float64Array:
    """Return a model's probabilities, shape (n, N)."""
    xgboost = _load_xgboost()
    data = xgboost.DMatrix(X, base_margin=np.tile(start, (len(X), 1)), nthread=1)
    answers = np.asarray(booster.predict(data), dtype=np.float64)
    return answers.reshape(len(X), len(start))


def _load_xgboost() -> Any:
    """Return the module, or say how it is installed."""
    try:
        import xgboost  # type: ignore[import-not-found, unused-ignore]
    except ModuleNotFoundError as error:
        msg = "`JointXGBoost` needs xgboost: pip install 'localexpert[xgboost]'."
        raise ModuleNotFoundError(msg, name="xgboost") from error
    return xgboost
