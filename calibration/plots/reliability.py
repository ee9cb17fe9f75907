"""Reliability diagrams and ROC curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.isotonic import isotonic_regression

from calibration._validation import (
    check_flag,
    check_list,
    check_order,
    check_rows,
    plain_label,
    refuse,
)
from calibration.measures.reliability import ReliabilityCurve, reliability_curve
from calibration.plots import canvas
from calibration.summary import ScoreSummary
from calibration.typing import Int64Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Height of the strip of each curve's forecasts below the reliability diagram.
_STRIP = 0.08
# A curve with more points has no markers.
_MOST_MARKERS = 50
# More diagrams than this are too many for one figure.
_MOST_PANELS = 20
_FORECAST, _OBSERVED = "Forecast probability", "Observed event rate"


@canvas.picture
def plot_reliability(
    curve: ReliabilityCurve | Mapping[str, ReliabilityCurve] | ArrayLike,
    y_prob: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Draw a reliability diagram.

    It shows the observed event rate against the forecast, with the curve's band. The
    strip below shows where the forecasts lie.

    Parameters
    ----------
    curve : ReliabilityCurve, mapping of names to them, or array-like of shape (n,)
        What `reliability_curve` returned. Each curve has its own colour. Or the labels,
        coded 0 and 1, as in ``plot_reliability(y_true, y_prob)``.
    y_prob : array-like of shape (n,), or mapping of names to such, optional
        With labels: the forecast probabilities of class 1.
    ax : matplotlib Axes, optional
        Where to draw. Default: a new figure.
    **options
        With labels: further parameters of `reliability_curve`, such as `n_bins` and
        `sample_weight`.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    Examples
    --------
    >>> from calibration import reliability_curve
    >>> from calibration.plots import plot_reliability
    >>> y_true, y_prob = [0, 1, 0, 1], [0.1, 0.3, 0.6, 0.9]
    >>> plot_reliability(y_true, y_prob, n_bins=2).get_xlabel()
    'Forecast probability'
    >>> curve = reliability_curve(y_true, y_prob, n_bins=2)
    >>> plot_reliability({"mine": curve}).get_ylabel()
    'Observed event rate'
    """
    curves = _read_curves(curve, y_prob, options)
    ax = canvas.open_axes(ax, (5.5, 5.8))
    _draw_diagram(ax, curves)
    ax.set(xlabel=_FORECAST, ylabel=_OBSERVED)
    return ax


