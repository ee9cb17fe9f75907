"""Pictures inside a page: what the plot functions draw, as `data:` addresses."""

from __future__ import annotations

import base64
import io
import re
import warnings
from collections.abc import Callable
from typing import Any

from localexpert.reporting.markup import Markup, element, show

# Inches that stay readable on a phone, where a picture is as wide as the screen.
NARROW = (5.0, 3.4)
# Above this many bytes a picture of lines becomes one of dots.
_MOST_BYTES = 150_000
_LONGEST_LABEL = 30
# From here on numbers on axes are written as 10k, and there are this many at most.
_LONG_NUMBER, _SHORT_NUMBER, _MOST_TICKS, _FEW_TICKS = 1e4, 1e-3, 6, 3
# Of a legend below panels, which a narrow picture has no room for in one line.
_LEGEND_COLUMNS = 2
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
            _write_alike(ax)
        if figure.legends:
            _fold_legend(figure)
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
    from matplotlib.ticker import (
        EngFormatter,
        FuncFormatter,
        MaxNLocator,
        ScalarFormatter,
    )

    for axis in (ax.xaxis, ax.yaxis):
        if not isinstance(axis.get_major_formatter(), ScalarFormatter):
            continue
        longest = max(abs(end) for end in axis.get_view_interval())
        if longest >= _LONG_NUMBER:
            axis.set_major_formatter(EngFormatter(sep=""))
        elif longest < _SHORT_NUMBER:
            # Without a factor above the picture, where the legend is.
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
    looks |= {"loc": "outside lower center", "ncols": _LEGEND_COLUMNS}
    figure.legend(named.values(), named.keys(), **looks)


def _write_alike(ax: Any) -> None:
    """Write numbers of a legend as those of the text are written."""
    legend = ax.get_legend()
    for text in legend.get_texts() if legend is not None else ():
        words = re.sub(r"(?<![\d.])\d{4,}", _mark_thousands, text.get_text())
        text.set_text(re.sub(r"(?<=\d)e([+-])0*", _write_exponent, words))


def _mark_thousands(digits: re.Match[str]) -> str:
    return f"{int(digits[0]):,}"


def _write_exponent(sign: re.Match[str]) -> str:
    return "e" if sign[1] == "+" else "e\u2212"


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
