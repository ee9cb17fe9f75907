"""Pictures of forecasts: density and CDF of one, densities of several, fans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation import (
    check_choice,
    check_in_unit,
    check_integer,
    check_level,
    check_list,
    check_number,
    check_same_length,
    check_vector,
    refuse,
)
from calibration.plots import canvas
from calibration.typing import Float64Array
from localexpert._validation import check_array, check_row, format_numbers
from localexpert.distribution.predictive import PredictiveDistribution, check_outcomes
from localexpert.plots import inputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Points of a curve: evenly spaced, and as many at evenly spaced levels of the CDF,
# which are dense where a density is high.
_N_POINTS = 400
# Jumps of the CDF below this are rounding.
_LEAST_MASS = 1e-12
# Probability left out at either end of a picture.
_TAIL = 0.005
# How many times the width of the central 80 % a tail may stretch a picture.
_REACH = 3.0
_MARGIN = 0.05
_LARGEST = np.finfo(float).max
_SMOOTH, _SPIKE = "C0", "C1"
# Colours and styles of upright lines, in the order in which they are drawn; no colour
# is that of the text.
_LINES = {"mean": ("C0", "--"), "prediction": ("C3", "-."), "outcome": ("", "-")}
# Room above the highest point.
_HEADROOM = 1.06
# Densities are cut at these multiples of the greatest and the middle one of the central
# 90 %, in scores.
_MOST_PEAK, _MOST_STEEP, _CENTRAL = 1.2, 20.0, np.linspace(-1.645, 1.645, 201)[None]
# A row of a ridge reaches this far up into the rows above it, but its stems, which
# would be taken for those of the next row, do not.
_OVERLAP, _STEM = 1.6, 0.8
# Rows on one scale may be so many times as high as the lowest.
_MOST_RATIO = 5.0
# Rows drawn where none are named.
_MOST_UNASKED = 12
_LEAST_ROOM, _MOST_HEIGHT = 0.34, 14.0


@canvas.picture
def plot_forecast(
    dist: PredictiveDistribution,
    row: int = 0,
    *,
    what: Literal["both", "density", "cdf"] = "both",
    coverage: float = 0.8,
    interval: Literal["densest", "central"] = "densest",
    y: float | None = None,
    prediction: float | None = None,
    expert_points: ArrayLike | None = None,
    target_name: str | None = None,
    ax: Any = None,
) -> Any:
    r"""Draw one forecast: its density, its CDF, and where the outcome fell.

    The shaded part is the region of highest density, a union of intervals, or the
    central interval. The legend says which, and its probability. Values that have
    probability of their own are stems with a head, filled if they are in the region. If
    there is a density, too, stems have their own axis on the right.

    Parameters
    ----------
    dist : PredictiveDistribution
    row : int
        Which of its rows.
    what : {"both", "density", "cdf"}
        "both": the density above the CDF.
    coverage : float
        Probability of the shaded region, in (0, 1).
    interval : {"densest", "central"}
        What is shaded: the region of highest density, or the central interval, which
        leaves out equal tails.
    y : float, optional
        The outcome.
    prediction : float, optional
        A point forecast to mark beside the mean, such as that of a stacker.
    expert_points : array-like of shape (2, N), optional
        Thresholds in units of y, and the experts' probabilities P(Y <= threshold): a
        row of `LocalExpertRegressor.expert_points`. Points in sight are drawn on the
        CDF.
    target_name : str, optional
        What the target is called on its axis, with its unit; default "y".
    ax : matplotlib Axes, or two of them for "both", optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes, or for "both" an ndarray of two of them
        The axes that were drawn on.

    Notes
    -----
    The picture reaches over the central 99 % of the probability, or less far where
    the tails are longer than three times the central 80 %. A density that is much
    higher outside the central 90 % than inside is cut off.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert import plot_forecast
    >>> rows = [[0.2, 0.5, 0.3]]
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> density, cdf = plot_forecast(dist, y=1.0)
    >>> density.get_ylabel(), cdf.get_ylabel()
    ('Probability', '$P(Y \\leq y)$')
    """
    check_choice(what, "what", ("both", "density", "cdf"))
    check_choice(interval, "interval", ("densest", "central"))
    inputs.check_dist(dist)
    coverage = check_level(coverage, "coverage")
    points = np.empty((2, 0))
    if expert_points is not None:
        points = check_array(expert_points, "expert_points", (2, None))
        low, high = points[1].min(initial=0.0), points[1].max(initial=0.0)
        check_in_unit(low, high, "expert_points[1]")
    for name, value in (("prediction", prediction), ("y", y)):
        if value is not None:
            check_number(value, name, -_LARGEST, _LARGEST)
    shape = ForecastShape.of(dist, check_row(row, "row", len(dist)))
    called, n = inputs.name_target(target_name), 2 if what == "both" else 1
    panel = (5.8, 2.15) if n == 2 else (5.8, 3.1)
    panels = canvas.open_panels(ax, n, panel, columns=1, name="ax", sharex=True)
    marks = {"prediction": prediction, "outcome": y}
    low, high = shape.window(marks.values())
    x = shape.grid(low, high)
    if interval == "central":
        regions, best = shape.dist.interval(coverage), "interval"
    else:
        regions = shape.dist.hdi_regions(coverage)[0]
        best = "most probable" if shape.is_discrete else "highest density"
    label = f"{inputs.format_percent(coverage)} {best}"
    if what != "cdf":
        _draw_density(panels[0], shape, x, regions, label)
    if what != "density":
        # A CDF is flat outside the support, but it is drawn there too.
        whole = np.unique(np.concatenate([[low], x, [high]]))
        named = label if what == "cdf" else ""
        _draw_cdf(panels[-1], shape, whole, regions, named)
        points = points[:, (points[0] >= low) & (points[0] <= high)]
        if expert_points is not None:
            panels[-1].plot(*points, "o", color=_SPIKE, ms=4.5, label="experts")
    for panel in panels:
        panel.set_xlim(low, high)
        _draw_marks(panel, {"mean": float(shape.dist.mean()[0]), **marks})
    panels[-1].set_xlabel(called)
    return panels if what == "both" else panels[0]


@canvas.picture
def plot_forecasts(
    dist: PredictiveDistribution,
    rows: ArrayLike | None = None,
    *,
    labels: Sequence[Any] | None = None,
    y: ArrayLike | None = None,
    scale: Literal["auto", "common", "own"] = "auto",
    target_name: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the densities of several forecasts, each on a line of its own.

    Parameters
    ----------
    dist : PredictiveDistribution
        Of n rows.
    rows : array-like of k int, optional
        Rows to draw, the first on top; default all, or the first twelve.
    labels : sequence of length k, optional
        Names of the rows; default their numbers.
    y : array-like of shape (n,), optional
        Outcomes of all rows of the forecast; those of `rows` are marked.
    scale : {"auto", "common", "own"}
        Scale of heights. "common": one for all rows. "own": all rows are equally high,
        so widths compare but heights do not. "auto": one for all rows, except where the
        highest would be more than five times as high as the lowest. The axis says
        which.
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
    Values of positive probability are stems. If there are densities, a probability of 1
    is .8 of the distance between two rows. If not, the likeliest value has this height:
    that of all rows, or of each row on its own scale.

    To lay few densities over one another, ``ax.plot(x, dist[[0, 1]].pdf(x[:, None]))``.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert import plot_forecasts
    >>> rows = [[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
    >>> ax = plot_forecasts(dist, [0, 2], labels=["a", "b"])
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['a', 'b']
    """
    check_choice(scale, "scale", ("auto", "common", "own"))
    inputs.check_dist(dist)
    if rows is None:
        rows = np.arange(min(len(dist), _MOST_UNASKED))
    listed = check_list(rows, "rows", "numbers of rows")
    if not listed:
        refuse("rows", "hold at least one number", "none")
    picked = [check_row(row, "rows", len(dist)) for row in listed]
    given = [f"row {row}" for row in picked] if labels is None else labels
    names = inputs.check_labels(given, len(picked), "labels", "rows")
    marks = np.empty((len(picked), 0))
    if y is not None:
        marks = check_outcomes(y, dist)[picked, None]
    called = inputs.name_target(target_name, y)
    shapes = [ForecastShape.of(dist, row) for row in picked]
    ends = np.array([one.window(m) for one, m in zip(shapes, marks, strict=True)])
    low, high = ends[:, 0].min(), ends[:, 1].max()
    curves = [one.curve(low, high) for one in shapes]
    k, room = len(picked), 0.8 + _LEAST_ROOM * len(picked)
    ax = canvas.open_axes(ax, (6.5, min(max(4.0, room), _MOST_HEIGHT)))
    axis_label = _draw_ridge(ax, shapes, curves, scale)
    looks: dict[str, Any] = {"color": canvas.ink_of(ax), "ms": 9, "mew": 1.6}
    if marks.size:
        base = np.arange(k)[::-1]
        ax.plot(marks[:, 0], base, "|", zorder=4, label="outcome", **looks)
    ax.set_yticks(np.arange(k)[::-1], names)
    ax.tick_params(axis="y", length=0)
    ax.set(xlim=(low, high), xlabel=called, ylabel=axis_label)
    return ax


