"""Picture of an explanation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.typing import Float64Array
from localexpert._validation import (
    check_ax,
    check_integer,
    format_number,
    plain_label,
)
from localexpert.explain.explanation import Explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Texts at a distance in points from what they name.
_SMALL: dict[str, Any] = {"textcoords": "offset points", "fontsize": "small"}
_UP, _DOWN, _GREY = "C3", "C0", "0.5"
# Room beside the bars for their numbers, as a share of the bars' range.
_MARGIN = 0.22
_LONGEST_NAME = 70
# Room for the base below the lowest bar.
_FLOOR = -1.1
_MOST_TICKS = 5


def plot_explanation(
    explanation: Explanation,
    row: int = 0,
    *,
    max_features: int = 10,
    target_name: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how the contributions lead from the base to one row's forecast.

    Bars from below: each starts where the one under it ended, the smallest first.
    Black lines: one standard error either side, where contributions are sampled.

    Parameters
    ----------
    explanation : Explanation
    row : int
    max_features : int
        Bars; the other features are one bar more.
    target_name : str, optional
        What the target is called, with its unit; default: not named.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.explain import Explanation, plot_explanation
    >>> names, inputs = ("age", "dose"), np.array([["61", "2.5"]])
    >>> values, errors = np.array([[-1.0, 3.0]]), np.zeros((1, 2))
    >>> told = Explanation("mean", names, values, errors, 5.0, np.array([7.0]), inputs)
    >>> [label.get_text() for label in plot_explanation(told).get_yticklabels()]
    ['age = 61', 'dose = 2.5']
    """
    check_ax(ax)
    if not isinstance(explanation, Explanation):
        msg = f"`explanation` must be an Explanation, got {type(explanation).__name__}."
        raise TypeError(msg)
    n = len(explanation)
    if check_integer(row, "row", 0) >= n:
        msg = f"`row` must be less than the {n} rows explained, got {row}."
        raise ValueError(msg)
    parts = explanation.largest(row, max_features)[::-1]
    labels, *numbers = zip(*parts, strict=True)
    names = [plain_label(label) for label in labels]
    values, errors = np.array(numbers)
    starts = explanation.base + np.concatenate([[0.0], np.cumsum(values)[:-1]])
    if ax is None:
        import matplotlib.pyplot as plt

        width = 5.0 + 0.07 * max(map(len, names))
        size = (max(width, 6.5), 1.6 + 0.38 * len(parts))
        ax = plt.subplots(figsize=size, layout="constrained")[1]
    _draw_bars(ax, starts, values, errors)
    ax.set_yticks(np.arange(len(parts)), names)
    _mark_ends(ax, explanation.base, float(explanation.total[row]), len(parts))
    name = explanation.of if target_name is None else f"{explanation.of}: {target_name}"
    ax.set_xlabel(plain_label(name, _LONGEST_NAME))
    return ax


def _draw_bars(
    ax: Axes, starts: Float64Array, values: Float64Array, errors: Float64Array
) -> None:
    """Draw the bars, lines from each end to the next bar, and numbers beside them."""
    heights, ends = np.arange(len(values)), starts + values
    colours = [_UP if value > 0.0 else _DOWN for value in values]
    ax.barh(heights, values, left=starts, height=0.62, color=colours, alpha=0.85)
    if (errors > 0.0).any():
        looks: dict[str, Any] = {"ecolor": _ink_of(ax), "elinewidth": 1.2}
        ax.errorbar(ends, heights, xerr=errors, fmt="none", **looks)
    ax.vlines(ends[:-1], heights[:-1], heights[1:], color=_GREY, lw=0.8, zorder=0)
    drawn = zip(heights, values.tolist(), ends, errors, strict=True)
    for height, value, end, error in drawn:
        side, near = (1.0, "left") if value > 0.0 else (-1.0, "right")
        place: dict[str, Any] = {"xytext": (4.0 * side, 0.0), "ha": near}
        at = (end + side * error, height)
        text = f"{'+' if value >= 0.0 else ''}{format_number(value, 3)}"
        ax.annotate(text, at, va="center", **place, **_SMALL)
    edges = np.concatenate([starts, ends - errors, ends + errors])
    room = _MARGIN * (np.ptp(edges) or 1.0)
    ax.set_xlim(edges.min() - room, edges.max() + room)


def _ink_of(ax: Axes) -> Any:
    """Return the colour that axes are written in."""
    return ax.xaxis.label.get_color()


def _mark_ends(ax: Axes, base: float, total: float, n_bars: int) -> None:
    """Draw and name where the bars begin and where they lead."""
    from matplotlib.ticker import MaxNLocator

    ax.vlines(base, _FLOOR, 0.0, color=_GREY, ls="--", lw=1, zorder=0)
    looks: dict[str, Any] = {"color": _ink_of(ax), "ls": "--", "lw": 1, "zorder": 0}
    ax.vlines(total, n_bars - 1, n_bars - 0.4, **looks)
    ax.set_ylim(_FLOOR, n_bars - 0.4)
    low: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "va": "bottom"}
    above: dict[str, Any] = {"xytext": (0.0, 3.0), "ha": "center"}
    ax.annotate(
        f"forecast {format_number(total, 3)}", (total, 1.0), **above, **low, **_SMALL
    )
    right: dict[str, Any] = {"xytext": (4.0, 3.0), "ha": "left", "color": _GREY}
    ax.annotate(f"base {format_number(base, 3)}", (base, 0.0), **right, **low, **_SMALL)
    ax.spines[["top", "right"]].set_visible(False)
    ax.xaxis.set_major_locator(MaxNLocator(_MOST_TICKS))
