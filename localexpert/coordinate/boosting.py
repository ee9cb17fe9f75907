"""Boosting in step: one number of rounds for the models of all folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import lightgbm as lgb
import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from calibration.typing import Float64Array
from localexpert.data.folds import Fold
from localexpert.data.threads import ask_each, thread_pool
from localexpert.progress import current_progress

# Rounds between two looks at the held-out loss, as a share of the rounds done.
_STEP = 0.1
_LEAST_STEP, _MOST_STEP = 2, 20
# A gain counts if it is a share of the loss: beyond, rounds cost more than they give.
_LEAST_GAIN = 5e-4
# Boosting goes on until the best number of rounds is passed by so much.
_PATIENCE = 0.25
_LEAST_PATIENCE = 16
# A share of fewer rows may be none, which LightGBM refuses.
_LEAST_ROWS_TO_BAG = 10
# Parts of the rows of training that are told by means of the others.
_N_PARTS = 5
_FIXED: dict[str, Any] = {
    "objective": "l2",
    "deterministic": True,
    "force_row_wise": True,
    # Threads of LightGBM's own wait spinning: where a core is busy with something
    # else they cost many times what they save. The folds share the cores instead.
    "num_threads": 1,
    "verbosity": -1,
}


class Boosted(Protocol):
    """A model under way that knows its held-out loss."""

    def loss_after(self, n_rounds: int) -> float:
        """Add rounds until there are so many; return the loss on held-out rows."""


def find_rounds(
    models: Sequence[Boosted],
    weights: Sequence[float],
    max_rounds: int,
    pool: Parallel,
) -> int:
    """Boost all models in step and return the rounds after which little is gained.

    One number for all folds, from the mean of their curves: were each fold to stop
    at its own best, its out-of-fold predictions would be tuned on their own labels.

    Parameters
    ----------
    models : sequence of Boosted
    weights : sequence of float
        Shares in the mean, for instance the weight of the held-out rows.
    max_rounds : int
    pool : Parallel
        Runs the models side by side, in threads.

    Returns
    -------
    int
        At least 1; the models have been boosted so far or farther.
    """
    rounds, best_rounds, best_loss = 0, 0, np.inf
    progress = current_progress()

    def last() -> float:
        """Return the rounds at which a better loss is no longer waited for."""
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

    It has to be said at every call: LightGBM keeps the number of threads of whichever
    call was the last, and its threads wait for one another in a busy loop. So it does
    with how much it says on stdout, thread by thread, and a model is grown in other
    threads than the one that made it.
    """
    return booster.predict(X, num_threads=1, verbosity=-1, **options)


@dataclass
class TargetCodes:
    """Means of the target by category, drawn towards the mean of all.

    A category whose rows have weight W and mean m is told as (W m + k M) / (W + k), M
    the mean of all rows and k the variance within categories over that between them.
    Rows of training are told by the means of other rows, four parts of five: their own
    would tell the answer.

    Parameters
    ----------
    n_values : mapping of int to int
        Of the columns that are told so, how many values they have.
    seed : int
        Deals the rows of training.

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
    >>> fitted = TargetCodes({0: 2}, 0).fit(codes, y, np.ones(100))
    >>> fitted.transform(np.array([[0.0], [1.0], [np.nan]])).round(3)
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
            strength = within / max(variance - within, 1e-3 * variance, 1e-300)
            self.means_[j] = np.where(
                mass > 0.0, (mass * means + strength * mean) / (mass + strength), mean
            )
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
        """Learn, and return the rows of training, each encoded by others."""
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
    codes : TargetCodes, optional
        Unfitted; put means of the target, learned in the training part, into X.
    """

    def __init__(
        self,
        parameters: Mapping[str, Any],
        X: Float64Array,
        y: Float64Array,
        fold: Fold,
        w: Float64Array,
        codes: TargetCodes | None = None,
    ):
        train, test = fold
        self.codes, self.given = codes, X[test]
        known = X[train]
        if codes is not None:
            known = codes.fit_transform(known, y[train], w[train])
        parameters = {**_FIXED, **parameters}
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
        """Add rounds until there are so many; return the loss on the test part."""
        if len(self.losses) < n_rounds:  # for its silence alone
            predict_booster(self.booster, np.zeros((1, self.booster.num_feature())))
        while len(self.losses) < n_rounds:
            self.booster.update()
            self.losses.append(self.booster.eval_valid()[0][2])
        return self.losses[n_rounds - 1]

    def answer(self, n_rounds: int) -> Float64Array:
        """Return what the first rounds say of the test part."""
        X = self._encode(self.given)
        return np.asarray(predict_booster(self.booster, X, num_iteration=n_rounds))

    def finish(self, n_rounds: int) -> Float64Array:
        """Keep the first rounds, and no rows; return what they say of the test part."""
        answers = self.answer(n_rounds)
        text = self.booster.model_to_string(n_rounds)
        self.booster = lgb.Booster(model_str=text)
        del self.given, self.losses
        return answers

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
        The first fold ends after so many rounds without gain, the others with it.
    n_jobs : int, optional
        Folds fitted at a time, in threads.
    n_values : mapping of int to int, optional
        Columns that are told by means of the target, see `TargetCodes`.
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
        codes = None
        if self.n_values is not None:
            codes = TargetCodes(self.n_values, self.parameters["seed"])
        return FoldBooster(self.parameters, X, y, fold, w, codes)

    def boost(self, models: Sequence[FoldBooster]) -> int:
        """Boost all as long as the loss of the first falls; return the best rounds."""
        first, *others = models
        rounds = best = 0
        while rounds < min(self.max_rounds, best + self.patience):
            rounds += 1
            loss = first.loss_after(rounds)
            if best == 0 or loss < first.losses[best - 1]:
                best = rounds
        with thread_pool(self.n_jobs) as pool:
            pool(delayed(model.loss_after)(rounds) for model in others)
        # One number for all: a fold that stopped at its own best would have chosen it
        # by the rows that it predicts.
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
        `first` is the first fold's booster, where there is one already.
        """
        rest = folds if first is None else folds[1:]
        self.models_ = [] if first is None else [first]
        self.models_ += [self.start(X, y, fold, w) for fold in rest]
        self.n_rounds_ = self.boost(self.models_)
        oof = np.full(len(y), np.nan)
        for model, (_, test) in zip(self.models_, folds, strict=True):
            oof[test] = model.finish(self.n_rounds_)
        return oof

    def predict_each(self, X: Float64Array) -> Float64Array:
        """Return the predictions of the folds' models, shape (n_folds, n)."""
        return np.array(
            ask_each(lambda model: model.predict(X), self.models_, len(X), self.n_jobs)
        )
