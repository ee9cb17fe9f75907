"""`compare_calibrators`: any calibrators, scored on rows they were not fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation import (
    as_numbers,
    check_choice,
    check_class_names,
    check_columns,
    check_integer,
    check_optional_seed,
    warn_of_light,
)
from calibration.base.calibrators import SCALES, Scale
from calibration.comparison.comparison import CalibratorComparison
from calibration.comparison.held_out import (
    HeldOutForecasts,
    hold_out_binary,
    hold_out_multiclass,
)
from calibration.comparison.menus import (
    Calibrators,
    prepare_binary,
    prepare_multiclass,
)
from calibration.measures import (
    ReliabilityCurve,
    auc_score,
    brier_score,
    expected_calibration_error,
    maximum_calibration_error,
    reliability_curve,
)
from calibration.multiclass.class_scores import read_class_scores
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

# Classes that have curves of their own.
_MOST_CURVES = 20


def compare_calibrators(
    scores: ArrayLike,
    y: ArrayLike,
    calibrators: Calibrators | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    n_folds: int = 5,
    random_state: int | None = 0,
    classes: Sequence[Any] | None = None,
    scale: Scale = "probability",
) -> CalibratorComparison:
    r"""Score calibrators on rows that they were not fitted on.

    Parameters
    ----------
    scores : array-like of shape (n,), (n, 1) or (n, k)
        Scores that no calibrator has seen, of rows that the classifier has not: of
        class 1 of two, or a column for each class.
    y : array-like of shape (n,)
        Labels coded 0 and 1, or column numbers, or what `classes` names.
    calibrators : list of calibrators or (name, calibrator), or mapping
        Cloned, and their `scale` set; one without a name is called by its class
        ("isotonic"). Of scores (n,) they are ScoreCalibrators; of scores (n, k)
        MulticlassCalibrators, or ScoreCalibrators, which calibrate each class against
        the others. Doing nothing, "identity", is put before them unless the scores
        are real. Default: Platt, quadratic, beta, ELiTE, isotonic and auto, those
        that the scale allows; of scores (n, k) temperature, vector, matrix,
        isotonic, shallow nets and auto.
    sample_weight : array-like of shape (n,), optional
        Numbers of repetitions.
    n_folds : int
        Every row is scored by calibrators fitted on the other folds.
    random_state : int or None
        Seed of the folds; None draws one.
    classes : sequence of k names, optional
        The labels of the columns; of scores (n,) those of class 0 and 1.
    scale : {"probability", "logit", "real"}
        What a score is; scores (n, k) are not "real".

    Returns
    -------
    CalibratorComparison
        ``print(comparison)`` shows the table, ``comparison.plot()`` the curves.

    Notes
    -----
    Maps of steps and lines may say 0 or 1; here all their probabilities are clipped
    to :math:`[1/(2n+2), 1 - 1/(2n+2)]`, n being the rows they were fitted on, so that
    log losses are finite; of more than two classes they are mixed with the uniform
    law as by one row more. Of very many scores close ones count as one, and of more
    than 16 384 rows of several classes as many are drawn. The probability of harm is
    that of `AutoCalibrator`. AUC is that of the rows of all folds together.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import IsotonicCalibrator, PlattCalibrator, compare_calibrators
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=2000)
    >>> y = rng.uniform(size=2000) < scores**2
    >>> two = [PlattCalibrator(), IsotonicCalibrator()]
    >>> print(compare_calibrators(scores, y, two))
    held-out  log loss   error   Brier     ECE     MCE     AUC  accuracy  P(harm)
    isotonic    0.3958  0.0125  0.1291  0.0203  0.0477  0.8786    0.8115    0.000
    platt       0.3962  0.0118  0.1291  0.0106  0.0280  0.8809    0.8130    0.000
    identity    0.4902  0.0107  0.1643  0.1684  0.2907  0.8813    0.7480    0.000
    harm against identity

    Three classes, whose columns have names:

    >>> from calibration import SoftmaxCalibrator
    >>> p = rng.dirichlet([1, 1, 1], size=1000)
    >>> y = (rng.uniform(size=(1000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> bold, names = p**2 / (p**2).sum(axis=1, keepdims=True), ["ox", "hen", "cat"]
    >>> found = compare_calibrators(
    ...     bold,
    ...     np.array(names)[y],
    ...     {"one": SoftmaxCalibrator("temperature"), "each": PlattCalibrator()},
    ...     classes=names,
    ... )
    >>> found.names[found.log_loss.argmin()]
    'one'
    """
    n_folds = check_integer(n_folds, "n_folds", 2)
    check_optional_seed(random_state)
    check_choice(scale, "scale", SCALES)
    table = as_numbers(scores, "scores")
    if table.ndim < 2 or table.shape[1:] == (1,):
        names = None if classes is None else check_class_names(classes, 2)
        labels = y if names is None else check_columns(y, 2, names)
        summary = ScoreSummary.from_scores(table, labels, sample_weight)
        if sample_weight is not None:
            warn_of_light(as_numbers(sample_weight, "sample_weight"))
        menu = prepare_binary(calibrators, scale)
        return _score(hold_out_binary(menu, summary, n_folds, random_state), [])
    check_choice(scale, "scale", ("probability", "logit"))
    data = read_class_scores(table, y, sample_weight, classes=classes, scale=scale)
    k = data.scores.shape[1]
    columns = list(range(k)) if classes is None else check_class_names(classes, k)
    many = prepare_multiclass(calibrators, scale)
    return _score(hold_out_multiclass(many, data, n_folds, random_state), columns)


def _score(found: HeldOutForecasts, classes: list[Any]) -> CalibratorComparison:
    """Return the scores of held-out forecasts, of classes with a column each if any."""
    labels, weight = found.labels, found.weight
    losses = [
        np.array([loss(labels, p, sample_weight=weight) for p in found.forecasts])
        for loss in (
            brier_score,
            expected_calibration_error,
            maximum_calibration_error,
            auc_score,
        )
    ]
    by_name = dict(zip(found.names, found.forecasts, strict=True))
    shown = classes if len(classes) <= _MOST_CURVES else []
    return CalibratorComparison(
        names=found.names,
        reference=found.names[0],
        log_loss=found.log_loss,
        standard_error=found.standard_error,
        probability_of_harm=found.probability_of_harm,
        brier=losses[0],
        calibration_error=losses[1],
        maximum_calibration_error=losses[2],
        auc=losses[3],
        accuracy=np.array([found.accuracy(p) for p in found.forecasts]),
        curves={name: _curve(labels, p, weight) for name, p in by_name.items()},
        class_curves={
            name: {
                label: _curve(labels == j, p[:, j], weight)
                for j, label in enumerate(shown)
            }
            for name, p in by_name.items()
            if shown
        },
    )


def _curve(
    labels: NDArray[Any], p: Float64Array, weight: Float64Array
) -> ReliabilityCurve:
    """Return the curve of forecasts (n,), or of all (n, k) in one set."""
    if p.ndim == 1:
        return reliability_curve(labels, p, sample_weight=weight)
    k = p.shape[1]
    hits = (labels[:, None] == np.arange(k)).ravel()
    # Events of one row are no independent ones, as the band would have them.
    return reliability_curve(
        hits, p.ravel(), sample_weight=np.repeat(weight, k), bands=None
    )
