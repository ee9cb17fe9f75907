"""Bars that the calibrators are held to on the simulated part of thesis.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from thesis_tables import ENSEMBLES, print_table, short

Row = dict[str, Any]

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


def print_bars(rows: list[Row]) -> None:
    """Print every bar beside the mean over draws and its standard error."""
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
    print_table("Bars", ["what", "bar", "measured", "s.e.", "held"], body)


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
        label = f"{design}, {kernel}: {what}, worst of five ({worst})"
        lines.append(_line(label, found[worst], "<=", most))
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
    return [what, bar, short(mean, 4), short(error, 4), "yes" if held else "NO"]
