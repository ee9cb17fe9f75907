"""Pictures inside a page: what the plot functions draw, as `data:` addresses."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calibration._validation import plain_label
from localexpert.experts.report import ExpertReport
from localexpert.explain.permutation import PermutationImportance
from localexpert.plots.calibration import (
    plot_coverage,
    plot_pit,
    plot_quantile_reliability,
    plot_sharpness,
    plot_survival,
)
from localexpert.plots.features import (
    plot_expert_report,
    plot_importance,
    plot_threshold_reliability,
)
from localexpert.plots.forecast import plot_forecast
from localexpert.reporting.evidence import Evidence
from localexpert.reporting.groups import Grouping, show
from localexpert.reporting.scores import GroupFigures, is_right_censored

# Inches that stay readable on a phone, where a picture is as wide as the screen.
_NARROW = (5.0, 3.4)
# Above this many bytes a picture of lines becomes one of dots.
_MOST_BYTES = 150_000
# Characters of a group's name, and of a feature's beside the heat map.
_LONGEST, _LONGEST_FEATURE = 30, 22
# Longer numbers on axes are written as 10k, and there are at most this many.
_LONG_NUMBER, _SHORT_NUMBER, _MOST_TICKS, _FEW_TICKS = 1e4, 1e-3, 6, 3
# Numbers so written have six digits.
_LEAST_APART = 1e-4
# Fewer rows make bars of single outcomes.
_ROWS_A_BAR = 10
_LOOK = {
    "font.size": 10,
    "svg.fonttype": "none",  # small, and the reader's fonts know all scripts
    "svg.hashsalt": "localexpert",  # or names of parts would be drawn at random
}


def picture(
    draw: Callable[[Any], object],
    size: tuple[float, float] = _NARROW,
    panels: tuple[int, int] = (1, 1),
) -> str:
    """Return the address of what `draw` puts on the axes that it is given.

    Parameters
    ----------
    draw : callable
        Takes one matplotlib Axes, or an array of them if there are several panels.
    size : (float, float)
        In inches.
    panels : (int, int)
        Rows and columns of axes.

    Returns
    -------
    str
    """
    from matplotlib import style
    from matplotlib.figure import Figure

    with style.context(["default", _LOOK]), warnings.catch_warnings():
        # Matplotlib's font lacks some scripts; that of the reader draws them.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.subplots(*panels))
        for ax in figure.axes:
            _make_room(ax)
        if figure.legends:
            _fold_legend(figure)
        return _to_address(figure)


def draw_calibration(evidence: Evidence, scale: str, axis: str) -> dict[str, str]:
    """Draw PIT values, outcomes below quantiles, and errors against finite spreads.

    Of right-censored outcomes there is the survival function in the place of errors.
    """
    y, dist, seed = evidence.y, evidence.dist, evidence.seed
    bins = int(np.clip(len(y) // _ROWS_A_BAR, 4, 20))

    def draw_errors(ax: Any) -> None:
        plot_sharpness(y, dist, ax=ax)
        for side in (ax.xaxis, ax.yaxis):
            words = side.get_label_text(), plain_label(scale)
            side.set_label_text(" ".join(filter(None, words)))

    drawn: dict[str, Callable[[Any], object]] = {
        "pit": lambda ax: plot_pit(y, dist, ax=ax, bins=bins, random_state=seed),
        "quantiles": lambda ax: plot_quantile_reliability(
            y, dist, ax=ax, difference=True, random_state=seed
        ),
    }
    if not evidence.partial:
        drawn |= {"sharpness": draw_errors} if np.isfinite(dist.std()).any() else {}
    elif is_right_censored(y):
        drawn["survival"] = lambda ax: plot_survival(y, dist, target_name=axis, ax=ax)
    return {name: picture(draw) for name, draw in drawn.items()}


def draw_group(
    evidence: Evidence, grouping: Grouping, figures: Sequence[GroupFigures]
) -> str:
    """Draw the coverage of the groups of one grouping."""
    # Numbered, for the picture sorts names by coverage unless groups are numbers.
    place = grouping.group.astype(np.float64)

    def draw(ax: Any) -> None:
        plot_coverage(
            evidence.y, evidence.dist, place, coverage=evidence.coverage, ax=ax
        )
        named = [
            f"{plain_label(one.label, _LONGEST)} ({one.coverage.n})" for one in figures
        ]
        ax.set_yticks(np.arange(len(named)), named)
        ax.get_legend().remove()  # it is wider than a phone; words say the same

    return picture(draw, (5.0, min(1.3 + 0.3 * len(figures), 6.0)))


def draw_example(evidence: Evidence, row: int, axis: str) -> str:
    """Draw the density of one forecast."""
    y = float(evidence.ends[0][row]) if evidence.is_known[row] else None
    looks: dict[str, Any] = {"coverage": evidence.coverage, "y": y}
    looks |= {"interval": "central", "target_name": axis, "what": "density"}
    return picture(
        lambda ax: plot_forecast(evidence.dist, row, ax=ax, **looks), (5.0, 2.5)
    )


def draw_importance(found: PermutationImportance, shown: Sequence[int]) -> str:
    """Draw a heat map: features by quantiles."""

    def draw(ax: Any) -> None:
        plot_importance(
            found.pinball[shown],
            features=[
                plain_label(found.feature_names[j], _LONGEST_FEATURE) for j in shown
            ],
            columns=[f"{100 * level:g}%" for level in found.levels],
            sort=False,
            label="Increase of loss",
            ax=ax,
        )
        ax.set_xlabel("Quantile")

    return picture(draw, (5.0, 1.4 + 0.28 * len(shown)))


def draw_experts(model: Any) -> dict[str, str]:
    """Draw figures of a regressor's experts, and the reliability of four of them."""
    experts = getattr(model, "expert_report_", None)
    if not isinstance(experts, ExpertReport):
        return {}
    n = len(experts.thresholds)
    figures = picture(
        lambda axes: plot_expert_report(experts, axes=axes), (5.6, 6.4), (3, 2)
    )
    if n < 4:
        return {"experts": figures}
    numbers = np.linspace(0, n - 1, 6)[1:-1].round().astype(int).tolist()
    reliability = picture(
        lambda axes: plot_threshold_reliability(model, numbers=numbers, axes=axes),
        (5.2, 5.4),
        (2, 2),
    )
    return {"experts": figures, "reliability": reliability}


