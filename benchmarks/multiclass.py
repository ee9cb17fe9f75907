"""Calibrators of several classes on real tables, beside scikit-learn's.

    python benchmarks/multiclass.py --data DIR                     # five seeds
    python benchmarks/multiclass.py --data DIR --seeds 0 --sets car vowel

DIR holds NAME.csv.gz files, the target last. At most 6000 rows of a table are taken and
classes of fewer than 20 rows left out; texts are numbered. Four classifiers learn from
45.5 % of the rows, calibrators from 24.5 %, and 30 % test. Log loss with probabilities
clipped at 1e-12, Brier scores summed over the classes. A method does harm in a run
where its log loss is above that of doing nothing. `CalibratedClassifierCV` wraps the
frozen classifier. Rerun to resume; one JSON line per table, classifier and seed.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from records import Records
from scipy.stats import rankdata
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibration as cal

MOST_ROWS = 6000
LEAST_CLASS = 20
FLOOR = 1e-12
NOTHING, DEFAULT_SMS, AUTO = "nothing", "SMS, penalty 1", "Auto"
CLASSIFIERS: dict[str, Callable[[int], Any]] = {
    "naive Bayes": lambda _: GaussianNB(),
    "logistic": lambda _: make_pipeline(
        StandardScaler(), LogisticRegression(max_iter=1000)
    ),
    "forest": lambda seed: RandomForestClassifier(150, random_state=seed),
    "boosted trees": lambda seed: LGBMClassifier(
        n_estimators=100,
        num_leaves=15,
        num_threads=1,
        verbosity=-1,
        random_state=seed,
    ),
}
OURS: dict[str, Callable[[], cal.MulticlassCalibrator]] = {
    "temperature": lambda: cal.SoftmaxCalibrator("temperature"),
    "vector (SVS), penalty 1": lambda: cal.SoftmaxCalibrator("vector", 1.0),
    "vector, auto": lambda: cal.SoftmaxCalibrator("vector"),
    DEFAULT_SMS: lambda: cal.SoftmaxCalibrator("matrix", 1.0),
    "SMS, auto": cal.SoftmaxCalibrator,
    "one-vs-rest isotonic": lambda: cal.OneVsRestCalibrator("isotonic"),
    "one-vs-rest quadratic": lambda: cal.OneVsRestCalibrator("quadratic"),
    "one-vs-rest Venn-Abers": lambda: cal.OneVsRestCalibrator("venn_abers"),
    "all pairs, logistic": cal.AllPairsCalibrator,
    AUTO: cal.MulticlassAutoCalibrator,
}
PEERS = ("temperature", "sigmoid", "isotonic")


class Case(NamedTuple):
    """A fitted classifier, and the rows that calibrate and test."""

    model: Any
    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


def load(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return features (n, d) and classes 0 to k - 1 of a table."""
    table = pd.read_csv(path)
    y = pd.factorize(table.pop("target"), sort=True)[0]
    for name in table.columns:
        if table[name].dtype.kind not in "biuf":
            table[name] = pd.factorize(table[name], sort=True)[0]
    table = table.astype(float)
    x = table.fillna(table.median()).fillna(0.0).to_numpy()
    if len(y) > MOST_ROWS:
        rows = np.random.default_rng(0).choice(len(y), MOST_ROWS, replace=False)
        x, y = x[rows], y[rows]
    kept = np.bincount(y)[y] >= LEAST_CLASS
    return x[kept], np.unique(y[kept], return_inverse=True)[1]


def make_case(x: np.ndarray, y: np.ndarray, classifier: str, seed: int) -> Case:
    """Fit a classifier on one split."""
    x, test_x, y, test_y = train_test_split(
        x, y, test_size=0.3, stratify=y, random_state=seed
    )
    fit_x, x, fit_y, y = train_test_split(
        x, y, test_size=0.35, stratify=y, random_state=seed
    )
    model = CLASSIFIERS[classifier](seed).fit(fit_x, fit_y)
    return Case(model, x, y, test_x, test_y)


