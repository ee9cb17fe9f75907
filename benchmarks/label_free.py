"""CRPS that forecasts expect of themselves beside the CRPS that comes, on real tables.

    python benchmarks/label_free.py --data DIR                      # splits 0 to 9
    python benchmarks/label_free.py --data DIR --sets airfoil --splits 0 1
    python benchmarks/label_free.py --data DIR --seconds 400        # and then stop

DIR holds NAME.csv.gz files whose last column is the target; those of fewer than 1000
rows are left out, of larger ones 12 000 rows are kept. Split i is that of
`regression.py`, with 70 % of the rows to train on: of a tenth alone the realised mean
is known to some 2 % only. "corrected" is the expectation times what it was wrong by out
of fold, in training. Rerun to resume; one JSON line per set and split.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from records import Records
from regression import load, split_rows

from localexpert import LocalExpertRegressor

LEAST_ROWS = 1000
_MEANS = ("expected", "realised", "corrected", "se", "expected_mae", "mae")


def run(path: Path, split: int, jobs: int) -> dict[str, Any]:
    """Return what was expected on one split of a set, and what came."""
    table, y = load(path)
    train, test = split_rows(len(y), split, 0.7)
    start = time.perf_counter()
    model = LocalExpertRegressor(random_state=0, n_jobs=jobs)
    dist = model.fit(table.iloc[train], y[train]).predict_dist(table.iloc[test])
    fitted = time.perf_counter()
    told = dist.expected_mean()
    realised = dist.crps(y[test])
    before = model.oof_distribution_
    ratio = before.crps(y[train]).mean() / before.expected_crps().mean()
    return {
        "ds": path.name.split(".")[0],
        "split": split,
        "n_test": len(test),
        "expected": told.mean,
        "corrected": told.mean * float(ratio),
        "low": told.low,
        "high": told.high,
        "realised": float(realised.mean()),
        "se": float(realised.std(ddof=1) / np.sqrt(len(test))),
        "expected_mae": float(dist.expected_abs_error().mean()),
        "mae": float(np.abs(y[test] - dist.median()).mean()),
        "fit_s": fitted - start,
        "expect_s": time.perf_counter() - fitted,
    }


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print a line for each set: the ratio of means over its splits."""
    print(f"{'set':12}{'splits':>7}{'expected':>12}{'realised':>12}", end="")
    print(f"{'off':>9}{'se':>9}{'corrected':>11}{'MAE off':>10}{'inside':>8}")
    for ds in sorted({row["ds"] for row in rows}):
        own = [row for row in rows if row["ds"] == ds]
        mean = {key: np.mean([row[key] for row in own]) for key in _MEANS}
        came = mean["realised"]
        held = [row["low"] <= row["realised"] <= row["high"] for row in own]
        # The error of one split's mean: splits share rows.
        shares = [
            100.0 * share
            for share in (
                mean["expected"] / came - 1.0,
                mean["se"] / came,
                mean["corrected"] / came - 1.0,
                mean["expected_mae"] / mean["mae"] - 1.0,
            )
        ]
        off, se, corrected, mae = (f"{share:.2f} %" for share in shares)
        print(
            f"{ds:12}{len(own):>7}{mean['expected']:>12.5g}{came:>12.5g}"
            f"{off:>9}{se:>9}{corrected:>11}{mae:>10}{np.mean(held):>8.2f}"
        )


def main() -> None:
    """Run or resume the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of CSV files")
    parser.add_argument("--sets", nargs="*", default=None)
    parser.add_argument("--splits", nargs="*", type=int, default=list(range(10)))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=np.inf)
    parser.add_argument("--run", default="latest", help="name of the run to resume")
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    options = parser.parse_args()
    records = Records("label_free", options.run, fresh=options.fresh)
    start, rows = time.perf_counter(), []
    for split in options.splits:
        for path in sorted(options.data.glob("*.csv.gz")):
            name = path.name.split(".")[0]
            if options.sets is not None and name not in options.sets:
                continue
            key = f"{name}-{split}"
            late = time.perf_counter() - start > options.seconds
            if (late and key not in records.rows) or len(load(path)[1]) < LEAST_ROWS:
                continue
            rows.append(
                records.measure(
                    key, lambda path=path, split=split: run(path, split, options.jobs)
                )
            )
    print_table(rows)


if __name__ == "__main__":
    main()
