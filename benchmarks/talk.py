"""The comparison of Normandin's talk, on two tables of house prices.

    python benchmarks/talk.py --data DIR                      # both sets, splits 0 1 2
    python benchmarks/talk.py --data DIR --sets ames --splits 0
    python benchmarks/talk.py --data DIR --methods raw isotonic "bagged isotonic"

Boosted regression beside means of local experts' distributions whose probabilities are
raw, isotonic or the average of 500 bagged isotonic fits; for each also a stacked model,
boosted regression on the curve's probabilities at the thresholds and its mean. Ours
with default settings is the last row. The score is the talk's, RMSLE: the root mean
square of log(1 + forecast) - log(1 + y), out of fold on training rows ("CV") and on
test rows. Every booster has the settings of `BOOSTER`; regressions choose their rounds
by cross-validation, experts have a fixed number. DIR and splits as in regression.py.
Rerun to resume; one JSON line per run.

From the same probabilities three means are taken. "ours": the distribution of
``smoothing="smoothing_spline"``, smoothed by cross-validation and increasing, with
tails beyond the outermost thresholds, bounded below by 0 since no price is negative.
"talk": the talk's curve, a smoothing spline of ten degrees of freedom against y, cut at
1 and where it falls, of which the mass between the outermost thresholds is taken for
all. "code": the sum that its R package (localexpeRt, `FitInstance`) calls the mean, in
which what lies beyond the thresholds is missing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier, LGBMRegressor
from records import Records
from regression import load, rows_of_split
from sklearn.model_selection import KFold, cross_val_predict

from localexpert import LocalExpertRegressor, PredictiveDistribution, RawSpline

SETS = ("ames", "kc_house")
BOOSTER: dict[str, Any] = {
    "num_leaves": 15,
    "num_threads": 1,
    "random_state": 0,
    "verbose": -1,
}
EXPERT_ROUNDS = 100
MOST_ROUNDS = 2000
# Of the talk's spline, and points that its package takes the mean over.
DEGREES = 10
POINTS = 1000
FOLDS = KFold(5, shuffle=True, random_state=0)
CALIBRATORS = {
    "raw": None,
    "isotonic": "isotonic",
    "bagged isotonic": "bagged_isotonic",
}
METHODS = ("boosting", "boosting of log(1+y)", *CALIBRATORS, "defaults")
# What the talk says: score of the first method over that of the second, below 1 if so.
CLAIMS = (
    ("isotonic beats raw", ("isotonic", "mean"), ("raw", "mean")),
    ("bagged beats isotonic", ("bagged isotonic", "mean"), ("isotonic", "mean")),
    ("raw mean beats boosting", ("raw", "mean"), ("boosting", "mean")),
    ("bagged mean beats boosting", ("bagged isotonic", "mean"), ("boosting", "mean")),
    ("stacked raw beats boosting", ("raw", "stack"), ("boosting", "mean")),
    ("stacked isotonic beats boosting", ("isotonic", "stack"), ("boosting", "mean")),
    ("stacked isotonic beats stacked raw", ("isotonic", "stack"), ("raw", "stack")),
    ("talk: isotonic beats raw", ("isotonic", "talk"), ("raw", "talk")),
    ("talk: bagged beats isotonic", ("bagged isotonic", "talk"), ("isotonic", "talk")),
    ("talk: bagged beats boosting", ("bagged isotonic", "talk"), ("boosting", "mean")),
    (
        "our spline beats the talk's",
        ("bagged isotonic", "mean"),
        ("bagged isotonic", "talk"),
    ),
    ("our defaults beat boosting", ("defaults", "mean"), ("boosting", "mean")),
    ("our defaults beat bagged", ("defaults", "mean"), ("bagged isotonic", "mean")),
)


def rmsle(y: np.ndarray, forecast: np.ndarray) -> float:
    """Return the root mean squared error of log(1 + y); no forecast is below 0."""
    miss = np.log1p(np.maximum(forecast, 0.0)) - np.log1p(y)
    return float(np.sqrt(np.mean(miss**2)))


def boost(X: Any, y: np.ndarray, X_new: Any) -> tuple[np.ndarray, ...]:
    """Return boosted regression's forecasts of training rows (CV) and of new ones."""
    found = lgb.cv(
        BOOSTER | {"objective": "regression"},
        lgb.Dataset(X, y),
        MOST_ROUNDS,
        folds=list(FOLDS.split(y)),
        callbacks=[lgb.early_stopping(50, verbose=False)],
    )
    rounds = len(found["valid l2-mean"])
    model = LGBMRegressor(n_estimators=rounds, **BOOSTER)
    held_out = cross_val_predict(model, X, y, cv=FOLDS)
    return held_out, model.fit(X, y).predict(X_new, num_threads=1)