@dataclass(frozen=True)
class ForecastShape:
    """One forecast, split into a density and values of positive probability.

    Parameters
    ----------
    dist : PredictiveDistribution
        Of one row.
    spikes, masses : ndarrays of shape (m,)
        Values of positive probability, increasing, and their probabilities.
    """

    dist: PredictiveDistribution
    spikes: Float64Array
    masses: Float64Array

    @classmethod
    def of(cls, dist: PredictiveDistribution, row: int) -> ForecastShape:
        """Read a row.

        Parameters
        ----------
        dist : PredictiveDistribution
        row : int

        Returns
        -------
        ForecastShape
        """
        one = dist[row]
        values, jumps = one.atoms, one.masses[0]
        if one.law.all_jumps:
            values, jumps = (part[0] for part in one.law.steps())
        real = jumps > _LEAST_MASS
        return cls(one, values[real], jumps[real])

    @property
    def is_discrete(self) -> bool:
        """Whether the values hold all probability, so that no density is left."""
        return bool(self.masses.sum() > 1.0 - 1e-9)

    def window(self, extra: Iterable[float | None] = ()) -> tuple[float, float]:
        """Return the range of y to show: the central 99 %, long tails cut.

        Parameters
        ----------
        extra : iterable of float or None
            Values that must lie inside; None is no value.

        Returns
        -------
        low, high : float
        """
        low, lower, upper, high = self.dist.quantiles([_TAIL, 0.1, 0.9, 1.0 - _TAIL])[0]
        if not len(self.spikes):
            reach = _REACH * (upper - lower)
            low, high = max(low, lower - reach), min(high, upper + reach)
        inside = [float(value) for value in extra if value is not None]
        low, high = min([low, *inside]), max([high, *inside])
        margin = _MARGIN * (high - low) or 0.5 * max(abs(low), 1.0)
        return float(low - margin), float(high + margin)

    def grid(self, low: float, high: float) -> Float64Array:
        """Return values (g,) from low to high, within the support."""
        first, last = self.dist.law.support
        low, high = max(low, first), min(high, last)
        even = np.linspace(low, high, _N_POINTS)
        dense = self.dist.quantiles((np.arange(_N_POINTS) + 0.5) / _N_POINTS)[0]
        inside = (dense > low) & (dense < high)
        return np.unique(np.concatenate([even, dense[inside]]))

    def density(self, x: Float64Array) -> Float64Array:
        """Return the density without the spikes at x (g,), cut off far up."""
        law = self.dist.law.clipped
        assert law.curve is not None
        heights = law.curve.heights(_CENTRAL)[1]
        steep = np.median(heights) + np.log(_MOST_STEEP)
        most = min(heights.max() + np.log(_MOST_PEAK), steep)
        found = np.minimum(law.curve.densities(x[None, :])[1][0], most)
        return np.asarray(law.rest[0] * np.exp(found))

    def steps(self, x: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return the points of the CDF over x; an x where it jumps is there twice."""
        if not len(self.spikes):
            return x, self.dist.cdf_at(x)[0]
        seen = self.spikes[(self.spikes >= x[0]) & (self.spikes <= x[-1])]
        every = np.unique(np.concatenate([x, seen]))
        ends = self.dist.law.cdf_left(every[None, :]), self.dist.cdf_at(every)
        return np.repeat(every, 2), np.concatenate(ends).T.ravel()

    def curve(self, low: float, high: float) -> tuple[Float64Array, Float64Array]:
        """Return x (g,) and the density there, both empty where it has none."""
        if self.is_discrete:
            return np.empty(0), np.empty(0)
        x = self.grid(low, high)
        return x, self.density(x)


def _draw_density(
    ax: Axes, shape: ForecastShape, x: Float64Array, regions: Float64Array, label: str
) -> None:
    """Draw a density over x with regions (m, 2) shaded, and its spikes."""
    ax.set_ylabel("Probability" if shape.is_discrete else "Density")
    if shape.is_discrete:
        _draw_spikes(ax, shape, regions, _SMOOTH, label)
        return
    line = shape.density(x)
    ax.plot(x, line, color=_SMOOTH, lw=1.6)
    looks: dict[str, Any] = {"color": _SMOOTH, "alpha": 0.25, "lw": 0}
    for low, high in regions[regions[:, 0] < regions[:, 1]]:
        inner = np.concatenate([[low], x[(x > low) & (x < high)], [high]])
        ax.fill_between(inner, shape.density(inner), label=label, **looks)
        label = ""
    if label:
        # The region is of stems alone, whose axis has no legend.
        ax.plot([], [], "o", color=_SPIKE, ms=5, label=label)
    ax.set_ylim(0.0, _HEADROOM * float(line.max()))
    if len(shape.spikes):
        side = ax.twinx()
        _draw_spikes(side, shape, regions, _SPIKE, "")
        side.set_ylabel("Probability of a value", color=_SPIKE)
        side.tick_params(axis="y", colors=_SPIKE)


def _draw_spikes(
    ax: Axes, shape: ForecastShape, regions: Float64Array, color: str, label: str
) -> None:
    """Draw stems as high as probabilities; those of the region have filled heads."""
    y, mass = shape.spikes[:, None], shape.masses
    inside = ((y >= regions[:, 0]) & (y <= regions[:, 1])).any(axis=1)
    ax.vlines(shape.spikes, 0.0, mass, color=color, lw=1.6)
    heads = (inside, color, label), (~inside, ax.get_facecolor(), "")
    for kept, fill, name in heads:
        looks: dict[str, Any] = {"color": color, "mfc": fill, "ms": 5, "label": name}
        ax.plot(shape.spikes[kept], mass[kept], "o", **looks)
    ax.set_ylim(0.0, _HEADROOM * float(mass.max()))


def _draw_cdf(
    ax: Axes, shape: ForecastShape, x: Float64Array, regions: Float64Array, label: str
) -> None:
    """Draw a CDF over x, upright where it jumps, with regions (m, 2) shaded."""
    for low, high in regions[regions[:, 0] < regions[:, 1]]:
        ax.axvspan(low, high, color=_SMOOTH, alpha=0.12, lw=0, label=label)
        label = ""
    if label:
        at = regions[:, 0]
        looks: dict[str, Any] = {"color": _SMOOTH, "ms": 5, "label": label}
        ax.plot(at, shape.dist.cdf_at(at)[0], "o", **looks)
    ax.plot(*shape.steps(x), color=_SMOOTH, lw=1.6)
    ax.set(ylim=(-0.03, 1.03), ylabel=r"$P(Y \leq y)$")


def _draw_marks(ax: Axes, marks: dict[str, float | None]) -> None:
    """Draw upright lines at the mean, the point forecast and the outcome."""
    held = {k: v for k in _LINES if (v := marks[k]) is not None and np.isfinite(v)}
    # Texts have the digits that tell values apart, also from the ends of the axis.
    texts = format_numbers([*held.values(), *ax.get_xlim()], 4)
    for (name, value), text in zip(held.items(), texts, strict=False):
        (color, style), label = _LINES[name], f"{name} {text}"
        looks: dict[str, Any] = {"color": color or canvas.ink_of(ax), "ls": style}
        ax.axvline(value, lw=1.3, label=label, zorder=1.8, **looks)


def _draw_ridge(ax: Axes, shapes: list[ForecastShape], curves: Any, scale: str) -> str:
    """Draw each forecast from its own line, the first on top and behind; name the axis.

    A row's scale ends at the peak of its density, or at its likeliest value.
    """
    k = len(shapes)
    smooth = np.array([len(x) > 0 for x, _ in curves])
    pairs = zip(shapes, curves, strict=True)
    highest = np.array(
        [(ys if len(ys) else one.masses).max() for one, (_, ys) in pairs]
    )
    tops = np.array([highest[smooth == kind].max() for kind in smooth])
    same = scale == "common" or k == 1
    if scale == "auto":
        same = bool((tops <= _MOST_RATIO * highest).all())
    peaks = tops if same else highest
    (line_tone,) = canvas.shades(ax, canvas.GREY, [0.35])
    (fill_tone,) = canvas.shades(ax, "C0", [0.4])
    for j, (shape, (x, line)) in enumerate(zip(shapes, curves, strict=True)):
        base, layer = float(k - 1 - j), 2.0 + j / k
        ax.axhline(base, color=line_tone, lw=0.8, zorder=layer)
        unit, color = _STEM / peaks[j], _SMOOTH
        if len(x):
            top = base + _OVERLAP * line / peaks[j]
            ax.fill_between(x, base, top, color=fill_tone, lw=0, zorder=layer)
            ax.plot(x, top, color=_SMOOTH, lw=1.1, zorder=layer)
            unit, color = _STEM, _SPIKE
        heads = base + unit * shape.masses
        ax.vlines(shape.spikes, base, heads, color=color, lw=1.6, zorder=layer)
        ax.plot(shape.spikes, heads, "o", color=color, ms=4, zorder=layer)
    ax.set_ylim(-0.3, k - 0.9 + (_OVERLAP if smooth.any() else 1.0))
    scale_note = "all rows on one scale" if same else "each row on a scale of its own"
    return f"{'Density' if smooth.any() else 'Probability'}, {scale_note}"


# Neighbours are joined if x has more different values than this.
_MOST_VALUES, _N_GROUPS = 2000, 500
# Numbers that are no series: so few values are categories, and steps between
# neighbours above this share of those of a shuffled x are noise.
_MOST_CATEGORIES, _NOISE = 12, 0.1
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
    >>> from localexpert import plot_fan
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
        looks = {"zorder": 4, "label": "outcome"}
        canvas.draw_dots(ax, values, outcomes, canvas.ink_of(ax), **looks)
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
    if array.dtype == object:
        # A period of pandas is where it begins.
        begins = [getattr(one, "to_timestamp", lambda one=one: one)() for one in array]
        array = np.array(begins, dtype=object)
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
    # Offsets from the least value, because dates are large numbers.
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
    if dated or even or smooth or k <= _MOST_CATEGORIES:
        return most
    few = round(float(np.sqrt(count.sum())))
    return min(max(few, _LEAST_GROUPS), _MOST_GROUPS)
