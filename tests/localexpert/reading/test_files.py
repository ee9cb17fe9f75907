"""Files: of every kind, packed, damaged, of several names; what is odd is refused."""

import bz2
import csv
import gzip
import io
import lzma
import os
import sys
import warnings
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from calibration import CalibrationWarning
from localexpert.reading import ColumnReader, FileFormat, TableError, files
from localexpert.reading.files import read_table

KEYS = 2**62 + np.arange(25)


@pytest.fixture
def read(tmp_path):
    """Return a function that reads bytes from a file."""

    def read_bytes(data, **how):
        path = tmp_path / "t.csv"
        path.write_bytes(data)
        return read_table(str(path), FileFormat(**how))

    return read_bytes


@pytest.fixture
def typed():
    """Return a table with types: keys of 64 bits, gaps, texts, dates, zones."""
    days = pd.Timestamp("2024-01-31") + pd.to_timedelta(np.arange(25), "h")
    return pd.DataFrame(
        {
            "key": KEYS,
            "x": np.where(np.arange(25) % 5, np.arange(25) / 4, np.nan),
            "kind": pd.Categorical(np.where(np.arange(25) % 2, "a", "b")),
            "at": days.tz_localize("Europe/Berlin"),
        }
    )


def zipped(data, *names, folder=False):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, data)
        if folder:
            archive.mkdir("folder")
    return file.getvalue()


PACKED = {
    "plain": bytes,
    "gzip": lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:]),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zip": lambda data: zipped(data, "t.csv", "__MACOSX/t.csv", folder=True),
}


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_delimiters_and_line_ends(read, mark, end, quote):
    rows = [["a", "b"], ["1", f"{quote}x y{quote}"], [], ["2", ""]]
    frame = read("".join(mark.join(row) + end for row in rows).encode())
    assert frame.to_dict("list") == {"a": ["1", "2"], "b": ["x y", ""]}
    assert frame.index.tolist() == [2, 4]
    assert frame.attrs["delimiter"] == mark


@pytest.mark.parametrize(
    ("text", "names", "decimal"),
    [
        ("a;b\n1,5;2,25\n3;4,5\n", ["a", "b"], ","),
        ('a,b\n"1,5",2\n3,"4,25"\n', ["a", "b"], ","),
        ("a\n1,5\n2,25\n", ["a"], ","),
        ("a;b\n1.5;x\n2.25;y\n", ["a", "b"], "."),
        ("a;b\n1.234;x\n2.345;y\n", ["a", "b"], None),  # thousands or not
        ("a;b\n1,5;2.5\n3,5;4.5\n", ["a", "b"], None),
        ("a;d\n1;1.2.2024\n2;3.4.2024\n", ["a", "d"], None),
        ("a\n1\n2\n", ["a"], None),
    ],
)
def test_delimiter_and_decimal_mark_are_found_together(read, text, names, decimal):
    frame = read(text.encode())
    assert list(frame) == names
    assert frame.attrs["decimal"] == decimal
    assert read(text.encode(), decimal=".").attrs["decimal"] == "."


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("pack", PACKED.values(), ids=PACKED)
def test_encodings_and_packing(read, encoding, pack):
    frame = read(pack("größe,b\nä,1\n".encode(encoding)))
    assert frame.to_dict("list") == {"größe": ["ä"], "b": ["1"]}


def test_what_is_not_utf8_is_read_as_windows_writes_it(read):
    data = "größe,b\nä,1 €\n".encode("cp1252")
    with pytest.warns(CalibrationWarning, match=r"byte 0xf6 in line 1.*as cp1252"):
        frame = read(data)
    assert frame.to_dict("list") == {"größe": ["ä"], "b": ["1 €"]}
    assert list(read("größe\nä\n".encode("cp437"), encoding="cp437")) == ["größe"]
    with pytest.raises(TableError, match=r"not ascii text .*give another --encoding"):
        read(data, encoding="ascii")


