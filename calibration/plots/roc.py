"""The ROC curve, and its convex hull, which is isotonic regression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.isotonic import isotonic_regression

from calibration._validation import check_flag, plain_label
from calibration.plots import canvas
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array, Int64Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@canvas.picture
def plot_roc(
    scores: ArrayLike | Mapping[str, ArrayLike],
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    hull: bool = True,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw the ROC curve of scores and its convex hull.

    Parameters
    ----------
    scores : array-like of shape (n,), or mapping of names to such
        The higher, the more likely is class 1. Several are told apart by colour.
    y : array-like of shape (n,)
        Labels, coded 0 and 1, of both classes.
    sample_weight : array-like of shape (n,), optional
        Non-negative numbers of repetitions.
    hull : bool
        Whether to draw the hull as a dashed line.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on; labels say the areas below.

    Notes
    -----
    The hull is the ROC curve of the scores after isotonic regression (PAV): a side of
    it is a block of pooled scores, and its slope is the block's ratio of likelihoods.
    What lies between curve and hull is the area that the calibrator gains where scores
    are in the wrong order.

    References
    ----------
    Fawcett & Niculescu-Mizil (2007), PAV and the ROC convex hull. Bruemmer & du Preez
    (2013), The PAV algorithm optimizes binary proper scoring rules.

    Examples
    --------
    >>> from calibration import plot_roc
    >>> ax = plot_roc([0.1, 0.4, 0.3, 0.8], [0, 0, 1, 1])
    >>> [line.get_label() for line in ax.lines]
    ['chance', 'ROC, area 0.750', 'hull, area 0.875']
    """
    check_flag(hull, "hull")
    named = canvas.read_items(scores, "scores", (object,))
    summaries = {
        name: ScoreSummary.from_scores(some, y, sample_weight)
        for name, some in named.items()
    }
    for one in summaries.values():
        if min(one.n0, one.n1) == 0.0:
            msg = f"`y` must hold both classes, got {one.n0:g} rows of 0 of {one.n:g}."
            raise ValueError(msg)
    ax = canvas.open_axes(ax, (5.0, 5.2))
    ax.plot([0, 1], [0, 1], ":", color=canvas.GREY, lw=1, label="chance")
    for place, (name, one) in enumerate(summaries.items()):
        label, color = plain_label(name, canvas.LONGEST_NAME), f"C{place % 10}"
        every = np.arange(one.n_cells)
        _draw(ax, *_roc(one, every), label or "ROC", ls="-", color=color, lw=1.6)
        if hull:
            corners = _roc(one, _block_starts(one))
            title = f"{label}, hull" if label else "hull"
            _draw(ax, *corners, title, ls="--", color=color, lw=1.2)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    ax.set(xlabel="False positive rate", ylabel="True positive rate")
    return ax


def _roc(cells: ScoreSummary, starts: Int64Array) -> tuple[Float64Array, Float64Array]:
    """Return rates of false and true positives at cuts below some of the cells."""
    rates = []
    for weight in (cells.weight0, cells.weight1):
        above = np.cumsum(np.add.reduceat(weight, starts)[::-1])
        rates.append(np.append(0.0, above / above[-1]))
    return rates[0], rates[1]


def _block_starts(cells: ScoreSummary) -> Int64Array:
    """Return the first cell of every block that isotonic regression pools."""
    rate = isotonic_regression(cells.weight1 / cells.weight, sample_weight=cells.weight)
    return np.flatnonzero(np.diff(rate, prepend=-1.0) > 0.0)


def _draw(ax: Axes, x: Float64Array, y: Float64Array, name: str, **looks: Any) -> None:
    """Draw a curve of increasing rates, and say the area below it."""
    area = float(np.diff(x) @ (0.5 * (y[1:] + y[:-1])))
    shown = canvas.thin(0.5 * (x + y))
    ax.plot(x[shown], y[shown], label=f"{name}, area {area:.3f}", **looks)
