"""The simulated parts of thesis.py: three kernels, calibration sizes, histograms.

And the bars that the calibrators are held to with the three kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from records import Records
from thesis_designs import (
    DESIGNS,
    KERNELS,
    KINDS,
    calibrate,
    draw_circular,
    fit_svm,
    measure,
    svm_scores,
)
from thesis_tables import ENSEMBLES, print_table, short

import calibration as cal

Row = dict[str, Any]

ROWS = 1000
SIZES = (10, 20, 50, 100, 500, 1000, 2000, 5000)
BINNED_SIZES = (10**2, 10**3, 10**4, 10**5, 10**6)
TEST_ROWS = 10_000
# Enough for the noise of a measured error to be far below the error.
MANY_TEST_ROWS = 10**6
SHAPES = ("linear", "quadratic")
# RMSE with the wrong (linear) kernel, at most; isotonic's at least.
MOST_RMSE = {
    "circular": {"SBB": 0.40, "ABB": 0.40, "BBQ": 0.39, "ENIR": 0.39, "ELiTE": 0.39},
    "XOR": dict.fromkeys(ENSEMBLES, 0.36),
}
LEAST_ISOTONIC = 0.44
# With the right kernels: RMSE over isotonic's, AUC below that of the raw scores.
MOST_EXCESS = 0.02
MOST_AUC_LOSS = 0.005
RIGHT_KERNELS = ("quadratic", "RBF")


def simulate(design: str, kernel: str, draw: int) -> Row:
    """Fit SVM and calibrators on the same rows of a design, measure on as many new.

    The data of a draw do not depend on the kernel.
    """
    rng = np.random.default_rng([40, list(DESIGNS).index(design), draw])
    X, y = DESIGNS[design](rng, ROWS)
    X_test, y_test = DESIGNS[design](rng, ROWS)
    model = fit_svm(kernel, X, y)
    found = calibrate(
        KINDS, (svm_scores(model, X), y), (svm_scores(model, X_test), y_test)
    )
    row = {"design": design, "kernel": kernel, "draw": draw, "methods": found}
    if kernel == "linear":
        # All that the linear machine can choose; the axes are at 0 and 90 degrees.
        slope = np.degrees(np.arctan2(*model.coef_[0][::-1])) % 180.0
        row["degrees"] = round(float(slope), 1)
    return row


def try_sizes(kernel: str, draw: int, *, same: bool) -> Row:
    """Measure on the circular design while the calibration rows grow.

    With `same`, the machine is trained on the calibration rows; else on 5000 others.
    """
    rng = np.random.default_rng([41, draw])
    X_train, y_train = draw_circular(rng, SIZES[-1])
    X, y = draw_circular(rng, SIZES[-1])
    X_test, y_test = draw_circular(rng, TEST_ROWS)
    model = None if same else fit_svm(kernel, X_train, y_train)
    found = {}
    for n in SIZES:
        # The first rows of each class: ten may not be all of one.
        rows = np.flatnonzero(
            np.cumsum(y == 1) * y + np.cumsum(y == 0) * (1 - y) <= n / 2
        )
        used = model or fit_svm(kernel, X[rows], y[rows])
        found[str(n)] = calibrate(
            KINDS,
            (svm_scores(used, X[rows]), y[rows]),
            (svm_scores(used, X_test), y_test),
        )
    return {"kernel": kernel, "draw": draw, "same": same, "sizes": found}


def try_histograms(kernel: str, draw: int) -> Row:
    """Measure histogram binning with n^(1/3) bins while n grows (circular design).

    Test errors are those of 10 000 rows, as in the thesis, and of 10^6.
    """
    rng = np.random.default_rng([42, draw])
    model = fit_svm(kernel, *draw_circular(rng, ROWS))
    X, y = draw_circular(rng, BINNED_SIZES[-1])
    X_test, y_test = draw_circular(rng, MANY_TEST_ROWS)
    scores, test_scores = svm_scores(model, X), svm_scores(model, X_test)
    found = {"raw": _errors(y_test, test_scores, ROWS)}
    for n in BINNED_SIZES:
        histogram = cal.HistogramCalibrator("auto").fit(scores[:n], y[:n])
        found[str(n)] = _errors(y_test, histogram.predict(test_scores), n)
    return {"kernel": kernel, "draw": draw, "sizes": found}


def _errors(y: np.ndarray, p: np.ndarray, n: int) -> Row:
    few = slice(TEST_ROWS)
    return {"few": measure(y[few], p[few], n), "many": measure(y, p, n)}


def run_simulation(records: Records, draws: int) -> list[Row]:
    """Return the rows of the first part, tables 5, 7, 14 and 15."""
    return [
        records.measure(
            f"simulation-{design}-{kernel}-{draw}",
            lambda key=(design, kernel, draw): simulate(*key),
        )
        for design in DESIGNS
        for kernel in KERNELS
        for draw in range(draws)
    ]


def run_sizes(records: Records, draws: int) -> list[Row]:
    """Return the rows of figures 16 to 19."""
    return [
        records.measure(
            f"sizes-{'same' if same else 'separate'}-{kernel}-{draw}",
            lambda key=(kernel, draw), same=same: try_sizes(*key, same=same),
        )
        for same in (False, True)
        for kernel in SHAPES
        for draw in range(draws)
    ]


def run_histograms(records: Records, draws: int) -> list[Row]:
    """Return the rows of table 26."""
    return [
        records.measure(
            f"histogram-{kernel}-{draw}",
            lambda key=(kernel, draw): try_histograms(*key),
        )
        for kernel in SHAPES
        for draw in range(draws)
    ]


def print_bars(rows: list[Row]) -> None:
    """Print every bar beside means and standard errors of ten draws and of all."""
    head, columns = ["what", "bar"], []
    for n in sorted({min(10, _n_draws(rows)), _n_draws(rows)}):
        columns.append(_bar_lines([row for row in rows if row["draw"] < n]))
        head += [f"{n} draws", "held"]
    what = [line[:2] for line in columns[0]]
    cells = [
        sum((lines[k][2:] for lines in columns), what[k]) for k in range(len(what))
    ]
    print_table("Bars, means over draws ± standard errors", head, cells)


def _n_draws(rows: list[Row]) -> int:
    return 1 + max(row["draw"] for row in rows)


def _bar_lines(rows: list[Row]) -> list[list[str]]:
    """Return a line for each bar: what, bar, mean ± error, whether held."""
    body = []
    for design, limits in MOST_RMSE.items():
        for name, most in limits.items():
            values = _values(rows, design, "linear", name, "rmse")
            body.append(_line(f"{design}, linear: RMSE of {name}", values, "<=", most))
        values = _values(rows, design, "linear", "isotonic", "rmse")
        what = f"{design}, linear: RMSE of isotonic"
        body.append(_line(what, values, ">", LEAST_ISOTONIC))
    for design in MOST_RMSE:
        for kernel in RIGHT_KERNELS:
            body += _right_kernel_lines(rows, design, kernel)
    return body


def _right_kernel_lines(rows: list[Row], design: str, kernel: str) -> list[list[str]]:
    """Return the lines of the method that is worst in each of the two bars."""
    isotonic = _values(rows, design, kernel, "isotonic", "rmse")
    raw = _values(rows, design, kernel, "raw", "auc")
    excess = {
        name: _values(rows, design, kernel, name, "rmse") - isotonic
        for name in ENSEMBLES
    }
    loss = {
        name: raw - _values(rows, design, kernel, name, "auc") for name in ENSEMBLES
    }
    lines = []
    for what, found, most in (
        ("RMSE over isotonic's", excess, MOST_EXCESS),
        ("AUC lost", loss, MOST_AUC_LOSS),
    ):
        worst = max(found, key=lambda name: found[name].mean())
        line = _line(
            f"{design}, {kernel}: {what}, worst of five", found[worst], "<=", most
        )
        line[2] += f" {worst}"
        lines.append(line)
    return lines


def _values(
    rows: list[Row], design: str, kernel: str, method: str, measure: str
) -> np.ndarray:
    """Return a measure of a method, one value per draw."""
    return np.array(
        [
            row["methods"][method][measure]
            for row in rows
            if (row["design"], row["kernel"]) == (design, kernel)
        ]
    )


def _line(what: str, values: np.ndarray, sign: str, limit: float) -> list[str]:
    mean = float(values.mean())
    error = float(values.std(ddof=1) / np.sqrt(len(values)))
    held = mean <= limit if sign == "<=" else mean > limit
    bar = f"{sign} {short(limit)}"
    figure = f"{short(mean, 4)} ± {short(error, 4)}"
    return [what, bar, figure, "yes" if held else "NO"]
