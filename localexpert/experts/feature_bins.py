"""Binned features that the boosters of all thresholds of a fold share."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, Self

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.experts.classifiers import Model
from localexpert.experts.common_rounds import freeze_booster, predict_booster


class BoosterModel(NamedTuple):
    """A fitted LightGBM model of one threshold."""

    booster: lgb.Booster

    def predict(self, X: Float64Array) -> Float64Array:
        """Return the probability of class 1, shape (n,)."""
        return np.asarray(predict_booster(self.booster, X))


class XGBoostModel(NamedTuple):
    """A fitted XGBoost model of one threshold."""

    booster: Any
    kinds: list[str]

    def predict(self, X: Float64Array) -> Float64Array:
        """Return the probability of class 1, shape (n,)."""
        import xgboost  # type: ignore[import-not-found, unused-ignore]

        data = xgboost.DMatrix(
            X, feature_types=self.kinds, enable_categorical=True, nthread=1
        )
        return np.asarray(self.booster.predict(data), dtype=np.float64)


class Bins(Protocol):
    """The binned training rows of one fold: only labels change between thresholds."""

    def copy(self) -> Self:
        """Return the same bins for use in another thread."""

    def boost(self, labels: NDArray[np.bool_], seed: int, n_rounds: int) -> Model:
        """Fit a model of some labels, shape (n,); a seed in the parameters prevails."""


class LightGBMBins:
    """Bins of LightGBM.

    Parameters
    ----------
    X : ndarray of shape (n, p)
    weights : ndarray of shape (n,) or None
    categories : list of int
        Columns that hold codes of categories.
    parameters : dict
        Parameters of LightGBM.
    """

    def __init__(
        self,
        X: Float64Array,
        weights: Float64Array | None,
        categories: list[int],
        parameters: dict[str, Any],
    ):
        self.parameters = parameters
        self.data = lgb.Dataset(
            X,
            np.zeros(len(X)),
            weight=weights,
            categorical_feature=categories,
            params=parameters,
            free_raw_data=True,
        ).construct()

    def copy(self) -> LightGBMBins:
        """Return the same bins for use in another thread: copied, not made again."""
        twin = object.__new__(LightGBMBins)
        twin.parameters = self.parameters
        rows = list(range(self.data.num_data()))
        twin.data = self.data.subset(rows, params=self.parameters).construct()
        return twin

    def start(self, labels: NDArray[np.bool_], seed: int) -> lgb.Booster:
        """Return a model that waits to be boosted.

        The labels belong to the bins: it has to be done with before the next starts.
        """
        self.data.set_label(labels.astype(np.float64))
        return lgb.Booster({"seed": seed, **self.parameters}, self.data)

    def boost(self, labels: NDArray[np.bool_], seed: int, n_rounds: int) -> Model:
        """Fit a model of some labels, shape (n,)."""
        booster = self.start(labels, seed)
        for _ in range(n_rounds):
            if booster.update():
                break
        return BoosterModel(freeze_booster(booster, n_rounds))


class XGBoostBins:
    """Bins of XGBoost; parameters as for `LightGBMBins`."""

    def __init__(
        self,
        X: Float64Array,
        weights: Float64Array | None,
        categories: list[int],
        parameters: dict[str, Any],
    ):
        import xgboost

        self.parameters = parameters
        self.kinds = ["c" if j in categories else "q" for j in range(X.shape[1])]
        self.data = xgboost.QuantileDMatrix(
            X,
            np.zeros(len(X)),
            weight=weights,
            feature_types=self.kinds,
            enable_categorical=True,
            max_bin=parameters.get("max_bin") or 256,
            nthread=1,
        )

    def copy(self) -> XGBoostBins:
        """Return the bins themselves: XGBoost copies none, so one thread has them."""
        return self

    def boost(self, labels: NDArray[np.bool_], seed: int, n_rounds: int) -> Model:
        """Fit a model of some labels, shape (n,)."""
        import xgboost

        self.data.set_label(labels.astype(np.float64))
        parameters = {"seed": seed, **self.parameters}
        return XGBoostModel(xgboost.train(parameters, self.data, n_rounds), self.kinds)
