"""Are forecasts right and sharp: PIT values, quantiles, coverage, errors, lives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from scipy.stats import binom

from calibration._validation import (
    check_flag,
    check_integer,
    check_level,
    check_same_length,
    plain_label,
    refuse,
)
from calibration.plots import canvas
from calibration.typing import Float64Array
from localexpert._validation import check_increasing, check_levels, format_number
from localexpert.distribution.predictive import PredictiveDistribution, check_outcomes
from localexpert.partial.outcomes import product_limit, read_right
from localexpert.partial.scores import covered_shares, pit_values
from localexpert.plots import inputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEVELS = np.linspace(0.05, 0.95, 19)
# Numbers of more different values than this are put into bins.
_MOST_NUMBERS = 12
_MOST_GROUPS = 60
# Rows that a mean of errors needs before its interval means something.
_LEAST_ROWS = 10
# Rows whose spreads are worked out; more of them make no better picture.
_MOST_ROWS = 20_000
# At least these shares of errors and of spreads lie inside the picture.
_SEEN_ERRORS, _SEEN_WIDTHS = 0.99, 0.995


@canvas.picture
def plot_pit(
    y: ArrayLike,
    dist: PredictiveDistribution,
    *,
    bins: int = 20,
    coverage: float = 0.95,
    random_state: int | np.random.Generator | None = 0,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw the histogram of PIT values, flat for a calibrated forecast.

    A hump shows that forecasts are too wide, a trough that they are too narrow. Rising
    bars show that they are too low, falling bars that they are too high.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, 2)
        Outcomes; of two columns their lower and upper ends.
    dist : PredictiveDistribution
        Of n rows.
    bins : int
        Number of bins of equal width.
    coverage : float
        Least probability with which a calibrated forecast keeps all bars in the
        band, in (0, 1).
    random_state : int or Generator, optional
        Seed or source of the draws for outcomes that have probability of their own, or
        two ends.
        None takes the middle of the jump, which is not uniform even for a true
        forecast.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    Notes
    -----
    The number of PIT values in one of B bins is binomial with n trials of probability
    1/B if outcomes are independent. The band goes from quantile :math:`a/2` to
    quantile :math:`1 - a/2` with a one minus the coverage, over B (Bonferroni).

    References
    ----------
    Gneiting, Balabdaoui & Raftery (2007), Probabilistic forecasts, calibration and
    sharpness. Czado, Gneiting & Held (2009), Predictive model assessment for count
    data.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert import plot_pit
    >>> rows = np.tile([0.3, 0.7], (40, 1))
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
    >>> ax = plot_pit(np.repeat([0.0, 1.0], [12, 28]), dist)
    >>> ax.get_xlabel()
    'PIT value'
    """
    pit = pit_values(y, dist, random_state, "y")
    bins = check_integer(bins, "bins", 2)
    coverage = check_level(coverage, "coverage")
    n = len(pit)
    counts, edges = np.histogram(pit, np.linspace(0.0, 1.0, bins + 1))
    height = counts * bins / n
    # Bonferroni: B bars are all inside with the coverage if each misses B times less.
    tail = 0.5 * (1.0 - coverage) / bins
    low, high = (binom.ppf(q, n, 1.0 / bins) * bins / n for q in (tail, 1.0 - tail))
    ax = canvas.open_axes(ax)
    (tone,) = canvas.shades(ax, "C0", [0.7])
    looks: dict[str, Any] = {"color": tone, "ec": ax.get_facecolor(), "lw": 0.6}
    ax.bar(edges[:-1], height, width=1.0 / bins, align="edge", **looks)
    # Behind the bars, which keep one tone; its edges go over them.
    label = f"{inputs.format_percent(coverage)} simultaneous band"
    ax.axhspan(low, high, zorder=0.5, label=label, **canvas.BAND)
    ax.hlines([low, high], 0.0, 1.0, color=canvas.ink_of(ax), lw=0.9, zorder=2.5)
    looks = canvas.DASHED | {"color": canvas.ink_of(ax), "zorder": 2.6}
    ax.axhline(1.0, label="calibrated", **looks)
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.06 * max(high, height.max())))
    ax.set(xlabel="PIT value", ylabel="Relative frequency")
    return ax


