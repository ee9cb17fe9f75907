"""Fan charts: forecasts over an ordered variable or over time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.typing import Float64Array
from localexpert._validation import (
    check_ax,
    check_integer,
    check_level,
    check_list,
    check_same_length,
    check_vector,
)
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.plots.canvas import (
    check_dist,
    check_outcomes,
    draw_dots,
    format_percent,
    ink_of,
    name_of,
    name_target,
    new_axes,
    put_legend_above,
    shades,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# From more different values of x than this on, neighbours are joined.
_MOST_VALUES = 2000
_N_GROUPS = 500
# Of other numbers than a series: so few values are categories, and steps between
# neighbours above this share of those of a shuffled x are noise.
_FEW_VALUES, _NOISE = 12, 0.1
_LEAST_GROUPS, _MOST_GROUPS = 5, 50
# How much of the colour the widest and the narrowest band have.
_FAINT, _STRONG = 0.2, 0.55


def plot_fan(
    dist: PredictiveDistribution,
    x: ArrayLike,
    *,
    coverages: Sequence[float] = (0.5, 0.8, 0.95),
    y: ArrayLike | None = None,
    n_groups: int | None = None,
    target_name: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw medians and central intervals over a variable or over time.

    Rows are put in the order of x. Of rows with the same x, and of those joined to a
    group, the means of their quantiles are drawn at their mean x; the outer groups
    reach to the ends of x.

    Parameters
    ----------
    dist : PredictiveDistribution
        Of n rows.
    x : array-like of shape (n,)
        Numbers, or dates of any kind that NumPy, pandas or the standard library
        know; with a time zone they are drawn in UTC.
    coverages : sequence of float
        Probabilities of the intervals, in (0, 1).
    y : array-like of shape (n,), optional
        Outcomes, drawn as dots; of more than 3000 a sample, always the same.
    n_groups : int, optional
        Join neighbouring rows to this many groups of about equal size: to see how
        forecasts change with a variable among others. At least as many as there are
        values of x: each by itself. Default: see Notes.
    target_name : str, optional
        What the target is called on its axis, with its unit; default the name of `y`
        if it has one.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    Notes
    -----
    By default each value of x is drawn by itself as long as that is a curve. Times,
    and numbers evenly spaced with a row each, are a series: every value by itself up
    to 2000 of them, 500 groups beyond. With other numbers forecasts depend on more
    than x as a rule, and neighbours differ. Their quantiles Q are joined to about
    :math:`\sqrt n` groups, from 5 to 50, if the mean squared step from one value of x
    to the next is more than a tenth of that of a shuffled x:

    .. math:: \sum_j (Q_{j+1} - Q_j)^2 > 0.1 \cdot 2 \sum_j (Q_j - \bar Q)^2.

    The name of the axis then says how many groups there are.

    References
    ----------
    von Neumann (1941), Distribution of the ratio of the mean square successive
    difference to the variance.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.distribution.predictive import PredictiveDistribution
    >>> from localexpert.plots.fan import plot_fan
    >>> rows = [[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
    >>> days = np.arange("2024-01-01", "2024-01-04", dtype="datetime64[D]")
    >>> ax = plot_fan(dist, days, coverages=[0.5, 0.9])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['median', '50%', '90%']
    """
    check_ax(ax)
    check_dist(dist)
    listed = check_list(coverages, "coverages", "levels")
    shares = sorted(check_level(share, "coverages") for share in listed)
    if not shares:
        msg = "`coverages` must hold at least one value, got none."
        raise ValueError(msg)
    values = _check_positions(x, len(dist))
    outcomes = None if y is None else check_outcomes(y, dist)
    tails = 0.5 * (1.0 - np.array(shares))
    quantiles = dist.quantiles(np.concatenate([tails, [0.5], 1.0 - tails]))
    order, starts = _neighbours(values, quantiles, n_groups)
    size = np.diff(starts, append=len(values))
    bands = np.add.reduceat(quantiles[order], starts, axis=0) / size[:, None]
    at = _mean_positions(values[order], starts, size)
    joined = len(starts) < len(np.unique(values))
    if joined:
        at, bands = _reach_ends(at, bands, values[order[[0, -1]]])
    ax = new_axes() if ax is None else ax
    k = len(shares)
    # The narrowest first, so that a legend can tell them.
    tones = shades(ax, "C0", np.linspace(_STRONG, _FAINT, k))
    ax.plot(at, bands[:, k], color="C0", lw=1.5, zorder=3, label="median")
    for j, (share, color) in enumerate(zip(shares, tones, strict=True)):
        low, high = bands[:, j], bands[:, k + 1 + j]
        # Narrow bands lie on wide ones; below 2 are no lines.
        layer = 1.5 - 0.4 * j / k
        label = format_percent(share)
        ax.fill_between(at, low, high, color=color, lw=0, zorder=layer, label=label)
    if outcomes is not None:
        looks: dict[str, Any] = {"zorder": 4, "label": "outcome"}
        draw_dots(ax, values, outcomes, ink_of(ax), **looks)
    _dress(ax, values)
    name = name_of(x, "x")
    told = f"{name} (means of {len(starts)} groups)" if joined else name
    ax.set(xlabel=told, ylabel=name_target(target_name, y))
    return ax


