"""Pictures of a fitted regressor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from calibration.typing import Float64Array
from localexpert._validation import check_choice
from localexpert.experts.report import ExpertReport
from localexpert.plots.canvas import (
    GREY,
    check_axes,
    new_grid,
    put_legend_below,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANELS = ("Accuracy", "Kappa", "AUC", "Log loss", "Calibration error", "Base rate")
# Room above and below the values of a panel, as a share of their range.
_MARGIN = 0.08
# Of the legend below the panels; thresholds on an axis.
_COLUMNS, _MOST_TICKS = 4, 4


def plot_expert_report(
    report: Any,
    *,
    axes: Any = None,
    against: Literal["threshold", "number"] = "threshold",
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
    against : {"threshold", "number"}
        What is on the horizontal axes: thresholds in the coordinate of the frame, or
        their numbers from 1, evenly spaced whatever the tails.

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
    check_choice(against, "against", ("threshold", "number"))
    report = getattr(report, "expert_report_", report)
    if not isinstance(report, ExpertReport):
        msg = (
            "`report` must be an ExpertReport or a regressor that has one, "
            f"got {type(report).__name__}."
        )
        raise TypeError(msg)
    given = new_grid(2, 3, (9.5, 5.4), sharex=True) if axes is None else axes
    panels = check_axes(given, len(_PANELS), "axes").reshape(2, 3)
    numbers = np.arange(1.0, len(report.thresholds) + 1.0)
    x = report.thresholds if against == "threshold" else numbers
    accuracy, kappa, auc, loss, error, rate = panels.ravel()
    base = report.base_rate
    _draw_folds(accuracy, x, report.accuracy)
    _draw_reference(accuracy, x, np.maximum(base, 1.0 - base))
    _draw_folds(kappa, x, report.kappa)
    kappa.axhline(0.0, ls="--", color=GREY, lw=1, zorder=1)
    auc.plot(x, report.auc, "o-", ms=4, lw=1.2)
    auc.axhline(0.5, ls="--", color=GREY, lw=1, zorder=1)
    _draw_calibration(loss, x, report.log_loss_raw, report.log_loss)
    # The log loss of the base rate itself is its entropy, 0 for one class.
    _draw_reference(loss, x, entr(base) + entr(1.0 - base))
    _draw_calibration(error, x, report.calibration_error_raw, report.calibration_error)
    rate.plot(x, base, "o-", ms=4, lw=1.2)
    _dress(panels, against)
    put_legend_below(panels.ravel(), _COLUMNS)
    return panels


def _draw_folds(ax: Axes, x: Float64Array, figures: Float64Array) -> None:
    """Draw means over folds (N, n_folds) and one standard deviation either side."""
    mean, spread = figures.mean(axis=1), figures.std(axis=1)
    look: dict[str, Any] = {"fmt": "o-", "ms": 4, "lw": 1.2, "elinewidth": 1.2}
    ax.errorbar(x, mean, spread, capsize=2, label="mean, sd over folds", **look)


def _draw_calibration(
    ax: Axes, x: Float64Array, raw: Float64Array, calibrated: Float64Array
) -> None:
    """Draw a loss before and after; where they agree the ring is around the dot."""
    ring: dict[str, Any] = {"ms": 7, "mfc": "none", "label": "before calibration"}
    ax.plot(x, raw, "o-", color="C1", lw=1.2, **ring)
    ax.plot(x, calibrated, "o-", color="C0", ms=4, lw=1.2, label="after calibration")


def _draw_reference(ax: Axes, x: Float64Array, figures: Float64Array) -> None:
    """Draw what forecasting the base rate for every row gets."""
    ax.plot(x, figures, "--", color=GREY, lw=1, zorder=1, label="base rate alone")


def _dress(panels: NDArray[np.object_], against: str) -> None:
    """Title the panels, name the axes and start losses at 0."""
    from matplotlib.ticker import MaxNLocator

    for ax, name in zip(panels.ravel(), _PANELS, strict=True):
        ax.set_title(name, fontsize="medium")
        ax.margins(y=_MARGIN)
        ax.grid(alpha=0.25)
    for ax in panels.ravel():
        ax.xaxis.set_major_locator(MaxNLocator(_MOST_TICKS))
    for ax in panels[1]:
        ax.set_xlabel("Threshold" if against == "threshold" else "Number of threshold")
    error, rate = panels.ravel()[[4, 5]]
    error.set_ylim(bottom=0.0)
    rate.set_ylim(-0.02, 1.02)
