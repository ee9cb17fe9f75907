"""Boost the models of all folds together, with one number of rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import lightgbm as lgb
import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from calibration.typing import Float64Array
from localexpert.data.folds import Fold
from localexpert.data.learners import ask_each, thread_pool
from localexpert.progress import current_progress

# Rounds between two looks at the held-out loss, as a share of the rounds done.
_STEP = 0.1
_LEAST_STEP, _MOST_STEP = 2, 20
# A gain counts if it is a share of the loss: beyond, rounds cost more than they give.
_LEAST_GAIN = 5e-4
# Folds that follow a first one wait for it this many rounds at a time.
_ROUNDS_AT_ONCE = 10
# Boosting goes on until the best number of rounds is passed by so much.
_PATIENCE = 0.25
_LEAST_PATIENCE = 16
# A share of fewer rows may be none, which LightGBM refuses.
_LEAST_ROWS_TO_BAG = 10
# Training rows are dealt into this many parts. Each part is encoded by the others.
_N_PARTS = 5
# What all boosters share.
ONE_THREAD: dict[str, Any] = {
    "deterministic": True,
    "force_row_wise": True,
    # LightGBM's own threads wait in a busy loop. If a core does something else, they
    # cost many times what they save. So the folds share the cores instead.
    "num_threads": 1,
    "verbosity": -1,
}


def find_rounds(
    models: Sequence[Any], weights: Sequence[float], max_rounds: int, pool: Parallel
) -> int:
    """Boost all models together. Return the rounds after which they gain little.

    All folds get one number, from the mean of their loss curves. If each fold stopped
    at its own best, its labels would tune its own out-of-fold predictions.

    Parameters
    ----------
    models : sequence of models under way
        `loss_after(n_rounds)` adds rounds until there are so many, and returns the loss
        on held-out rows.
    weights : sequence of float
        Shares in the mean, for instance the weight of the held-out rows.
    max_rounds : int
    pool : Parallel
        Runs the models side by side, in threads.

    Returns
    -------
    int
        At least 1. The models have been boosted this far or farther.
    """
    rounds, best_rounds, best_loss = 0, 0, np.inf
    progress = current_progress()

    def last() -> float:
        """Return the rounds after which we stop waiting for a better loss."""
        wait = max(_LEAST_PATIENCE, _PATIENCE * best_rounds)
        return min(max_rounds, best_rounds + wait)

    while rounds < last():
        step = int(np.clip(_STEP * rounds, _LEAST_STEP, _MOST_STEP))
        rounds = min(rounds + step, max_rounds)
        losses = pool(delayed(model.loss_after)(rounds) for model in models)
        loss = float(np.average(losses, weights=weights))
        if not loss >= best_loss * (1.0 - _LEAST_GAIN):
            best_rounds, best_loss = rounds, loss
        progress.reach(rounds, max(rounds, int(last())))
    return best_rounds


def predict_booster(booster: lgb.Booster, X: Float64Array, **options: Any) -> Any:
    """Return LightGBM's predictions by one thread.

    Every call must set it. LightGBM keeps the number of threads of the last call, and
    its threads wait for one another in a busy loop. It also keeps how much it prints to
    stdout, for each thread. A model grows in other threads than the one that made it.
    """
    return booster.predict(X, num_threads=1, verbosity=-1, **options)


@dataclass
class TargetCodes:
    """Means of the target by category, pulled towards the mean of all rows.

    If the rows of a category have weight W and mean m, its code is
    (W m + k M) / (W + k). M is the mean of all rows. k is the variance within
    categories over the variance between them. A training row gets a mean of other rows,
    from the other four of five parts. Its own part would give the answer away.

    Parameters
    ----------
    n_values : mapping of int to int
        Columns to encode in this way, and how many values they have.
    seed : int
        Deals the training rows into parts.

    References
    ----------
    Micci-Barreca (2001), A preprocessing scheme for high-cardinality categorical
    attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.coordinate.boosting import TargetCodes
    >>> codes = np.repeat([[0.0], [1.0]], 50, axis=0)
    >>> y = np.repeat([2.0, 6.0], 50) + np.tile([-0.1, 0.1], 50)
    >>> means = TargetCodes({0: 2}, 0).fit(codes, y, np.ones(100))
    >>> means.transform(np.array([[0.0], [1.0], [np.nan]])).round(3)
    array([[2.],
           [6.],
           [4.]])
    """

    n_values: Mapping[int, int]
    seed: int

    def fit(self, X: Float64Array, y: Float64Array, w: Float64Array) -> Self:
        """Learn the means from rows of codes, shape (n, p)."""
        total = w.sum() or 1.0
        mean = float(w @ y / total)
        variance = float(w @ (y - mean) ** 2 / total)
        self.means_ = {}
        for j, size in self.n_values.items():
            cell = _number(X[:, j])
            mass = np.bincount(cell, w, size + 1)
            means = np.bincount(cell, w * y, size + 1) / np.where(mass > 0.0, mass, 1.0)
            within = float(w @ (y - means[cell]) ** 2)
            # Unbiased: each mean has used up a row.
            within /= max(total - np.count_nonzero(mass), 0.5)
            between = max(variance - within, 1e-3 * variance, 1e-300)
            strength = max(within / between, 1e-300)
            self.means_[j] = (mass * means + strength * mean) / (mass + strength)
        return self

    def transform(self, X: Float64Array) -> Float64Array:
        """Return rows with means in place of codes, shape (n, p)."""
        encoded = X.copy()
        for j, means in self.means_.items():
            encoded[:, j] = means[_number(X[:, j])]
        return encoded

    def fit_transform(
        self, X: Float64Array, y: Float64Array, w: Float64Array
    ) -> Float64Array:
        """Learn, and return the training rows. Each is encoded by other rows."""
        encoded = X.copy()
        part = np.random.default_rng(self.seed).permutation(len(y)) % _N_PARTS
        for number in range(_N_PARTS):
            own, others = part == number, part != number
            encoded[own] = self.fit(X[others], y[others], w[others]).transform(X[own])
        self.fit(X, y, w)
        return encoded


def _number(codes: Float64Array) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return codes from 1 on; 0 is a missing value."""
    return np.where(np.isnan(codes), 0.0, codes + 1.0).astype(np.intp)


