"""Seconds of a first fit, and of a first load and forecast, with nothing compiled.

    python benchmarks/cold_start.py           # rerun to see the lines of before
    python benchmarks/cold_start.py --fresh

300 rows, default settings. Every run is a process of its own: first with an empty
cache of compiled loops, then with the cache that this left. One JSON line per run;
`seconds` are those of the fit or of load and predict, `cpu_s` those of the process
with its imports, `compiled` counts what numba compiled.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from records import Records


def run_child(verb: str, path: str) -> dict[str, Any]:
    """Fit and save, or load and predict, in this process, and say what it cost."""
    import numpy as np
    from numba.core import event

    import localexpert

    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 4))
    y = 3.0 * X[:, 0] + (0.1 + X[:, 2]) * rng.normal(size=300)
    start = time.perf_counter()
    with event.install_recorder("numba:compile") as recorder:
        if verb == "fit":
            model = localexpert.LocalExpertRegressor(random_state=0).fit(X, y)
        else:
            localexpert.load(path).predict(X)
    seconds = time.perf_counter() - start
    if verb == "fit":
        model.save(path)
    compiled = sum(found.is_start for _, found in recorder.buffer)
    used = time.process_time()
    return {"verb": verb, "seconds": seconds, "cpu_s": used, "compiled": compiled}


def run_apart(verb: str, cache: Path, path: Path) -> dict[str, Any]:
    """Run `run_child` in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--child", verb, str(path)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        check=True,
        capture_output=True,
        text=True,
    )
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def main() -> None:
    """Run or resume, and print the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(run_child(*options.child)))
        return
    records = Records("cold_start", "latest", fresh=options.fresh)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.zip"
        for verb in ("fit", "predict"):
            for state in ("cold", "warm"):
                key, cache = f"{verb}-{state}", Path(folder) / verb
                row = records.measure(
                    key, lambda verb=verb, cache=cache: run_apart(verb, cache, path)
                )
                print(
                    f"{key:14s} {row['seconds']:6.1f} s {row['cpu_s']:6.1f} s of CPU "
                    f"with imports, {row['compiled']} compilations"
                )


if __name__ == "__main__":
    main()
