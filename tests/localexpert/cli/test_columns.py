"""Columns: what each is taken for, and how new cells are read by its rule."""

import numpy as np
import pytest

from localexpert.cli.cells import Dialect
from localexpert.cli.columns import ColumnRule, learn_rule
from localexpert.cli.raw_table import RawTable


def as_cells(cells):
    return cells if isinstance(cells, np.ndarray) else np.array(cells, dtype=object)


def learn(cells, order=None, name="c", missing=()):
    """The rule of a column of a file whose first row is line 2."""
    table = RawTable("t.csv", {name: as_cells(cells)}, np.arange(2, len(cells) + 2))
    return learn_rule(table, name, Dialect(missing=missing), order)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "2", ""], "number"),
        (["1", "1", ""], "number"),  # whether it is there may tell something
        (["inf", "1", "2"], "number"),
        (["True", "false", "NA"], "boolean"),
        (["a", "b", "a"], "category"),
        (["a", "a", ""], "category"),
        (["2024-01-01", "", "2024-01-02"], "date"),
        (["13/01/2024", "01/02/2024"], "date"),
        (["2024-01-01", "soon", "late"], "category"),
        ([f"n{i}" for i in range(19)], "category"),
        (np.array([1.0, np.nan, 2.0]), "number"),
    ],
)
def test_kinds(cells, kind, capsys):
    assert learn(cells).kind == kind
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (["", "NA", "-"], "holds no value"),
        (["inf", "", ""], "holds no value"),
        (["7", "7.0", "7"], "constant"),
        (["a", "a"], "constant"),
        (["2024-01-01", "2024-01-01"], "constant"),
        (["True", "true"], "constant"),
        ([f"n{i}" for i in range(20)], "a different text in each row"),
        (np.full(3, np.nan), "holds no value"),
    ],
)
def test_dropped(cells, reason):
    assert learn(cells) == ColumnRule("c", "dropped", reason=reason)


def test_the_index_of_a_saved_data_frame_is_dropped():
    assert learn(["0", "1", "2"], name="column 1").kind == "dropped"
    assert learn(["7", "1", "3"], name="column 1").kind == "dropped"
    assert learn(["0", "1", "1"], name="column 1").kind == "number"
    assert learn(["0", "1", "1.5"], name="column 1").kind == "number"
    assert learn(["0", "1", "2"], name="c").kind == "number"


def test_mixed_types_are_a_category_and_said(capsys):
    rule = learn(["1", "", "many", "2", "few"])
    assert rule == ColumnRule("c", "category", categories=("1", "2", "few", "many"))
    assert capsys.readouterr().err == (
        "localexpert: warning: column 'c' holds 2 numbers and 2 words, first 'many' in "
        "line 4 of t.csv; it is taken as a category (--missing 'many' would take that "
        "word as a gap)\n"
    )
    assert learn(["1", "", "many", "2"], missing=("many",)).kind == "number"


def test_dates_that_may_be_of_either_order(capsys):
    cells = ["03/04/2025", "05/06/2025"]
    assert learn(cells).kind == "category"
    assert "day first and month first" in capsys.readouterr().err
    assert learn(cells, "dmy").date_format == "day/month/year"
    assert learn(cells, "mdy").date_format == "month/day/year"
    assert learn([*cells, "31/12/2025"], "mdy").date_format == "day/month/year"
    assert capsys.readouterr().err == ""


def test_short_dates(capsys):
    cells = ["03/04/25", "05/06/24"]
    assert learn(cells).kind == "category"
    assert "day first and month first" in capsys.readouterr().err
    assert learn(cells, "dmy").date_format == "day/month/yy"
    rule = learn(cells, "mdy")
    assert rule.date_format == "month/day/yy"
    read = rule.read(as_cells(["03/04/25", "2025-03-04"]), Dialect())
    assert read.seen == "as dates (month/day/yy, 69 is 1969 and 68 is 2068)"
    assert read.is_word.tolist() == [False, True]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            ["2024-01-01", "2024-01-02", "soon"],
            "holds 2 dates and 1 word, first 'soon'",
        ),
        (
            ["2024-01-01", "01.02.2024"],
            "holds dates that cannot all be read in one way",
        ),
        (["1,234", "2,345", "sold"], "holds 2 numbers and 1 word, first 'sold'"),
        (["5%", "6"], "as '5%' in line 2 of t.csv; it is taken as a category (write %"),
        (["$5", "€6"], "(its column must have one unit, and has $, €)"),
        (["1 234", "1'234"], "(write all of them in one way)"),
    ],
)
def test_columns_that_are_nearly_numbers_or_dates(cells, message, capsys):
    assert learn(cells).kind == "category"
    assert message in capsys.readouterr().err


def test_parts_of_dates_are_those_that_vary():
    days = [f"2024-03-{day:02d}" for day in range(1, 20)]
    assert learn(days).parts == ("weekday",)
    hours = [f"2024-03-04 {hour:02d}:00" for hour in range(5)]
    assert learn(hours).parts == ("hour",)
    years = [f"{year}-07-01" for year in range(2000, 2010)]
    assert learn(years).parts == ("year", "weekday")


def test_new_cells_of_a_category():
    rule = ColumnRule("c", "category", categories=("1", "a"))
    read = rule.read(as_cells(["a", "", " 1 ", "b"]), Dialect())
    assert rule.features(read.values)["c"].codes.tolist() == [1, -1, 0, -1]
    assert rule.features(read.values)["c"].categories.tolist() == ["1", "a"]
    assert read.is_word.tolist() == [False, False, False, True]
    typed = rule.read(np.array([1.0, 2.0, np.nan]), Dialect())
    np.testing.assert_array_equal(typed.values, [0.0, np.nan, np.nan])
    assert typed.is_word.tolist() == [False, True, False]


def test_new_cells_of_numbers_and_dates():
    read = ColumnRule("c", "number").read(as_cells(["1", "x", "", "inf"]), Dialect())
    np.testing.assert_array_equal(read.values, [1.0, np.nan, np.nan, np.nan])
    assert read.is_word.tolist() == [False, True, False, True]
    rule = ColumnRule("c", "date", date_format="year-month-day", parts=("month",))
    read = rule.read(as_cells(["1970-02-01", "1/2/1970", ""]), Dialect())
    features = rule.features(read.values)
    assert list(features) == ["c.days", "c.month"]
    np.testing.assert_array_equal(features["c.days"], [31.0, np.nan, np.nan])
    np.testing.assert_array_equal(features["c.month"], [2.0, np.nan, np.nan])
    assert read.is_word.tolist() == [False, True, False]


def test_whole_numbers_that_are_rounded_are_told_of(capsys):
    keys = [str(2**60 + i) for i in range(9)]
    assert learn(["3", *keys], name="key").kind == "number"
    assert "column 'key' holds whole numbers beyond 2^53" in capsys.readouterr().err
    learn(["3", "1e300", "2e300", "9007199254740993", "9007199254740993"])
    learn(np.array([1e22, 3e22]))
    assert capsys.readouterr().err == ""
