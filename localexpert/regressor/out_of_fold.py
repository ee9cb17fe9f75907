"""`OutOfFoldLaws`: forecasts of the training rows, made of what is kept anyway."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from calibration.typing import Float64Array
from localexpert.data.folds import Rows
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.forecasters.constant import ConstantForecaster
from localexpert.forecasters.forecaster import Forecaster
from localexpert.law.law import Law
from localexpert.law.level_map import recentre
from localexpert.recalibration.base import Recalibration
from localexpert.stacking.stacker import Stacker


class OutOfFoldLaws:
    """The laws of training rows, which follow from what the fitted stages hold.

    They are made when asked for: in a file they would be most of a large model.
    """

    forecaster_: Forecaster | ConstantForecaster
    stacker_: Stacker | None
    recalibration_: Recalibration | None
    oof_prediction_: Float64Array
    fitted_rows_: Rows
    untested_rows_: Rows

    def _note_rows(self, rows: Rows, judged: Rows) -> None:
        """Note of which rows the laws speak, and which are never tested."""
        self.fitted_rows_ = rows[judged]
        self.untested_rows_ = np.setdiff1d(rows, self.fitted_rows_)

    @cached_property
    def oof_distribution_(self) -> PredictiveDistribution:
        """What is said of each training row by models that have not seen it."""
        law = self._oof_law()
        if self.recalibration_ is not None:
            law = self.recalibration_.apply_oof(law)
        return PredictiveDistribution(law)

    def _oof_law(self) -> Law:
        """Return the laws of the training rows as a recalibration sees them."""
        law = self.forecaster_.oof_law_
        if self.stacker_ is None or self.stacker_.keeps_mean:
            return law
        return recentre(law, self.oof_prediction_)

    def _unstacked_oof(self) -> PredictiveDistribution:
        return PredictiveDistribution(self.forecaster_.oof_law_)

    def _forget_laws(self) -> None:
        """Drop the laws of an earlier fit."""
        self.__dict__.pop("oof_distribution_", None)
