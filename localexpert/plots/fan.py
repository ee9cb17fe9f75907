"""Fan charts: forecasts over an ordered variable or over time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.plots import canvas
from calibration.typing import Float64Array
from localexpert._validation import (
    check_integer,
    check_level,
    check_list,
    check_same_length,
    check_vector,
    refuse,
)
from localexpert.distribution.predictive import PredictiveDistribution, check_outcomes
from localexpert.plots import inputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# From more different values of x than this on, neighbours are joined.
_MOST_VALUES, _N_GROUPS = 2000, 500
# Of other numbers than a series: so few values are categories, and steps between
# neighbours above this share of those of a shuffled x are noise.
_FEW_VALUES, _NOISE = 12, 0.1
_LEAST_GROUPS, _MOST_GROUPS = 5, 50
# How much of the colour the widest and the narrowest band have.
_FAINT, _STRONG = 0.2, 0.55


@canvas.picture
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

    Rows are put in the order of x. Rows with the same x, or joined to a group, are
    drawn at their mean x, with the means of their quantiles. The outer groups reach to
    the ends of x.

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
        Join neighbouring rows to this many groups of about equal size. This shows how
        forecasts change with one variable among others. If it is at least the number of
        values of x, nothing is joined. Default: see Notes.
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
    By default each value of x is drawn by itself if this gives a curve. Times are a
    series, and so are evenly spaced numbers with one row each: up to 2000 values are
    drawn by themselves, more are joined to 500 groups. With other numbers forecasts
    usually depend on more than x, and neighbours differ. Their quantiles Q are joined
    to about :math:`\sqrt n` groups, from 5 to 50, if the mean squared step from one
    value of x to the next is more than a tenth of that of a shuffled x:

    .. math:: \sum_j (Q_{j+1} - Q_j)^2 > 0.1 \cdot 2 \sum_j (Q_j - \bar Q)^2.

    The name of the axis then says how many groups there are.

    References
    ----------
    von Neumann (1941), Distribution of the ratio of the mean square successive
    difference to the variance.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.plots import plot_fan
    >>> rows = [[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
    >>> days = np.arange("2024-01-01", "2024-01-04", dtype="datetime64[D]")
    >>> ax = plot_fan(dist, days, coverages=[0.5, 0.9])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['median', '50%', '90%']
    """
    inputs.check_dist(dist)
    listed = check_list(coverages, "coverages", "levels")
    shares = sorted(check_level(share, "coverages") for share in listed)
    if not shares:
        refuse("coverages", "hold at least one value", "none")
    called = inputs.name_target(target_name, y)
    values, dated = _read_positions(x, len(dist))
    outcomes = None if y is None else check_outcomes(y, dist)
    if n_groups is not None:
        n_groups = check_integer(n_groups, "n_groups", 2)
    tails = 0.5 * (1.0 - np.array(shares))
    quantiles = dist.quantiles(np.concatenate([tails, [0.5], 1.0 - tails]))
    at, bands, group_note = _join(values, quantiles, n_groups, dated)
    ax = canvas.open_axes(ax)
    k = len(shares)
    # The narrowest first, so that a legend can tell them.
    tones = canvas.shades(ax, "C0", np.linspace(_STRONG, _FAINT, k))
    ax.plot(at, bands[:, k], color="C0", lw=1.5, zorder=3, label="median")
    for j, (share, color) in enumerate(zip(shares, tones, strict=True)):
        # Narrow bands lie on wide ones; below 2 are no lines.
        looks: dict[str, Any] = {"color": color, "lw": 0, "zorder": 1.5 - 0.4 * j / k}
        label = inputs.format_percent(share)
        ax.fill_between(at, bands[:, j], bands[:, k + 1 + j], label=label, **looks)
    if outcomes is not None:
        canvas.draw_dots(
            ax, values, outcomes, canvas.ink_of(ax), zorder=4, label="outcome"
        )
    if dated:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        ax.xaxis_date()
        locator = AutoDateLocator()  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_locator(locator)
        # Dates are no longer than they must be.
        short = ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_formatter(short)
    ax.margins(x=0.01)
    ax.set(xlabel=f"{inputs.name_of(x, 'x')}{group_note}", ylabel=called)
    return ax


def _read_positions(x: Any, n: int) -> tuple[Float64Array, bool]:
    """Return n numbers, at least two of them different, and if they are times.

    Times are days since 1970 in UTC, which matplotlib draws.
    """
    array = np.asarray(x).ravel()
    held = array.dtype == object and array.size > 0 and isinstance(array[0], date)
    dated = array.dtype.kind == "M" or held
    if dated:
        from matplotlib.dates import date2num

        array = date2num(array)  # type: ignore[no-untyped-call]
    values = check_vector(array, "x")
    check_same_length(n, "`dist`", len(values), "x")
    if len(np.unique(values)) < 2:
        refuse("x", "hold at least two different values", f"{values[0]:g} only")
    return values, dated


def _join(
    values: Float64Array, quantiles: Float64Array, n_groups: int | None, dated: bool
) -> tuple[Float64Array, Float64Array, str]:
    """Return places and mean quantiles of groups of neighbours, and how many there are.

    Rows of one value are never parted.
    """
    distinct, place, count = np.unique(values, return_inverse=True, return_counts=True)
    sums = np.zeros((len(distinct), quantiles.shape[1]))
    np.add.at(sums, place, quantiles)
    wanted = n_groups or _choose_groups(distinct, count, sums / count[:, None], dated)
    if wanted >= len(distinct):
        return distinct, sums / count[:, None], ""
    middle = np.cumsum(count) - 0.5 * count
    group = np.floor(middle / len(values) * wanted)
    starts = np.flatnonzero(np.diff(group, prepend=-1.0))
    size = np.add.reduceat(count, starts)
    # From the least value: dates are large numbers.
    offset = np.add.reduceat(count * (distinct - distinct[0]), starts) / size
    bands = np.add.reduceat(sums, starts, axis=0) / size[:, None]
    # Continued, level, to the ends of x, where the outer groups end.
    at = np.concatenate([distinct[:1], distinct[0] + offset, distinct[-1:]])
    bands = np.concatenate([bands[:1], bands, bands[-1:]])
    return at, bands, f" (means of {len(starts)} groups)"


def _choose_groups(
    distinct: Float64Array,
    count: NDArray[np.intp],
    quantiles: Float64Array,
    dated: bool,
) -> int:
    """Return how many groups values of x need, given the mean quantiles of each."""
    k = len(distinct)
    most = _N_GROUPS if k > _MOST_VALUES else k
    steps = np.diff(distinct)
    even = bool(np.ptp(steps) <= 1e-6 * steps.max()) and bool((count == 1).all())
    step = (np.diff(quantiles, axis=0) ** 2).sum()
    spread = ((quantiles - quantiles.mean(axis=0)) ** 2).sum()
    # Zeros too: constant forecasts are a curve.
    smooth = step <= _NOISE * 2.0 * spread
    if dated or even or smooth or k <= _FEW_VALUES:
        return most
    few = round(float(np.sqrt(count.sum())))
    return min(max(few, _LEAST_GROUPS), _MOST_GROUPS)