@canvas.panels
def plot_class_reliability(
    y_true: ArrayLike,
    y_prob: ArrayLike | Mapping[str, ArrayLike],
    *,
    classes: Sequence[Any] | None = None,
    shown: Sequence[Any] | None = None,
    axes: Any = None,
    **options: Any,
) -> NDArray[np.object_]:
    """Draw a reliability diagram for each class against all others.

    A panel is what `plot_reliability` draws for one class, with the same bins, band and
    strip. The title says how many of the rows are of the class.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Column numbers, or names among `classes`.
    y_prob : array-like of shape (n, k), or mapping of names to such
        Forecast probabilities, a column for each class. Each forecast has its own
        colour.
    classes : sequence of k names, optional
        Names of the columns. The default is their numbers, 0 to k - 1.
    shown : sequence, optional
        The classes that are drawn, at most 20. The default is all.
    axes : array-like of matplotlib Axes, optional
        Axes for each class that is shown. Default: a new figure.
    **options
        Further parameters of `reliability_curve`, such as `n_bins`, `bands` and
        `sample_weight`.

    Returns
    -------
    ndarray of matplotlib Axes, one for each class shown
        The axes that were drawn on.

    Examples
    --------
    >>> from calibration.plots import plot_class_reliability
    >>> y_prob = [[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6], [0.5, 0.3, 0.2]]
    >>> panels = plot_class_reliability([0, 1, 2, 1], y_prob, n_bins=2)
    >>> [ax.get_title() for ax in panels]
    ['0: 25% of rows', '1: 50% of rows', '2: 25% of rows']
    """
    given = canvas.read_items(y_prob, "y_prob", (object,))
    tables = {name: check_rows(table, "y_prob") for name, table in given.items()}
    shapes = {table.shape for table in tables.values()}
    if len(shapes) > 1:
        refuse("y_prob", "hold forecasts of one shape", sorted(shapes))
    ((n, k),) = shapes
    names = canvas.read_names(classes, k)
    for table in given.values():
        check_order(table, names, "y_prob")
    labels = canvas.read_columns(y_true, names, n, "y_true", "y_prob")
    picked = names if shown is None else check_list(shown, "shown", "classes")
    if not 1 <= len(picked) <= _MOST_PANELS:
        got = f"{len(picked)}{' by default' if shown is None else ''}"
        refuse("shown", f"name 1 to {_MOST_PANELS} classes", got)
    columns = canvas.read_columns(picked, names, len(picked), "shown", "shown").tolist()
    curves = [
        {
            name: reliability_curve(labels == column, table[:, column], **options)
            for name, table in tables.items()
        }
        for column in columns
    ]
    drawn = canvas.open_panels(axes, len(columns), (2.8, 2.9))
    for ax, column, some in zip(drawn, columns, curves, strict=True):
        # Ties give some classes fewer bins, so the number of bins cannot name all
        # curves.
        _draw_diagram(ax, some, unnamed="observed")
        one = next(iter(some.values()))
        share = (one.event_rate * one.weight).sum() / one.weight.sum()
        name = plain_label(names[column], canvas.LONGEST_NAME)
        ax.set_title(f"{name}: {100.0 * share:.3g}% of rows", fontsize="medium")
    canvas.name_outer(drawn, _FORECAST, _OBSERVED)
    return drawn


def _read_curves(
    curve: Any, y_prob: Any, options: Mapping[str, Any]
) -> dict[str, ReliabilityCurve]:
    """Return curves by name. They are given, or made of labels and probabilities."""
    if y_prob is not None and not isinstance(curve, ReliabilityCurve | Mapping):
        named = canvas.read_items(y_prob, "y_prob", (object,))
        return {k: reliability_curve(curve, p, **options) for k, p in named.items()}
    more = ", or labels beside `y_prob`"
    curves: dict[str, ReliabilityCurve] = canvas.read_items(
        curve, "curve", (ReliabilityCurve,), more
    )
    for unused in (["y_prob"] if y_prob is not None else []) + list(options):
        got = f"it with {type(curve).__name__}"
        refuse(unused, "be given with labels only", got, TypeError)
    return curves


def _draw_diagram(
    ax: Axes, curves: Mapping[str, ReliabilityCurve], unnamed: str | None = None
) -> None:
    """Draw curves around the diagonal, each with its band and its strip.

    A curve without a name is called `unnamed`, or by its bins if that is not given.
    """
    ax.plot([0, 1], [0, 1], label="calibrated", **canvas.DASHED)
    for place, (name, one) in enumerate(curves.items()):
        color = f"C{place % 10}"
        _draw_curve(ax, one, plain_label(name, canvas.LONGEST_NAME), color, unnamed)
        # The strip is a histogram of the forecasts.
        heights = 0.8 * _STRIP * one.histogram / one.histogram.max()
        edges, base = np.linspace(0.0, 1.0, len(heights) + 1), -_STRIP * (place + 1.25)
        looks: dict[str, Any] = {"align": "edge", "color": color, "alpha": 0.7, "lw": 0}
        ax.bar(edges[:-1], heights, np.diff(edges), base, **looks)
    ax.axhline(-0.25 * _STRIP, color=canvas.GREY, lw=0.8, alpha=0.5)
    ax.set(xlim=(-0.02, 1.02), ylim=(-_STRIP * (len(curves) + 0.5), 1.02))
    ticks = np.linspace(0.0, 1.0, 6)
    ax.set(xticks=ticks, yticks=ticks, aspect="equal")


