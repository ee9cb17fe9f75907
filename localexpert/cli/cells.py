"""Cells: the texts of a column, and the numbers that they stand for."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array

# A column of texts, or of numbers from a file that knows types (NaN is missing).
Cells: TypeAlias = list[str] | Float64Array

# What stands for nothing, in small letters.
MISSING = frozenset(
    ("", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "nat", "null", "none", "?", "-")
)
_BOOLEANS = {"true": 1.0, "false": 0.0}
_GROUPED = re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,\d+)?")


@dataclass(frozen=True)
class Dialect:
    """How a file writes its values.

    Parameters
    ----------
    decimal : {".", ","}
        Decimal mark.
    missing : tuple of str
        What stands for nothing besides the usual, in any case.
    """

    decimal: str = "."
    missing: tuple[str, ...] = ()

    def is_missing(self, text: str) -> bool:
        """Say whether a text stands for nothing."""
        return text.strip().casefold() in self.gaps

    @property
    def gaps(self) -> frozenset[str]:
        """All that stands for nothing, in small letters."""
        return MISSING.union(word.casefold() for word in self.missing)


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers of a column of n cells.

    Parameters
    ----------
    values : ndarray of shape (n,)
        NaN where missing or a word; may be infinite.
    is_word : ndarray of bool, shape (n,)
        Cells that hold something, but no number.
    """

    values: Float64Array
    is_word: NDArray[np.bool_]

    @property
    def first_word(self) -> int:
        """Place of the first word; there must be one."""
        return int(np.argmax(self.is_word))


def read_numbers(cells: Cells, dialect: Dialect) -> Numbers:
    """Read a column as numbers."""
    if not isinstance(cells, list):
        return Numbers(cells, np.zeros(len(cells), dtype=bool))
    plain = _read_plain(cells) if dialect.decimal == "." else None
    if plain is not None:
        return Numbers(plain, np.zeros(len(cells), dtype=bool))
    return _read_texts(cells, lambda text: parse_number(text, dialect.decimal), dialect)


def read_booleans(cells: Cells, dialect: Dialect) -> Numbers:
    """Read a column of true and false as 1 and 0."""
    if not isinstance(cells, list):
        return read_numbers(cells, dialect)
    return _read_texts(cells, lambda text: _BOOLEANS.get(text.casefold()), dialect)


def _read_plain(cells: list[str]) -> Float64Array | None:
    """Return the numbers if all are finite: most columns are read in one go."""
    try:
        values = np.array([float(cell) for cell in cells])
    except ValueError:
        return None
    # What Python reads and `parse_number` does not.
    return values if np.isfinite(values).all() and "_" not in "".join(cells) else None


def _read_texts(
    cells: list[str], parse: Callable[[str], float | None], dialect: Dialect
) -> Numbers:
    """Parse each distinct text once; None is a word, NaN is missing."""
    gaps = dialect.gaps
    known: dict[str, float | None] = {}
    values = np.full(len(cells), np.nan)
    is_word = np.zeros(len(cells), dtype=bool)
    for i, cell in enumerate(cells):
        if cell not in known:
            text = cell.strip()
            known[cell] = math.nan if text.casefold() in gaps else parse(text)
        number = known[cell]
        if number is None:
            is_word[i] = True
        else:
            values[i] = number
    return Numbers(values, is_word)


def parse_number(text: str, decimal: str = ".") -> float | None:
    """Return the number that a text is, or None.

    With a decimal comma, dots between groups of three digits are left out.
    """
    if decimal == ",":
        if _GROUPED.fullmatch(text):
            text = text.replace(".", "")
        text = text.replace(",", ".")
    # Python reads 1_000 and nan, which no table means.
    if "_" in text:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) else number


def as_texts(cells: Cells) -> list[str]:
    """Return a column as texts: whole numbers without a decimal point, NaN as ""."""
    if isinstance(cells, list):
        return [cell.strip() for cell in cells]
    return [_format_number(float(value)) for value in cells]


def _format_number(value: float) -> str:
    if math.isnan(value):
        return ""
    return str(int(value)) if value.is_integer() else repr(value)
