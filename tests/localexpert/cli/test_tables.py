"""Tables in several files and in parts: the same forecasts as of one table."""

import csv
import io
import os
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from localexpert.cli import read_file
from localexpert.cli.cells import Dialect
from localexpert.cli.console import UserError
from localexpert.cli.out_column import OutColumn
from localexpert.cli.output import OutTable, write_table
from localexpert.cli.parquet import open_parquet, parse_parquet
from localexpert.cli.tables import find_tables

IDS = 2**62 + np.arange(80)


@pytest.fixture
def small_parts(monkeypatch):
    """Let parts have seven rows, so that small tables have many."""
    monkeypatch.setattr(read_file, "_PART", 7)
    # The default of a parameter is read when the function is defined.
    monkeypatch.setattr(read_file.read_parts, "__defaults__", (7, *_rest()))


def _rest():
    return read_file.read_parts.__defaults__[1:]


@pytest.fixture
def whole(houses, run):
    """Return the forecasts of the test table in one CSV."""
    words = ["--quantiles", ".1,.9", "--exceed", "500", "--keep", "id,area,sold"]
    code, out, _ = run("predict", houses / "model.zip", houses / "test.csv", *words)
    assert code == 0
    return pd.read_csv(io.StringIO(out))


@pytest.fixture
def typed(houses):
    """Return the test table with types and keys of 64 bits."""
    frame = pd.read_csv(houses / "test.csv", keep_default_na=True)
    frame["kind"] = frame["kind"].astype("category")
    frame["key"] = IDS
    return frame.drop(columns=["empty", "const"])


def predict(run, houses, tables, out, *words):
    given = ["--quantiles", ".1,.9", "--exceed", "500", *words]
    code, _, lines = run("predict", houses / "model.zip", *tables, "--out", out, *given)
    assert code == 0, lines
    return lines