def test_a_table_that_may_be_cut_off_in_its_last_cell_is_named(read):
    with pytest.warns(CalibrationWarning, match=r"t\.csv does not end with a line br"):
        frame = read(b"a,b\n1,2.5\n3,4.")
    assert frame["b"].tolist() == ["2.5", "4."]


def test_quotes_and_lines(read):
    frame = read(b'\n\na,b\n"x\ny",5" pipe\n\n"x,""y""",2\n')
    assert frame.to_dict("list") == {"a": ["x\ny", 'x,"y"'], "b": ['5" pipe', "2"]}
    assert frame.index.tolist() == [4, 7]


def test_names(read):
    assert list(read(b" a ,,b\n1,2,3\n")) == ["a", "column 2", "b"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "t.csv is empty"),
        (b" \n\n", "is empty"),
        (b"a,b\n", "has a header but no rows"),
        (b"a,b\n1,2\n1,2,3\n", "line 3 of .* has 3 fields, its header has 2"),
        (b"a,b,a\n1,2,3\n", "several columns of one name: 'a'"),
        (b'a,b\n1,"2\n3,4\n', "is no proper table: unexpected end of data"),
        (b"a,b\n1,\0\n", "is not a text file: a zero byte in line 2"),
        (b"a,b\n1,\x01\xff\n", "is not utf-8 text .byte 0xff in line 2"),
        (b"a,b\n1,\x81\n", "is not utf-8 text .byte 0x81 in line 2.: 'charmap'"),
        (b'a,b\n1,"' + b"x" * 140_000 + b'"\n', "is no proper table: field larger"),
        (gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-9], "is a damaged gzip file"),
        (b"PK\x03\x04....", "is a damaged zip file"),
        (zipped(b"a\n1\n", "a.csv", "b.csv"), "must hold one file .* holds 2: 'a.csv'"),
        (b"PAR1 and so on", "is a damaged Parquet file"),
    ],
)
def test_what_is_refused(read, data, message):
    with pytest.raises(TableError, match=message):
        read(data)


@pytest.mark.parametrize("pack", [PACKED[name] for name in list(PACKED)[1:]])
def test_no_more_is_unpacked_than_allowed(read, pack):
    data = pack(b"a\n" + b"1\n" * 5_000)
    assert len(read(data, max_unpacked=10_002)) == 5_000
    with pytest.raises(TableError, match=r"unpacks to more than .*--max-unpacked"):
        read(data, max_unpacked=10_001)


@pytest.mark.parametrize("n_rows", [None, 10])
def test_what_a_parquet_file_unpacks_to_is_bounded(tmp_path, n_rows):
    path = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"x": [1] * 100_000}), path)
    how = FileFormat(max_unpacked=10_000)
    with pytest.raises(TableError, match="unpacks to more than"):
        next(files.read_tables([path], how, n_rows=n_rows))


@pytest.mark.parametrize(
    ("path", "message"),
    [("none.csv", "No such file"), (".", "Is a directory"), ("a\0b", "null")],
)
def test_files_that_cannot_be_read(path, message):
    with pytest.raises(TableError, match=f"cannot read .*{message}"):
        read_table(path)


class TestStandardInput:
    def test_is_a_table_of_any_kind(self, monkeypatch, typed):
        def feed(data):
            stream = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
            monkeypatch.setattr(sys, "stdin", stream)

        feed(b"a\n1\n")
        frame = read_table("-")
        assert (frame.attrs["path"], frame["a"].tolist()) == ("standard input", ["1"])
        feed(typed.to_parquet())
        assert read_table("-")["key"].tolist() == KEYS.tolist()
        feed(b"a,b\n1\n")
        with pytest.raises(TableError, match="line 2 of standard input has 1 field"):
            read_table("-")

    def test_that_is_closed_or_a_terminal(self, monkeypatch):
        monkeypatch.setattr(sys, "stdin", None)
        with pytest.raises(TableError, match="cannot read standard input: it is"):
            read_table("-")
        leader, terminal = os.openpty()
        with os.fdopen(leader), os.fdopen(terminal) as stream:
            monkeypatch.setattr(sys, "stdin", stream)
            with pytest.raises(TableError, match="standard input is a terminal"):
                read_table("-")


