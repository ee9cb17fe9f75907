"""Held-out scores of plain classifiers on tables, made once and kept in a folder.

Protocols. `halves` (5 x 2 splits): a classifier is fitted on one half of the rows; of
the other half one half calibrates and the other tests. `others`: the same on tables of
several classes, the largest against the rest. `folds` (2 x 5 splits, after
Kull, Silva Filho & Flach 2017): of the training folds' rows each third in turn
calibrates the classifier of the other two, and the three answers are averaged.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

MOST_ROWS = {"halves": 20_000, "others": 8_000, "folds": 8_000}
CLASSIFIERS: dict[str, dict[str, Any]] = {
    "halves": {
        "naive Bayes": GaussianNB(),
        "boosted trees": LGBMClassifier(
            n_estimators=100, num_threads=1, verbosity=-1, random_state=0
        ),
        "forest": RandomForestClassifier(100, random_state=0),
        "logistic": LogisticRegression(max_iter=1000),
        "linear SVM": LinearSVC(random_state=0),
    },
    "folds": {
        "naive Bayes": GaussianNB(),
        "AdaBoost": AdaBoostClassifier(random_state=0),
        "logistic": LogisticRegression(max_iter=1000),
    },
}

CLASSIFIERS["others"] = CLASSIFIERS["halves"]


@dataclass(frozen=True)
class Case:
    """Scores of one classifier on one split: parts to calibrate, rows to test.

    `parts` are (calibration scores, their labels, test scores) of each classifier
    fitted; the calibrated test probabilities are averaged over them.
    """

    protocol: str
    ds: str
    split: int
    classifier: str
    scale: str
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]]
    test_y: np.ndarray

    @property
    def key(self) -> str:
        """Name of the case."""
        return f"{self.protocol}/{self.ds}/{self.split}/{self.classifier}"

    @property
    def n(self) -> int:
        """Number of calibration rows."""
        return sum(len(part[1]) for part in self.parts)


def load(path: Path, protocol: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return features and 0/1 labels, of several classes the largest against the rest.

    Of large tables a seeded sample of `MOST_ROWS[protocol]` rows is kept.
    """
    table = pd.read_csv(path)
    target = table.pop("target").to_numpy()
    counts = np.bincount(target.astype(int))
    y = target == (1 if len(counts) == 2 else np.argmax(counts))
    most = MOST_ROWS[protocol]
    if len(y) > most:
        rows = np.random.default_rng(0).choice(len(y), most, replace=False)
        table, y = table.iloc[rows].reset_index(drop=True), y[rows]
    return table, y.astype(np.int8)


def make_cases(path: Path, protocol: str, cache: Path) -> Iterator[Case]:
    """Yield every case of a table, from the cache where it is there."""
    name = path.name.split(".")[0]
    splits = range(10)
    found = [
        (split, classifier, cache / protocol / f"{name}-{split}-{classifier}.npz")
        for split in splits
        for classifier in CLASSIFIERS[protocol]
    ]
    table, y = pd.DataFrame(), np.empty(0)
    for split, classifier, file in found:
        if not file.exists():
            if not len(y):
                table, y = load(path, protocol)
            arrays = score_split(table, y, protocol, split, classifier)
            file.parent.mkdir(parents=True, exist_ok=True)
            np.savez(file, **arrays)
        yield _read(file, protocol, name, split, classifier)


def _read(file: Path, protocol: str, ds: str, split: int, classifier: str) -> Case:
    with np.load(file) as held:
        n = int(held["n_parts"])
        parts = [(held[f"cal{i}"], held[f"y{i}"], held[f"test{i}"]) for i in range(n)]
        scale = "real" if classifier == "linear SVM" else "probability"
        return Case(protocol, ds, split, classifier, scale, parts, held["test_y"])


def score_split(
    table: pd.DataFrame, y: np.ndarray, protocol: str, split: int, classifier: str
) -> dict[str, np.ndarray]:
    """Fit the classifiers of one split and return their held-out scores."""
    base = CLASSIFIERS[protocol][classifier]
    if protocol != "folds":
        halves = StratifiedKFold(2, shuffle=True, random_state=split // 2)
        train, rest = list(halves.split(table, y))[split % 2]
        cal, test = train_test_split(
            rest, test_size=0.5, random_state=split, stratify=y[rest]
        )
        inner = [(train, cal)]
    else:
        outer = StratifiedKFold(5, shuffle=True, random_state=split // 5)
        whole, test = list(outer.split(table, y))[split % 5]
        thirds = StratifiedKFold(3, shuffle=True, random_state=split)
        inner = [(whole[a], whole[b]) for a, b in thirds.split(whole, y[whole])]
    out: dict[str, Any] = {"n_parts": len(inner), "test_y": y[test]}
    for i, (train, cal) in enumerate(inner):
        model = make_pipeline(prepare(), clone(base))
        with warnings.catch_warnings():
            # Separable tables: what matters here is the score, not the optimum.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", UserWarning)
            model.fit(table.iloc[train], y[train])
            out[f"cal{i}"] = ask(model, table.iloc[cal])
            out[f"test{i}"] = ask(model, table.iloc[test])
        out[f"y{i}"] = y[cal]
    return out


def prepare() -> Any:
    """Return the transformer that makes a table dense, complete and standardised."""
    words = make_column_selector(dtype_exclude="number")
    numbers = make_column_selector(dtype_include="number")
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), words),
        (SimpleImputer(strategy="median", keep_empty_features=True), numbers),
    )
    return make_pipeline(columns, StandardScaler())


def ask(model: Pipeline, table: pd.DataFrame) -> np.ndarray:
    """Return scores of class 1."""
    if hasattr(model, "predict_proba"):
        return np.clip(np.asarray(model.predict_proba(table))[:, 1], 0.0, 1.0)
    return np.asarray(model.decision_function(table))
