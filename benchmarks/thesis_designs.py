"""What the parts of thesis.py share: data designs, calibrators and measures."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC

import calibration as cal

Measures = dict[str, float]
Draw = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]

LABELS = {
    "rmse": "RMSE",
    "ece": "ECE",
    "mce": "MCE",
    "ece_rank": "ECE ranks",
    "mce_rank": "MCE ranks",
    "ece_code": "ECE thesis",
    "mce_code": "MCE thesis",
    "log_loss": "log loss",
    "auc": "AUC",
    "acc": "ACC",
}
MEASURES = tuple(LABELS)
# Of these more is better.
GAINS = ("auc", "acc")
RAW = "raw"


class LogOddsELiTE:
    """ELiTE on the log-odds of the scores: straight pieces there, not in the scores."""

    def fit(self, scores: np.ndarray, y: np.ndarray) -> LogOddsELiTE:
        """Fit on probabilities within (0, 1)."""
        self.calibrator_ = cal.ELiTECalibrator(scale="logit").fit(logit(scores), y)
        return self

    def predict(self, scores: np.ndarray) -> np.ndarray:
        """Return calibrated probabilities."""
        return self.calibrator_.predict(logit(scores))


METHODS: dict[str, Callable[[], cal.ScoreCalibrator | LogOddsELiTE]] = {
    RAW: cal.IdentityCalibrator,
    "Platt": cal.PlattCalibrator,
    "beta": cal.BetaCalibrator,
    "histogram": lambda: cal.HistogramCalibrator(10),
    "isotonic": cal.IsotonicCalibrator,
    "bagged": lambda: cal.BaggedIsotonicCalibrator(100, random_state=0),
    "SBB": lambda: cal.SBBCalibrator("k2"),
    "ABB": lambda: cal.ABBCalibrator("k2"),
    "ABB BDeu": lambda: cal.ABBCalibrator("bdeu"),
    "BBQ": lambda: cal.BBQCalibrator("bdeu"),
    "BBQ K2": lambda: cal.BBQCalibrator("k2"),
    "ENIR": cal.ENIRCalibrator,
    "ELiTE": cal.ELiTECalibrator,
    "ELiTE odds": LogOddsELiTE,
    "KDE": cal.KDECalibrator,
    "KDE thesis": cal.NadarayaWatsonCalibrator,
    "DPM": cal.DPMCalibrator,
}
VARIANTS = ("ABB BDeu", "BBQ K2", "ELiTE odds")
# One of each kind, of KDE both, for rank diagrams and most tables.
KINDS = tuple(name for name in METHODS if name not in VARIANTS)
# Deviation of a row from the centre of its blob.
XOR_NOISE = 0.4
KERNELS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "quadratic": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "RBF": {"kernel": "rbf"},
}


def draw_circular(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points (n, 2) and labels: a disc of radius 2 within a ring of up to 4.

    Half of the rows are of each class, so that ten rows can train a classifier.
    """
    y = rng.permutation(np.arange(n) % 2)
    radius = rng.uniform(0.0, 2.0, n) + 2.0 * y
    angle = rng.uniform(0.0, 2.0 * np.pi, n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


def draw_xor(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points (n, 2) and labels: blobs at (+-1, +-1), class 1 where signs agree.

    A row keeps the class of its blob wherever its noise carries it.
    """
    centres = rng.choice([-1.0, 1.0], size=(n, 2))
    points = centres + XOR_NOISE * rng.normal(size=(n, 2))
    return points, (centres.prod(axis=1) > 0.0).astype(int)


DESIGNS: dict[str, Draw] = {"circular": draw_circular, "XOR": draw_xor}


def fit_svm(kernel: str, X: np.ndarray, y: np.ndarray) -> SVC:
    """Return the support vector machine of that kernel, other settings as they come."""
    return SVC(**KERNELS[kernel]).fit(X, y)


def svm_scores(model: SVC, X: np.ndarray) -> np.ndarray:
    """Return decision values through the plain sigmoid, as the thesis has them."""
    if model.kernel == "linear":
        return expit(X @ model.coef_[0] + model.intercept_[0])
    blocks = np.array_split(X, max(1, len(X) // 20_000))
    return expit(np.concatenate([model.decision_function(block) for block in blocks]))


def measure(y: np.ndarray, p: np.ndarray, n_fitted: int) -> Measures:
    """Return the measures of forecasts p, rounded to what is worth keeping.

    For the log loss alone, p keeps 1 / (2 n + 2) away from 0 and 1, n being the rows
    that calibrators were fitted on: else one certain miss would decide everything.
    """
    least = 1.0 / (2.0 * n_fitted + 2.0)
    ece_code, mce_code = errors_as_published(y, p)
    values = {
        "rmse": np.sqrt(cal.brier_score(y, p)),
        "ece": cal.expected_calibration_error(y, p),
        "mce": cal.maximum_calibration_error(y, p),
        "ece_rank": cal.expected_calibration_error(y, p, binning="rank"),
        "mce_rank": cal.maximum_calibration_error(y, p, binning="rank"),
        "ece_code": ece_code,
        "mce_code": mce_code,
        "log_loss": cal.log_loss(y, np.clip(p, least, 1.0 - least)),
        "auc": roc_auc_score(y, p),
        "acc": np.mean((p >= 0.5) == y),
    }
    return {name: float(f"{value:.6g}") for name, value in values.items()}


def errors_as_published(y: np.ndarray, p: np.ndarray) -> tuple[float, float]:
    """Return ECE and MCE as the thesis's published code has them.

    It sorts pairs of forecast and label and cuts them into ten: equal forecasts are
    put in order by what happened, so that a cut parts their zeros from their ones.
    """
    gaps = (p - y)[np.lexsort((y, p))]
    groups = np.array_split(gaps, min(10, len(gaps)))
    errors = np.array([abs(group.mean()) for group in groups])
    shares = np.array([len(group) for group in groups]) / len(gaps)
    return float(shares @ errors), float(errors.max())


def calibrate(
    methods: Sequence[str],
    fit_on: tuple[np.ndarray, np.ndarray],
    test_on: tuple[np.ndarray, np.ndarray],
) -> dict[str, Measures]:
    """Fit each method on scores and labels; return its test measures.

    "values" is the number of distinct forecasts, "s" the processor's seconds of a fit.
    """
    scores, y = fit_on
    test_scores, test_y = test_on
    out = {}
    for name in methods:
        start = time.process_time()
        fitted = METHODS[name]().fit(scores, y)
        seconds = time.process_time() - start
        forecasts = fitted.predict(test_scores)
        out[name] = measure(test_y, forecasts, len(y)) | {
            "values": len(np.unique(forecasts)),
            "s": float(f"{seconds:.3g}"),
        }
    return out


def warm_up() -> None:
    """Fit every method once, so that none is charged for its compilation."""
    y = np.arange(60) % 2
    rows = np.linspace(0.1, 0.9, 60) + 0.05 * y, y
    calibrate(tuple(METHODS), rows, rows)