def score(y: np.ndarray, p: np.ndarray) -> tuple[float, float]:
    """Return the log loss and the Brier score summed over classes."""
    own = p[np.arange(len(y)), y]
    log_loss = -np.log(np.maximum(own, FLOOR)).mean()
    brier = ((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1).mean()
    return round(float(log_loss), 7), round(float(brier), 7)


def run_case(case: Case) -> dict[str, list[float]]:
    """Return log loss, Brier score and seconds of every method."""
    scores, test = (_predict(case.model, x) for x in (case.x, case.test_x))
    found = {NOTHING: [*score(case.test_y, test), 0.0]}
    for name, make in OURS.items():
        start = time.perf_counter()
        p = make().fit(scores, case.y).predict(test)
        seconds = time.perf_counter() - start
        found[name] = [*score(case.test_y, p), round(seconds, 4)]
    for method in PEERS:
        start = time.perf_counter()
        peer = CalibratedClassifierCV(FrozenEstimator(case.model), method=method)
        p = peer.fit(case.x, case.y).predict_proba(case.test_x)
        seconds = time.perf_counter() - start
        name = f"scikit-learn {method}"
        found[name] = [*score(case.test_y, p), round(seconds, 4)]
    return found


def _predict(model: Any, x: np.ndarray) -> np.ndarray:
    p = np.asarray(model.predict_proba(x), dtype=np.float64)
    return p / p.sum(axis=1, keepdims=True)


def run_tables(records: Records, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return one row per table, classifier and seed."""
    paths = {path.name.split(".")[0]: path for path in options.data.glob("*.csv.gz")}
    tables = {
        name: load(path)
        for name, path in sorted(paths.items())
        if not options.sets or name in options.sets
    }
    rows = []
    # Seeds first: what is there of an interrupted run is whole seeds.
    for seed, name, classifier in product(options.seeds, tables, CLASSIFIERS):
        row = records.measure(
            f"{name}/{classifier}/{seed}",
            lambda s=seed, n=name, c=classifier: _run_one(*tables[n], c, s),
        )
        rows.append({**row, "ds": name, "classifier": classifier})
    return rows


def _run_one(
    x: np.ndarray, y: np.ndarray, classifier: str, seed: int
) -> dict[str, Any]:
    with warnings.catch_warnings():
        # Of small folds, of names of columns: what counts here is the answer.
        warnings.simplefilter("ignore")
        case = make_case(x, y, classifier, seed)
        return {"k": int(y.max()) + 1, "n": len(case.y), "scores": run_case(case)}


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print the mean scores of every method, and how they compare to default SMS."""
    names = [one for one in rows[0]["scores"] if all(one in r["scores"] for r in rows)]
    # (methods, runs, [log loss, Brier, seconds])
    table = np.array([[row["scores"][name] for row in rows] for name in names])
    losses, brier = table[:, :, 0], table[:, :, 1]
    ranks = rankdata(losses, axis=0).mean(axis=1)
    harm = (losses > losses[names.index(NOTHING)] + 1e-9).mean(axis=1)
    sms = names.index(DEFAULT_SMS)
    print(f"{len(rows)} runs of {len({row['ds'] for row in rows})} tables")
    heads = "".join(f"{kind:>14s}" for kind in CLASSIFIERS)
    print(
        f"{'':26s}{'log loss':>9s}{'/ SMS':>7s}{'Brier':>8s}{'/ SMS':>7s}{'rank':>6s}"
        f"{'harm':>7s}{'seconds':>9s}{heads}"
    )
    for i in np.argsort(losses.mean(axis=1)):
        cells = "".join(
            f"{losses[i, [row['classifier'] == kind for row in rows]].mean():14.4f}"
            for kind in CLASSIFIERS
        )
        print(
            f"{names[i]:26s}{losses[i].mean():9.4f}"
            f"{losses[i].mean() / losses[sms].mean():7.3f}{brier[i].mean():8.4f}"
            f"{brier[i].mean() / brier[sms].mean():7.3f}{ranks[i]:6.2f}"
            f"{100 * harm[i]:6.1f}%{table[i, :, 2].mean():9.3f}{cells}"
        )


def main() -> None:
    """Run or resume the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of tables")
    parser.add_argument("--sets", nargs="*", default=None)
    parser.add_argument("--seeds", nargs="*", type=int, default=list(range(5)))
    parser.add_argument("--run", default="latest", help="name of the run to resume")
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    options = parser.parse_args()
    records = Records("multiclass", options.run, fresh=options.fresh)
    print_table(run_tables(records, options))


if __name__ == "__main__":
    main()
