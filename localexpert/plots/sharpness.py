"""Pictures of sharpness: whether a narrow forecast deserves to be one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from calibration.typing import Float64Array
from localexpert._validation import (
    check_ax,
    check_choice,
    check_integer,
    check_level,
    format_number,
)
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.plots.canvas import (
    GREY,
    check_outcomes,
    draw_dots,
    format_percent,
    name_target,
    new_axes,
    put_legend_above,
    sample_rows,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Rows that a mean of errors needs before its interval means something.
_LEAST_ROWS = 10
# Rows whose spreads are worked out; more of them make no better picture.
_MOST_ROWS = 20_000
# Single errors beyond this share of them may lie above the picture.
_SEEN = 0.99
# As for spreads, which cost the picture its width.
_SEEN_WIDTHS = 0.995
# Spreads that differ by a smaller share of themselves are one.
_ROUNDING = 1e-9


def plot_sharpness(
    y: ArrayLike,
    dist: PredictiveDistribution,
    *,
    spread: Literal["std", "interval"] = "std",
    coverage: float = 0.8,
    n_bins: int = 10,
    level: float = 0.95,
    target_name: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw the error that came against the spread that was forecast.

    Means of the errors in bins of equally many rows, from the sharpest forecasts to
    the widest, and what the forecasts themselves expected of these errors.

    Parameters
    ----------
    y : array-like of shape (n,)
        Outcomes.
    dist : PredictiveDistribution
        Of n rows.
    spread : {"std", "interval"}
        Standard deviation, or width of the central interval of `coverage`.
    coverage : float
        In (0, 1).
    n_bins : int
        At most this many bins, with at least ten rows each.
    level : float
        Confidence of the bars, in (0, 1).
    target_name : str, optional
        What the target is called on both axes, with its unit; default the name of
        `y` if it has one.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    Notes
    -----
    An error is :math:`|y_i - m_i|` with the forecast's median :math:`m_i`; a
    calibrated forecast has errors of mean :math:`E|Y_i - m_i|`, whatever its shape,
    and its bars, a mean with a normal interval, lie on that line. Single errors are
    drawn faintly: of more than 3000 a sample. Where the longest tails would press the
    others together they lie outside the picture: triangles at its edge, and the
    legend says how many of all errors and how far they go. Of more than 20 000 rows a
    sample of so many stands for all. Samples are always the same.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.distribution.predictive import PredictiveDistribution
    >>> from localexpert.plots.sharpness import plot_sharpness
    >>> rows = np.tile([0.3, 0.7], (40, 1))
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
    >>> y = np.repeat([0.0, 1.0], [12, 28])
    >>> plot_sharpness(y, dist).get_ylabel()
    'Absolute error of the median'
    """
    check_ax(ax)
    outcomes = check_outcomes(y, dist)
    check_choice(spread, "spread", ("std", "interval"))
    bins = check_integer(n_bins, "n_bins", 1)
    rows = sample_rows(len(outcomes), _MOST_ROWS)
    outcomes, dist = outcomes[rows], dist[rows]
    z = float(ndtri(0.5 + 0.5 * check_level(level, "level")))
    width, name = _spread_of(dist, spread, check_level(coverage, "coverage"))
    median = dist.median()
    error = np.abs(outcomes - median)
    expected = np.add(*dist.partial_means(median))
    group = _bin_rows(width, bins)
    size = np.bincount(group)
    at, mean, own = (np.bincount(group, v) / size for v in (width, error, expected))
    variance = np.bincount(group, (error - mean[group]) ** 2) / np.maximum(size - 1, 1)
    half = z * np.sqrt(variance / size)
    ax = new_axes() if ax is None else ax
    draw_dots(ax, width, error, GREY, label="each row")
    ax.plot(at, own, "x--", color="C1", lw=1.3, label="expected by the forecasts")
    label = f"mean, {format_percent(level)} confidence"
    ax.errorbar(at, mean, half, fmt="o", ms=5, capsize=2, color="C0", label=label)
    _frame(ax, at, width, error, np.concatenate([own, mean + half]))
    _count_hidden(ax, width, error)
    called = name_target(target_name, y)
    ax.set(xlabel=_name_axis(name, called))
    ax.set(ylabel=_name_axis("Absolute error of the median", called))
    put_legend_above(ax)
    return ax


def _spread_of(
    dist: PredictiveDistribution, spread: str, coverage: float
) -> tuple[Float64Array, str]:
    """Return the spread of each row, and what it is called."""
    if spread == "std":
        return dist.std(), "Standard deviation of the forecast"
    low, high = dist.interval(coverage).T
    return high - low, f"Width of the {format_percent(coverage)} interval"


def _bin_rows(width: Float64Array, n_bins: int) -> NDArray[np.intp]:
    """Return the bin of each row, numbered without gaps; equal rows share one."""
    bins = max(1, min(n_bins, len(width) // _LEAST_ROWS))
    edges = np.quantile(width, np.linspace(0.0, 1.0, bins + 1)[1:-1])
    group = np.searchsorted(edges, width, "right")
    return np.unique(group, return_inverse=True)[1]


def _frame(
    ax: Axes,
    at: Float64Array,
    width: Float64Array,
    error: Float64Array,
    drawn: Float64Array,
) -> None:
    """Leave the longest tails of both out of sight, but nothing of the bins."""
    top = max(float(np.quantile(error, _SEEN)), float(drawn.max()))
    low, high = float(width.min()), float(np.quantile(width, _SEEN_WIDTHS))
    high = max(high, float(at.max()))
    # What differs by rounding alone is one value.
    alike = high - low <= _ROUNDING * abs(high)
    margin = (0.5 * abs(high) or 1.0) if alike else 0.04 * (high - low)
    top = 1.05 * top or 1.0
    ax.set(xlim=(low - margin, high + margin), ylim=(-0.02 * top, top))


def _count_hidden(ax: Axes, width: Float64Array, error: Float64Array) -> None:
    """Mark and count the errors that lie outside the picture."""
    right, top = ax.get_xlim()[1], ax.get_ylim()[1]
    beyond = (width > right) | (error > top)
    if not beyond.any():
        return
    label = f"{beyond.sum()} of {len(error)} outside, error"
    label += f" up to {format_number(error[beyond].max(), 3)}"
    looks: dict[str, Any] = {"color": GREY, "ms": 4, "mew": 0, "clip_on": False}
    x, y = np.minimum(width[beyond], right), np.minimum(error[beyond], top)
    kept = sample_rows(len(x))
    ax.plot(x[kept], y[kept], "^", alpha=0.6, label=label, **looks)


def _name_axis(what: str, target: str) -> str:
    """Return the name of an axis in the target's unit, which may be long."""
    return what if target == "y" else f"{what}\n{target}"
