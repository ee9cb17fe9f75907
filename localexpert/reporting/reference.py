"""The forecasts to beat: climatology, and gradient boosting of quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.data.table import TableReader
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.laws import DiscreteLaw
from localexpert.regressor.regressor import LocalExpertRegressor
from localexpert.reporting.climatology import Climatology
from localexpert.reporting.scores import Scores, levels_for
from localexpert.reporting.training import Training

_MOST_ROUNDS, _PATIENCE = 500, 25
# Share of the training rows that say when to stop.
_HELD_OUT = 0.2


def forecast_climatology(
    model: Any, training: Training, dist: PredictiveDistribution
) -> PredictiveDistribution:
    """Return the training target's distribution as the forecast of every row.

    It is a law of the kind that `dist` is, with the same atoms and cells, so that log
    scores compare.
    """
    if isinstance(model, LocalExpertRegressor):
        return Climatology.of(model, training.y, training.weight).dist(len(dist))
    held = training.weight > 0.0
    values, place = np.unique(training.y[held], return_inverse=True)
    weights = np.bincount(place, training.weight[held]).astype(np.float64)
    discrete = isinstance(dist.law, DiscreteLaw) or len(values) < 2
    none = np.empty(0)
    return Climatology(values, weights, none, none, discrete).dist(len(dist))


def score_boosting(
    X_train: Any,
    y_train: Float64Array,
    X: Any,
    y: Float64Array,
    coverage: float,
    seed: int,
) -> Scores:
    """Fit LightGBM to training rows, a model for each quantile and one for the mean.

    Rounds are chosen for each on a fifth of the training rows that is held out, and
    the model is then fitted to all of them. Quantiles that cross are sorted.
    """
    reader = TableReader.learn(X_train)
    train, new = reader.read(X_train).codes, reader.read(X).codes
    order = np.random.default_rng(seed).permutation(len(y_train))
    levels = levels_for(coverage)
    common: dict[str, Any] = {
        "verbosity": -1,
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "learning_rate": 0.05,
        "num_leaves": 15,
        "min_data_in_leaf": int(np.clip(len(y_train) // 20, 1, 20)),
        "min_data_in_bin": 1,
        "seed": seed,
    }
    objectives: list[dict[str, Any]] = [{"objective": "regression"}]
    objectives += [{"objective": "quantile", "alpha": level} for level in levels]
    forecasts = [
        _boost(train, y_train, new, order, reader.categories, {**common, **objective})
        for objective in objectives
    ]
    quantiles = np.sort(np.column_stack(forecasts[1:]), axis=1)
    return Scores.of_quantiles(y, forecasts[0], quantiles, coverage)


def _boost(
    X: Float64Array,
    y: Float64Array,
    new: Float64Array,
    order: Any,
    categories: list[int],
    parameters: dict[str, Any],
) -> Float64Array:
    """Return forecasts of new rows by as many rounds as held-out rows ask for."""
    import lightgbm as lgb

    held = max(1, round(_HELD_OUT * len(y)))
    options: dict[str, Any] = {"categorical_feature": categories, "free_raw_data": True}
    part = lgb.Dataset(X[order[held:]], y[order[held:]], **options)
    test = lgb.Dataset(X[order[:held]], y[order[:held]], reference=part, **options)
    stop = lgb.early_stopping(_PATIENCE, verbose=False)
    trial = lgb.train(parameters, part, _MOST_ROUNDS, [test], callbacks=[stop])
    whole = lgb.Dataset(X, y, **options)
    booster = lgb.train(parameters, whole, max(trial.best_iteration, 1))
    answer: Float64Array = np.asarray(
        booster.predict(new, num_threads=1), dtype=np.float64
    )
    return answer
