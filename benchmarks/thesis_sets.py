"""The real sets of thesis.py: three classifiers, cross-validated, then calibrated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from records import Records
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from thesis_designs import METHODS, calibrate, warm_up

Row = dict[str, Any]

MOST_ROWS = 2000
FOLDS = 5
# Sets of raw intensities over several powers of ten.
LOGARITHMIC = ("colon",)
# A probability of naive Bayes may round to 1; its log-odds must stay finite.
LEAST = 1e-15


class MixedNaiveBayes(ClassifierMixin, BaseEstimator):
    """Naive Bayes: the first columns are normal, the last `n_codes` are 0/1."""

    def __init__(self, n_codes: int = 0) -> None:
        self.n_codes = n_codes

    def fit(self, X: np.ndarray, y: np.ndarray) -> MixedNaiveBayes:
        """Fit one model per kind of column."""
        self.classes_ = np.unique(y)
        self.prior_ = float(logit(np.mean(y)))
        numbers, codes = self._parts(X)
        self.parts_ = []
        if numbers.shape[1]:
            self.parts_.append((0, GaussianNB().fit(numbers, y)))
        if codes.shape[1]:
            self.parts_.append((1, BernoulliNB().fit(codes, y)))
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Return log-odds: those of the parts add up, the prior counts once."""
        columns = self._parts(X)
        odds = np.full(len(X), self.prior_)
        for kind, model in self.parts_:
            log_p = model.predict_log_proba(columns[kind])
            odds += log_p[:, 1] - log_p[:, 0] - self.prior_
        return odds

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the more probable class."""
        return self.classes_[(self.decision_function(X) > 0.0).astype(int)]

    def _parts(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        cut = X.shape[1] - self.n_codes
        return X[:, :cut], X[:, cut:]


CLASSIFIERS: dict[str, Callable[[int], Any]] = {
    "LR": lambda _: LogisticRegression(max_iter=2000),
    "SVM": lambda _: LinearSVC(dual="auto", max_iter=100_000, random_state=0),
    "NB": MixedNaiveBayes,
}


def load_set(
    path: Path, most_rows: int | None = MOST_ROWS
) -> tuple[np.ndarray, int, np.ndarray]:
    """Return features with numbers first, how many of these, and 0/1 labels.

    At most `most_rows` rows drawn at random. A string becomes one column per
    category, "missing" being one; a missing number stays missing.
    """
    table = pd.read_csv(path)
    if most_rows is not None and len(table) > most_rows:
        rows = np.random.default_rng(0).choice(len(table), most_rows, replace=False)
        table = table.iloc[np.sort(rows)].reset_index(drop=True)
    y = table.pop("target").to_numpy(int)
    numbers = table.select_dtypes("number")
    if path.name.split(".")[0] in LOGARITHMIC:
        numbers = np.log(numbers)
    text = table.drop(columns=numbers.columns).fillna("missing")
    parts = [numbers] + ([pd.get_dummies(text)] if text.shape[1] else [])
    return pd.concat(parts, axis=1).to_numpy(float), numbers.shape[1], y


def make_classifier(name: str, n_numbers: int, n_columns: int) -> Any:
    """Return the classifier behind medians for missing numbers, and scaling."""
    scaled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    parts = [("numbers", scaled, slice(0, n_numbers))] if n_numbers else []
    prepare = ColumnTransformer(parts, remainder="passthrough")
    return make_pipeline(prepare, CLASSIFIERS[name](n_columns - n_numbers))


def run_classifier(path: Path, name: str, *, held_out: bool) -> Row:
    """Return the measures of every method on a set, means over the folds.

    Calibrators are fitted on the classifier's scores of its own training rows, as in
    the thesis, or with `held_out` on scores of 5 folds within them.
    """
    X, n_numbers, y = load_set(path)
    splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    model = make_classifier(name, n_numbers, X.shape[1])
    folds = []
    for train, test in splitter.split(X, y):
        model.fit(X[train], y[train])
        test_scores = _probability(model.decision_function(X[test]))
        odds = (
            cross_val_predict(
                model, X[train], y[train], cv=splitter, method="decision_function"
            )
            if held_out
            else model.decision_function(X[train])
        )
        found = calibrate(
            tuple(METHODS), (_probability(odds), y[train]), (test_scores, y[test])
        )
        folds.append(found)
    return {
        "ds": path.name.split(".")[0],
        "classifier": name,
        "held_out": held_out,
        "n": len(y),
        "methods": {
            method: _mean([fold[method] for fold in folds]) for method in METHODS
        },
    }


def _probability(odds: np.ndarray) -> np.ndarray:
    return np.clip(expit(odds), LEAST, 1.0 - LEAST)


def _mean(rows: list[dict[str, float]]) -> dict[str, float]:
    """Mean of every measure over the folds; of the seconds, the sum."""
    means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    means["s"] = float(np.sum([row["s"] for row in rows]))
    return {name: float(f"{value:.6g}") for name, value in means.items()}


def run_sets(records: Records, folder: Path, sets: list[str] | None) -> list[Row]:
    """Return the rows of all sets, classifiers and kinds of scores."""
    paths = sorted(folder.glob("*.csv.gz"))
    if sets:
        paths = [path for path in paths if path.name.split(".")[0] in sets]
    warm_up()
    return [
        records.measure(
            f"sets-{path.name.split('.')[0]}-{name}-{'held' if held_out else 'train'}",
            lambda key=(path, name), held_out=held_out: run_classifier(
                *key, held_out=held_out
            ),
        )
        for held_out in (False, True)
        for path in paths
        for name in CLASSIFIERS
    ]
