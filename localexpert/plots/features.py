"""Pictures of a model: features, contributions, and experts by threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from calibration import reliability_curve
from calibration._validation import (
    check_flag,
    check_integer,
    check_level,
    check_list,
    plain_label,
    refuse,
)
from calibration.plots import canvas
from calibration.typing import Float64Array
from localexpert._validation import check_array, format_number, format_numbers
from localexpert.distribution.predictors import innermost
from localexpert.experts.report import ExpertReport, TaskRecord
from localexpert.explain.permutation import PermutationImportance
from localexpert.explain.shapley import Explanation
from localexpert.plots import inputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# So many columns have room for a number in each cell, and for a label each.
_MOST_NUMBERS, _MOST_HEADS = 8, 13
# Numbers on darker colours than this share are white.
_DARK = 0.6
# Letters of the name of a column, which may stand on end, and of all of them.
_LONGEST_HEAD, _FLAT_LETTERS = 16, 45
# Room beside the bars for their numbers, as a share of the bars' range.
_MARGIN = 0.22
_LONGEST_NAME = 70
# Room for the base below the lowest bar.
_FLOOR = -1.1
_MOST_TICKS = 5


@canvas.picture
def plot_importance(
    table: Any,
    *,
    features: Sequence[Any] | None = None,
    columns: Sequence[Any] | None = None,
    max_features: int = 20,
    sort: bool = True,
    label: str = "Importance",
    ax: Axes | None = None,
) -> Axes:
    """Draw a heat map of importance: features by thresholds or quantiles.

    Parameters
    ----------
    table : PermutationImportance, array-like or data frame of shape (p, k)
        Importance of p features for k thresholds or quantiles; of a
        PermutationImportance that for events, or without thresholds that for the CRPS.
        Where some of it is negative the colours are symmetric about 0.
    features : sequence of length p, optional
        Names of the rows; default those of a data frame, else their numbers.
    columns : sequence of length k, optional
        Names of the columns, in the same way; the name of an index that has one is
        that of the axis. Of many, some are written.
    max_features : int
        Only the features of greatest mean absolute importance are drawn.
    sort : bool
        Put the feature of greatest mean absolute importance on top, or leave features
        in the order of the table.
    label : str
        What the colours are, written beside their scale.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    Examples
    --------
    >>> from localexpert import plot_importance
    >>> table = [[0.1, 0.2], [0.5, 0.4]]
    >>> ax = plot_importance(table, features=["age", "income"], columns=[10, 20])
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['income', 'age']
    """
    if isinstance(table, PermutationImportance):
        table = table.to_frame("events" if len(table.thresholds) else "crps")
    elif not hasattr(table, "columns") and hasattr(table, "to_frame"):
        table = table.to_frame()
    values = check_array(table, "table", (None, None))
    if 0 in values.shape:
        refuse("table", "hold at least one value", f"shape {values.shape}")
    p, k = values.shape
    # A list has an `index` too, which is no names.
    frame = table if hasattr(table, "columns") else None
    rows = getattr(frame, "index", range(p)) if features is None else features
    heads = getattr(frame, "columns", range(k)) if columns is None else columns
    names = inputs.check_labels(rows, p, "features", "table")
    tops = inputs.check_labels(heads, k, "columns", "table", _LONGEST_HEAD)
    check_flag(sort, "sort")
    most = check_integer(max_features, "max_features", 1)
    order = np.argsort(-np.abs(values).mean(axis=1), kind="stable")[:most]
    shown = (order if sort else np.sort(order)).tolist()
    longest = max(len(names[i]) for i in shown)
    width = min(max(3.2 + 0.25 * k, 5.0) + 0.07 * longest, 9.0)
    ax = canvas.open_axes(ax, (width, max(2.2, 1.0 + 0.27 * len(shown))))
    _draw_cells(ax, values[shown], values, label)
    ax.set_yticks(np.arange(len(shown)), [names[i] for i in shown])
    step = -(-k // _MOST_HEADS)
    upright = max(map(len, tops)) > _FLAT_LETTERS / min(k, _MOST_HEADS)
    turn = 90 if upright else 0
    ax.set_xticks(np.arange(0, k, step), tops[::step], rotation=turn)
    ax.set_xlabel(inputs.name_of(heads, "Column"))
    few = f"{len(shown)} of {p} features"
    ax.set_ylabel(few if len(shown) < p else "Feature")
    return ax


@canvas.picture
def plot_explanation(
    explanation: Explanation,
    row: int = 0,
    *,
    max_features: int = 10,
    target_name: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how the contributions lead from the base to one row's forecast.

    Bars from below: each starts where the one under it ended, the smallest first.
    Black lines: one standard error either side, where contributions are sampled.

    Parameters
    ----------
    explanation : Explanation
    row : int
    max_features : int
        Bars; the other features are one bar more.
    target_name : str, optional
        What the target is called, with its unit; default: not named.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import plot_explanation
    >>> names, inputs = ("age", "dose"), np.array([["61", "2.5"]])
    >>> values, errors = np.array([[-1.0, 3.0]]), np.zeros((1, 2))
    >>> told = Explanation("mean", names, values, errors, 5.0, np.array([7.0]), inputs)
    >>> [label.get_text() for label in plot_explanation(told).get_yticklabels()]
    ['age = 61', 'dose = 2.5']
    """
    if not isinstance(explanation, Explanation):
        rule = "be an Explanation"
        refuse("explanation", rule, type(explanation).__name__, TypeError)
    parts = explanation.largest(row, max_features)[::-1]
    labels, *numbers = zip(*parts, strict=True)
    names = [plain_label(label) for label in labels]
    values, errors = np.array(numbers)
    base, total = explanation.base, float(explanation.total[row])
    starts = base + np.concatenate([[0.0], np.cumsum(values)[:-1]])
    width = max(5.0 + 0.07 * max(map(len, names)), 6.5)
    ax = canvas.open_axes(ax, (width, 1.6 + 0.38 * len(parts)))
    _draw_bars(ax, starts, values, errors)
    ax.set_yticks(np.arange(len(parts)), names)
    _mark_ends(ax, base, total, len(parts))
    name = explanation.of if target_name is None else f"{explanation.of}: {target_name}"
    ax.set_xlabel(plain_label(name, _LONGEST_NAME))
    return ax


