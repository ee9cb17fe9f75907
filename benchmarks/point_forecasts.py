"""RMSE of the mean of our distributions beside a tuned LightGBM regressor.

    python benchmarks/point_forecasts.py --data DIR

Sets and splits are those of `regression.py`. LightGBM is tuned in the training part:
12 settings drawn at random, each with the number of rounds that 3-fold cross-validation
likes best; the best one is fitted to all training rows. Rerun to resume; one JSON line
per run.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
from records import Records
from regression import load, rows_of_split

from localexpert import LocalExpertRegressor

N_SETTINGS, N_FOLDS, MOST_ROUNDS, PATIENCE = 12, 3, 1000, 50


def draw_settings(rng: np.random.Generator) -> dict[str, Any]:
    """Return one random setting."""
    return {
        "learning_rate": float(np.exp(rng.uniform(np.log(0.03), np.log(0.2)))),
        "num_leaves": int(np.exp(rng.uniform(np.log(4), np.log(128)))),
        "min_data_in_leaf": int(np.exp(rng.uniform(np.log(2), np.log(60)))),
        "feature_fraction": float(rng.uniform(0.4, 1.0)),
        "bagging_fraction": float(rng.uniform(0.5, 1.0)),
        "bagging_freq": 1,
        "lambda_l2": float(np.exp(rng.uniform(np.log(1e-3), np.log(30.0)))),
    }


def tune(table: Any, y: np.ndarray, jobs: int) -> tuple[dict[str, Any], int]:
    """Return the setting and rounds with the least cross-validated squared error."""
    rng = np.random.default_rng(0)
    fixed = {"objective": "l2", "verbosity": -1, "num_threads": jobs, "seed": 0}
    best: tuple[float, dict[str, Any], int] = (np.inf, {}, 0)
    for _ in range(N_SETTINGS):
        setting = draw_settings(rng) | fixed
        curve = lgb.cv(
            setting,
            lgb.Dataset(table, y),
            MOST_ROUNDS,
            nfold=N_FOLDS,
            stratified=False,
            callbacks=[lgb.early_stopping(PATIENCE, verbose=False)],
        )["valid l2-mean"]
        if min(curve) < best[0]:
            best = min(curve), setting, int(np.argmin(curve)) + 1
    return best[1], best[2]


def run_tuned(path: Path, jobs: int) -> dict[str, Any]:
    """Tune, fit and score LightGBM on split 0."""
    table, y = load(path)
    train, test = rows_of_split(path, 0, len(y), standard=False)
    start = time.perf_counter()
    setting, rounds = tune(table.iloc[train], y[train], jobs)
    model = lgb.train(setting, lgb.Dataset(table.iloc[train], y[train]), rounds)
    answer = model.predict(table.iloc[test], num_threads=jobs)
    rmse = float(np.sqrt(np.mean((np.asarray(answer) - y[test]) ** 2)))
    return {"rmse": rmse, "rounds": rounds, "fit_s": time.perf_counter() - start}


def run_ours(path: Path, jobs: int) -> dict[str, Any]:
    """Fit and score ours on split 0."""
    table, y = load(path)
    train, test = rows_of_split(path, 0, len(y), standard=False)
    model = LocalExpertRegressor(random_state=0, n_jobs=jobs)
    answer = model.fit(table.iloc[train], y[train]).predict(table.iloc[test])
    return {"rmse": float(np.sqrt(np.mean((answer - y[test]) ** 2)))}


def main() -> None:
    """Run or resume, and print both with their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of CSV files")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    options = parser.parse_args()
    records = Records("point_forecasts", "latest", fresh=options.fresh)
    ratios = []
    print(f"{'set':12s} {'ours':>10s} {'LightGBM':>10s} {'ratio':>7s}")
    for path in sorted(options.data.glob("*.csv.gz")):
        name = path.name.split(".")[0]
        a, b = (
            records.measure(
                f"{name}-{who}", lambda path=path, run=run: run(path, options.jobs)
            )
            for who, run in (("ours", run_ours), ("tuned", run_tuned))
        )
        ratios.append(a["rmse"] / b["rmse"])
        print(f"{name:12s} {a['rmse']:10.4g} {b['rmse']:10.4g} {ratios[-1]:7.3f}")
    print(f"mean ratio {np.mean(ratios):.4f}, median {np.median(ratios):.4f}")


if __name__ == "__main__":
    main()