def test_parquet_keeps_types_and_an_index_with_a_name(tmp_path, typed):
    path = str(tmp_path / "t.parquet")
    typed.set_index("kind", append=True).iloc[3:].to_parquet(path)
    frame = read_table(path)
    assert list(frame) == ["key", "x", "at", "kind"]
    assert frame["key"].tolist() == KEYS[3:].tolist()
    assert frame["kind"].tolist() == typed["kind"].tolist()[3:]
    assert str(frame.dtypes["at"]).endswith("s, tz=Europe/Berlin][pyarrow]")
    assert frame.index.tolist()[:2] == [1, 2]
    assert frame.index.name == "row"


@pytest.mark.parametrize("n_rows", [None, 2])
def test_an_even_index_with_a_name_is_a_column(tmp_path, n_rows):
    path, index = str(tmp_path / "t.parquet"), pd.RangeIndex(5, 11, 2, name="t")
    pd.DataFrame({"x": [1.5, 2.5, 4.0]}, index).to_parquet(path)
    for columns in (["x", "t"], ["t"], ["x"]):
        read = list(files.read_tables([path], None, columns, n_rows))
        held = files.join_tables(read)
        assert (list(held), read[0].attrs["names"]) == (columns, ("x", "t"))
        if "t" in columns:
            assert held["t"].tolist() == index.tolist()


@pytest.mark.parametrize("n_rows", [None, 2])
@pytest.mark.parametrize(
    "convert",
    [
        lambda held: held.cast(pa.string_view()),
        lambda held: held.cast(pa.large_string()),
        pa.Array.dictionary_encode,
    ],
)
def test_texts_of_arrow_are_read_like_strings(tmp_path, convert, n_rows):
    held = {"a": ["x", None, "y", "x"], "n": ["1.5", "2", "", "km"], "y": list("1234")}
    path, read = str(tmp_path / "t.parquet"), []
    for how in (lambda held: held, convert):
        made = {name: how(pa.array(texts)) for name, texts in held.items()}
        pq.write_table(pa.table(made), path)
        frame = files.join_tables(list(files.read_tables([path], n_rows=n_rows)))
        reader = ColumnReader("y", categories=["n"]).fit(frame)
        read.append(reader.transform(frame).assign(y=reader.read_target(frame)))
    pd.testing.assert_frame_equal(*read)


@pytest.mark.parametrize("n_rows", [None, 7])
def test_one_pair_of_quotes_changes_nothing(tmp_path, rng, n_rows):
    texts = ["", " ", "a", "b\u2028c", "\x0b", "\x85", "1.5", "\U0001f600"]
    cells = rng.choice(texts, (2_000, 3))
    cells[:, 2] = np.arange(2_000)
    ends = rng.choice(["\r", "\n\r\n", "\n"], 2_000)
    rows = [";".join(row) for row in cells]
    text = "".join(row + end for row, end in zip(rows, ends, strict=True))
    read = []
    for first in ("p", '"p"'):
        (tmp_path / "t.csv").write_bytes(f"{first};q;r\n{text}".encode())
        how = FileFormat(delimiter=";")
        parts = files.read_tables([str(tmp_path / "t.csv")], how, n_rows=n_rows)
        read.append(files.join_tables(list(parts)))
    pd.testing.assert_frame_equal(*read)
    assert read[0].to_numpy().tolist() == cells.tolist()


@pytest.mark.parametrize("suffix", ["csv", "parquet", "parquet.gz"])
def test_parts_are_the_whole(tmp_path, typed, suffix):
    path = str(tmp_path / f"t.{suffix}")
    if suffix == "csv":
        typed.to_csv(path, index=False)
    else:
        data = typed.to_parquet(row_group_size=10)
        packed = gzip.compress(data) if suffix.endswith("gz") else data
        (tmp_path / f"t.{suffix}").write_bytes(packed)
    whole = read_table(path)
    parts = list(files.read_tables([path], columns=["kind", "key", "z"], n_rows=7))
    assert max(map(len, parts)) <= 7
    joined = files.join_tables(parts)
    assert joined.attrs["path"] == path
    joined = joined.droplevel(0)
    pd.testing.assert_frame_equal(joined, whole[["key", "kind"]], check_names=False)
    assert parts[1].attrs["names"] == tuple(typed)
    assert files.count_rows([path], FileFormat()) == 25


