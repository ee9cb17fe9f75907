"""Calibrators of several classes by their names."""

from __future__ import annotations

from collections.abc import Callable

from calibration._validation import check_choice, check_optional_seed
from calibration.multiclass.auto import MulticlassAutoCalibrator
from calibration.multiclass.base import MulticlassCalibrator
from calibration.multiclass.one_vs_rest import OneVsRestCalibrator
from calibration.multiclass.shallow_net import ShallowNetCalibrator
from calibration.multiclass.softmax import SoftmaxCalibrator
from calibration.selection.names import calibrator_names, make_calibrator

# Those of all classes at once; a binary one of another name is one for each class.
_ALL_AT_ONCE: dict[str, Callable[[], MulticlassCalibrator]] = {
    "auto": MulticlassAutoCalibrator,
    "matrix": lambda: SoftmaxCalibrator("matrix"),
    "shallow_net": ShallowNetCalibrator,
    "temperature": lambda: SoftmaxCalibrator("temperature"),
    "vector": lambda: SoftmaxCalibrator("vector"),
}


def multiclass_calibrator_names() -> tuple[str, ...]:
    """Return the names that `make_multiclass_calibrator` knows.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> from calibration import multiclass_calibrator_names
    >>> {"matrix", "isotonic"} <= set(multiclass_calibrator_names())
    True
    """
    return tuple(sorted({*_ALL_AT_ONCE, *calibrator_names()}))


def make_multiclass_calibrator(
    name: str, *, random_state: int | None = 0
) -> MulticlassCalibrator:
    """Return a new calibrator of several classes by its name.

    Parameters
    ----------
    name : str
        One of `multiclass_calibrator_names()`. "matrix", "vector" and "temperature"
        are a `SoftmaxCalibrator`, "auto" and "shallow_net" have classes of their own,
        and all others are one binary calibrator for each class against the others.
    random_state : int or None
        Seed, where the calibrator draws.

    Returns
    -------
    MulticlassCalibrator

    Examples
    --------
    >>> from calibration import make_multiclass_calibrator
    >>> make_multiclass_calibrator("isotonic")
    OneVsRestCalibrator(calibrator=IsotonicCalibrator())
    >>> make_multiclass_calibrator("matrix")
    SoftmaxCalibrator()
    """
    check_choice(name, "name", multiclass_calibrator_names())
    check_optional_seed(random_state)
    if name not in _ALL_AT_ONCE:
        return OneVsRestCalibrator(make_calibrator(name, random_state=random_state))
    made = _ALL_AT_ONCE[name]()
    if "random_state" in made.get_params(deep=False):
        made.set_params(random_state=random_state)
    return made
