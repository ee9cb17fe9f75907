"""Forecasts of counts whose law is known: inflated by zeros, over-dispersed, Poisson.

    python benchmarks/counts.py                            # 20 and 10 draws, an hour
    python benchmarks/counts.py --kinds inflated --draws 4

3 000 rows, four normal features a, b, c, d; y = 0 with probability .3, else negative
binomial with 3 successes and mean exp(1.9 + .5 a + .4 b); the same without zeros, and
Poisson. 5 000 fresh rows. "P(0)" and "mean" are the means of the forecasts beside those
of the true laws; "totals" is how often the 90 % interval of the sum of 100 fresh rows
holds it, in 20 sums a draw. Rerun to resume; one JSON line per draw.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from records import Records
from scipy import stats

from localexpert import LocalExpertRegressor, PredictiveDistribution

KINDS = {"inflated": 20, "overdispersed": 10, "poisson": 10}
N_TRAIN, N_NEW, N_TOTALS, SIZE = 3000, 5000, 20, 100
ZEROS, SUCCESSES = 0.3, 3
VALUES = np.arange(600.0)


def draw(
    kind: str, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features (n, 4), counts and the means before inflation."""
    X = rng.normal(size=(n, 4))
    mean = np.exp(1.9 + 0.5 * X[:, 0] + 0.4 * X[:, 1])
    if kind == "poisson":
        return X, rng.poisson(mean).astype(float), mean
    y = rng.negative_binomial(SUCCESSES, SUCCESSES / (SUCCESSES + mean))
    if kind == "inflated":
        y = np.where(rng.random(n) < ZEROS, 0, y)
    return X, y.astype(float), mean


def true_laws(kind: str, mean: np.ndarray) -> PredictiveDistribution:
    """Return the laws that the counts were drawn from."""
    if kind == "poisson":
        masses = stats.poisson(mean[:, None]).pmf(VALUES)
    else:
        p = SUCCESSES / (SUCCESSES + mean[:, None])
        masses = stats.nbinom(SUCCESSES, p).pmf(VALUES)
    if kind == "inflated":
        masses *= 1.0 - ZEROS
        masses[:, 0] += ZEROS
    masses /= masses.sum(axis=1, keepdims=True)
    return PredictiveDistribution.from_arrays(atoms=VALUES, masses=masses)


def run(kind: str, number: int) -> dict[str, Any]:
    """Return what one draw's forecasts say beside the true laws."""
    rng = np.random.default_rng(number)
    X, y, _ = draw(kind, N_TRAIN, rng)
    new, came, mean = draw(kind, N_NEW, rng)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LocalExpertRegressor(random_state=number).fit(X, y)
    seconds = time.process_time() - start
    dist, true = model.predict_dist(new), true_laws(kind, mean)
    held = []
    for k in range(N_TOTALS):
        rows = slice(k * SIZE, (k + 1) * SIZE)
        low, high = dist[rows].total().interval(0.9)[0]
        held.append(bool(low <= came[rows].sum() <= high))
    return {
        "kind": kind,
        "draw": number,
        "crps": float(dist.crps(came).mean() / true.crps(came).mean()),
        "log": float(dist.log_score(came).mean() - true.log_score(came).mean()),
        "worst": float(dist.log_score(came).max()),
        "zero": float((dist.pmf(0.0) - true.pmf(0.0)).mean()),
        "mean": float(dist.mean().mean() / true.mean().mean() - 1.0),
        "sample": float(y.mean() / true.mean().mean() - 1.0),
        "totals": float(np.mean(held)),
        "cpu_s": seconds,
    }


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print the means over the draws of each kind."""
    print(f"{'':15}{'draws':>6}{'CRPS':>8}{'log':>8}{'worst':>8}{'P(0)':>8}", end="")
    print(f"{'|P(0)|':>8}{'mean':>8}{'(y)':>8}{'totals':>8}{'CPU s':>8}")
    for kind in dict.fromkeys(row["kind"] for row in rows):
        own = [row for row in rows if row["kind"] == kind]
        mean = {
            key: np.mean([row[key] for row in own])
            for key in ("crps", "log", "zero", "mean", "sample", "totals", "cpu_s")
        }
        off = np.mean([abs(row["zero"]) for row in own])
        worst = max(row["worst"] for row in own)
        print(
            f"{kind:15}{len(own):6d}{mean['crps']:8.4f}{mean['log']:8.4f}{worst:8.1f}"
            f"{mean['zero']:8.4f}{off:8.4f}{mean['mean']:8.1%}{mean['sample']:8.1%}"
            f"{mean['totals']:8.1%}{mean['cpu_s']:8.1f}"
        )


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--draws", type=int)
    parser.add_argument("--run", default="latest")
    parser.add_argument("--fresh", action="store_true")
    options = parser.parse_args()
    records = Records("counts", options.run, fresh=options.fresh)
    rows = []
    for kind in options.kinds:
        for number in range(options.draws or KINDS[kind]):
            key = f"{kind} {number}"
            row = records.measure(key, lambda k=kind, i=number: run(k, i))
            rows.append(row)
            print(key, {k: row[k] for k in ("crps", "zero", "mean")}, flush=True)
    print_table(rows)


if __name__ == "__main__":
    main()
