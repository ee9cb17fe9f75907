"""Output: whole files or none, in every format, and any text on any terminal."""

import csv
import errno
import gzip
import io
import os
import sys
from contextlib import suppress
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from localexpert.cli import output
from localexpert.cli.output import note
from localexpert.reading import TableError

BIG = 1234567890123456789
# As a CSV has them, and as Parquet does: texts, with gaps.
CELLS = {
    "key": ["00123", "7", "8"],
    "big": [str(BIG), "", "-3"],
    "price": ["1.5", "", "-2e3"],
    "day": ["2024-02-29", "", "1969-12-31"],
    "word": [" a", "", "=1+1"],
    "nothing": ["", "", ""],
}


@pytest.fixture
def frame():
    """Return texts as they were read, and numbers of ours."""
    texts = {name: np.array(cells, object) for name, cells in CELLS.items()}
    return pd.DataFrame({**texts, "mean": [1.0, np.nan, np.inf]})


def write(path, parts, **options):
    usual = {"delimiter": None, "decimal": None, "out": str(path)}
    output.write_table(SimpleNamespace(**{**usual, **options}), "row", parts)


def split(frame, n):
    return [frame.iloc[rows] for rows in np.array_split(np.arange(len(frame)), n)]


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize(
    ("name", "mark"), [("t.csv", ","), ("t.TSV", "\t"), ("t", ","), ("t.tsv.gz", "\t")]
)
def test_texts(frame, tmp_path, name, mark, parts):
    path = tmp_path / name
    write(path, split(frame, parts))
    data = path.read_bytes()
    if name.endswith(".gz"):
        write(path, split(frame, parts))
        assert path.read_bytes() == data  # without the time
        data = gzip.decompress(data)
    header, *rows = csv.reader(data.decode().splitlines(), delimiter=mark)
    assert header == list(frame)
    cells = zip(*CELLS.values(), strict=True)
    assert [row[:-1] for row in rows] == list(map(list, cells))
    assert [row[-1] for row in rows] == ["1.0", "", "inf"]


@pytest.mark.parametrize("parts", [1, 3])
def test_parquet_has_texts_and_numbers(frame, tmp_path, parts):
    write(path := tmp_path / "t.Parquet", split(frame, parts))
    got = pq.read_table(path).to_pydict()
    assert got.pop("mean") == [1.0, None, np.inf]
    assert got == {
        name: [text or None for text in texts] for name, texts in CELLS.items()
    }


def test_excel_knows_numbers_and_no_formulas(frame, tmp_path):
    frame["nothing"] = [pd.NA, None, ""]
    write(path := tmp_path / "t.xlsx", split(frame, 2), digits=2)
    sheet = openpyxl.load_workbook(path).active
    header, *rows = ([cell.value for cell in row] for row in sheet.rows)
    assert header == list(frame)
    assert rows[0][:2] == ["00123", str(BIG)]
    assert [row[-1] for row in rows] == [1.0, None, "inf"]
    assert [row[-2] for row in rows] == [None] * 3
    assert sheet.cell(4, 1 + list(frame).index("word")).data_type == "s"


@pytest.mark.parametrize(
    ("first", "second", "want"),
    [
        (["a"], [7], ["a", "7"]),
        ([7], ["8"], [7, 8]),
        ([1.5], [2], [1.5, 2.0]),
        (pd.array([None], "null[pyarrow]"), [7], [None, "7"]),
        (["a"], pd.Categorical(["b", "a"]), ["a", "b", "a"]),
        (pd.Categorical([1]), pd.Categorical(range(200)), [1, *range(200)]),
        ([7], ["008"], "column 'key' holds string after int64: save it alike"),
        ([7], ["b"], "column 'key' holds string after int64: save it alike"),
        ([7], [1.5], "column 'key' holds double after int64: save it alike"),
    ],
)
def test_parts_of_parquet_have_the_type_of_the_first(tmp_path, first, second, want):
    path = tmp_path / "t.parquet"
    parts = [pd.DataFrame({"key": cells}) for cells in (first, second)]
    if isinstance(want, str):
        with pytest.raises(TableError, match=want):
            write(path, parts)
        assert not path.exists()
    else:
        write(path, parts)
        assert pq.read_table(path)["key"].to_pylist() == want