def _draw_cells(ax: Axes, cells: Float64Array, table: Float64Array, label: str) -> None:
    """Draw cells in colours that are those of the whole table, with a scale.

    In few columns numbers are written into the cells, white on dark.
    """
    high = float(np.abs(table).max()) or 1.0
    cmap, low = ("RdBu_r", -high) if table.min() < 0.0 else ("Blues", 0.0)
    looks: dict[str, Any] = {"aspect": "auto", "interpolation": "nearest"}
    image = ax.imshow(cells, cmap=cmap, vmin=low, vmax=high, **looks)
    ax.figure.colorbar(image, ax=ax, label=label, pad=0.02)
    ax.set_xticks(np.arange(cells.shape[1] + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(cells.shape[0] + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", lw=0.8)
    ax.tick_params(which="both", length=0)
    ax.spines[:].set_visible(False)
    if cells.shape[1] <= _MOST_NUMBERS:
        for (i, j), value in np.ndenumerate(cells):
            color = "white" if abs(value) > _DARK * high else "0.15"
            text = format_number(float(f"{value:.2g}"))
            ax.text(j, i, text, ha="center", va="center", c=color, fontsize="small")


def _draw_bars(
    ax: Axes, starts: Float64Array, values: Float64Array, errors: Float64Array
) -> None:
    """Draw the bars, lines from each end to the next bar, and numbers beside them."""
    heights, ends = np.arange(len(values)), starts + values
    colours = ["C3" if value > 0.0 else "C0" for value in values]
    ax.barh(heights, values, left=starts, height=0.62, color=colours, alpha=0.85)
    if (errors > 0.0).any():
        looks: dict[str, Any] = {"ecolor": canvas.ink_of(ax), "elinewidth": 1.2}
        ax.errorbar(ends, heights, xerr=errors, fmt="none", **looks)
    ax.vlines(ends[:-1], heights[:-1], heights[1:], color=canvas.GREY, lw=0.8, zorder=0)
    drawn = zip(heights, values.tolist(), ends, errors, strict=True)
    for height, value, end, error in drawn:
        side, near = (1.0, "left") if value > 0.0 else (-1.0, "right")
        at = (end + side * error, height)
        text = f"{'+' if value >= 0.0 else ''}{format_number(value, 3)}"
        _write(ax, text, at, (4.0 * side, 0.0), ha=near, va="center")
    edges = np.concatenate([starts, ends - errors, ends + errors])
    room = _MARGIN * (np.ptp(edges) or 1.0)
    ax.set_xlim(edges.min() - room, edges.max() + room)


def _mark_ends(ax: Axes, base: float, total: float, n_bars: int) -> None:
    """Draw and name where the bars begin and where they lead."""
    from matplotlib.ticker import MaxNLocator

    ax.vlines(base, _FLOOR, 0.0, zorder=0, **canvas.DASHED)
    looks = canvas.DASHED | {"color": canvas.ink_of(ax)}
    ax.vlines(total, n_bars - 1, n_bars - 0.4, zorder=0, **looks)
    ax.set_ylim(_FLOOR, n_bars - 0.4)
    low: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "va": "bottom"}
    names = format_numbers([total, base], 3)
    _write(ax, f"forecast {names[0]}", (total, 1.0), (0.0, 3.0), ha="center", **low)
    low |= {"ha": "left", "color": canvas.GREY}
    _write(ax, f"base {names[1]}", (base, 0.0), (4.0, 3.0), **low)
    ax.spines[["top", "right"]].set_visible(False)
    ax.xaxis.set_major_locator(MaxNLocator(_MOST_TICKS))


def _write(ax: Axes, text: str, at: Any, offset: Any, **looks: Any) -> None:
    """Write a small text at an offset in points from what it names."""
    ax.annotate(text, at, offset, textcoords="offset points", fontsize="small", **looks)


_PANELS = ("Accuracy", "Kappa", "AUC", "Log loss", "Calibration error", "Base rate")
# Room around the values of a panel: a share of their range, and of probabilities this.
_ROOM, _LEAST_ROOM = 0.08, 0.02
_FEW_TICKS = 4
# Shares of the rows below the thresholds that are shown by default, as near as it gets.
_SHARES = np.linspace(0.1, 0.9, 6)


@canvas.panels
def plot_expert_report(report: Any, *, axes: Any = None) -> NDArray[np.object_]:
    """Draw how good each threshold's expert is, out of fold.

    Accuracy and kappa, mean over folds and one standard deviation either side; area
    under the ROC curve; log loss and expected calibration error, before and after
    calibration; base rate. Dashed: a forecast of the base rate for every row.

    Parameters
    ----------
    report : ExpertReport or LocalExpertRegressor
        A fitted regressor, or its attribute `expert_report_`.
    axes : array-like of 6 matplotlib Axes, optional
        Where to draw, in the order above, of any shape; default a new figure.

    Returns
    -------
    ndarray of shape (2, 3) of matplotlib Axes
        The axes that were drawn on.

    References
    ----------
    Normandin (2017), Local expert regression and calibration for probabilistic
    classification (talk), the figure `PlotLEs`.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.experts.report import ExpertReport
    >>> from localexpert.experts.report import TaskRecord
    >>> from localexpert import plot_expert_report
    >>> p = np.array([[0.2], [0.8], [0.3], [0.9]])
    >>> below = np.array([[False], [True], [True], [True]])
    >>> first, last = np.array([0, 1]), np.array([2, 3])
    >>> folds = [(last, first), (first, last)]
    >>> record = TaskRecord(np.zeros(1), p, p, below, folds, np.ones(4))
    >>> report = ExpertReport.of(record)
    >>> [panel.get_title() for panel in plot_expert_report(report)[0]]
    ['Accuracy', 'Kappa', 'AUC']
    """
    from matplotlib.ticker import MaxNLocator

    report = getattr(report, "expert_report_", report)
    if not isinstance(report, ExpertReport):
        rule = "be an ExpertReport or a regressor that has one"
        refuse("report", rule, type(report).__name__, TypeError)
    drawn = canvas.open_panels(axes, len(_PANELS), (2.93, 2.25), sharex=True)
    x = report.thresholds
    accuracy, kappa, auc, loss, error, rate = drawn
    base = report.base_rate
    for ax, folds in ((accuracy, report.accuracy), (kappa, report.kappa)):
        looks: dict[str, Any] = {"fmt": "o-", "ms": 4, "lw": 1.2, "capsize": 2}
        looks["label"] = "mean, sd over folds"
        ax.errorbar(x, folds.mean(axis=1), folds.std(axis=1), **looks)
    for ax, figures in ((auc, report.auc), (rate, base)):
        ax.plot(x, figures, "o-", ms=4, lw=1.2)
    _draw_both(loss, (x, report.log_loss_raw), (x, report.log_loss))
    raw, after = report.calibration_error_raw, report.calibration_error
    _draw_both(error, (x, raw), (x, after))
    grey = canvas.DASHED | {"zorder": 1}
    kappa.axhline(0.0, **grey)
    auc.axhline(0.5, **grey)
    # The log loss of the base rate itself is its entropy, 0 for one class.
    for ax, got in (
        (accuracy, np.maximum(base, 1.0 - base)),
        (loss, entr(base) + entr(1.0 - base)),
    ):
        ax.plot(x, got, label="base rate alone", **grey)
    for ax, name in zip(drawn, _PANELS, strict=True):
        ax.set_title(name, fontsize="medium")
        ax.margins(y=_ROOM)
        ax.grid(alpha=0.25)
        ax.xaxis.set_major_locator(MaxNLocator(_FEW_TICKS))
    for ax in drawn[3:]:
        ax.set_xlabel("Threshold")
    error.set_ylim(bottom=0.0)
    rate.set_ylim(-0.02, 1.02)
    return drawn.reshape(2, 3)


@canvas.panels
def plot_threshold_reliability(
    model: Any,
    *,
    numbers: Sequence[int] | None = None,
    n_bins: int = 10,
    coverage: float = 0.9,
    axes: Any = None,
) -> NDArray[np.object_]:
    """Draw the reliability of thresholds' probabilities, before and after calibration.

    All are out of fold: no row is forecast by experts or calibrators that saw it.
    Each panel shows the range of its own curves.

    Parameters
    ----------
    model : LocalExpertRegressor or TaskRecord
        Fitted, also inside of a wrapper that `predict_dist` understands, or the
        `tasks_` of its `forecaster_`.
    numbers : sequence of int, optional
        Which thresholds, by their number from 0; default up to six, those with
        nearest to 10 %, 26 %, ..., 90 % of the rows below them.
    n_bins : int
        Bins of equal frequency of each curve.
    coverage : float
        Probability of the band of a calibrated forecast in each bin, in (0, 1).
    axes : array-like of matplotlib Axes, optional
        One for each threshold; default a new figure with three in a row.

    Returns
    -------
    ndarray of shape (k,) of matplotlib Axes
        The axes that were drawn on.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.experts.report import TaskRecord
    >>> from localexpert import plot_threshold_reliability
    >>> p = np.linspace(0.01, 0.99, 40)[:, None]
    >>> below = np.arange(40)[:, None] % 3 > 0
    >>> tasks = TaskRecord(np.array([1.5]), p, p**0.5, below, [], np.ones(40))
    >>> [ax.get_title() for ax in plot_threshold_reliability(tasks, n_bins=4)]
    ['1.5: 65% below']
    """
    from matplotlib.ticker import MaxNLocator

    tasks = getattr(getattr(innermost(model), "forecaster_", None), "tasks_", model)
    if not isinstance(tasks, TaskRecord):
        rule = "be a TaskRecord or a fitted LocalExpertRegressor whose target varies"
        refuse("model", rule, type(model).__name__, TypeError)
    rate = tasks.weight @ tasks.below / tasks.weight.sum()
    shown = _pick_thresholds(rate, numbers)
    options: dict[str, Any] = {
        "sample_weight": tasks.weight,
        "n_bins": check_integer(n_bins, "n_bins", 1),
        "level": check_level(coverage, "coverage"),
    }
    drawn = canvas.open_panels(axes, len(shown), (2.0, 2.1))
    names = format_numbers(tasks.thresholds[shown].tolist(), 4)
    for ax, k, threshold in zip(drawn, shown, names, strict=True):
        below = tasks.below[:, k]
        raw = reliability_curve(below, tasks.raw[:, k], bands=None, **options)
        after = reliability_curve(below, tasks.calibrated[:, k], **options)
        pairs = [(one.mean_prob, one.event_rate) for one in (raw, after)]
        seen = np.concatenate([np.ravel(pair) for pair in pairs])
        margin = max(_ROOM * float(np.ptp(seen)), _LEAST_ROOM)
        low = max(float(seen.min()) - margin, -_LEAST_ROOM)
        high = min(float(seen.max()) + margin, 1.0 + _LEAST_ROOM)
        # A square that holds the curves, and where the second would lie if calibrated.
        ax.set(xlim=(low, high), ylim=(low, high), aspect="equal")
        ax.plot([0, 1], [0, 1], zorder=1, **canvas.DASHED)
        label = f"{inputs.format_percent(after.level)} consistency band"
        looks: dict[str, Any] = {"color": "C0", "alpha": 0.18, "lw": 0, "label": label}
        ax.fill_between(after.mean_prob, after.lower, after.upper, **looks)
        _draw_both(ax, *pairs)
        share = inputs.format_percent(rate[k])
        ax.set_title(f"{threshold}: {share} below", fontsize="medium")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator(_FEW_TICKS))
        ax.grid(alpha=0.25)
    canvas.name_outer(drawn, "Forecast", "Share below")
    return drawn


def _draw_both(ax: Axes, raw: Any, calibrated: Any) -> None:
    """Draw a curve before and after; where they agree the ring is around the dot."""
    ring: dict[str, Any] = {"ms": 7, "mfc": "none", "label": "before calibration"}
    ax.plot(*raw, "o-", color="C1", lw=1.2, **ring)
    ax.plot(*calibrated, "o-", color="C0", ms=4, lw=1.2, label="after calibration")


def _pick_thresholds(rate: Float64Array, numbers: Sequence[int] | None) -> list[int]:
    """Return the numbers of the thresholds to show, by the shares below them, (N,)."""
    n = len(rate)
    if numbers is None:
        nearest = np.abs(rate[:, None] - _SHARES).argmin(axis=0)
        return [int(k) for k in np.unique(nearest)]
    listed = check_list(numbers, "numbers", "numbers of thresholds")
    chosen = [check_integer(k, "numbers", 0) for k in listed]
    if not chosen or max(chosen) >= n:
        got = f"{max(chosen)}" if chosen else "none"
        refuse("numbers", f"hold at least one number below {n}", got)
    return chosen
