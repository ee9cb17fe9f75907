"""Peers of the regression benchmark on any folder of tables.

    python benchmarks/regression_peers.py --data DIR                  # split 0
    python benchmarks/regression_peers.py --data DIR --share 0.7 --splits 0 1

Needs the `bench` extra. Writes a line per set, split and method to
`peers_regression.jsonl` one folder above DIR, where `regression.py` reads it, on the
same rows: give both the same `--share` and `--splits`. Categories are codes; missing
values stay for boosters, and are medians for NGBoost and the forest. Rerun to resume.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor, early_stopping
from regression import LEVELS, PEERS, load, read_peers, scores, split_rows
from regression_short import between_knots
from regression_speed import boost_normals
from scipy.stats import norm
from sklearn.model_selection import KFold

# Levels of the quantile boosters; between them quantiles are interpolated.
KNOTS = np.array([0.005, 0.01, *np.linspace(0.025, 0.975, 25), 0.99, 0.995])
# Those of boosters that learn all levels at once.
COMMON_KNOTS = np.array([0.01, 0.025, *np.arange(1, 20) / 20.0, 0.975, 0.99])


def numbers(table: pd.DataFrame) -> np.ndarray:
    """Return the features as numbers: categories by code, missing as NaN."""
    columns = [
        column.cat.codes.replace(-1, np.nan) if column.dtype == "category" else column
        for _, column in table.items()
    ]
    return np.column_stack([np.asarray(column, float) for column in columns])


def without_gaps(X: np.ndarray, X_new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both with medians of training for missing values (0 if all are)."""
    known = ~np.isnan(X).all(axis=0)
    medians = np.zeros(X.shape[1])
    medians[known] = np.nanmedian(X[:, known], axis=0)
    return np.where(np.isnan(X), medians, X), np.where(np.isnan(X_new), medians, X_new)


