"""`NumberFormat`: how the numbers of a column are written, and how they are read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from localexpert.cli.cells import Cells, Dialect, Distinct, Numbers, read_plain

# Marks between groups of three digits, and what is taken for each of them.
MARKS = {",": ",", ".": r"\.", " ": "[ \u00a0\u2009\u202f]", "'": "['\u2019]"}
_OTHER = {".": ",", ",": "."}
_NAMES = {",": "comma", ".": "point", " ": "blank", "'": "apostrophe"}
_CODES = """
AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD
BTN BWP BYN BZD CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB
EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HRK HTG HUF IDR ILS INR IQD IRR
ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL
MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN
PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP
STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES VND
VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG
"""
_MONEY = "|".join(["[$€£¥]", *_CODES.split()])
_BEFORE = re.compile(rf"([+-]?)\s?({_MONEY})\s?([+-]?)([\d.,].*)")
_AFTER = re.compile(rf"(.*[\d.,])\s?({_MONEY}|%)")
# What no format reads is told by its first letters in nearly all columns of words.
_LIKELY = re.compile(rf"[+-]?\s?(?:{_MONEY})?\s?[+-]?[.,]?\d.*")
_LIKE = re.compile(
    rf"[+-]?(?:\d{{1,3}}(?:(?:{'|'.join(MARKS.values())})\d{{3}})*|\d+)(?:[.,]\d+)?"
)


@dataclass(frozen=True)
class NumberFormat:
    r"""How the numbers of a column are written.

    Parameters
    ----------
    thousands : {"", ",", ".", " ", "'"}
        What parts groups of three digits; numbers without it are numbers too.
    unit : str
        "%", which must stand behind every number, or the sign or code of a currency,
        before or after it, which may be left out.
    decimal : {"", ".", ","}
        Decimal mark; "" is that of the file.
    """

    thousands: str = ""
    unit: str = ""
    decimal: str = ""

    def within(self, dialect: Dialect) -> NumberFormat:
        """Return the format in a file: its marks, where they are not the column's."""
        decimal = self.decimal or dialect.decimal
        thousands = dialect.thousands or self.thousands
        if not thousands and not self.decimal and decimal == ",":
            # Whoever writes decimal commas may write points between thousands.
            thousands = "."
        if thousands == decimal:
            thousands = _OTHER[decimal]
        return NumberFormat(thousands, self.unit, decimal)

    def parse(self, text: str) -> float | None:
        """Return the number that a text is, or None; all marks must be known."""
        unit, rest = split_unit(text) if self.unit else ("", text)
        if unit != self.unit and (unit or self.unit == "%"):
            return None
        if self.thousands and _grouped(self.thousands, self.decimal).fullmatch(rest):
            rest = re.sub(MARKS[self.thousands], "", rest)
        if self.decimal == ",":
            # Points here are neither between thousands nor decimal.
            rest = "_" if "." in rest else rest.replace(",", ".")
        # Python reads 1_000 and nan, which no table means.
        if "_" in rest:
            return None
        try:
            number = float(rest)
        except ValueError:
            return None
        return None if math.isnan(number) else number

    def reads(self, texts: Iterable[str]) -> bool:
        """Return whether all texts are numbers; all marks must be known."""
        return all(self.parse(text) is not None for text in texts)

    @property
    def text(self) -> str:
        """What is said of the format, with an example; "" for a plain one."""
        said = []
        if self.unit:
            said.append("in percent" if self.unit == "%" else f"in {self.unit}")
        if self.thousands:
            said.append("with thousands marks")
        if not said:
            return f"with a decimal {_NAMES[self.decimal]}" if self.decimal else ""
        number = f"1{self.thousands}234" if self.thousands else "50"
        plain = number.replace(self.thousands, "") if self.thousands else number
        shown = f"{number}%" if self.unit == "%" else f"{self.unit}{number}"
        return f"{' '.join(said)} ({shown!r} is {plain})"


#: Digits, and what decimal mark the file has.
PLAIN = NumberFormat()


def read_numbers(cells: Cells, dialect: Dialect, written: NumberFormat) -> Numbers:
    """Read a column as numbers of a format."""
    form = written.within(dialect)
    if form.unit != "%":
        plain = read_plain(cells, replace(dialect, decimal=form.decimal))
        if plain is not None:
            seen = f"as numbers {written.text}" if written.decimal else ""
            return Numbers(plain, np.zeros(len(cells), dtype=bool), seen)
    texts = Distinct.of(cells, dialect)
    numbers = texts.read(lambda words: list(map(form.parse, words)))
    shown = _find_shown([w for w in texts.words if form.parse(w) is not None], form)
    text = replace(shown, decimal=written.decimal).text
    return replace(numbers, seen=f"as numbers {text}" if text else "")


