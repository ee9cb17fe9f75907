"""Pictures of thesis.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from PIL import Image
from thesis_designs import KINDS, LABELS
from thesis_tables import CLASSIFIERS, SHOWN, compare, scores_name, size_means

from calibration import plot_ranks

Row = dict[str, Any]

# What is drawn ranks of; "ranks" forms of the errors are in tables.
RANKED = ("rmse", "log_loss", "auc", "acc") + ("ece", "mce", "ece_code", "mce_code")
DPI = 75
COLOURS = 64
# A line each in the pictures of sizes; what is left out lies close to one of them.
LINES = {
    "raw": ("0.6", "--"),
    "Platt": ("0.2", ":"),
    "histogram": ("C5", "-"),
    "isotonic": ("C3", "-"),
    "ABB": ("C4", "-"),
    "BBQ": ("C0", "-"),
    "ENIR": ("C2", "-"),
    "ELiTE": ("C1", "-"),
}


def draw_sizes(rows: list[Row], folder: Path) -> None:
    """Draw figures 16 to 19: measures against calibration rows, a file per kernel."""
    for kernel in ("linear", "quadratic"):
        fig, axes = plt.subplots(
            2, len(SHOWN), figsize=(13, 6), layout="constrained", sharex=True
        )
        for line, same in zip(axes, (False, True), strict=True):
            some = [r for r in rows if (r["same"], r["kernel"]) == (same, kernel)]
            for ax, measure in zip(line, SHOWN, strict=True):
                means = size_means(some, measure)
                for name, (color, style) in LINES.items():
                    ax.plot(
                        means.index.astype(int),
                        means[name],
                        color=color,
                        ls=style,
                        lw=1.6,
                        marker=".",
                        label=name,
                    )
                ax.set_xscale("log")
                ax.set_title(LABELS[measure])
            which = "the training rows" if same else "other rows"
            line[0].set_ylabel(f"calibrated on {which}")
        fig.supxlabel("Calibration rows", fontsize="medium")
        fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center")
        _save(fig, folder / f"thesis_sizes_{kernel}.png")


def draw_ranks(rows: list[Row], folder: Path) -> None:
    """Draw rank diagrams of all methods, a file per classifier and kind of scores."""
    for held_out in (False, True):
        for name in CLASSIFIERS:
            fig, axes = plt.subplots(4, 2, figsize=(13.5, 15), layout="constrained")
            fig.get_layout_engine().set(w_pad=0.2, h_pad=0.12)
            for ax, measure in zip(axes.flat, RANKED, strict=True):
                tests = compare(rows, measure, name, KINDS, held_out=held_out)
                plot_ranks(tests, ax=ax)
                ax.set_xlabel(f"Average rank in {LABELS[measure]} (1 is best)")
            fig.suptitle(f"{name} on {tests.n_sets} sets, {scores_name(held_out)}")
            kind = "held_out" if held_out else "training"
            _save(fig, folder / f"thesis_ranks_{name.lower()}_{kind}.png")


def _save(fig: Figure, path: Path) -> None:
    """Save a figure with few colours, which line drawings do with."""
    fig.savefig(path, dpi=DPI)
    plt.close(fig)
    with Image.open(path) as drawn:
        small = drawn.convert("RGB").quantize(COLOURS)
    small.save(path, optimize=True)
