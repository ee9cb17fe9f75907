"""Tables of thesis.py, printed as reStructuredText."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from thesis_designs import DESIGNS, GAINS, KERNELS, KINDS, LABELS, MEASURES, RAW

from calibration import MethodComparison, compare_methods

Row = dict[str, Any]

CLASSIFIERS = ("LR", "SVM", "NB")
SHOWN = ("rmse", "auc", "ece", "mce")
# The simulations show these, a table each: what is lost, and both forms of the errors.
SIMULATED = (("rmse", "auc", "acc"), ("ece", "mce", "ece_code", "mce_code"))
# The comparisons of the thesis by where it shows them, each against its last.
GROUPS = {
    "figures 6-10": (RAW, "histogram", "Platt", "isotonic", "BBQ"),
    "tables 17-19": ("isotonic", "BBQ", "ENIR"),
    "figures 11-15": (RAW, "Platt", "histogram", "isotonic", "BBQ", "ELiTE"),
    "tables 23-25": ("KDE thesis", "DPM", "ENIR", "ELiTE"),
}
ENSEMBLES = ("SBB", "ABB", "BBQ", "ENIR", "ELiTE")
ANGLES = (0.0, 10.0, 20.0, 30.0, 45.0 + 1e-9)
KERNEL_HEADS = {"linear": "lin", "quadratic": "quad", "RBF": "RBF"}
# Rows, a head for the names first.
Cells = Sequence[Sequence[object]]


def print_table(title: str, head: Sequence[str], rows: Cells) -> None:
    """Print a simple table under its title."""
    cells = [[str(cell) for cell in row] for row in [head, *rows]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rule = "  ".join("=" * width for width in widths)
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
    print("\n".join(["", f"**{title}**", "", rule, lines[0], rule, *lines[1:], rule]))


def short(value: float, digits: int = 3) -> str:
    """Return a number without the zero before its point."""
    text = f"{value:.{digits}f}"
    return text[1:] if text.startswith("0.") else text


def scores_name(held_out: bool) -> str:
    """Return which scores calibrators were fitted on, for a title."""
    return "held-out scores" if held_out else "scores of the training rows"


def method_means(rows: list[Row], measure: str) -> dict[str, float]:
    """Return the mean of a measure over rows for each of their methods."""
    names = rows[0]["methods"]
    return {
        name: float(np.mean([row["methods"][name][measure] for row in rows]))
        for name in names
    }


def print_simulation(rows: list[Row]) -> None:
    """Print means over draws, two tables per design."""
    for design in DESIGNS:
        for shown in SIMULATED:
            columns, head = [], ["method"]
            for measure in shown:
                for kernel in KERNELS:
                    key = (design, kernel)
                    some = [r for r in rows if (r["design"], r["kernel"]) == key]
                    columns.append(method_means(some, measure))
                    head.append(f"{LABELS[measure]} {KERNEL_HEADS[kernel]}")
            body = [
                [name, *(short(means[name]) for means in columns)] for name in KINDS
            ]
            print_table(f"{design}: means of {len(some)} draws", head, body)


def print_angles(rows: list[Row]) -> None:
    """Print what the direction of the linear machine decides on the XOR design.

    Along a diagonal of the blobs its scores part one class from the other's two ends;
    along an axis they part nothing.
    """
    some = [row for row in rows if (row["design"], row["kernel"]) == ("XOR", "linear")]
    away = np.array([abs(row["degrees"] % 90.0 - 45.0) for row in some])
    body = []
    for low, high in pairwise(ANGLES):
        near = [row for row, a in zip(some, away, strict=True) if low <= a < high]
        if near:
            means = method_means(near, "rmse")
            cells = [short(means[name]) for name in ("raw", "isotonic", *ENSEMBLES)]
            body.append([f"{low:g}-{high:g}", len(near), *cells])
    title = "XOR, linear kernel: RMSE by the degrees off a diagonal"
    print_table(title, ["degrees", "draws", "raw", "isotonic", *ENSEMBLES], body)


def print_sizes(rows: list[Row]) -> None:
    """Print means over draws against the number of calibration rows."""
    for same in (False, True):
        for kernel in ("linear", "quadratic"):
            some = [r for r in rows if (r["same"], r["kernel"]) == (same, kernel)]
            which = "the training rows" if same else "other rows than the training's"
            for measure in ("rmse", "auc"):
                title = f"{LABELS[measure]}, {kernel} kernel, calibrated on {which}"
                _print_sizes(some, measure, title)


def _print_sizes(rows: list[Row], measure: str, title: str) -> None:
    means = size_means(rows, measure)
    body = [[name, *(short(v) for v in means[name])] for name in means.columns]
    print_table(f"{title}: means of {len(rows)} draws", ["method", *means.index], body)


def size_means(rows: list[Row], measure: str) -> pd.DataFrame:
    """Return means over draws, one row per size and one column per method."""
    sizes = list(rows[0]["sizes"])
    return pd.DataFrame(
        [
            method_means([{"methods": row["sizes"][n]} for row in rows], measure)
            for n in sizes
        ],
        index=sizes,
    )


def print_histograms(rows: list[Row]) -> None:
    """Print table 26, with test errors of few and of many rows."""
    for kernel in ("linear", "quadratic"):
        some = [row for row in rows if row["kernel"] == kernel]
        sizes = list(some[0]["sizes"])
        body = [
            [f"{LABELS[measure]}, {test} test rows"]
            + [
                short(np.mean([row["sizes"][n][key][measure] for row in some]), 4)
                for n in sizes
            ]
            for measure in ("auc", "mce", "ece")
            for key, test in (("few", "10^4"), ("many", "10^6"))
        ]
        heads = ["raw", *(f"10^{len(n) - 1}" for n in sizes[1:])]
        title = f"Histogram, n^(1/3) bins, {kernel} kernel: means of {len(some)} draws"
        print_table(title, ["measure", *heads], body)


def losses(
    rows: list[Row], measure: str, classifier: str, *, held_out: bool
) -> pd.DataFrame:
    """Return a measure by set (rows) and method (columns)."""
    kept = {
        row["ds"]: {name: row["methods"][name][measure] for name in row["methods"]}
        for row in rows
        if (row["classifier"], row["held_out"]) == (classifier, held_out)
    }
    return pd.DataFrame(kept).T


def compare(
    rows: list[Row],
    measure: str,
    classifier: str,
    names: Sequence[str],
    *,
    held_out: bool,
    control: str | None = None,
) -> MethodComparison:
    """Return the rank tests of some methods over the sets."""
    table = losses(rows, measure, classifier, held_out=held_out)[list(names)]
    sign = -1.0 if measure in GAINS else 1.0
    return compare_methods(sign * table, control=control)


def print_pairs(rows: list[Row]) -> None:
    """Print tables 8 to 13, ABB against BBQ and K2 against BDeu, by Wilcoxon's test.

    And what the thesis did not try: ELiTE on log-odds.
    """
    pairs = {
        "ABB against BBQ, K2": ("BBQ K2", "ABB"),
        "ABB against BBQ, BDeu": ("BBQ", "ABB BDeu"),
        "BDeu against K2, BBQ": ("BBQ K2", "BBQ"),
        "BDeu against K2, ABB": ("ABB", "ABB BDeu"),
        "ELiTE on log-odds against scores": ("ELiTE", "ELiTE odds"),
    }
    for held_out in (False, True):
        for title, pair in pairs.items():
            body = [
                [LABELS[measure], *_pair_cells(rows, measure, pair, held_out)]
                for measure in MEASURES
            ]
            head = ["measure"]
            for name in CLASSIFIERS:
                head += [f"{name}: {pair[0]}", pair[1], "p"]
            print_table(f"{title}; {scores_name(held_out)}", head, body)


def _pair_cells(
    rows: list[Row], measure: str, pair: tuple[str, str], held_out: bool
) -> list[str]:
    """Return for each classifier both means over the sets and Wilcoxon's p."""
    cells = []
    for name in CLASSIFIERS:
        table = losses(rows, measure, name, held_out=held_out)[list(pair)]
        tests = compare(rows, measure, name, pair, held_out=held_out)
        cells += [short(mean) for mean in table.mean()] + [_p_cell(tests.p_value)]
    return cells


