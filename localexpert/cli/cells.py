"""Cells: the texts of a column, and the numbers that they stand for."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.cli.console import UserError

# A column of texts (objects), or of numbers from a file that knows types (float64,
# NaN is missing). Whole numbers that float64 would round are texts.
Cells: TypeAlias = NDArray[Any]
# Turns texts into numbers, one each; None or NaN is a word.
Parse: TypeAlias = Callable[[list[str]], Sequence[float | None] | Float64Array]

# What stands for nothing, in small letters.
MISSING = frozenset(
    ("", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "nat", "null", "none", "?", "-")
)
# float64 holds all whole numbers up to here, and not all beyond.
LAST_WHOLE = 2**53
_BOOLEANS = {"true": 1.0, "false": 0.0}


def load_pandas() -> Any:
    """Return the module pandas, which is an optional dependency."""
    return load_module("pandas", 'tables need pandas: pip install "localexpert[io]"')


def load_module(name: str, message: str) -> Any:
    """Return a module, or refuse with a message what needs it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UserError(message) from error


@dataclass(frozen=True)
class Dialect:
    """How a file writes its values.

    Parameters
    ----------
    decimal : {".", ","}
        Decimal mark.
    missing : tuple of str
        What stands for nothing besides the usual, in any case.
    thousands : {"", ",", ".", " ", "'"}
        Mark between groups of three digits; "" is to be found out.
    """

    decimal: str = "."
    missing: tuple[str, ...] = ()
    thousands: str = ""

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
    seen : str
        What is said of numbers that are not plain, if there are any.
    """

    values: Float64Array
    is_word: NDArray[np.bool_]
    seen: str = ""


@dataclass(frozen=True, eq=False)
class Distinct:
    """A column of n cells as its different texts: each of them is parsed once.

    Parameters
    ----------
    texts : list of str
        Without blanks at their ends.
    is_gap : ndarray of bool
        Texts that stand for nothing.
    codes : ndarray of int, shape (n,)
        Which text each cell holds.
    """

    texts: list[str]
    is_gap: NDArray[np.bool_]
    codes: NDArray[np.intp]

    @classmethod
    def of(cls, cells: Cells, dialect: Dialect) -> Distinct:
        """Find the different texts of a column."""
        is_text = cells.dtype == object
        codes, found = load_pandas().factorize(cells, use_na_sentinel=is_text)
        texts, gaps = list(map(str.strip, as_texts(found))), dialect.gaps
        is_gap = np.array([text.casefold() in gaps for text in texts], dtype=bool)
        return cls(texts, is_gap, codes)

    @property
    def words(self) -> list[str]:
        """The texts that stand for something."""
        return list(compress(self.texts, ~self.is_gap))

    def read(self, parse: Parse) -> Numbers:
        """Return the number of each cell."""
        values = np.full(len(self.texts), np.nan)
        values[~self.is_gap] = np.array(parse(self.words), dtype=np.float64)
        is_word = np.isnan(values) & ~self.is_gap
        return Numbers(values[self.codes], is_word[self.codes])


def read_plain(cells: Cells, dialect: Dialect) -> Float64Array | None:
    """Return the numbers if all are finite or gaps: most columns are read in one go."""
    if cells.dtype != object:
        return cells
    joined = "".join(cells)
    # What Python reads and no table means, and what it reads otherwise.
    if "_" in joined or (dialect.decimal == "," and "." in joined):
        return None
    texts = cells
    if dialect.decimal == ",":
        texts = np.array([cell.replace(",", ".") for cell in cells], dtype=object)
    with suppress(ValueError):
        values = texts.astype(np.float64)
        if np.isfinite(values).all():
            return values
    is_gap = load_pandas().Series(cells, dtype=object).isin(_spellings(dialect))
    with suppress(ValueError):
        values = np.where(is_gap, "nan", texts).astype(np.float64)
        if (np.isfinite(values) | is_gap).all():
            return values
    return None


def spelled_gaps(cells: Cells, dialect: Dialect) -> set[str]:
    """Return the texts in a column that stand for nothing, without empty ones."""
    if cells.dtype != object:
        return set()
    is_gap = load_pandas().Series(cells, dtype=object).isin(_spellings(dialect))
    return set(cells[is_gap.to_numpy()]) - {""}


def _spellings(dialect: Dialect) -> list[str]:
    """Return what most often stands for nothing, letter by letter."""
    gaps = dialect.gaps
    return ["NaN", "NaT", *gaps, *map(str.upper, gaps), *map(str.title, gaps)]


def parse_booleans(texts: list[str]) -> list[float | None]:
    """Return 1 for true and 0 for false."""
    return [_BOOLEANS.get(text.casefold()) for text in texts]


def as_texts(cells: Cells) -> list[str]:
    """Return a column as texts: whole numbers without a decimal point, NaN as ""."""
    texts: list[str] = cells.tolist()
    return texts if cells.dtype == object else list(map(_format_number, cells))


def _format_number(value: float) -> str:
    if math.isnan(value):
        return ""
    whole = value.is_integer() and abs(value) <= LAST_WHOLE
    return f"{value:.0f}" if whole else repr(float(value))
