"""Three small tables that need no files, and two plain forecasts to beat on them.

Diabetes comes with scikit-learn. Friedman's function gets noise whose spread depends
on x, and `skewed` is gamma distributed with a scale that depends on x.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor
from sklearn.datasets import load_diabetes

ROWS = 800
# Levels of the quantile boosters; between them quantiles are interpolated.
KNOTS = np.array([0.005, *np.arange(1, 20) / 20.0, 0.995])
BOOSTER = {"n_estimators": 100, "learning_rate": 0.05, "num_leaves": 7}


def short_tables() -> dict[str, tuple[pd.DataFrame, np.ndarray]]:
    """Return features and target of each table."""
    X, y = load_diabetes(return_X_y=True)
    rng = np.random.default_rng(0)
    U = rng.uniform(size=(ROWS, 6))
    # Friedman (1991), Multivariate adaptive regression splines, eq. 56.
    level = 10.0 * np.sin(np.pi * U[:, 0] * U[:, 1]) + 20.0 * (U[:, 2] - 0.5) ** 2
    level += 10.0 * U[:, 3] + 5.0 * U[:, 4]
    friedman = level + (0.5 + 2.0 * U[:, 5]) * rng.normal(size=ROWS)
    skewed = rng.gamma(2.0, np.exp(2.0 * U[:, 0] - U[:, 1]))
    tables = {"diabetes": (X, y), "friedman": (U, friedman), "skewed": (U, skewed)}
    return {
        name: (pd.DataFrame(features).add_prefix("x"), target)
        for name, (features, target) in tables.items()
    }


def constant(
    X: pd.DataFrame, y: np.ndarray, X_new: pd.DataFrame, levels: np.ndarray
) -> np.ndarray:
    """Return the training quantiles for every new row."""
    del X
    return np.tile(np.quantile(y, levels), (len(X_new), 1))


def boosted_quantiles(
    X: pd.DataFrame, y: np.ndarray, X_new: pd.DataFrame, levels: np.ndarray
) -> np.ndarray:
    """Return sorted quantiles of one LightGBM per level, interpolated."""
    common = {"objective": "quantile", "num_threads": 1, "random_state": 0}
    knots = [
        LGBMRegressor(alpha=level, verbose=-1, **common, **BOOSTER)
        .fit(X, y)
        .predict(X_new, num_threads=1)
        for level in KNOTS
    ]
    return between_knots(levels, KNOTS, np.column_stack(knots))


def between_knots(
    levels: np.ndarray, knots: np.ndarray, quantiles: np.ndarray
) -> np.ndarray:
    """Return the quantiles at some levels from sorted ones at the knots, (n, m)."""
    ordered = np.sort(quantiles, axis=1)
    return np.array([np.interp(levels, knots, row) for row in ordered])


BASELINES = {"constant": constant, "boosted_quantiles": boosted_quantiles}
