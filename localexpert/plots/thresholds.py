"""Pictures of the calibration of each threshold's probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibration import ReliabilityCurve, reliability_curve
from localexpert._validation import (
    check_integer,
    check_level,
    check_list,
    format_number,
)
from localexpert.distribution.predictors import innermost
from localexpert.experts.task_record import TaskRecord
from localexpert.plots.canvas import (
    GREY,
    check_axes,
    format_percent,
    new_grid,
    put_legend_below,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Shares of the rows below the thresholds that are shown by default, as near as it gets.
_SHARES = np.linspace(0.1, 0.9, 6)
_COLUMNS = 3
# Room around the curves: a share of their range, and at least this probability.
_MARGIN, _LEAST_MARGIN = 0.08, 0.02


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
    >>> from localexpert.plots.thresholds import plot_threshold_reliability
    >>> p = np.linspace(0.01, 0.99, 40)[:, None]
    >>> below = np.arange(40)[:, None] % 3 > 0
    >>> tasks = TaskRecord(np.array([1.5]), p, p**0.5, below, [], np.ones(40))
    >>> [ax.get_title() for ax in plot_threshold_reliability(tasks, n_bins=4)]
    ['1.5: 65% below']
    """
    tasks = _tasks_of(model)
    rate = tasks.weight @ tasks.below / tasks.weight.sum()
    shown = _pick_thresholds(rate, numbers)
    given = _new_grid(len(shown)) if axes is None else axes
    panels = check_axes(given, len(shown), "axes")
    options: dict[str, Any] = {
        "sample_weight": tasks.weight,
        "n_bins": check_integer(n_bins, "n_bins", 1),
        "level": check_level(coverage, "coverage"),
    }
    for ax, k in zip(panels, shown, strict=True):
        below = tasks.below[:, k]
        raw = reliability_curve(below, tasks.raw[:, k], bands=None, **options)
        after = reliability_curve(below, tasks.calibrated[:, k], **options)
        _draw_curves(ax, raw, after)
        threshold = format_number(float(tasks.thresholds[k]))
        ax.set_title(f"{threshold}: {100.0 * rate[k]:.2g}% below", fontsize="medium")
    _dress(panels)
    put_legend_below(panels, _columns(len(panels)))
    return panels


def _tasks_of(model: Any) -> TaskRecord:
    """Return the record of a fitted regressor, or what already is one."""
    tasks = getattr(getattr(innermost(model), "forecaster_", None), "tasks_", model)
    if not isinstance(tasks, TaskRecord):
        msg = (
            "`model` must be a TaskRecord or a fitted LocalExpertRegressor whose "
            f"target varies, got {type(model).__name__}."
        )
        raise TypeError(msg)
    return tasks


def _pick_thresholds(rate: Any, numbers: Sequence[int] | None) -> list[int]:
    """Return the numbers of the thresholds to show, by the shares below them, (N,)."""
    n = len(rate)
    if numbers is None:
        nearest = np.abs(rate[:, None] - _SHARES).argmin(axis=0)
        return [int(k) for k in np.unique(nearest)]
    listed = check_list(numbers, "numbers", "numbers of thresholds")
    chosen = [check_integer(k, "numbers", 0) for k in listed]
    if not chosen or max(chosen) >= n:
        got = f"{max(chosen)}" if chosen else "none"
        msg = f"`numbers` must hold at least one number below {n}, got {got}."
        raise ValueError(msg)
    return chosen


def _columns(k: int) -> int:
    """Return how many of k panels stand in a row."""
    return 2 if k == 4 else min(k, _COLUMNS)


def _new_grid(k: int) -> NDArray[np.object_]:
    """Return k axes of a new figure, three in a row, and take away the others."""
    columns = _columns(k)
    rows = -(-k // columns)
    grid = new_grid(rows, columns, (0.8 + 2.0 * columns, 0.9 + 2.1 * rows)).ravel()
    for spare in grid[k:]:
        spare.remove()
    return grid[:k]


def _draw_curves(ax: Axes, raw: ReliabilityCurve, after: ReliabilityCurve) -> None:
    """Draw both curves and where the second would lie if it were calibrated."""
    ax.plot([0, 1], [0, 1], "--", color=GREY, lw=1, zorder=1)
    x, low, high = after.mean_prob, after.lower, after.upper
    if low is not None and high is not None:
        label = f"{format_percent(after.level)} consistency band"
        ax.fill_between(x, low, high, color="C0", alpha=0.18, lw=0, label=label)
    ring: dict[str, Any] = {"ms": 6, "mfc": "none", "label": "before calibration"}
    ax.plot(raw.mean_prob, raw.event_rate, "o-", color="C1", lw=1.2, **ring)
    dot: dict[str, Any] = {"ms": 3.5, "label": "after calibration"}
    ax.plot(x, after.event_rate, "o-", color="C0", lw=1.2, **dot)


def _dress(panels: NDArray[np.object_]) -> None:
    """Cut each panel to a square that holds its curves, and name the axes."""
    from matplotlib.ticker import MaxNLocator

    for ax in panels:
        drawn = np.concatenate([line.get_xydata() for line in ax.lines[1:]])
        low, high = float(drawn.min()), float(drawn.max())
        margin = max(_MARGIN * (high - low), _LEAST_MARGIN)
        ends = max(low - margin, -_LEAST_MARGIN), min(high + margin, 1 + _LEAST_MARGIN)
        ax.set(xlim=ends, ylim=ends, aspect="equal")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator(4))
        ax.grid(alpha=0.25)
        place = ax.get_subplotspec()
        if place is None or place.is_first_col():
            ax.set_ylabel("Share below")
        if place is None or place.is_last_row():
            ax.set_xlabel("Forecast")
