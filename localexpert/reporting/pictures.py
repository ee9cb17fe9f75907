"""Pictures inside a page: what the plot functions draw, as `data:` addresses."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable
from typing import Any

from localexpert.reporting.markup import Markup, element

# Inches that stay readable on a phone, where a picture is as wide as the screen.
NARROW = (5.0, 3.4)
# Above this many bytes a picture of lines becomes one of dots.
_MOST_BYTES = 150_000
_LONGEST_LABEL = 30
# From here on numbers on axes are written as 10k, and there are this many at most.
_LONG_NUMBER, _MOST_TICKS = 1e4, 6
_LOOK = {
    "font.size": 10,
    "svg.fonttype": "none",  # small, and the reader's fonts know all scripts
    "svg.hashsalt": "localexpert",  # or names of parts would be drawn at random
}


def picture(
    draw: Callable[[Any], object],
    alt: str,
    caption: object,
    *,
    size: tuple[float, float] = NARROW,
    panels: tuple[int, int] = (1, 1),
    wide: bool = False,
) -> Markup:
    """Return a figure of what `draw` puts on the axes that it is given.

    Parameters
    ----------
    draw : callable
        Takes one matplotlib Axes, or an array of them if there are several panels.
    alt : str
        What is to be seen, for those who cannot see it.
    caption : str
        How to read it.
    size : (float, float)
        In inches.
    panels : (int, int)
        Rows and columns of axes.
    wide : bool
        Whether it may be as wide as the page.

    Returns
    -------
    Markup
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
        address = _to_address(figure)
    image = element("img", src=address, alt=alt)
    look = {"class_": "wide"} if wide else {}
    return element("figure", image, element("figcaption", caption), **look)


def label(text: object, longest: int = _LONGEST_LABEL) -> str:
    """Return a text as matplotlib may write it: not too long, and no formula."""
    words = str(text).replace("\n", " ")
    if len(words) > longest:
        words = f"{words[: longest - 1]}\u2026"
    return words.replace("$", r"\$")


def _make_room(ax: Any) -> None:
    """Write fewer and shorter numbers on axes, which would run into each other."""
    from matplotlib.ticker import EngFormatter, MaxNLocator, ScalarFormatter

    for axis in (ax.xaxis, ax.yaxis):
        if not isinstance(axis.get_major_formatter(), ScalarFormatter):
            continue
        if max(abs(end) for end in axis.get_view_interval()) >= _LONG_NUMBER:
            axis.set_major_formatter(EngFormatter(sep=""))
        locator = axis.get_major_locator()
        if isinstance(locator, MaxNLocator):
            locator.set_params(nbins=_MOST_TICKS)


def _to_address(figure: Any) -> str:
    """Return a figure as the address of its own bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    kind = "svg+xml"
    if buffer.tell() > _MOST_BYTES:
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=160, metadata={"Software": None})
        kind = "png"
    coded = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f"data:image/{kind};base64,{coded}"
