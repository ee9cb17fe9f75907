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
# Characters of a cell that are not parted between lines.
_LONGEST_ON_A_LINE = 14
# p-values below it are not told apart.
LEAST_P = 1e-4
# Powers of ten between which numbers are written without an exponent.
_SMALLEST, _GREATEST = -4, 9


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


class Section(Markup):
    """A section of a page, that a list of contents can name."""

    heading: str
    anchor: str


def escape(value: object) -> Markup:
    """Return the text of a value as HTML, which `Markup` is already."""
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(_FORBIDDEN.sub("\ufffd", str(value)), quote=True))


def enumerate_texts(texts: Sequence[str]) -> str:
    """Return texts as one would list them: "a, b and c"."""
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


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


def section(title: str, *children: object) -> Section:
    """Return a section below a heading of its own."""
    anchor = re.sub("[^a-z]+", "-", title.lower()).strip("-")
    heading = element("h2", title)
    made = Section(element("section", heading, *children, id=anchor))
    made.heading, made.anchor = title, anchor
    return made


def contents(sections: Iterable[Section]) -> Markup:
    """Return a list of sections with links to them."""
    links = [element("a", one.heading, href=f"#{one.anchor}") for one in sections]
    items = (element("li", link) for link in links)
    return element("nav", element("ul", *items), aria_label="Contents")


def details(summary: str, *children: object, expanded: bool) -> Markup:
    """Return what is opened by a click, or is open already."""
    state: dict[str, object] = {"open": "open"} if expanded else {}
    return element("details", element("summary", summary), *children, **state)


def table(
    caption: str, heads: Sequence[object], rows: Sequence[Sequence[object]]
) -> Markup:
    """Return a table in a box that it scrolls in; the first cells name the rows.

    A row of one cell is a heading of those below it.
    """
    top = element("tr", *(element("th", head, scope="col") for head in heads))
    body = [_write_row(row, len(heads)) for row in rows]
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


def _write_row(row: Sequence[object], width: int) -> Markup:
    """Return a row of a table."""
    if len(row) == 1:
        head = element("th", row[0], scope="rowgroup", colspan=width)
        return element("tr", head)
    head = element("th", row[0], scope="row")
    return element("tr", head, *map(_write_cell, row[1:]))


def _write_cell(cell: object) -> Markup:
    """Return a cell; numbers stay on one line, and long texts do not."""
    is_text = isinstance(cell, str) and not isinstance(cell, Markup)
    if is_text and len(str(cell)) > _LONGEST_ON_A_LINE:
        return element("td", cell, class_="words")
    return element("td", cell)


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


def probability(p: float) -> Markup:
    """Return a p-value, without digits that mean nothing."""
    text = f"< {LEAST_P:.4f}" if p < LEAST_P else show(p, 2)
    return element("data", text, value=repr(float(p)))


def show_percent(share: float, digits: int = 1) -> str:
    """Return a share as a percentage with so many digits, as people write it."""
    return f"{100.0 * share:.{digits}f}\u00a0%".replace("-", "\u2212")


def show(value: float, digits: int = 4) -> str:
    """Return a number with some significant digits, as people write it."""
    if not math.isfinite(value):
        return {"nan": "missing", "inf": "\u221e"}.get(str(value), "\u2212\u221e")
    power = math.floor(math.log10(abs(value))) if value else 0
    if not _SMALLEST <= power < _GREATEST:
        digit, exponent = f"{value:.{digits - 1}e}".split("e")
        text = f"{_trim(digit)}e{int(exponent)}"
    else:
        text = f"{value:,.{max(digits - 1 - power, 0)}f}"
    return _trim(text).replace("-", "\u2212")


def _trim(digits: str) -> str:
    """Return digits without zeros that end a fraction."""
    if "." not in digits or "e" in digits:
        return digits
    return digits.rstrip("0").rstrip(".")
