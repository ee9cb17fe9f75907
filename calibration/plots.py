"""Pictures of calibration: each function draws on one Axes and returns it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from calibration._validation import (
    check_ax,
    check_choice,
    check_probabilities,
    check_vector,
    plain_label,
)
from calibration.base.calibrators import ScoreCalibrator
from calibration.maps import CalibrationMap
from calibration.measures.comparison import MethodComparison
from calibration.measures.reliability import ReliabilityCurve, reliability_curve
from calibration.typing import Float64Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Calibrator: TypeAlias = CalibrationMap | ScoreCalibrator

_GREY = "0.5"
# Height of the strip of each curve's forecasts below the reliability diagram.
_STRIP = 0.08
_STRIP_BINS = 50
_GRID_SIZE = 1001
# Points of a curve that a picture can tell apart.
_MOST_POINTS = 2000
# Log-odds shown by default: probabilities from .0025 to .9975.
_LOG_ODDS_REACH = 6.0
# Letters of a label that has room beside another.
_SHORT_LABEL = 30
# And of a name that stands beside other words.
_LONGEST_NAME = 24


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
    >>> from calibration.plots import plot_reliability
    >>> y_true, y_prob = [0, 1, 0, 1], [0.1, 0.3, 0.6, 0.9]
    >>> plot_reliability(y_true, y_prob, n_bins=2).get_xlabel()
    'Forecast probability'
    >>> curve = reliability_curve(y_true, y_prob, n_bins=2)
    >>> plot_reliability({"mine": curve}).get_ylabel()
    'Observed event rate'
    """
    check_ax(ax)
    curves = _read_curves(curve, y_prob, options)
    ax = _new_axes((5.5, 5.8)) if ax is None else ax
    ax.plot([0, 1], [0, 1], linestyle="--", color=_GREY, lw=1, label="calibrated")
    for place, (name, one) in enumerate(curves.items()):
        color = f"C{place % 10}"
        _draw_curve(ax, one, plain_label(name, _LONGEST_NAME), color)
        _draw_strip(ax, one, color, -_STRIP * (place + 1.25))
    ax.axhline(-0.25 * _STRIP, color=_GREY, lw=0.8, alpha=0.5)
    ax.set(xlim=(-0.02, 1.02), ylim=(-_STRIP * (len(curves) + 0.5), 1.02))
    ticks = np.linspace(0.0, 1.0, 6)
    ax.set(xticks=ticks, yticks=ticks, aspect="equal")
    ax.set(xlabel="Forecast probability", ylabel="Observed event rate")
    _put_legend_above(ax)
    return ax


def plot_calibration_map(
    calibrators: Calibrator | Mapping[str, Calibrator],
    *,
    ax: Axes | None = None,
    axis: Literal["probability", "log-odds"] = "probability",
    grid: ArrayLike | None = None,
) -> Axes:
    """Draw calibrated probability as a function of the score.

    Parameters
    ----------
    calibrators : CalibrationMap or fitted calibrator, or mapping of names to them
        All on one kind of scale: scores that are probabilities or log-odds can share
        a picture, real scores cannot join them. A bare map is read as one of
        probabilities if its knots lie in [0, 1], else as one of real scores.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.
    axis : {"probability", "log-odds"}
        "log-odds" shows the logit of the calibrated probability against the logit of
        the score (or a real score itself). Probabilities of 0 and 1 leave a gap.
    grid : array-like of shape (n,), optional
        Scores to evaluate at, each calibrator on its own scale; default the unit
        interval, log-odds from -6 to 6, or the range of a map's knots.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    Examples
    --------
    >>> from calibration.logistic.polynomial import PlattCalibrator
    >>> from calibration.plots import plot_calibration_map
    >>> platt = PlattCalibrator().fit([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    >>> plot_calibration_map({"Platt": platt}, axis="log-odds").get_ylabel()
    'Log-odds of calibrated probability'
    """
    check_ax(ax)
    check_choice(axis, "axis", ("probability", "log-odds"))
    some = dict(calibrators) if isinstance(calibrators, Mapping) else {"": calibrators}
    _check_items(some, "calibrators", (CalibrationMap, ScoreCalibrator))
    scales = {name: _scale_of(one) for name, one in some.items()}
    real = "real" in scales.values()
    if real and set(scales.values()) != {"real"}:
        msg = f"`calibrators` must not mix real scores with other scales, got {scales}."
        raise ValueError(msg)
    ax = _new_axes((5.5, 5.0)) if ax is None else ax
    for name, one in some.items():
        x, y = _map_points(one, scales[name], axis, grid)
        label = plain_label(name, _LONGEST_NAME) or type(one).__name__
        ax.plot(x, y, lw=1.8, label=label)
    odds = axis == "log-odds"
    if not real:
        ends = (-_LOG_ODDS_REACH, _LOG_ODDS_REACH) if odds else (0.0, 1.0)
        ax.plot(ends, ends, "--", color=_GREY, lw=1, label="unchanged", zorder=1)
    if not odds:
        ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("Score" if real or not odds else "Log-odds of score")
    ax.set_ylabel(f"{'Log-odds of c' if odds else 'C'}alibrated probability")
    _put_legend_above(ax)
    return ax


