"""Time, memory and CRPS of fits on tables of 10^5 to 10^7 rows.

    python benchmarks/large.py --rows 1000000 5000000 --out results/large.jsonl
    python benchmarks/large.py --rows 1000000 --roads memory --out results/large.jsonl
    python benchmarks/large.py --out results/large.jsonl --image large_cost.png

The target is heteroscedastic, of 20 features in single precision. Each run is a process
of its own and one line of JSON; runs whose line is there are not made again. Without
`--rows` the lines are shown as a table; the picture goes on from the largest tables to
10^9 rows, by the straight line through the last two.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

mpl.use("Agg")

FEATURES, TEST_ROWS, GROUP = 20, 50_000, 250_000
ROADS = ("large", "memory")
NAMES = {"large": "fit_large", "memory": "fit, in memory"}


def draw(n: int, seed: int) -> pd.DataFrame:
    """Return n rows: a curved centre, and noise whose size two features tell."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, FEATURES)).astype(np.float32)
    center = 2.0 * x[:, 0] + 1.5 * np.sin(2.0 * x[:, 1]) + x[:, 2] * x[:, 3]
    scale = np.exp(0.4 * x[:, 4] + 0.3 * (x[:, 5] > 0.0))
    frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(FEATURES)])
    frame["y"] = (center + scale * rng.normal(size=n)).astype(np.float64)
    return frame


def write(n: int, folder: Path) -> None:
    """Write the table as one file of Parquet per million rows, a chunk at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, n, 1_000_000)):
        path = folder / f"{number:03d}.parquet"
        if not path.exists():
            frame = draw(min(1_000_000, n - start), seed=1000 + number)
            frame.to_parquet(path, row_group_size=GROUP)


def measure(road: str, n: int, folder: Path, n_jobs: int) -> dict[str, Any]:
    """Fit, and return what it took."""
    from localexpert import LocalExpertRegressor, fit_large

    write(n, folder)
    model = LocalExpertRegressor(n_jobs=n_jobs, random_state=0, verbose=1)
    start = time.time()
    if road == "large":
        fitted = fit_large(model, folder, "y")
    else:
        table = pd.concat(map(pd.read_parquet, sorted(folder.glob("*.parquet"))))
        fitted = model.fit(table.drop(columns="y"), table["y"])
    wall, took = time.time() - start, os.times()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    test = draw(TEST_ROWS, seed=7)
    forecast = fitted.predict_dist(test.drop(columns="y"))
    return {
        "road": road,
        "rows": n,
        "seconds": round(wall, 1),
        "cpu": round(took.user + took.system, 1),
        "peak_gb": round(peak, 3),
        "crps": float(forecast.crps(test["y"].to_numpy()).mean()),
        "load": round(os.getloadavg()[0], 1),
        "choices": str(fitted.report_),
    }


def show(lines: list[dict[str, Any]]) -> str:
    """Return the lines as a table."""
    kept = ["road", "rows", "seconds", "cpu", "peak_gb", "crps", "load"]
    return pd.DataFrame(lines)[kept].to_string(index=False)


def draw_costs(lines: list[dict[str, Any]], path: Path) -> None:
    """Draw seconds of processor and memory against rows, and on to 10^9 rows."""
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.6), constrained_layout=True)
    panels = {"cpu": "seconds of processor", "peak_gb": "peak of memory, GB"}
    for axis, (key, label) in zip(axes, panels.items(), strict=True):
        for road, color in zip(ROADS, ("C0", "C1"), strict=True):
            own = sorted((x["rows"], x[key]) for x in lines if x["road"] == road)
            if not own:
                continue
            n, cost = np.array(own, dtype=np.float64).T
            axis.plot(n, cost, "o-", color=color, label=NAMES[road])
            if road != "memory" and len(n) > 1:
                further = np.geomspace(n[-1], 1e9, 50)
                slope = (cost[-1] - cost[-2]) / (n[-1] - n[-2])
                on = cost[-1] + max(slope, 0.0) * (further - n[-1])
                axis.plot(further, on, ":", color=color)
        axis.set(xscale="log", yscale="log", xlabel="rows", ylabel=label)
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Run what is asked for, one process a run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[])
    parser.add_argument("--roads", nargs="*", choices=ROADS, default=["large"])
    parser.add_argument("--out", type=Path, default=Path("results/large.jsonl"))
    parser.add_argument("--image", type=Path, help="file to draw into")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--run", nargs=2, metavar=("ROAD", "ROWS"))
    args = parser.parse_args()
    if args.run:
        road, n = args.run[0], int(args.run[1])
        folder = args.data / f"large-{n}"
        print(json.dumps(measure(road, n, folder, args.n_jobs)))
        return
    lines = []
    if args.out.exists():
        lines = [json.loads(line) for line in args.out.read_text().splitlines()]
    done = {(line["road"], line["rows"]) for line in lines}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    for n in args.rows:
        write(n, args.data / f"large-{n}")
        for road in args.roads:
            if (road, n) in done:
                continue
            again = ["--data", str(args.data), "--n-jobs", str(args.n_jobs)]
            call = [sys.executable, __file__, *again, "--run", road, str(n)]
            said = subprocess.run(call, stdout=subprocess.PIPE, text=True, check=True)
            lines.append(json.loads(said.stdout.splitlines()[-1]))
            with args.out.open("a") as file:
                file.write(json.dumps(lines[-1]) + "\n")
    if lines:
        print(show(lines))
    if lines and args.image:
        draw_costs(lines, args.image)


if __name__ == "__main__":
    main()
