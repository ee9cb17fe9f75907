"""Real survival data beside random survival forests, boosting and Cox's model.

    pip install scikit-survival lifelines
    python benchmarks/survival.py                       # five splits, an hour
    python benchmarks/survival.py --sets gbsg2 --splits 2

Sets come with scikit-survival and lifelines: breast cancer (gbsg2), heart attacks
(whas500), blood chemistry (flchain, 1 000 rows drawn for training), lung cancer
(veterans), arrests (rossi). A third of the rows is for
testing. The Brier score is integrated between the .1 and the .9 quantile of the test
rows' times and weighted by the training rows' censoring. "D-calibration" counts tests
refused at 1 %. Curves of the others are steps, with all that they leave beyond the last
time. Rerun to resume; one JSON line per set, split and model.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from lifelines import CoxPHFitter
from lifelines import datasets as of_lifelines
from records import Records
from scipy.stats import rankdata
from sksurv import datasets as of_sksurv
from sksurv.ensemble import GradientBoostingSurvivalAnalysis, RandomSurvivalForest
from sksurv.util import Surv

from localexpert import (
    LocalExpertRegressor,
    PredictiveDistribution,
    censored,
    concordance_index,
    crps_score,
    d_calibration_test,
    integrated_brier_score,
    kaplan_meier,
    log_score,
)

SETS = ("whas500", "gbsg2", "veterans", "rossi", "flchain")
MODELS = ("localexpert", "forest", "boosting", "cox", "kaplan-meier")
MOST_TRAIN, MOST_TEST = 1000, 2000


def load(name: str) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return features, times and events of a set; rows of time 0 are left out."""
    if name == "rossi":
        frame = of_lifelines.load_rossi()
        time_, event = frame.pop("week"), frame.pop("arrest") == 1
    else:
        called = "veterans_lung_cancer" if name == "veterans" else name
        frame, y = getattr(of_sksurv, f"load_{called}")()
        event, time_ = (y[field] for field in y.dtype.names)
    # The chapter of the death certificate tells who has died.
    frame = frame.drop(columns="chapter", errors="ignore")
    held = np.asarray(time_) > 0
    frame = frame[held].reset_index(drop=True)
    return frame, np.asarray(time_, float)[held], np.asarray(event, bool)[held]


def as_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return indicators of all categories but one, and medians for gaps."""
    coded = pd.get_dummies(frame, drop_first=True).astype(float)
    coded = coded.loc[:, coded.std() > 0.0]
    return coded.fillna(coded.median())


def from_steps(times: np.ndarray, survival: np.ndarray) -> PredictiveDistribution:
    """Return forecasts of survival curves (n, k) at times; the rest lies beyond."""
    levels = np.column_stack(
        [np.ones(len(survival)), survival, np.zeros(len(survival))]
    )
    masses = np.maximum(-np.diff(levels, axis=1), 0.0)
    masses /= masses.sum(axis=1, keepdims=True)
    atoms = np.append(times, times[-1] + 0.5 * np.ptp(times))
    return PredictiveDistribution.from_arrays(atoms=atoms, masses=masses)


def forecast(
    model: str, frame: pd.DataFrame, y: np.ndarray, train: np.ndarray, test: np.ndarray
) -> PredictiveDistribution:
    """Fit on the training rows, and return forecasts of the test rows."""
    if model == "localexpert":
        fitted = LocalExpertRegressor(random_state=0).fit(frame.iloc[train], y[train])
        return fitted.predict_dist(frame.iloc[test])
    if model == "kaplan-meier":
        times, survival = kaplan_meier(y[train])
        return from_steps(times, np.tile(survival, (len(test), 1)))
    X = as_numbers(frame)
    X = X.loc[:, X.iloc[train].std() > 0.0]
    event, life = y[train, 0] == y[train, 1], y[train, 0]
    if model == "cox":
        table = X.iloc[train].assign(_life=life, _event=event)
        cox = CoxPHFitter(penalizer=0.01).fit(table, "_life", "_event")
        curves = cox.predict_survival_function(X.iloc[test])
        return from_steps(curves.index.to_numpy(), curves.to_numpy().T)
    if model == "forest":
        peer = RandomSurvivalForest(
            n_estimators=300, min_samples_leaf=10, random_state=0
        )
    else:
        # Better than the defaults on gbsg2, whas500 and veterans, which overfit.
        peer = GradientBoostingSurvivalAnalysis(
            learning_rate=0.05, max_depth=2, subsample=0.5, random_state=0
        )
    peer.fit(X.iloc[train].to_numpy(), Surv.from_arrays(event, life))
    survival = peer.predict_survival_function(
        X.iloc[test].to_numpy(), return_array=True
    )
    return from_steps(peer.unique_times_, survival)


def run(name: str, split: int, model: str) -> dict[str, Any]:
    """Return the scores of one model on one split of a set."""
    frame, life, event = load(name)
    order = np.random.default_rng(split).permutation(len(life))
    n_test = len(life) // 3
    test, train = order[:n_test][:MOST_TEST], order[n_test:][:MOST_TRAIN]
    y = censored(life, event)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dist = forecast(model, frame, y, train, test)
    seconds = time.process_time() - start
    times = np.unique(np.quantile(life[test][event[test]], np.linspace(0.1, 0.9, 60)))
    options = {"censoring": y[train]}
    return {
        "set": name,
        "split": split,
        "model": model,
        "events": float(event.mean()),
        "ibs": integrated_brier_score(y[test], dist, times, **options),
        "crps": crps_score(y[test], dist, **options),
        "log": log_score(y[test], dist) if model == "localexpert" else None,
        "concordance": concordance_index(y[test], dist),
        "d_p_value": d_calibration_test(y[test], dist)[1],
        "cpu_seconds": seconds,
    }


def show(rows: list[dict[str, Any]]) -> None:
    """Print the integrated Brier scores, ranks and D-calibration of the models."""
    table = pd.DataFrame(rows)
    means = table.pivot_table(index="set", columns="model", values="ibs", sort=False)
    full = table.pivot_table(index=["set", "split"], columns="model", values="ibs")
    ranks = pd.DataFrame(rankdata(full.dropna(), axis=1), columns=full.columns).mean()
    print(means.round(4).to_string())
    by = table.groupby("model", sort=False)
    print(
        pd.DataFrame(
            {
                "mean rank": ranks.round(2),
                "concordance": by["concordance"].mean().round(3),
                "refused at 1 %": by["d_p_value"].agg(lambda p: (p < 0.01).sum()),
                "runs": by.size(),
                "CPU seconds": by["cpu_seconds"].mean().round(1),
            }
        ).to_string()
    )


def main() -> None:
    """Run what is asked for and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--run", default="now", help="name of the run to resume")
    parser.add_argument("--fresh", action="store_true")
    asked = parser.parse_args()
    records = Records("survival", asked.run, fresh=asked.fresh)
    rows = []
    for split in range(asked.splits):
        for name in asked.sets:
            for model in asked.models:
                key = f"{name}-{split}-{model}"
                rows.append(records.measure(key, lambda: run(name, split, model)))  # noqa: B023
    show(rows)


if __name__ == "__main__":
    main()
