"""Ours in ScoringBench's protocol, beside its baselines without pretrained weights.

    git clone https://github.com/jonaslandsgesell/ScoringBench CLONE
    cp benchmarks/scoringbench/localexpert_wrapper.py \
        CLONE/scoringbench/univariate/wrappers/
    PYTHONPATH=CLONE python benchmarks/scoringbench/run.py --data DIR

DIR holds NAME.csv.gz tables as that benchmark loads them: numbers, gaps filled, the
target last. Protocol: `KFold(5, shuffle=True, random_state=42)`; of a fold at most
2400 training rows by `default_rng(42 * 10007 + fold)`, and at most 600 test rows by
`default_rng(42 * 10007 + fold + 1)`. Baselines have the settings of its registry, and
reach its container as quantiles, as its wrappers do. Scores are those of its
definitions, on the container's own bins: mass is uniform in a bin, and a bin without
width is an atom. Rerun to resume; a line per table, fold and method.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm
from sklearn.model_selection import KFold

sys.path.append(str(Path(__file__).parents[1]))
from records import Records

SEED, FOLDS, TRAIN_ROWS, TEST_ROWS = 42, 5, 2400, 600
PERCENTS = np.arange(1, 100) / 100.0
Quantiles = tuple[np.ndarray, np.ndarray]


def xgb_vector_quantile(X: Any, y: np.ndarray, X_new: Any) -> Quantiles:
    """Fit 50 quantiles at once by XGBoost, 100 trees."""
    import xgboost as xgb

    levels = np.linspace(0.001, 0.999, 50)
    told = {
        "objective": "reg:quantileerror",
        "multi_strategy": "multi_output_tree",
        "tree_method": "hist",
        "quantile_alpha": levels.tolist(),
        "nthread": 1,
    }
    model = xgb.train(told, xgb.DMatrix(X, label=y), num_boost_round=100)
    return levels, model.predict(xgb.DMatrix(X_new))


def catboost_quantile(X: Any, y: np.ndarray, X_new: Any) -> Quantiles:
    """Fit 99 quantiles at once by CatBoost, 1000 trees."""
    from catboost import CatBoostRegressor

    levels = ",".join(f"{level:.2f}" for level in PERCENTS)
    model = CatBoostRegressor(
        iterations=1000,
        loss_function=f"MultiQuantile:alpha={levels}",
        logging_level="Silent",
        allow_writing_files=False,
        thread_count=1,
    ).fit(X, y)
    return PERCENTS, model.predict(X_new)


def ngboost_gaussian(X: Any, y: np.ndarray, X_new: Any) -> Quantiles:
    """Fit a normal distribution by NGBoost, 500 trees."""
    from ngboost import NGBRegressor

    model = NGBRegressor(n_estimators=500, learning_rate=0.01, verbose=False)
    told = model.fit(X, y).pred_dist(X_new)
    loc, scale = told.params["loc"], told.params["scale"]
    return PERCENTS, loc[:, None] + scale[:, None] * norm.ppf(PERCENTS)


def xgblss_gaussian(X: Any, y: np.ndarray, X_new: Any) -> Quantiles:
    """Fit a normal distribution by XGBoostLSS, 100 trees of depth 3."""
    import xgboost as xgb
    from xgboostlss.distributions.Gaussian import Gaussian
    from xgboostlss.model import XGBoostLSS

    levels = np.arange(1, 101) / 101.0
    model = XGBoostLSS(Gaussian())
    model.train(
        {"eta": 0.1, "max_depth": 3, "nthread": 1}, xgb.DMatrix(X, label=y), 100
    )
    told = model.predict(xgb.DMatrix(X_new), pred_type="parameters").to_numpy()
    return levels, told[:, :1] + told[:, 1:] * norm.ppf(levels)


def quantile_forest(X: Any, y: np.ndarray, X_new: Any) -> Quantiles:
    """Fit Meinshausen's forest: 500 trees, five rows in a leaf."""
    from quantile_forest import RandomForestQuantileRegressor

    model = RandomForestQuantileRegressor(500, min_samples_leaf=5, random_state=SEED)
    return PERCENTS, model.fit(X, y).predict(X_new, quantiles=list(PERCENTS))


BASELINES: dict[str, Callable[[Any, np.ndarray, Any], Quantiles]] = {
    "xgb_vector_quantile": xgb_vector_quantile,
    "catboost_quantile": catboost_quantile,
    "ngboost_gaussian": ngboost_gaussian,
    "xgblss_gaussian": xgblss_gaussian,
    "quantile_forest": quantile_forest,
}


