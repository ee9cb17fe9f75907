"""Families of binary calibrators by their names."""

from __future__ import annotations

from typing import Any

from calibration._validation import check_choice, refuse
from calibration.base.calibrators import ScoreCalibrator
from calibration.binning.bbq import BBQCalibrator
from calibration.binning.histogram import HistogramCalibrator
from calibration.binning.sbb_abb import ABBCalibrator
from calibration.densities.nadaraya_watson import NadarayaWatsonCalibrator
from calibration.logistic.piecewise import PiecewiseLogisticCalibrator
from calibration.logistic.polynomial import (
    BetaCalibrator,
    LogisticCalibrator,
    PlattCalibrator,
    QuadraticCalibrator,
    TemperatureCalibrator,
)
from calibration.monotone.bagging import BaggedIsotonicCalibrator
from calibration.monotone.elite import ELiTECalibrator
from calibration.monotone.enir import ENIRCalibrator
from calibration.monotone.isotonic import CenteredIsotonicCalibrator, IsotonicCalibrator
from calibration.monotone.venn_abers import VennAbersCalibrator

FAMILIES: dict[str, type[ScoreCalibrator]] = {
    "abb": ABBCalibrator,
    "bagged_isotonic": BaggedIsotonicCalibrator,
    "bbq": BBQCalibrator,
    "beta": BetaCalibrator,
    "centered_isotonic": CenteredIsotonicCalibrator,
    "elite": ELiTECalibrator,
    "enir": ENIRCalibrator,
    "histogram": HistogramCalibrator,
    "isotonic": IsotonicCalibrator,
    "logistic": LogisticCalibrator,
    "nadaraya_watson": NadarayaWatsonCalibrator,
    "piecewise": PiecewiseLogisticCalibrator,
    "platt": PlattCalibrator,
    "quadratic": QuadraticCalibrator,
    "temperature": TemperatureCalibrator,
    "venn_abers": VennAbersCalibrator,
}


def as_calibrator(calibrator: Any, name: str = "calibrator") -> ScoreCalibrator:
    """Return a binary calibrator that is given itself or by the name of its family.

    Parameters
    ----------
    calibrator : str or ScoreCalibrator
    name : str
        Of the parameter.

    Returns
    -------
    ScoreCalibrator
    """
    if isinstance(calibrator, str):
        check_choice(calibrator, name, tuple(FAMILIES))
        return FAMILIES[calibrator]()
    if not isinstance(calibrator, ScoreCalibrator):
        rule = (
            "be a ScoreCalibrator, for instance IsotonicCalibrator(), or the name of "
            "one"
        )
        refuse(name, rule, f"{calibrator!r}", TypeError)
    return calibrator
