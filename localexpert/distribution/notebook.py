"""A notebook shows forecasts so: figures of a few rows beside small densities."""

from __future__ import annotations

import math
from html import escape
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert._validation import format_number
from localexpert.distribution.frame import Questions

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
    rows = [
        [str(row), *(format_number(column[row]) for column in answers.values())]
        for row in range(len(first))
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
