"""Methods that the league compares with ours, each a function of training and new rows.

Needs the `bench` extra; TabPFN and TabICL need their own packages and weights besides.
Categories are codes; missing values stay for boosters, and are medians for NGBoost and
the forest. A method answers with the 199 quantiles of `regression.LEVELS`, or with a
mean and a standard deviation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor, early_stopping
from regression import LEVELS
from regression_short import BASELINES, between_knots
from regression_speed import boost_normals
from scipy.stats import norm
from sklearn.model_selection import KFold

# Levels of the quantile boosters; between them quantiles are interpolated.
KNOTS = np.array([0.005, 0.01, *np.linspace(0.025, 0.975, 25), 0.99, 0.995])
# Those of boosters that learn all levels at once.
COMMON_KNOTS = np.array([0.01, 0.025, *np.arange(1, 20) / 20.0, 0.975, 0.99])


def numbers(table: pd.DataFrame) -> np.ndarray:
    """Return the features as numbers: categories by code, missing as NaN."""
    columns = [
        column.cat.codes.replace(-1, np.nan) if column.dtype == "category" else column
        for _, column in table.items()
    ]
    return np.column_stack([np.asarray(column, float) for column in columns])


def without_gaps(X: np.ndarray, X_new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both with medians of training for missing values (0 if all are)."""
    known = ~np.isnan(X).all(axis=0)
    medians = np.zeros(X.shape[1])
    medians[known] = np.nanmedian(X[:, known], axis=0)
    return np.where(np.isnan(X), medians, X), np.where(np.isnan(X_new), medians, X_new)


