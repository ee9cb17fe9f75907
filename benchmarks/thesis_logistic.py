"""The first experiments of thesis.py: calibrators that know more than the score.

Tables 3 to 5: logistic regression on the two designs, the intervals of its forecasts
(ACP) and the features (SBA) beside the score; three classifiers on adult, and on
lending_club, whose events are as rare as those of KDD-98, which is not at hand.
"""

from __future__ import annotations

import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from records import Records
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from thesis_designs import DESIGNS, LABELS, XOR_NOISE, Measures, calibrate, measure
from thesis_sets import CLASSIFIERS, load_set, make_classifier
from thesis_tables import ANGLES, method_means, print_table, short

import calibration as cal

Row = dict[str, Any]
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]

SCORES_ALONE = ("raw", "Platt", "histogram", "isotonic", "SBB", "ABB") + (
    "KDE",
    "KDE thesis",
    "DPM",
)
ROWS = 600
# Rows to train on; then to calibrate with, and to test on.
REAL = {"adult": (2000, 600), "lending_club": (4928, 2464)}
CEILING = "best of the score"
SHOWN = ("auc", "acc", "rmse", "ece", "mce", "ece_code", "mce_code")
# What ACP is held to on the XOR design.
LEAST_AUC, MOST_RMSE = 0.90, 0.33


def try_design(design: str, draw: int) -> Row:
    """Fit logistic regression, calibrate and test on 600 rows each of a design."""
    rng = np.random.default_rng([43, list(DESIGNS).index(design), draw])
    train, held, test = (DESIGNS[design](rng, ROWS) for _ in range(3))
    model = LogisticRegression().fit(*train)
    found = calibrate_all(model, train[0], held, test)
    # P(y = 1 | score) of the design itself: no calibrator can know more.
    direction = model.coef_[0] / np.linalg.norm(model.coef_[0])
    best = BEST[design](direction, test[0] @ direction)
    found[CEILING] = measure(test[1], best, ROWS)
    slope = float(np.degrees(np.arctan2(*direction[::-1]))) % 180.0
    row = {"design": design, "draw": draw, "methods": found}
    return row | {"degrees": round(slope, 1)}


