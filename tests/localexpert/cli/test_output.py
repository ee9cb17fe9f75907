"""Output: whole files or none, and any text on any terminal."""

import csv
import errno
import io
import os
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest

from localexpert.cli.console import UserError, note
from localexpert.cli.out_column import OutColumn, format_numbers
from localexpert.cli.out_format import TextWriter
from localexpert.cli.output import (
    check_table_writable,
    check_writable,
    read_out,
    write_out,
    write_table,
)


def write_csv(path, columns, noun):
    cells = {name: np.array(texts, dtype=object) for name, texts in columns.items()}
    told = {name: OutColumn(texts, copied=True) for name, texts in cells.items()}
    write_table(path, told, noun)


def test_numbers_are_read_back_to_the_last_bit(rng):
    values = np.exp(rng.normal(0.0, 200.0, size=500))
    np.testing.assert_array_equal([float(v) for v in format_numbers(values)], values)
    assert format_numbers(np.array([np.nan, np.inf])) == ["", "inf"]


def test_what_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "f.csv"
    path.write_text("old")

    def fail(self, *_, **__):
        self.stream.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(TextWriter, "write", fail)
    with pytest.raises(UserError, match=r"cannot write --out '.*f.csv': No space left"):
        write_csv(str(path), {"a": ["1"]}, "row")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f.csv"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "f.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("f.csv")
    write_csv(str(tmp_path / "link.csv"), {"a": ["1"], "b": ["x,y"]}, "row")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "f.csv").read_text() == 'a,b\n1,"x,y"\n'


def test_terminals_that_know_no_umlauts(monkeypatch):
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="ascii") for _ in range(2))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    write_csv("-", {"gr\u00f6\u00dfe": ["\u00e4"]}, "row")
    note("wrote gr\u00f6\u00dfe\nand more")
    err.flush()
    assert out.buffer.getvalue().decode() == "gr\u00f6\u00dfe\n\u00e4\n"
    assert err.buffer.getvalue() == b"localexpert: wrote gr\\xf6\\xdfe and more\n"


def test_line_breaks_inside_of_cells_are_kept(tmp_path):
    cells = ["a\rb", "c\r\nd", "e\nf", 'g"h,i', " j "]
    path = tmp_path / "f.csv"
    write_csv(str(path), {"x": cells, "y": ["1"] * 5}, "row")
    with path.open(newline="", encoding="utf-8") as file:
        assert [row[0] for row in csv.reader(file)] == ["x", *cells]


unix = pytest.mark.skipif(
    not os.path.exists("/dev/full"), reason="needs a disk that is always full"
)


@unix
def test_a_full_disk_behind_standard_output(monkeypatch):
    # What it holds cannot be written when it is closed either.
    with suppress(OSError), open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(UserError, match="standard output: No space left on device"):
            write_out("text")
        sys.stdout.write("and at the end nobody complains again")
        sys.stdout.close()


def test_standard_output_that_is_closed(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(UserError, match="standard output: it is closed"):
        write_out("text")


@unix
def test_nobody_hears_what_is_said_on_stderr(monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", None)
        note("to nobody")
    with (
        suppress(OSError),
        open("/dev/full", "w", encoding="utf-8") as full,
        monkeypatch.context() as patch,
    ):
        patch.setattr(sys, "stderr", full)
        note("to a full disk")
        sys.stderr.close()
    assert capsys.readouterr() == ("", "")


@unix
def test_tables_are_written_to_devices_and_pipes_which_stay(tmp_path, capsys):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        check_table_writable(str(pipe), [])
        write_csv(str(pipe), {"a": ["1"]}, "row")
        assert reader.communicate(timeout=60)[0] == b"a\n1\n"
    assert os.listdir(tmp_path) == ["pipe"]
    write_csv("/dev/null", {"a": ["1"]}, "row")
    assert not os.path.isfile("/dev/null")
    with pytest.raises(UserError, match=r"cannot write --out '/dev/full': No space"):
        write_csv("/dev/full", {"a": ["1"]}, "row")
    assert "wrote 1 row to /dev/null" in capsys.readouterr().err


def test_names_of_standard_output_are_one():
    # As a file it would be replaced, and what `>> log` has kept with it.
    assert read_out("/dev/stdout") == read_out("/dev/fd/1") == "-"
    assert read_out("./-") == "./-"


def test_files_that_are_read_or_written_already_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text("old")
    (tmp_path / "link").symlink_to("t.csv")
    os.link(tmp_path / "t.csv", tmp_path / "twin")
    for name in ("t.csv", "link", "twin"):
        with pytest.raises(UserError, match=r"'.*' is the same file as '.*t.csv'"):
            check_writable(str(tmp_path / name), "--out", [str(tmp_path / "t.csv")])
    new = str(tmp_path / "new")
    with pytest.raises(UserError, match=r"--save .* is the same file as"):
        check_writable(f"{tmp_path}/./new", "--save", ["-", new])
    # Others that are not there are somebody else's mistake.
    check_writable(str(tmp_path / "t.csv"), "--out", ["-", new])
