"""Files that are written whole: where one may go is told before."""

import os

import pytest

from calibration.storage import replacing_file, writable_file


def test_a_link_is_followed_to_a_file_that_may_not_be_there(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert writable_file(tmp_path / "link") == tmp_path / "file"
    (tmp_path / "file").write_text("old")
    assert writable_file(str(tmp_path / "link")) == tmp_path / "file"
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]


def test_what_is_no_file_is_refused_and_left(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is no ordinary file"):
        writable_file(tmp_path / "pipe")
    with (
        pytest.raises(IsADirectoryError, match="it is a directory"),
        replacing_file(tmp_path),
    ):
        pytest.fail("began to write")
    with pytest.raises(FileNotFoundError, match="No such file or directory"):
        writable_file(tmp_path / "none" / "file")
    with pytest.raises(OSError, match="File name too long"):
        writable_file(tmp_path / ("x" * 300))
    assert os.listdir(tmp_path) == ["pipe"]
