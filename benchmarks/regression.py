"""Distributional regression on real tables: ours beside six peers.

    python benchmarks/regression.py --data DIR                 # split 0 of every set
    python benchmarks/regression.py --data DIR --sets yacht concrete --splits 0 1 2
    python benchmarks/regression.py --data DIR --standard      # the published splits
    python benchmarks/regression.py --data DIR --share 0.7     # fewer to train on
    python benchmarks/regression.py --data DIR --effort quick  # quick, best or seconds
    python benchmarks/regression.py --short                    # needs no files

DIR holds NAME.csv.gz files whose last column is the target, NAME.splits.npz with the
standard test rows of some, and one folder up `peers_regression.jsonl`: the peers' rows
on the same splits, which `regression_peers.py` writes.
Split i: `default_rng([7, i]).permutation(n)`, the first 90 % train, at most 12 000 rows
per set. CRPS is twice the mean pinball loss over the levels .005, .010, ..., .995, the
same for all methods. Coverage of 90 % is exact for forecasts with jumps, as
`interval_coverage` is. `--short` takes three small tables, a half of each to score on,
and fits two plain forecasts beside ours. Rerun to resume; one JSON line per run of
ours.
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
from regression_short import BASELINES, short_tables
from regression_table import print_tables
from scipy.stats import kstest

from localexpert import LocalExpertRegressor, interval_coverage

LEVELS = np.arange(1, 200) / 200.0
MOST_ROWS = 12_000
# One folder above the tables.
PEERS = "peers_regression.jsonl"


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


def split_rows(n: int, split: int, share: float = 0.9) -> list[np.ndarray]:
    """Return training and test rows."""
    order = np.random.default_rng([7, split]).permutation(n)
    return np.split(order, [round(share * n)])


def rows_of_split(
    path: Path, split: int, n: int, *, standard: bool, share: float = 0.9
) -> Any:
    """Return training and test rows, of the published splits if `standard`."""
    if not standard:
        return split_rows(n, split, share)
    test = np.load(splits_path(path))[f"test_{split}"]
    return np.setdiff1d(np.arange(n), test), test


def splits_path(path: Path) -> Path:
    """Return where the published splits of a set would be."""
    return path.with_name(path.name.replace(".csv.gz", ".splits.npz"))


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


def read_effort(text: str) -> str | float:
    """Return a name, or seconds."""
    return float(text) if text[:1].isdigit() else text


def fit_ours(
    table: pd.DataFrame,
    y: np.ndarray,
    train: Any,
    test: Any,
    jobs: int,
    effort: Any = "default",
) -> dict[str, Any]:
    """Fit ours on one split and score it."""
    start, used = time.perf_counter(), time.process_time()
    model = LocalExpertRegressor(effort=effort, random_state=0, n_jobs=jobs)
    model.fit(table.iloc[train], y[train])
    fitted, used = time.perf_counter(), time.process_time() - used
    dist = model.predict_dist(table.iloc[test])
    out = scores(y[test], dist.quantiles(LEVELS))
    # Exact where forecasts jump; of the others quantiles are all there is.
    out["cov90"] = interval_coverage(y[test], dist, coverage=0.9)
    done = time.perf_counter()
    oof = model.oof_distribution_
    out["oof_cov90"] = interval_coverage(y[train], oof, coverage=0.9)
    return out | {
        "n": len(train),
        "rmse": float(np.sqrt(np.mean((dist.mean() - y[test]) ** 2))),
        "nll": float(-np.mean(dist.logpdf(y[test]))),
        "crps_exact": float(dist.crps(y[test]).mean()),
        "fit_s": fitted - start,
        "cpu_s": used,
        "pred_s": done - fitted,
        "report": model.report_.summary(),
    }


def run(
    path: Path,
    split: int,
    jobs: int,
    *,
    standard: bool = False,
    share: float = 0.9,
    effort: str | float = "default",
) -> dict[str, Any]:
    """Return the row of one set and split."""
    table, y = load(path)
    rows = rows_of_split(path, split, len(y), standard=standard, share=share)
    name = {"ds": path.name.split(".")[0], "split": split}
    return name | fit_ours(table, y, *rows, jobs, effort)


def run_sets(records: Records, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the rows of all sets asked for."""
    paths = sorted(options.data.glob("*.csv.gz"))
    if options.sets:
        paths = [p for p in paths if p.name.split(".")[0] in options.sets]
    if options.standard:
        paths = [p for p in paths if splits_path(p).exists()]
    return [
        records.measure(
            f"{path.name.split('.')[0]}-{split}",
            lambda path=path, split=split: run(
                path,
                split,
                options.jobs,
                standard=options.standard,
                share=options.share,
                effort=options.effort,
            ),
        )
        for split in options.splits
        for path in paths
    ]


def run_short(records: Records, jobs: int) -> tuple[list[dict[str, Any]], ...]:
    """Return the rows of ours, and those of the baselines, on the small tables."""
    ours, others = [], []
    for name, (X, y) in short_tables().items():
        train, test = split_rows(len(y), 0, 0.5)
        ours.append(
            records.measure(
                name,
                lambda name=name, data=(X, y, train, test): (
                    {"ds": name, "split": 0} | fit_ours(*data, jobs)
                ),
            )
        )
        for method, forecast in BASELINES.items():
            quantiles = forecast(X.iloc[train], y[train], X.iloc[test], LEVELS)
            row = {"ds": name, "split": 0, "method": method, "n": len(train)}
            others.append(row | scores(y[test], quantiles))
    return ours, others


def read_peers(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of the peers, none if nobody has run them."""
    path = folder / PEERS
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def main() -> None:
    """Run or resume the benchmark and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of CSV files")
    parser.add_argument("--short", action="store_true", help="three small tables")
    parser.add_argument("--sets", nargs="*", default=None)
    parser.add_argument("--splits", nargs="*", type=int, default=[0])
    parser.add_argument("--standard", action="store_true", help="published splits")
    parser.add_argument("--share", type=float, default=0.9, help="rows to train on")
    parser.add_argument("--effort", type=read_effort, default="default")
    parser.add_argument("--peers", nargs="*", help="some of them, by name")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--run", default="latest", help="name of the run to resume")
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    options = parser.parse_args()
    if options.data is None and not options.short:
        parser.error("--data is needed without --short")
    kind = "-short" if options.short else "-standard" if options.standard else ""
    if not kind and options.share != 0.9:
        kind = f"-{options.share:g}"
    if options.effort != "default":
        kind = f"{kind}-{options.effort}"
    records = Records("regression", f"{options.run}{kind}", fresh=options.fresh)
    if options.short:
        rows, others = run_short(records, options.jobs)
    else:
        rows = run_sets(records, options)
        # Of the published splits the peers have no rows.
        others = [] if options.standard else read_peers(options.data.parent)
        if options.peers:
            others = [row for row in others if row["method"] in options.peers]
    print_tables(rows, others)


if __name__ == "__main__":
    main()
