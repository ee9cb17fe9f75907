"""What the protocols of multiclass.py share: tables, classifiers and their scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from scipy.special import softmax
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

Table = tuple[np.ndarray, np.ndarray]
Makers = dict[str, Callable[[int], Any]]

LEAST_CLASS = 20
SVM = "SVM"


def _make_logistic(_: int) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


# `SVC` alone gives ranks of pairs; one machine a class gives a decision value each.
CLASSIFIERS: Makers = {
    "naive Bayes": lambda _: GaussianNB(),
    "logistic": _make_logistic,
    "forest": lambda seed: RandomForestClassifier(150, random_state=seed),
    "boosted trees": lambda seed: LGBMClassifier(
        n_estimators=100,
        num_leaves=15,
        num_threads=1,
        verbosity=-1,
        random_state=seed,
    ),
    SVM: lambda _: make_pipeline(StandardScaler(), OneVsRestClassifier(SVC())),
}
THESIS_CLASSIFIERS: Makers = {
    "LR": _make_logistic,
    SVM: lambda _: make_pipeline(
        StandardScaler(), LinearSVC(dual="auto", max_iter=20_000, random_state=0)
    ),
    "NB": lambda _: GaussianNB(),
}


def read_tables(
    folder: Path, sets: Sequence[str] | None, most_rows: int
) -> dict[str, Table]:
    """Return features (n, d) and classes 0 to k - 1 of tables by their names."""
    paths = {path.name.split(".")[0]: path for path in folder.glob("*.csv.gz")}
    return {
        name: load(path, most_rows)
        for name, path in sorted(paths.items())
        if not sets or name in sets
    }


def load(path: Path, most_rows: int) -> Table:
    """Return features (n, d) and classes 0 to k - 1 of at most so many rows."""
    table = pd.read_csv(path)
    y = pd.factorize(table.pop("target"), sort=True)[0]
    for name in table.columns:
        if table[name].dtype.kind not in "biuf":
            table[name] = pd.factorize(table[name], sort=True)[0]
    table = table.astype(float)
    x = table.fillna(table.median()).fillna(0.0).to_numpy()
    if len(y) > most_rows:
        rows = np.random.default_rng(0).choice(len(y), most_rows, replace=False)
        x, y = x[rows], y[rows]
    kept = np.bincount(y)[y] >= LEAST_CLASS
    return x[kept], np.unique(y[kept], return_inverse=True)[1]


def predict(model: Any, x: np.ndarray) -> np.ndarray:
    """Return a classifier's probabilities (n, k).

    Those of support vector machines are the softmax of their decision values, which
    are thus the logits that calibrators see.
    """
    if not hasattr(model, "predict_proba"):
        return softmax(model.decision_function(x), axis=1)
    p = np.asarray(model.predict_proba(x), dtype=np.float64)
    return p / p.sum(axis=1, keepdims=True)
