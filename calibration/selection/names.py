"""Binary calibrators by their names: the one table of them."""

from __future__ import annotations

from typing import Any

from calibration._validation import check_choice, check_optional_seed
from calibration.base.calibrators import ScoreCalibrator
from calibration.binning.bbq import BBQCalibrator
from calibration.binning.histogram import HistogramCalibrator
from calibration.binning.sbb_abb import ABBCalibrator
from calibration.densities.nadaraya_watson import NadarayaWatsonCalibrator
from calibration.logistic.beta import BetaCalibrator
from calibration.logistic.piecewise import PiecewiseLogisticCalibrator
from calibration.logistic.polynomial import (
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
from calibration.selection.auto import AutoCalibrator

_CALIBRATORS: dict[str, type[ScoreCalibrator]] = {
    "auto": AutoCalibrator,
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


def calibrator_names() -> tuple[str, ...]:
    """Return the names of binary calibrators that `make_calibrator` knows.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> from calibration import calibrator_names
    >>> "venn_abers" in calibrator_names()
    True
    """
    return tuple(_CALIBRATORS)


def make_calibrator(name: str, *, random_state: int | None = 0) -> ScoreCalibrator:
    """Return a new binary calibrator by its name, with its default parameters.

    Parameters
    ----------
    name : str
        One of `calibrator_names()`.
    random_state : int or None
        Seed, where the calibrator draws.

    Returns
    -------
    ScoreCalibrator

    Examples
    --------
    >>> from calibration import make_calibrator
    >>> make_calibrator("isotonic")
    IsotonicCalibrator()
    """
    check_choice(name, "name", calibrator_names())
    check_optional_seed(random_state)
    made = _CALIBRATORS[name]()
    if "random_state" in made.get_params(deep=False):
        made.set_params(random_state=random_state)
    return made


def as_calibrator(calibrator: Any) -> ScoreCalibrator:
    """Return a binary calibrator that is given itself or by its name.

    Parameters
    ----------
    calibrator : str or ScoreCalibrator

    Returns
    -------
    ScoreCalibrator
    """
    if isinstance(calibrator, str):
        check_choice(calibrator, "calibrator", calibrator_names())
        return make_calibrator(calibrator)
    if not isinstance(calibrator, ScoreCalibrator):
        msg = (
            "`calibrator` must be a ScoreCalibrator, for instance "
            f"IsotonicCalibrator(), or the name of one, got {calibrator!r}."
        )
        raise TypeError(msg)
    return calibrator
