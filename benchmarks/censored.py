"""Targets known only in part, with known truth: CRPS over that with all targets known.

    python benchmarks/censored.py                          # 5 draws, hours
    python benchmarks/censored.py --draws 2 --tasks classes --methods full ours
    python benchmarks/censored.py --methods forest boosting aft cox ngboost

2 000 rows, five uniform features; mu = 1 + sin(3 x0) + x1, s = .25 + .6 x2;
log y = mu + s N(0, 1) or mu + s log E, E exponential. Right-censored at
k exp(1 + .8 x1) 1.6 E' (k = 2.2: 46 and 40 %, k = .75: 79 and 71 %), or known only in
five classes, cut at the .1, .3, .6 and .85 quantiles of y. CRPS of log y of 4 000 fresh
rows, all known, on their range; "full" is the default fitted on all targets.

"demand": Poisson demand with mean exp(2 + .5 x0 + .4 x1), normal features, cut off at a
stock that is Poisson with mean 9. Its figure is mean forecast / mean demand - 1.

Peers (scikit-survival, lifelines, xgboost, ngboost) are run where they are installed.
Their scores are those of their survival curves. Rerun to resume; one JSON line a run.
"""

from __future__ import annotations

import argparse
import importlib
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from records import Records

N_TRAIN, N_NEW, N_GRID = 2000, 4000, 500
CENSORED = {
    "lognormal-46": ("lognormal", 2.2),
    "lognormal-79": ("lognormal", 0.75),
    "weibull-40": ("weibull", 2.2),
    "weibull-71": ("weibull", 0.75),
}
TASKS = (*CENSORED, "classes", "demand")
OWN, PEERS = ("full", "ours", "known", "left out"), ("forest", "boosting", "aft")
PEERS = (*PEERS, "cox", "ngboost")
Cdf = Callable[[np.ndarray], np.ndarray]