def forecast(method: str, X: Any, y: np.ndarray, X_new: Any) -> Any:
    """Fit a method and return its forecasts in the benchmark's container."""
    from scoringbench.univariate.wrappers.base import DistributionPrediction
    from scoringbench.univariate.wrappers.localexpert_wrapper import LocalExpertWrapper

    if method == "localexpert":
        return LocalExpertWrapper(n_jobs=1).fit(X, y).predict_distribution(X_new)
    levels, quantiles = BASELINES[method](X, y, X_new)
    return DistributionPrediction.from_multi_quantile(
        np.sort(np.asarray(quantiles, dtype=float), axis=1),
        levels,
        train_range=(float(y.min()), float(y.max())),
    )


def crps_of_bins(p: np.ndarray, edges: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return E|Z - y| - E|Z - Z'| / 2 of Z uniform in each bin, shape (n,)."""
    widths, middles = np.diff(edges, axis=1), 0.5 * (edges[:, 1:] + edges[:, :-1])
    below, above = edges[:, :-1] - y[:, None], edges[:, 1:] - y[:, None]
    squares = above * np.abs(above) - below * np.abs(below)
    # A bin of less width than rounding of y is an atom.
    is_bin = widths > 1e-9 * np.maximum(np.abs(middles), np.ptp(edges))
    apart = np.abs(middles - y[:, None])
    apart = np.where(is_bin, squares / (2.0 * np.where(is_bin, widths, 1.0)), apart)
    # Both draws in different bins: the middles' distance; in one: a third of its width.
    before = np.cumsum(p, axis=1) - p
    between = (p * middles * (2.0 * before + p - 1.0)).sum(axis=1)
    return (p * apart).sum(axis=1) - between - (p**2 * widths).sum(axis=1) / 6.0


def scores(told: Any, y: np.ndarray) -> dict[str, float]:
    """Return the scores of a container."""
    p, edges = told.probas, told.bin_edges
    upto, rows = np.cumsum(p, axis=1), np.arange(len(y))

    def quantile(level: float) -> np.ndarray:
        place = (upto < level - 1e-12).sum(axis=1).clip(0, p.shape[1] - 1)
        start = upto[rows, place] - p[rows, place]
        mass = np.maximum(p[rows, place], 1e-300)
        share = ((level - start) / mass).clip(0.0, 1.0)
        return edges[rows, place] + share * np.diff(edges, axis=1)[rows, place]

    out = {
        "crps": crps_of_bins(p, edges, y).mean(),
        "rmse": np.sqrt(np.mean((told.mean - y) ** 2)),
        "mae": np.abs(told.median - y).mean(),
    }
    for percent in (90, 95):
        tail = 0.5 * (1.0 - percent / 100)
        low, high = quantile(tail), quantile(1.0 - tail)
        outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
        out[f"cov{percent}"] = ((low <= y) & (y <= high)).mean()
        out[f"interval{percent}"] = (high - low + outside / tail).mean()
    return {name: float(score) for name, score in out.items()}


def folds_of(n: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Return number, training and test rows of each fold, as the benchmark draws."""
    splits = KFold(FOLDS, shuffle=True, random_state=SEED).split(np.zeros(n))
    for fold, (train, test) in enumerate(splits):
        seed = SEED * 10007 + fold
        yield fold, draw(train, TRAIN_ROWS, seed), draw(test, TEST_ROWS, seed + 1)


def draw(rows: np.ndarray, most: int, seed: int) -> np.ndarray:
    """Return some of the rows, or all if they are few enough."""
    if len(rows) <= most:
        return rows
    return np.random.default_rng(seed).choice(rows, most, replace=False)


def run(path: Path, fold: int, method: str) -> dict[str, Any]:
    """Return the row of one table, fold and method."""
    X = pd.read_csv(path)
    y = X.pop("target").to_numpy(float)
    _, train, test = list(folds_of(len(y)))[fold]
    began, used = time.perf_counter(), time.process_time()
    told = forecast(method, X.iloc[train], y[train], X.iloc[test])
    times = time.perf_counter() - began, time.process_time() - used
    row = {"ds": path.name.split(".")[0], "fold": fold, "method": method}
    row |= {"n": len(train), "seconds": round(times[0], 2), "cpu_s": round(times[1], 2)}
    return row | scores(told, y[test])


def main() -> None:
    """Run or resume the tables, folds and methods asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of tables")
    parser.add_argument("--sets", nargs="*", default=None)
    parser.add_argument("--folds", nargs="*", type=int, default=list(range(FOLDS)))
    parser.add_argument("--methods", nargs="*", default=["localexpert", *BASELINES])
    options = parser.parse_args()
    paths = sorted(options.data.glob("*.csv.gz"))
    if options.sets:
        paths = [p for p in paths if p.name.split(".")[0] in options.sets]
    records = Records("scoringbench", "latest", fresh=False)
    for fold in options.folds:
        for path in paths:
            for method in options.methods:
                key = f"{path.name.split('.')[0]}-{fold}-{method}"
                row = records.measure(
                    key, lambda p=path, f=fold, m=method: run(p, f, m)
                )
                print(f"{key:50} {row['crps']:.5g} {row['cpu_s']:.1f} s", flush=True)


if __name__ == "__main__":
    main()
