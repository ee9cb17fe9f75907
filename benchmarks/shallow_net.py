"""The thesis's shallow nets to the letter, beside `ShallowNetCalibrator`.

    python benchmarks/shallow_net.py --data DIR
    python benchmarks/shallow_net.py --data DIR --seeds 0 --sets vehicle cmc

To the letter: ten nets with one hidden layer of 4 to 7 rectified units on the
probabilities, trained by AdaGrad at a rate of 0.1 on batches of ten rows, their outputs
averaged. The thesis does not say for how long: 200 batches were the default of its
library (skflow), and 20 passes over the rows are shown beside them. Tables, splits and
scores are those of `multiclass.py`, with naive Bayes and forests.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
from multiclass import _predict, load, make_case, score
from scipy.special import softmax

import calibration as cal

SETS = (
    "vehicle",
    "vowel",
    "waveform",
    "cmc",
    "satimage",
    "splice",
    "page_blocks",
    "car",
)
CLASSIFIERS = ("naive Bayes", "forest")
RATE, BATCH, START_OF_SUM = 0.1, 10, 0.1

Answer = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def train_to_the_letter(
    p: np.ndarray, y: np.ndarray, n_batches: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Return weights and shifts of both layers of one net."""
    n, k = p.shape
    h = int(rng.integers(4, 8))
    theta = [_glorot(rng, k, h), np.zeros(h), _glorot(rng, h, k), np.zeros(k)]
    squares = [np.full_like(part, START_OF_SUM) for part in theta]
    passes = -(-n_batches * BATCH // n)
    order = np.concatenate([rng.permutation(n) for _ in range(passes)])
    for t in range(n_batches):
        rows = order[BATCH * t : BATCH * (t + 1)]
        x = p[rows]
        units = np.maximum(x @ theta[0] + theta[1], 0.0)
        residual = softmax(units @ theta[2] + theta[3], axis=1)
        residual[np.arange(len(rows)), y[rows]] -= 1.0
        residual /= len(rows)
        inner = (residual @ theta[2].T) * (units > 0.0)
        slopes = (x.T @ inner, inner.sum(0), units.T @ residual, residual.sum(0))
        for place, slope in enumerate(slopes):
            squares[place] += slope**2
            theta[place] -= RATE * slope / np.sqrt(squares[place])
    return theta


def _glorot(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    reach = np.sqrt(6.0 / (rows + columns))
    return rng.uniform(-reach, reach, size=(rows, columns))


def to_the_letter(n_passes: int | None) -> Answer:
    """Return the thesis's recipe, of 200 batches or of so many passes."""

    def answer(p: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
        rng = np.random.default_rng(0)
        n_batches = 200 if n_passes is None else max(1, n_passes * len(y) // BATCH)
        total = np.zeros_like(test)
        for _ in range(10):
            net = train_to_the_letter(p, y, n_batches, rng)
            units = np.maximum(test @ net[0] + net[1], 0.0)
            total += softmax(units @ net[2] + net[3], axis=1)
        return total / 10

    return answer


def by(make: Callable[[], cal.MulticlassCalibrator]) -> Answer:
    """Return what a calibrator of this package answers."""
    return lambda p, y, test: make().fit(p, y).predict(test)


METHODS: dict[str, Answer] = {
    "nothing": by(cal.MulticlassIdentityCalibrator),
    "temperature": by(lambda: cal.SoftmaxCalibrator("temperature")),
    "SMS, penalty 1": by(lambda: cal.SoftmaxCalibrator("matrix", 1.0)),
    "SMS, auto": by(cal.SoftmaxCalibrator),
    "to the letter, 200 batches": to_the_letter(None),
    "to the letter, 20 passes": to_the_letter(20),
    "ShallowNetCalibrator": by(cal.ShallowNetCalibrator),
}


def main() -> None:
    """Run the comparison and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of tables")
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1])
    options = parser.parse_args()
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in METHODS}
    kinds = []
    for name, kind, seed in product(options.sets, CLASSIFIERS, options.seeds):
        case = make_case(*load(options.data / f"{name}.csv.gz"), kind, seed)
        p, test = _predict(case.model, case.x), _predict(case.model, case.test_x)
        kinds.append(kind)
        for method, answer in METHODS.items():
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                told = answer(p, case.y, test)
            seconds = time.process_time() - start
            found[method].append((*score(case.test_y, told), seconds))
    print(f"{len(kinds)} runs")
    heads = "".join(f"{kind:>14s}" for kind in CLASSIFIERS)
    print(f"{'':28s}{'log loss':>9s}{'Brier':>9s}{'seconds':>9s}{heads}")
    for method, rows in found.items():
        table = np.array(rows)
        log_loss, brier, seconds = table.mean(axis=0)
        each = (table[np.array(kinds) == kind, 0].mean() for kind in CLASSIFIERS)
        cells = "".join(f"{one:14.4f}" for one in each)
        print(f"{method:28s}{log_loss:9.4f}{brier:9.4f}{seconds:9.3f}{cells}")


if __name__ == "__main__":
    main()
