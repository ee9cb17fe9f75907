"""`Questions` as columns of a table, and forecasts as a data frame or as HTML."""

from __future__ import annotations

import math
import reprlib
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from calibration._validation import (
    check_choice,
    check_level,
    check_vector,
    count_rows,
    refuse,
)
from calibration.typing import Float64Array
from localexpert._validation import check_levels, format_number

if TYPE_CHECKING:
    import pandas as pd

# The quantiles of a table if the user asks for nothing.
DEFAULT_LEVELS = (0.05, 0.5, 0.95)


@dataclass(frozen=True)
class Questions:
    """What is asked of every row, a column of answers for each question.

    Parameters
    ----------
    asked : dict of str to (str, ...)
        By the name of the column a method of `PredictiveDistribution`, and what it
        takes.
    """

    asked: dict[str, tuple[Any, ...]]

    @classmethod
    def of(
        cls,
        quantiles: ArrayLike | None = None,
        interval: ArrayLike | None = None,
        exceed: ArrayLike | None = None,
        risk: ArrayLike | None = None,
        tail: str = "upper",
    ) -> Questions:
        """Check what a user asks; a user who asks nothing gets three quantiles.

        Parameters
        ----------
        quantiles, interval, exceed, risk : number or sequence, optional
            Levels, coverages, values and confidences; see
            `PredictiveDistribution.to_frame`.
        tail : {"upper", "lower"}
        """
        check_choice(tail, "tail", ("upper", "lower"))
        if all(given is None for given in (quantiles, interval, exceed, risk)):
            quantiles = DEFAULT_LEVELS
        asked: dict[str, tuple[Any, ...]] = {"mean": ("mean",), "std": ("std",)}
        if quantiles is not None and np.size(quantiles) > 0:
            for level in check_levels(quantiles, "quantiles").tolist():
                asked[f"q{_name(level)}"] = "ppf", level
        for given in np.ravel([] if interval is None else interval).tolist():
            coverage = check_level(given, "interval")
            tail_mass = 0.5 * (1.0 - coverage)
            asked[f"low_{_name(coverage)}"] = "ppf", tail_mass
            asked[f"high_{_name(coverage)}"] = "ppf", 1.0 - tail_mass
        if exceed is not None and np.size(exceed) > 0:
            values = check_vector(np.atleast_1d(np.asarray(exceed)), "exceed")
            for value in values.tolist():
                asked[f"p_above_{_name(value)}"] = "sf", value
        for given in np.ravel([] if risk is None else risk).tolist():
            level = check_level(given, "risk")
            asked[f"var_{_name(level)}"] = "value_at_risk", level, tail
            asked[f"es_{_name(level)}"] = "expected_shortfall", level, tail
        return cls(asked)

    @property
    def names(self) -> list[str]:
        """Names of the columns of the answers, in order."""
        return list(self.asked)

    def answers(self, dist: Any) -> dict[str, Float64Array]:
        """Return the columns (n,) of forecasts of n rows, by their names.

        Parameters
        ----------
        dist : PredictiveDistribution
            Forecasts of n rows.

        Returns
        -------
        dict of str to ndarray of shape (n,)
            Such as mean, std, q0.05, low_0.9, high_0.9, p_above_100, var_0.95, es_0.95.
        """
        # All quantiles at once: each question by itself would look for its levels anew.
        levels = [given[0] for method, *given in self.asked.values() if method == "ppf"]
        quantiles = iter(dist.quantiles(levels).T if levels else ())
        return {
            name: next(quantiles) if method == "ppf" else getattr(dist, method)(*given)
            for name, (method, *given) in self.asked.items()
        }


def forecast_frame(columns: dict[str, Float64Array], index: Any) -> pd.DataFrame:
    """Return columns as a pandas data frame with the labels of an index."""
    try:
        import pandas
    except ImportError as error:
        msg = "`to_frame` needs pandas: pip install localexpert[io]."
        raise ImportError(msg) from error
    n = len(columns["mean"])
    if index is not None and count_rows(index) != n:
        got = count_rows(index) if count_rows(index) >= 0 else reprlib.repr(index)
        refuse("index", f"have a label for each of the {n} rows", got)
    frame: pd.DataFrame = pandas.DataFrame(columns, index=index)
    return frame


def _name(value: float) -> str:
    """Return the shortest text of a number; two numbers never have the same text."""
    short = f"{value:.10g}"
    return short if float(short) == value else repr(float(value))