def plot_ranks(comparison: MethodComparison, *, ax: Axes | None = None) -> Axes:
    """Draw average ranks, and join the methods not different from the control.

    Parameters
    ----------
    comparison : MethodComparison
        What `compare_methods` returned.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    References
    ----------
    Demsar (2006), Statistical comparisons of classifiers over multiple data sets.

    Examples
    --------
    >>> from calibration.measures import compare_methods
    >>> from calibration.plots import plot_ranks
    >>> losses = [[0.3, 0.1, 0.2], [0.3, 0.1, 0.2], [0.2, 0.1, 0.3], [0.4, 0.2, 0.3]]
    >>> plot_ranks(compare_methods(losses)).get_xlabel()
    'Average rank (1 is best)'
    """
    check_ax(ax)
    _check_items({"": comparison}, "comparison", (MethodComparison,))
    ranks = comparison.average_ranks
    k = len(ranks)
    rows = (k + 1) // 2
    ax = _new_axes((7.5, 1.7 + 0.32 * rows)) if ax is None else ax
    for place, i in enumerate(np.argsort(ranks, kind="stable")):
        on_left = place < rows
        height = -1.2 - (place if on_left else k - 1 - place)
        _draw_rank(ax, comparison, int(i), on_left, height)
    # One line from the best to the worst of them (Demsar 2006, figure 1b).
    joined = ranks[~comparison.different]
    label = (
        f"not different from {plain_label(comparison.control, _LONGEST_NAME)} "
        f"(Holm, level {comparison.level:g}; all equal: p = {comparison.p_value:.2g})"
    )
    ends = [joined.min(), joined.max()]
    ax.plot(ends, [-0.5] * 2, color="C3", lw=5, solid_capstyle="round", label=label)
    _dress_ranks(ax, k, -0.9 - rows)
    return ax


