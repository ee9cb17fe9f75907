"""Tables are written as the names of their files say, with types where they can be."""

import csv
import datetime as dt
import gzip

import numpy as np
import pandas as pd
import pytest

from localexpert.cli.cells import Dialect
from localexpert.cli.console import UserError
from localexpert.cli.out_column import OutColumn, copy_column
from localexpert.cli.out_format import OutFormat
from localexpert.cli.output import check_table_writable, write_table
from localexpert.cli.read_file import read_table

BIG = 1234567890123456789
CELLS = {
    "key": ["00123", "7", "8"],
    "big": [str(BIG), "", "-3"],
    "beyond": [str(2**64 - 1), "1", "2"],
    "huge": [str(10**30), "1", "2"],
    "price": ["1.5", "NA", "-2e3"],
    "long": ["0.5", f"{BIG}.0", "1"],
    "flag": ["True", "false", ""],
    "day": ["2024-02-29", "", "1969-12-31"],
    "no day": ["2024-02-30", "", "2024-01-01"],
    "moment": ["2024-01-01 10:00:00", "2024-01-01T10:00:00.25", ""],
    "word": [" a", "", "NA"],
    "nothing": ["", "", ""],
}
TYPED = {
    "key": ["00123", "7", "8"],
    "big": [BIG, None, -3],
    "beyond": [2**64 - 1, 1, 2],
    "huge": [str(10**30), "1", "2"],
    "price": [1.5, None, -2000.0],
    "long": ["0.5", f"{BIG}.0", "1"],
    "flag": [True, False, None],
    "day": [dt.date(2024, 2, 29), None, dt.date(1969, 12, 31)],
    "no day": ["2024-02-30", None, "2024-01-01"],
    "moment": [
        dt.datetime(2024, 1, 1, 10),
        dt.datetime(2024, 1, 1, 10, 0, 0, 250_000),
        None,
    ],
    "word": [" a", None, "NA"],
    "nothing": [None, None, None],
}


@pytest.fixture
def columns():
    cells = {name: np.array(texts, dtype=object) for name, texts in CELLS.items()}
    copied = {name: OutColumn(values, copied=True) for name, values in cells.items()}
    return {**copied, "mean": OutColumn(np.array([1.0, np.nan, np.inf]))}


def read_parquet(path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet needs pyarrow")
    return parquet.read_table(path)


def test_parquet_knows_types(columns, tmp_path):
    path = tmp_path / "t.Parquet"
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    write_table(str(path), columns, "row")
    table = read_parquet(path)
    got = table.to_pydict()
    assert got.pop("mean") == [1.0, None, np.inf]
    assert got == TYPED
    assert str(table.schema.field("day").type) == "date32[day]"
    assert str(table.schema.field("big").type) == "int64"


def test_parquet_from_parquet_keeps_types(tmp_path):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    frame = pd.DataFrame(
        {
            "small": np.array([1, 2, 3], dtype=np.int16),
            "float": [1.0, 2.0, np.nan],
            "big": pd.array([BIG, None, 3], dtype="Int64"),
            "when": pd.date_range("2024-01-01", periods=3, freq="min", tz="UTC"),
            "kind": pd.Categorical(["a", None, "b"]),
        },
        index=[5, 6, 7],
    )
    source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    frame.to_parquet(source)
    table = read_table(str(source))
    copied = {name: copy_column(table, name, Dialect()) for name in table.columns}
    write_table(str(out), copied, "row")
    want = read_parquet(source).select(frame.columns.to_list())
    assert read_parquet(out).to_pydict() == want.to_pydict()
    assert read_parquet(out).schema.types == want.schema.types
    # Some rows of it are no longer the columns of the file.
    assert table.take(np.array([0])).own == {}


def test_decimal_commas(tmp_path):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    cells = np.array(["1,5", "1.234,5"], dtype=object)
    column = OutColumn(cells, copied=True, dialect=Dialect(","))
    write_table(str(tmp_path / "t.parquet"), {"x": column}, "row")
    assert read_parquet(tmp_path / "t.parquet").to_pydict() == {"x": [1.5, 1234.5]}


@pytest.mark.parametrize(
    ("name", "mark"), [("t.csv", ","), ("t.TSV", "\t"), ("t", ","), ("t.tsv.gz", "\t")]
)
def test_texts(columns, tmp_path, name, mark):
    path = tmp_path / name
    write_table(str(path), columns, "row")
    data = path.read_bytes()
    if name.endswith(".gz"):
        write_table(str(path), columns, "row")
        assert path.read_bytes() == data  # without the time
        data = gzip.decompress(data)
    header, *rows = csv.reader(data.decode().splitlines(), delimiter=mark)
    assert header == list(columns)
    want = [list(row) for row in zip(*CELLS.values(), strict=True)]
    assert [row[:-1] for row in rows] == want
    assert [row[-1] for row in rows] == ["1.0", "", "inf"]


@pytest.mark.parametrize(
    "name",
    [
        *(
            "t.xlsx",
            "t.json",
            "t.feather",
            "t.zip",
            "t.parquet.gz",
            "t.gz",
            "t.csv.bz2",
        ),
        *("t.csv.zst", "t.txt", "t.v2"),
    ],
)
def test_other_names_are_refused_before_anything_is_read(refused, name):
    message = refused("predict", "no.zip", "no.csv", "--out", name)
    assert message == (
        "--out must end in .csv, .tsv, .csv.gz, .tsv.gz or .parquet, which says how "
        f"the table is written, got {name!r}"
    )
    words = ["--score", "s", "--label", "y", "--out", name]
    assert "--out must end in .csv" in refused("calibrate", "no.csv", *words)


def test_parquet_needs_pyarrow(monkeypatch):
    def refuse(name):
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", refuse)
    with pytest.raises(
        UserError, match=r"--out 't.parquet' needs pyarrow: pip install"
    ):
        check_table_writable("t.parquet", [])
    assert OutFormat.of("-") == OutFormat.of("t") == OutFormat("")


def test_as_a_user_would(run, houses, tmp_path):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    outs = [tmp_path / name for name in ("f.csv", "f.csv.gz", "f.parquet")]
    for out in outs:
        words = [houses / "model.zip", houses / "test.csv", "--keep", "id,sold"]
        code, _, lines = run("predict", *words, "--out", out)
        assert (code, lines[-1]) == (0, f"localexpert: wrote 80 forecasts to {out}")
    columns = ["mean", "std", "q0.05", "q0.5", "q0.95"]
    plain, packed = (
        pd.read_csv(out, dtype=dict.fromkeys(columns, str)) for out in outs[:2]
    )
    typed = pd.read_parquet(outs[2])
    pd.testing.assert_frame_equal(plain, packed)
    assert typed["sold"].map(str).tolist() == plain["sold"].tolist()
    # To the last digit, which pandas may not read.
    told = plain[columns].map(float)
    pd.testing.assert_frame_equal(told, typed[columns], check_exact=True)