@canvas.picture
def plot_quantile_reliability(
    y: ArrayLike,
    dist: PredictiveDistribution,
    *,
    levels: ArrayLike | None = None,
    coverage: float = 0.9,
    difference: bool = False,
    random_state: int | np.random.Generator | None = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw the share of outcomes below each quantile against its level.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, 2)
        Outcomes; of two columns their lower and upper ends.
    dist : PredictiveDistribution
        Of n rows.
    levels : array-like of shape (q,), optional
        Increasing levels of the quantiles in (0, 1); default .05, .10, ..., .95.
    coverage : float
        Probability of the band at each level, in (0, 1).
    difference : bool
        Draw the difference of both shares, which shows small departures.
    random_state : int or Generator, optional
        See `plot_pit`.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    Notes
    -----
    An outcome counts as below the quantile if its PIT value is at most the level,
    which is the same where the forecast has no jump. An outcome at a jump counts with
    the probability that makes true forecasts calibrated. If the forecast is calibrated
    and outcomes are independent, the band holds the share with the given probability
    (quantiles of the binomial law). This is true for each level by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert import plot_quantile_reliability
    >>> rows = np.tile([0.3, 0.7], (40, 1))
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
    >>> y = np.repeat([0.0, 1.0], [12, 28])
    >>> plot_quantile_reliability(y, dist).get_xlabel()
    'Level of the quantile'
    """
    check_flag(difference, "difference")
    pit = np.sort(pit_values(y, dist, random_state, "y"))
    coverage = check_level(coverage, "coverage")
    nominal = _LEVELS
    if levels is not None:
        nominal = check_levels(levels, "levels", inner=True)
        check_increasing(nominal, "levels")
    n = len(pit)
    # y <= Q(a) is PIT <= a, and a PIT drawn within a jump is uniform if y is of F.
    share = np.searchsorted(pit, nominal, "right") / n
    ends = np.concatenate([[0.0], nominal, [1.0]])
    tail = 0.5 * (1.0 - coverage)
    low, high = (binom.ppf(q, n, ends) / n for q in (tail, 1.0 - tail))
    ax = canvas.open_axes(ax, (6.5, 4.0) if difference else (4.6, 4.6))
    # Both curves stay as they are if nothing is subtracted.
    from_share, from_ends = (nominal, ends) if difference else (0.0, 0.0)
    label = f"{inputs.format_percent(coverage)} consistency band"
    low, high = low - from_ends, high - from_ends
    ax.fill_between(ends, low, high, label=label, **canvas.BAND)
    ax.plot(ends, ends - from_ends, label="calibrated", **canvas.DASHED)
    ax.plot(nominal, share - from_share, "o-", color="C0", ms=4, lw=1.4)
    ax.lines[-1].set_label("forecast")
    ax.set(xlim=(-0.01, 1.01), xlabel="Level of the quantile")
    if difference:
        ax.set_ylabel("Share of outcomes below, less the level")
    else:
        ax.set(ylabel="Share of outcomes below it", ylim=(-0.01, 1.01), aspect="equal")
    return ax


@canvas.picture
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
    y : array-like of shape (n,) or (n, 2)
        Outcomes; of two columns their lower and upper ends.
    dist : PredictiveDistribution
        Of n rows.
    groups : array-like of shape (n,)
        Names of groups, or numbers: up to 12 different ones are a group each, more
        are put into bins of about equal frequency; a number that fills a bin is one by
        itself. At most 60 groups; gaps are one of them.
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

    A value with probability of its own is covered by its share within the interval's
    levels (`PredictiveDistribution.covered`), and so is a target between two ends. So
    forecasts of few values reach the nominal coverage, too; their bars are then wider
    than necessary.

    References
    ----------
    Wilson (1927), Probable inference, the law of succession, and statistical
    inference.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert import plot_coverage
    >>> rows = np.tile([0.5, 0.5], (4, 1))
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
    >>> y = [0.0, 1.0, 0.0, 1.0]
    >>> ax = plot_coverage(y, dist, ["a", "a", "a", "b"])
    >>> sorted(label.get_text() for label in ax.get_yticklabels())
    ['a (3)', 'b (1)']
    """
    coverage = check_level(coverage, "coverage")
    covered = covered_shares(y, dist, coverage, "y")
    z = float(ndtri(0.5 + 0.5 * check_level(level, "level")))
    bins = check_integer(n_bins, "n_bins", 1)
    names, group, ordered = _read_groups(groups, len(covered), bins)
    size = np.bincount(group)
    share = np.bincount(group, covered) / size
    order = np.arange(len(size)) if ordered else np.argsort(share, kind="stable")
    centre = share + 0.5 * z**2 / size
    half = z * np.sqrt(share * (1.0 - share) / size + 0.25 * (z / size) ** 2)
    low, high = (end / (1.0 + z**2 / size) for end in (centre - half, centre + half))
    ax = canvas.open_axes(ax, (6.5, max(2.2, min(1.2 + 0.3 * len(size), 14.0))))
    place = np.arange(len(size))
    ax.axvline(coverage, label="nominal", zorder=1, **canvas.DASHED)
    # Not another interval: one is what the picture is about.
    bars = f"{inputs.format_percent(level)} confidence"
    ax.hlines(place, low[order], high[order], color="C0", lw=1.6, label=bars)
    ax.plot(share[order], place, "o", color="C0", ms=5, label="covered")
    ax.set_yticks(place, [f"{names[g]} ({size[g]})" for g in order])
    name = f"Coverage of the {inputs.format_percent(coverage)} interval"
    called = inputs.name_of(groups)
    ax.set(ylim=(-0.6, len(size) - 0.4), xlabel=name, ylabel=called)
    return ax


