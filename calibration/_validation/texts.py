"""How numbers and names of users are written in messages and pictures."""

import re
from typing import Any

# Longer names are cut, for a label that fills a picture leaves none of it.
_LONGEST_LABEL = 40


def show(value: Any) -> str:
    """Return a number as text that reads back as the number, for one out of bounds.

    Six digits where they are all: a bound that is missed by less must not be shown as
    if it were met.
    """
    text = f"{value:g}"
    return text if float(text) == float(value) else repr(float(value))


def plain_label(text: object, most: int = _LONGEST_LABEL) -> str:
    r"""Return a user's text as matplotlib may write it: one line, and no formula.

    A dollar is escaped once, whoever did it. Long texts lose their middle, for names
    often differ at their ends. Labels that begin with an underscore would be left out
    of legends, so a space goes before it.
    """
    words = " ".join(str(text).split())
    if len(words) > most:
        tail = (most - 1) // 2
        words = f"{words[: most - 1 - tail]}\u2026{words[len(words) - tail :]}"
    words = re.sub(r"(?<!\\)\$", r"\\$", words)
    return f" {words}" if words.startswith("_") else words