def _check_positions(x: ArrayLike, n: int) -> NDArray[Any]:
    """Return n numbers or times, at least two of them different."""
    array = np.asarray(x)
    if array.dtype == object and array.size and isinstance(array.flat[0], date):
        array = np.array([_naive(time) for time in array.flat], "datetime64[us]")
    if array.dtype.kind == "M":
        if np.isnat(array).any():
            place = int(np.argmax(np.isnat(array)))
            msg = f"`x` must not be missing, got NaT at position {place}."
            raise ValueError(msg)
        values = array.astype("datetime64[us]").ravel()
    else:
        values = check_vector(array, "x")
    check_same_length(n, "`dist`", len(values), "x")
    if len(np.unique(values)) < 2:
        msg = f"`x` must hold at least two different values, got {values[0]} only."
        raise ValueError(msg)
    return values


def _naive(time: Any) -> Any:
    """Return a time without its zone, in UTC."""
    zoned = isinstance(time, datetime) and time.tzinfo is not None
    return time.astimezone(UTC).replace(tzinfo=None) if zoned else time


def _neighbours(
    values: NDArray[Any], quantiles: Float64Array, n_groups: int | None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the order of x, and where in it groups of neighbours start.

    Rows of one value are never parted.
    """
    distinct, place, count = np.unique(values, return_inverse=True, return_counts=True)
    if n_groups is None:
        sums = np.zeros((len(distinct), quantiles.shape[1]))
        np.add.at(sums, place, quantiles)
        n_groups = _choose_groups(distinct, count, sums / count[:, None])
    else:
        n_groups = check_integer(n_groups, "n_groups", 2)
    group = np.arange(len(distinct))
    if n_groups < len(distinct):
        middle = np.cumsum(count) - 0.5 * count
        group = np.floor(middle / len(values) * n_groups).astype(np.intp)
    order = np.argsort(values, kind="stable")
    of_row = group[place[order]]
    starts = np.flatnonzero(np.diff(of_row, prepend=of_row[0] - 1))
    return order, starts


def _choose_groups(
    distinct: NDArray[Any], count: NDArray[np.intp], quantiles: Float64Array
) -> int:
    """Return how many groups values of x need, given the mean quantiles of each."""
    k = len(distinct)
    most = _N_GROUPS if k > _MOST_VALUES else k
    steps = np.diff(distinct).astype(np.float64)
    even = bool(np.ptp(steps) <= 1e-6 * steps.max()) and bool((count == 1).all())
    if distinct.dtype.kind == "M" or even or k <= _FEW_VALUES:
        return most
    step = (np.diff(quantiles, axis=0) ** 2).sum()
    spread = ((quantiles - quantiles.mean(axis=0)) ** 2).sum()
    # Zeros too: constant forecasts are a curve.
    if step <= _NOISE * 2.0 * spread:
        return most
    few = round(float(np.sqrt(count.sum())))
    return min(max(few, _LEAST_GROUPS), _MOST_GROUPS)


def _mean_positions(
    values: NDArray[Any], starts: NDArray[np.intp], size: NDArray[np.intp]
) -> NDArray[Any]:
    """Return the mean of the sorted values of each group."""
    offset = np.asarray(values - values[0]).astype(np.float64)
    mean = np.add.reduceat(offset, starts) / size
    if values.dtype.kind == "M":
        return np.asarray(values[0] + np.rint(mean).astype("timedelta64[us]"))
    return np.where(size == 1, values[starts], values[0] + mean)


def _reach_ends(at: NDArray[Any], bands: Float64Array, ends: NDArray[Any]) -> Any:
    """Return both continued, level, to the ends of x, where the outer groups end."""
    outer = np.concatenate([ends[:1], at, ends[-1:]])
    return outer, np.concatenate([bands[:1], bands, bands[-1:]])


def _dress(ax: Axes, values: NDArray[Any]) -> None:
    """Write dates no longer than they must be, and add the legend."""
    if values.dtype.kind == "M":
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator()  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_locator(locator)
        short = ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_formatter(short)
    ax.margins(x=0.01)
    put_legend_above(ax)