def held_tenth(n: int) -> list[np.ndarray]:
    """Return the rows to train on and a tenth to stop early by."""
    return np.split(np.random.default_rng(0).permutation(n), [n - n // 10])


def boosted(X: np.ndarray, y: np.ndarray, patience: int, **options: Any) -> Any:
    """Return a LightGBM regressor with early stopping on a tenth."""
    train, held = held_tenth(len(y))
    model = LGBMRegressor(n_estimators=2000, n_jobs=1, verbose=-1, **options)
    return model.fit(
        X[train],
        y[train],
        eval_set=[(X[held], y[held])],
        callbacks=[early_stopping(patience, verbose=False)],
    )


def lgb_quantiles(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """One LightGBM for each of 29 levels, sorted."""
    common = {"objective": "quantile", "learning_rate": 0.05}
    knots = [boosted(X, y, 30, alpha=level, **common).predict(X_new) for level in KNOTS]
    return between_knots(LEVELS, KNOTS, np.column_stack(knots))


def lgb_few(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """Fit one LightGBM of 200 trees for each of 19 levels."""
    levels, common = np.arange(1, 20) / 20.0, {"n_estimators": 200, "n_jobs": 1}
    knots = [
        LGBMRegressor(objective="quantile", alpha=level, verbose=-1, **common)
        .fit(X, y)
        .predict(X_new)
        for level in levels
    ]
    return between_knots(LEVELS, levels, np.column_stack(knots))


def catboost_quantiles(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """Fit 23 levels at once by CatBoost, with early stopping on a tenth."""
    levels = ",".join(f"{level:g}" for level in COMMON_KNOTS)
    told = catboost(X, y, f"MultiQuantile:alpha={levels}").predict(X_new)
    return between_knots(LEVELS, COMMON_KNOTS, told)


def chimera_quantiles(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """Fit 23 levels at once by ChimeraBoost, as it comes."""
    from chimeraboost import ChimeraBoostQuantileRegressor

    model = ChimeraBoostQuantileRegressor(
        COMMON_KNOTS, thread_count=1, random_state=0
    ).fit(X, y)
    return between_knots(LEVELS, COMMON_KNOTS, model.predict(X_new))


def quantile_forest(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """Meinshausen's forest: 500 trees, five rows in a leaf."""
    from quantile_forest import RandomForestQuantileRegressor

    X, X_new = without_gaps(X, X_new)
    model = RandomForestQuantileRegressor(
        500, min_samples_leaf=5, random_state=0, n_jobs=1
    )
    return np.asarray(model.fit(X, y).predict(X_new, quantiles=list(LEVELS)))


def crepes_cps(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """A conformal predictive system, normalised by the errors that are foreseen.

    LightGBM's residuals out of fold; their sizes are learned out of fold, too.
    """
    residuals, sizes = np.empty(len(y)), np.empty(len(y))
    for train, held in KFold(5, shuffle=True, random_state=0).split(X):
        centre = boosted(X[train], y[train], 50, learning_rate=0.05)
        residuals[held] = y[held] - centre.predict(X[held])
    small = {"n_estimators": 100, "learning_rate": 0.05, "num_leaves": 15}
    errors = LGBMRegressor(n_jobs=1, verbose=-1, **small)
    for train, held in KFold(5, shuffle=True, random_state=1).split(X):
        errors.fit(X[train], np.abs(residuals[train]))
        sizes[held] = errors.predict(X[held])
    least = 0.05 * np.abs(residuals).mean() + 1e-12
    new_sizes = errors.fit(X, np.abs(residuals)).predict(X_new)
    return conformal(
        residuals,
        np.maximum(sizes, least),
        boosted(X, y, 50, learning_rate=0.05).predict(X_new),
        np.maximum(new_sizes, least),
    )


def conformal(
    residuals: np.ndarray, sizes: np.ndarray, centres: np.ndarray, new_sizes: np.ndarray
) -> np.ndarray:
    """Return the quantiles that crepes' predictive system gives."""
    from crepes import ConformalPredictiveSystem

    system = ConformalPredictiveSystem().fit(residuals, sigmas=sizes)
    return np.asarray(
        system.predict_percentiles(
            centres, sigmas=new_sizes, higher_percentiles=list(100.0 * LEVELS)
        )
    )


def catboost(X: np.ndarray, y: np.ndarray, loss: str) -> Any:
    """Return a CatBoost regressor with early stopping on a tenth."""
    from catboost import CatBoostRegressor

    train, held = held_tenth(len(y))
    model = CatBoostRegressor(
        loss_function=loss,
        iterations=2000,
        random_seed=0,
        thread_count=1,
        verbose=0,
        allow_writing_files=False,
    )
    return model.fit(
        X[train], y[train], eval_set=(X[held], y[held]), early_stopping_rounds=50
    )


def catboost_unc(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """Mean and standard deviation by CatBoost's loss with uncertainty."""
    mean, variance = catboost(X, y, "RMSEWithUncertainty").predict(X_new).T
    return np.stack([mean, np.sqrt(variance)])


def ngboost(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """Mean and standard deviation by NGBoost, with early stopping on a tenth."""
    X, X_new = without_gaps(X, X_new)
    law = boost_normals(X, y, *held_tenth(len(y)))(X_new).params
    return np.stack([law["loc"], law["scale"]])


BY_QUANTILES = (
    lgb_few,
    lgb_quantiles,
    quantile_forest,
    crepes_cps,
    catboost_quantiles,
    chimera_quantiles,
)
NORMAL = (catboost_unc, ngboost)
Method = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def run(
    X: np.ndarray, y: np.ndarray, train: Any, test: Any, method: Method
) -> dict[str, float]:
    """Return the figures of a method on one split."""
    start, used = time.perf_counter(), time.process_time()
    told = method(X[train], y[train], X[test])
    row = {
        "fit_s": time.perf_counter() - start,
        "cpu_s": time.process_time() - used,
    }
    if method in BY_QUANTILES:
        return row | scores(y[test], told)
    mean, deviation = told[..., None]
    row["nll"] = -float(norm.logpdf(y[test], mean[:, 0], deviation[:, 0]).mean())
    return row | scores(y[test], mean + deviation * norm.ppf(LEVELS))


def main() -> None:
    """Run the methods whose rows are missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of CSV files")
    parser.add_argument("--splits", nargs="*", type=int, default=[0])
    parser.add_argument("--share", type=float, default=0.9, help="rows to train on")
    parser.add_argument("--methods", nargs="*", help="some of them, by name")
    options = parser.parse_args()
    methods = [
        method
        for method in BY_QUANTILES + NORMAL
        if not options.methods or method.__name__ in options.methods
    ]
    done = [
        {name: row[name] for name in ("ds", "split", "method", "n")}
        for row in read_peers(options.data.parent)
    ]
    for path in sorted(options.data.glob("*.csv.gz")):
        table, y = load(path)
        X = numbers(table)
        for split, method in product(options.splits, methods):
            train, test = split_rows(len(y), split, options.share)
            key = {
                "ds": path.name.split(".")[0],
                "split": split,
                "method": method.__name__,
                "n": len(train),
            }
            if key in done:
                continue
            row = run(X, y, train, test, method)
            with (options.data.parent / PEERS).open("a") as file:
                file.write(json.dumps(key | row) + "\n")
            print(*key.values(), f"CRPS {row['crps']:.5g}", f"{row['fit_s']:.1f} s")


if __name__ == "__main__":
    main()