def _draw_curve(
    ax: Axes, curve: ReliabilityCurve, name: str, color: str, unnamed: str | None
) -> None:
    """Draw a curve and its band."""
    isotonic = curve.binning == "isotonic"
    label = name or unnamed or ("isotonic" if isotonic else f"{len(curve.weight)} bins")
    # Vector formats would keep millions of points that nobody sees.
    shown = canvas.thin(curve.mean_prob)
    x = curve.mean_prob[shown]
    if curve.lower is not None and curve.upper is not None:
        whose = f"{name}, " if name else ""
        band = f"{whose}{100.0 * curve.level:.3g}% {curve.bands} band"
        lower, upper = curve.lower[shown], curve.upper[shown]
        if len(x) == 1 or (curve.bands == "confidence" and not isotonic):
            # Bins are apart, and so are their intervals. A single bin has no area.
            ax.vlines(x, lower, upper, color=color, alpha=0.6, label=band)
        else:
            ax.fill_between(x, lower, upper, color=color, alpha=0.18, lw=0, label=band)
    marker = "" if isotonic and len(x) > _MOST_MARKERS else "o"
    looks: dict[str, Any] = {"color": color, "lw": 1.6, "marker": marker, "ms": 4.5}
    ax.plot(x, curve.event_rate[shown], label=label, **looks)


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
        Higher scores make class 1 more likely. Each curve has its own colour.
    y : array-like of shape (n,)
        Labels, coded 0 and 1, of both classes.
    sample_weight : array-like of shape (n,), optional
        Non-negative numbers of repetitions.
    hull : bool
        Whether to draw the hull as a dashed line.
    ax : matplotlib Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on. Labels tell the areas below the curves.

    Notes
    -----
    The hull is the ROC curve of the scores after isotonic regression (PAV). A side of
    it is a block of pooled scores. The slope of the side is the block's ratio of
    likelihoods. The area between curve and hull is what the calibrator gains where
    scores are in the wrong order.

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
    some = [ScoreSummary.from_scores(one, y, sample_weight) for one in named.values()]
    # All scores have the same labels.
    if min(some[0].n0, some[0].n1) == 0.0:
        refuse("y", "hold both classes", f"{some[0].n0:g} rows of 0 of {some[0].n:g}")
    ax = canvas.open_axes(ax, (5.0, 5.2))
    ax.plot([0, 1], [0, 1], ":", color=canvas.GREY, lw=1, label="chance")
    for place, (name, one) in enumerate(zip(named, some, strict=True)):
        label, color = plain_label(name, canvas.LONGEST_NAME), f"C{place % 10}"
        every = np.arange(one.n_cells)
        _draw_roc(ax, one, every, label or "ROC", ls="-", color=color, lw=1.6)
        if hull:
            rate = one.weight1 / one.weight
            pooled = isotonic_regression(rate, sample_weight=one.weight)
            blocks = np.flatnonzero(np.diff(pooled, prepend=-1.0) > 0.0)
            title = f"{label}, hull" if label else "hull"
            _draw_roc(ax, one, blocks, title, ls="--", color=color, lw=1.2)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    ax.set(xlabel="False positive rate", ylabel="True positive rate")
    return ax


def _draw_roc(
    ax: Axes, cells: ScoreSummary, starts: Int64Array, name: str, **looks: Any
) -> None:
    """Draw the rates of false and true positives at cuts below some of the cells."""
    blocks = (np.add.reduceat(one, starts) for one in (cells.weight0, cells.weight1))
    above = [np.append(0.0, np.cumsum(block[::-1])) for block in blocks]
    x, y = (one / one[-1] for one in above)
    area = float(np.diff(x) @ (0.5 * (y[1:] + y[:-1])))
    shown = canvas.thin(0.5 * (x + y))
    ax.plot(x[shown], y[shown], label=f"{name}, area {area:.3f}", **looks)
