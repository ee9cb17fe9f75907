"""Pictures of a regressor's experts: how good they are, threshold by threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from calibration import reliability_curve
from calibration.plots import canvas
from calibration.typing import Float64Array
from localexpert._validation import (
    check_integer,
    check_level,
    check_list,
    format_number,
    refuse,
)
from localexpert.distribution.predictors import innermost
from localexpert.experts.report import ExpertReport
from localexpert.experts.task_record import TaskRecord
from localexpert.plots import inputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANELS = ("Accuracy", "Kappa", "AUC", "Log loss", "Calibration error", "Base rate")
# Room around the values of a panel: a share of their range, and of probabilities this.
_MARGIN, _LEAST_MARGIN = 0.08, 0.02
_MOST_TICKS = 4
# Shares of the rows below the thresholds that are shown by default, as near as it gets.
_SHARES = np.linspace(0.1, 0.9, 6)


@canvas.panels
def plot_expert_report(
    report: Any,
    *,
    axes: Any = None,
) -> NDArray[np.object_]:
    """Draw how good each threshold's expert is, out of fold.

    Accuracy and kappa, mean over folds and one standard deviation either side; area
    under the ROC curve; log loss and expected calibration error, before and after
    calibration; base rate. Dashed: a forecast of the base rate for every row.

    Parameters
    ----------
    report : ExpertReport or LocalExpertRegressor
        A fitted regressor, or its attribute `expert_report_`.
    axes : array-like of 6 matplotlib Axes, optional
        Where to draw, in the order above, of any shape; default a new figure.

    Returns
    -------
    ndarray of shape (2, 3) of matplotlib Axes
        The axes that were drawn on.

    References
    ----------
    Normandin (2017), Local expert regression and calibration for probabilistic
    classification (talk), the figure `PlotLEs`.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.experts.report import ExpertReport
    >>> from localexpert.experts.task_record import TaskRecord
    >>> from localexpert.plots import plot_expert_report
    >>> p = np.array([[0.2], [0.8], [0.3], [0.9]])
    >>> below = np.array([[False], [True], [True], [True]])
    >>> first, last = np.array([0, 1]), np.array([2, 3])
    >>> folds = [(last, first), (first, last)]
    >>> record = TaskRecord(np.zeros(1), p, p, below, folds, np.ones(4))
    >>> report = ExpertReport.of(record)
    >>> [panel.get_title() for panel in plot_expert_report(report)[0]]
    ['Accuracy', 'Kappa', 'AUC']
    """
    from matplotlib.ticker import MaxNLocator

    report = getattr(report, "expert_report_", report)
    if not isinstance(report, ExpertReport):
        rule = "be an ExpertReport or a regressor that has one"
        refuse("report", rule, type(report).__name__, TypeError)
    drawn = canvas.open_panels(axes, len(_PANELS), (2.93, 2.25), sharex=True)
    x = report.thresholds
    accuracy, kappa, auc, loss, error, rate = drawn
    base = report.base_rate
    for ax, folds in ((accuracy, report.accuracy), (kappa, report.kappa)):
        looks: dict[str, Any] = {"fmt": "o-", "ms": 4, "lw": 1.2, "capsize": 2}
        looks["label"] = "mean, sd over folds"
        ax.errorbar(x, folds.mean(axis=1), folds.std(axis=1), **looks)
    for ax, figures in ((auc, report.auc), (rate, base)):
        ax.plot(x, figures, "o-", ms=4, lw=1.2)
    _draw_both(loss, (x, report.log_loss_raw), (x, report.log_loss))
    raw, after = report.calibration_error_raw, report.calibration_error
    _draw_both(error, (x, raw), (x, after))
    grey: dict[str, Any] = {"ls": "--", "color": canvas.GREY, "lw": 1, "zorder": 1}
    kappa.axhline(0.0, **grey)
    auc.axhline(0.5, **grey)
    # The log loss of the base rate itself is its entropy, 0 for one class.
    for ax, got in (
        (accuracy, np.maximum(base, 1.0 - base)),
        (loss, entr(base) + entr(1.0 - base)),
    ):
        ax.plot(x, got, label="base rate alone", **grey)
    for ax, name in zip(drawn, _PANELS, strict=True):
        ax.set_title(name, fontsize="medium")
        ax.margins(y=_MARGIN)
        ax.grid(alpha=0.25)
        ax.xaxis.set_major_locator(MaxNLocator(_MOST_TICKS))
    for ax in drawn[3:]:
        ax.set_xlabel("Threshold")
    error.set_ylim(bottom=0.0)
    rate.set_ylim(-0.02, 1.02)
    return drawn.reshape(2, 3)


@canvas.panels
def plot_threshold_reliability(
    model: Any,
    *,
    numbers: Sequence[int] | None = None,
    n_bins: int = 10,
    coverage: float = 0.9,
    axes: Any = None,
) -> NDArray[np.object_]:
    """Draw the reliability of thresholds' probabilities, before and after calibration.

    All are out of fold: no row is forecast by experts or calibrators that saw it.
    Each panel shows the range of its own curves.

    Parameters
    ----------
    model : LocalExpertRegressor or TaskRecord
        Fitted, also inside of a wrapper that `predict_dist` understands, or the
        `tasks_` of its `forecaster_`.
    numbers : sequence of int, optional
        Which thresholds, by their number from 0; default up to six, those with
        nearest to 10 %, 26 %, ..., 90 % of the rows below them.
    n_bins : int
        Bins of equal frequency of each curve.
    coverage : float
        Probability of the band of a calibrated forecast in each bin, in (0, 1).
    axes : array-like of matplotlib Axes, optional
        One for each threshold; default a new figure with three in a row.

    Returns
    -------
    ndarray of shape (k,) of matplotlib Axes
        The axes that were drawn on.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.experts.task_record import TaskRecord
    >>> from localexpert.plots import plot_threshold_reliability
    >>> p = np.linspace(0.01, 0.99, 40)[:, None]
    >>> below = np.arange(40)[:, None] % 3 > 0
    >>> tasks = TaskRecord(np.array([1.5]), p, p**0.5, below, [], np.ones(40))
    >>> [ax.get_title() for ax in plot_threshold_reliability(tasks, n_bins=4)]
    ['1.5: 65% below']
    """
    from matplotlib.ticker import MaxNLocator

    tasks = getattr(getattr(innermost(model), "forecaster_", None), "tasks_", model)
    if not isinstance(tasks, TaskRecord):
        rule = "be a TaskRecord or a fitted LocalExpertRegressor whose target varies"
        refuse("model", rule, type(model).__name__, TypeError)
    rate = tasks.weight @ tasks.below / tasks.weight.sum()
    shown = _pick_thresholds(rate, numbers)
    options: dict[str, Any] = {
        "sample_weight": tasks.weight,
        "n_bins": check_integer(n_bins, "n_bins", 1),
        "level": check_level(coverage, "coverage"),
    }
    drawn = canvas.open_panels(axes, len(shown), (2.0, 2.1))
    for ax, k in zip(drawn, shown, strict=True):
        below = tasks.below[:, k]
        raw = reliability_curve(below, tasks.raw[:, k], bands=None, **options)
        after = reliability_curve(below, tasks.calibrated[:, k], **options)
        pairs = [(one.mean_prob, one.event_rate) for one in (raw, after)]
        seen = np.concatenate([np.ravel(pair) for pair in pairs])
        margin = max(_MARGIN * float(np.ptp(seen)), _LEAST_MARGIN)
        low = max(float(seen.min()) - margin, -_LEAST_MARGIN)
        high = min(float(seen.max()) + margin, 1.0 + _LEAST_MARGIN)
        # A square that holds the curves, and where the second would lie if calibrated.
        ax.set(xlim=(low, high), ylim=(low, high), aspect="equal")
        ax.plot([0, 1], [0, 1], "--", color=canvas.GREY, lw=1, zorder=1)
        label = f"{inputs.format_percent(after.level)} consistency band"
        looks: dict[str, Any] = {"color": "C0", "alpha": 0.18, "lw": 0, "label": label}
        ax.fill_between(after.mean_prob, after.lower, after.upper, **looks)
        _draw_both(ax, *pairs)
        threshold = format_number(float(tasks.thresholds[k]))
        ax.set_title(f"{threshold}: {100.0 * rate[k]:.2g}% below", fontsize="medium")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator(_MOST_TICKS))
        ax.grid(alpha=0.25)
    canvas.name_outer(drawn, "Forecast", "Share below")
    return drawn


def _draw_both(ax: Axes, raw: Any, calibrated: Any) -> None:
    """Draw a curve before and after; where they agree the ring is around the dot."""
    ring: dict[str, Any] = {"ms": 7, "mfc": "none", "label": "before calibration"}
    ax.plot(*raw, "o-", color="C1", lw=1.2, **ring)
    ax.plot(*calibrated, "o-", color="C0", ms=4, lw=1.2, label="after calibration")


def _pick_thresholds(rate: Float64Array, numbers: Sequence[int] | None) -> list[int]:
    """Return the numbers of the thresholds to show, by the shares below them, (N,)."""
    n = len(rate)
    if numbers is None:
        nearest = np.abs(rate[:, None] - _SHARES).argmin(axis=0)
        return [int(k) for k in np.unique(nearest)]
    listed = check_list(numbers, "numbers", "numbers of thresholds")
    chosen = [check_integer(k, "numbers", 0) for k in listed]
    if not chosen or max(chosen) >= n:
        got = f"{max(chosen)}" if chosen else "none"
        refuse("numbers", f"hold at least one number below {n}", got)
    return chosen
