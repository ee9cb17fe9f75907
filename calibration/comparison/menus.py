"""What is compared: calibrators by name, doing nothing first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from calibration.base.calibrators import Scale, ScoreCalibrator
from calibration.logistic.beta import BetaCalibrator
from calibration.logistic.polynomial import PlattCalibrator, QuadraticCalibrator
from calibration.monotone.elite import ELiTECalibrator
from calibration.monotone.isotonic import IsotonicCalibrator
from calibration.multiclass.auto import MulticlassAutoCalibrator
from calibration.multiclass.base import MulticlassCalibrator
from calibration.multiclass.class_trials import set_class_menu
from calibration.multiclass.one_vs_rest import OneVsRestCalibrator
from calibration.multiclass.shallow_net import ShallowNetCalibrator
from calibration.multiclass.softmax import SoftmaxCalibrator
from calibration.selection.auto import AutoCalibrator
from calibration.selection.trials import check_menu, set_menu

Calibrator: TypeAlias = ScoreCalibrator | MulticlassCalibrator
Calibrators: TypeAlias = (
    Mapping[str, Calibrator] | Sequence[Calibrator] | Sequence[tuple[str, Calibrator]]
)


def prepare_binary(
    calibrators: Calibrators | None, scale: Scale
) -> dict[str, ScoreCalibrator]:
    """Return clones with the scale set, doing nothing first where it has a meaning.

    Parameters
    ----------
    calibrators : list or mapping of ScoreCalibrator, optional
    scale : {"probability", "logit", "real"}

    Returns
    -------
    dict of str to ScoreCalibrator
    """
    given: Mapping[str, Any] = (
        _binary_menu(scale) if calibrators is None else _name_all(calibrators)
    )
    check_menu(given, "calibrators")
    return set_menu(given, scale)


def prepare_multiclass(
    calibrators: Calibrators | None, scale: Scale
) -> dict[str, MulticlassCalibrator]:
    """Return clones for numbered columns with the scale set, doing nothing first.

    Parameters
    ----------
    calibrators : list or mapping of MulticlassCalibrator or ScoreCalibrator, optional
        Of a ScoreCalibrator one for each class, against the others.
    scale : {"probability", "logit"}

    Returns
    -------
    dict of str to MulticlassCalibrator
    """
    given: Mapping[str, Any] = (
        _multiclass_menu() if calibrators is None else _name_all(calibrators)
    )
    check_menu(given, "calibrators", (ScoreCalibrator, MulticlassCalibrator))
    menu: dict[str, MulticlassCalibrator] = {
        name: OneVsRestCalibrator(one) if isinstance(one, ScoreCalibrator) else one
        for name, one in given.items()
    }
    return set_class_menu(menu, scale)


def _binary_menu(scale: Scale) -> dict[str, ScoreCalibrator]:
    """Return one calibrator of each family that the scale allows."""
    menu: dict[str, ScoreCalibrator] = {
        "platt": PlattCalibrator(),
        "quadratic": QuadraticCalibrator(),
        "beta": BetaCalibrator(),
        "elite": ELiTECalibrator(),
        "isotonic": IsotonicCalibrator(),
        "auto": AutoCalibrator(),
    }
    if scale == "real":
        del menu["beta"]
    return menu


def _multiclass_menu() -> dict[str, Calibrator]:
    """Return one calibrator of each family."""
    return {
        "temperature": SoftmaxCalibrator("temperature"),
        "vector": SoftmaxCalibrator("vector"),
        "matrix": SoftmaxCalibrator("matrix"),
        "isotonic": OneVsRestCalibrator("isotonic"),
        "shallow_net": ShallowNetCalibrator(),
        "auto": MulticlassAutoCalibrator(),
    }


def _name_all(calibrators: Any) -> dict[str, Calibrator]:
    """Return calibrators by name: their own, or that of the class, numbered if shared.

    As in scikit-learn's `make_pipeline`: isotonic-1, isotonic-2.
    """
    if isinstance(calibrators, Mapping):
        return dict(calibrators)
    if not isinstance(calibrators, list | tuple):
        msg = (
            "`calibrators` must be a list of calibrators or of pairs (name, "
            f"calibrator), or a mapping, got {calibrators!r}."
        )
        raise TypeError(msg)
    given = {id(one) for one in calibrators if isinstance(one, tuple) and len(one) == 2}
    classes = Counter(_class_name(one) for one in calibrators if id(one) not in given)
    taken = {str(one[0]) for one in calibrators if id(one) in given}
    seen: Counter[str] = Counter()
    named: dict[str, Calibrator] = {}
    for one in calibrators:
        if id(one) in given:
            name, own = str(one[0]), one[1]
        else:
            name, own = _class_name(one), one
            seen[name] += 1
            if classes[name] > 1 or name in taken:
                name = f"{name}-{seen[name]}"
        if name in named:
            msg = f"`calibrators` must have names of their own, got {name!r} twice."
            raise ValueError(msg)
        named[name] = own
    return named


def _class_name(calibrator: Any) -> str:
    return type(calibrator).__name__.removesuffix("Calibrator").lower()
