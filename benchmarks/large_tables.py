"""Tables of more rows than memory: the rate of predictions, and summaries of scores.

    python benchmarks/large_tables.py                     # 5e6 rows, 1e8 scores
    python benchmarks/large_tables.py --rows 200000 --scores 10000000

Predictions: a model of 20 numbers forecasts a Parquet table (mean, deviation, five
quantiles) in one piece in memory, by `predict_table`, and by the command, which reads
and writes Parquet part by part. Each is a process of its own, so that its peak of
memory is its own.

Summaries: `summarize` reads scores and labels from 20 Parquet files by two threads; the
maps fitted to the summary are compared with those of the exact one of the first files.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from records import Records, peak_bytes

N_FEATURES, N_TRAINING, N_FILES, GROUP = 20, 20_000, 20, 500_000
QUANTILES = [0.05, 0.25, 0.5, 0.75, 0.95]
WAYS = ("one piece in memory", "predict_table", "localexpert predict")
NAMES = [f"x{i}" for i in range(N_FEATURES)]


def table(rng: np.random.Generator, n: int, *, target: bool) -> pa.Table:
    """Rows whose mean and spread depend on some of the features."""
    X = rng.normal(size=(n, N_FEATURES)).astype(np.float32)
    columns = dict(zip(NAMES, X.T, strict=True))
    if target:
        noise = np.exp(0.5 * X[:, 2]) * rng.normal(size=n)
        columns["y"] = X[:, 0] + np.sin(X[:, 1]) + noise
    return pa.table(columns)


def write_rows(path: Path, n: int) -> None:
    """Write rows to forecast, never all in memory."""
    rng = np.random.default_rng(1)
    with pq.ParquetWriter(path, table(rng, 0, target=False).schema) as writer:
        for start in range(0, n, GROUP):
            writer.write_table(table(rng, min(GROUP, n - start), target=False))


def train(folder: Path, *, fast: bool) -> Path:
    """Fit a model by the command."""
    path, model = folder / "train.parquet", folder / "model.zip"
    pq.write_table(table(np.random.default_rng(0), N_TRAINING, target=True), path)
    words = ["fit", str(path), "--target", "y", "--out", str(model), "--quiet"]
    command(*words, *(["--fast"] if fast else []))
    return model


def command(*words: str) -> None:
    """Run the command in this process."""
    from localexpert.cli.main import main

    if main(list(words)) != 0:
        msg = f"`{words[0]}` failed."
        raise RuntimeError(msg)


def predict(way: str, model_path: str, path: str, out: str) -> dict[str, object]:
    """Forecast a table in this process; reading it is timed where it is in parts."""
    import localexpert
    from localexpert.cli.table_model import load_table_model

    localexpert.predict_dist  # noqa: B018 - imported before the clock starts
    levels = ",".join(map(str, QUANTILES))
    n = pq.ParquetFile(path).metadata.num_rows
    start = time.perf_counter()
    if way == "localexpert predict":
        words = ["predict", model_path, path, "--out", out, "--quantiles", levels]
        command(*words, "--quiet")
    else:
        model = load_table_model(model_path).model
        frame = pq.read_table(path).to_pandas()
        start = time.perf_counter()
        if way == "predict_table":
            localexpert.predict_table(model, frame, quantiles=QUANTILES)
        else:
            dist = model.predict_dist(frame)
            dist.to_frame(quantiles=QUANTILES)
    seconds = time.perf_counter() - start
    return {"rate": n / seconds, "seconds": seconds, "peak": peak_bytes()}


def write_scores(folder: Path, n: int) -> None:
    """Write scores and labels in files of row groups."""
    schema = pa.schema([("score", pa.float64()), ("label", pa.int8())])
    for number in range(N_FILES):
        rng, left = np.random.default_rng([number, 7]), n // N_FILES
        path = folder / f"part-{number:03d}.parquet"
        with pq.ParquetWriter(path, schema) as writer:
            while left:
                rows = min(left, GROUP)
                score = rng.beta(1.5, 2.0, size=rows)
                label = (rng.uniform(size=rows) < score**2).astype(np.int8)
                writer.write_table(pa.table([score, label], schema=schema))
                left -= rows


def summarise(folder: str) -> dict[str, object]:
    """Summarise all files, and compare maps of some with exact ones."""
    import calibration as cal

    cal.summarize(sorted(Path(folder).iterdir())[:1], n_jobs=2)  # compiles, imports
    start = time.perf_counter()
    summary = cal.summarize(folder, n_jobs=2)
    row: dict[str, object] = {
        "seconds": time.perf_counter() - start,
        "peak": peak_bytes(),
        "cells": summary.n_cells,
        "n": summary.n,
        "max_displacement": summary.max_displacement,
    }
    some = sorted(Path(folder).iterdir())[:2]
    bounded, exact = cal.summarize(some), cal.summarize(some, max_cells=None)
    grid = (np.arange(100_000) + 0.5) / 100_000
    for method in (cal.PlattCalibrator, cal.BetaCalibrator, cal.IsotonicCalibrator):
        merged, whole = (method().fit_summary(one) for one in (bounded, exact))
        gap = np.abs(merged.predict(grid) - whole.predict(grid))
        row[method.__name__] = [float(gap.max()), float(gap.mean())]
    row["rows_compared"] = exact.n
    return row


def in_child(*words: object) -> dict[str, object]:
    """Run a part of this script in a process of its own."""
    import json

    call = [sys.executable, __file__, "--child", *map(str, words)]
    done = subprocess.run(call, check=True, capture_output=True, text=True)
    row: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return row


def run_predictions(records: Records, rows: int, *, fast: bool) -> None:
    """Measure all ways to predict, and print them."""
    kind = "fast" if fast else "default"
    keys = {way: f"predict-{kind}-{rows}-{way}" for way in WAYS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if any(key not in records.rows for key in keys.values()):
            train(folder, fast=fast)
            write_rows(folder / "rows.parquet", rows)
        out = folder / "out.parquet"
        for way, key in keys.items():
            given = way, folder / "model.zip", folder / "rows.parquet", out
            records.measure(key, lambda given=given: in_child("predict", *given))
    first = records.rows[keys[WAYS[0]]]["rate"]
    print(f"\n{rows:,} rows, {kind} model\n{'':22s} {'rows/s':>9s} {'ratio':>6s} peak")
    for way, key in keys.items():
        row = records.rows[key]
        ratio, peak = row["rate"] / first, row["peak"] / 1e9
        print(f"{way:22s} {row['rate']:9,.0f} {ratio:6.2f} {peak:.2f} GB")


def run_summaries(records: Records, n: int) -> None:
    """Measure the summary of many scores, and print it."""
    key = f"summarize-{n}"
    with tempfile.TemporaryDirectory() as name:
        if key not in records.rows:
            write_scores(Path(name), n)
        row = records.measure(key, lambda: in_child("summarise", name))
    print(
        f"\nsummarize of {row['n']:,.0f} scores: {row['seconds']:.1f} s, peak "
        f"{row['peak'] / 1e9:.2f} GB, {row['cells']:,} cells, max_displacement "
        f"{row['max_displacement']:.2g}"
    )
    print(f"gaps to the exact maps of {row['rows_compared']:,.0f} rows: widest, mean")
    for name in ("PlattCalibrator", "BetaCalibrator", "IsotonicCalibrator"):
        widest, mean = row[name]
        print(f"{name:22s} {widest:.1e} {mean:.1e}")


def main() -> None:
    """Run or resume the benchmark and print its tables."""
    import json

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--scores", type=int, default=10**8)
    parser.add_argument("--default-model", action="store_true", help="not the fast one")
    parser.add_argument("--only", choices=("predict", "summarise"))
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    parser.add_argument("--child", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        work = {"predict": predict, "summarise": summarise}[options.child[0]]
        print(json.dumps(work(*options.child[1:])))
        return
    records = Records("large_tables", "latest", fresh=options.fresh)
    if options.only != "summarise":
        run_predictions(records, options.rows, fast=not options.default_model)
    if options.only != "predict":
        run_summaries(records, options.scores)


if __name__ == "__main__":
    main()
