"""`Subject`: what a report is about, in the words of its readers."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from localexpert._validation import check_same_length

_TITLE = "Report on forecasts"


@dataclass(frozen=True)
class Subject:
    """Names of the target, its unit, the rows, and where they are from.

    Parameters
    ----------
    target : str
        Name of the target; empty where nobody has told it.
    unit : str
        Of the target; may be empty.
    source : str
        Where the rows are from, a file for instance; may be empty.
    title : str
    date : datetime.date
        Of the report.
    rows : list of str or None
        Names of the rows; None for those that they have.
    """

    target: str
    unit: str
    source: str
    title: str
    date: datetime.date
    rows: list[str] | None

    @property
    def axis(self) -> str:
        """What is written at an axis of the target."""
        name = self.target or "Target"
        return f"{name} ({self.unit})" if self.unit else name

    @property
    def scale(self) -> str:
        """What is written behind the name of a loss that is in the target's unit."""
        return f" ({self.unit})" if self.unit else ""


def read_subject(
    y: Any,
    n: int,
    *,
    title: str | None,
    target_name: str | None,
    unit: str | None,
    source: str | None,
    date: datetime.date | None,
    row_names: Iterable[object] | None,
) -> Subject:
    """Check the names of a report on n rows; a series `y` has a name of its own."""
    texts = {"title": title, "target_name": target_name, "unit": unit, "source": source}
    for name, text in texts.items():
        if text is not None and not isinstance(text, str):
            msg = f"`{name}` must be a text, got {text!r}."
            raise TypeError(msg)
    # Columns of a data frame may be called by anything.
    own = getattr(y, "name", None)
    target = str(own) if target_name is None and own is not None else target_name or ""
    if date is not None and not isinstance(date, datetime.date):
        msg = f"`date` must be a datetime.date, got {date!r}."
        raise TypeError(msg)
    return Subject(
        target,
        unit or "",
        source or "",
        title or (f"Forecasts of {target}" if target else _TITLE),
        # The reader's day, as a date alone: pages of one day and seed are the same.
        date or datetime.date.today(),
        _read_names(row_names, n),
    )


def _read_names(names: Iterable[object] | None, n: int) -> list[str] | None:
    """Return n names as texts."""
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Iterable):
        msg = f"`row_names` must hold a name for each row, got {names!r}."
        raise TypeError(msg)
    texts = [str(name) for name in names]
    check_same_length(n, "`X`", len(texts), "row_names")
    return texts