def _p_cell(p: float) -> str:
    """Return a p-value, with a star if below .05."""
    return short(p) + (" \\*" if p < 0.05 else "")


def print_ranks(rows: list[Row]) -> None:
    """Print average ranks: the thesis's comparisons, then all methods."""
    for held_out in (False, True):
        for place, names in GROUPS.items():
            _print_ranks(rows, names, held_out, names[-1], place)
        _print_ranks(rows, KINDS, held_out, None, "all methods")


def _print_ranks(
    rows: list[Row],
    names: Sequence[str],
    held_out: bool,
    control: str | None,
    place: str,
) -> None:
    """Print average ranks and main tests; marks are differences from the control."""
    body = []
    for classifier in CLASSIFIERS:
        for measure in MEASURES:
            tests = compare(
                rows, measure, classifier, names, held_out=held_out, control=control
            )
            cells = rank_cells(tests)
            name = f"{classifier} {LABELS[measure]}"
            body.append([name, *cells, f"{tests.p_value:.0e}"])
    against = f"against {control or 'the best'} ({place})"
    title = f"Average ranks on {tests.n_sets} sets, {scores_name(held_out)}, {against}"
    print_table(title, ["rank in", *names, "p"], body)


def rank_cells(tests: MethodComparison) -> list[str]:
    """Return average ranks: a star marks what is worse than the control, ! better."""
    ranks = tests.average_ranks
    better = ranks < ranks[tests.names.index(tests.control)]
    marks = np.where(tests.different, np.where(better, " !", " \\*"), "")
    return [short(rank, 2) + mark for rank, mark in zip(ranks, marks, strict=True)]