def _make_room(ax: Any) -> None:
    """Write fewer and shorter numbers on axes, which would run into each other."""
    from matplotlib.ticker import (
        EngFormatter,
        FuncFormatter,
        MaxNLocator,
        ScalarFormatter,
    )

    for axis in (ax.xaxis, ax.yaxis):
        if not isinstance(axis.get_major_formatter(), ScalarFormatter):
            continue
        ends = axis.get_view_interval()
        longest = np.abs(ends).max()
        # Near numbers would all be written alike.
        if longest >= _LONG_NUMBER and np.ptp(ends) > _LEAST_APART * longest:
            axis.set_major_formatter(EngFormatter(sep=""))
        elif longest < _SHORT_NUMBER:
            # A factor above the picture would hide the legend.
            axis.set_major_formatter(FuncFormatter(lambda value, _: show(value, 3)))
        locator = axis.get_major_locator()
        if isinstance(locator, MaxNLocator):
            most = _MOST_TICKS if longest >= _SHORT_NUMBER else _FEW_TICKS
            locator.set_params(nbins=most)


def _fold_legend(figure: Any) -> None:
    """Put the legend below panels into columns that a narrow picture has room for."""
    for legend in list(figure.legends):
        legend.remove()
    named: dict[str, Any] = {}
    for ax in figure.axes:
        for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
            named.setdefault(name, handle)
    looks: dict[str, Any] = {"frameon": False, "fontsize": "small"}
    looks |= {"loc": "outside lower center", "ncols": 2}
    figure.legend(named.values(), named.keys(), **looks)


def _to_address(figure: Any) -> str:
    """Return a figure as the address that holds its bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    kind = "svg+xml"
    if buffer.tell() > _MOST_BYTES:
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=160, metadata={"Software": None})
        kind = "png"
    coded = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f"data:image/{kind};base64,{coded}"
