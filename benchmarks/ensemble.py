"""The ensemble beside the default regressor, on the tables of `regression.py`.

    python benchmarks/ensemble.py --data DIR                   # split 0 of every set
    python benchmarks/ensemble.py --data DIR --sets yacht concrete --splits 1 2

Splits, rows and scores are those of `regression.py`. The default regressor's row of a
set and split is taken from the run of `regression.py` named by `--default`; what that
run lacks is measured here. The columns are CRPS over the default's: of the ensemble,
of the member that is best on these test rows (known afterwards only), and of the one
that is best out of fold. Rerun to resume; one JSON line per set and split.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import regression
from records import Records

from localexpert.ensemble import DistributionEnsemble

HEADER = "set-split               n  ensemble  best member  best oof  pool    fit s"


def run(path: Path, split: int, jobs: int) -> dict[str, Any]:
    """Fit the standard ensemble on one split and score it and its members."""
    table, y = regression.load(path)
    train, test = regression.split_rows(len(y), split)
    start = time.perf_counter()
    model = DistributionEnsemble(random_state=0, n_jobs=jobs)
    model.fit(table.iloc[train], y[train])
    fitted = time.perf_counter()
    dist = model.predict_dist(table.iloc[test])
    out = regression.scores(y[test], dist.quantiles(regression.LEVELS))
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
        "weights": model.weights_,
        "losses": model.losses_,
        "pool": model.pool_,
        "members": {
            name: float(member.predict_dist(table.iloc[test]).crps(y[test]).mean())
            for name, member in model.members_.items()
        },
    }


def default_row(
    known: Records, own: Records, key: str, path: Path, split: int, jobs: int
) -> dict[str, Any]:
    """Return the default regressor's row, recorded or measured."""
    if key in known.rows:
        return known.rows[key]
    return own.measure(
        f"default-{key}",
        lambda: regression.run(path, split, standard=False, jobs=jobs),
    )


def ratios(row: dict[str, Any], default: dict[str, Any]) -> dict[str, float]:
    """Return CRPS over the default's."""
    base, members = default["crps_exact"], row["members"]
    chosen = min(members, key=lambda name: row["losses"][name])
    return {
        "ensemble": row["crps_exact"] / base,
        "best member": min(members.values()) / base,
        "best oof": members[chosen] / base,
    }


def print_table(rows: list[tuple[str, dict[str, Any], dict[str, float]]]) -> None:
    """Print a line per set and split, and the means."""
    print(HEADER)
    for key, row, ratio in rows:
        print(
            f"{key:18s} {row['n']:6d} {ratio['ensemble']:9.3f} "
            f"{ratio['best member']:12.3f} {ratio['best oof']:9.3f}  "
            f"{row['pool']:6s} {row['fit_s']:6.1f}"
        )
    every = [ratio for _, _, ratio in rows]
    for name, mean in (
        ("mean", np.mean),
        ("geometric mean", lambda x: np.exp(np.mean(np.log(x)))),
    ):
        values = [mean([ratio[column] for ratio in every]) for column in every[0]]
        print(f"{name:25s} {values[0]:9.3f} {values[1]:12.3f} {values[2]:9.3f}")
    print_members(rows)
    better = sum(ratio["ensemble"] < 1.0 for ratio in every)
    print(f"better than the default on {better} of {len(every)}")


def print_members(rows: list[tuple[str, dict[str, Any], dict[str, float]]]) -> None:
    """Print the mean over sets of each member's CRPS over the default's."""
    for name in rows[0][1]["members"]:
        each = [
            ratio["ensemble"] * row["members"][name] / row["crps_exact"]
            for _, row, ratio in rows
        ]
        print(f"  member {name!r}: {np.mean(each):.3f}")


def main() -> None:
    """Run or resume the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of CSV files")
    parser.add_argument("--sets", nargs="*", default=None)
    parser.add_argument("--splits", nargs="*", type=int, default=[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--run", default="latest", help="name of the run to resume")
    parser.add_argument("--default", default="latest", help="run of regression.py")
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    options = parser.parse_args()
    own = Records("ensemble", options.run, fresh=options.fresh)
    known = Records("regression", options.default, fresh=False)
    rows = []
    for split in options.splits:
        for path in sorted(options.data.glob("*.csv.gz")):
            name, jobs = path.name.split(".")[0], options.jobs
            if options.sets and name not in options.sets:
                continue
            key = f"{name}-{split}"
            default = default_row(known, own, key, path, split, jobs)
            row = own.measure(
                key, lambda path=path, split=split: run(path, split, options.jobs)
            )
            rows.append((key, row, ratios(row, default)))
    print_table(rows)


if __name__ == "__main__":
    main()