@pytest.mark.usefixtures("small_parts")
def test_parts_of_csv_files_are_typed_as_the_whole(houses, run, whole, tmp_path):
    with open(houses / "test.csv", newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    names = []
    for number, ends in enumerate([(0, 30), (30, 31), (31, 80)]):
        names.append(tmp_path / f"{number}.csv")
        with open(names[-1], "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *rows[slice(*ends)]])
    keep = ("--keep", "id,area,sold")
    lines = predict(run, houses, names, tmp_path / "out.parquet", *keep)
    assert lines[-1] == f"localexpert: wrote 80 forecasts to {tmp_path}/out.parquet"
    got = pq.read_table(tmp_path / "out.parquet")
    types = [str(kind) for kind in got.schema.types]
    assert types == ["string", "double", "date32[day]", *["double"] * 5]
    frame = got.to_pandas()
    frame["sold"] = frame["sold"].astype(str)
    pd.testing.assert_frame_equal(frame, whole, check_dtype=False, atol=1e-8)
    predict(run, houses, names, tmp_path / "out.csv", *keep)
    got = pd.read_csv(tmp_path / "out.csv")
    pd.testing.assert_frame_equal(got, whole, atol=1e-8)


@pytest.mark.usefixtures("small_parts")
def test_a_folder_of_parquet_keeps_types_and_order(houses, run, whole, typed, tmp_path):
    folder = tmp_path / "parts"
    (folder / "2024").mkdir(parents=True)
    typed.iloc[:33].to_parquet(folder / "a.parquet", row_group_size=10)
    typed.iloc[33:33].to_parquet(folder / "b.parquet")
    typed.iloc[33:].to_parquet(folder / "c.parquet", index=False)
    (folder / "_SUCCESS.parquet").touch()
    (folder / "2024" / ".hidden.parquet").touch()
    predict(run, houses, [folder], tmp_path / "out.parquet", "--keep", "key,id")
    got = pq.read_table(tmp_path / "out.parquet")
    kinds = [str(kind) for kind in got.schema.types[:2]]
    assert kinds in (["int64", "large_string"], ["int64", "string"])  # before pandas 3
    assert got["key"].to_pylist() == IDS.tolist()
    frame = got.to_pandas().drop(columns=["key", "id"])
    asked = whole.drop(columns=["id", "area", "sold"])
    pd.testing.assert_frame_equal(frame, asked, atol=1e-8)
    predict(run, houses, [folder], tmp_path / "out.csv.gz", "--keep", "key")
    text = pd.read_csv(tmp_path / "out.csv.gz", dtype=str)
    assert text["key"].to_list() == [str(key) for key in IDS]


def test_no_more_than_a_part_of_a_parquet_file_is_read(tmp_path, typed, monkeypatch):
    typed.to_parquet(tmp_path / "t.parquet", row_group_size=10)
    file = pq.ParquetFile(tmp_path / "t.parquet")
    parts = list(parse_parquet("t", file, 7, ["key", "area"]))
    assert [len(part) for part in parts] == [7] * 11 + [3]
    assert list(parts[3].columns) == ["area", "key"]
    assert parts[3].names == tuple(typed.columns)
    assert parts[3].where(2) == "row 24 of t"
    joined = np.concatenate([part.columns["key"] for part in parts])
    assert joined.tolist() == [str(key) for key in IDS]
    monkeypatch.setattr(read_file, "read_bytes", None)
    # Batches end where a row group with categories does.
    parts = list(read_file.read_parts(str(tmp_path / "t.parquet"), None, "."))
    assert sum(map(len, parts)) == 80
    assert len(read_file.read_table(str(tmp_path / "t.parquet"))) == 80


def test_parts_of_a_parquet_file_do_not_stay_in_memory(tmp_path, rng):
    table, path = pa.table({"x": rng.normal(size=400_000)}), tmp_path / "t.parquet"
    pq.write_table(table, path, row_group_size=10_000, use_dictionary=False)
    del table
    before, most = pa.total_allocated_bytes(), 0
    file = open_parquet(str(path), str(path), 2**30, 10_000)
    for part in parse_parquet("t", file, 10_000, None):
        assert len(part) == 10_000
        most = max(most, pa.total_allocated_bytes() - before)
    # The file has 3.2 MB.
    assert most < 1_500_000


def test_whole_numbers_of_some_parts_alone_are_joined():
    few, many = np.array([1.0, np.nan]), np.array([str(2**60)], dtype=object)
    joined = OutColumn.join([OutColumn(few, True), OutColumn(many, True)])
    assert joined.texts() == ["1", "", str(2**60)]


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ([["1", "2"], ["3"]], "int64"),
        ([["1"], ["18446744073709551615"]], "uint64"),
        ([["-1"], ["18446744073709551615"]], "string"),
        ([["1"], ["2.5"]], "double"),
        ([["9007199254740995"], ["2.5"]], "string"),
        ([["1"], ["007"]], "string"),
        ([["NA", ""], ["4", ""]], "int64"),
        ([["NA"], [""]], "string"),
        ([["true"], ["FALSE", ""]], "bool"),
        ([["true"], ["1"]], "string"),
        ([["2024-01-31"], ["2024-02-29"]], "date32[day]"),
        ([["2024-01-31"], ["2024-02-30"]], "string"),
        ([["2024-01-31"], ["2024-01-31 10:00:00"]], "string"),
        ([["2024-01-31 10:00:00"], ["2024-01-31T10:00:00.5"]], "timestamp[us]"),
    ],
)
def test_texts_of_parts_have_the_type_of_all(tmp_path, parts, kind):
    columns = [
        {"x": OutColumn(np.array(cells, dtype=object), True, dialect=Dialect())}
        for cells in parts
    ]
    with OutTable(str(tmp_path / "parts.parquet"), "row") as out:
        for part in columns:
            out.write(part)
    joined = {"x": OutColumn.join([part["x"] for part in columns])}
    write_table(str(tmp_path / "whole.parquet"), joined, "row")
    got = pq.read_table(tmp_path / "parts.parquet")
    assert str(got.schema.field("x").type) == kind
    assert got == pq.read_table(tmp_path / "whole.parquet")


def test_what_fails_on_the_way_leaves_the_old_file(houses, refused, tmp_path, write):
    good = (houses / "test.csv").read_text()
    bad = write(good.replace("area", "size", 1), "bad.csv")
    out = tmp_path / "out.csv"
    out.write_text("old")
    words = "predict", houses / "model.zip", houses / "test.csv", bad
    told = refused(*words, "--out", out)
    assert told == f"{bad} lacks 1 column that the model was trained on: 'area'"
    # Nor has anything been sent to a stream.
    refused(*words)
    assert out.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["bad.csv", "out.csv"]


