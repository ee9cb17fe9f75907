"""Boosters of all thresholds on shared bins, with one number of rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from calibration.typing import Float64Array
from localexpert.data.folds import Fold, Rows
from localexpert.data.threads import thread_pool
from localexpert.experts.classifiers import ConstantModel, Model
from localexpert.experts.common_rounds import HeldOutBooster, find_rounds
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


# A model of one threshold, and what it says of the test rows.
Fitted: TypeAlias = tuple[Model, Float64Array]


@dataclass(frozen=True)
class BoosterSettings:
    """Which bins to make, with what parameters, and how many rounds; None: choose."""

    make_bins: Callable[..., Bins]
    parameters: dict[str, Any]
    n_rounds: int | None
    most_in_group: int


def read_booster(classifier: Any, signs: Sequence[int] = ()) -> BoosterSettings | None:
    """Return the settings of a learner that can share bins, None of any other.

    The default's target may only rise (+1) or fall (-1) with features of such signs.

    A booster with a loss, class weights or early stopping of its own is not read:
    it is fitted like any classifier.
    """
    if classifier is None:
        bound = {"monotone_constraints": [-sign for sign in signs]}
        parameters = {**_DEFAULTS, **(bound if any(signs) else {})}
        return BoosterSettings(_make_lightgbm_bins, parameters, None, _GROUP)
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
) -> tuple[list[list[Fitted]], int]:
    """Fit a booster per part and threshold and predict the part's test rows.

    Returns
    -------
    results : list of lists of (model, ndarray of shape (n_test,))
        By part, then by threshold.
    n_rounds : int
        The rounds of all boosters.
    """
    seeds = rng.integers(2**31, size=(len(parts), tasks.n_thresholds))
    progress = current_progress()
    with thread_pool(n_jobs) as pool:
        # Binning costs as much as some rounds, and no label has a part in it: once
        # per part is enough.
        bins = pool(delayed(_bin)(settings, tasks, train) for train, _ in parts)
        jobs = [
            _PartBoosters(number, part, own, tasks, own_seeds)
            for number, (part, own, own_seeds) in enumerate(
                zip(parts, bins, seeds, strict=True)
            )
        ]
        n_rounds = settings.n_rounds
        if n_rounds is None:
            with progress.stage("rounds"):
                n_rounds = _choose_rounds(jobs[: len(tasks.folds)], pool)
        # A few thresholds in a row: copying the bins costs more than a short booster.
        group = min(settings.most_in_group, tasks.n_thresholds)
        groups = [
            (job, range(first, min(first + group, tasks.n_thresholds)))
            for job in jobs
            for first in range(0, tasks.n_thresholds, group)
        ]
        calls = [delayed(job.fit)(ks, n_rounds) for job, ks in groups]
        with progress.stage("thresholds"):
            answers = run_jobs(calls, n_jobs=n_jobs, require="sharedmem")
    results: list[list[Fitted]] = [[] for _ in parts]
    for (job, _), fitted in zip(groups, answers, strict=True):
        results[job.number].extend(fitted)
    return results, n_rounds


class _PartBoosters(NamedTuple):
    """The boosters of all thresholds on the training rows of one part.

    Parameters
    ----------
    number : int
        Of the part, to name it where a booster fails.
    part : (train, test)
    bins : Bins
        Of the training rows.
    tasks : Tasks
    seeds : ndarray of shape (N,)
    """

    number: int
    part: Fold
    bins: Any
    tasks: Tasks
    seeds: NDArray[np.int64]

    def fit(self, ks: range, n_rounds: int) -> list[Fitted]:
        """Fit the boosters of some thresholds, one after the other."""
        own = self.bins.copy()
        return [self._fit_one(own, k, n_rounds) for k in ks]

    def _fit_one(self, bins: Bins, k: int, n_rounds: int) -> Fitted:
        """Fit one booster and predict the test rows."""
        train, test = self.part
        labels = self.tasks.label(train, k)
        try:
            if labels.all() or not labels.any():
                model: Model = ConstantModel(float(self.tasks.base_rates(train)[k]))
            else:
                model = bins.boost(labels, int(self.seeds[k]), n_rounds)
            return model, model.predict(self.tasks.table.codes[test])
        except Exception as error:
            where = self.tasks.describe(k, self.number)
            msg = f"The expert of {where} failed: {error}"
            raise RuntimeError(msg) from error

    def pilot(self, k: int) -> HeldOutBooster | None:
        """Return a booster of a threshold to be watched, None where one class is."""
        train, test = self.part
        labels = self.tasks.label(train, k)
        if labels.all() or not labels.any():
            return None
        booster = self.bins.copy().start(labels, int(self.seeds[k]))
        loss = _LogLoss(self.tasks, test, k)
        return HeldOutBooster(booster, self.tasks.table.codes[test], loss)


def _bin(settings: BoosterSettings, tasks: Tasks, train: Rows) -> Bins:
    """Return the bins of some training rows."""
    return settings.make_bins(
        tasks.table.codes[train],
        tasks.weights[train] if tasks.weighted else None,
        tasks.table.reader.categories,
        settings.parameters,
    )


def _choose_rounds(jobs: list[_PartBoosters], pool: Parallel) -> int:
    """Return the rounds with the least log loss, mean over folds and pilot tasks."""
    pilots, shares = [], []
    for job in jobs:
        for k in _pilot_thresholds(job.tasks.n_thresholds):
            pilot = job.pilot(k)
            if pilot is not None:
                pilots.append(pilot)
                shares.append(job.tasks.weights[job.part[1]].sum())
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