def print_scores_compared(rows: list[Row]) -> None:
    """Print what held-out scores gain: means over the sets of both, Wilcoxon's p."""
    for measure in ("rmse", "log_loss"):
        body = []
        for method in KINDS:
            cells: list[str] = [method]
            for name in CLASSIFIERS:
                both = pd.DataFrame(
                    {
                        held_out: losses(rows, measure, name, held_out=held_out)[method]
                        for held_out in (False, True)
                    }
                )
                p = compare_methods(both).p_value
                cells += [short(mean) for mean in both.mean()] + [_p_cell(p)]
            body.append(cells)
        head = ["method"]
        for name in CLASSIFIERS:
            head += [f"{name}: training", "held-out", "p"]
        print_table(f"{LABELS[measure]} by the scores calibrated on", head, body)


def print_values(rows: list[Row]) -> None:
    """Print how many distinct forecasts of test rows each method gives."""
    body = [
        [method, *(f"{_median_values(rows, name, method):.0f}" for name in CLASSIFIERS)]
        for method in KINDS
    ]
    title = (
        "Distinct forecasts of a fold's test rows: medians over sets, held-out scores"
    )
    print_table(title, ["method", *CLASSIFIERS], body)


def _median_values(rows: list[Row], classifier: str, method: str) -> float:
    return float(losses(rows, "values", classifier, held_out=True)[method].median())


def print_seconds(rows: list[Row]) -> None:
    """Print the seconds of all fits on all sets, the last line of tables 23 to 25."""
    body = []
    for method in KINDS:
        times = [
            losses(rows, "s", name, held_out=held_out)[method].sum()
            for held_out in (False, True)
            for name in CLASSIFIERS
        ]
        body.append([method, *(f"{seconds:.2f}" for seconds in times)])
    head = [
        f"{name}: {kind}" for kind in ("training", "held-out") for name in CLASSIFIERS
    ]
    print_table("Processor's seconds of all fits", ["method", *head], body)


def print_changes(rows: list[Row]) -> None:
    """Print tables 20 and 22: 95 % intervals of the mean change against raw scores."""
    for held_out in (False, True):
        for method in ("ENIR", "ELiTE"):
            body = [
                [LABELS[measure]]
                + [
                    change(losses(rows, measure, name, held_out=held_out), method)
                    for name in CLASSIFIERS
                ]
                for measure in MEASURES
            ]
            title = (
                f"Relative change by {method}, {scores_name(held_out)}: "
                "95 % interval of the mean; median"
            )
            print_table(title, ["measure", *CLASSIFIERS], body)


def change(table: pd.DataFrame, method: str) -> str:
    """Return the 95 % t-interval of mean (method - raw) / raw, eq. 4.1, and median."""
    raw = table[RAW]
    changes = ((table[method] - raw) / raw)[raw > 0.0]
    n = len(changes)
    mean = float(changes.mean())
    reach = float(stats.t.ppf(0.975, n - 1) * changes.std() / np.sqrt(n))
    return f"[{mean - reach:+.3f}, {mean + reach:+.3f}]; {changes.median():+.3f}"
