"""Ours as a model of ScoringBench, and that benchmark's metrics of it.

    python benchmarks/scoringbench_model.py --data DIR --sets airfoil concrete yacht
    python benchmarks/scoringbench_model.py --quick            # needs no files

ScoringBench (Landsgesell & Knoll 2026, arXiv 2603.29928) asks a wrapper for `fit`,
`predict` and `predict_distribution`: for each row probabilities of bins, with the edges
and the middles of the bins and the mean of the forecast. Where its package can be
imported (it needs torch), `LocalExpertWrapper` inherits its base class and returns its
container, and is entered there as any other:

    from scoringbench_model import LocalExpertWrapper
    run_benchmark(datasets, {"localexpert": LocalExpertWrapper}, folder)

The metrics are those of its definitions, in NumPy: a forecast is uniform in each bin,
and an interval ends where a bin does. Its protocol: at most 3 000 rows of a set, five
shuffled folds. DIR is as in `regression.py`.
"""

from __future__ import annotations

import argparse
import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from regression import load
from regression_short import short_tables
from sklearn.model_selection import KFold

from localexpert import LocalExpertRegressor, PredictiveDistribution

SEED, N_FOLDS, MOST_ROWS = 42, 5, 3_000
# An interval reaches to the far edge of the bin that its level falls in, so the bins
# at the ends of those of 90 and 95 % are narrow.
ENDS = np.array([0.025, 0.05, 0.95, 0.975])
TAILS = np.array([1e-5, 1e-4, 1e-3])
LEVELS = np.unique(
    np.concatenate(
        [TAILS, np.arange(1, 200) / 200.0, ENDS - 2.5e-4, ENDS + 2.5e-4, 1.0 - TAILS]
    ).round(8)
)
LEVELS = LEVELS[~np.isin(LEVELS, ENDS)]
# Least width of a bin, as a share of the range of the training target.
LEAST_WIDTH = 1e-7


@dataclass
class Bins:
    """Forecasts as ScoringBench reads them, by the names of its own container.

    Parameters
    ----------
    probas : ndarray of shape (n, k)
    bin_edges : ndarray of shape (n, k + 1)
    bin_midpoints : ndarray of shape (n, k)
    mean : ndarray of shape (n,)
    """

    probas: np.ndarray
    bin_edges: np.ndarray
    bin_midpoints: np.ndarray
    mean: np.ndarray


def find_base() -> tuple[Any, Any]:
    """Return the base class and the container of ScoringBench, or stand-ins."""
    try:
        theirs = importlib.import_module("scoringbench.wrappers.base")
    except ImportError:
        return object, Bins
    return theirs.ProbabilisticWrapper, theirs.DistributionPrediction


_Base, _Container = find_base()


