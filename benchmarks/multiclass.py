"""Calibrators of several classes on real tables, beside other libraries'.

    python benchmarks/multiclass.py --data DIR                     # five seeds
    python benchmarks/multiclass.py --data DIR --seeds 0 --sets car vowel
    python benchmarks/multiclass.py --data DIR --classifiers SVM
    python benchmarks/multiclass.py --data DIR --protocol thesis   # tables 27 to 30

DIR holds NAME.csv.gz files, the target last. At most 6000 rows of a table are taken and
classes of fewer than 20 rows left out; texts are numbered. Five classifiers learn from
45.5 % of the rows, calibrators from 24.5 %, and 30 % test. Log loss with probabilities
clipped at 1e-12, Brier scores summed over the classes. A method does harm in a run
where its log loss is above that of doing nothing. `CalibratedClassifierCV` wraps the
frozen classifier; netcal, dirichletcal and probmetrics are there where they are
installed. The support vector machine has a table of its own: its scores are the softmax
of the decision values of one machine a class.

The thesis's protocol is that of its chapter 6.1: see multiclass_thesis.py. Rerun to
resume; one JSON line per table, classifier and seed.
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
from multiclass_peers import installed_peers, missing_libraries
from multiclass_sets import CLASSIFIERS, SVM, predict, read_tables
from multiclass_thesis import print_thesis, run_thesis
from records import Records
from scipy.stats import rankdata
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

import calibration as cal

MOST_ROWS = 6000
FLOOR = 1e-12
NOTHING, DEFAULT_SMS, AUTO = "nothing", "SMS, penalty 1", "Auto"
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
    AUTO: cal.AutoCalibrator,
}
SKLEARN = ("temperature", "sigmoid", "isotonic")


class Case(NamedTuple):
    """A fitted classifier, and the rows that calibrate and test."""

    model: Any
    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


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
    scores, test = (predict(case.model, x) for x in (case.x, case.test_x))
    found = {NOTHING: [*score(case.test_y, test), 0.0]}
    for name, make in OURS.items():
        found[name] = _measure(
            case, lambda make=make: make().fit(scores, case.y).predict(test)
        )
    for method in SKLEARN:
        found[f"scikit-learn {method}"] = _measure(
            case,
            lambda method=method: (
                CalibratedClassifierCV(FrozenEstimator(case.model), method=method)
                .fit(case.x, case.y)
                .predict_proba(case.test_x)
            ),
        )
    for name, peer in installed_peers().items():
        found[name] = _measure(case, lambda peer=peer: peer(scores, case.y, test))
    return found


def _measure(case: Case, forecast: Callable[[], np.ndarray]) -> list[float]:
    """Return log loss, Brier score and seconds of one method's forecasts."""
    start = time.perf_counter()
    p = forecast()
    seconds = time.perf_counter() - start
    return [*score(case.test_y, p), round(seconds, 4)]


def run_tables(records: Records, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return one row per table, classifier and seed."""
    tables = read_tables(options.data, options.sets, MOST_ROWS)
    rows = []
    # Seeds first: what is there of an interrupted run is whole seeds.
    for seed, name, classifier in product(options.seeds, tables, options.classifiers):
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


def print_tables(rows: list[dict[str, Any]]) -> None:
    """Print one table of the protocol's four classifiers, and one of the SVM."""
    missing = missing_libraries()
    if missing:
        print(f"not installed, left out: {', '.join(missing)}")
    for kinds in ([one for one in CLASSIFIERS if one != SVM], [SVM]):
        some = [row for row in rows if row["classifier"] in kinds]
        if some:
            print_table(some)


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print the mean scores of every method, and how they compare to default SMS."""
    names = [one for one in rows[0]["scores"] if all(one in r["scores"] for r in rows)]
    kinds = list(dict.fromkeys(row["classifier"] for row in rows))
    # (methods, runs, [log loss, Brier, seconds])
    table = np.array([[row["scores"][name] for row in rows] for name in names])
    losses, brier = table[:, :, 0], table[:, :, 1]
    ranks = rankdata(losses, axis=0).mean(axis=1)
    harm = (losses > losses[names.index(NOTHING)] + 1e-9).mean(axis=1)
    sms = names.index(DEFAULT_SMS)
    print(f"\n{len(rows)} runs of {len({row['ds'] for row in rows})} tables")
    heads = "".join(f"{kind:>14s}" for kind in kinds)
    print(
        f"{'':26s}{'log loss':>9s}{'/ SMS':>7s}{'Brier':>8s}{'/ SMS':>7s}{'rank':>6s}"
        f"{'harm':>7s}{'seconds':>9s}{heads}"
    )
    for i in np.argsort(losses.mean(axis=1)):
        cells = "".join(
            f"{losses[i, [row['classifier'] == kind for row in rows]].mean():14.4f}"
            for kind in kinds
        )
        print(
            f"{names[i]:26s}{losses[i].mean():9.4f}"
            f"{losses[i].mean() / losses[sms].mean():7.3f}{brier[i].mean():8.4f}"
            f"{brier[i].mean() / brier[sms].mean():7.3f}{ranks[i]:6.2f}"
            f"{100 * harm[i]:6.1f}%{table[i, :, 2].mean():9.3f}{cells}"
        )


def main() -> None:
    """Run or resume a protocol and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of tables")
    parser.add_argument("--protocol", choices=("split", "thesis"), default="split")
    parser.add_argument("--sets", nargs="*", default=None)
    parser.add_argument("--classifiers", nargs="*", default=list(CLASSIFIERS))
    parser.add_argument("--seeds", nargs="*", type=int, default=list(range(5)))
    parser.add_argument("--run", default="latest", help="name of the run to resume")
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    options = parser.parse_args()
    if options.protocol == "thesis":
        records = Records("multiclass_thesis", options.run, fresh=options.fresh)
        print_thesis(run_thesis(records, options.data, options.sets, options.seeds))
    else:
        records = Records("multiclass", options.run, fresh=options.fresh)
        print_tables(run_tables(records, options))


if __name__ == "__main__":
    main()
