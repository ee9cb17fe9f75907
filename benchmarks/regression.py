"""Distributional regression on real tables: ours beside six peers.

    python benchmarks/regression.py --data DIR                 # split 0 of every set
    python benchmarks/regression.py --data DIR --sets yacht concrete --splits 0 1 2
    python benchmarks/regression.py --data DIR --standard      # the published splits

DIR holds NAME.csv.gz files whose last column is the target, NAME.splits.npz with the
standard test rows of some, and one folder up `peers_regression.jsonl`: the peers' rows
on the same splits. Split i: `default_rng([7, i]).permutation(n)`, the first 90 % train;
at most 12 000 rows per set. CRPS is twice the mean pinball loss over the levels .005,
.010, ..., .995, the same for all methods. Rerun to resume; one JSON line per run.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from records import Records
from scipy.stats import kstest

from localexpert import LocalExpertRegressor

LEVELS = np.arange(1, 200) / 200.0
MOST_ROWS = 12_000


def load(path: Path) -> tuple[pd.DataFrame, np.ndarray]:
    """Return features, with strings as categories, and the target."""
    table = pd.read_csv(path)
    y = table.pop("target").to_numpy(float)
    for name in table.columns:
        if not pd.api.types.is_numeric_dtype(table[name]):
            table[name] = table[name].astype("category")
    if len(y) > MOST_ROWS:
        rows = np.random.default_rng(0).choice(len(y), MOST_ROWS, replace=False)
        rows.sort()
        table, y = table.iloc[rows].reset_index(drop=True), y[rows]
    return table, y


def rows_of_split(path: Path, split: int, n: int, *, standard: bool) -> Any:
    """Return training and test rows."""
    if standard:
        splits = np.load(path.with_name(path.name.replace(".csv.gz", ".splits.npz")))
        test = splits[f"test_{split}"]
        return np.setdiff1d(np.arange(n), test), test
    order = np.random.default_rng([7, split]).permutation(n)
    return np.split(order, [round(0.9 * n)])


def scores(y: np.ndarray, quantiles: np.ndarray) -> dict[str, float]:
    """Return what is compared with the peers, from the 199 quantiles."""
    miss = y[:, None] - quantiles
    pinball = np.maximum(LEVELS * miss, (LEVELS - 1.0) * miss)
    low, high = quantiles[:, 9], quantiles[:, 189]
    return {
        "crps": float(2.0 * pinball.mean()),
        "cov90": float(((low <= y) & (y <= high)).mean()),
        "width90": float((high - low).mean()),
        "pit_ks": float(kstest((quantiles <= y[:, None]).mean(axis=1), "uniform")[0]),
    }


def run(path: Path, split: int, *, standard: bool, jobs: int) -> dict[str, Any]:
    """Fit ours on one split and score it."""
    table, y = load(path)
    train, test = rows_of_split(path, split, len(y), standard=standard)
    start = time.perf_counter()
    model = LocalExpertRegressor(random_state=0, n_jobs=jobs)
    model.fit(table.iloc[train], y[train])
    fitted = time.perf_counter()
    dist = model.predict_dist(table.iloc[test])
    out = scores(y[test], dist.quantiles(LEVELS))
    done = time.perf_counter()
    return out | {
        "ds": path.name.split(".")[0],
        "split": split,
        "n": len(train),
        "rmse": float(np.sqrt(np.mean((dist.mean() - y[test]) ** 2))),
        "nll": float(-np.mean(dist.logpdf(y[test]))),
        "crps_exact": float(dist.crps(y[test]).mean()),
        "fit_s": fitted - start,
        "pred_s": done - fitted,
        "report": model.report_.summary(),
    }


def print_table(rows: list[dict[str, Any]], peers: list[dict[str, Any]]) -> None:
    """Print ours beside the best peer on each set."""
    best: dict[tuple[str, int], float] = {}
    ngboost: dict[tuple[str, int], float] = {}
    for row in peers:
        key = row["ds"], row["split"]
        best[key] = min(best.get(key, np.inf), row["crps"])
        if row["method"] == "ngboost":
            ngboost[key] = row["nll"]
    print(
        f"{'set':12s} {'CRPS':>10s} {'/ best':>7s} {'NLL':>8s} {'NGBoost':>8s} "
        f"{'cov90':>6s} {'RMSE':>10s} {'fit s':>6s} {'pred s':>6s}"
    )
    ratios = []
    for row in sorted(rows, key=lambda row: (row["ds"], row["split"])):
        key = row["ds"], row["split"]
        ratio = row["crps"] / best.get(key, np.nan)
        ratios.append(ratio)
        print(
            f"{row['ds']:12s} {row['crps']:10.4g} {ratio:7.3f} {row['nll']:8.3f} "
            f"{ngboost.get(key, np.nan):8.3f} {row['cov90']:6.3f} {row['rmse']:10.4g} "
            f"{row['fit_s']:6.1f} {row['pred_s']:6.2f}"
        )
    coverage = np.mean([abs(row["cov90"] - 0.9) for row in rows])
    print(f"\nmean CRPS / best peer {np.nanmean(ratios):.4f}, worst {max(ratios):.3f}")
    print(f"mean |coverage - .9| {coverage:.4f}")


def main() -> None:
    """Run or resume the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of CSV files")
    parser.add_argument("--sets", nargs="*", default=None)
    parser.add_argument("--splits", nargs="*", type=int, default=[0])
    parser.add_argument("--standard", action="store_true", help="published splits")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--run", default="latest", help="name of the run to resume")
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    options = parser.parse_args()
    paths = sorted(options.data.glob("*.csv.gz"))
    if options.sets:
        paths = [p for p in paths if p.name.split(".")[0] in options.sets]
    name = f"{options.run}-standard" if options.standard else options.run
    records = Records("regression", name, fresh=options.fresh)
    rows = [
        records.measure(
            f"{path.name.split('.')[0]}-{split}",
            lambda path=path, split=split: run(
                path, split, standard=options.standard, jobs=options.jobs
            ),
        )
        for split in options.splits
        for path in paths
        if not options.standard
        or path.with_name(path.name.replace(".csv.gz", ".splits.npz")).exists()
    ]
    lines = (options.data.parent / "peers_regression.jsonl").read_text().splitlines()
    peers = [] if options.standard else [json.loads(line) for line in lines]
    print_table(rows, peers)


if __name__ == "__main__":
    main()
