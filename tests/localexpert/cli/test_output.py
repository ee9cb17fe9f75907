"""Output: whole files or none, and any text on any terminal."""

import io
import os
import sys

import numpy as np
import pytest

from localexpert.cli.console import note
from localexpert.cli.output import format_numbers, replacing, write_csv


def test_numbers_are_read_back_to_the_last_bit(rng):
    values = np.exp(rng.normal(0.0, 200.0, size=500))
    np.testing.assert_array_equal([float(v) for v in format_numbers(values)], values)
    assert format_numbers(np.array([np.nan, np.inf])) == ["", "inf"]


def test_what_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("old")

    def break_off():
        with replacing(str(path)) as temporary:
            temporary.write_text("half")
            int("midway")

    with pytest.raises(ValueError, match="midway"):
        break_off()
    assert path.read_text() == "old"
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
