"""Calibrators side by side on held-out rows: a table, and their reliability curves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from calibration._validation import (
    as_numbers,
    check_choice,
    check_integer,
    plain_label,
    warn_of_light,
)
from calibration.base.calibrators import SCALES, Scale, ScoreCalibrator
from calibration.logistic.beta import BetaCalibrator
from calibration.logistic.polynomial import PlattCalibrator, QuadraticCalibrator
from calibration.measures import (
    ReliabilityCurve,
    brier_score,
    expected_calibration_error,
    reliability_curve,
)
from calibration.monotone.elite import ELiTECalibrator
from calibration.monotone.isotonic import IsotonicCalibrator
from calibration.selection.auto import AutoCalibrator
from calibration.selection.trials import check_menu, hold_trials, set_menu
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Calibrators: TypeAlias = (
    Mapping[str, ScoreCalibrator]
    | Sequence[ScoreCalibrator]
    | Sequence[tuple[str, ScoreCalibrator]]
)

_COLUMNS = 4
_INCHES = 4.2
# Letters of the title of a panel.
_LONGEST_NAME = 30


@dataclass(frozen=True, eq=False, repr=False)
class CalibratorComparison:
    """What calibrators scored on held-out rows; build it with `compare_calibrators`.

    Its string is a table, best log loss first.

    Parameters
    ----------
    names : tuple of str
        The k calibrators, in the order given.
    reference : str
        The first of them, doing nothing where scores have it.
    log_loss, standard_error : ndarrays of shape (k,)
        Mean log loss and its standard error.
    probability_of_harm : ndarray of shape (k,)
        Probability that the log loss is worse than that of the reference.
    brier, calibration_error : ndarrays of shape (k,)
        Brier score, and expected calibration error of ten bins of equal frequency.
    curves : dict of str to ReliabilityCurve
        Event rate against forecast.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration.selection.compare import compare_calibrators
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
    curves: dict[str, ReliabilityCurve]

    def __str__(self) -> str:
        """Return the scores as a table, best log loss first."""
        width = max(len("held-out"), *map(len, self.names))
        title = f"{'held-out':<{width}}  log loss   error   Brier     ECE  P(harm)"
        lines = [
            f"{self.names[i]:<{width}}  {self.log_loss[i]:8.4f}  "
            f"{self.standard_error[i]:6.4f}  {self.brier[i]:6.4f}  "
            f"{self.calibration_error[i]:6.4f}  {self.probability_of_harm[i]:7.3f}"
            for i in np.argsort(self.log_loss, kind="stable")
        ]
        return "\n".join([title, *lines, f"harm against {self.reference}"])

    def plot(self) -> list[Axes]:
        """Draw the reliability curves side by side in a new figure.

        Returns
        -------
        list of matplotlib Axes
            One per calibrator, in the order of `names`.
        """
        import matplotlib.pyplot as plt

        columns = min(_COLUMNS, len(self.names))
        rows = -(-len(self.names) // columns)
        figure, grid = plt.subplots(
            rows,
            columns,
            figsize=(_INCHES * columns, _INCHES * rows),
            layout="constrained",
            sharex=True,
            sharey=True,
            squeeze=False,
        )
        panels: list[Axes] = list(grid.ravel())
        for unused in panels[len(self.names) :]:
            figure.delaxes(unused)
        drawn = panels[: len(self.names)]
        for ax, name, loss in zip(drawn, self.names, self.log_loss, strict=True):
            _draw(ax, self.curves[name])
            ax.set_title(
                f"{plain_label(name, _LONGEST_NAME)}\nlog loss {loss:.4f}",
                fontsize="medium",
            )
        return drawn


def compare_calibrators(
    scores: ArrayLike,
    y: ArrayLike,
    calibrators: Calibrators | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    n_folds: int = 5,
    random_state: int | None = 0,
    scale: Scale = "probability",
) -> CalibratorComparison:
    r"""Score calibrators on rows that they were not fitted on.

    Parameters
    ----------
    scores : array-like of shape (n,) or (n, 1)
        Scores that no calibrator has seen, of rows that the classifier has not.
    y : array-like of shape (n,)
        Labels coded 0 and 1.
    calibrators : list of ScoreCalibrator or (name, ScoreCalibrator), or mapping
        Cloned, and their `scale` set; one without a name is called by its class
        ("isotonic"). Doing nothing, "identity", is put before them unless the scores
        are real. Default: Platt, quadratic, beta, ELiTE, isotonic and auto, those
        that the scale allows.
    sample_weight : array-like of shape (n,), optional
        Numbers of repetitions.
    n_folds : int
        Every row is scored by calibrators fitted on the other folds.
    random_state : int or None
        Seed of the folds; None draws one.
    scale : {"probability", "logit", "real"}
        What a score is.

    Returns
    -------
    CalibratorComparison
        ``print(comparison)`` shows the table, ``comparison.plot()`` the curves.

    Notes
    -----
    Maps of steps and lines may say 0 or 1; here all their probabilities are clipped
    to :math:`[1/(2n+2), 1 - 1/(2n+2)]`, n being the rows they were fitted on, so that
    log losses are finite. Of very many scores close ones count as one. The
    probability of harm is that of `AutoCalibrator`.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import IsotonicCalibrator, PlattCalibrator
    >>> from calibration.selection.compare import compare_calibrators
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=2000)
    >>> y = rng.uniform(size=2000) < scores**2
    >>> two = [PlattCalibrator(), IsotonicCalibrator()]
    >>> print(compare_calibrators(scores, y, two))
    held-out  log loss   error   Brier     ECE  P(harm)
    isotonic    0.3958  0.0125  0.1291  0.0203    0.000
    platt       0.3962  0.0118  0.1291  0.0106    0.000
    identity    0.4902  0.0107  0.1643  0.1684    0.000
    harm against identity
    """
    n_folds = check_integer(n_folds, "n_folds", 2)
    check_choice(scale, "scale", SCALES)
    summary = ScoreSummary.from_scores(scores, y, sample_weight)
    if sample_weight is not None:
        warn_of_light(as_numbers(sample_weight, "sample_weight"))
    menu = _prepare(calibrators, scale)
    trials = hold_trials(menu, summary, n_folds, random_state)
    if trials is None:
        msg = (
            "`y` must leave both classes, at two scores or more, when a fold is held "
            f"out, got {summary!r}."
        )
        raise ValueError(msg)
    log_odds = trials.log_odds
    held = [trials.losses(row) for row in log_odds]
    # A cell is two rows, one per class, with the weight of each.
    labels = np.repeat([0.0, 1.0], log_odds.shape[1])
    weights = np.concatenate([trials.weight0, trials.weight1])
    answers = [np.tile(expit(row), 2) for row in log_odds]
    losses = [
        np.array([loss(labels, p, sample_weight=weights) for p in answers])
        for loss in (brier_score, expected_calibration_error)
    ]
    return CalibratorComparison(
        names=tuple(menu),
        reference=next(iter(menu)),
        log_loss=np.array([one.mean for one in held]),
        standard_error=np.array([one.error for one in held]),
        probability_of_harm=np.array([one.harm(held[0]) for one in held]),
        brier=losses[0],
        calibration_error=losses[1],
        curves={
            name: reliability_curve(labels, p, sample_weight=weights)
            for name, p in zip(menu, answers, strict=True)
        },
    )


def _draw(ax: Axes, curve: ReliabilityCurve) -> None:
    """Draw one curve, and the band where it would lie if forecasts were calibrated."""
    ax.plot([0.0, 1.0], [0.0, 1.0], "--", color="0.45", lw=1)
    if curve.lower is not None and curve.upper is not None:
        ax.fill_between(curve.mean_prob, curve.lower, curve.upper, alpha=0.2, lw=0)
    ax.plot(curve.mean_prob, curve.event_rate, marker="o", ms=4, lw=1.6)
    ax.set(aspect="equal", xlabel="Forecast probability", ylabel="Observed event rate")
    ax.label_outer()


def _prepare(
    calibrators: Calibrators | None, scale: Scale
) -> dict[str, ScoreCalibrator]:
    """Return clones with the scale set, doing nothing first where it has a meaning."""
    given = _default_menu(scale) if calibrators is None else _name_all(calibrators)
    check_menu(given, "calibrators")
    return set_menu(given, scale)


def _name_all(calibrators: Any) -> dict[str, ScoreCalibrator]:
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
    named: dict[str, ScoreCalibrator] = {}
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


def _default_menu(scale: Scale) -> dict[str, ScoreCalibrator]:
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