def _read_groups(
    groups: ArrayLike, n: int, n_bins: int
) -> tuple[list[str], NDArray[np.intp], bool]:
    """Return names of groups, the group of each row, and if their order is given.

    Bins of numbers are closed on the left. Gaps are a group.
    """
    values, found = inputs.label_rows(groups, n, "dist")
    missing = np.isnan(values)
    if found is None:
        how = _MOST_NUMBERS, n_bins, format_number, ("[{}, {})", "[{}, {}]")
        names, group = inputs.group_numbers(values, *how)
    else:
        names = [plain_label(name, inputs.LONGEST_TICK) for name in found]
        group = np.where(missing, 0.0, values).astype(np.intp)
    group[missing] = len(names)
    met, group = np.unique(group, return_inverse=True)
    if len(met) > _MOST_GROUPS:
        refuse("groups", f"hold at most {_MOST_GROUPS} groups", len(met))
    return [[*names, "missing"][g] for g in met], group, found is None


@canvas.picture
def plot_sharpness(
    y: ArrayLike,
    dist: PredictiveDistribution,
    *,
    n_bins: int = 10,
    level: float = 0.95,
    target_name: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw the errors of forecasts against their spreads.

    It draws the mean error in bins of equally many rows, from the sharpest forecasts to
    the widest, and the mean error that the forecasts expect.

    Parameters
    ----------
    y : array-like of shape (n,)
        Outcomes.
    dist : PredictiveDistribution
        Of n rows.
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
    An error is :math:`|y_i - m_i|` with the forecast's median :math:`m_i`. The errors
    of a calibrated forecast have the mean :math:`E|Y_i - m_i|`, whatever its shape. So
    its bars, a mean with a normal interval, lie on that line. Single errors are drawn
    faintly; if there are more than 3000, a sample is drawn. Very long tails would make
    the rest of the picture small, so they lie outside: triangles mark them at the
    edge, and the legend says how many they are and how far they go. It also says how
    many rows have an infinite spread: these are left out. If there are more than 20 000
    rows, a sample of so many is used. Samples are always the same.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert import plot_sharpness
    >>> rows = np.tile([0.3, 0.7], (40, 1))
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
    >>> y = np.repeat([0.0, 1.0], [12, 28])
    >>> plot_sharpness(y, dist).get_ylabel()
    'Absolute error of the median'
    """
    outcomes = check_outcomes(y, dist)
    n_bins = check_integer(n_bins, "n_bins", 1)
    z = float(ndtri(0.5 + 0.5 * check_level(level, "level")))
    called = inputs.name_target(target_name, y)
    rows = canvas.sample_rows(len(outcomes), _MOST_ROWS)
    outcomes, dist = outcomes[rows], dist[rows]
    width, median = dist.std(), dist.median()
    error, expected = np.abs(outcomes - median), np.add(*dist.partial_means(median))
    finite = np.isfinite(width) & np.isfinite(expected)
    if not finite.any():
        refuse("dist", "have a finite standard deviation in some row", "none")
    width, error, expected = width[finite], error[finite], expected[finite]
    group = _bin_rows(width, n_bins)
    size = np.bincount(group)
    at, mean, expected_error = (
        np.bincount(group, v) / size for v in (width, error, expected)
    )
    variance = np.bincount(group, (error - mean[group]) ** 2) / np.maximum(size - 1, 1)
    half = z * np.sqrt(variance / size)
    ax = canvas.open_axes(ax)
    left_out = f", {(~finite).sum()} of infinite spread left out"
    label = "each row" + left_out * (not finite.all())
    canvas.draw_dots(ax, width, error, canvas.GREY, label=label)
    label = "expected by the forecasts"
    ax.plot(at, expected_error, "x--", color="C1", lw=1.3, label=label)
    label = f"mean, {inputs.format_percent(level)} confidence"
    ax.errorbar(at, mean, half, fmt="o", ms=5, capsize=2, color="C0", label=label)
    tops = (mean + half).max(), expected_error.max()
    top = max(float(np.quantile(error, _SEEN_ERRORS)), *tops)
    _hide_tails(ax, width, error, at.max(), top)
    unit = "" if called == "y" else f"\n{called}"
    ax.set(xlabel=f"Standard deviation of the forecast{unit}")
    ax.set(ylabel=f"Absolute error of the median{unit}")
    return ax


def _bin_rows(width: Float64Array, n_bins: int) -> NDArray[np.intp]:
    """Return the bin of each row, numbered without gaps; equal rows share one."""
    bins = max(1, min(n_bins, len(width) // _LEAST_ROWS))
    edges = np.quantile(width, np.linspace(0.0, 1.0, bins + 1)[1:-1])
    group = np.searchsorted(edges, width, "right")
    return np.unique(group, return_inverse=True)[1]


def _hide_tails(
    ax: Axes, width: Float64Array, error: Float64Array, right: float, top: float
) -> None:
    """Leave the longest tails of both out of sight; mark and count what lies there."""
    low, right = width.min(), max(right, float(np.quantile(width, _SEEN_WIDTHS)))
    # Values that differ only by rounding are one value.
    alike = right - low <= 1e-9 * abs(right)
    margin = (0.5 * abs(right) or 1.0) if alike else 0.04 * (right - low)
    right, top = right + margin, 1.05 * top or 1.0
    ax.set(xlim=(low - margin, right), ylim=(-0.02 * top, top))
    beyond = (width > right) | (error > top)
    if beyond.any():
        label = f"{beyond.sum()} of {len(error)} outside, error up to "
        label += format_number(error[beyond].max(), 3)
        x, y = np.minimum(width[beyond], right), np.minimum(error[beyond], top)
        looks: dict[str, Any] = {"color": canvas.GREY, "alpha": 0.6, "clip_on": False}
        ax.plot(x, y, "^", ms=4, mew=0, label=label, **looks)


# Points of the forecast's curve, and how near two of them stand at a jump, as a share
# of the picture.
_N_POINTS, _BESIDE = 300, 1e-6


@canvas.picture
def plot_survival(
    y: ArrayLike,
    dist: PredictiveDistribution,
    *,
    coverage: float = 0.95,
    target_name: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw the mean survival function of forecasts beside Kaplan and Meier's steps.

    If forecasts are true, the curve runs along the steps. This says nothing of single
    rows: `d_calibration_test` and `plot_pit` do.

    Parameters
    ----------
    y : array-like of shape (n, 2) or structured array of shape (n,)
        Targets as `fit` takes them, known or right-censored.
    dist : PredictiveDistribution
        Of n rows.
    coverage : float
        Probability of the band around the steps, at each value by itself, in (0, 1).
    target_name : str, optional
        What the target is called on its axis, with its unit; default "y".
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    Notes
    -----
    With :math:`d_v` known targets at v, :math:`n_v` rows at risk and the normal
    quantile z of the coverage, the band goes from :math:`S^{1/c}` to :math:`S^c`,

    .. math:: c = \exp\Big(-\frac{z}{|\log S(t)|}
        \sqrt{\sum_{v \le t} \frac{d_v}{n_v (n_v - d_v)}}\Big).

    Greenwood's variance is that of :math:`\log(-\log S)` here, so the band stays
    between 0 and 1. Nothing is drawn beyond the greatest value.

    References
    ----------
    Greenwood (1926), The natural duration of cancer. Kalbfleisch & Prentice (2002), The
    statistical analysis of failure time data.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import PredictiveDistribution, censored
    >>> from localexpert import plot_survival
    >>> rows = np.tile([0.5, 0.25, 0.25], (4, 1))
    >>> dist = PredictiveDistribution.from_arrays(atoms=[1, 2, 3], masses=rows)
    >>> ax = plot_survival(censored([1, 1, 2, 3], event=[1, 1, 0, 1]), dist)
    >>> ax.get_ylabel()
    'Share beyond'
    """
    inputs.check_dist(dist)
    called = inputs.name_target(target_name)
    level = check_level(coverage, "coverage")
    time, event = read_right(y)
    check_same_length(len(dist), "`dist`", len(time), "y")
    values, survival = product_limit(time, event, np.ones(len(time)))
    low, high = _band(time, values, survival, float(ndtri(0.5 + 0.5 * level)))
    start = min(0.0, float(values[0]))
    # Steps need their height before the first value, and a jump of forecasts both.
    x = np.append(start, values)
    points = np.linspace(start, values[-1], _N_POINTS)
    jumps = dist.atoms[(dist.atoms >= start) & (dist.atoms <= values[-1])]
    before = jumps - _BESIDE * (values[-1] - start)
    points = np.sort(np.concatenate([points, before, jumps]))
    ax = canvas.open_axes(ax)
    label = f"{inputs.format_percent(level)} band"
    low, high, height = (np.append(1.0, part) for part in (low, high, survival))
    ax.fill_between(x, low, high, step="post", label=label, **canvas.BAND)
    ax.step(x, height, where="post", color=canvas.ink_of(ax), lw=1)
    ax.lines[-1].set_label("Kaplan-Meier")
    mean = 1.0 - dist.cdf_at(points).mean(axis=0)
    ax.plot(points, mean, color="C0", lw=1.6, label="mean forecast")
    ax.set(xlabel=called, ylabel="Share beyond", ylim=(0.0, 1.02))
    ax.set_xlim(start, values[-1] if values[-1] > start else start + 1.0)
    return ax


def _band(
    time: Float64Array, values: Float64Array, survival: Float64Array, z: float
) -> tuple[Float64Array, Float64Array]:
    """Return both ends of the band at values; 0 to S where all have died."""
    at_risk = len(time) - np.searchsorted(np.sort(time), values)
    left = survival / np.append(1.0, survival[:-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.cumsum((1.0 - left) / (at_risk * left))
        power = np.exp(-z * np.sqrt(variance) / -np.log(survival))
        low, high = survival ** (1.0 / power), survival**power
    inside = (survival > 0.0) & (survival < 1.0)
    return np.where(inside, low, np.floor(survival)), np.where(inside, high, survival)
