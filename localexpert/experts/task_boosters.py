"""Boosters of all thresholds on shared bins, with one number of rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from calibration.typing import Float64Array
from localexpert.data.folds import Fold, Rows
from localexpert.experts.classifiers import ConstantModel, Model
from localexpert.experts.common_rounds import HeldOutBooster, find_rounds, thread_pool
from localexpert.experts.feature_bins import Bins, LightGBMBins, XGBoostBins
from localexpert.experts.tasks import Tasks
from localexpert.progress import current_progress, run_jobs

# The default learner, chosen by the log loss out of fold summed over thresholds on
# the sets concrete, airfoil, kin8nm, abalone, insurance and seoul_bike.
_DEFAULTS: dict[str, Any] = {
    "learning_rate": 0.1,
    "num_leaves": 15,
    "min_data_in_leaf": 10,
    "lambda_l2": 1.0,
    "max_bin": 127,
    # LightGBM's 100 would keep most categories of a small table from any split.
    "min_data_per_group": 10,
}
_MOST_ROUNDS = 300
# Thresholds by which the number of rounds is chosen.
_N_PILOTS = 5
# Thresholds fitted one after the other on one copy of the bins.
_GROUP = 5
# What of an LGBMClassifier is no parameter of LightGBM, or none of one task.
_LGBM_NO_PARAMETERS = ("n_estimators", "objective", "class_weight", "importance_type")
_XGB_NO_PARAMETERS = (
    "n_estimators",
    "objective",
    "callbacks",
    "early_stopping_rounds",
    "enable_categorical",
    "eval_metric",
    "feature_types",
    "importance_type",
    "missing",
    "n_jobs",
    "random_state",  # it is their "seed"
)


@dataclass(frozen=True)
class BoosterSettings:
    """Which bins to make, with what parameters, and how many rounds; None: choose."""

    make_bins: Callable[..., Bins]
    parameters: dict[str, Any]
    n_rounds: int | None
    most_in_group: int


def read_booster(classifier: Any) -> BoosterSettings | None:
    """Return the settings of a learner that can share bins, None of any other.

    A booster with a loss, class weights or early stopping of its own is not read:
    it is fitted like any classifier.
    """
    if classifier is None:
        return BoosterSettings(_make_lightgbm_bins, _DEFAULTS, None, _GROUP)
    if type(classifier) is lgb.LGBMClassifier:
        given = classifier.get_params()
        if given["objective"] not in (None, "binary") or given["class_weight"]:
            return None
        parameters = {k: v for k, v in given.items() if k not in _LGBM_NO_PARAMETERS}
        return BoosterSettings(
            _make_lightgbm_bins, parameters, given["n_estimators"], _GROUP
        )
    if type(classifier).__module__.startswith("xgboost"):
        return _read_xgboost(classifier)
    return None


def fit_binned(
    settings: BoosterSettings,
    tasks: Tasks,
    parts: list[Fold],
    rng: np.random.Generator,
    n_jobs: int | None,
) -> tuple[list[list[tuple[Model, Float64Array]]], int]:
    """Fit a booster per part and threshold and predict the part's test rows.

    Returns
    -------
    results : list of lists of (model, ndarray of shape (n_test,))
        By part, then by threshold.
    n_rounds : int
        The rounds of all boosters.
    """
    encoded = tasks.table.codes
    seeds = rng.integers(2**31, size=(len(parts), tasks.n_thresholds))
    with thread_pool(n_jobs) as pool:
        bins = pool(
            delayed(settings.make_bins)(
                encoded[train],
                tasks.weights[train] if tasks.weighted else None,
                tasks.table.reader.categories,
                settings.parameters,
            )
            for train, _ in parts
        )
        progress = current_progress()
        n_rounds = settings.n_rounds
        if n_rounds is None:
            with progress.stage("rounds"):
                n_rounds = _choose_rounds(bins, encoded, tasks, seeds, pool)
        group = settings.most_in_group
        jobs = [
            (number, range(first, min(first + group, tasks.n_thresholds)))
            for number in range(len(parts))
            for first in range(0, tasks.n_thresholds, group)
        ]
        calls = [
            delayed(_fit_group)(
                bins[number], encoded, tasks, parts[number], number, ks, seeds, n_rounds
            )
            for number, ks in jobs
        ]
        with progress.stage("thresholds"):
            groups = run_jobs(calls, n_jobs=n_jobs, require="sharedmem")
    results: list[list[tuple[Model, Float64Array]]] = [[] for _ in parts]
    for (number, _), fitted in zip(jobs, groups, strict=True):
        results[number].extend(fitted)
    return results, n_rounds


def _fit_group(
    bins: Bins,
    encoded: Float64Array,
    tasks: Tasks,
    part: Fold,
    number: int,
    ks: range,
    seeds: NDArray[np.int64],
    n_rounds: int,
) -> list[tuple[Model, Float64Array]]:
    """Fit the boosters of some thresholds, one after the other."""
    train, test = part
    own = bins.copy()
    fitted = []
    for k in ks:
        labels = tasks.label(train, k)
        try:
            if labels.all() or not labels.any():
                model: Model = ConstantModel(float(tasks.base_rates(train)[k]))
            else:
                model = own.boost(labels, int(seeds[number, k]), n_rounds)
            fitted.append((model, model.predict(encoded[test])))
        except Exception as error:
            msg = f"The expert of {tasks.describe(k, number)} failed: {error}"
            raise RuntimeError(msg) from error
    return fitted


def _choose_rounds(
    bins: list[Any],
    encoded: Float64Array,
    tasks: Tasks,
    seeds: NDArray[np.int64],
    pool: Parallel,
) -> int:
    """Return the rounds with the least log loss, mean over folds and pilot tasks."""
    pilots, shares = [], []
    for number, (train, test) in enumerate(tasks.folds):
        for k in _pilot_thresholds(tasks.n_thresholds):
            labels = tasks.label(train, k)
            if labels.all() or not labels.any():
                continue
            booster = bins[number].copy().start(labels, int(seeds[number, k]))
            loss = _LogLoss(tasks, test, k)
            pilots.append(HeldOutBooster(booster, encoded[test], loss))
            shares.append(tasks.weights[test].sum())
    if not sum(shares) > 0.0:
        return 1
    return find_rounds(pilots, shares, _MOST_ROUNDS, pool)


def _pilot_thresholds(n_thresholds: int) -> list[int]:
    n_pilots = min(_N_PILOTS, n_thresholds)
    middles = (np.arange(n_pilots) + 0.5) * n_thresholds / n_pilots
    return [int(k) for k in middles]


class _LogLoss:
    """Weighted mean log loss of the raw scores of some rows in one task."""

    def __init__(self, tasks: Tasks, rows: Rows, k: int):
        self.labels = tasks.label(rows, k).astype(np.float64)
        weights = tasks.weights[rows]
        self.weights = weights / max(weights.sum(), np.finfo(float).tiny)

    def __call__(self, raw: Float64Array) -> float:
        # log(1 + exp(raw)) - y raw, without overflow.
        losses = np.logaddexp(0.0, raw) - self.labels * raw
        return float(self.weights @ losses)


def _make_lightgbm_bins(
    X: Float64Array,
    weights: Float64Array | None,
    categories: list[int],
    parameters: dict[str, Any],
) -> LightGBMBins:
    fixed = {
        "objective": "binary",
        "feature_pre_filter": False,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "verbosity": -1,
    }
    own = {
        name: value
        for name, value in parameters.items()
        if value is not None and name not in ("n_jobs", "random_state")
    }
    if parameters.get("random_state") is not None:
        own["seed"] = parameters["random_state"]
    return LightGBMBins(X, weights, categories, {**own, **fixed})


def _read_xgboost(classifier: Any) -> BoosterSettings | None:
    import xgboost  # type: ignore[import-not-found, unused-ignore]

    if type(classifier) is not xgboost.XGBClassifier:
        return None
    given = classifier.get_params()
    if given["objective"] not in (None, "binary:logistic"):
        return None
    if given.get("early_stopping_rounds") is not None or given.get("callbacks"):
        return None
    parameters = {
        name: value
        for name, value in given.items()
        if value is not None and name not in _XGB_NO_PARAMETERS
    }
    fixed = {"objective": "binary:logistic", "nthread": 1}
    if given["random_state"] is not None:
        fixed["seed"] = given["random_state"]
    # XGBClassifier's own default number of rounds is not among its parameters.
    n_rounds = given.get("n_estimators") or classifier.get_num_boosting_rounds()
    # No copy of the bins can be had, so one thread takes all thresholds of a fold.
    return BoosterSettings(
        XGBoostBins, {**parameters, **fixed}, n_rounds, np.iinfo(np.int64).max
    )
