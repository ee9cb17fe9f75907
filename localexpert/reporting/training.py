"""`Training`: what is known of the rows that a model was fitted on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calibration.typing import Float64Array
from localexpert.data.table import TableReader
from localexpert.data.table_summary import TableSummary
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.distribution.predictors import open_same
from localexpert.regressor.regressor import LocalExpertRegressor


@dataclass(frozen=True, eq=False)
class Training:
    """Targets of training rows, and honest forecasts of them.

    Parameters
    ----------
    y : ndarray of shape (m,)
    weight : ndarray of shape (m,)
    oof : PredictiveDistribution or None
        Out of fold, of the same rows.
    """

    y: Float64Array
    weight: Float64Array
    oof: PredictiveDistribution | None

    @property
    def range(self) -> tuple[float, float]:
        """Least and greatest target, wider by what rounding may have taken."""
        held = self.y[self.weight > 0.0]
        low, high = float(held.min()), float(held.max())
        slack = 1e-9 * max(abs(low), abs(high), high - low)
        return low - slack, high + slack


def recall_training(model: Any) -> Training | None:
    """Return what a regressor of ours keeps of its training; None for other models."""
    model = open_same(model, pipelines=True)
    if not isinstance(model, LocalExpertRegressor):
        return None
    y, weight = model.oof_targets_, model.oof_weights_
    return Training(y, weight, model.oof_distribution_)


def recall_reader(model: Any) -> TableReader | None:
    """Return how a regressor of ours reads tables: the categories it has met."""
    return model.reader_ if isinstance(model, LocalExpertRegressor) else None


def recall_features(model: Any) -> TableSummary | None:
    """Return what a regressor of ours keeps of its features; earlier ones kept none."""
    if not isinstance(model, LocalExpertRegressor):
        return None
    return getattr(model, "table_summary_", None)
