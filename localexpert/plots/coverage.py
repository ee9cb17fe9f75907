"""Pictures of the coverage of intervals in groups of rows."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from calibration.typing import Float64Array
from localexpert._validation import (
    check_ax,
    check_integer,
    check_level,
    check_same_length,
    plain_label,
)
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.plots.canvas import (
    GREY,
    LONGEST_TICK,
    SIZE,
    check_outcomes,
    format_numbers,
    format_percent,
    name_of,
    new_axes,
    put_legend_above,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Numbers of more different values than this are put into bins.
_MOST_NUMBERS = 12
_MOST_GROUPS = 60


def plot_coverage(
    y: ArrayLike,
    dist: PredictiveDistribution,
    groups: ArrayLike,
    *,
    coverage: float = 0.9,
    level: float = 0.95,
    n_bins: int = 5,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw the share of outcomes that the central interval covers, group by group.

    Groups of names are sorted by their coverage, least at the bottom; groups of
    numbers by the numbers. The label of a group says how many rows it has.

    Parameters
    ----------
    y : array-like of shape (n,)
        Outcomes.
    dist : PredictiveDistribution
        Of n rows.
    groups : array-like of shape (n,)
        Names of groups, or numbers: up to 12 different ones are a group each, more
        are put into bins of about equal frequency. At most 60 groups; missing numbers
        are one of them.
    coverage : float
        Nominal coverage of the interval, in (0, 1).
    level : float
        Confidence of the bars, in (0, 1).
    n_bins : int
        Number of bins of numeric groups.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    Notes
    -----
    With m rows in a group, a share p of them covered and z the normal quantile of the
    level, bars are Wilson's intervals

    .. math:: \frac{p + z^2 / 2m \pm z \sqrt{p (1 - p) / m + z^2 / 4m^2}}{1 + z^2 / m}.

    A value with probability of its own is covered by the share of it that lies within
    the interval's levels (`PredictiveDistribution.covered`), so that forecasts of few
    values reach the nominal coverage, too; the bars are then wider than need be.

    References
    ----------
    Wilson (1927), Probable inference, the law of succession, and statistical
    inference.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.distribution.predictive import PredictiveDistribution
    >>> from localexpert.plots.coverage import plot_coverage
    >>> rows = np.tile([0.5, 0.5], (4, 1))
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
    >>> y = [0.0, 1.0, 0.0, 1.0]
    >>> ax = plot_coverage(y, dist, ["a", "a", "a", "b"])
    >>> sorted(label.get_text() for label in ax.get_yticklabels())
    ['a (3)', 'b (1)']
    """
    check_ax(ax)
    outcomes = check_outcomes(y, dist)
    coverage = check_level(coverage, "coverage")
    z = float(ndtri(0.5 + 0.5 * check_level(level, "level")))
    bins = check_integer(n_bins, "n_bins", 1)
    names, group, ordered = _read_groups(groups, len(outcomes), bins)
    size = np.bincount(group)
    share = np.bincount(group, dist.covered(outcomes, coverage)) / size
    order = np.arange(len(size)) if ordered else np.argsort(share, kind="stable")
    ends = _wilson(share, size, z)
    if ax is None:
        ax = new_axes((SIZE[0], max(2.2, min(1.2 + 0.3 * len(size), 14.0))))
    place = np.arange(len(size))
    ax.axvline(coverage, color=GREY, ls="--", lw=1, label="nominal", zorder=1)
    # Not another interval: one is what the picture is about.
    bars = f"{format_percent(level)} confidence"
    ax.hlines(place, ends[0, order], ends[1, order], color="C0", lw=1.6, label=bars)
    ax.plot(share[order], place, "o", color="C0", ms=5, label="covered")
    ax.set_yticks(place, [f"{names[g]} ({size[g]})" for g in order])
    name = f"Coverage of the {format_percent(coverage)} interval"
    ax.set(ylim=(-0.6, len(size) - 0.4), xlabel=name, ylabel=name_of(groups))
    put_legend_above(ax)
    return ax


def _read_groups(
    groups: ArrayLike, n: int, n_bins: int
) -> tuple[list[str], NDArray[np.intp], bool]:
    """Return names of groups, the group of each row, and if their order is given."""
    array = np.asarray(groups)
    if array.ndim != 1:
        msg = f"`groups` must have shape (n,), got shape {array.shape}."
        raise ValueError(msg)
    check_same_length(n, "`dist`", len(array), "groups")
    numeric = array.dtype.kind in "iuf"
    if numeric:
        names, group = _group_numbers(array.astype(np.float64), n_bins)
    else:
        found, group = np.unique(array.astype(str), return_inverse=True)
        names = [plain_label(name, LONGEST_TICK) for name in found]
    if len(names) > _MOST_GROUPS:
        msg = f"`groups` must hold at most {_MOST_GROUPS} groups, got {len(names)}."
        raise ValueError(msg)
    return names, group, numeric


def _group_numbers(
    values: Float64Array, n_bins: int
) -> tuple[list[str], NDArray[np.intp]]:
    """Return names and groups of numbers: each by itself, or bins of them.

    Bins lie between quantiles and are closed on the left. Gaps are a group.
    """
    missing = np.isnan(values)
    distinct = np.unique(values[~missing])
    if len(distinct) <= _MOST_NUMBERS:
        names = format_numbers(distinct)
        group = np.searchsorted(distinct, values)
    else:
        levels = np.linspace(0.0, 1.0, n_bins + 1)
        edges = np.unique(np.quantile(values[~missing], levels))
        ends = format_numbers(edges, 3)
        names = [f"[{a}, {b})" for a, b in pairwise(ends)]
        names[-1] = names[-1][:-1] + "]"
        group = np.searchsorted(edges[1:-1], values, "right")
    group[missing] = len(names)
    met, group = np.unique(group, return_inverse=True)
    return [[*names, "missing"][g] for g in met], group


def _wilson(share: Float64Array, size: NDArray[np.intp], z: float) -> Float64Array:
    """Return Wilson's intervals of shares (k,) of `size` rows each, shape (2, k)."""
    centre = share + 0.5 * z**2 / size
    half = z * np.sqrt(share * (1.0 - share) / size + 0.25 * (z / size) ** 2)
    return np.stack([centre - half, centre + half]) / (1.0 + z**2 / size)
