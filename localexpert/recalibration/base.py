"""Recalibration of whole forecasts: an increasing map G, so that F becomes G(F)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self, TypeVar, cast

from numpy.typing import ArrayLike

from calibration.typing import Float64Array
from localexpert._validation import (
    check_same_length,
    check_vector,
    check_weights,
    warn_of_light,
)
from localexpert.data.folds import Fold
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap, map_levels

Forecast = TypeVar("Forecast", Law, PredictiveDistribution)


class Recalibration(ABC):
    """A correction of forecasts, learned from past forecasts and their outcomes.

    Forecasts are laws or distributions of any model, of this package or another.
    A subclass sets `map_`, the map for new rows, and `oof_map_`, the map for the rows
    that the regressor was trained on. Each of these rows gets a map that has not
    learned from it.
    """

    #: Whether nothing else may see the rows that it is fitted on.
    holds_out: ClassVar[bool]
    map_: LevelMap
    oof_map_: LevelMap

    def fit(
        self,
        law: Law | PredictiveDistribution,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        folds: list[Fold] | None = None,
    ) -> Self:
        """Learn the map from laws and outcomes; no law may know its row's outcome.

        Parameters
        ----------
        law : Law or PredictiveDistribution
            Of n rows.
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
        folds : list of (train, test), optional
            Folds of these rows; each row is in one test part. The map of a fold is
            learned from its training rows: all other folds, or the earlier ones if time
            orders them. Not used if `holds_out` is true.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._learn(*check_rows(law, y, sample_weight), folds)
        return self

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse invalid constructor arguments, before anything is fitted."""

    @abstractmethod
    def _learn(
        self, law: Law, y: Float64Array, weight: Float64Array, folds: list[Fold] | None
    ) -> None:
        """Set `map_` and `oof_map_`."""

    @abstractmethod
    def choices(self) -> dict[str, Any]:
        """Return the choices that `fit` made.

        Returns
        -------
        dict
            Ready for JSON.
        """

    def apply(self, law: Forecast) -> Forecast:
        """Return the forecasts with CDF G(F), for new rows.

        Parameters
        ----------
        law : Law or PredictiveDistribution

        Returns
        -------
        Law or PredictiveDistribution
            Of the type given; the same object if the map is the identity.
        """
        return correct(law, self.map_)

    def apply_oof(self, law: Forecast) -> Forecast:
        """Return the out-of-fold forecasts of the training rows, recalibrated.

        Parameters
        ----------
        law : Law or PredictiveDistribution
            Forecasts of the rows of `fit`, in their order.

        Returns
        -------
        Law or PredictiveDistribution
            Each row by a map that has not seen it.
        """
        return correct(law, self.oof_map_)


def correct(given: Forecast, levels: LevelMap) -> Forecast:
    """Return forecasts with CDF G(F), of the type given."""
    law = _law_of(given)
    mapped = map_levels(law, levels)
    if mapped is law:
        return given
    return cast(Forecast, mapped if given is law else PredictiveDistribution(mapped))


def _law_of(given: Any) -> Law:
    """Return a law as it is, or the law of a distribution."""
    law = given.law if isinstance(given, PredictiveDistribution) else given
    if not isinstance(law, Law):
        msg = (
            "`law` must be a Law or a PredictiveDistribution, "
            f"got {type(given).__name__}."
        )
        raise TypeError(msg)
    return law


def check_rows(
    given: Law | PredictiveDistribution,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
) -> tuple[Law, Float64Array, Float64Array]:
    """Return the law, and targets and weights of its length."""
    law, target = _law_of(given), check_vector(y, "y")
    check_same_length(len(law), "`law`", len(target), "y")
    weights = check_weights(sample_weight, len(target))
    warn_of_light(weights, stacklevel=3)
    return law, target, weights
