"""Forecasts of designs whose law is known: densities with one and two humps, and more.

    python benchmarks/designs.py                          # all, two seeds
    python benchmarks/designs.py --designs gauss --rows 400 --seeds 0 1 2

*gauss*: 5 uniform features, mean sin(5 x0) + 2 x1, sd .2 + x2. *humps*: the same mean,
minus 2 x3 with probability .4, else plus 2 x3, sd .3. Of both: the L1 distance to the
true density and the modes of a density (prominence above 1 % of its peak), means over
300 new rows. *lognormal*: 6 uniform features, log y = 6 + 1.5 x0 + sin(5 x1) +
(.3 + .9 x2) N(0, 1); CRPS / that of the true law. *grid*: 6 uniform features, f = .5 +
.25 sin(4 x0) + .2 x1 x2 - .1 x3^2, y = round(50 f) / 50. *subjects*: 40 subjects with 8
standard normal numbers; a row is a subject's, with noise of .25, and a time in [0, 1];
y interpolates the subject's four values, uniform in [5, 50]. Rerun to resume.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from records import Records
from scipy.signal import find_peaks
from scipy.stats import norm

from localexpert import LocalExpertRegressor, PredictiveDistribution

DESIGNS = ("gauss", "humps", "lognormal", "grid", "subjects")
N_NEW, N_POINTS = 500, 400
# Row by row the mean, the sd, and half the distance of two humps (0: one).
Truth = tuple[np.ndarray, np.ndarray, np.ndarray]


def draw(name: str, n: int, rng: np.random.Generator) -> tuple[Any, Any, Truth | None]:
    """Return features, targets, and the true laws where they are normal."""
    X = rng.uniform(size=(n, 6 if name in ("lognormal", "grid") else 5))
    if name == "lognormal":
        mean = 6.0 + 1.5 * X[:, 0] + np.sin(5.0 * X[:, 1])
        sd = 0.3 + 0.9 * X[:, 2]
        return X, np.exp(mean + sd * rng.normal(size=n)), (mean, sd, np.zeros(n))
    if name == "grid":
        f = 0.5 + 0.25 * np.sin(4.0 * X[:, 0]) + 0.2 * X[:, 1] * X[:, 2]
        return X, np.round(50.0 * (f - 0.1 * X[:, 3] ** 2)) / 50.0, None
    if name == "subjects":
        fixed = np.random.default_rng(40)
        profile, values = fixed.normal(size=(40, 8)), fixed.uniform(5, 50, (40, 4))
        who, at = rng.integers(40, size=n), rng.uniform(size=n)
        times = np.array([0.0, 0.33, 0.67, 1.0])
        y = [np.interp(t, times, values[s]) for t, s in zip(at, who, strict=True)]
        noisy = profile[who] + 0.25 * rng.normal(size=(n, 8))
        return np.column_stack([noisy, at]), np.array(y), None
    mean = np.sin(5.0 * X[:, 0]) + 2.0 * X[:, 1]
    if name == "gauss":
        sd, half = 0.2 + X[:, 2], np.zeros(n)
    else:
        sd, half = np.full(n, 0.3), 2.0 * X[:, 3]
    side = np.where(rng.uniform(size=n) < 0.4, -1.0, 1.0)
    return X, mean + side * half + sd * rng.normal(size=n), (mean, sd, half)


def densities(dist: PredictiveDistribution, at: np.ndarray) -> np.ndarray:
    """Return each row's density at values of its own, shape (n, k)."""
    return np.column_stack([dist.pdf(values) for values in at.T])


def judge_densities(dist: PredictiveDistribution, truth: Truth) -> dict[str, float]:
    """Return the L1 distance to the true densities, and the number of modes."""
    mean, sd, half = (x[:300, None] for x in truth)
    dist, steps = dist[:300], np.linspace(0.0, 1.0, N_POINTS)
    low, high = mean - half - 4.0 * sd, mean + half + 4.0 * sd
    at = low + (high - low) * steps
    true = 0.4 * norm.pdf(at, mean - half, sd) + 0.6 * norm.pdf(at, mean + half, sd)
    missed = np.trapezoid(np.abs(densities(dist, at) - true), at, axis=1)
    ends = np.asarray(dist.quantiles([0.001, 0.999]))
    own = ends[:, :1] + (ends[:, 1:] - ends[:, :1]) * steps
    modes = [
        len(find_peaks(np.pad(p, 1), prominence=0.01 * p.max())[0])
        for p in densities(dist, own)
    ]
    return {"L1": float(missed.mean()), "modes": float(np.mean(modes))}


def run(name: str, n: int, seed: int) -> dict[str, Any]:
    """Return the figures of one fit."""
    rng = np.random.default_rng(seed)
    X, y, truth = draw(name, n + N_NEW, rng)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LocalExpertRegressor(random_state=seed, n_jobs=1).fit(X[:n], y[:n])
    row = {"design": name, "rows": n, "cpu_s": time.process_time() - start}
    dist, came = model.predict_dist(X[n:]), y[n:]
    row["crps"] = float(dist.crps(came).mean())
    if truth is None:
        return row
    truth = tuple(x[n:] for x in truth)
    if name != "lognormal":
        return row | judge_densities(dist, truth)
    levels = norm.ppf((np.arange(2000) + 0.5) / 2000)
    laws = np.exp(truth[0][:, None] + truth[1][:, None] * levels)
    near = np.abs(laws - came[:, None]).mean(axis=1)
    ranks = 2.0 * np.arange(1, 2001) - 2001
    own = float((near - (laws * ranks).sum(axis=1) / 2000**2).mean())
    below = dist.cdf(0.0)
    return row | {"ratio": row["crps"] / own, "below 0": float(np.max(below))}


def main() -> None:
    """Run what is missing, and print the means over seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", nargs="+", default=list(DESIGNS), choices=DESIGNS)
    parser.add_argument("--rows", nargs="+", type=int, help="of gauss and humps")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--run", default="latest")
    parser.add_argument("--fresh", action="store_true")
    options = parser.parse_args()
    records = Records("designs", options.run, fresh=options.fresh)
    for name in options.designs:
        sizes = options.rows or ([400, 2000] if name in ("gauss", "humps") else [4700])
        for n in sizes:
            rows = [
                records.measure(
                    f"{name}-{n}-{seed}", lambda n=n, name=name, s=seed: run(name, n, s)
                )
                for seed in options.seeds
            ]
            keys = ("crps", "L1", "modes", "ratio", "below 0", "cpu_s")
            told = {
                k: round(float(np.mean([r[k] for r in rows])), 4)
                for k in keys
                if k in rows[0]
            }
            print(f"{name:10} {n:6}", told, flush=True)


if __name__ == "__main__":
    main()
