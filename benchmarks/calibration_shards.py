"""Fit on shards that are never in memory together, against the exact fit.

    python benchmarks/calibration_shards.py                  # 8 shards of 10^7
    python benchmarks/calibration_shards.py --rows 100000    # smaller shards

Each shard is summarised in bounded mode and thrown away; the summaries are merged
and fitted. The exact fit keeps all rows. Three distances between the maps are
printed: the widest vertical gap; the share of a fine grid where the merged map lies
between the exact one at s - d and s + d, d being `max_displacement`; and the Levy
distance, the least e with exact(s - e) - e <= merged(s) <= exact(s + e) + e.
"""

from __future__ import annotations

import argparse

import numpy as np
from records import Records, peak_bytes

import calibration as cal

N_SHARDS = 8
MAX_CELLS = 2**14
METHODS = {
    "isotonic": cal.IsotonicCalibrator,
    "centred isotonic": cal.CenteredIsotonicCalibrator,
    "beta": cal.BetaCalibrator,
    "platt": cal.PlattCalibrator,
}


def shard(i: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of shard i."""
    rng = np.random.default_rng([i, rows])
    scores = rng.beta(1.5, 2.0, size=rows)
    return scores, rng.uniform(size=rows) < scores**2


def merged_summary(rows: int) -> cal.ScoreSummary:
    """Summary of all shards, one in memory at a time."""
    return sum(
        cal.ScoreSummary.from_scores(*shard(i, rows), max_cells=MAX_CELLS)
        for i in range(N_SHARDS)
    )


def exact_summary(rows: int) -> cal.ScoreSummary:
    """Summary of all shards, exactly."""
    return sum(cal.ScoreSummary.from_scores(*shard(i, rows)) for i in range(N_SHARDS))


def distances(
    merged: cal.ScoreCalibrator, exact: cal.ScoreCalibrator, d: float
) -> dict[str, float]:
    """Compare two maps on a grid of 10^5 scores."""
    grid = (np.arange(100_000) + 0.5) / 100_000
    value = merged.predict(grid)

    def inside(shift: float, slack: float) -> np.ndarray:
        low = exact.predict(np.clip(grid - shift, 0, 1)) - slack
        high = exact.predict(np.clip(grid + shift, 0, 1)) + slack
        return (low <= value) & (value <= high)

    low, high = 0.0, 1.0
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if inside(middle, middle).all() else (middle, high)
    return {
        "vertical": float(np.abs(value - exact.predict(grid)).max()),
        "inside": float(inside(d, 1e-12).mean()),
        "levy": high,
    }


def work(rows: int) -> dict[str, object]:
    """Fit both ways and compare."""
    small = merged_summary(1000)
    start = peak_bytes()
    shard(0, rows)
    one_shard = peak_bytes() - start
    merged = merged_summary(rows)
    merging = peak_bytes() - start
    exact = exact_summary(rows)
    out: dict[str, object] = {
        "cells": merged.n_cells,
        "cells_small": small.n_cells,
        "exact_cells": exact.n_cells,
        "max_displacement": merged.max_displacement,
        "bytes_one_shard": one_shard,
        "bytes_merging": merging,
    }
    for name, method in METHODS.items():
        a, b = method().fit_summary(merged), method().fit_summary(exact)
        out[name] = distances(a, b, merged.max_displacement)
    return out


def main() -> None:
    """Run or resume the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**7, help="rows per shard")
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    options = parser.parse_args()
    records = Records("calibration_shards", "latest", fresh=options.fresh)
    row = records.measure(f"rows-{options.rows}", lambda: work(options.rows))
    print(
        f"{N_SHARDS} shards of {options.rows:,} rows: {row['cells']:,} cells of "
        f"at most {MAX_CELLS:,} ({row['cells_small']:,} with 1,000 rows a shard; exact "
        f"{row['exact_cells']:,}); max_displacement {row['max_displacement']:.3g}"
    )
    print(
        f"peak memory: {row['bytes_one_shard'] / 1e6:.0f} MB to draw one shard, "
        f"{row['bytes_merging'] / 1e6:.0f} MB to merge all of them"
    )
    print(f"\n{'map':18s} {'vertical gap':>13s} {'inside s -+ d':>14s} {'Levy':>9s}")
    for name in METHODS:
        d = row[name]
        print(f"{name:18s} {d['vertical']:13.2e} {d['inside']:14.4%} {d['levy']:9.2e}")


if __name__ == "__main__":
    main()
