"""Recalibration of whole forecasts: an increasing map G, so that F becomes G(F)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from calibration.typing import Float64Array
from localexpert._validation import (
    check_same_length,
    check_vector,
    check_weights,
    warn_of_light,
)
from localexpert.data.folds import Fold
from localexpert.laws import Law
from localexpert.laws.recalibrated import recalibrate_law
from localexpert.laws.score_map import ProbitMap


class Recalibration(ABC):
    """Learns from laws and what came of them how to correct laws.

    A subclass sets `map_`, the map for new rows, and `oof_map_`, the map for the rows
    that the regressor was trained on, honest for each of them.
    """

    #: Whether the rows it is fitted on must be kept from everything else.
    holds_out: ClassVar[bool]
    map_: ProbitMap
    oof_map_: ProbitMap

    @abstractmethod
    def fit(
        self,
        law: Law,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        folds: list[Fold] | None = None,
    ) -> Self:
        """Learn the map from laws that never saw their rows' y, and those y.

        Parameters
        ----------
        law : Law
            Of n rows.
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
        folds : list of (train, test), optional
            Of these rows, each in one test part.

        Returns
        -------
        self
        """

    def _check_parameters(self) -> None:  # noqa: B027
        """Refuse invalid constructor arguments, before anything is fitted."""

    @abstractmethod
    def choices(self) -> dict[str, Any]:
        """Return what was chosen.

        Returns
        -------
        dict
            Ready for JSON.
        """

    def apply(self, law: Law) -> Law:
        """Return the law with CDF G(F), for new rows.

        Parameters
        ----------
        law : Law

        Returns
        -------
        Law
            The very same one if the map is the identity.
        """
        return _recalibrate(law, self.map_)

    def apply_oof(self, law: Law) -> Law:
        """Return the out-of-fold law of the training rows, recalibrated.

        Parameters
        ----------
        law : Law
            Of the rows the regressor was trained on, in their order.

        Returns
        -------
        Law
            Each row by a map that has not seen it.
        """
        return _recalibrate(law, self.oof_map_)


def _recalibrate(law: Law, scores: ProbitMap) -> Law:
    return law if scores.is_identity else recalibrate_law(law, scores)


def check_rows(
    law: Law, y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Float64Array, Float64Array]:
    """Return targets and weights of the law's length."""
    target = check_vector(y, "y")
    check_same_length(len(law), "`law`", len(target), "y")
    weights = check_weights(sample_weight, len(target))
    warn_of_light(weights, stacklevel=3)
    return target, weights