def boost_logs(X: Any, y: np.ndarray, X_new: Any) -> tuple[np.ndarray, ...]:
    """Return the forecasts of boosted regression of log(1 + y)."""
    held_out, new = boost(X, np.log1p(y), X_new)
    return np.expm1(held_out), np.expm1(new)


def make_model(method: str, jobs: int) -> LocalExpertRegressor:
    """Return the talk's model with one of the calibrators, or ours with defaults."""
    if method == "defaults":
        return LocalExpertRegressor(n_jobs=jobs, random_state=0)
    return LocalExpertRegressor(
        expert=LGBMClassifier(n_estimators=EXPERT_ROUNDS, **BOOSTER),
        frame=None,
        n_thresholds=25,
        thresholds="quantile",
        strategy="independent",
        calibrator=CALIBRATORS[method],
        smoothing="smoothing_spline",
        n_jobs=jobs,
        random_state=0,
    )


def talk_means(p: np.ndarray, cuts: np.ndarray) -> dict[str, np.ndarray]:
    """Return the means of the talk's curves through probabilities `p` at `cuts`.

    A curve without mass between the outermost thresholds has no mean. Its forecast is
    the last threshold where the curve is below 1, else the first.
    """
    places = np.linspace(cuts[0], cuts[-1], POINTS)
    curve = RawSpline("smoothing_spline", DEGREES).curve(p, cuts)(places)
    mass = np.maximum(np.diff(np.minimum(curve, 1.0), axis=1), 0.0)
    total, held = mass @ (0.5 * (places[1:] + places[:-1])), mass.sum(axis=1)
    end = np.where(curve[:, -1] < 1.0, cuts[-1], cuts[0])
    mean = np.where(held > 0.0, total / np.maximum(held, 1e-300), end)
    return {"talk": mean, "code": total}


def meta_features(dist: PredictiveDistribution, thresholds: np.ndarray) -> pd.DataFrame:
    """Return what the stacked model sees: probabilities and the mean."""
    table = pd.DataFrame(dist.cdf_at(thresholds)).add_prefix("p")
    return table.assign(mean=dist.mean())


def run(path: Path, split: int, method: str, jobs: int) -> dict[str, Any]:
    """Fit one method on one split and score it."""
    table, y = load(path)
    train, test = rows_of_split(path, split, len(y), standard=False)
    X, X_new, target, truth = table.iloc[train], table.iloc[test], y[train], y[test]
    out: dict[str, Any] = {"ds": path.name.split(".")[0], "split": split}
    out |= {"method": method, "n": len(train)}
    start = time.perf_counter()
    if method.startswith("boosting"):
        fit = boost if method == "boosting" else boost_logs
        held_out, new = fit(X, target, X_new)
        out["fit_s"] = time.perf_counter() - start
        return out | {"cv_mean": rmsle(target, held_out), "mean": rmsle(truth, new)}
    model = make_model(method, jobs).fit(X, target)
    out["fit_s"] = time.perf_counter() - start
    oof, dist = model.oof_distribution_, model.predict_dist(X_new)
    out |= {"cv_mean": rmsle(target, oof.mean()), "mean": rmsle(truth, dist.mean())}
    out |= {"cv_crps": oof.crps(target).mean(), "crps": dist.crps(truth).mean()}
    if method != "defaults":
        cuts = model.thresholds_
        _, p_new = model.expert_points(X_new)
        kept = target[model.fitted_rows_]
        for name, means in talk_means(model.oof_probabilities_, cuts).items():
            out["cv_" + name] = rmsle(kept, means)
        for name, means in talk_means(p_new, cuts).items():
            out[name] = rmsle(truth, means)
        features = meta_features(oof, cuts), target, meta_features(dist, cuts)
        held_out, new = boost(*features)
        out |= {"cv_stack": rmsle(target, held_out), "stack": rmsle(truth, new)}
    return out


