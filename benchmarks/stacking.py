"""Point forecasts: means of distributions, stacked ones, plain boosted regression.

    python benchmarks/stacking.py --data DIR
    python benchmarks/stacking.py --data DIR --sets yacht concrete

Sets and splits are those of `regression.py`. One fit of ours a set, with default
settings and `stacker="auto"`; its out-of-fold meta-features train the other stackers:
ridge regression, and boosted trees that see the rows' features too. Plain boosting is
LightGBM with the settings of `talk.py`, rounds by cross-validation. RMSE on test rows,
as ratios to that of the mean. Rerun to resume; one JSON line per set.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
from records import Records
from regression import load, rows_of_split
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from talk import BOOSTER

from localexpert import LocalExpertRegressor

METHODS = ("mean", "auto", "ridge", "boosting with X", "plain boosting")
MOST_ROUNDS, PATIENCE = 2000, 50


def boost(X: Any, y: np.ndarray, new: Any) -> np.ndarray:
    """Return LightGBM's forecasts, its rounds chosen by cross-validation."""
    settings = {"objective": "l2", "verbosity": -1, "seed": 0, **BOOSTER}
    settings["verbose"] = -1
    curve = lgb.cv(
        settings,
        lgb.Dataset(X, y),
        MOST_ROUNDS,
        nfold=5,
        stratified=False,
        callbacks=[lgb.early_stopping(PATIENCE, verbose=False)],
    )["valid l2-mean"]
    model = lgb.train(settings, lgb.Dataset(X, y), int(np.argmin(curve)) + 1)
    return np.asarray(model.predict(new, num_threads=1))


def run(path: Path, jobs: int) -> dict[str, Any]:
    """Return the errors of every method on one set."""
    table, y = load(path)
    train, test = rows_of_split(path, 0, len(y), standard=False)
    X, new, y_train = table.iloc[train], table.iloc[test], y[train]
    model = LocalExpertRegressor(random_state=0, n_jobs=jobs, stacker="auto")
    model.fit(X, y_train)
    features, asked = model.oof_features(), model.transform(new)
    plain = features.to_numpy(), asked.to_numpy()
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 4, 13)))
    wide = [
        f.set_axis([f"f{j}" for j in range(f.shape[1])], axis=1)
        .reset_index(drop=True)
        .join(t.reset_index(drop=True).add_prefix("x_"))
        for f, t in ((features, X), (asked, new))
    ]
    for part in wide:
        part.columns = [f"c{j}" for j in range(part.shape[1])]
    answers = {
        "mean": plain[1][:, 0],
        "auto": model.predict(new),
        "ridge": ridge.fit(plain[0], y_train).predict(plain[1]),
        "boosting with X": boost(wide[0], y_train, wide[1]),
        "plain boosting": boost(X, y_train, new),
    }
    dists = model.predict_dist(new), model.predict_dist(new, recentre=False)
    return {
        "ds": path.name.split(".")[0],
        "rmse": {
            k: float(np.sqrt(np.mean((v - y[test]) ** 2))) for k, v in answers.items()
        },
        "oof_rmse": float(np.sqrt(np.mean((model.oof_prediction_ - y_train) ** 2))),
        "crps": [float(d.crps(y[test]).mean()) for d in dists],
        "stacker": model.stacker_.report_,
    }


def main() -> None:
    """Run or resume, and print ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of CSV files")
    parser.add_argument("--sets", nargs="*", default=None)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--run", default="latest", help="name of the run to resume")
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    options = parser.parse_args()
    records = Records("stacking", options.run, fresh=options.fresh)
    table = []
    print(f"{'set':12s}" + "".join(f"{name:>16s}" for name in METHODS) + "  weights")
    for path in sorted(options.data.glob("*.csv.gz")):
        name = path.name.split(".")[0]
        if options.sets and name not in options.sets:
            continue
        row = records.measure(name, lambda path=path: run(path, options.jobs))
        rmse = np.array([row["rmse"][method] for method in METHODS])
        table.append(rmse / rmse[0])
        cells = "".join(f"{x:16.4f}" for x in [rmse[0], *table[-1][1:]])
        taken = row["stacker"]["weights"]
        print(f"{name:12s}{cells}  {taken['ridge']:.2f} {taken['trees']:.2f}")
    ratios = np.array(table)
    for title, values in (("mean", ratios.mean(0)), ("median", np.median(ratios, 0))):
        print(f"{title:12s}" + "".join(f"{x:16.4f}" for x in values))


if __name__ == "__main__":
    main()
