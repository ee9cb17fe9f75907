"""Seconds of what is asked of 10 000 forecasts.

    python benchmarks/forecast_speed.py                       # rerun to resume
    python benchmarks/forecast_speed.py --fresh
    python benchmarks/forecast_speed.py --run before          # in another checkout

A default fit of 3 000 rows, forecasts of 10 000 new ones, and the median of three calls
of each question. One JSON line per run; rows of other runs of the same file are printed
beside it, so that two states of the code can be compared: copy `results` over.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from records import Records, median_seconds

from localexpert import (
    LocalExpertRegressor,
    PitRecalibration,
    PredictiveDistribution,
    pool,
)

N_TRAIN, N_NEW = 3_000, 10_000
# Rows by which recalibrations are learned.
N_KNOWN = 2_000


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features and a target whose spread hangs on one of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return X, X[:, 0] + np.exp(0.5 * X[:, 1]) * rng.normal(size=n)


def pool_of_six(dist: PredictiveDistribution, y: np.ndarray) -> np.ndarray:
    """Return the CRPS of a pool of six forecasts, recalibrated twice."""
    moved = [
        dist.transform(lambda y, a=a, b=b: a + b * y, lambda z, a=a, b=b: (z - a) / b)
        for a, b in ((0.1, 1.0), (-0.2, 1.0), (0.0, 1.1), (0.0, 0.9))
    ]
    pooled = pool([dist, dist[::-1], *moved], [0.3, 0.1, 0.2, 0.2, 0.1, 0.1])
    for _ in range(2):
        learned = PitRecalibration(random_state=0).fit(pooled[:N_KNOWN], y[:N_KNOWN])
        pooled = learned.apply(pooled)
    return pooled.crps(y)


def deviations(dist: PredictiveDistribution) -> np.ndarray:
    """Return deviations; moments are kept, but new forecasts of the rows have none."""
    again = dist[np.arange(len(dist))]
    return again.std()


def questions(dist: PredictiveDistribution, y: np.ndarray) -> dict[str, Callable]:
    """Return what is asked, by name."""
    groups = np.repeat(np.arange(100), len(y) // 100)
    return {
        "CRPS": lambda: dist.crps(y),
        "199 quantiles": lambda: dist.quantiles(np.arange(1, 200) / 200.0),
        "mean and deviation": lambda: deviations(dist),
        "log score": lambda: dist.log_score(y),
        "CDF at 50 values": lambda: dist.cdf_at(np.linspace(-3.0, 3.0, 50)),
        "shortest intervals": lambda: dist.hdi(0.9),
        "totals of 100 groups": lambda: dist.total(groups=groups),
        "1000 draws": lambda: dist.rvs(1000, random_state=0),
        "pool of six, twice recalibrated": lambda: pool_of_six(dist, y),
    }


def run() -> dict[str, Any]:
    """Return the seconds of all questions."""
    model = LocalExpertRegressor(random_state=0, n_jobs=1).fit(*draw(N_TRAIN, 0))
    X, y = draw(N_NEW, 1)
    model.predict_dist(X)
    found = {"forecasts": median_seconds(lambda: model.predict_dist(X), 3)}
    for name, ask in questions(model.predict_dist(X), y).items():
        ask()
        found[name] = median_seconds(ask, 3)
    return found


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", default="latest", help="name of the run to resume")
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    options = parser.parse_args()
    records = Records("forecast_speed", options.run, fresh=options.fresh)
    found = records.measure("10000", run)
    others = Records("forecast_speed", "before", fresh=False).rows.get("10000", {})
    print(f"{'seconds for 10 000 rows':34s}{options.run:>10s}{'before':>10s}")
    for name, seconds in found.items():
        if isinstance(seconds, float):
            before = others.get(name)
            print(f"{name:34s}{seconds:10.3f}" + (f"{before:10.3f}" if before else ""))


if __name__ == "__main__":
    main()
