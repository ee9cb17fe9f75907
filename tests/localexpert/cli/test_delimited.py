"""Delimited files: encodings, delimiters, headers, and what is refused."""

import gzip

import pytest

from localexpert.cli.console import UserError
from localexpert.cli.read_file import read_parts, read_table


@pytest.fixture
def read(tmp_path):
    """Return a function that reads bytes from a file."""

    def read_bytes(data, **options):
        path = tmp_path / "t.csv"
        path.write_bytes(data)
        return read_table(str(path), **options)

    return read_bytes


def columns_of(table):
    return {name: cells.tolist() for name, cells in table.columns.items()}


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_delimiters_and_line_ends(read, mark, end):
    rows = [["a", "b"], ["1", "x y"], ["2", f'"q{mark}""r"""']]
    table = read(end.join(mark.join(row) for row in rows).encode())
    assert columns_of(table) == {"a": ["1", "2"], "b": ["x y", f'q{mark}"r"']}
    assert table.places.tolist() == [2, 3]


def test_a_decimal_comma_is_a_delimiter_where_nothing_else_is(read):
    table = read(b'a,b\n"1,5",2\n3,"4,5"\n', decimal=",")
    assert columns_of(table) == {"a": ["1,5", "3"], "b": ["2", "4,5"]}
    assert columns_of(read(b"a\n1,5\n2,5\n", decimal=",")) == {"a": ["1,5", "2,5"]}
    assert columns_of(read(b"a.b\n1.5\n2.5\n")) == {"a.b": ["1.5", "2.5"]}


def test_a_decimal_comma_is_no_delimiter(read):
    table = read(b"a;b\n1,5;2,5\n3,5;4,5\n", decimal=",")
    assert columns_of(table) == {"a": ["1,5", "3,5"], "b": ["2,5", "4,5"]}
    # Even rows win over a greater number of parts in the first.
    assert read(b"a;b\n1,5;2,5\n3;4,5\n").columns["b"].tolist() == ["2,5", "4,5"]


def test_a_given_delimiter_is_obeyed(read):
    assert list(read(b"a,b:c\n1,2:3\n", delimiter=":").columns) == ["a,b", "c"]


def test_one_column(read):
    assert columns_of(read(b"a\n1\n\n2\n")) == {"a": ["1", "2"]}


def test_files_that_were_marked_twice(read):
    assert list(read("\ufeff\ufeffa,b\n1,2\n".encode("utf-8-sig")).columns) == [
        "a",
        "b",
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_encodings_and_gzip(read, encoding, pack):
    table = read(pack("größe,b\nä,1\n".encode(encoding)))
    assert columns_of(table) == {"größe": ["ä"], "b": ["1"]}


def test_lines_count_blank_lines_and_breaks_in_quotes(read):
    table = read(b'\na,b\n"x\ny",1\n\nz,2\n')
    assert columns_of(table) == {"a": ["x\ny", "z"], "b": ["1", "2"]}
    assert table.places.tolist() == [3, 6]
    assert table.where(1).startswith("line 6 of ")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_blank_lines_before_the_header(read, end, tmp_path):
    read(f"{5 * end}a,b{end}1,2{end}{end}3,4{end}".encode())
    parts = list(read_parts(str(tmp_path / "t.csv"), None, ".", 2))
    assert [part.places.tolist() for part in parts] == [[7], [9]]
    assert parts[1].columns["b"].tolist() == ["4"]


def test_quotes_inside_a_field_are_letters(read):
    table = read(b'a,b\n5" pipe,1\n"x,""y""",2\n')
    assert columns_of(table) == {"a": ['5" pipe', 'x,"y"'], "b": ["1", "2"]}


def test_a_delimiter_that_is_no_ascii(read):
    table = read("a§b\n1§2\n".encode(), delimiter="§")
    assert columns_of(table) == {"a": ["1"], "b": ["2"]}


def test_names_become_different(read, capsys):
    table = read(b"a, a ,a.1,,a\n1,2,3,4,5\n")
    assert list(table.columns) == ["a", "a.2", "a.1", "column 4", "a.3"]
    assert table.repeated == ("a",)
    assert "several columns of one name" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"a,b\n", "has a header but no rows"),
        (b"a,b\n1,2\n1,2,3\n", "line 3 of .* has 3 fields, its header has 2"),
        (b"a,b\n1,2\n1\n", "line 3 of .* has 1 field, its header has 2"),
        (b'a,b\n1,"2\n3,4\n', "is no proper table: unexpected end of data"),
        (b"a,b\n1,\xff\n", "is not UTF-8 text: byte 0xff in line 2"),
        (b"a,b\n1,\0\n", "is not a text file: a zero byte in line 2"),
        (gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-9], "is a damaged gzip file"),
        (b"\x1f\x8bnothing", "is a damaged gzip file"),
        (b"PK\x03\x04....", "is a damaged zip file"),
        (b"a,b\n1," + b"x" * 140_000, "is no proper table: field larger"),
    ],
)
def test_what_is_refused(read, data, message):
    with pytest.raises(UserError, match=message):
        read(data)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match=r"cannot read .*No such file"):
        read_table(str(tmp_path / "none.csv"))
    with pytest.raises(UserError, match=r"cannot read .*Is a directory"):
        read_table(str(tmp_path))
    with pytest.raises(UserError, match=r"cannot read .*null"):
        read_table("a\0b")