def held_tenth(n: int) -> list[np.ndarray]:
    """Return the rows to train on and a tenth to stop early by."""
    return np.split(np.random.default_rng(0).permutation(n), [n - n // 10])


def boosted(X: np.ndarray, y: np.ndarray, patience: int, **options: Any) -> Any:
    """Return a LightGBM regressor with early stopping on a tenth."""
    train, held = held_tenth(len(y))
    model = LGBMRegressor(n_estimators=2000, n_jobs=1, verbose=-1, **options)
    return model.fit(
        X[train],
        y[train],
        eval_set=[(X[held], y[held])],
        callbacks=[early_stopping(patience, verbose=False)],
    )


def lgb_quantiles(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """One LightGBM for each of 29 levels, sorted."""
    common = {"objective": "quantile", "learning_rate": 0.05}
    knots = [boosted(X, y, 30, alpha=level, **common).predict(X_new) for level in KNOTS]
    return between_knots(LEVELS, KNOTS, np.column_stack(knots))


def lgb_few(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """Fit one LightGBM of 200 trees for each of 19 levels."""
    levels, common = np.arange(1, 20) / 20.0, {"n_estimators": 200, "n_jobs": 1}
    knots = [
        LGBMRegressor(objective="quantile", alpha=level, verbose=-1, **common)
        .fit(X, y)
        .predict(X_new)
        for level in levels
    ]
    return between_knots(LEVELS, levels, np.column_stack(knots))


def catboost_quantiles(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """Fit 23 levels at once by CatBoost, with early stopping on a tenth."""
    levels = ",".join(f"{level:g}" for level in COMMON_KNOTS)
    told = catboost(X, y, f"MultiQuantile:alpha={levels}").predict(X_new)
    return between_knots(LEVELS, COMMON_KNOTS, told)


def chimera_quantiles(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """Fit 23 levels at once by ChimeraBoost, as it comes."""
    from chimeraboost import ChimeraBoostQuantileRegressor

    model = ChimeraBoostQuantileRegressor(
        COMMON_KNOTS, thread_count=1, random_state=0
    ).fit(X, y)
    return between_knots(LEVELS, COMMON_KNOTS, model.predict(X_new))


def quantile_forest(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """Meinshausen's forest: 500 trees, five rows in a leaf."""
    from quantile_forest import RandomForestQuantileRegressor

    X, X_new = without_gaps(X, X_new)
    model = RandomForestQuantileRegressor(
        500, min_samples_leaf=5, random_state=0, n_jobs=1
    )
    return np.asarray(model.fit(X, y).predict(X_new, quantiles=list(LEVELS)))


def crepes_cps(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """A conformal predictive system, normalised by the errors that are foreseen.

    LightGBM's residuals out of fold; their sizes are learned out of fold, too.
    """
    residuals, sizes = np.empty(len(y)), np.empty(len(y))
    for train, held in KFold(5, shuffle=True, random_state=0).split(X):
        centre = boosted(X[train], y[train], 50, learning_rate=0.05)
        residuals[held] = y[held] - centre.predict(X[held])
    small = {"n_estimators": 100, "learning_rate": 0.05, "num_leaves": 15}
    errors = LGBMRegressor(n_jobs=1, verbose=-1, **small)
    for train, held in KFold(5, shuffle=True, random_state=1).split(X):
        errors.fit(X[train], np.abs(residuals[train]))
        sizes[held] = errors.predict(X[held])
    least = 0.05 * np.abs(residuals).mean() + 1e-12
    new_sizes = errors.fit(X, np.abs(residuals)).predict(X_new)
    return conformal(
        residuals,
        np.maximum(sizes, least),
        boosted(X, y, 50, learning_rate=0.05).predict(X_new),
        np.maximum(new_sizes, least),
    )


def conformal(
    residuals: np.ndarray, sizes: np.ndarray, centres: np.ndarray, new_sizes: np.ndarray
) -> np.ndarray:
    """Return the quantiles that crepes' predictive system gives."""
    from crepes import ConformalPredictiveSystem

    system = ConformalPredictiveSystem().fit(residuals, sigmas=sizes)
    return np.asarray(
        system.predict_percentiles(
            centres, sigmas=new_sizes, higher_percentiles=list(100.0 * LEVELS)
        )
    )


def catboost(X: np.ndarray, y: np.ndarray, loss: str) -> Any:
    """Return a CatBoost regressor with early stopping on a tenth."""
    from catboost import CatBoostRegressor

    train, held = held_tenth(len(y))
    model = CatBoostRegressor(
        loss_function=loss,
        iterations=2000,
        random_seed=0,
        thread_count=1,
        verbose=0,
        allow_writing_files=False,
    )
    return model.fit(
        X[train], y[train], eval_set=(X[held], y[held]), early_stopping_rounds=50
    )


def catboost_unc(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """Mean and standard deviation by CatBoost's loss with uncertainty."""
    mean, variance = catboost(X, y, "RMSEWithUncertainty").predict(X_new).T
    return np.stack([mean, np.sqrt(variance)])


def ngboost(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """Mean and standard deviation by NGBoost, with early stopping on a tenth."""
    X, X_new = without_gaps(X, X_new)
    law = boost_normals(X, y, *held_tenth(len(y)))(X_new).params
    return np.stack([law["loc"], law["scale"]])


def tabpfn(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """Quantiles of TabPFN as it comes; its weights must be at hand."""
    from tabpfn import TabPFNRegressor

    model = TabPFNRegressor(random_state=0).fit(X, y)
    told = model.predict(X_new, output_type="quantiles", quantiles=list(LEVELS))
    return np.sort(np.column_stack(told), axis=1)


def tabicl(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> np.ndarray:
    """Quantiles of TabICL as it comes; its weights must be at hand."""
    from tabicl import TabICLRegressor

    model = TabICLRegressor(random_state=0).fit(X, y)
    told = model.predict(X_new, output_type="quantiles", alphas=list(LEVELS))
    return np.sort(np.asarray(told), axis=1)


@dataclass(frozen=True)
class Told:
    """What a method says of new rows: quantiles (n, 199), and a law if it has one."""

    quantiles: np.ndarray
    mean: np.ndarray | None = None
    logpdf: Callable[[np.ndarray], np.ndarray] | None = None


Method = Callable[[pd.DataFrame, np.ndarray, pd.DataFrame], Told]


def by_quantiles(learn: Callable[..., np.ndarray]) -> Method:
    """Return a method that answers by quantiles."""

    def method(X: pd.DataFrame, y: np.ndarray, X_new: pd.DataFrame) -> Told:
        return Told(learn(numbers(X), y, numbers(X_new)))

    return method


def by_normal(learn: Callable[..., np.ndarray]) -> Method:
    """Return a method that answers by normal distributions."""

    def method(X: pd.DataFrame, y: np.ndarray, X_new: pd.DataFrame) -> Told:
        mean, deviation = learn(numbers(X), y, numbers(X_new))
        law = norm(mean, deviation)
        quantiles = mean[:, None] + deviation[:, None] * norm.ppf(LEVELS)
        return Told(quantiles, mean, law.logpdf)

    return method


def plain(learn: Callable[..., np.ndarray]) -> Method:
    """Return one of the plain forecasts as a method."""
    return lambda X, y, X_new: Told(learn(X, y, X_new, LEVELS))


QUANTILES = (
    lgb_few,
    lgb_quantiles,
    quantile_forest,
    crepes_cps,
    catboost_quantiles,
    chimera_quantiles,
)
NORMAL = (catboost_unc, ngboost)
METHODS = {learn.__name__: by_quantiles(learn) for learn in QUANTILES}
METHODS |= {learn.__name__: by_normal(learn) for learn in NORMAL}
# They run where they are asked for by name.
ON_DEMAND = {learn.__name__: by_quantiles(learn) for learn in (tabpfn, tabicl)}
ON_DEMAND |= {name: plain(learn) for name, learn in BASELINES.items()}
