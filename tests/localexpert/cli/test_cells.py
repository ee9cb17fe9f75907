"""Cells: what is a number, what is missing, what is a word."""

import math

import numpy as np
import pytest

from localexpert.cli.cells import (
    Dialect,
    Distinct,
    as_texts,
    parse_booleans,
)
from localexpert.cli.number_formats import PLAIN, read_numbers


def texts(*cells):
    return np.array(cells, dtype=object)


@pytest.mark.parametrize(
    ("text", "decimal", "number"),
    [
        ("12", ".", 12.0),
        ("-1.5e3", ".", -1500.0),
        ("+.5", ".", 0.5),
        ("1,5", ",", 1.5),
        ("1.234.567,5", ",", 1234567.5),
        ("-1.234", ",", -1234.0),
        ("1.23", ",", None),
        ("0.123", ",", None),
        ("-inf", ".", -math.inf),
        ("1,5", ".", None),
        ("1_000", ".", None),
        ("1,234.5", ",", None),
        ("nan", ".", None),
        ("0x1f", ".", None),
        ("12 m", ".", None),
    ],
)
def test_numbers(text, decimal, number):
    assert PLAIN.within(Dialect(decimal)).parse(text) == number


def test_gaps_and_words_of_a_column():
    cells = texts("1", " 2.5 ", "", "NA", "n/a", "?", "-", "None", "gone", "word")
    numbers = read_numbers(cells, Dialect(missing=("Gone",)), PLAIN)
    np.testing.assert_array_equal(numbers.values, [1.0, 2.5, *[np.nan] * 8])
    assert numbers.is_word.tolist() == [False] * 9 + [True]


def test_numbers_of_a_typed_file_are_taken_as_they_are(frozen):
    values = frozen([1.0, np.nan])
    assert read_numbers(values, Dialect(), PLAIN).values is values


def test_booleans():
    cells = Distinct.of(texts("TRUE", "false", "", "yes"), Dialect())
    read = cells.read(parse_booleans)
    np.testing.assert_array_equal(read.values, [1.0, 0.0, np.nan, np.nan])
    assert read.is_word.tolist() == [False, False, False, True]


def test_texts_of_numbers_are_what_a_csv_would_hold():
    values = np.array([3.0, 0.1, np.nan, -2.0, np.inf])
    assert as_texts(values) == ["3", "0.1", "", "-2", "inf"]
    assert as_texts(np.array([1e22, -0.0, 2.0**53])) == [
        "1e+22",
        "-0",
        "9007199254740992",
    ]
    assert as_texts(texts(" a ", "")) == [" a ", ""]


def test_columns_that_only_python_reads_as_numbers():
    read = read_numbers(texts("1_000", "2"), Dialect(), PLAIN)
    assert read.is_word.tolist() == [True, False]
    read = read_numbers(texts("inf", "2", "nan"), Dialect(), PLAIN)
    np.testing.assert_array_equal(read.values, [np.inf, 2.0, np.nan])
    assert not read.is_word.any()
