"""Calibrating from 100 labels of 20 000 rows, of which 2 % are events.

Rows are drawn at random, or spread over the scores (`draw_rows_to_label`), and then
counted in four ways: each as one; by the inverse of its chance, adding up to the number
drawn, to Kish's effective number (sum w)^2 / sum w^2, or to the population. Told is the
log loss on all rows above that of the same calibrator with all labels: the mean over
the draws, its share of random rows', and the p-value of a paired t-test against them.
Scores are too bold, shifted by log-odds of 3, bent, timid with noise as a forest's, or
far too sure as those of naive Bayes.

    python benchmarks/scarce_labels.py
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from records import Records
from scipy.special import expit
from scipy.stats import ttest_rel

import calibration as cal

N, LABELS = 20_000, 100
RANDOM, SPREAD = "random rows", "spread, each as one"

# Of a standard normal x: true log-odds, and log-odds that scores tell.
WORLDS: dict[str, Callable[..., Any]] = {
    "bold": lambda x, _: (2.0 * x - 5.6, 4.0 * x - 7.2),
    "shifted": lambda x, _: (2.0 * x - 5.6, 2.0 * x - 2.6),
    "bent": lambda x, _: (2.2 * x + 0.25 * x**2 - 6.5, 2.0 * x - 1.0),
    "forest": lambda x, noise: (1.6 * x - 5.2, 0.8 * x - 3.4 + 0.3 * noise),
    "naive": lambda x, noise: (1.6 * x - 5.2, 6.4 * x - 10.8 + 2.0 * noise),
}
CALIBRATORS: dict[str, Callable[[], Any]] = {
    "Platt": cal.PlattCalibrator,
    "logistic": cal.LogisticCalibrator,
    "beta": cal.BetaCalibrator,
    "Venn-Abers": cal.VennAbersCalibrator,
}


def draw_world(name: str, draw: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and labels of all rows."""
    rng = np.random.default_rng([18, draw])
    x, noise = rng.normal(size=(2, N))
    truth, told = WORLDS[name](x, noise)
    # A forest counts its trees.
    scores = np.round(expit(told), 2) if name == "forest" else expit(told)
    return scores, (rng.uniform(size=N) < expit(truth)).astype(int)


def ways(
    scores: np.ndarray, draw: int
) -> Iterator[tuple[str, np.ndarray, np.ndarray | None]]:
    """Yield names, rows and weights."""
    yield RANDOM, np.random.default_rng(draw).choice(N, LABELS, replace=False), None
    drawn = cal.draw_rows_to_label(scores, LABELS, random_state=draw)
    weight = drawn.weight
    yield SPREAD, drawn.rows, None
    yield "weights to the number drawn", drawn.rows, weight
    kish = LABELS / float(weight @ weight)
    yield "weights to Kish's number", drawn.rows, kish * weight
    yield "weights to the population", drawn.rows, N / LABELS * weight


def run_draw(world: str, calibrator: str, draw: int) -> dict[str, Any]:
    """Return the log loss above that with all labels, by way."""
    scores, y = draw_world(world, draw)

    def loss(rows: Any, weight: np.ndarray | None) -> float:
        model = CALIBRATORS[calibrator]().fit(scores[rows], y[rows], weight)
        return cal.log_loss(y, model.predict(scores), clip=1e-15)

    full = loss(slice(None), None)
    return {
        "events": int(y.sum()),
        **{name: loss(rows, w) - full for name, rows, w in ways(scores, draw)},
    }


def main() -> None:
    """Run what is not recorded yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--fresh", action="store_true")
    given = parser.parse_args()
    records = Records("scarce_labels", "default", fresh=given.fresh)
    print(f"{'scores':9}{'calibrator':11}{'way':29}{'above':>8}{'share':>7}{'p':>9}")
    for world in given.worlds:
        for calibrator in CALIBRATORS:
            rows = [
                records.measure(
                    f"{world}/{calibrator}/{draw}",
                    lambda key=(world, calibrator, draw): run_draw(*key),
                )
                for draw in range(given.draws)
            ]
            _print_ways(world, calibrator, pd.DataFrame(rows))


def _print_ways(world: str, calibrator: str, above: pd.DataFrame) -> None:
    """Print a line for each way of drawing and weighing."""
    for way in above.columns[above.columns.get_loc("events") + 1 :]:
        mean = above[way].mean()
        share, p = mean / above[RANDOM].mean(), ""
        if way != RANDOM:
            test = ttest_rel(above[way], above[RANDOM], alternative="less")
            p = f"{test.pvalue:9.0e}"
        print(f"{world:9}{calibrator:11}{way:29}{mean:8.4f}{share:7.2f}{p}")


if __name__ == "__main__":
    main()
