"""The forecasts to beat beside climatology: gradient boosting of quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.data.table import Table
from localexpert.reporting.evidence import Evidence
from localexpert.reporting.markup import count
from localexpert.reporting.scores import Scores, levels_for

# Training rows that are needed to fit a baseline and to tell it when to stop.
_LEAST_TO_BOOST = 10
_MOST_ROUNDS, _PATIENCE = 500, 25
# Share of the training rows that say when to stop.
_HELD_OUT = 0.2


def score_boosting(evidence: Evidence) -> tuple[Scores | None, str]:
    """Fit LightGBM to training rows, a model for each quantile and one for the mean.

    Rounds are chosen for each on a fifth of the training rows that is held out, and
    the model is then fitted to all of them. Quantiles that cross are sorted. Where
    the rows do not allow it, there are no scores but the reason.
    """
    tables, y_train = evidence.beside_training, evidence.y_train
    if tables is None or y_train is None:
        return None, (
            "There is no boosted baseline: it is fitted to training rows, and "
            "none were given (X_train and y_train)."
        )
    if len(y_train) < _LEAST_TO_BOOST:
        few = count(len(y_train), "training row")
        return (
            None,
            f"{few} {'is' if len(y_train) == 1 else 'are'} too few for boosting.",
        )
    train, new = tables
    order = np.random.default_rng(evidence.seed).permutation(len(y_train))
    levels = levels_for(evidence.coverage)
    common: dict[str, Any] = {
        "verbosity": -1,
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "learning_rate": 0.05,
        "num_leaves": 15,
        "min_data_in_leaf": int(np.clip(len(y_train) // 20, 1, 20)),
        "min_data_in_bin": 1,
        "seed": evidence.seed,
    }
    objectives: list[dict[str, Any]] = [{"objective": "regression"}]
    objectives += [{"objective": "quantile", "alpha": level} for level in levels]
    boosters = [_boost(train, y_train, order, common | one) for one in objectives]
    mean, *quantiles = (one.predict(new.codes, num_threads=1) for one in boosters)
    ordered = np.sort(np.column_stack(quantiles), axis=1)
    return Scores.of_quantiles(evidence.y, mean, ordered, evidence.coverage), ""


def _boost(
    train: Table, y: Float64Array, order: Any, parameters: dict[str, Any]
) -> Any:
    """Return a booster of as many rounds as held-out rows ask for."""
    import lightgbm as lgb

    X, held = train.codes, max(1, round(_HELD_OUT * len(y)))
    options: dict[str, Any] = {"categorical_feature": train.reader.categories}
    part = lgb.Dataset(X[order[held:]], y[order[held:]], **options)
    test = lgb.Dataset(X[order[:held]], y[order[:held]], reference=part, **options)
    stop = lgb.early_stopping(_PATIENCE, verbose=False)
    trial = lgb.train(parameters, part, _MOST_ROUNDS, [test], callbacks=[stop])
    whole = lgb.Dataset(X, y, **options)
    return lgb.train(parameters, whole, max(trial.best_iteration, 1))
