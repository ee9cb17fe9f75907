"""What independence costs: intervals of totals over rows that share a shock.

    python benchmarks/totals.py                  # 20 draws
    python benchmarks/totals.py --draws 5 --known

30 stores sell for 200 weeks: y is the store's level, N(0, 1), a shock of the week that
all stores share, N(0, .3^2), and N(0, 1). A model is fitted on 100 weeks, folds keeping
weeks whole, and forecasts the sums over the stores of each of the other 100. Printed is
how many of these lie in 90 % intervals: as if rows were independent, with the
correlation that `estimate_correlation` finds out of fold, and with .1. The four
features are noise; with --known the first is the number of the store.
"""

from __future__ import annotations

import argparse

import numpy as np

from localexpert import LocalExpertRegressor, estimate_correlation

N_STORES, N_WEEKS, SHOCK = 30, 100, 0.3


def draw(seed: int, *, known: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, targets and weeks of twice as many weeks as are fitted."""
    rng = np.random.default_rng(seed)
    week = np.repeat(np.arange(2 * N_WEEKS), N_STORES)
    store = np.tile(np.arange(N_STORES), 2 * N_WEEKS)
    X = rng.normal(size=(len(week), 4))
    if known:
        X[:, 0] = store
    shock = SHOCK * rng.normal(size=2 * N_WEEKS)
    y = rng.normal(size=N_STORES)[store] + shock[week] + rng.normal(size=len(week))
    return X, y, week


def run(seed: int, *, known: bool) -> list[float]:
    """Return shares of totals in their intervals, and the correlation with its ends."""
    X, y, week = draw(seed, known=known)
    old = week < N_WEEKS
    model = LocalExpertRegressor(effort="quick", random_state=0)
    model.fit(X[old], y[old], groups=week[old])
    found = estimate_correlation(model.oof_distribution_, y[old], week[old])
    dist = model.predict_dist(X[~old])
    sums = np.bincount(week[~old], y[~old])[N_WEEKS:]
    shares = []
    for correlation in (0.0, found, 0.1):
        total = dist.total(groups=week[~old], correlation=correlation, random_state=0)
        low, high = total.interval(0.9).T
        shares.append(float(np.mean((low <= sums) & (sums <= high))))
    return [*shares, found.correlation, *found.interval]


def main() -> None:
    """Print a line for each draw, and their mean."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--known", action="store_true", help="stores are a feature")
    options = parser.parse_args()
    names = ("independent", "estimated", "with .1", "correlation", "low", "high")
    print("".join(f"{name:>12}" for name in ("draw", *names)))
    rows = []
    for seed in range(options.draws):
        rows.append(run(seed, known=options.known))
        print(f"{seed:>12}" + "".join(f"{x:>12.3f}" for x in rows[-1]), flush=True)
    print(f"{'mean':>12}" + "".join(f"{x:>12.3f}" for x in np.mean(rows, axis=0)))


if __name__ == "__main__":
    main()
