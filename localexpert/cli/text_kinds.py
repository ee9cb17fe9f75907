"""What a column of texts can be in a file that knows types, found part by part."""

from __future__ import annotations

import re
from typing import Any

from localexpert.cli.cells import (
    LAST_WHOLE,
    Cells,
    Dialect,
    Distinct,
    load_module,
    parse_booleans,
)
from localexpert.cli.number_formats import PLAIN

_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)")
# Keys such as 00123, which are no numbers though they could be read as such.
_KEY = re.compile(r"[+-]?0[0-9]|\+")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?")
# Names of types of Arrow: the first that all texts can be is taken.
_KINDS = ("int64", "uint64", "date32", "timestamp", "bool", "float64")


class TextKinds:
    """Types that all texts of a column can be, so far.

    Parameters
    ----------
    dialect : Dialect
        Of the input.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.is_met = False
        self.left: list[str] = list(_KINDS)

    def add(self, cells: Cells) -> None:
        """Leave the types that the texts of a part, shape (n,), can be as well."""
        words = Distinct.of(cells, self.dialect).words
        self.is_met = self.is_met or bool(words)
        if words:
            self.left = [kind for kind in self.left if self._read(words, kind)]

    def typed(self, cells: Cells) -> Any:
        """Return texts of a part, shape (n,), as an array of the type of all."""
        if not self.left or not self.is_met:
            return self.plain(cells)
        arrow = load_arrow()
        texts = Distinct.of(cells, self.dialect)
        kind = self.left[0]
        values = self._read(texts.words, kind)
        read = iter([] if values is None else values.to_pylist())
        all_of_them = [None if gap else next(read) for gap in texts.is_gap]
        values = arrow.array(all_of_them, _arrow_type(kind))
        return values.take(arrow.array(texts.codes))

    def plain(self, cells: Cells) -> Any:
        """Return texts of a part, shape (n,), as texts."""
        arrow = load_arrow()
        return arrow.array([cell or None for cell in cells], arrow.string())

    def _read(self, words: list[str], kind: str) -> Any:
        """Return texts that are no gaps as an array of a type, None if they are not."""
        arrow = load_arrow()
        values: Any = _values_of(words, kind, self.dialect)
        if values is None:
            return None
        given = None if kind in ("date32", "timestamp") else _arrow_type(kind)
        try:
            return arrow.array(values, given).cast(_arrow_type(kind))
        except (arrow.ArrowInvalid, OverflowError):
            return None


def load_arrow() -> Any:
    """Return the module pyarrow, which is an optional dependency."""
    return load_module("pyarrow", "Parquet needs pyarrow")


def _arrow_type(kind: str) -> Any:
    arrow = load_arrow()
    if kind == "timestamp":
        return arrow.timestamp("us")
    return getattr(arrow, {"bool": "bool_"}.get(kind, kind))()


def _values_of(words: list[str], kind: str, dialect: Dialect) -> list[Any] | None:
    """Return what Arrow makes values of a type of, None where a text is no such."""
    if any(_KEY.match(word) for word in words):
        return None
    if kind in ("int64", "uint64"):
        return list(map(int, words)) if all(map(_WHOLE.fullmatch, words)) else None
    if kind in ("date32", "timestamp"):
        pattern = _DAY if kind == "date32" else _MOMENT
        return words if all(map(pattern.fullmatch, words)) else None
    if kind == "bool":
        flags = parse_booleans(words)
        return None if None in flags else list(map(bool, flags))
    values = list(map(PLAIN.within(dialect).parse, words))
    # Beyond the last of them whole numbers would be rounded.
    fit = all(v is not None and abs(v) <= LAST_WHOLE for v in values)
    return values if fit else None