class LocalExpertWrapper(_Base):  # type: ignore[misc]
    """`LocalExpertRegressor` behind the interface of ScoringBench.

    Parameters
    ----------
    **options
        Of the regressor; `random_state` is the benchmark's seed unless given.
    """

    def __init__(self, **options: Any):
        self.options = {"random_state": SEED, **options}

    def fit(self, X: Any, y: Any) -> LocalExpertWrapper:
        """Fit the regressor."""
        target = np.asarray(y, dtype=float)
        self.least_width = LEAST_WIDTH * (float(np.ptp(target)) or 1.0)
        self.model = LocalExpertRegressor(**self.options).fit(_read(X), target)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the means."""
        return self.model.predict(_read(X))

    def predict_distribution(self, X: Any) -> Any:
        """Return the forecasts as probabilities of bins, row by row."""
        return into_bins(self.model.predict_dist(_read(X)), self.least_width)


def _read(X: Any) -> Any:
    """Return a table with its texts as categories, as `regression.load` does."""
    if not isinstance(X, pd.DataFrame):
        return X
    texts = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    return X.astype(dict.fromkeys(texts, "category"))


def into_bins(dist: PredictiveDistribution, least_width: float) -> Any:
    """Return bins between quantiles, or of a discrete forecast around its values."""
    values, is_discrete = dist.atoms, dist.coefficients.shape[1] == 0
    if is_discrete and len(values) > 1:
        inner = 0.5 * (values[1:] + values[:-1])
        outer = 2.0 * values[[0, -1]] - inner[[0, -1]]
        edges = np.tile(np.concatenate([outer[:1], inner, outer[1:]]), (len(dist), 1))
        p = dist.masses
    else:
        edges = np.sort(dist.quantiles(LEVELS), axis=1)
        # Bins of an atom have a little width, else their density would be unbounded.
        step = least_width * np.arange(edges.shape[1])
        edges = np.maximum.accumulate(edges - step, axis=1) + step
        upto = dist.cdf(edges.T).T
        upto[:, 0], upto[:, -1] = 0.0, 1.0  # what lies beyond is in the outer bins
        p = np.maximum(np.diff(upto, axis=1), 0.0)
    p = p / p.sum(axis=1, keepdims=True)
    middles = 0.5 * (edges[:, 1:] + edges[:, :-1])
    return _Container(p, edges, middles, dist.mean())


def score_bins(bins: Any, y: np.ndarray) -> dict[str, float]:
    """Return the benchmark's scores of forecasts that are uniform in each bin."""
    p, edges, middles = bins.probas, bins.bin_edges, bins.bin_midpoints
    widths, upto = np.diff(edges, axis=1), np.cumsum(p, axis=1)
    rows, last = np.arange(len(y)), p.shape[1] - 1
    own = np.minimum((edges[:, 1:] < y[:, None]).sum(axis=1), last)
    density = p[rows, own] / np.maximum(widths[rows, own], 1e-10)
    held = np.clip(upto, 2.0**-23, 1.0 - 2.0**-23)
    above = np.arange(last + 1) >= own[:, None]
    told = np.where(above, -np.log(held), -np.log1p(-held))
    scores = {
        "mae": np.abs(y - bins.mean).mean(),
        "rmse": np.sqrt(np.mean((y - bins.mean) ** 2)),
        "crps": _crps(p, edges, y).mean(),
        "log_score": -np.log(np.maximum(density, 1e-10)).mean(),
        "crls": (told * widths).sum(axis=1).mean(),
    }
    for percent in (90, 95):
        tail = 0.5 * (1.0 - percent / 100)
        first, final = ((upto < level).sum(axis=1) for level in (tail, 1.0 - tail))
        low = edges[rows, np.minimum(first, last)]
        high = edges[rows, np.minimum(final + 1, last)]
        outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
        scores[f"coverage_{percent}"] = ((low <= y) & (y <= high)).mean()
        scores[f"interval_{percent}"] = (high - low + outside / tail).mean()
    # Gneiting & Ranjan (2011), eq. 17, the quantile of a level as its bin's middle.
    levels = np.arange(1, 100) / 100.0
    place = np.stack([(upto < level).sum(axis=1) for level in levels], axis=1)
    quantiles = np.take_along_axis(middles, np.minimum(place, last), axis=1)
    miss = quantiles - y[:, None]
    pinball = 2.0 * ((miss >= 0.0) - levels) * miss
    shapes = {
        "left": (1.0 - levels) ** 2,
        "right": levels**2,
        "center": levels * (1.0 - levels),
    }
    for name, weight in shapes.items():
        scores[f"wcrps_{name}"] = 0.01 * (pinball @ weight).mean()
    return {name: float(score) for name, score in scores.items()}


def _crps(p: np.ndarray, edges: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return E|Z - y| - E|Z - Z'| / 2 of Z uniform in each bin, shape (n,)."""
    widths = np.diff(edges, axis=1)
    below, above = edges[:, :-1] - y[:, None], edges[:, 1:] - y[:, None]
    apart = (above * np.abs(above) - below * np.abs(below)) / (2.0 * widths)
    # Both draws in different bins: the middles' distance; in one: a third of its width.
    middles = 0.5 * (edges[:, 1:] + edges[:, :-1])
    before = np.cumsum(p, axis=1) - p
    between = (p * middles * (2.0 * before + p - 1.0)).sum(axis=1)
    return (p * apart).sum(axis=1) - between - (p**2 * widths).sum(axis=1) / 6.0


def run(X: pd.DataFrame, y: np.ndarray, options: dict[str, Any]) -> pd.DataFrame:
    """Return the scores of each fold, by the benchmark's protocol."""
    rng, rows = np.random.default_rng(SEED), []
    for train, test in KFold(N_FOLDS, shuffle=True, random_state=SEED).split(X):
        cap = MOST_ROWS // N_FOLDS
        parts = [
            part if len(part) <= most else rng.choice(part, most, replace=False)
            for part, most in ((train, MOST_ROWS - cap), (test, cap))
        ]
        model = LocalExpertWrapper(**options).fit(X.iloc[parts[0]], y[parts[0]])
        table, target = X.iloc[parts[1]], y[parts[1]]
        scores = score_bins(model.predict_distribution(table), target)
        exact = model.model.predict_dist(table).crps(target).mean()
        rows.append(scores | {"crps_exact": float(exact)})
    return pd.DataFrame(rows)


def main() -> None:
    """Run the sets asked for and print their mean scores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of CSV files")
    parser.add_argument("--sets", nargs="*", default=["airfoil", "concrete", "yacht"])
    parser.add_argument("--quick", action="store_true", help="small tables and fits")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    if given.data is None and not given.quick:
        parser.error("--data is needed without --quick")
    options: dict[str, Any] = {"n_jobs": given.jobs}
    if given.quick:
        options |= {"strategy": "joint", "frame": None, "n_thresholds": 9, "cv": 3}
        tables = short_tables()
    else:
        paths = {name: given.data / f"{name}.csv.gz" for name in given.sets}
        tables = {name: load(path) for name, path in paths.items()}
    means = {name: run(X, y, options).mean() for name, (X, y) in tables.items()}
    print(pd.DataFrame(means).round(4).to_string())


if __name__ == "__main__":
    main()