def test_parquet_takes_cells_that_are_no_number_and_no_gap(tmp_path):
    cells = pd.Series(pd.arrays.ArrowExtensionArray(pa.array([1.5, np.nan])))
    write(path := tmp_path / "t.parquet", [pd.DataFrame({"key": cells})])
    held = pd.read_parquet(path)["key"]
    assert held[0] == 1.5
    assert np.isnan(held[1])


def test_kept_columns_keep_their_digits(tmp_path):
    frame = pd.DataFrame({"kept": [1.23456], "mean": [1.23456]})
    write(path := tmp_path / "t.csv", [frame], digits=2, keep=["kept"])
    assert path.read_text() == "kept,mean\n1.23456,1.2\n"


def test_objects_have_the_decimal_mark_of_the_table(tmp_path):
    cells = [1.5, "v1.2", None, 7, Decimal("2.50")]
    frame = pd.DataFrame({"cell": pd.Series(cells, dtype=object), "mean": 0.5})
    write(path := tmp_path / "t.csv", [frame], decimal=",", delimiter=";")
    held = [row.split(";")[0] for row in path.read_text().splitlines()[1:]]
    assert held == ["1,5", "v1.2", "", "7", "2,50"]


@pytest.mark.parametrize("name", ["f.csv", "f.csv.gz", "f.parquet", "f.xlsx"])
def test_what_fails_leaves_the_old_file(tmp_path, name):
    path = tmp_path / name
    path.write_text("old")

    def fail():
        yield pd.DataFrame({"a": ["1"]})
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(TableError, match=r"cannot write --out '.*f\..*': No space"):
        write(path, fail())
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [name]


def test_terminals_that_know_no_umlauts(monkeypatch):
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="ascii") for _ in range(2))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    write("-", [pd.DataFrame({"gr\u00f6\u00dfe": ["\u00e4"]})])
    note("wrote gr\u00f6\u00dfe\nand more")
    err.flush()
    assert out.buffer.getvalue().decode() == "gr\u00f6\u00dfe\n\u00e4\n"
    assert err.buffer.getvalue() == b"localexpert: wrote gr\\xf6\\xdfe and more\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full disk")
def test_a_full_disk_behind_standard_output(monkeypatch):
    # What it holds cannot be written when it is closed either.
    with suppress(OSError), open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(TableError, match="standard output: No space left on dev"):
            output.write_out("text")
        sys.stdout.write("and at the end nobody complains again")
        sys.stdout.close()


def test_standard_output_that_is_closed(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(TableError, match="standard output: it is closed"):
        output.write_out("text")


def test_names_of_standard_output_are_one():
    # As a file it would be replaced, and what `>> log` has kept with it.
    assert output.name_stdout("/dev/stdout") == output.name_stdout("/dev/fd/1") == "-"
    assert output.name_stdout("./-") == "./-"


def test_files_that_are_read_or_written_already_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text("old")
    (tmp_path / "link").symlink_to("t.csv")
    os.link(tmp_path / "t.csv", tmp_path / "twin")
    for name in ("t.csv", "link", "twin"):
        with pytest.raises(TableError, match=r"'.*' is the same file as '.*t.csv'"):
            output.check_file(str(tmp_path / name), "--out", [str(tmp_path / "t.csv")])
    new = str(tmp_path / "new")
    with pytest.raises(TableError, match=r"--save .* is the same file as"):
        output.check_file(f"{tmp_path}/./new", "--save", ["-", new])
    # Others that are not there are somebody else's mistake.
    output.check_file(str(tmp_path / "t.csv"), "--out", ["-", new])
