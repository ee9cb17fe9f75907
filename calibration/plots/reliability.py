"""Reliability diagrams: event rate against forecast, and where the forecasts lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation import check_ax, plain_label
from calibration.measures.reliability import ReliabilityCurve, reliability_curve
from calibration.plots.canvas import (
    GREY,
    LONGEST_NAME,
    check_items,
    new_axes,
    put_legend_above,
)
from calibration.typing import Float64Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Height of the strip of each curve's forecasts below the reliability diagram.
_STRIP = 0.08
_STRIP_BINS = 50
# Points of a curve that a picture can tell apart.
_MOST_POINTS = 2000


def plot_reliability(
    curve: ReliabilityCurve | Mapping[str, ReliabilityCurve] | ArrayLike,
    y_prob: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Draw a reliability diagram.

    Observed event rate against forecast, with the curve's band; the strip below
    shows where the forecasts lie.

    Parameters
    ----------
    curve : ReliabilityCurve, mapping of names to them, or array-like of shape (n,)
        What `reliability_curve` returned. Several are told apart by colour. Or the
        labels, coded 0 and 1, as in ``plot_reliability(y_true, y_prob)``.
    y_prob : array-like of shape (n,), or mapping of names to such, optional
        With labels: forecast probabilities of class 1.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.
    **options
        With labels: of `reliability_curve`, such as `n_bins` and `sample_weight`.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    Examples
    --------
    >>> from calibration.measures import reliability_curve
    >>> from calibration.plots.reliability import plot_reliability
    >>> y_true, y_prob = [0, 1, 0, 1], [0.1, 0.3, 0.6, 0.9]
    >>> plot_reliability(y_true, y_prob, n_bins=2).get_xlabel()
    'Forecast probability'
    >>> curve = reliability_curve(y_true, y_prob, n_bins=2)
    >>> plot_reliability({"mine": curve}).get_ylabel()
    'Observed event rate'
    """
    check_ax(ax)
    curves = _read_curves(curve, y_prob, options)
    ax = new_axes((5.5, 5.8)) if ax is None else ax
    draw_diagram(ax, curves)
    ax.set(xlabel="Forecast probability", ylabel="Observed event rate")
    put_legend_above(ax)
    return ax


def _read_curves(
    curve: Any, y_prob: Any, options: Mapping[str, Any]
) -> dict[str, ReliabilityCurve]:
    """Return curves by name, as given or of labels and probabilities."""
    if y_prob is not None and not isinstance(curve, ReliabilityCurve | Mapping):
        named = dict(y_prob) if isinstance(y_prob, Mapping) else {"": y_prob}
        return {k: reliability_curve(curve, p, **options) for k, p in named.items()}
    curves = dict(curve) if isinstance(curve, Mapping) else {"": curve}
    if isinstance(curve, Sequence | np.ndarray) or hasattr(curve, "to_numpy"):
        msg = (
            "`curve` must be what reliability_curve returned, or labels beside "
            f"`y_prob`, got {type(curve).__name__} and no `y_prob`: call "
            "plot_reliability(y_true, y_prob)."
        )
        raise TypeError(msg)
    check_items(curves, "curve", (ReliabilityCurve,))
    unused = ["y_prob", *options] if y_prob is not None else [*options]
    if unused:
        msg = (
            f"`{unused[0]}` must be given with labels only, "
            f"got it with {type(curve).__name__}."
        )
        raise TypeError(msg)
    return curves


def draw_diagram(
    ax: Axes, curves: Mapping[str, ReliabilityCurve], unnamed: str | None = None
) -> None:
    """Draw curves around the diagonal, each with its band and its strip.

    A curve without a name is called `unnamed`, or else by its bins.
    """
    ax.plot([0, 1], [0, 1], linestyle="--", color=GREY, lw=1, label="calibrated")
    for place, (name, one) in enumerate(curves.items()):
        color = f"C{place % 10}"
        _draw_curve(ax, one, plain_label(name, LONGEST_NAME), color, unnamed)
        _draw_strip(ax, one, color, -_STRIP * (place + 1.25))
    ax.axhline(-0.25 * _STRIP, color=GREY, lw=0.8, alpha=0.5)
    ax.set(xlim=(-0.02, 1.02), ylim=(-_STRIP * (len(curves) + 0.5), 1.02))
    ticks = np.linspace(0.0, 1.0, 6)
    ax.set(xticks=ticks, yticks=ticks, aspect="equal")


def _draw_curve(
    ax: Axes, curve: ReliabilityCurve, name: str, color: str, unnamed: str | None
) -> None:
    """Draw a curve and its band."""
    isotonic = curve.binning == "isotonic"
    bins = "isotonic" if isotonic else f"{len(curve.weight)} bins"
    label = name or unnamed or bins
    # Vector formats would keep millions of points that no one sees.
    shown = _thin(curve.mean_prob)
    x = curve.mean_prob[shown]
    if curve.lower is not None and curve.upper is not None:
        band = f"{100.0 * curve.level:.3g}% {curve.bands} band"
        band = f"{name}, {band}" if name else band
        lower, upper = curve.lower[shown], curve.upper[shown]
        if curve.bands == "confidence" and not isotonic:
            # Bins are apart, and so are their intervals.
            ax.vlines(x, lower, upper, color=color, alpha=0.6, label=band)
        else:
            ax.fill_between(x, lower, upper, color=color, alpha=0.18, lw=0, label=band)
    ax.plot(
        x,
        curve.event_rate[shown],
        color=color,
        lw=1.6,
        marker="" if isotonic and len(x) > _STRIP_BINS else "o",
        ms=4.5,
        label=label,
    )


def _thin(forecasts: Float64Array) -> NDArray[np.intp]:
    """Positions of the forecasts to draw: of very many, the first in every pixel."""
    if len(forecasts) <= _MOST_POINTS:
        return np.arange(len(forecasts))
    pixels = np.floor(forecasts * (_MOST_POINTS - 1))
    first = np.flatnonzero(np.diff(pixels, prepend=-1.0))
    return np.unique(np.append(first, len(forecasts) - 1))


def _draw_strip(ax: Axes, curve: ReliabilityCurve, color: str, base: float) -> None:
    """Draw a histogram of the forecasts, upwards from `base`."""
    edges = np.linspace(0.0, 1.0, _STRIP_BINS + 1)
    counts, _ = np.histogram(curve.mean_prob, edges, weights=curve.weight)
    heights = 0.8 * _STRIP * counts / counts.max()
    widths = np.diff(edges)
    ax.bar(
        edges[:-1], heights, widths, base, align="edge", color=color, alpha=0.7, lw=0
    )
