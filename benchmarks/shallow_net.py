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
from multiclass import MOST_ROWS, make_case, score
from multiclass_sets import load, predict

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

Answer = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def by(make: Callable[[], cal.MulticlassCalibrator]) -> Answer:
    """Return what a calibrator answers."""
    return lambda p, y, test: make().fit(p, y).predict(test)


METHODS: dict[str, Answer] = {
    "nothing": by(cal.IdentityCalibrator),
    "temperature": by(lambda: cal.SoftmaxCalibrator("temperature")),
    "SMS, penalty 1": by(lambda: cal.SoftmaxCalibrator("matrix", 1.0)),
    "SMS, auto": by(cal.SoftmaxCalibrator),
    "to the letter, 200 batches": by(
        lambda: cal.ShallowNetCalibrator(solver="adagrad", n_batches=200)
    ),
    "to the letter, 20 passes": by(lambda: cal.ShallowNetCalibrator(solver="adagrad")),
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
        case = make_case(*load(options.data / f"{name}.csv.gz", MOST_ROWS), kind, seed)
        p, test = predict(case.model, case.x), predict(case.model, case.test_x)
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