def best_of_xor(direction: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return P(y = 1) of rows whose projection on the unit `direction` is `place`.

    A projected blob is normal about its projected centre.
    """
    centres = np.array([[1, 1], [-1, -1], [1, -1], [-1, 1]]) @ direction
    heights = -0.5 * ((place[:, None] - centres) / XOR_NOISE) ** 2
    ones, zeros = (np.logaddexp(*part.T) for part in (heights[:, :2], heights[:, 2:]))
    return expit(ones - zeros)


def best_of_circular(_: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return the same for the disc in a ring, where every direction is alike.

    A circle of radius r has density 1 / (pi sqrt(r^2 - u^2)) at u; over a range of
    radii that is a difference of inverse hyperbolic cosines.
    """
    u = np.maximum(np.abs(place), 1e-12)
    inner, outer = (np.arccosh(np.maximum(radius / u, 1.0)) for radius in (2.0, 4.0))
    return (outer - inner) / outer


BEST = {"circular": best_of_circular, "XOR": best_of_xor}


def calibrate_all(
    model: LogisticRegression,
    X_train: np.ndarray,
    held: tuple[np.ndarray, np.ndarray],
    test: tuple[np.ndarray, np.ndarray],
) -> dict[str, Measures]:
    """Return the test measures of all methods on a logistic regression's forecasts."""
    (X, y), (X_test, y_test) = held, test
    scores, new = (model.predict_proba(rows)[:, 1] for rows in (X, X_test))
    found = calibrate(SCORES_ALONE, (scores, y), (new, y_test))
    about, about_new = (cal.logistic_intervals(model, X_train, r) for r in (X, X_test))
    plain = cal.ACPCalibrator().fit(scores, y)
    learned = cal.ACPCalibrator().fit(scores, y, intervals=about)
    similar = cal.SBACalibrator().fit(X, scores, y)
    with warnings.catch_warnings():
        # Where an interval holds no row it is stretched to the nearest.
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        forecasts = {
            "ACP, 95 % intervals": plain.predict(new, about_new),
            "ACP, learned width": learned.predict(new, about_new),
            "SBA": similar.predict(X_test, new),
        }
    return found | {name: measure(y_test, p, len(y)) for name, p in forecasts.items()}


def try_set(path: Path, classifier: str, draw: int) -> Row:
    """Train, calibrate and test a classifier on parts of a set drawn at random."""
    name = path.name.split(".")[0]
    X, n_numbers, y = load_set(path, most_rows=None)
    n_train, n_held = REAL[name]
    order = np.random.default_rng([44, draw]).permutation(len(y))
    cuts = np.cumsum([n_train, n_held, n_held])
    train, held, test = np.split(order[: cuts[-1]], cuts[:2])
    model = make_classifier(classifier, n_numbers, X.shape[1]).fit(X[train], y[train])
    if classifier == "LR":
        before, last = model[:-1], model[-1]
        parts = [before.transform(X[rows]) for rows in (train, held, test)]
        found = calibrate_all(last, parts[0], (parts[1], y[held]), (parts[2], y[test]))
    else:
        scores, new = (
            np.clip(expit(model.decision_function(X[rows])), 1e-15, 1.0 - 1e-15)
            for rows in (held, test)
        )
        found = calibrate(SCORES_ALONE, (scores, y[held]), (new, y[test]))
    return {"ds": name, "classifier": classifier, "draw": draw, "methods": found}


def run_logistic(records: Records, folder: Path | None, draws: int) -> list[Row]:
    """Return the rows of both designs and, if there is a folder, of the two sets."""
    rows = [
        records.measure(
            f"logistic-{design}-{draw}",
            lambda key=(design, draw): try_design(*key),
        )
        for design in DESIGNS
        for draw in range(draws)
    ]
    return rows + [
        records.measure(
            f"logistic-{name}-{classifier}-{draw}",
            lambda key=(folder / f"{name}.csv.gz", classifier, draw): try_set(*key),
        )
        for name in (REAL if folder else ())
        for classifier in CLASSIFIERS
        for draw in range(min(draws, 10))
    ]


def print_logistic(rows: list[Row]) -> None:
    """Print a table for each design, and for each set and classifier."""
    for design in DESIGNS:
        some = [row for row in rows if row.get("design") == design]
        _print_means(f"{design}, logistic regression", some)
    _print_angles([row for row in rows if row.get("design") == "XOR"])
    _print_bars([row for row in rows if row.get("design") == "XOR"])
    for name in REAL:
        for classifier in CLASSIFIERS:
            key = (name, classifier)
            some = [r for r in rows if (r.get("ds"), r.get("classifier")) == key]
            if some:
                _print_means(f"{name}, {classifier}", some)


def _print_means(title: str, rows: list[Row]) -> None:
    means = {shown: method_means(rows, shown) for shown in SHOWN}
    names = list(rows[0]["methods"])
    body = [[name, *(short(means[shown][name]) for shown in SHOWN)] for name in names]
    head = ["method", *(LABELS[shown] for shown in SHOWN)]
    print_table(f"{title}: means of {len(rows)} draws", head, body)


def _print_angles(rows: list[Row]) -> None:
    """Print what the direction of the regression leaves to know on the XOR design."""
    names = (CEILING, "ACP, learned width", "ACP, 95 % intervals", "ABB", "KDE thesis")
    away = np.array([abs(row["degrees"] % 90.0 - 45.0) for row in rows])
    for shown in ("auc", "rmse"):
        body = []
        for low, high in pairwise(ANGLES):
            near = [row for row, a in zip(rows, away, strict=True) if low <= a < high]
            if near:
                means = method_means(near, shown)
                cells = [short(means[name]) for name in names]
                body.append([f"{low:g}-{high:g}", len(near), *cells])
        title = (
            f"XOR, logistic regression: {LABELS[shown]} by the degrees off a diagonal"
        )
        print_table(title, ["degrees", "draws", *names], body)


def _print_bars(rows: list[Row]) -> None:
    """Print what ACP is held to beside its means, those of ten draws and of all."""
    body = []
    for n in sorted({min(10, len(rows)), len(rows)}):
        for shown, sign, bar in (("auc", 1.0, LEAST_AUC), ("rmse", -1.0, MOST_RMSE)):
            means = method_means(rows[:n], shown)
            mean, most = means["ACP, learned width"], means[CEILING]
            label = f"{LABELS[shown]} of {n} draws, {'>=' if sign > 0 else '<='}"
            held = "yes" if sign * (mean - bar) >= 0.0 else "NO"
            body.append([label, short(bar, 2), short(mean), held, short(most)])
    title = "XOR, logistic regression: ACP with a learned width"
    print_table(title, ["what", "bar", "ACP", "held", CEILING], body)