def test_a_column_of_another_kind_in_one_file(houses, refused, write):
    table = pd.read_csv(houses / "test.csv")
    table["area"] = "large"
    bad = write(table.to_csv(index=False), "bad.csv")
    told = refused("predict", houses / "model.zip", houses / "test.csv", bad)
    assert told == (
        "column 'area' must hold numbers as in training, got 'large' in line 2 of "
        f"{bad}"
    )


def two_files(tmp_path, typed, **changed):
    folder = tmp_path / "parts"
    folder.mkdir()
    typed.to_parquet(folder / "a.parquet")
    other = typed.assign(**changed)
    other.drop(columns=[n for n, value in changed.items() if value is None]).to_parquet(
        folder / "b.parquet"
    )
    return folder


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"area": None}, "b.parquet has no column 'area', which .*a.parquet has"),
        ({"area": "x"}, r"'area' is (large_)?string in .*b.parquet and double in "),
        ({"key": 1.5}, r"column 'key' is double in .*b.parquet and int64 in .*a.parq"),
        ({"key": None}, "b.parquet has no column 'key', which .*a.parquet has"),
    ],
)
def test_files_that_differ_are_named(houses, refused, tmp_path, typed, changed, words):
    folder = two_files(tmp_path, typed, **changed)
    told = refused("predict", houses / "model.zip", folder, "--keep", "key")
    assert re.search(words, told)


def test_types_that_go_together(houses, run, tmp_path, typed):
    # A column of gaps has no type, and whole numbers with gaps are others.
    folder = two_files(tmp_path, typed, area=typed["area"].round(), garden=pd.NA)
    assert len(predict(run, houses, [folder], tmp_path / "o.csv")) > 0
    assert len(pd.read_csv(tmp_path / "o.csv")) == 160


def test_files_cut_short_empty_or_none(houses, refused, tmp_path, typed):
    model, folder = houses / "model.zip", two_files(tmp_path, typed)
    half = (folder / "b.parquet").read_bytes()
    (folder / "b.parquet").write_bytes(half[: len(half) // 2])
    assert "b.parquet is a damaged Parquet file" in refused("predict", model, folder)
    (folder / "b.parquet").unlink()
    typed.iloc[:0].to_parquet(folder / "a.parquet")
    told = refused("predict", model, folder)
    assert told == f"{folder}/a.parquet has no rows"
    (folder / "a.parquet").unlink()
    told = refused("predict", model, folder)
    assert told == f"{folder} is a folder without a file *.parquet"
    assert "can be read only once" in refused("predict", model, "-", "-")
    out = tmp_path / "t.parquet"
    typed.to_parquet(out)
    told = refused("predict", model, tmp_path, "--out", out)
    assert told.endswith("is the same file as " + repr(str(out)))


def test_kept_columns_of_two_kinds_of_files(houses, refused, tmp_path, typed):
    typed.to_parquet(tmp_path / "t.parquet")
    typed.to_csv(tmp_path / "t.csv", index=False)
    words = "predict", houses / "model.zip", tmp_path / "t.csv", tmp_path / "t.parquet"
    told = refused(*words, "--keep", "key", "--out", tmp_path / "out.parquet")
    assert told == "column 'key' is text in some files and typed in others"
    assert not (tmp_path / "out.parquet").exists()


def test_find_tables_keeps_what_is_no_folder(tmp_path):
    assert find_tables(["-", "a.csv"]) == ["-", "a.csv"]
    (tmp_path / "b.parquet").touch()
    (tmp_path / "a.parquet").touch()
    found = find_tables([str(tmp_path), "x"])
    assert found == [f"{tmp_path}/a.parquet", f"{tmp_path}/b.parquet", "x"]


def test_types_that_change_between_parts_are_refused(tmp_path):
    first = {"x": OutColumn(np.zeros(1), True, own=pa.chunked_array([[1]]))}
    then = {"x": OutColumn(np.zeros(1), True, own=pa.chunked_array([["a"]]))}

    def write_both():
        with OutTable(str(tmp_path / "t.parquet"), "row") as out:
            out.write(first)
            out.write(then)

    with pytest.raises(UserError, match="column 'x' is string in some files and"):
        write_both()
    assert os.listdir(tmp_path) == []