def _new_axes(size: tuple[float, float]) -> Axes:
    """Return the axes of a new figure of that size in inches."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


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
    _check_items(curves, "curve", (ReliabilityCurve,))
    unused = ["y_prob", *options] if y_prob is not None else [*options]
    if unused:
        msg = (
            f"`{unused[0]}` must be given with labels only, "
            f"got it with {type(curve).__name__}."
        )
        raise TypeError(msg)
    return curves


def _put_legend_above(ax: Axes) -> None:
    """Put the legend above the picture, where no curve is, in two columns at most."""
    labels = ax.get_legend_handles_labels()[1]
    short = max(map(len, labels)) <= _SHORT_LABEL
    looks: dict[str, Any] = {"frameon": False, "fontsize": "small"}
    at: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}
    ax.legend(ncols=2 if short else 1, **at, **looks)


def _check_items(
    items: Mapping[str, object], name: str, kinds: tuple[type, ...]
) -> None:
    """Refuse an argument without items, or with an item of another type."""
    if not items:
        msg = f"`{name}` must hold at least one item, got an empty mapping."
        raise ValueError(msg)
    for item in items.values():
        if not isinstance(item, kinds):
            wanted = " or ".join(kind.__name__ for kind in kinds)
            msg = f"`{name}` must be of type {wanted}, got {type(item).__name__}."
            raise TypeError(msg)


def _draw_curve(ax: Axes, curve: ReliabilityCurve, name: str, color: str) -> None:
    """Draw a curve and its band."""
    isotonic = curve.binning == "isotonic"
    label = name or ("isotonic" if isotonic else f"{len(curve.weight)} bins")
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


def _scale_of(calibrator: Calibrator) -> str:
    """Return the scale of the scores that a calibrator takes."""
    if isinstance(calibrator, ScoreCalibrator):
        return calibrator.scale
    unit = calibrator.knots[0] >= 0.0 and calibrator.knots[-1] <= 1.0
    return "probability" if unit else "real"


def _map_points(
    calibrator: Calibrator, scale: str, axis: str, grid: ArrayLike | None
) -> tuple[Float64Array, Float64Array]:
    """Return what to draw of a map: coordinates of scores and of probabilities."""
    if grid is None:
        scores = _default_grid(calibrator, scale, axis)
    elif scale == "probability":
        scores = np.sort(check_probabilities(grid, "grid"))
    else:
        scores = np.sort(check_vector(grid, "grid"))
    calibrated = (
        calibrator.predict(scores)
        if isinstance(calibrator, ScoreCalibrator)
        else calibrator(scores)
    )
    if axis == "log-odds":
        coordinates = _logit(scores) if scale == "probability" else scores
        return coordinates, _logit(calibrated)
    return (expit(scores) if scale == "logit" else scores), calibrated


def _default_grid(calibrator: Calibrator, scale: str, axis: str) -> Float64Array:
    """Return the scores that show all of a map."""
    if scale != "real":
        odds = np.linspace(-_LOG_ODDS_REACH, _LOG_ODDS_REACH, _GRID_SIZE)
        if scale == "logit":
            return odds
        return expit(odds) if axis == "log-odds" else np.linspace(0, 1, _GRID_SIZE)
    knots = getattr(getattr(calibrator, "map_", calibrator), "knots", None)
    if knots is None:
        msg = "`grid` must be given for a formula of real scores, got None."
        raise ValueError(msg)
    # Beyond its knots a map is flat; a little of that is shown.
    margin = 0.05 * (knots[-1] - knots[0]) or 1.0
    return np.linspace(knots[0] - margin, knots[-1] + margin, _GRID_SIZE)


def _logit(p: Float64Array) -> Float64Array:
    """Log-odds of probabilities, nan (a gap in the line) at 0 and 1."""
    return np.asarray(logit(np.where((p > 0.0) & (p < 1.0), p, np.nan)))


def _draw_rank(
    ax: Axes, comparison: MethodComparison, i: int, on_left: bool, height: float
) -> None:
    """Draw the line from a method's rank to its name."""
    rank, name = (
        comparison.average_ranks[i],
        plain_label(comparison.names[i], _LONGEST_NAME),
    )
    k = len(comparison.names)
    side = 1.0 - 0.05 * (k - 1) if on_left else k + 0.05 * (k - 1)
    control = comparison.names[i] == comparison.control
    color = "C0" if control else ax.xaxis.label.get_color()
    ax.plot([rank, rank, side], [0.0, height, height], color=color, lw=1.2)
    ax.text(
        side,
        height,
        f"{name}  {rank:.2f} " if on_left else f" {rank:.2f}  {name}",
        ha="right" if on_left else "left",
        va="center",
        color=color,
        fontweight="bold" if control else "normal",
    )


def _dress_ranks(ax: Axes, k: int, bottom: float) -> None:
    """Make the rank line the only axis, on top."""
    ax.set(xlim=(1.0 - 0.05 * (k - 1), k + 0.05 * (k - 1)), ylim=(bottom, 0.0))
    ax.set(xticks=range(1, k + 1), yticks=[], xlabel="Average rank (1 is best)")
    ax.spines[["left", "right", "bottom"]].set_visible(False)
    ax.spines["top"].set_bounds(1, k)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    looks: dict[str, Any] = {"frameon": False, "fontsize": "small"}
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), **looks)
