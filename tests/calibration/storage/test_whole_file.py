"""Files that are written whole: where one may go is told before."""

import os
import stat
import subprocess
import sys
import threading

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


posix = pytest.mark.skipif(sys.platform == "win32", reason="has no locks of files")


def test_a_pipe_that_only_a_link_leads_to_is_refused():
    read, write = os.pipe()
    with (
        os.fdopen(read, "rb"),
        os.fdopen(write, "wb"),
        pytest.raises(OSError, match="it is no ordinary file"),
    ):
        writable_file(f"/dev/fd/{write}")


def test_what_has_become_a_pipe_meanwhile_is_left(tmp_path):
    def write_over(path):
        with replacing_file(path) as temporary:
            temporary.write_text("new")
            os.mkfifo(path)

    with pytest.raises(OSError, match="it is no ordinary file"):
        write_over(tmp_path / "f")
    assert stat.S_ISFIFO((tmp_path / "f").stat().st_mode)
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o666])
def test_permissions_are_handed_on_and_never_wider_before(tmp_path, mode):
    path = tmp_path / "f"
    path.write_text("old")
    path.chmod(mode)
    with replacing_file(path) as temporary:
        assert temporary.stat().st_mode & 0o077 == 0
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_names_as_long_as_they_may_be(tmp_path):
    path = tmp_path / ("\u6f22" * 85)
    with replacing_file(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"


DIE_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from calibration.storage import replacing_file
with replacing_file(Path(sys.argv[1])), replacing_file(Path(sys.argv[2])):
    os.kill(os.getpid(), signal.SIGKILL)
"""


@posix
def test_what_the_killed_leave_is_swept_and_the_living_are_not(tmp_path):
    path, code = tmp_path / "f", [sys.executable, "-c", DIE_WHILE_WRITING]
    subprocess.run([*code, path, tmp_path / "other"], check=False, timeout=120)
    (other,) = (name for name in os.listdir(tmp_path) if "other" in name)
    assert len(os.listdir(tmp_path)) == 2
    # What only looks like a temporary file is nobody's.
    for name in (".f.tmp", ".f.backup.tmp", ".f.0123456789abcdef.tmp~"):
        (tmp_path / name).write_text("mine")
    with replacing_file(path) as first:
        first.write_text("first")
        with replacing_file(path) as second:
            second.write_text("second")
        assert path.read_text() == "second"
    assert path.read_text() == "first"
    assert sorted(os.listdir(tmp_path)) == sorted(
        [".f.tmp", ".f.backup.tmp", ".f.0123456789abcdef.tmp~", "f", other]
    )


@posix
def test_many_writers_at_once_lose_nothing(tmp_path):
    path, failures = tmp_path / "f", []

    def write(text):
        try:
            for _ in range(50):
                with replacing_file(path) as temporary:
                    temporary.write_text(text)
        except OSError as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=(f"{i}" * 99,)) for i in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failures == []
    assert len(set(path.read_text())) == 1
    assert os.listdir(tmp_path) == ["f"]
