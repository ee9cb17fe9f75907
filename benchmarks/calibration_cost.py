"""Seconds of the ensemble calibrators against the number of scores.

    python benchmarks/calibration_cost.py                   # 10^3 to 10^7 scores
    python benchmarks/calibration_cost.py --most 6          # 10^3 to 10^6
    python benchmarks/calibration_cost.py --image FILE.png  # with a picture

Fits are from a summary, whose own time is a line too; isotonic regression is there to
compare with. Distinct scores as in calibration_speed.py, compiled code warm, median
of three calls. Rerun to resume; one JSON line per calibrator and number of scores.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
from calibration_speed import make_scores
from records import Records, median_seconds
from thesis_tables import print_table

import calibration as cal

mpl.use("Agg")

SUMMARY = "ScoreSummary"
METHODS: dict[str, Callable[[], cal.ScoreCalibrator]] = {
    "isotonic": cal.IsotonicCalibrator,
    "SBB": cal.SBBCalibrator,
    "ABB": cal.ABBCalibrator,
    "BBQ": cal.BBQCalibrator,
    "ENIR": cal.ENIRCalibrator,
    "ELiTE": cal.ELiTECalibrator,
    "KDE": cal.KDECalibrator,
    "KDE thesis": cal.NadarayaWatsonCalibrator,
    "DPM": cal.DPMCalibrator,
}
# Half decades from the first size.
LEAST = 3.0


def measure(records: Records, n: int) -> None:
    """Time the summary of n scores and each fit from it."""
    missing = [
        name for name in (SUMMARY, *METHODS) if _key(name, n) not in records.rows
    ]
    if not missing:
        return
    scores, y = make_scores(n)
    summary = cal.ScoreSummary.from_scores(scores, y)
    calls: dict[str, Callable[[], object]] = {
        SUMMARY: lambda: cal.ScoreSummary.from_scores(scores, y)
    }
    for name, make in METHODS.items():
        make().fit(*make_scores(10_000, 1))
        calls[name] = lambda make=make: make().fit_summary(summary)
    for name in missing:
        call = calls[name]
        records.measure(
            _key(name, n), lambda call=call: {"n": n, "s": median_seconds(call, 3)}
        )


def _key(name: str, n: int) -> str:
    return f"{name}-{n}"


def print_seconds(records: Records, sizes: list[int]) -> None:
    """Print seconds at each decade, and the exponent of n between the last two."""
    decades = sizes[::2]
    powers = [round(np.log10(n)) for n in decades]
    body = []
    for name in (SUMMARY, *METHODS):
        seconds = [records.rows[_key(name, n)]["s"] for n in decades]
        exponent = np.log10(seconds[-1] / seconds[-2])
        body.append([name, *(f"{s:.2g}" for s in seconds), f"{exponent:.2f}"])
    title = (
        "Seconds of a fit from n scores; exponent of n from "
        f"10^{powers[-2]} to 10^{powers[-1]}"
    )
    print_table(title, ["method", *(f"10^{k}" for k in powers), "exponent"], body)


def draw(records: Records, sizes: list[int], path: Path) -> None:
    """Draw seconds against n on logarithmic axes."""
    from matplotlib import pyplot as plt

    fig, ax = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
    for place, name in enumerate((SUMMARY, *METHODS)):
        seconds = [records.rows[_key(name, n)]["s"] for n in sizes]
        grey = name in (SUMMARY, "isotonic")
        ax.plot(
            sizes,
            seconds,
            marker=".",
            # The eighth colour is a grey.
            color="0.5" if grey else f"C{place - 2 + (place > 8)}",
            ls="--" if name == SUMMARY else ":" if grey else "-",
            label="building the summary" if name == SUMMARY else name,
        )
    linear = np.array([1e-8, 1e-8]) * [sizes[0], sizes[-1]]
    ax.plot([sizes[0], sizes[-1]], linear, color="0.8", lw=1, label="slope of n")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("Scores")
    ax.set_ylabel("Seconds")
    fig.legend(frameon=False, loc="outside right center")
    fig.savefig(path, dpi=80)
    plt.close(fig)


def main() -> None:
    """Run or resume the benchmark, print its table and draw its picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=float, default=7.0, help="log10 of the scores")
    parser.add_argument("--image", type=Path, help="file to draw into")
    parser.add_argument("--run", default="latest", help="name of the run to resume")
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    options = parser.parse_args()
    steps = round(2.0 * (options.most - LEAST))
    sizes = [round(10.0 ** (LEAST + 0.5 * step)) for step in range(steps + 1)]
    records = Records("calibration_cost", options.run, fresh=options.fresh)
    for n in sizes:
        measure(records, n)
    print_seconds(records, sizes)
    if options.image:
        draw(records, sizes, options.image)


if __name__ == "__main__":
    main()
