"""Scores of forecasts, beside those of climatology and of boosted quantiles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import ttest_1samp

from calibration.typing import Float64Array
from localexpert.data.table import Table
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.metrics import crps_score, interval_coverage, log_score
from localexpert.reporting.evidence import Evidence

# Training rows that are needed to fit a baseline and to tell it when to stop.
_LEAST_TO_BOOST = 10
_MOST_ROUNDS, _PATIENCE = 500, 25
# Share of the training rows that say when to stop.
_HELD_OUT = 0.2


@dataclass(frozen=True)
class Scores:
    """Means over rows; None where a forecast says too little to be scored.

    Parameters
    ----------
    crps, log_score : float or None
    quantile_loss : float
        Mean pinball loss over the levels.
    rmse : float
        Root mean squared error of the mean.
    mae : float
        Mean absolute error of the median.
    coverage, width : float
        Of the central interval.
    """

    crps: float | None
    log_score: float | None
    quantile_loss: float
    rmse: float
    mae: float
    coverage: float
    width: float

    @classmethod
    def of(
        cls, y: Float64Array, dist: PredictiveDistribution, coverage: float
    ) -> Scores:
        """Score whole distributions of outcomes, shape (n,)."""
        quantiles = dist.quantiles(levels_for(coverage))
        return replace(
            cls.of_quantiles(y, dist.mean(), quantiles, coverage),
            crps=crps_score(y, dist),
            log_score=log_score(y, dist),
            coverage=interval_coverage(y, dist, coverage=coverage),
        )

    @classmethod
    def of_quantiles(
        cls,
        y: Float64Array,
        mean: Float64Array,
        quantiles: Float64Array,
        coverage: float,
    ) -> Scores:
        """Score means (n,) and quantiles (n, q) at `levels_for(coverage)`."""
        levels = np.array(levels_for(coverage))
        miss = y[:, None] - quantiles
        low, high = quantiles[:, 0], quantiles[:, -1]
        return cls(
            crps=None,
            log_score=None,
            quantile_loss=float(np.maximum(levels * miss, (levels - 1) * miss).mean()),
            rmse=float(np.sqrt(np.mean((y - mean) ** 2))),
            mae=float(np.mean(np.abs(miss[:, levels == 0.5]))),
            coverage=float(np.mean((low <= y) & (y <= high))),
            width=float(np.mean(high - low)),
        )

    def skill(self, name: str, other: Scores | None) -> float | None:
        """Return the share of another's loss that is saved; of the log score how much.

        None where there is no loss to save, or none is known.
        """
        ours, theirs = getattr(self, name), getattr(other, name, None)
        if ours is None or theirs is None or not np.isfinite(theirs):
            return None
        if name == "log_score":
            return float(theirs - ours)
        return 1.0 - ours / theirs if theirs > 0.0 else None


def levels_for(coverage: float) -> list[float]:
    """Return the levels of scored quantiles: the interval's ends outermost."""
    tail = 0.5 * (1.0 - coverage)
    inner = [level for level in (0.25, 0.75) if tail < level < 1.0 - tail]
    return sorted({tail, *inner, 0.5, 1.0 - tail})


def gain_p_value(before: Float64Array | None, after: Float64Array) -> float | None:
    """Return the p-value of no gain of one loss over another (n,).

    Diebold & Mariano (1995) for independent rows, with Student's law as in Harvey,
    Leybourne & Newbold (1997), for rows may be few. None where there is no test.
    """
    if before is None or len(after) < 2 or np.std(before - after) == 0.0:
        return None
    return float(ttest_1samp(before - after, 0.0).pvalue)


def score_boosting(evidence: Evidence) -> Scores | None:
    """Fit LightGBM to training rows, a model for each quantile and one for the mean.

    A fifth of the training rows says when to stop. Quantiles that cross are sorted.
    None where no training rows are given, or too few.
    """
    y = evidence.y_train
    if evidence.X_train is None or y is None or len(y) < _LEAST_TO_BOOST:
        return None
    import lightgbm as lgb

    reader = Table.of(evidence.X_train).reader
    train, new = (reader.read(X).codes for X in (evidence.X_train, evidence.X))
    order = np.random.default_rng(evidence.seed).permutation(len(y))
    held, rest = np.split(order, [max(1, round(_HELD_OUT * len(y)))])
    common: dict[str, Any] = {
        "verbosity": -1,
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "learning_rate": 0.05,
        "num_leaves": 15,
        "min_data_in_leaf": int(np.clip(len(y) // 20, 1, 20)),
        "min_data_in_bin": 1,
        "seed": evidence.seed,
    }
    found: list[Any] = []
    for level in (None, *levels_for(evidence.coverage)):
        loss = {} if level is None else {"objective": "quantile", "alpha": level}
        named: dict[str, Any] = {"categorical_feature": reader.categories}
        part = lgb.Dataset(train[rest], y[rest], **named)
        test = lgb.Dataset(train[held], y[held], reference=part, **named)
        stop = lgb.early_stopping(_PATIENCE, verbose=False)
        how = common | loss
        booster = lgb.train(how, part, _MOST_ROUNDS, [test], callbacks=[stop])
        found.append(booster.predict(new, num_threads=1))
    quantiles: Float64Array = np.sort(np.column_stack(found[1:]), axis=1)
    return Scores.of_quantiles(evidence.y, found[0], quantiles, evidence.coverage)
