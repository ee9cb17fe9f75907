"""Seconds and memory of the calibrators of several classes.

    python benchmarks/multiclass_speed.py            # 10^5 rows x 10, 50 000 x 1000
    python benchmarks/multiclass_speed.py --quick    # 10^5 rows x 10

Fits on one thread, compiled code warmed on 2000 rows: wall time and CPU time of this
process, medians of up to five calls; on a machine with other work to do the second
one is the method's. Memory is what a fit adds to the peak, beside the scores. Rerun to
resume; one JSON line per calibrator and table.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable

import numpy as np
from records import Records, peak_extra_bytes
from scipy.special import softmax
from threadpoolctl import threadpool_limits

import calibration as cal

Make = Callable[[], cal.MulticlassCalibrator]
Size = tuple[int, int]

MANY_ROWS, MANY_CLASSES = (100_000, 10), (50_000, 1000)
METHODS: dict[str, Make] = {
    "temperature": lambda: cal.SoftmaxCalibrator("temperature"),
    "vector, penalty 1": lambda: cal.SoftmaxCalibrator("vector", 1.0),
    "matrix, penalty 1": lambda: cal.SoftmaxCalibrator("matrix", 1.0),
    "vector, auto": lambda: cal.SoftmaxCalibrator("vector"),
    "matrix, auto": cal.SoftmaxCalibrator,
    "one-vs-rest isotonic": lambda: cal.OneVsRestCalibrator("isotonic"),
    "one-vs-rest quadratic": cal.OneVsRestCalibrator,
    "Auto": cal.AutoCalibrator,
}
# Seconds. Of 1000 classes a matrix is a vector, and says so.
BARS: dict[Size, dict[str, float]] = {
    MANY_ROWS: {
        "temperature": 0.5,
        "vector, penalty 1": 1.0,
        "matrix, penalty 1": 5.0,
        "one-vs-rest isotonic": 1.5,
    },
    MANY_CLASSES: {
        "temperature": 30.0,
        "vector, penalty 1": 30.0,
        "matrix, penalty 1": 30.0,
    },
}
MOST_CALLS = 5
ENOUGH_SECONDS = 10.0


def make_scores(n: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities (n, k) of a classifier twice as sure as it may be."""
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=1.5, size=(n, k))
    # The greatest of logits with Gumbel's noise is a draw from their softmax.
    y = np.array([np.argmax(row + rng.gumbel(size=k)) for row in z])
    z *= 2.0
    return softmax(z, axis=1), y


def measure(make: Make, scores: np.ndarray, y: np.ndarray) -> dict[str, float | None]:
    """Return wall and CPU seconds of a fit, and the bytes it adds to the peak."""
    wall: list[float] = []
    cpu: list[float] = []

    def call() -> None:
        start = time.perf_counter(), time.process_time()
        make().fit(scores, y)
        wall.append(time.perf_counter() - start[0])
        cpu.append(time.process_time() - start[1])

    extra = peak_extra_bytes(call)
    while len(wall) < MOST_CALLS and sum(wall) < ENOUGH_SECONDS:
        call()
    return {
        "wall": statistics.median(wall),
        "cpu": statistics.median(cpu),
        "bytes": extra,
    }


def run_size(records: Records, size: Size) -> None:
    """Time every method on one table and print the bars."""
    n, k = size
    names = METHODS if size == MANY_ROWS else [*BARS[size], "Auto"]
    wanted = {name: f"{name}, {n} x {k}" for name in names}
    if set(wanted.values()) - set(records.rows):
        scores, y = make_scores(n, k)
        small = make_scores(2000, 5, 1)
        for name, key in wanted.items():
            METHODS[name]().fit(*small)
            records.measure(key, lambda name=name: measure(METHODS[name], scores, y))
    print(f"\n{n:,} rows x {k} classes, one thread")
    print(f"{'fit':24s}{'wall s':>9s}{'CPU s':>9s}{'bar':>7s}{'GB':>7s}")
    for name, key in wanted.items():
        row = records.rows[key]
        bar = BARS[size].get(name)
        held = "" if row["bytes"] is None else f"{row['bytes'] / 1e9:.2f}"
        print(
            f"{name:24s}{row['wall']:9.2f}{row['cpu']:9.2f}"
            f"{'' if bar is None else f'{bar:.1f}':>7s}{held:>7s}"
        )


def main() -> None:
    """Run or resume the benchmark and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10 classes only")
    parser.add_argument("--run", default="latest", help="name of the run to resume")
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    options = parser.parse_args()
    records = Records("multiclass_speed", options.run, fresh=options.fresh)
    with threadpool_limits(1), warnings.catch_warnings():
        # That a matrix of 1000 classes is a vector.
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        for size in BARS:
            if size == MANY_ROWS or not options.quick:
                run_size(records, size)


if __name__ == "__main__":
    main()
