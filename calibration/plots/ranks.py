"""Average ranks of methods, and which are no different from the control."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibration._validation import plain_label
from calibration.measures.comparison import MethodComparison
from calibration.plots import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_ranks(comparison: MethodComparison, *, ax: Axes | None = None) -> Axes:
    """Draw average ranks, and join the methods not different from the control.

    Parameters
    ----------
    comparison : MethodComparison
        What `compare_methods` returned.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

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
    # One line from the best to the worst of them (Demsar 2006, figure 1b).
    joined = ranks[~comparison.different]
    label = (
        f"not different from {plain_label(comparison.control, canvas.LONGEST_NAME)} "
        f"(Holm, level {comparison.level:g}; all equal: p = {comparison.p_value:.2g})"
    )
    ends = [joined.min(), joined.max()]
    ax.plot(ends, [-0.5] * 2, color="C3", lw=5, solid_capstyle="round", label=label)
    _dress_ranks(ax, k, -0.9 - rows)
    return ax


def _draw_rank(
    ax: Axes, comparison: MethodComparison, i: int, on_left: bool, height: float
) -> None:
    """Draw the line from a method's rank to its name."""
    rank, name = (
        comparison.average_ranks[i],
        plain_label(comparison.names[i], canvas.LONGEST_NAME),
    )
    k = len(comparison.names)
    side = 1.0 - 0.05 * (k - 1) if on_left else k + 0.05 * (k - 1)
    control = comparison.names[i] == comparison.control
    color = "C0" if control else canvas.ink_of(ax)
    ax.plot([rank, rank, side], [0.0, height, height], color=color, lw=1.2)
    ax.text(
        side,
        height,
        f"{name}  {rank:.2f} " if on_left else f" {rank:.2f}  {name}",
        ha="right" if on_left else "left",
        va="center",
        color=color,
        fontweight="bold" if control else "normal",
    )


def _dress_ranks(ax: Axes, k: int, bottom: float) -> None:
    """Make the rank line the only axis, on top."""
    ax.set(xlim=(1.0 - 0.05 * (k - 1), k + 0.05 * (k - 1)), ylim=(bottom, 0.0))
    ax.set(xticks=range(1, k + 1), yticks=[], xlabel="Average rank (1 is best)")
    ax.spines[["left", "right", "bottom"]].set_visible(False)
    ax.spines["top"].set_bounds(1, k)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    looks: dict[str, Any] = {"frameon": False, "fontsize": "small"}
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), **looks)
