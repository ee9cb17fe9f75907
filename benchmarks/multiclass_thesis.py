"""Tables 27 to 30 of Naeini's thesis: five runs of 5-fold cross-validation.

Of multiclass.py, with `--protocol thesis`; its seeds are the runs. Calibrators learn
from the scores of the classifier's own training rows, as in chapter 6.1. The shared
tables that the thesis has too are taken, at most 2000 rows of each. Softmax regression
and the nets see the probabilities themselves, as the thesis's did; SMS, with penalty 1,
sees their logarithms. ECE and MCE are those of all n k probabilities in 10 bins of
equal frequency ("micro"), AUC is Hand and Till's; log loss is clipped at 1e-12. One
JSON line per table, classifier, run and method, so that methods can be added.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from multiclass_sets import THESIS_CLASSIFIERS, Table, predict, read_tables
from records import Records
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from thesis_designs import GAINS, RAW
from thesis_tables import change, print_table, rank_cells, short

import calibration as cal

Row = dict[str, Any]
# Scores and labels to learn from and to test on, by fold.
Folds = list[tuple[Table, Table]]

MOST_ROWS = 2000
FOLDS = 5
FLOOR = 1e-12
# Of the thesis's 56 tables. splice is its "dna", cmc its "contraceptive method choice".
SETS = (
    "car",
    "cmc",
    "connect4",
    "letter",
    "page_blocks",
    "pendigits",
    "satimage",
    "shuttle",
    "splice",
    "vehicle",
    "vowel",
    "waveform",
)
# Where a classifier's own ECE is below, the thesis leaves the table out.
CALIBRATED = 0.05
LABELS = {
    "auc": "AUC",
    "acc": "ACC",
    "log_loss": "log loss",
    "brier": "Brier",
    "ece": "ECE micro",
    "mce": "MCE micro",
}
NETS = "SNN"
COMPARED = ("IsoReg", "Platt", "Softmax", NETS)


class SoftmaxRegression:
    """Multinomial logistic regression on probabilities, nearly without a ridge."""

    def fit(self, scores: np.ndarray, y: np.ndarray) -> SoftmaxRegression:
        """Fit on probabilities (n, k) and column numbers."""
        self.model_ = LogisticRegression(C=1e4, max_iter=1000).fit(scores, y)
        return self

    def predict(self, scores: np.ndarray) -> np.ndarray:
        """Return calibrated probabilities (n, k)."""
        return np.asarray(self.model_.predict_proba(scores))


METHODS: dict[str, Callable[[], Any]] = {
    RAW: cal.IdentityCalibrator,
    "IsoReg": lambda: cal.OneVsRestCalibrator("isotonic"),
    "Platt": lambda: cal.OneVsRestCalibrator("platt"),
    "Softmax": SoftmaxRegression,
    "SMS": lambda: cal.SoftmaxCalibrator("matrix", 1.0),
    NETS: lambda: cal.ShallowNetCalibrator(solver="adagrad"),
}


def run_thesis(
    records: Records, folder: Path, sets: Sequence[str] | None, runs: Sequence[int]
) -> list[Row]:
    """Return one row per table, classifier, run and method."""
    chosen = [name for name in SETS if not sets or name in sets]
    tables = read_tables(folder, chosen, MOST_ROWS)

    @lru_cache(maxsize=1)
    def folds_of(name: str, classifier: str, run: int) -> Folds:
        return make_folds(*tables[name], classifier, run)

    rows = []
    for *case, method in product(runs, tables, THESIS_CLASSIFIERS, METHODS):
        run, name, classifier = case
        row = records.measure(
            f"{name}/{classifier}/{run}/{method}",
            lambda key=(name, classifier, run), m=method: run_method(folds_of(*key), m),
        )
        rows.append({**row, "ds": name, "classifier": classifier, "method": method})
    return rows


def make_folds(x: np.ndarray, y: np.ndarray, classifier: str, run: int) -> Folds:
    """Return scores and labels of the training rows and of the test rows, by fold."""
    splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=run)
    folds = []
    for train, test in splitter.split(x, y):
        model = THESIS_CLASSIFIERS[classifier](run).fit(x[train], y[train])
        parts = [(predict(model, x[rows]), y[rows]) for rows in (train, test)]
        folds.append((parts[0], parts[1]))
    return folds


def run_method(folds: Folds, method: str) -> Row:
    """Return means of the measures over the folds, and the seconds of all fits."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        # Of small folds: what counts here is the answer.
        warnings.simplefilter("ignore")
        forecasts = [
            METHODS[method]().fit(*train).predict(test[0]) for train, test in folds
        ]
    seconds = time.perf_counter() - start
    found = [measure(test[1], p) for (_, test), p in zip(folds, forecasts, strict=True)]
    means = pd.DataFrame(found).mean()
    return {
        "s": round(seconds, 4),
        **{name: float(f"{means[name]:.7g}") for name in LABELS},
    }


