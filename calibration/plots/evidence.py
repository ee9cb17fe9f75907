"""Pictures of evidence: ranks of methods, and what a monitor has seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from calibration._validation import plain_label, refuse
from calibration.drift.base import DriftMonitor
from calibration.measures.comparison import MethodComparison
from calibration.plots import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_ranks(comparison: MethodComparison, *, ax: Axes | None = None) -> Axes:
    """Draw average ranks, and join the methods that do not differ from the control.

    Parameters
    ----------
    comparison : MethodComparison
        What `compare_methods` returned.
    ax : matplotlib Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    References
    ----------
    Demsar (2006), Statistical comparisons of classifiers over multiple data sets.

    Examples
    --------
    >>> from calibration import compare_methods
    >>> from calibration.plots import plot_ranks
    >>> losses = [[0.3, 0.1, 0.2], [0.3, 0.1, 0.2], [0.2, 0.1, 0.3], [0.4, 0.2, 0.3]]
    >>> plot_ranks(compare_methods(losses)).get_xlabel()
    'Average rank (1 is best)'
    """
    canvas.read_items({"": comparison}, "comparison", (MethodComparison,))
    ranks = comparison.average_ranks
    k = len(ranks)
    rows = (k + 1) // 2
    ax = canvas.open_axes(ax, (7.5, 1.7 + 0.32 * rows))
    for place, i in enumerate(np.argsort(ranks, kind="stable")):
        on_left = place < rows
        height = -1.2 - (place if on_left else k - 1 - place)
        _draw_rank(ax, comparison, int(i), on_left, height)
    # Draw one line from the best to the worst of them (Demsar 2006, figure 1b).
    joined = ranks[~comparison.different]
    label = (
        f"not different from {plain_label(comparison.control, canvas.LONGEST_NAME)} "
        f"(Holm, level {comparison.level:g}; all equal: p = {comparison.p_value:.2g})"
    )
    ends = [joined.min(), joined.max()]
    ax.plot(ends, [-0.5] * 2, color="C3", lw=5, solid_capstyle="round", label=label)
    # The line of ranks is the only axis. It is on top.
    ax.set(xlim=(1.0 - 0.05 * (k - 1), k + 0.05 * (k - 1)), ylim=(-0.9 - rows, 0.0))
    ax.set(xticks=range(1, k + 1), yticks=[], xlabel="Average rank (1 is best)")
    ax.spines[["left", "right", "bottom"]].set_visible(False)
    ax.spines["top"].set_bounds(1, k)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    looks: dict[str, Any] = {"frameon": False, "fontsize": "small"}
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), **looks)
    return ax


def _draw_rank(
    ax: Axes, comparison: MethodComparison, i: int, on_left: bool, height: float
) -> None:
    """Draw the line from a method's rank to its name."""
    rank, k = comparison.average_ranks[i], len(comparison.names)
    name = plain_label(comparison.names[i], canvas.LONGEST_NAME)
    side = 1.0 - 0.05 * (k - 1) if on_left else k + 0.05 * (k - 1)
    control = comparison.names[i] == comparison.control
    color = "C0" if control else canvas.ink_of(ax)
    ax.plot([rank, rank, side], [0.0, height, height], color=color, lw=1.2)
    text = f"{name}  {rank:.2f} " if on_left else f" {rank:.2f}  {name}"
    looks: dict[str, Any] = {"ha": "right" if on_left else "left", "va": "center"}
    looks |= {"color": color, "fontweight": "bold" if control else "normal"}
    ax.text(side, height, text, **looks)


# Powers of ten that are shown. Beyond them, more evidence tells nothing new.
_LEAST, _MOST = -2.0, 10.0
_ALARM, _ONSET = "C3", "C1"


@canvas.picture
def plot_monitor(
    monitor: DriftMonitor, *, ax: Sequence[Axes] | None = None
) -> NDArray[np.object_]:
    """Draw the evidence of a monitor over the rows seen, above the offsets of batches.

    The upper panel shows the e-value as a power of ten, the level of the alarm, and
    where the change most likely began. The lower panel shows the offset of each batch,
    with two standard errors either way, and the tolerance as a band.

    Parameters
    ----------
    monitor : CalibrationMonitor or localexpert.ForecastMonitor
        A monitor that has seen at least one batch.
    ax : sequence of two matplotlib Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    ndarray of shape (2,)
        The axes that were drawn on.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import CalibrationMonitor, plot_monitor
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=200)
    >>> monitor = CalibrationMonitor().fit(p, rng.uniform(size=200) < p)
    >>> evidence, offsets = plot_monitor(monitor)
    >>> offsets.get_xlabel()
    'Rows'
    """
    if not isinstance(monitor, DriftMonitor):
        refuse("monitor", "be a monitor", type(monitor).__name__, TypeError)
    check_is_fitted(monitor)
    axes = canvas.open_panels(ax, 2, (5.8, 2.3), columns=1, name="ax", sharex=True)
    _draw_evidence(axes[0], monitor)
    _draw_offsets(axes[1], monitor)
    return axes


def _draw_evidence(ax: Axes, monitor: DriftMonitor) -> None:
    rows = np.append(0.0, monitor.history_["row"])
    powers = np.append(0.0, monitor.history_["log_e"]) / np.log(10.0)
    ax.plot(rows, np.clip(powers, _LEAST, _MOST), color="C0", label="evidence")
    line = -np.log10(monitor.alpha)
    label = f"alarm at {1.0 / monitor.alpha:g}"
    ax.axhline(line, color=_ALARM, ls="--", lw=1, label=label)
    if monitor.alarm_row_ is not None:
        ax.plot(monitor.alarm_row_, line, "o", color=_ALARM, label="alarm")
    _draw_onset(ax, monitor)
    ax.axhline(0.0, color=canvas.GREY, lw=0.8, zorder=0)
    ax.set_ylabel("e-value, power of 10")


def _draw_offsets(ax: Axes, monitor: DriftMonitor) -> None:
    history = monitor.history_
    middle = history["row"] - 0.5 * history["n"]
    bars: dict[str, Any] = {"fmt": ".", "color": "C0", "elinewidth": 0.8}
    ax.errorbar(middle, history["offset"], 2.0 * history["error"], **bars)
    bound = monitor.tolerance_
    ax.axhspan(-bound, bound, color=canvas.GREY, alpha=0.3, lw=0, label="tolerance")
    _draw_onset(ax, monitor)
    ax.set_xlabel("Rows")
    ax.set_ylabel("Offset of a batch")


def _draw_onset(ax: Axes, monitor: DriftMonitor) -> None:
    onset = monitor.find_onset()
    if onset is not None:
        ax.axvline(onset, color=_ONSET, ls=":", lw=1.5, label="onset")
