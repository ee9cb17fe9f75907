"""`Climatology`: the training target's own distribution, the forecast to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibration.typing import Float64Array
from localexpert.curves.base_cdf import BaseCDF, law_of_curves
from localexpert.data.target_values import count_values
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap
from localexpert.law.steps import merge_near_values
from localexpert.learn.values import Support
from localexpert.regressor.regressor import LocalExpertRegressor

# Most distinct values that are kept; of more, as many quantiles.
_MOST_VALUES = 4_000


@dataclass(frozen=True, eq=False)
class Climatology:
    """One distribution for all rows, of the same kind as the model's forecasts.

    Parameters
    ----------
    values, weights : ndarrays of shape (m,)
        Distinct targets, increasing, and their weights; values of a discrete target
        that were not met among them, as in the model's forecasts.
    atoms, widths : ndarrays of shape (A,)
        Values with probability of their own, and the widths of their cells, shared
        with the model so that log scores compare.
    discrete : bool
        Whether every value is a case of its own.
    """

    values: Float64Array
    weights: Float64Array
    atoms: Float64Array
    widths: Float64Array
    discrete: bool

    @classmethod
    def of(
        cls, model: LocalExpertRegressor, y: Float64Array, weight: Float64Array | None
    ) -> Self:
        """Take it from the targets, shape (n,), that `model` was fitted on."""
        values, weights = _count(y, np.ones(len(y)) if weight is None else weight)
        report = getattr(model, "report_", None)  # a constant target has none
        target = "discrete" if report is None else report.target
        atoms = widths = np.empty(0)
        forecaster: Any = getattr(model, "forecaster_", None)
        if target == "mixed":
            parts = forecaster.oof_law_.take(slice(0, 1))
            atoms, widths = parts.atoms, parts.widths
        elif report is not None and target == "discrete":
            # Values never met have their part here too, so that log scores compare.
            support = Support.of(values, weights, model.bounds_)
            values, weights = support.values, weights @ support.shares
        if target != "discrete" and len(values) > _MOST_VALUES:
            values, weights = _thin(values, weights, atoms)
        return cls(values, weights, atoms, widths, target == "discrete")

    @classmethod
    def of_sample(cls, y: Float64Array, weight: Float64Array, discrete: bool) -> Self:
        """Take it from targets and weights, shapes (m,), of any model."""
        values, weights = _count(y, weight)
        none = np.empty(0)
        return cls(values, weights, none, none, discrete or len(values) < 2)

    def dist(self, n: int) -> PredictiveDistribution:
        """Return it as the forecast of n rows."""
        share = self.weights / self.weights.sum()
        if self.discrete:
            law = Law.discrete(self.values, np.tile(share, (n, 1)))
            return PredictiveDistribution(law)
        rest = ~np.isin(self.values, self.atoms)
        base = BaseCDF.fit(self.values[rest], self.weights[rest])
        curves = LevelMap(np.zeros(1), np.zeros(1), np.ones(1))
        smooth = law_of_curves(np.zeros(n), np.ones(n), curves, base)
        if not len(self.atoms):
            return PredictiveDistribution(smooth)
        masses = np.tile(share[~rest], (n, 1))
        law = Law(smooth.curve, self.atoms, masses, self.widths)
        return PredictiveDistribution(law)


def _count(y: Float64Array, weight: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return the distinct targets of some weight, and their weights."""
    return count_values(merge_near_values(y, weight), weight)


def _thin(
    values: Float64Array, weights: Float64Array, atoms: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return atoms, and as many quantiles as are kept of the rest."""
    is_atom = np.isin(values, atoms)
    rest, mass = values[~is_atom], weights[~is_atom]
    upto = np.cumsum(mass)
    levels = (np.arange(_MOST_VALUES) + 0.5) / _MOST_VALUES * upto[-1]
    places, counts = np.unique(np.searchsorted(upto, levels), return_counts=True)
    kept = np.concatenate([rest[places], values[is_atom]])
    weight = np.concatenate([counts * upto[-1] / _MOST_VALUES, weights[is_atom]])
    order = np.argsort(kept)
    return kept[order], weight[order]
