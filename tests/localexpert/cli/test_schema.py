"""Reading a second file as the first one was."""

import numpy as np
import pandas as pd
import pytest

from localexpert.cli.cells import Dialect
from localexpert.cli.console import UserError
from localexpert.cli.raw_table import RawTable
from localexpert.cli.read_file import read_parts, read_table
from localexpert.cli.schema import Schema
from localexpert.storage import load, save

TRAINING = {
    "x": ["1", "2.5", "NA"],
    "kind": ["a", "b", "a"],
    "day": ["2024-01-01", "2024-02-01", ""],
    "flat": ["yes", "yes", "yes"],
    "w": ["1", "2", "3"],
    "y": ["1", "2", "3"],
}


def raw(columns, path="t.csv"):
    cells = {name: np.array(texts, dtype=object) for name, texts in columns.items()}
    n = len(next(iter(columns.values())))
    return RawTable(path, cells, np.arange(2, n + 2))


@pytest.fixture
def schema():
    return Schema.learn(raw(TRAINING), "y", ["w"], Dialect())


def test_features_of_the_training_file(schema, capsys):
    frame = schema.frame([raw(TRAINING)], ".")
    assert list(frame.columns) == [
        *("x", "kind", "day.days", "day.month", "day.weekday")
    ]
    np.testing.assert_array_equal(frame["x"], [1.0, 2.5, np.nan])
    assert frame["kind"].tolist() == ["a", "b", "a"]
    assert frame["day.month"].tolist()[:2] == [1.0, 2.0]
    assert capsys.readouterr().err == ""


def test_it_is_saved_whole(schema, tmp_path):
    save(schema, tmp_path / "schema.zip")
    assert load(tmp_path / "schema.zip") == schema


def test_another_order_and_other_columns(schema, capsys):
    columns = {"new": ["1", "2"], "kind": ["b", "c"], "day": ["", ""], "x": ["1", "u"]}
    frame = schema.frame([raw(columns, "n.csv")], ".")
    assert list(frame.columns)[:2] == ["x", "kind"]
    assert frame["kind"].cat.codes.tolist() == [1, -1]
    assert frame["kind"].cat.categories.tolist() == ["a", "b"]
    assert capsys.readouterr().err.splitlines() == [
        "localexpert: ignored 1 column of n.csv that the model does not know: 'new'",
        "localexpert: warning: values that are not finite numbers or dates as in "
        "training, taken as missing: 'x' (1 row, first 'u' in line 3 of n.csv)",
        "localexpert: warning: categories not met in training, taken as missing: "
        "'kind' (1 row, first 'c' in line 3 of n.csv)",
    ]


def test_lacking_columns(schema):
    message = "n.csv lacks 2 columns that the model was trained on: 'kind', 'day'"
    with pytest.raises(UserError, match=message):
        schema.frame([raw({"x": ["1"]}, "n.csv")], ".")


def test_a_column_of_another_kind(schema):
    columns = {**TRAINING, "x": ["", "one", "two"]}
    message = "column 'x' must hold numbers as in training, got 'one' in line 3 of"
    with pytest.raises(UserError, match=message):
        schema.frame([raw(columns)], ".")
    columns = {**TRAINING, "day": ["1.2.2024", "", ""]}
    message = r"must hold dates \(year-month-day\) as in training, got '1.2.2024' in"
    with pytest.raises(UserError, match=message):
        schema.frame([raw(columns)], ".")


def test_another_decimal_mark(schema):
    columns = {**TRAINING, "x": ["1", "2,5", "NA"]}
    frame = schema.frame([raw(columns)], ",")
    np.testing.assert_array_equal(frame["x"], [1.0, 2.5, np.nan])


def test_names_of_parts_that_are_taken():
    columns = {**TRAINING, "day.days": ["4", "5", "6"]}
    schema = Schema.learn(raw(columns), "y", [], Dialect())
    frame = schema.frame([raw(columns)], ".")
    assert frame.columns.is_unique
    assert frame["day.days'"].tolist() == [4.0, 5.0, 6.0]


def test_no_column_to_learn_from(capsys):
    columns = {"flat": ["1", "1"], "y": ["1", "2"]}
    with pytest.raises(UserError, match=r"t.csv has no column to learn 'y' from"):
        Schema.learn(raw(columns), "y", [], Dialect())
    assert "dropped (constant): 'flat'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["1", "one"], "target 'y' must hold finite numbers, got 'one' in line 3 of"),
        (["inf", "1"], "got 'inf' in line 2 of"),
        (["1,5", "2"], "got '1,5' in line 2 .* say --decimal ,"),
        (["True", "2"], "got 'True' in line 2"),
        (["x" * 99, "2"], r"got 'x{37}\.\.\.' in line 2"),
    ],
)
def test_targets_that_are_no_numbers(cells, message):
    with pytest.raises(UserError, match=message):
        raw({"y": cells}).numbers("y", "target", Dialect())


def test_many_columns_are_not_all_listed():
    table = raw({f"c{j}": ["1"] for j in range(300)})
    with pytest.raises(UserError, match=r"no target 'y'; .*'c7' and 292 more$"):
        table.column("y", "target")


def test_parts_of_a_file_are_read_as_the_whole_is(write, capsys):
    rows = [["day", "kind", "x", "y"]]
    rows += [[f"2024-01-{i + 1:02d}", "abc"[i % 3], str(i), str(i)] for i in range(9)]
    path = write(rows)
    schema = Schema.learn(read_table(path), "y", [], Dialect())
    assert "column 'x' numbers the rows" in capsys.readouterr().err
    rows[2][1], rows[8][1], rows[5][2] = "new", "newer", "many"
    path = write(rows, "new.csv")
    frames = list(schema.frames(read_parts(path, None, ".", 4), "."))
    said = capsys.readouterr().err
    whole = schema.frame([read_table(path)], ".")
    # The header counts as a row of the first part.
    assert [len(frame) for frame in frames] == [3, 4, 2]
    assert pd.concat(frames, ignore_index=True).equals(whole)
    assert said == capsys.readouterr().err
    assert "'kind' (2 rows, first 'new' in line 3 of" in said


def test_a_part_without_a_number_is_no_column_of_another_kind(write):
    path = write([["x", "y"], *([str(i), str(i)] for i in range(8))])
    schema = Schema.learn(read_table(path), "y", [], Dialect())
    words = [[str(i) if i < 4 else "word", ""] for i in range(8)]
    path = write([["x", "y"], *words], "new.csv")
    frame = schema.frame(read_parts(path, None, ".", 3), ".")
    assert frame["x"].isna().sum() == 4
    path = write([["x", "y"], *([word, ""] for _, word in words), ["word", ""]])
    with pytest.raises(UserError, match=r"must hold numbers .* got 'word' in line 10"):
        schema.frame(read_parts(path, None, ".", 3), ".")


def test_only_wanted_columns_are_read(write):
    path = write([["a", "b", "c"], ["1", "2", "3"], ["4", "5", "6"]])
    (part,) = read_parts(path, None, ".", wanted=["c", "d"])
    assert part.columns.keys() == {"c"}
    assert list(part.columns["c"]) == ["3", "6"]
    assert part.names == ("a", "b", "c")
    (none,) = read_parts(path, None, ".", wanted=[])
    assert list(none.places) == [2, 3]