class FoldBooster:
    """The booster of a fold, and its loss on the test part after every round.

    Parameters
    ----------
    parameters : mapping
        LightGBM's.
    X, y : ndarrays of shape (n, p) and (n,)
    fold : (train, test)
    w : ndarray of shape (n,)
    n_values : mapping of int to int, optional
        Columns that are encoded by means of the target, see `TargetCodes`.
    """

    def __init__(
        self,
        parameters: Mapping[str, Any],
        X: Float64Array,
        y: Float64Array,
        fold: Fold,
        w: Float64Array,
        n_values: Mapping[int, int] | None = None,
    ):
        train, test = fold
        self.codes, self.given = None, X[test]
        known = X[train]
        if n_values is not None:
            self.codes = TargetCodes(n_values, parameters["seed"])
            known = self.codes.fit_transform(known, y[train], w[train])
        parameters = {"objective": "l2", **ONE_THREAD, **parameters}
        if len(train) < _LEAST_ROWS_TO_BAG:
            parameters["bagging_fraction"] = 1.0
        # LightGBM wants this apart from the others.
        categories = parameters.pop("categorical_feature", "auto")
        data = lgb.Dataset(
            known,
            y[train],
            weight=w[train],
            categorical_feature=categories,
            params=parameters,
        )
        self.booster = lgb.Booster(parameters, data)
        X = self._encode(self.given)
        held = data.create_valid(X, y[test], w[test], params=parameters)
        self.booster.add_valid(held, "held out")
        self.losses: list[float] = []

    def loss_after(self, n_rounds: int) -> float:
        """Add rounds until there are this many. Return the loss on the test part."""
        if len(self.losses) < n_rounds:
            self._silence()
        while len(self.losses) < n_rounds:
            self.booster.update()
            self.losses.append(self.booster.eval_valid()[0][2])
        return self.losses[n_rounds - 1]

    def grow(self, n_rounds: int) -> None:
        """Add rounds, whatever the loss, and drop the data."""
        self._silence()
        for _ in range(n_rounds):
            self.booster.update()
        self.keep(n_rounds)

    def _silence(self) -> None:
        """Ask for a forecast of one row. This alone silences LightGBM in a thread."""
        predict_booster(self.booster, np.zeros((1, self.booster.num_feature())))

    def answer(self, n_rounds: int) -> Float64Array:
        """Return the predictions of the first rounds for the test part."""
        X = self._encode(self.given)
        return np.asarray(predict_booster(self.booster, X, num_iteration=n_rounds))

    def keep(self, n_rounds: int) -> None:
        """Keep the first rounds, and drop the data."""
        text = self.booster.model_to_string(n_rounds)
        self.booster = lgb.Booster(model_str=text)
        del self.given, self.losses

    def predict(self, X: Float64Array) -> Float64Array:
        """Return the predictions of new rows, shape (n,)."""
        return np.asarray(predict_booster(self.booster, self._encode(X)))

    def _encode(self, X: Float64Array) -> Float64Array:
        return X if self.codes is None else self.codes.transform(X)