def draw(task: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, targets, and ends (n, 2) of what is known of them."""
    rng = np.random.default_rng(seed)
    n = N_TRAIN + N_NEW
    if task == "demand":
        X = rng.normal(size=(n, 5))
        y = rng.poisson(np.exp(2.0 + 0.5 * X[:, 0] + 0.4 * X[:, 1])).astype(float)
        stock = rng.poisson(9.0, size=n)
        return X, y, np.column_stack([np.minimum(y, stock), cut(y, y < stock)])
    law, k = CENSORED.get(task, ("lognormal", 1.0))
    X = rng.uniform(size=(n, 5))
    mean, spread = 1.0 + np.sin(3.0 * X[:, 0]) + X[:, 1], 0.25 + 0.6 * X[:, 2]
    error = (
        rng.normal(size=n) if law == "lognormal" else np.log(rng.exponential(size=n))
    )
    y = np.exp(mean + spread * error)
    if task == "classes":
        edges = np.concatenate(
            [[-np.inf], np.quantile(y[:N_TRAIN], [0.1, 0.3, 0.6, 0.85]), [np.inf]]
        )
        place = np.searchsorted(edges, y) - 1
        return X, y, np.column_stack([edges[place], edges[place + 1]])
    limit = k * np.exp(1.0 + 0.8 * X[:, 1]) * 1.6 * rng.exponential(size=n)
    return X, y, np.column_stack([np.minimum(y, limit), cut(y, y <= limit)])


def cut(y: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return upper ends: inf where a target is not known."""
    return np.where(known, y, np.inf)


def fit_own(method: str, X: np.ndarray, y: np.ndarray, ends: np.ndarray) -> Any:
    """Return a fitted default."""
    from localexpert import LocalExpertRegressor

    known = ends[:, 0] == ends[:, 1]
    model = LocalExpertRegressor(random_state=0, n_jobs=1)
    if method == "ours":
        return model.fit(X, ends)
    if method == "left out":
        return model.fit(X[known], y[known])
    return model.fit(X, y if method == "full" else ends[:, 0])


def fit_peer(method: str, X: np.ndarray, ends: np.ndarray, T: np.ndarray) -> Cdf:
    """Return P(Y <= t) of new rows T at times (k,) as a function: (n, k)."""
    time_, event = ends[:, 0], ends[:, 0] == ends[:, 1]
    if method in ("forest", "boosting"):
        ensemble = importlib.import_module("sksurv.ensemble")
        fields = np.array(
            list(zip(event, time_, strict=True)), [("e", bool), ("t", float)]
        )
        name = {"forest": "Random", "boosting": "GradientBoosting"}[method]
        options = {"min_samples_leaf": 15} if method == "forest" else {}
        kind = (
            "RandomSurvivalForest" if method == "forest" else f"{name}SurvivalAnalysis"
        )
        model = getattr(ensemble, kind)(random_state=0, **options).fit(X, fields)
        values = model.predict_survival_function(T, return_array=True)
        return steps(model.unique_times_, 1.0 - values)
    if method == "cox":
        lifelines, pandas = map(importlib.import_module, ("lifelines", "pandas"))
        table = pandas.DataFrame(X).rename(columns=str).assign(t=time_, e=event)
        cox = lifelines.CoxPHFitter().fit(table, "t", "e")
        curves = cox.predict_survival_function(pandas.DataFrame(T).rename(columns=str))
        return steps(curves.index.to_numpy(), 1.0 - curves.to_numpy().T)
    if method == "aft":
        return fit_aft(X, ends, T)
    ngboost = importlib.import_module("ngboost")
    laws = importlib.import_module("ngboost.distns")
    boosted = ngboost.NGBSurvival(Dist=laws.LogNormal, verbose=False, random_state=0)
    found = boosted.fit(X, time_, event).pred_dist(T)
    return lambda t: normal_cdf((np.log(t) - found.loc[:, None]) / found.scale[:, None])


def fit_aft(X: np.ndarray, ends: np.ndarray, T: np.ndarray) -> Cdf:
    """Return accelerated failure times of xgboost, with rounds and scale by folds."""
    xgboost = importlib.import_module("xgboost")
    upper = ends[:, 1]
    data = xgboost.DMatrix(X)
    data.set_float_info("label_lower_bound", ends[:, 0])
    data.set_float_info("label_upper_bound", upper)
    best: tuple[float, float, int] = (np.inf, 1.0, 1)
    common = {"objective": "survival:aft", "eval_metric": "aft-nloglik", "nthread": 1}
    common |= {"aft_loss_distribution": "normal", "eta": 0.05, "max_depth": 3}
    half = np.random.default_rng(0).random(len(X)) < 0.75
    for scale in (0.3, 0.45, 0.6, 0.9):
        parts = []
        for part in (half, ~half):
            rows = xgboost.DMatrix(X[part])
            rows.set_float_info("label_lower_bound", ends[part, 0])
            rows.set_float_info("label_upper_bound", upper[part])
            parts.append(rows)
        options = {**common, "aft_loss_distribution_scale": scale}
        tried = xgboost.train(
            options, parts[0], 500, evals=[(parts[1], "held")],
            early_stopping_rounds=20, verbose_eval=False,
        )  # fmt: skip
        best = min(best, (tried.best_score, scale, tried.best_iteration + 1))
    _, scale, rounds = best
    model = xgboost.train(
        {**common, "aft_loss_distribution_scale": scale}, data, rounds
    )
    centre = np.log(model.predict(xgboost.DMatrix(T)))
    return lambda t: normal_cdf((np.log(t) - centre[:, None]) / scale)


def normal_cdf(z: np.ndarray) -> np.ndarray:
    """Return the normal law's distribution function."""
    return np.asarray(importlib.import_module("scipy.special").ndtr(z))


def steps(times: np.ndarray, levels: np.ndarray) -> Cdf:
    """Return curves (n, m) that jump at times (m,) as a function of times."""
    full = np.column_stack([np.zeros(len(levels)), levels])
    return lambda t: full[:, np.searchsorted(times, t, "right")]


def crps_of_log(cdf: Cdf, y: np.ndarray) -> float:
    """Return the mean CRPS of log y, integrated over the range of all log y."""
    z = np.log(y)
    grid = np.linspace(z.min(), z.max(), N_GRID)
    off = cdf(np.exp(grid)) - (z[:, None] <= grid)
    return float((off**2).mean() * (grid[-1] - grid[0]))


def run(task: str, seed: int, method: str) -> dict[str, Any]:
    """Fit on one draw; score forecasts of fresh rows."""
    X, y, ends = draw(task, seed)
    T, new, X, y = X[N_TRAIN:], y[N_TRAIN:], X[:N_TRAIN], y[:N_TRAIN]
    ends = ends[:N_TRAIN]
    row: dict[str, Any] = {"task": task, "seed": seed, "method": method}
    row["known"] = float((ends[:, 0] == ends[:, 1]).mean())
    start = time.process_time()
    if method in PEERS:
        row["crps"] = crps_of_log(fit_peer(method, X, ends, T), new)
        return {**row, "seconds": time.process_time() - start}
    model = fit_own(method, X, y, ends)
    row["seconds"] = time.process_time() - start
    dist = model.predict_dist(T)
    if task == "demand":
        row["mean"] = float(dist.mean().mean() / new.mean() - 1.0)
        row["crps"] = float(dist.crps(new).mean())
    else:
        row["crps"] = crps_of_log(dist.cdf_at, new)
    row["coverage"] = float(dist.covered(new, 0.9).mean())
    return row


def show(records: Records) -> None:
    """Print the table: means over draws of CRPS over that of the full targets."""
    rows = list(records.rows.values())
    full = {(r["task"], r["seed"]): r for r in rows if r["method"] == "full"}
    print(
        "task            method     draws  CRPS/full  (each)  coverage  mean  seconds"
    )
    for task in TASKS:
        for method in (*OWN, *PEERS):
            met = [r for r in rows if (r["task"], r["method"]) == (task, method)]
            met = [r for r in met if (task, r["seed"]) in full]
            if not met:
                continue
            ratios = [r["crps"] / full[task, r["seed"]]["crps"] for r in met]
            each = " ".join(f"{ratio:.3f}" for ratio in ratios)
            figures = [
                f"{np.mean([r[name] for r in met]):.3f}" if name in met[0] else "-"
                for name in ("coverage", "mean", "seconds")
            ]
            print(
                f"{task:15s} {method:10s} {len(met):5d}  {np.mean(ratios):.3f}  "
                f"({each})  {'  '.join(figures)}"
            )


def main() -> None:
    """Run what is asked for, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", default="default")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--tasks", nargs="+", default=TASKS, choices=TASKS)
    parser.add_argument("--methods", nargs="+", default=OWN, choices=(*OWN, *PEERS))
    parser.add_argument("--fresh", action="store_true")
    options = parser.parse_args()
    records = Records("censored", options.run, fresh=options.fresh)
    warnings.simplefilter("ignore")
    for seed in range(options.draws):
        for task in options.tasks:
            for method in options.methods:
                wrong = method in PEERS and task not in CENSORED
                nothing = task == "classes" and method in ("known", "left out")
                if not (wrong or nothing):
                    key = f"{task} {seed} {method}"
                    records.measure(key, lambda t=task, s=seed, m=method: run(t, s, m))
    show(records)


if __name__ == "__main__":
    main()
