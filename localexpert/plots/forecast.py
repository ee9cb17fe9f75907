"""Pictures of one forecast: its density and its CDF."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.typing import Float64Array
from localexpert._validation import (
    check_choice,
    check_in_unit,
    check_level,
    check_number,
    check_same_length,
    check_vector,
    format_number,
)
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.plots.canvas import (
    check_axes,
    check_dist,
    check_row,
    format_percent,
    ink_of,
    name_target,
    new_axes,
    new_grid,
    put_legend_above,
)
from localexpert.plots.shape import ForecastShape

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SMOOTH, _SPIKE = "C0", "C1"
# Colours and styles of upright lines, in the order in which they are drawn; no colour
# is that of the text.
_LINES = {"mean": ("C0", "--"), "prediction": ("C3", "-."), "outcome": ("", "-")}
# Room above the highest point.
_HEADROOM = 1.06


def plot_forecast(
    dist: PredictiveDistribution,
    row: int = 0,
    *,
    what: Literal["both", "density", "cdf"] = "both",
    coverage: float = 0.8,
    interval: Literal["densest", "central"] = "densest",
    y: float | None = None,
    prediction: float | None = None,
    expert_points: tuple[ArrayLike, ArrayLike] | None = None,
    target_name: str | None = None,
    ax: Any = None,
) -> Any:
    r"""Draw one forecast: its density, its CDF, and where the outcome fell.

    The region of highest density, a union of intervals, is shaded, or the central
    interval, and the legend says which and of what probability. Values that have
    probability of their own are stems with a head, filled if they are in the region;
    beside a density they have an axis of their own on the right.

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
        A point forecast to mark beside the mean, that of a stacker for instance.
    expert_points : (thresholds, probabilities), optional
        Two array-likes of shape (N,): what the experts said, P(Y <= threshold),
        thresholds in units of y: a row of `LocalExpertRegressor.expert_points`. Drawn
        on the CDF as far as they are in sight.
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
    the tails are longer than three times the central 80 %.

    Examples
    --------
    >>> from localexpert.distribution.predictive import PredictiveDistribution
    >>> from localexpert.plots.forecast import plot_forecast
    >>> rows = [[0.2, 0.5, 0.3]]
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> density, cdf = plot_forecast(dist, y=1.0)
    >>> density.get_ylabel(), cdf.get_ylabel()
    ('Probability', '$P(Y \\leq y)$')
    """
    check_choice(what, "what", ("both", "density", "cdf"))
    check_choice(interval, "interval", ("densest", "central"))
    check_dist(dist)
    coverage = check_level(coverage, "coverage")
    points = None if expert_points is None else _check_points(expert_points)
    marks = {
        "outcome": _check_mark(y, "y"),
        "prediction": _check_mark(prediction, "prediction"),
    }
    shape = ForecastShape.of(dist, check_row(row, "row", len(dist)))
    panels = _panels(what, ax)
    low, high = shape.window(marks.values())
    x = shape.grid(low, high)
    if interval == "central":
        regions, best = shape.dist.interval(coverage), "interval"
    else:
        regions = shape.dist.hdi_regions(coverage)[0]
        best = "most probable" if shape.is_discrete else "highest density"
    label = f"{format_percent(coverage)} {best}"
    if what != "cdf":
        _draw_density(panels[0], shape, x, regions, label)
    if what != "density":
        # Beyond the support a CDF is flat, but it is there.
        whole = np.unique(np.concatenate([[low], x, [high]]))
        _draw_cdf(panels[-1], shape, whole, regions, label if what == "cdf" else "")
        if points is not None:
            thresholds, p = points
            seen = (thresholds >= low) & (thresholds <= high)
            looks: dict[str, Any] = {"color": _SPIKE, "ms": 4.5, "label": "experts"}
            panels[-1].plot(thresholds[seen], p[seen], "o", **looks)
    for place, panel in enumerate(panels):
        _draw_marks(panel, shape, marks, named=place == 0)
        panel.set_xlim(low, high)
    put_legend_above(*panels)
    panels[-1].set_xlabel(name_target(target_name))
    return panels if what == "both" else panels[0]


def _draw_density(
    ax: Axes, shape: ForecastShape, x: Float64Array, regions: Float64Array, label: str
) -> None:
    """Draw a density over x with regions (m, 2) shaded, and its spikes."""
    ax.set_ylabel("Probability" if shape.is_discrete else "Density")
    if not shape.is_discrete:
        line = shape.density(x)
        ax.plot(x, line, color=_SMOOTH, lw=1.6)
        looks: dict[str, Any] = {"color": _SMOOTH, "alpha": 0.25, "lw": 0}
        for low, high in regions[regions[:, 0] < regions[:, 1]]:
            inner = np.concatenate([[low], x[(x > low) & (x < high)], [high]])
            ax.fill_between(inner, shape.density(inner), label=label, **looks)
            label = ""
        ax.set_ylim(0.0, _HEADROOM * float(line.max()))
    if shape.is_discrete:
        _draw_spikes(ax, shape, regions, _SMOOTH, label)
    elif len(shape.spikes):
        side = ax.twinx()
        _draw_spikes(side, shape, regions, _SPIKE, "")
        side.set_ylabel("Probability of a value", color=_SPIKE)
        side.tick_params(axis="y", colors=_SPIKE)


def _check_points(points: Any) -> tuple[Float64Array, Float64Array]:
    """Return thresholds and probabilities of equal length."""
    if not isinstance(points, tuple | list) or len(points) != 2:
        msg = "`expert_points` must be a pair (thresholds, probabilities), got "
        msg += f"{len(points)} items." if hasattr(points, "__len__") else f"{points!r}."
        raise ValueError(msg)
    names = "expert_points[0]", "expert_points[1]"
    thresholds, p = (
        check_vector(part, name) for part, name in zip(points, names, strict=True)
    )
    check_same_length(len(thresholds), f"`{names[0]}`", len(p), names[1])
    check_in_unit(float(p.min()), float(p.max()), names[1])
    return thresholds, p


def _check_mark(value: Any, name: str) -> float | None:
    """Return a finite number, or None where none is given."""
    most = np.finfo(float).max
    return None if value is None else check_number(value, name, -most, most)


def _panels(what: str, ax: Any) -> NDArray[np.object_]:
    """Return the one or two axes to draw on, as a vector."""
    n = 2 if what == "both" else 1
    if ax is None:
        ax = new_grid(2, 1, (6.5, 5.2), sharex=True) if n == 2 else new_axes()
    return check_axes(ax, n, "ax")


def _draw_spikes(
    ax: Axes, shape: ForecastShape, regions: Float64Array, color: str, label: str
) -> None:
    """Draw stems as high as probabilities; those of the region have filled heads."""
    y, mass = shape.spikes[:, None], shape.masses
    inside = ((y >= regions[:, 0]) & (y <= regions[:, 1])).any(axis=1)
    ax.vlines(shape.spikes, 0.0, mass, color=color, lw=1.6)
    looks: dict[str, Any] = {"color": color, "ms": 5}
    for kept, fill, name in (
        (inside, color, label),
        (~inside, ax.get_facecolor(), ""),
    ):
        ax.plot(shape.spikes[kept], mass[kept], "o", mfc=fill, label=name, **looks)
    ax.set_ylim(0.0, _HEADROOM * float(mass.max()))


def _draw_cdf(
    ax: Axes, shape: ForecastShape, x: Float64Array, regions: Float64Array, label: str
) -> None:
    """Draw a CDF over x, upright where it jumps, with regions (m, 2) shaded."""
    for low, high in regions[regions[:, 0] < regions[:, 1]]:
        ax.axvspan(low, high, color=_SMOOTH, alpha=0.12, lw=0, label=label)
        label = ""
    ax.plot(*shape.steps(x), color=_SMOOTH, lw=1.6)
    ax.set(ylim=(-0.03, 1.03), ylabel=r"$P(Y \leq y)$")


def _draw_marks(
    ax: Axes, shape: ForecastShape, marks: dict[str, float | None], *, named: bool
) -> None:
    """Draw upright lines at the mean, the point forecast and the outcome."""
    values = {"mean": float(shape.dist.mean()[0]), **marks}
    for name, (color, style) in _LINES.items():
        value = values[name]
        if value is not None and np.isfinite(value):
            label = f"{name} {format_number(value)}" if named else ""
            tone = color or ink_of(ax)
            ax.axvline(value, color=tone, ls=style, lw=1.3, label=label, zorder=1.8)