def _find_shown(texts: list[str], form: NumberFormat) -> NumberFormat:
    """Return as much of a format as numbers show."""
    units, rests = zip(*map(split_unit, texts), strict=True) if texts else ((), ())
    grouped = form.thousands and _grouped(form.thousands, form.decimal).fullmatch
    mark = form.thousands if grouped and any(map(grouped, rests)) else ""
    return NumberFormat(mark, form.unit if any(units) else "")


def find_format(words: list[str], dialect: Dialect) -> NumberFormat | None:
    """Return the one format in which all words are numbers; None if there is none.

    Marks between thousands are found where they always stand before three digits and
    no number of more than three digits lacks them; those of the dialect may be lacking.
    """
    if not words or not _may_be_number(words[0]):
        return None
    units = {split_unit(word)[0] for word in words}
    unit = max(units)
    if len(units - {""}) > 1 or (unit == "%" and "" in units):
        return None
    given, decimal = dialect.thousands, dialect.decimal
    for mark in (given,) if given else ("", *MARKS):
        form = NumberFormat(mark, unit, decimal)
        if mark == decimal or not form.reads(words):
            continue
        rests = [split_unit(word)[1] for word in words]
        if mark in (",", ".") and not given:
            strict = _grouped(mark, decimal, least=0)
            if not all(map(strict.fullmatch, rests)):
                continue
        shown = mark and any(map(_grouped(mark, decimal).fullmatch, rests))
        return NumberFormat(mark if shown else "", unit)
    if decimal == ",":
        # A column that a machine has written, in a file for people.
        form = NumberFormat("", unit, ".")
        if form.reads(words):
            return form
    return None


def hint_at_format(words: list[str], dialect: Dialect, cell: str) -> str:
    """Return what would make numbers of the words of a column, "" if nothing would.

    The cell is one that is no number.
    """
    number = replace(PLAIN, decimal=dialect.decimal).parse(cell)
    if number is not None:
        if "inf" in cell.casefold():
            return "leave cells empty whose value is not known"
        return "no number beyond 1.8e308 can be held" if math.isinf(number) else ""
    for tried in (words, [cell]):
        cures = list(_find_cures(tried, dialect, alone=tried is not words))
        if cures:
            return f"say {' or '.join(cures)}"
    if _LIKELY.fullmatch(cell):
        units = sorted({split_unit(word)[0] for word in words} - {""})
        if len(units) > 1:
            return f"its column must have one unit, and has {', '.join(units)}"
        if units == ["%"]:
            return "write % after all numbers of the column or after none"
    return ""


def _find_cures(words: list[str], dialect: Dialect, *, alone: bool) -> Iterator[str]:
    """Yield options that let all words be numbers."""
    mark = _OTHER[dialect.decimal]
    form = find_format(words, Dialect(mark))
    if form is not None and not (alone and form.unit):
        yield f"--decimal {mark} if the {_NAMES[mark]} is a decimal mark"
    for mark, name in _NAMES.items():
        # With marks that are found by themselves a column needs no option.
        if mark == dialect.decimal or (alone and find_format(words, dialect)):
            continue
        if find_format(words, replace(dialect, thousands=mark)) is not None:
            shown = mark if mark in _OTHER else name
            yield f"--thousands {shown} if the {name} parts thousands"


def is_like_number(text: str) -> bool:
    """Return whether a text may be a number of some format."""
    if not _may_be_number(text):
        return False
    plain = NumberFormat(decimal=".").parse(text) is not None
    return plain or _LIKE.fullmatch(split_unit(text)[1]) is not None


def _may_be_number(text: str) -> bool:
    """Return False of most words, at once."""
    return _LIKELY.fullmatch(text) is not None or "inf" in text.casefold()


def split_unit(text: str) -> tuple[str, str]:
    """Return the unit of a number, "" if it has none, and its text without it."""
    if match := _BEFORE.fullmatch(text):
        sign, unit, inner, rest = match.groups()
        return ("", text) if sign and inner else (unit, sign + inner + rest)
    if match := _AFTER.fullmatch(text):
        return match[2], match[1]
    return "", text


@cache
def _grouped(mark: str, decimal: str, least: int = 1) -> re.Pattern[str]:
    """Return the pattern of numbers with so many marks at least.

    None begins with a zero: that is a fraction with another decimal mark.
    """
    many = rf"[1-9]\d{{0,2}}(?:{MARKS[mark]}\d{{3}})+"
    few = "" if least else r"|\d{1,3}"
    return re.compile(rf"[+-]?(?:{many}{few})(?:{re.escape(decimal)}\d*)?")