_MOST_ROWS = 5
# All pictures share one axis: it reaches between these levels of every row.
_OUTERMOST = (0.005, 0.995)
_MOST_CELLS = 60
# Where all probability is on values, differences of the CDF are 0 up to this.
_ROUNDING = 1e-9
_WIDTH, _HEIGHT = 180, 32


def forecast_html(dist: Any) -> str:
    """Return a table of the first rows as HTML: figures, and densities as inline SVG.

    Parameters
    ----------
    dist : PredictiveDistribution

    Returns
    -------
    str
    """
    first = dist[:_MOST_ROWS]
    answers = Questions.of().answers(first)
    heads = ["", *answers]
    names = range(len(first)) if first.labels is None else first.labels
    rows = [
        [escape(str(name)), *(format_number(each[row]) for each in answers.values())]
        for row, name in enumerate(names)
    ]
    if rows:
        ends = first.quantiles(_OUTERMOST)
        low, high = ends[:, 0].min(), ends[:, 1].max()
        heads.append(f"density, {format_number(low)} to {format_number(high)}")
        pictures = _pictures(first, _edges(low, high, first.law.step))
        rows = [[*row, picture] for row, picture in zip(rows, pictures, strict=True)]
    lines = [f"<p>{escape(repr(dist))}</p>", "<table>", "<thead>"]
    lines += [_row(heads, "th"), "</thead>", "<tbody>"]
    lines += [*(_row(cells, "td") for cells in rows), "</tbody>", "</table>"]
    if rest := len(dist) - len(first):
        lines.append(f"<p>and {rest} {'row' if rest == 1 else 'rows'} more</p>")
    return "\n".join(["<div>", *lines, "</div>"])


def _row(cells: list[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}</tr>"


def _edges(low: float, high: float, step: float) -> Float64Array:
    """Return edges (C + 1,) of cells from `low` to `high`, whole steps of a lattice."""
    if step > 0.0:
        n_steps = round((high - low) / step) + 1
        steps_per_cell = math.ceil(n_steps / _MOST_CELLS)
        cells = np.arange(math.ceil(n_steps / steps_per_cell) + 1.0)
        return low + step * (steps_per_cell * cells - 0.5)
    # Values at the ends, and targets that are all equal, lie within a cell.
    margin = 0.05 * (high - low) or 0.01 * abs(low) or 0.01
    return np.linspace(low - margin, high + margin, _MOST_CELLS + 1)


def _pictures(dist: Any, edges: Float64Array) -> list[str]:
    """Return an SVG for each row (n): an area, and lines for values with probability.

    The highest point of a row is as high as the picture. If there is an area, the
    height of a line is its probability.
    """
    areas = np.diff(dist.cdf_at(edges), axis=1)
    lines = np.zeros_like(areas)
    # The CDF counts so, too: a value on an edge belongs to the cell that ends there.
    cells = np.searchsorted(edges, dist.atoms) - 1
    seen = (cells >= 0) & (cells < areas.shape[1])
    np.add.at(lines.T, cells[seen], dist.masses[:, seen].T)
    areas = np.clip(areas - lines, 0.0, None)
    pictures = []
    for area, line in zip(areas, lines, strict=True):
        if area.max() > _ROUNDING:
            pictures.append(_svg(area / area.max(), line))
        else:
            pictures.append(_svg(np.zeros_like(area), line / line.max()))
    return pictures


def _svg(area: Float64Array, lines: Float64Array) -> str:
    """Return one picture of heights between 0 and 1 of the cells, in steps."""
    x = np.linspace(0.0, _WIDTH, len(area) + 1)
    outline = np.column_stack([np.repeat(x, 2)[1:-1], np.repeat(area, 2)])
    points = [(0.0, 0.0), *outline, (float(_WIDTH), 0.0)]
    path = "L".join(f"{a:.1f},{_HEIGHT - (_HEIGHT - 2) * b:.1f}" for a, b in points)
    shapes = [f'<path d="M{path}Z" fill="currentColor" fill-opacity="0.35"/>']
    for cell in np.flatnonzero(lines > 0.01):
        top = _HEIGHT - (_HEIGHT - 2) * lines[cell]
        center = (x[cell] + x[cell + 1]) / 2.0
        shapes.append(
            f'<path d="M{center:.1f},{_HEIGHT}V{top:.1f}" stroke="currentColor" '
            'stroke-width="2"/>'
        )
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>'
    return "".join([head, "<title>density</title>", *shapes, "</svg>"])
