"""Numbers with marks, units and groups: read where a column is consistent."""

import numpy as np
import pytest

from localexpert.cli.cells import Dialect
from localexpert.cli.number_formats import (
    PLAIN,
    NumberFormat,
    find_format,
    hint_at_format,
    is_like_number,
    read_numbers,
    split_unit,
)

POINT, COMMA = Dialect("."), Dialect(",")


def values_of(words, dialect, written=None):
    written = find_format(words, dialect) if written is None else written
    return read_numbers(np.array(words, dtype=object), dialect, written)


@pytest.mark.parametrize(
    ("words", "dialect", "written", "values"),
    [
        (["45,123", "5", "-1,234,567.5"], POINT, (",", ""), [45123, 5, -1234567.5]),
        (["$34000", "-$5", "$-7.5", "12"], POINT, ("", "$"), [34000, -5, -7.5, 12]),
        (["€ 1.234,50", "€ 7"], COMMA, (".", "€"), [1234.5, 7]),
        (["1.234,50 EUR", "7 EUR"], COMMA, (".", "EUR"), [1234.5, 7]),
        (["USD1,234", "5 USD"], POINT, (",", "USD"), [1234, 5]),
        (["50%", "7.5 %", "-1%"], POINT, ("", "%"), [50, 7.5, -1]),
        (["1 234", "12345", "7"], POINT, (" ", ""), [1234, 12345, 7]),
        (["1\u202f234,5", "7"], COMMA, (" ", ""), [1234.5, 7]),
        (["1'234", "1\u2019234'567.5"], POINT, ("'", ""), [1234, 1234567.5]),
        (["1.234", "2.345.678"], COMMA, (".", ""), [1234, 2345678]),
        (["1,5", "2"], COMMA, ("", ""), [1.5, 2]),
        (["inf", "1e3"], POINT, ("", ""), [np.inf, 1000]),
    ],
)
def test_consistent_columns(words, dialect, written, values):
    found = find_format(words, dialect)
    assert found == NumberFormat(*written)
    np.testing.assert_array_equal(values_of(words, dialect).values, values)


@pytest.mark.parametrize(
    ("words", "dialect", "cure"),
    [
        (["0,123", "0,456"], POINT, "--decimal , if the comma is a decimal mark"),
        (["0,123", "1,456"], POINT, "--decimal , if the comma is a decimal mark"),
        (["1,5", "1,234"], POINT, "--decimal , if the comma is a decimal mark"),
        (["1.234,5"], POINT, "--decimal , if the comma is a decimal mark"),
        (["1,234", "12345"], POINT, "--thousands , if the comma parts thousands"),
        (["1,234.5"], COMMA, "--decimal . if the point is a decimal mark"),
        (["5%", "6"], POINT, "write % after all numbers of the column or after none"),
        (["$5", "€6"], POINT, "one unit, and has $, €"),
        (["1e400"], POINT, "no number beyond 1.8e308"),
        (["inf"], POINT, "leave cells empty whose value is not known"),
        (["12 34", "1,2,3"], POINT, ""),
        (["cheap"], POINT, ""),
    ],
)
def test_what_is_not_guessed_has_a_cure(words, dialect, cure):
    found = find_format(words, dialect)
    assert found is None or np.isinf(values_of(words, dialect).values).all()
    wrong = next(w for w in words if PLAIN.within(dialect).parse(w) in (None, np.inf))
    hint = hint_at_format(words, dialect, wrong)
    assert (cure in hint) if cure else hint == ""


def test_a_column_with_points_in_a_file_with_commas():
    written = find_format(["1.25", "0.123"], COMMA)
    assert written == NumberFormat(decimal=".")
    numbers = values_of(["1.25", "0.123"], COMMA)
    np.testing.assert_array_equal(numbers.values, [1.25, 0.123])
    assert numbers.seen == "as numbers with a decimal point"
    assert values_of(["1,25"], COMMA, written).is_word.all()
    # Points that are not between thousands are no number for a rule without them.
    assert values_of(["1.25", "1.234"], COMMA, PLAIN).is_word.tolist() == [True, False]


def test_a_mark_that_the_user_names_may_be_lacking():
    dialect = Dialect(".", thousands=",")
    assert find_format(["1,234", "12345"], dialect) == NumberFormat(",")
    assert find_format(["123", "12345"], dialect) == PLAIN
    assert find_format(["1,23"], dialect) is None
    assert find_format(["1 234"], dialect) is None


def test_new_cells_of_a_format():
    money = NumberFormat(",", "$")
    numbers = values_of(["$1,234", "99999", "", "€5", "1,23"], POINT, money)
    np.testing.assert_array_equal(numbers.values, [1234, 99999, *[np.nan] * 3])
    assert numbers.is_word.tolist() == [False, False, False, True, True]
    said = "as numbers in $ with thousands marks ('$1,234' is 1234)"
    assert numbers.seen == said
    assert values_of(["7", "8"], POINT, money).seen == ""
    assert values_of(["$7", "8"], POINT, money).seen == "as numbers in $ ('$50' is 50)"
    # In a file with decimal commas, points part thousands.
    assert values_of(["$1.234,5"], COMMA, money).values.tolist() == [1234.5]


def test_a_percentage_without_its_sign_is_no_number():
    percent = NumberFormat(unit="%")
    numbers = values_of(["50%", "0.5", "50"], POINT, percent)
    assert numbers.is_word.tolist() == [False, True, True]
    assert numbers.seen == "as numbers in percent ('50%' is 50)"
    typed = read_numbers(np.array([0.5, np.nan]), POINT, percent)
    assert typed.is_word.tolist() == [True, False]


@pytest.mark.parametrize(
    ("text", "unit", "rest"),
    [
        *(("$5", "$", "5"), ("- $5", "$", "-5"), ("5 %", "%", "5")),
        *(("EUR 5", "EUR", "5"), ("5CHF", "CHF", "5"), ("-$-5", "", "-$-5")),
        *(("ABC 5", "", "ABC 5"), ("%5", "", "%5"), ("$", "", "$"), ("", "", "")),
    ],
)
def test_units(text, unit, rest):
    assert split_unit(text) == (unit, rest)


def test_what_may_be_a_number():
    likely = ["1,234", "$5", "5 %", "1.234,5", "1e5", "inf", "0,5", "12'345"]
    assert all(map(is_like_number, likely))
    assert not any(map(is_like_number, ["1.2.3", "3 rooms", "", "10:30", "1_0", "x1"]))


def test_repetitions_of_all_numbers(rng):
    """What is written with any marks is read back."""
    numbers = np.round(rng.normal(size=200) * 10.0 ** rng.integers(0, 9, 200), 2)
    for mark, decimal in [(",", "."), (".", ","), (" ", "."), ("'", ","), (" ", ",")]:
        swap = str.maketrans(",.", mark + decimal)
        words = [f"{x:,.2f}".translate(swap) for x in numbers]
        for unit in ("", "%", "$", "EUR"):
            found = [word + unit if unit != "$" else unit + word for word in words]
            read = values_of(found, Dialect(decimal))
            np.testing.assert_array_equal(read.values, numbers)