def print_table(rows: Sequence[dict[str, Any]]) -> None:
    """Print each set's scores, averaged over splits."""
    table = pd.DataFrame(rows)
    heads = {"mean": "ours", "talk": "talk", "code": "code", "stack": "stacked"}
    columns = [part + kind for kind in heads for part in ("cv_", "")]
    for name, some in table.groupby("ds"):
        # The defaults alone have no means of other curves.
        scored = some.reindex(columns=["method", *columns, "crps", "fit_s"])
        means = scored.groupby("method").mean()
        print(f"\n{name}, RMSLE, CV and test, {some['split'].nunique()} splits\n")
        shown = "".join(f"{head + ': CV':>13s} {'test':>7s}" for head in heads.values())
        print(f"{'method':22s}{shown} {'CRPS':>8s} {'fit s':>6s}")
        for method in [method for method in METHODS if method in means.index]:
            *scores, crps, seconds = means.loc[method]
            pairs = zip(scores[::2], scores[1::2], strict=True)
            cells = "".join(f"{cv:13.4f} {new:7.4f}" for cv, new in pairs)
            line = f"{method:22s}{cells} {crps:8.0f} {seconds:6.1f}"
            print(line.replace("nan", "  -"))


def print_claims(rows: Sequence[dict[str, Any]]) -> None:
    """Print, claim by claim, ratios of RMSLE and in how many runs the claim held."""
    scores = {(r["ds"], r["split"], r["method"]): r for r in rows}
    runs = sorted({(r["ds"], r["split"]) for r in rows})
    sets = sorted({name for name, _ in runs})
    print(
        f"\nratio of RMSLE, geometric mean over splits; of {len(runs)} runs, those < 1"
    )
    for part, title in (("cv_", "CV"), ("", "test")):
        heads = " ".join(f"{name:>9s}" for name in sets)
        print(f"\n{title:35s} {heads}   held in")
        for claim, (a, kind), (b, other) in CLAIMS:
            if not all((*run, name) in scores for run in runs for name in (a, b)):
                continue
            logs = {
                run: np.log(
                    scores[*run, a][part + kind] / scores[*run, b][part + other]
                )
                for run in runs
            }
            means = [np.mean([logs[run] for run in runs if run[0] == s]) for s in sets]
            shown = " ".join(f"{np.exp(mean):9.3f}" for mean in means)
            held = sum(value < 0.0 for value in logs.values())
            verdict = {0: "no", len(runs): "yes"}.get(held, "mixed")
            print(f"{claim:35s} {shown}   {held}: {verdict}")


def main() -> None:
    """Run or resume the comparison and print what holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of CSV files")
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--splits", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--run", default="latest", help="name of the run to resume")
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    options = parser.parse_args()
    records = Records("talk", options.run, fresh=options.fresh)
    rows = [
        records.measure(
            f"{name}-{split}-{method}",
            lambda name=name, split=split, method=method: run(
                options.data / f"{name}.csv.gz", split, method, options.jobs
            ),
        )
        for split in options.splits
        for name in options.sets
        for method in options.methods
    ]
    print_table(rows)
    print_claims(rows)


if __name__ == "__main__":
    main()
