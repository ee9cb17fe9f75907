"""The classifier of a threshold where none is given: LightGBM, its rounds chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import lightgbm as lgb
import numpy as np

from localexpert.data.folds import renumber_folds
from localexpert.experts.tasks import Tasks

# Chosen by the log loss out of fold summed over thresholds on the sets concrete,
# airfoil, kin8nm, abalone, insurance and seoul_bike.
_PARAMETERS: dict[str, Any] = {
    "learning_rate": 0.1,
    "num_leaves": 15,
    "min_data_in_leaf": 10,
    "lambda_l2": 1.0,
    "max_bin": 127,
    # LightGBM's 100 would keep most categories of a small table from any split.
    "min_data_per_group": 10,
    "feature_pre_filter": False,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbosity": -1,
}
_MOST_ROUNDS, _PATIENCE = 300, 30
# Thresholds by which the number of rounds is chosen.
_N_PILOTS = 5


def make_booster(tasks: Tasks, signs: Sequence[int], seed: int) -> lgb.LGBMClassifier:
    """Return an unfitted booster with one number of rounds for all folds and tasks.

    Parameters
    ----------
    tasks : Tasks
    signs : sequence of int
        The target may only rise (+1) or fall (-1) with features of such signs.
    seed : int

    Returns
    -------
    LGBMClassifier
        Reads codes. Its rounds have the least held-out log loss, mean over folds and
        some thresholds.
    """
    parameters = dict(_PARAMETERS)
    if any(signs):
        parameters["monotone_constraints"] = [-sign for sign in signs]
    middles = (np.arange(_N_PILOTS) + 0.5) * tasks.n_thresholds / _N_PILOTS
    curves = [
        _boost(tasks, k, parameters, seed) for k in np.unique(middles.astype(int))
    ]
    longest = max(map(len, curves))
    mean = np.mean([np.pad(c, (0, longest - len(c)), "edge") for c in curves], axis=0)
    return lgb.LGBMClassifier(n_estimators=int(np.argmin(mean)) + 1, **parameters)


def _boost(tasks: Tasks, k: int, parameters: dict[str, Any], seed: int) -> list[float]:
    """Return the held-out log loss of a task after every round."""
    # Rows without weight have no part in the bins either.
    rows = tasks.present
    folds = renumber_folds(tasks.folds, rows, tasks.n)
    folds = [(train, test) for train, test in folds if len(test)]
    if not folds:
        return [0.0]
    data = lgb.Dataset(
        tasks.table.codes[rows],
        tasks.label(rows, k).astype(np.float64),
        weight=tasks.weights[rows] if tasks.weighted else None,
        categorical_feature=tasks.table.reader.categories,
        params=parameters,
    )
    told = lgb.cv(
        {**parameters, "objective": "binary", "seed": seed},
        data,
        _MOST_ROUNDS,
        folds=folds,
        callbacks=[lgb.early_stopping(_PATIENCE, verbose=False)],
    )
    return list(cast(list[float], told["valid binary_logloss-mean"]))
