"""The calibrator that a parameter means for a classifier of some classes."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from calibration._validation import check_choice
from calibration.base.calibrators import Scale, ScoreCalibrator
from calibration.classifier.responses import Response
from calibration.multiclass.base import MulticlassCalibrator
from calibration.multiclass.names import (
    make_multiclass_calibrator,
    multiclass_calibrator_names,
)
from calibration.multiclass.one_vs_rest import OneVsRestCalibrator
from calibration.multiclass.softmax import SoftmaxCalibrator
from calibration.selection.names import (
    as_calibrator,
    calibrator_names,
    make_calibrator,
)


def resolve_calibrator(
    calibrator: Any, response: Response, n_classes: int
) -> ScoreCalibrator | MulticlassCalibrator:
    """Return a calibrator that is not fitted, on the scale of the response.

    Parameters
    ----------
    calibrator : str, ScoreCalibrator, MulticlassCalibrator or None
        None is the default: a logistic regression, of all classes if there are more
        than two.
    response : {"predict_proba", "decision_function"}
    n_classes : int
        Two or more. Of more than two a ScoreCalibrator is one for each class.

    Returns
    -------
    ScoreCalibrator or MulticlassCalibrator
    """
    if calibrator is None and n_classes > 2:
        # A penalty chosen by folds would make weights no repetitions.
        calibrator = SoftmaxCalibrator("matrix", penalty=1.0)
    elif isinstance(calibrator, str):
        calibrator = _make_named(calibrator, n_classes)
    if isinstance(calibrator, MulticlassCalibrator):
        return _adapt_to_columns(calibrator, response)
    if n_classes == 2:
        return resolve_binary(calibrator, response)
    if not isinstance(calibrator, ScoreCalibrator):
        msg = (
            "`calibrator` must be a ScoreCalibrator, for instance "
            "IsotonicCalibrator(), or the name of one, or of all classes at once a "
            "MulticlassCalibrator, "
            f"got {calibrator!r}."
        )
        raise TypeError(msg)
    return _adapt_to_columns(OneVsRestCalibrator(calibrator), response)


def resolve_binary(calibrator: Any, response: Response) -> ScoreCalibrator:
    """Return a binary calibrator that is not fitted, on the scale of the response.

    Parameters
    ----------
    calibrator : str, ScoreCalibrator or None
        None: `LogisticCalibrator()`.
    response : {"predict_proba", "decision_function"}

    Returns
    -------
    ScoreCalibrator
    """
    given = "logistic" if calibrator is None else calibrator
    return _adapt_to_scores(as_calibrator(given), response)


def _make_named(name: str, n_classes: int) -> ScoreCalibrator | MulticlassCalibrator:
    """Return the calibrator of a name, of two classes a binary one if there is one."""
    check_choice(name, "calibrator", multiclass_calibrator_names())
    if n_classes == 2 and name in calibrator_names():
        return make_calibrator(name)
    return make_multiclass_calibrator(name)


def _adapt_to_scores(
    calibrator: ScoreCalibrator, response: Response
) -> ScoreCalibrator:
    """Return a clone whose `scale` is that of the response.

    A decision function is a real score, unless the calibrator at hand says that it
    is a log-odds. A method without a meaning on that scale is refused here, before
    any classifier is fitted.
    """
    scale: Scale = "probability"
    if response == "decision_function":
        scale = "logit" if calibrator.scale == "logit" else "real"
    adapted: ScoreCalibrator = clone(calibrator).set_params(scale=scale)
    adapted._check_parameters()
    return adapted


def _adapt_to_columns(
    calibrator: MulticlassCalibrator, response: Response
) -> MulticlassCalibrator:
    """Return a clone for numbered columns of probabilities, or of decision values.

    The latter are logits: a calibrator of several classes knows no real scores.
    """
    scale = "probability" if response == "predict_proba" else "logit"
    adapted: MulticlassCalibrator = clone(calibrator)
    adapted.set_params(scale=scale, classes=None)
    adapted._check_parameters()
    return adapted
