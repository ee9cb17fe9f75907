"""Pictures of the calibration of whole forecasts: PIT values and quantiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from calibration.typing import Float64Array
from localexpert._validation import (
    check_ax,
    check_choice,
    check_flag,
    check_increasing,
    check_integer,
    check_level,
    check_vector,
)
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.plots.canvas import (
    GREY,
    check_outcomes,
    format_percent,
    ink_of,
    new_axes,
    put_legend_above,
    shades,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# How much of their colour bars and bands have.
_BARS, _BAND = 0.7, 0.25
_LEVELS = np.linspace(0.05, 0.95, 19)


def plot_pit(
    y: ArrayLike,
    dist: PredictiveDistribution,
    *,
    bins: int = 20,
    coverage: float = 0.95,
    band: Literal["simultaneous", "pointwise"] = "simultaneous",
    random_state: int | np.random.Generator | None = 0,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw the histogram of PIT values, flat for a calibrated forecast.

    A hump says that forecasts are too wide, a trough that they are too narrow, a
    slope that they are too low (rising) or too high (falling).

    Parameters
    ----------
    y : array-like of shape (n,)
        Outcomes.
    dist : PredictiveDistribution
        Of n rows.
    bins : int
        Number of bins of equal width.
    coverage : float
        Probability of the band, in (0, 1).
    band : {"simultaneous", "pointwise"}
        Whether a calibrated forecast keeps all bars in the band with at least this
        probability, or each of them.
    random_state : int or Generator, optional
        Of the draws where an outcome has probability of its own; None takes the
        middle of the jump instead, which is not uniform even for a true forecast.
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
    quantile :math:`1 - a/2`; pointwise a is one minus the coverage, simultaneously
    that over B (Bonferroni).

    References
    ----------
    Gneiting, Balabdaoui & Raftery (2007), Probabilistic forecasts, calibration and
    sharpness. Czado, Gneiting & Held (2009), Predictive model assessment for count
    data.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.distribution.predictive import PredictiveDistribution
    >>> from localexpert.plots.calibration import plot_pit
    >>> rows = np.tile([0.3, 0.7], (40, 1))
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
    >>> ax = plot_pit(np.repeat([0.0, 1.0], [12, 28]), dist)
    >>> ax.get_xlabel()
    'PIT value'
    """
    check_ax(ax)
    outcomes = check_outcomes(y, dist)
    bins = check_integer(bins, "bins", 2)
    coverage = check_level(coverage, "coverage")
    check_choice(band, "band", ("simultaneous", "pointwise"))
    n = len(outcomes)
    edges = np.linspace(0.0, 1.0, bins + 1)
    counts, _ = np.histogram(dist.pit(outcomes, random_state), edges)
    # Bonferroni: B bars are all inside with the coverage if each misses B times less.
    tail = 0.5 * (1.0 - coverage) / (bins if band == "simultaneous" else 1)
    low, high = (binom.ppf(q, n, 1.0 / bins) * bins / n for q in (tail, 1.0 - tail))
    ax = new_axes() if ax is None else ax
    height = counts * bins / n
    (tone,) = shades(ax, "C0", [_BARS])
    looks: dict[str, Any] = {"color": tone, "ec": ax.get_facecolor(), "lw": 0.6}
    ax.bar(edges[:-1], height, width=1.0 / bins, align="edge", **looks)
    # Behind the bars, which keep one tone; its edges go over them.
    label = f"{format_percent(coverage)} {band} band"
    ax.axhspan(low, high, color=GREY, alpha=_BAND, lw=0, zorder=0.5, label=label)
    ax.hlines([low, high], 0.0, 1.0, color=ink_of(ax), lw=0.9, zorder=2.5)
    looks = {"color": ink_of(ax), "ls": "--", "lw": 1, "zorder": 2.6}
    ax.axhline(1.0, label="calibrated", **looks)
    top = 1.06 * max(float(high), float(height.max()))
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, top))
    ax.set(xlabel="PIT value", ylabel="Relative frequency")
    put_legend_above(ax)
    return ax


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
    """Draw how many outcomes lie below quantiles against how many should.

    Parameters
    ----------
    y : array-like of shape (n,)
        Outcomes.
    dist : PredictiveDistribution
        Of n rows.
    levels : array-like of shape (q,), optional
        Increasing levels of the quantiles in (0, 1); default .05, .10, ..., .95.
    coverage : float
        Probability of the band at each level, in (0, 1).
    difference : bool
        Draw the difference of both shares, in which small departures are seen.
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
    which is the same where the forecast has no jump; an outcome at a jump counts with
    the probability that makes true forecasts calibrated. The band holds the share at
    each level by itself with the given probability if the forecast is calibrated and
    outcomes are independent (quantiles of the binomial law): consistency, pointwise.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.distribution.predictive import PredictiveDistribution
    >>> from localexpert.plots.calibration import plot_quantile_reliability
    >>> rows = np.tile([0.3, 0.7], (40, 1))
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
    >>> y = np.repeat([0.0, 1.0], [12, 28])
    >>> plot_quantile_reliability(y, dist).get_xlabel()
    'Level of the quantile'
    """
    check_ax(ax)
    check_flag(difference, "difference")
    outcomes = check_outcomes(y, dist)
    coverage = check_level(coverage, "coverage")
    nominal = _LEVELS if levels is None else _check_levels(levels)
    n = len(outcomes)
    pit = np.sort(dist.pit(outcomes, random_state))
    # y <= Q(a) is PIT <= a, and a PIT drawn within a jump is uniform if y is of F.
    share = np.searchsorted(pit, nominal, "right") / n
    ends = np.concatenate([[0.0], nominal, [1.0]])
    tail = 0.5 * (1.0 - coverage)
    low, high = (binom.ppf(q, n, ends) / n for q in (tail, 1.0 - tail))
    if ax is None:
        ax = new_axes() if difference else new_axes((4.6, 4.6))
    # With nothing to subtract both curves are what they are.
    from_share, from_ends = (nominal, ends) if difference else (0.0, 0.0)
    label = f"{format_percent(coverage)} consistency band"
    looks: dict[str, Any] = {"color": GREY, "alpha": 0.25, "lw": 0, "label": label}
    ax.fill_between(ends, low - from_ends, high - from_ends, **looks)
    ax.plot(ends, ends - from_ends, "--", color=GREY, lw=1, label="calibrated")
    line: dict[str, Any] = {"ms": 4, "lw": 1.4, "label": "forecast"}
    ax.plot(nominal, share - from_share, "o-", color="C0", **line)
    ax.set(xlim=(-0.01, 1.01), xlabel="Level of the quantile")
    if difference:
        ax.set_ylabel("Share of outcomes below, less the level")
    else:
        ax.set(ylabel="Share of outcomes below it", ylim=(-0.01, 1.01), aspect="equal")
    put_legend_above(ax)
    return ax


def _check_levels(levels: ArrayLike) -> Float64Array:
    """Return increasing levels inside (0, 1)."""
    vector = check_vector(np.atleast_1d(np.asarray(levels)), "levels")
    check_increasing(vector, "levels")
    for end in (float(vector[0]), float(vector[-1])):
        check_level(end, "levels")
    return vector
