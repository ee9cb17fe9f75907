"""HTML from Python values: what is no `Markup` is escaped, always."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Sequence

# Elements that have no content and no closing tag.
_VOID = {"img", "meta", "br"}
# Control characters that no HTML text may hold, and halves of characters.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
# Rows of a table that is not parted between printed pages.
_MOST_ON_A_PAGE = 35
# Powers of ten between which numbers are written without an exponent.
_SMALLEST, _GREATEST = -4, 9


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escape(value: object) -> Markup:
    """Return the text of a value as HTML, which `Markup` is already."""
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(_FORBIDDEN.sub("\ufffd", str(value)), quote=True))


def join(parts: Iterable[object]) -> Markup:
    """Return parts one after another."""
    return Markup("".join(escape(part) for part in parts))


def element(tag: str, *children: object, **attributes: object) -> Markup:
    """Return an element; `class_` and `aria_label` stand for class and aria-label."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for name, value in attributes.items()
    )
    if tag in _VOID:
        return Markup(f"<{tag}{written}>")
    return Markup(f"<{tag}{written}>{join(children)}</{tag}>")


def paragraph(*children: object) -> Markup:
    """Return a paragraph."""
    return element("p", *children)


def section(title: str, *children: object) -> Markup:
    """Return a section below a heading of its own."""
    anchor = re.sub("[^a-z]+", "-", title.lower()).strip("-")
    return element("section", element("h2", title), *children, id=anchor)


def table(
    caption: str, heads: Sequence[object], rows: Sequence[Sequence[object]]
) -> Markup:
    """Return a table in a box that it scrolls in; the first cells name the rows."""
    top = element("tr", *(element("th", head, scope="col") for head in heads))
    body = [
        element(
            "tr",
            element("th", row[0], scope="row"),
            *(element("td", cell) for cell in row[1:]),
        )
        for row in rows
    ]
    whole = element(
        "table",
        element("caption", caption),
        element("thead", top),
        element("tbody", *body),
        class_="long" if len(rows) > _MOST_ON_A_PAGE else "short",
    )
    # A box that scrolls must be within reach of a keyboard.
    return element(
        "div", whole, class_="scroll", role="region", aria_label=caption, tabindex=0
    )


def number(value: float | None, digits: int = 4) -> Markup:
    """Return a number as text beside all its digits for machines; None is a dash."""
    if value is None or math.isnan(value):
        return Markup("&ndash;")
    return element("data", show(value, digits), value=repr(float(value)))


def percent(share: float | None, digits: int = 1) -> Markup:
    """Return a share as a percentage; None is a dash."""
    if share is None:
        return number(None)
    return element("data", show_percent(share, digits), value=repr(float(share)))


def count(n: int, noun: str, many: str = "") -> str:
    """Return a number of things, "1 row" or "1,200 rows"."""
    return f"{n:,} {noun if n == 1 else many or noun + 's'}"


def show_percent(share: float, digits: int = 1) -> str:
    """Return a share as a percentage with so many digits, as people write it."""
    return f"{100.0 * share:.{digits}f}\u00a0%".replace("-", "\u2212")


def show(value: float, digits: int = 4) -> str:
    """Return a number with some significant digits, as people write it."""
    if not math.isfinite(value):
        return {"nan": "missing", "inf": "\u221e"}.get(str(value), "\u2212\u221e")
    power = math.floor(math.log10(abs(value))) if value else 0
    if not _SMALLEST <= power < _GREATEST:
        text = f"{value:.{digits - 1}e}"
    else:
        text = f"{value:,.{max(digits - 1 - power, 0)}f}"
    if "." in text and "e" not in text:
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", "\u2212")
