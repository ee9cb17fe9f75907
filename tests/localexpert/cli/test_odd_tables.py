"""Tables as people have them, from file to file: what is odd is said, or refused."""

import io
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from localexpert.cli.cells import Dialect
from localexpert.cli.read_file import read_table
from localexpert.cli.schema import Schema
from localexpert.storage import load, save
from tests.localexpert.cli.conftest import QUICK

FAST = [*QUICK, "--seed", "0"]


def market_rows(n, seed, *, with_marks=True):
    """Header and n rows of prices with marks, shares in percent, short dates, codes."""
    rng = np.random.default_rng(seed)
    rows = [["nr", "area", "price", "share", "sold", "zip", "income"]]
    for i in range(n):
        area, share = int(rng.integers(500, 90_000)), int(rng.integers(0, 101))
        day, year = int(rng.integers(10, 29)), int(rng.integers(10, 25))
        income = int(rng.integers(20, 90)) * 1000 + area
        rows.append(
            [
                str(i + 1),
                f"{area:,}" if with_marks else str(area),
                f"${area * 7}" if with_marks else str(area * 7),
                f"{share}%",
                f"{day}.05.{year}",
                str(rng.choice(["00501", "99999", "01234"])),
                f"${income:,}" if with_marks else str(income),
            ]
        )
    return rows


SEEN = [
    "localexpert: read as numbers with thousands marks ('1,234' is 1234): 'area'",
    "localexpert: read as numbers in $ ('$50' is 50): 'price'",
    "localexpert: read as numbers in percent ('50%' is 50): 'share'",
    "localexpert: read as dates (day.month.yy, 69 is 1969 and 68 is 2068): 'sold'",
]
TARGET = (
    "localexpert: target 'income' is read as numbers in $ with thousands marks "
    "('$1,234' is 1234)"
)


@pytest.fixture
def market(write):
    """Return a function that writes a table as CSV and returns its path."""

    def write_market(n, seed, name="market.csv", **how):
        return write(market_rows(n, seed, **how), name)

    return write_market


@pytest.fixture
def feed(monkeypatch):
    """Return a function that puts bytes on standard input."""

    def put(data):
        stream = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", stream)

    return put


def test_marks_are_read_and_told_from_fit_to_evaluate(run, market, tmp_path, feed):
    path, model = market(60, 0), tmp_path / "m.zip"
    words = ["--target", "income", "--categories", "zip", *FAST, "--out", model]
    code, _, lines = run("fit", path, *words)
    assert code == 0
    # What each column was read as follows after an empty line.
    assert lines[: lines.index("")] == [
        TARGET,
        "localexpert: warning: column 'nr' numbers the rows; it is learned from all "
        "the same (--drop nr leaves it out)",
        *SEEN,
        "localexpert: if these commas are decimal marks, say --decimal ,",
        "localexpert: fitting 60 rows, 8 features",
        f"localexpert: saved {model}",
    ]
    saved = load(model)
    rules = {rule.name: rule for rule in saved.schema.rules}
    assert rules["zip"].categories == ("00501", "01234", "99999")
    assert saved.climatology.values.max() > 20_000
    new = market(20, 1, "new.csv")
    code, marked, lines = run("predict", model, new)
    assert (code, lines) == (0, SEEN)
    # The same numbers without marks are the same rows, and nothing is to be told.
    plain = market(20, 1, "plain.csv", with_marks=False)
    assert run("predict", model, plain) == (0, marked, SEEN[2:])
    code, scores, lines = run("evaluate", model, new, "--json")
    assert (code, lines) == (0, [TARGET, *SEEN])
    feed(Path(plain).read_bytes())
    assert run("evaluate", model, "-", "--json") == (0, scores, SEEN[2:])


def test_a_fraction_is_no_percentage(market, write, capsys):
    schema = Schema.learn(read_table(market(30, 0)), "income", [], Dialect())
    rows = market_rows(30, 1)
    for row in rows[1:]:
        row[3] = str(float(row[3][:-1]) / 100.0)
    path = write(rows, "new.csv")
    with pytest.raises(
        Exception, match=r"must hold numbers in percent \('50%' is 50\)"
    ):
        schema.frame([read_table(path)], ".")
    rows[1][3] = "50%"
    frame = schema.frame([read_table(write(rows, "new.csv"))], ".")
    assert frame["share"].isna().sum() == 29
    assert (
        "taken as missing: 'share' (29 rows, first '0.95' in" in capsys.readouterr().err
    )


