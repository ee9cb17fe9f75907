"""Zhang and Yang's comparison (2004), on the binary tables at hand.

    python benchmarks/piecewise.py --data DIR
    python benchmarks/piecewise.py --data DIR --sets sonar adult

Piecewise logistic regression beside logistic regression, asymmetric Laplace densities
and what came later. DIR holds NAME.csv.gz files whose last column is the 0/1 target; at
most 2000 rows of each, half to train, half to test, and the halves exchanged. Their
classifiers, logistic regression, linear support vector machine and naive Bayes, and
boosted trees; calibrators are fitted on scores of five folds of the training half, as
in the paper, but on log-odds throughout (the paper gives its logistic regression's
probabilities to calibrators that assume a line, and says itself that log-odds would be
better). Log loss with probabilities clipped to 2^-52, Brier score, and share of wrong
decisions; ranks over tables with Iman and Davenport's p, and Holm's procedure against
piecewise logistic regression at .05 (``*`` worse, ``!`` better). Rerun to resume; one
JSON line per table and classifier.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from records import Records
from scipy.special import expit
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from thesis_sets import CLASSIFIERS, load_set, make_classifier
from thesis_tables import print_table, rank_cells, short

import calibration as cal

Row = dict[str, Any]

BOOSTING = "boosting"
RAW, CONTROL = "raw", "piecewise"
# On log-odds all; a sigmoid for those that need a probability of real scores.
METHODS: dict[str, Callable[..., cal.ScoreCalibrator]] = {
    "logistic": cal.PlattCalibrator,
    "asymmetric Laplace": cal.AsymmetricLaplaceCalibrator,
    CONTROL: cal.PiecewiseLogisticCalibrator,
    "piecewise, auto": lambda **scale: cal.PiecewiseLogisticCalibrator("auto", **scale),
    "Gaussian": cal.GaussianCalibrator,
    "quadratic": cal.QuadraticCalibrator,
    "isotonic": cal.IsotonicCalibrator,
    "ABB": cal.ABBCalibrator,
    "ELiTE": cal.ELiTECalibrator,
    "Venn-Abers": cal.VennAbersCalibrator,
}
# The paper's three first.
PAPER = (RAW, "logistic", "asymmetric Laplace", CONTROL)
MEASURES = {"log_loss": "log loss", "brier": "Brier", "error": "0/1"}
INNER = StratifiedKFold(5, shuffle=True, random_state=0)
OUTER = StratifiedKFold(2, shuffle=True, random_state=0)


def run_set(path: Path, classifier: str) -> Row:
    """Return the measures of every method on a table, means over both halves."""
    X, n_numbers, y = load_set(path)
    halves = []
    for train, test in OUTER.split(X, y):
        scores, new = held_out_scores(
            classifier, n_numbers, X[train], y[train], X[test]
        )
        found = {RAW: measure(y[test], expit(new))}
        for name, make in METHODS.items():
            fitted = make(scale="logit").fit(scores, y[train])
            found[name] = measure(y[test], fitted.predict(new))
        halves.append(found)
    return {
        "ds": path.name.split(".")[0],
        "classifier": classifier,
        "n": len(y),
        "methods": {
            name: {
                m: float(np.mean([half[name][m] for half in halves])) for m in MEASURES
            }
            for name in halves[0]
        },
    }


def held_out_scores(
    classifier: str, n_numbers: int, X: np.ndarray, y: np.ndarray, X_new: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return log-odds of the training rows out of five folds, and of new rows."""
    if classifier == BOOSTING:
        model: Any = LGBMClassifier(n_estimators=100, num_threads=1, verbosity=-1)
        held = cross_val_predict(model, X, y, cv=INNER, method="predict_proba")[:, 1]
        new = model.fit(X, y).predict_proba(X_new)[:, 1]
        return tuple(_log_odds(p) for p in (held, new))  # type: ignore[return-value]
    model = make_classifier(classifier, n_numbers, X.shape[1])
    held = cross_val_predict(model, X, y, cv=INNER, method="decision_function")
    return held, model.fit(X, y).decision_function(X_new)


