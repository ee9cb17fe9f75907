"""Packed tables: members, padding, damage, bombs; and files that are no tables."""

import bz2
import gzip
import io
import lzma
import tracemalloc
import zipfile

import pytest

from localexpert.cli.console import UserError
from localexpert.cli.packed import MOST_BYTES, unpack
from localexpert.cli.read_file import read_table

TABLE = b"a,b\n1,2\n3,4\n"


def zip_of(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        *(gzip.compress(TABLE), bz2.compress(TABLE), lzma.compress(TABLE)),
        *(zip_of({"t.csv": TABLE}), zip_of({"f/": b"", "f/t": TABLE})),
        zip_of({"t.csv": TABLE, "__MACOSX/t": b"x"}),
    ],
    ids=("gzip", "bz2", "xz", "zip", "folder", "macos"),
)
def test_kinds_are_told_by_content(data, tmp_path):
    path = tmp_path / "t.txt"
    path.write_bytes(data)
    table = read_table(str(path))
    assert {name: list(cells) for name, cells in table.columns.items()} == {
        "a": ["1", "3"],
        "b": ["2", "4"],
    }


@pytest.mark.parametrize(
    "pack", [bz2.compress, lzma.compress, lambda d: zip_of({"a": d})]
)
def test_all_kinds_have_a_limit_and_may_be_damaged(pack):
    data = pack(bytes(2**16))
    with pytest.raises(UserError, match="unpacks to more than"):
        unpack("t", data, 2.0**15)
    with pytest.raises(UserError, match=r"t is a damaged (bzip2|xz|zip) file"):
        unpack("t", data[:-9], MOST_BYTES)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (zip_of({"a": b"1", "b": b"2"}), r"must hold one file .* holds 2: 'a', 'b'"),
        (zip_of({}), "is an empty zip file"),
        (zip_of({"f/": b""}), "must hold one file .* holds none"),
        (zip_of({"xl/workbook.xml": b"1"}), "is an Excel file; save the sheet as CSV"),
        (zip_of({"mimetype": b"1"}), "is an office document; save the sheet as CSV"),
        (zip_of({"arrays.bin": b"1"}), "is a saved model, not a table"),
        (gzip.compress(gzip.compress(TABLE)), "is packed twice; unpack it first"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1..", r"is an Excel file \(\.xls\)"),
        (b"\x28\xb5\x2f\xfd...", r"is a zstd file; unpack it first \(zstd -d\)"),
        (b"ARROW1\0\0", "is a Feather file; save it as Parquet"),
        (b"SQLite format 3\0", "is an SQLite database"),
        (b'[{"a": 1}]', "is a JSON file; save the table as CSV or Parquet"),
        (b'\xef\xbb\xbf {"a": 1}\n{"a": 2}\n', "is a JSON file"),
        (b"<!DOCTYPE html><table>", "is an HTML page"),
        (b'<?xml version="1.0"?>', "is an XML file"),
        (bytes(257).replace(b"\0", b"a") + b"ustar", "is a tar archive; unpack it"),
        (gzip.compress(b"a" * 257 + b"ustar"), "is a tar archive; unpack it first"),
    ],
    # Packed bytes hold the time.
    ids=lambda value: value if isinstance(value, str) else "data",
)
def test_what_is_no_table_is_refused_by_name(data, message, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    with pytest.raises(UserError, match=message):
        read_table(str(path))


def test_the_name_helps_where_the_content_does_not(tmp_path):
    path = tmp_path / "t.DTA"
    path.write_bytes(b"r\0\xff")
    with pytest.raises(UserError, match=r"is not UTF-8 .*; save the table as CSV"):
        read_table(str(path))
    path.write_bytes(TABLE)
    assert len(read_table(str(path))) == 2


def test_braces_may_begin_a_header(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"{a},[b]\n1,2\n")
    assert list(read_table(str(path)).columns) == ["{a}", "[b]"]


def test_members_and_padding(rng):
    parts = [rng.bytes(n) for n in (0, 1, 70_000, 300_000)]
    data = b"".join(map(gzip.compress, parts))
    assert unpack("t.gz", data + bytes(999), MOST_BYTES) == b"".join(parts)


@pytest.mark.parametrize("cut", [1, 8, 1000])
def test_damage(cut, rng):
    data = gzip.compress(rng.bytes(200_000))
    for damaged in (data[:-cut], data + b"x" * cut, data[:10] + data[10 + cut :]):
        with pytest.raises(UserError, match=r"t\.gz is a damaged gzip file: "):
            unpack("t.gz", damaged, MOST_BYTES)


def test_a_bomb_is_refused_before_it_bursts():
    data = gzip.compress(bytes(2**30), 1)
    tracemalloc.start()
    with pytest.raises(UserError, match=r"more than 0\.03125 GiB; .* --max-unpacked"):
        unpack("t.gz", data, 2.0**25)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**27


def test_the_size_that_is_allowed(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a\n" + b"1\n" * 49))
    with pytest.raises(UserError, match="unpacks to more than"):
        read_table(str(path), most=99)
    assert len(read_table(str(path), most=100)) == 49