def test_commas_that_may_be_decimal_marks_are_not_guessed(run, write, tmp_path):
    rows = [["x", "y"], *([f"0,{100 + i}", str(i % 7)] for i in range(30))]
    words = ["--target", "y", *FAST, "--out", tmp_path / "m.zip"]
    code, _, lines = run("fit", write(rows), *words)
    assert code == 2
    assert lines[0] == (
        "localexpert: warning: column 'x' holds numbers that cannot all be read in one "
        f"way, as '0,100' in line 2 of {tmp_path / 'table.csv'}; it is dropped (say "
        "--decimal , if the comma is a decimal mark)"
    )
    assert run("fit", write(rows), *words, "--decimal", ",")[0] == 0


def test_a_target_that_may_be_anything_is_refused(refused, write, tmp_path):
    rows = [["x", "y"], ["1", "1,234"], ["2", "0,5"], ["4", "7"]]
    words = ["--target", "y", *FAST, "--out", tmp_path / "m.zip"]
    message = refused("fit", write(rows), *words)
    assert message.endswith("; say --decimal , if the comma is a decimal mark")
    rows = [["x", "y"], ["1", "1,234"], ["2", "56789"], ["4", "7"]]
    message = refused("fit", write(rows), *words)
    assert message.endswith("or --thousands , if the comma parts thousands")
    for cell, hint in (("inf", "leave cells empty whose value"), ("1e400", "1.8e308")):
        rows = [["x", "y"], ["1", "2"], ["2", cell], ["4", "7"]]
        message = refused("fit", write(rows), *words)
        assert "--decimal" not in message
        assert hint in message


def test_marks_that_the_user_names(write):
    rows = [["x", "z", "y"], *([f"1,{100 + i}", "12345", str(i)] for i in range(9))]
    rows[3][0] = "77777"
    schema = Schema.learn(read_table(write(rows)), "y", [], Dialect(thousands=","))
    assert [rule.name for rule in schema.used] == ["x"]
    assert schema.thousands == ","
    rows[4][0] = "88"
    frame = schema.frame([read_table(write(rows))], ".")
    assert frame["x"].tolist()[:4] == [1100.0, 1101.0, 77777.0, 88.0]


@pytest.mark.parametrize(
    ("values", "numbers_rows"),
    [
        (range(1, 10), True),
        (range(9), True),
        (range(-3, 6), True),
        (range(2, 20, 2), False),
        ([1, 2, 3, 4, 5, 6, 7, 9, 8], False),
        ([1, 2, 3, 4, 5, 6, 7, 8, ""], False),
    ],
)
@pytest.mark.parametrize("left_out", [[], [2, 5]])
def test_columns_that_number_the_rows_are_named(
    write, capsys, values, numbers_rows, left_out
):
    rows = [["Row Id", "y"], *([str(value), "3"] for value in values)]
    table = read_table(write(rows))
    kept = np.setdiff1d(np.arange(9), left_out)
    schema = Schema.learn(table.take(kept), "y", [], Dialect())
    assert schema.features == ["Row Id"]
    said = capsys.readouterr().err
    assert (
        "numbers the rows; it is learned from all the same (--drop 'Row Id' " in said
    ) == numbers_rows


def test_digits_that_begin_with_zeros(write, capsys):
    rows = [["zip", "y"], *([zip_code, "1"] for zip_code in ("0", "07", "501", "10"))]
    schema = Schema.learn(read_table(write(rows)), "y", [], Dialect())
    assert schema.rules[0].kind == "number"
    said = "column 'zip' holds digits that begin with zeros, first '07'"
    assert said in capsys.readouterr().err
    table = read_table(write(rows))
    schema = Schema.learn(table, "y", [], Dialect(), None, ["zip"])
    assert schema.rules[0].categories == ("0", "07", "10", "501")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("zipp", "has no column of categories 'zipp' (did you mean 'zip'?)"),
        ("y", "--categories must name columns to learn from, got 'y', which is target"),
        ("w", "--categories must name columns to learn from, got 'w', which is target"),
    ],
)
def test_categories_that_are_no_features(refused, write, tmp_path, names, message):
    path = write([["zip", "w", "y"], ["1", "1", "2"], ["2", "1", "3"]])
    words = ["--target", "y", "--weight", "w", "--out", tmp_path / "m.zip"]
    assert message in refused("fit", path, *words, "--categories", names)


def test_every_loss_is_told(write, capsys):
    text = "a,k,y\n1,x,1\n\n?,NA,2\n\n3,None,3\n4,z,4\n2024,z,4\n\n"
    table = read_table(write(text))
    assert "left out 2 blank lines of" in capsys.readouterr().err
    Schema.learn(table, "y", [], Dialect())
    assert capsys.readouterr().err == (
        "localexpert: read as gaps in 2 columns: '?', 'NA', 'None'\n"
    )