def test_excel(tmp_path):
    pytest.importorskip("openpyxl", reason="Excel files need openpyxl")
    frame = pd.DataFrame(
        {"a": [1, 2.5, "k.A."], "d": pd.to_datetime(["2024-01-01"] * 3), "": ["x"] * 3}
    )
    path = tmp_path / "t.xlsx"
    frame.to_excel(path, index=False, startrow=2)
    got = read_table(str(path))
    assert got["a"].tolist() == [1, 2.5, "k.A."]
    assert list(got) == ["a", "d", "column 3"]
    assert got.index.tolist() == [4, 5, 6]
    assert files.count_rows([str(path)], FileFormat()) == 3
    with pytest.raises(TableError, match="unpacks to more than"):
        read_table(str(path), FileFormat(max_unpacked=1000))
    with pd.ExcelWriter(path, mode="a") as book:
        pd.DataFrame({"b": [2]}).to_excel(book, sheet_name="More", index=False)
    said = "t.xlsx has 2 sheets: 'Sheet1' alone is read"
    with pytest.warns(CalibrationWarning, match=said):
        assert list(read_table(str(path))) == ["a", "d", "column 3"]
    pd.DataFrame({"a": []}).to_excel(path, index=False)
    with pytest.raises(TableError, match="has no rows"):
        read_table(str(path))


def test_libraries_that_are_lacking_are_named(monkeypatch, read):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(TableError, match=r'pip install "localexpert\[excel\]"'):
        read(zipped(b"", "xl/workbook.xml"))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(TableError, match=r'pip install "localexpert\[io\]"'):
        read(b"PAR1")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(TableError, match="tables need pandas"):
        read(b"a\n1\n")