def _log_odds(p: np.ndarray) -> np.ndarray:
    p = np.clip(p, 2.0**-52, 1.0 - 2.0**-52)
    return np.log(p) - np.log1p(-p)


def measure(y: np.ndarray, p: np.ndarray) -> dict[str, float]:
    """Return log loss, Brier score and share of wrong decisions."""
    values = {
        "log_loss": cal.log_loss(y, np.clip(p, 2.0**-52, 1.0 - 2.0**-52)),
        "brier": cal.brier_score(y, p),
        "error": np.mean((p >= 0.5) != y),
    }
    return {name: float(f"{value:.6g}") for name, value in values.items()}


def losses(rows: list[Row], classifier: str, loss: str) -> pd.DataFrame:
    """Return a loss by table (rows) and method (columns)."""
    kept = {
        row["ds"]: {name: found[loss] for name, found in row["methods"].items()}
        for row in rows
        if row["classifier"] == classifier
    }
    return pd.DataFrame(kept).T


def print_rows(rows: list[Row]) -> None:
    """Print means, ranks, and the comparisons of the paper's three methods."""
    classifiers = [
        name for name in (*CLASSIFIERS, BOOSTING) if len(losses(rows, name, "brier"))
    ]
    n_sets = len({row["ds"] for row in rows})
    tables = {
        (name, loss): losses(rows, name, loss)
        for name in classifiers
        for loss in MEASURES
    }
    body = [
        [method, *(short(table[method].mean(), 4) for table in tables.values())]
        for method in (RAW, *METHODS)
    ]
    head = ["method", *(f"{name} {MEASURES[loss]}" for name, loss in tables)]
    print_table(f"Means over {n_sets} tables", head, body)
    for names in (PAPER, (RAW, *METHODS)):
        body = []
        for (name, loss), table in tables.items():
            tests = cal.compare_methods(table[list(names)], control=CONTROL)
            cells = rank_cells(tests)
            body.append([f"{name} {MEASURES[loss]}", *cells, f"{tests.p_value:.0e}"])
        title = f"Average ranks on {n_sets} tables, against {CONTROL}"
        print_table(title, ["rank in", *names, "p"], body)
    print_pairs(tables)


def print_pairs(tables: dict[tuple[str, str], pd.DataFrame]) -> None:
    """Print by how much piecewise logistic regression changes the others' losses."""
    body = []
    for (name, loss), table in tables.items():
        if loss == "error":
            # A loss of 0, which some tables have, has no share.
            continue
        for other in ("logistic", "asymmetric Laplace"):
            pair = cal.compare_pair(table[CONTROL], table[other])
            low, high = pair.interval
            change = f"{pair.relative_change:+.3f} [{low:+.3f}, {high:+.3f}]"
            wins = f"{pair.wins} of {pair.n_sets}"
            tests = (pair.sign_p, pair.wilcoxon_p, pair.t_p)
            body.append([name, MEASURES[loss], other, change, wins, *map(short, tests)])
    head = ["classifier", "loss", "against", "relative change", "better on"]
    head += ["sign p", "Wilcoxon p", "t p"]
    print_table("Piecewise logistic regression against two", head, body)


def main() -> None:
    """Run or resume the comparison and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of CSV files")
    parser.add_argument("--sets", nargs="*", default=None)
    parser.add_argument("--run", default="latest", help="name of the run to resume")
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    options = parser.parse_args()
    records = Records("piecewise", options.run, fresh=options.fresh)
    paths = sorted(options.data.glob("*.csv.gz"))
    if options.sets:
        paths = [path for path in paths if path.name.split(".")[0] in options.sets]
    rows = [
        records.measure(
            f"{path.name.split('.')[0]}-{name}",
            lambda key=(path, name): run_set(*key),
        )
        for path in paths
        for name in (*CLASSIFIERS, BOOSTING)
    ]
    print_rows(rows)


if __name__ == "__main__":
    main()