@dataclass
class FoldBoosters:
    """One booster per fold, all with the same number of rounds.

    Parameters
    ----------
    parameters : mapping
        LightGBM parameters; deterministic ones are added.
    max_rounds : int
    patience : int
        The first fold ends after this many rounds without gain. The others end with it.
    n_jobs : int, optional
        Number of folds fitted at the same time, in threads.
    n_values : mapping of int to int, optional
        Columns that are encoded by means of the target, see `TargetCodes`.
    """

    parameters: Mapping[str, Any]
    max_rounds: int
    patience: int = 50
    n_jobs: int | None = None
    n_values: Mapping[int, int] | None = None

    def start(
        self, X: Float64Array, y: Float64Array, fold: Fold, w: Float64Array
    ) -> FoldBooster:
        """Return the booster of a fold before its first round."""
        return FoldBooster(self.parameters, X, y, fold, w, self.n_values)

    def boost(self, models: Sequence[FoldBooster]) -> int:
        """Boost all while the loss of the first falls. Return the best rounds."""
        first, *others = models
        rounds = best = 0
        while rounds < (last := min(self.max_rounds, best + self.patience)):
            rounds = min(rounds + _ROUNDS_AT_ONCE, last)
            first.loss_after(rounds)
            # The first of equal losses.
            best = int(np.argmin(first.losses[:rounds])) + 1
        with thread_pool(self.n_jobs) as pool:
            pool(delayed(model.loss_after)(rounds) for model in others)
        # All folds use one number. If a fold stopped at its own best, the rows that it
        # predicts would have chosen it.
        mean = np.mean([model.losses[:rounds] for model in models], axis=0)
        return int(np.argmin(mean)) + 1

    def fit(
        self,
        X: Float64Array,
        y: Float64Array,
        folds: Sequence[Fold],
        w: Float64Array,
        first: FoldBooster | None = None,
    ) -> Float64Array:
        """Boost every fold and return the out-of-fold predictions, shape (n,).

        They are NaN in rows that no fold tests.
        `first` is the first fold's booster, if there already is one.
        """
        begun = [] if first is None else [first]
        rest = [self.start(X, y, fold, w) for fold in folds[len(begun) :]]
        self.models_ = begun + rest
        self.n_rounds_ = self.boost(self.models_)
        oof = np.full(len(y), np.nan)
        for model, (_, test) in zip(self.models_, folds, strict=True):
            oof[test] = model.answer(self.n_rounds_)
            model.keep(self.n_rounds_)
        return oof

    def predict_each(self, X: Float64Array) -> Float64Array:
        """Return the predictions of the folds' models, shape (n_folds, n)."""
        return np.array(
            ask_each(lambda model: model.predict(X), self.models_, len(X), self.n_jobs)
        )