class TestSeveral:
    def test_folders_are_their_parquet_files(self, tmp_path):
        (tmp_path / "sub.parquet").mkdir()
        (tmp_path / "empty").mkdir()
        for name in ("b.parquet", "sub.parquet/a.parquet", "_SUCCESS.parquet", "c.csv"):
            (tmp_path / name).touch()
        found = files.find_tables([str(tmp_path), "-", "x.csv"])
        inside = [
            str(tmp_path / name) for name in ("b.parquet", "sub.parquet/a.parquet")
        ]
        assert found == [*inside, "-", "x.csv"]
        assert files.name_tables(["a/b.csv", "c"]) == "b.csv and 1 more"
        with pytest.raises(TableError, match="standard input can be read only once"):
            files.find_tables(["-", "-"])
        with pytest.warns(CalibrationWarning, match=r"named more than once.*x\.csv"):
            files.find_tables(["x.csv", "./x.csv"])
        with pytest.raises(TableError, match=r"has no file .*name CSV"):
            files.find_tables([str(tmp_path / "empty")])

    def test_rows_know_their_files(self, tmp_path):
        paths = [str(tmp_path / name) for name in ("a.csv", "b.csv")]
        for path, text in zip(paths, ("x,y\n1,2\n", "y,x,w\n\n3,4,5\n"), strict=True):
            (tmp_path / path).write_text(text)
        frame = files.join_tables(list(files.read_tables(paths)), left_out=["w"])
        assert frame.to_dict("list") == {"x": ["1", "4"], "y": ["2", "3"]}
        assert frame.index.tolist() == [(paths[0], 2), (paths[1], 3)]
        with pytest.raises(TableError, match=r"a\.csv has no .* 'w', .*b\.csv"):
            files.join_tables(list(files.read_tables(paths)))
        os.mkfifo(tmp_path / "pipe")  # is not counted, nor is standard input
        streams = [str(tmp_path / "pipe"), "-"]
        assert files.count_rows([*paths, *streams], FileFormat()) == 3

    def test_decimal_marks_must_be_one(self, tmp_path):
        paths = [str(tmp_path / name) for name in ("a.csv", "b.csv")]
        for path, number in zip(paths, ("1.5", "1,5"), strict=True):
            (tmp_path / path).write_text(f"x;y\n{number};2\n")
        with pytest.raises(TableError, match="differ in decimal marks"):
            files.join_tables(list(files.read_tables(paths)))

    def test_files_without_rows_and_damaged_ones(self, tmp_path, typed):
        paths = [str(tmp_path / f"{name}.parquet") for name in "abc"]
        for path, rows in zip(paths, (25, 0, 5), strict=True):
            typed.iloc[:rows].to_parquet(path)
        assert [len(frame) for frame in files.read_tables(paths)] == [25, 5]
        assert files.count_rows(paths, FileFormat()) == 30
        with pytest.raises(TableError, match="has no rows"):
            next(files.read_tables(paths[1:2]))
        data = (tmp_path / "c.parquet").read_bytes()
        (tmp_path / "c.parquet").write_bytes(data[: len(data) // 2])
        # What is wrong with the last is told before the first is read.
        with pytest.raises(TableError, match=r"c\.parquet is a damaged Parquet file"):
            next(files.read_tables(paths))


def test_pages_are_damaged_too(tmp_path, rng):
    """Whatever byte of a file is changed, it is read or refused in one way."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": rng.normal(size=50), "k": ["a", "b"] * 25}), path)
    data = bytearray(path.read_bytes())
    refused = 0
    for place in rng.integers(4, len(data), 60):
        damaged = data.copy()
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        try:
            read_table(str(path))
        except TableError:
            refused += 1
    assert refused > 20


WORDS = st.one_of(
    st.sampled_from(["", "y", "NA", "1", "-2.5", "1e400", "inf", "1_0", "\u0661"]),
    st.sampled_from(["2024-01-01", "31.12.2024", "03/04/2025", '"', "a\nb", "\0", ";"]),
    st.floats().map(str),
    st.text(max_size=6),
)
ROWS = st.lists(st.lists(WORDS, min_size=1, max_size=5), max_size=9)
NAMES = st.lists(WORDS, min_size=1, max_size=4)
# A table takes a hundred times as long to read as a score.
few = settings(max_examples=40)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("odd") / "t.csv"


def learn(path, data, decimal=None, order=None):
    """Return whether bytes can be learned from; features and targets are sound."""
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            frame = read_table(str(path), FileFormat(decimal=decimal))
            reader = ColumnReader("y", date_order=order).fit(frame)
        except TableError:
            return False
        features, y = reader.transform(frame), reader.read_target(frame)
        assert reader.lay_out()
    assert len(features) == len(y) == len(frame)
    assert not np.isinf(y).any()
    assert np.isfinite(y).sum() > 1
    assert not np.isinf(features.select_dtypes(np.float64)).to_numpy().any()
    return True


@few
@given(st.binary(max_size=200))
@example(b"\xff\xfey\x00")
@example(b"PAR1")
@example(b"\x1f\x8b\x08")
def test_bytes(path, data):
    learn(path, data)


@few
@given(NAMES, ROWS, st.sampled_from(",;\t"), st.sampled_from(["\n", "\r\n", "\r"]))
def test_tables(path, names, rows, mark, end):
    even = [(row * 5)[: len(names) + 1] for row in rows]
    text = end.join(mark.join(row) for row in [["y", *names], *even])
    for options in ((None, None), (",", "dmy")):
        learn(path, text.encode("utf-8", "surrogatepass"), *options)


@few
@given(st.lists(st.lists(WORDS, min_size=3, max_size=3), min_size=2, max_size=9))
def test_sound_targets_with_odd_features(path, rows):
    """Quoted as they should be, and the target a number."""
    buffer = io.StringIO(newline="")
    numbered = ([str(i), *row] for i, row in enumerate(rows))
    csv.writer(buffer).writerows([["y", "a", "b", "c"], *numbered])
    learn(path, buffer.getvalue().encode("utf-8", "surrogatepass"))
