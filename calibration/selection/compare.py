"""`compare_calibrators` scores any calibrators on rows they were not fitted on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation import (
    as_numbers,
    check_choice,
    check_columns,
    check_integer,
    check_optional_seed,
    check_verbose,
    refuse,
    warn_of_light,
)
from calibration.base.calibrators import SCALES, Scale, ScoreCalibrator
from calibration.measures.calibration_errors import (
    expected_calibration_error,
    maximum_calibration_error,
)
from calibration.measures.reliability import ReliabilityCurve, reliability_curve
from calibration.measures.scores import auc_score, brier_score
from calibration.multiclass.base import MulticlassCalibrator
from calibration.multiclass.class_scores import read_class_scores
from calibration.selection.auto import make_calibrator
from calibration.selection.trials import (
    Cells,
    Rows,
    Table,
    Trials,
    hold_trials,
    set_menu,
)
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array


@dataclass(frozen=True, eq=False, repr=False)
class CalibratorComparison:
    """Scores of calibrators on held-out rows. `compare_calibrators` builds it.

    Its string is a table, best log loss first. `plot_reliability` draws its curves.

    Parameters
    ----------
    names : tuple of str
        Names of the c calibrators, in the given order.
    reference : str
        The first of them. It is doing nothing, if the scores allow it.
    log_loss, standard_error : ndarrays of shape (c,)
        Mean log loss and its standard error.
    probability_of_harm : ndarray of shape (c,)
        Probability that the log loss is worse than that of the reference.
    brier : ndarray of shape (c,)
        Brier score. With more than two classes it is summed over them.
    calibration_error, maximum_calibration_error : ndarrays of shape (c,)
        Mean and largest gap of event rate and forecast over ten bins of equal
        frequency. With more than two classes, the forecasts of all classes form one set
        ("micro").
    auc, accuracy : ndarrays of shape (c,)
        How well the classes are separated: area under the ROC curve (with more than two
        classes, the mean of Hand and Till), and share of rows whose class is the
        likeliest. Higher is better.
    curves : dict of str to ReliabilityCurve
        Event rate against forecast. With more than two classes, all are in one set.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import compare_calibrators
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=500)
    >>> comparison = compare_calibrators(scores, rng.uniform(size=500) < scores**2)
    >>> comparison.reference, comparison.names[comparison.brier.argmax()]
    ('identity', 'identity')
    """

    names: tuple[str, ...]
    reference: str
    log_loss: Float64Array
    standard_error: Float64Array
    probability_of_harm: Float64Array
    brier: Float64Array
    calibration_error: Float64Array
    maximum_calibration_error: Float64Array
    auc: Float64Array
    accuracy: Float64Array
    curves: dict[str, ReliabilityCurve]

    def __str__(self) -> str:
        """Return the scores as a table, best log loss first."""
        width = max(len("held-out"), *map(len, self.names))
        title = (
            f"{'held-out':<{width}}  log loss   error   Brier     ECE     MCE"
            "     AUC  accuracy  P(harm)"
        )
        lines = [
            f"{self.names[i]:<{width}}  {self.log_loss[i]:8.4f}  "
            f"{self.standard_error[i]:6.4f}  {self.brier[i]:6.4f}  "
            f"{self.calibration_error[i]:6.4f}  "
            f"{self.maximum_calibration_error[i]:6.4f}  {self.auc[i]:6.4f}  "
            f"{self.accuracy[i]:8.4f}  {self.probability_of_harm[i]:7.3f}"
            for i in np.argsort(self.log_loss, kind="stable")
        ]
        return "\n".join([title, *lines, f"harm against {self.reference}"])


Calibrator: TypeAlias = ScoreCalibrator | MulticlassCalibrator
Calibrators: TypeAlias = Mapping[str, Calibrator] | Sequence[Calibrator]

# There is one of each family.
_OF_SCORES = ("platt", "quadratic", "beta", "elite", "isotonic", "auto")
_OF_TABLES = ("temperature", "vector", "matrix", "isotonic", "shallow_net", "auto")


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
    verbose: int = 0,
) -> CalibratorComparison:
    r"""Score calibrators on rows that they were not fitted on.

    Parameters
    ----------
    scores : array-like of shape (n,), (n, 1) or (n, k)
        Scores of rows that no calibrator and no classifier has learned from. They are
        for class 1 of two, or there is a column for each class.
    y : array-like of shape (n,)
        Labels coded 0 and 1, or column numbers, or what `classes` names.
    calibrators : list of calibrators, or mapping of names to them, optional
        They are cloned, and their `scale` is set. In a list, each is named by its class
        ("isotonic"). For scores (n,) they are ScoreCalibrators. For scores (n, k) they
        are MulticlassCalibrators, or ScoreCalibrators, which calibrate each class
        against the others. Doing nothing, "identity", is put before them unless the
        scores are real. Default: Platt, quadratic, beta, ELiTE, isotonic and auto, if
        the scale allows them. For scores (n, k): temperature, vector, matrix, isotonic,
        shallow nets and auto.
    sample_weight : array-like of shape (n,), optional
        How often each row counts.
    n_folds : int
        Number of folds. Every row is scored by calibrators fitted on the other folds.
    random_state : int or None
        Seed of the folds. None draws one.
    classes : sequence of k names, optional
        The labels of the columns. For scores (n,): the labels of class 0 and 1.
    scale : {"probability", "logit", "real"}
        What a score is. Scores (n, k) cannot be "real".
    verbose : int
        1 shows on stderr how many folds are done. 0 shows nothing.

    Returns
    -------
    CalibratorComparison
        ``print(comparison)`` shows the table. ``plot_reliability(comparison.curves)``
        shows the curves.

    Notes
    -----
    Maps of steps and lines may say 0 or 1. Here all probabilities are clipped to
    :math:`[1/(2n+2), 1 - 1/(2n+2)]`, where n is the number of rows of the fit. So log
    losses are finite. With more than two classes they are mixed with the uniform law,
    as if by one more row. If there are very many scores, close ones count as one. If
    there are more than 16 384 rows of several classes, 16 384 are drawn. The
    probability of harm is that of `AutoCalibrator`. AUC uses the rows of all folds
    together.

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

    Three classes, with names for the columns:

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
    verbose = check_verbose(verbose)
    table = as_numbers(scores, "scores")
    several = table.ndim > 1 and table.shape[1:] != (1,)
    rows: Rows
    if several:
        check_choice(scale, "scale", ("probability", "logit"))
        rows = Table(read_class_scores(scores, y, sample_weight, classes, scale))
    else:
        labels = y if classes is None else check_columns(y, 2, classes)
        rows = Cells(ScoreSummary.from_scores(table, labels, sample_weight))
        warn_of_light(sample_weight)
    given = _default_menu(scale, several=several)
    if calibrators is not None:
        given = _name_all(calibrators)
    menu = set_menu(given, "calibrators", scale, several=several)
    trials = hold_trials(menu, rows, n_folds, random_state, verbose=verbose)
    if trials is None or (trials.weight.sum(axis=1) > 0.0).sum() < 2:
        counts = ", ".join(f"{count:g}" for count in rows.weight.sum(axis=1))
        rule = "leave two classes, at two scores or more, when a fold is held out"
        refuse("y", rule, f"classes of {counts} rows")
    return _score(trials, several=several)


