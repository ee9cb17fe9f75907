"""`Scores`: how good forecasts were, of whole distributions or of some quantiles."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calibration.typing import Float64Array
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.metrics import crps_score, interval_coverage, log_score


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
        """Score means (n,) and quantiles (n, q) at `levels_for(coverage)`.

        Without a law the interval is taken as closed.
        """
        levels = np.array(levels_for(coverage))
        miss = y[:, None] - quantiles
        loss = np.maximum(levels * miss, (levels - 1.0) * miss)
        low, high = quantiles[:, 0], quantiles[:, -1]
        return cls(
            crps=None,
            log_score=None,
            quantile_loss=float(loss.mean()),
            rmse=float(np.sqrt(np.mean((y - mean) ** 2))),
            mae=float(np.mean(np.abs(miss[:, levels == 0.5]))),
            coverage=float(np.mean((low <= y) & (y <= high))),
            width=float(np.mean(high - low)),
        )


def levels_for(coverage: float) -> list[float]:
    """Return the levels of scored quantiles: the interval's ends outermost."""
    tail = 0.5 * (1.0 - coverage)
    inner = [level for level in (0.25, 0.75) if tail < level < 1.0 - tail]
    return sorted({tail, *inner, 0.5, 1.0 - tail})
