"""What each part of a default fit earns: each is left out in its turn.

    python benchmarks/parts.py --data DIR                       # sets of odd places
    python benchmarks/parts.py --data DIR --parts nets forests --sets yacht concrete

DIR as for `regression.py`, whose split 0 is scored. CRPS and CPU seconds are those of a
fit without the part, over those of the whole one; beside the mean the set that loses
most. Rerun to resume; one JSON line per fit.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from records import Records
from regression import load, split_rows

from localexpert import LocalExpertRegressor
from localexpert.coordinate.centre import CentreStack
from localexpert.experts import calibration
from localexpert.learn import compete, pool

# Families of the centre by the name of one of each group.
FAMILIES = {
    "boosting": "boosting",
    "boosting of the logarithm": "boosting of the logarithm",
    "extra trees": "extra trees",
    "nets": "net",
    "nets of ramps": "net of ramps",
    "nets of the logarithm": "net of the logarithm",
    "sums": "additive",
    "products": "products",
    "kernels": "kernel",
    "smooth kernels": "smooth kernel",
    "boosting of means": "boosting of means",
}
ROADS = ("grid", "log", "residuals", "climatology", "discrete", "cells")
EXPERTS = ("shared", "joint")
OTHERS = ("calibration", "sharpness")
PARTS = ("nothing", *FAMILIES, *ROADS, *EXPERTS, *OTHERS)


@contextmanager
def without(part: str) -> Iterator[dict[str, Any]]:
    """Leave a part out of fits, and yield parameters that do so."""
    if part == "calibration":
        yield {"calibrator": None}
    elif part == "sharpness":
        with patch.object(pool, "learn_sharpness", lambda *_: 1.0):
            yield {}
    elif part in FAMILIES:
        own = CentreStack._groups

        def groups(self: Any, *arguments: Any) -> Any:
            found = own(self, *arguments)
            return [g for g in found if FAMILIES[part] not in g] or found

        with patch.object(CentreStack, "_groups", groups):
            yield {}
    elif part in EXPERTS:
        known = calibration.CalibratedExperts.ask

        def ask(self: Any, *arguments: Any) -> None:
            if len(self.members) > 1:
                self.members = {n: m for n, m in self.members.items() if n != part}
            known(self, *arguments)

        with patch.object(calibration.CalibratedExperts, "ask", ask):
            yield {}
    elif part in ROADS:
        join = compete._compete

        def fewer(made: Any, *arguments: Any) -> Any:
            left = {name: road for name, road in made.items() if name != part}
            return join(left or made, *arguments)

        with patch.object(compete, "_compete", fewer):
            yield {}
    else:
        yield {}


def run(path: Path, part: str) -> dict[str, Any]:
    """Return CRPS and CPU seconds of split 0 without a part."""
    table, y = load(path)
    train, test = split_rows(len(y), 0)
    with without(part) as parameters, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LocalExpertRegressor(random_state=0, n_jobs=1, **parameters)
        start = time.process_time()
        model.fit(table.iloc[train], y[train])
        seconds = time.process_time() - start
        crps = float(model.predict_dist(table.iloc[test]).crps(y[test]).mean())
    return {"ds": path.name.split(".")[0], "part": part, "crps": crps, "cpu_s": seconds}


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--run", default="latest")
    parser.add_argument("--fresh", action="store_true")
    options = parser.parse_args()
    paths = sorted(options.data.glob("*.csv.gz"))
    if options.sets:
        paths = [p for p in paths if p.name.split(".")[0] in options.sets]
    else:
        paths = paths[::2]
    records = Records("parts", options.run, fresh=options.fresh)
    whole: dict[str, dict[str, Any]] = {}
    print(f"{'without':28}{'CRPS':>8}{'most':>8}  {'on':14}{'CPU':>6}")
    for part in dict.fromkeys(["nothing", *options.parts]):
        rows = [
            records.measure(f"{p.name}-{part}", lambda p=p, part=part: run(p, part))
            for p in paths
        ]
        if part == "nothing":
            whole = {row["ds"]: row for row in rows}
        crps = np.array([row["crps"] / whole[row["ds"]]["crps"] for row in rows])
        cpu = np.array([row["cpu_s"] / whole[row["ds"]]["cpu_s"] for row in rows])
        most = int(np.argmax(crps))
        print(
            f"{part:28}{crps.mean():8.4f}{crps[most]:8.3f}  {rows[most]['ds']:14}"
            f"{np.exp(np.log(cpu).mean()):6.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