def _score(trials: Trials, *, several: bool) -> CalibratorComparison:
    """Return the scores of held-out forecasts, and their curves.

    If there are scores (n,), the forecasts of the second class are judged.
    """
    losses = [trials.losses(one) for one in trials.logs]
    # Take the rows of each class, one class after another.
    labels, places = np.nonzero(trials.weight)
    weight = trials.weight[labels, places]
    tables = [np.exp(logs)[:, places].T for logs in trials.logs]
    if several:
        forecasts = [p / p.sum(axis=1, keepdims=True) for p in tables]
    else:
        forecasts = [p[:, 1] for p in tables]

    def measured(measure: Callable[..., float]) -> Float64Array:
        return np.array([measure(labels, p, sample_weight=weight) for p in forecasts])

    curves = [_curve(labels, p, weight) for p in forecasts]
    return CalibratorComparison(
        names=trials.names,
        reference=trials.names[0],
        log_loss=np.array([one.mean for one in losses]),
        standard_error=np.array([one.error for one in losses]),
        probability_of_harm=np.array([one.harm(losses[0]) for one in losses]),
        brier=measured(brier_score),
        calibration_error=measured(expected_calibration_error),
        maximum_calibration_error=measured(maximum_calibration_error),
        auc=measured(auc_score),
        accuracy=measured(_accuracy),
        curves=dict(zip(trials.names, curves, strict=True)),
    )


def _accuracy(
    labels: NDArray[Any], p: Float64Array, *, sample_weight: Float64Array
) -> float:
    """Return the share of rows whose label has the highest probability."""
    said = p > 0.5 if p.ndim == 1 else p.argmax(axis=1)
    return float(sample_weight @ (said == labels) / sample_weight.sum())


def _curve(
    labels: NDArray[Any], p: Float64Array, weight: Float64Array
) -> ReliabilityCurve:
    """Return the curve of forecasts (n,), or of all (n, k) in one set."""
    if p.ndim == 1:
        return reliability_curve(labels, p, sample_weight=weight)
    k = p.shape[1]
    hits = (labels[:, None] == np.arange(k)).ravel()
    # Events of one row are not independent, but the band would take them as
    # independent.
    return reliability_curve(
        hits, p.ravel(), sample_weight=np.repeat(weight, k), bands=None
    )


def _default_menu(scale: Scale, *, several: bool) -> dict[str, Calibrator]:
    """Return one calibrator of each family that the scale allows."""
    names = _OF_TABLES if several else _OF_SCORES
    return {
        name: make_calibrator(name, n_classes=3 if several else 2)
        for name in names
        if scale != "real" or name != "beta"
    }


def _name_all(calibrators: Any) -> dict[str, Calibrator]:
    """Return calibrators by the name of the class, which is numbered if it is shared.

    This is as in scikit-learn's `make_pipeline`: isotonic-1, isotonic-2.
    """
    if isinstance(calibrators, Mapping):
        return dict(calibrators)
    if not isinstance(calibrators, list | tuple):
        rule = "be a list of calibrators, or a mapping of names to them"
        refuse("calibrators", rule, f"{calibrators!r}", TypeError)
    names = [type(one).__name__.removesuffix("Calibrator") for one in calibrators]
    seen: Counter[str] = Counter()
    named = {}
    for name, one in zip(names, calibrators, strict=True):
        seen[name] += 1
        number = f"-{seen[name]}" if names.count(name) > 1 else ""
        named[name.lower() + number] = one
    return named