def measure(y: np.ndarray, p: np.ndarray) -> dict[str, float]:
    """Return the thesis's six measures of forecasts (n, k)."""
    return {
        "auc": cal.auc_score(y, p),
        "acc": float(np.mean(p.argmax(axis=1) == y)),
        "log_loss": cal.log_loss(y, p, clip=FLOOR),
        "brier": cal.brier_score(y, p),
        "ece": cal.expected_calibration_error(y, p),
        "mce": cal.maximum_calibration_error(y, p),
    }


def print_thesis(rows: list[Row]) -> None:
    """Print means, changes by the nets and ranks, of all tables and of the thesis's."""
    runs = pd.DataFrame(rows)
    # By classifier, table and method: means over the runs.
    means = runs.groupby(["classifier", "ds", "method"])[list(LABELS)].mean()
    frames = {name: means.loc[name] for name in THESIS_CLASSIFIERS}
    for name, frame in frames.items():
        table = frame.groupby("method").mean().loc[list(METHODS)]
        body = [[m, *(short(table.loc[m, one]) for one in LABELS)] for m in METHODS]
        print_table(
            f"{name}: means over the tables", ["method", *LABELS.values()], body
        )
    # A test needs two tables or more.
    kept = {name: drop_calibrated(frame) for name, frame in frames.items()}
    kept = {name: one for name, one in kept.items() if count_sets(one) > 1}
    for title, some in (("all tables", frames), ("ECE of .05 or more", kept)):
        counts = ", ".join(f"{name} {count_sets(one)}" for name, one in some.items())
        _print_changes(f"{title} ({counts})", some)
        for name, frame in some.items():
            _print_ranks(f"{name}, {title}", frame, COMPARED, NETS)
    for name, frame in frames.items():
        _print_ranks(f"{name}, all methods", frame, tuple(METHODS), None)


def count_sets(frame: pd.DataFrame) -> int:
    """Return the number of tables."""
    return frame.index.get_level_values("ds").nunique()


def by_set(frame: pd.DataFrame, one: str) -> pd.DataFrame:
    """Return a measure by table (rows) and method (columns)."""
    return frame[one].unstack("method")[list(METHODS)]


def drop_calibrated(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the tables on which the classifier's own ECE is .05 or more."""
    error = by_set(frame, "ece")[RAW]
    return frame.loc[frame.index.isin(error.index[error >= CALIBRATED], level="ds")]


def _print_changes(title: str, frames: dict[str, pd.DataFrame]) -> None:
    """Print table 27: 95 % intervals of the mean change by the nets, eq. 6.1."""
    body = [
        [LABELS[one], *(change(by_set(frame, one), NETS) for frame in frames.values())]
        for one in LABELS
    ]
    head = f"Relative change by {NETS}, {title}: 95 % interval of the mean; median"
    print_table(head, ["measure", *frames], body)


def _print_ranks(
    title: str, frame: pd.DataFrame, names: Sequence[str], control: str | None
) -> None:
    """Print average ranks, tables 28 to 30, with p of Iman and Davenport."""
    body = []
    for one, label in LABELS.items():
        sign = -1.0 if one in GAINS else 1.0
        losses = sign * by_set(frame, one)[list(names)]
        tests = cal.compare_methods(losses, control=control)
        body.append([label, *rank_cells(tests), f"{tests.p_value:.0e}"])
    against = f"against {control or 'the best'}"
    print_table(f"Average ranks, {title}, {against}", ["measure", *names, "p"], body)
