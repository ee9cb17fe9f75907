"""Calibrators by their names: the one table of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from calibration._validation import check_choice, check_integer, check_optional_seed
from calibration.multiclass.names import FAMILIES
from calibration.multiclass.one_vs_rest import OneVsRestCalibrator
from calibration.multiclass.shallow_net import ShallowNetCalibrator
from calibration.multiclass.softmax import SoftmaxCalibrator
from calibration.selection.auto import AutoCalibrator

_OF_SCORES: dict[str, Callable[[], Any]] = {
    "auto": AutoCalibrator,
    **FAMILIES,
}
# A binary one of another name is one for each class.
_OF_TABLES: dict[str, Callable[[], Any]] = {
    "auto": AutoCalibrator,
    "matrix": lambda: SoftmaxCalibrator("matrix"),
    "shallow_net": ShallowNetCalibrator,
    "temperature": lambda: SoftmaxCalibrator("temperature"),
    "vector": lambda: SoftmaxCalibrator("vector"),
}


def calibrator_names(n_classes: int = 2) -> tuple[str, ...]:
    """Return the names that `make_calibrator` knows.

    Parameters
    ----------
    n_classes : int
        2: of calibrators of one score a row. More: of a score for each class.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> from calibration import calibrator_names
    >>> "venn_abers" in calibrator_names(), "matrix" in calibrator_names(3)
    (True, True)
    """
    check_integer(n_classes, "n_classes", 2)
    if n_classes == 2:
        return tuple(_OF_SCORES)
    return tuple(sorted({*_OF_TABLES, *_OF_SCORES}))


def make_calibrator(
    name: str, *, n_classes: int = 2, random_state: int | None = 0
) -> Any:
    """Return a new calibrator by its name, with its default parameters.

    Parameters
    ----------
    name : str
        One of `calibrator_names(n_classes)`. Of more than two classes "matrix",
        "vector" and "temperature" are a `SoftmaxCalibrator`, "auto" and "shallow_net"
        have classes of their own, and all others are one binary calibrator for each
        class against the others.
    n_classes : int
        2: a calibrator of scores (n,). More: of scores (n, k).
    random_state : int or None
        Seed, where the calibrator draws.

    Returns
    -------
    ScoreCalibrator or MulticlassCalibrator

    Examples
    --------
    >>> from calibration import make_calibrator
    >>> make_calibrator("isotonic")
    IsotonicCalibrator()
    >>> make_calibrator("isotonic", n_classes=3)
    OneVsRestCalibrator(calibrator=IsotonicCalibrator())
    """
    check_choice(name, "name", calibrator_names(n_classes))
    check_optional_seed(random_state)
    several = n_classes > 2
    at_once = several and name in _OF_TABLES
    made = (_OF_TABLES if at_once else _OF_SCORES)[name]()
    if "random_state" in made.get_params(deep=False):
        made.set_params(random_state=random_state)
    return OneVsRestCalibrator(made) if several and not at_once else made