def test_encodings(run, refused, tmp_path):
    text = "größe,y\n" + "".join(f"{'äöü'[i % 3]},{i}\n" for i in range(30))
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode("cp1252"))
    words = ["--target", "y", *FAST, "--out", tmp_path / "m.zip"]
    message = refused("fit", path, *words)
    assert message.endswith(
        "byte 0xf6 in line 1; save it as UTF-8, or give --encoding (often cp1252)"
    )
    message = refused("fit", path, *words, "--encoding", "ascii")
    assert message.endswith(
        "is not ascii text: byte 0xf6 in line 1; give another --encoding"
    )
    message = refused("fit", path, *words, "--encoding", "idna")
    assert "is not idna text" in message
    message = refused("fit", path, *words, "--encoding", "base64")
    assert "--encoding: must be the name of an encoding such as cp1252" in message
    assert run("fit", path, *words, "--encoding", "cp1252")[0] == 0
    assert load(tmp_path / "m.zip").schema.rules[0].categories == ("ä", "ö", "ü")


class TestStandardInput:
    def test_is_a_table_of_any_kind(self, run, houses, feed):
        want = run("predict", houses / "model.zip", houses / "test.csv")
        data = (houses / "test.csv").read_bytes()
        feed(data)
        assert run("predict", houses / "model.zip", "-")[1] == want[1]
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
        buffer = io.BytesIO()
        pd.read_csv(houses / "test.csv").to_parquet(buffer)
        feed(buffer.getvalue())
        assert run("predict", houses / "model.zip", "-")[1] == want[1]

    def test_gives_the_model_of_a_file(self, run, houses, feed, tmp_path):
        feed((houses / "train.csv").read_bytes())
        words = ["--target", "price", "--seed", "0", *QUICK]
        out = tmp_path / "m.zip"
        assert run("fit", "-", *words, "--out", out)[0] == 0
        # But for the name of the table.
        read, given = load(houses / "model.zip"), load(out)
        assert given.origin == replace(read.origin, table="standard input")
        paths = [tmp_path / "a.zip", tmp_path / "b.zip"]
        for path, model in zip(paths, (read, given), strict=True):
            save(replace(model, origin=None), path)
        assert paths[0].read_bytes() == paths[1].read_bytes()

    def test_has_its_name_in_messages(self, refused, houses, feed):
        model = houses / "model.zip"
        feed(b"area,kind\n1\n")
        assert refused("predict", model, "-") == (
            "line 2 of standard input has 1 field, its header has 2"
        )
        feed(b"")
        assert refused("predict", model, "-") == "standard input is empty"
        feed(b"PK\x03\x04")
        message = refused("predict", model, "-")
        assert "standard input is a damaged zip file" in message

    def test_that_is_closed_or_a_terminal(self, refused, houses, monkeypatch):
        model = houses / "model.zip"
        monkeypatch.setattr(sys, "stdin", None)
        message = "cannot read standard input: it is closed"
        assert refused("predict", model, "-") == message
        leader, terminal = os.openpty()
        with os.fdopen(leader), os.fdopen(terminal) as stream:
            monkeypatch.setattr(sys, "stdin", stream)
            message = refused("predict", model, "-")
        assert message.startswith("standard input is a terminal; send it a table")

    def test_is_no_model_and_only_one_table(self, refused, houses):
        message = "a model must be a file: only tables are read from standard input"
        assert refused("predict", "-", houses / "test.csv") == message
        words = ["--score", "s", "--label", "y"]
        message = refused("calibrate", "-", "--new", "-", *words)
        assert message.startswith("standard input can be one table only")
        message = refused("calibrate", "-", *words, "--save", "-")
        assert message == "--save must be a file"

    def test_is_calibrated(self, run, write, feed):
        rows = [["s", "y"], *([f"{i / 40}", str(int(i % 3 > 0))] for i in range(40))]
        path = write(rows)
        words = ["--score", "s", "--label", "y", "--method", "platt", "--seed", "0"]
        want = run("calibrate", path, *words)[1]
        feed(Path(path).read_bytes())
        code, out, lines = run("calibrate", "-", *words)
        assert (code, out) == (0, want)
        assert any("of 10 parts of standard input" in line for line in lines)


def test_decimals_of_a_parquet_file_have_points(tmp_path):
    """Whatever mark the training file had."""
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet needs pyarrow")
    values = pyarrow.array([1.234, 0.5, 7.0]).cast(pyarrow.decimal128(9, 3))
    table = pyarrow.table({"x": values, "y": [1, 2, 3], "t": ["1,5", "2", "2,5"]})
    parquet.write_table(table, path := tmp_path / "t.parquet")
    read = read_table(str(path))
    schema = Schema.learn(read, "y", [], Dialect(","))
    frame = schema.frame([read], ",")
    assert frame["x"].tolist() == [1.234, 0.5, 7.0]
    assert frame["t"].tolist() == [1.5, 2.0, 2.5]
