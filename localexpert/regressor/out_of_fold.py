"""`OutOfFoldLaws`: forecasts of the training rows, made of what is kept anyway."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from calibration.typing import Float64Array
from localexpert.data.folds import Rows
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.law.law import Law
from localexpert.law.level_map import recentre
from localexpert.learn.learner import Learner
from localexpert.recalibration.base import Recalibration
from localexpert.regressor.constant import ConstantLaws
from localexpert.stacking.stacker import Stacker


class OutOfFoldLaws:
    """The laws of training rows, which follow from what the fitted stages hold.

    They are made when asked for: in a file they would be most of a large model.
    """

    forecaster_: Learner | ConstantLaws
    stacker_: Stacker | None
    recalibration_: Recalibration | None
    fitted_rows_: Rows
    untested_rows_: Rows
    oof_targets_: Float64Array
    oof_weights_: Float64Array

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

    @cached_property
    def oof_prediction_(self) -> Float64Array:
        """What `predict` says of each training row, by what has not seen it."""
        if self.stacker_ is None or self.stacker_.keeps_mean:
            return self.oof_distribution_.mean()
        return np.clip(self.stacker_.oof_, *self.forecaster_.oof_law_.support)

    def _oof_dist(self, places: Rows) -> PredictiveDistribution:
        """Return the distributions of some of these rows."""
        asks_all = self.recalibration_ is not None or self._is_recentred
        if asks_all or isinstance(self.forecaster_, ConstantLaws):
            return self.oof_distribution_[places]
        forecaster = self.forecaster_
        law = forecaster.law_of(forecaster.oof_answers(places))
        return PredictiveDistribution(law)

    @property
    def _is_recentred(self) -> bool:
        """Whether a stacker moves the distributions."""
        return self.stacker_ is not None and not self.stacker_.keeps_mean

    def _oof_law(self) -> Law:
        """Return the laws of the training rows as a recalibration sees them."""
        law = self.forecaster_.oof_law_
        if not self._is_recentred:
            return law
        return recentre(law, self.oof_prediction_)

    def _unstacked_oof(self) -> PredictiveDistribution:
        return PredictiveDistribution(self.forecaster_.oof_law_)

    def _forget_laws(self) -> None:
        """Drop the laws of an earlier fit."""
        for name in ("oof_distribution_", "oof_prediction_"):
            self.__dict__.pop(name, None)
