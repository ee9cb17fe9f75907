"""Files: foreign, of another format, and written whole or not at all."""

import os
import stat
import warnings
import zipfile

import numpy as np
import pytest

from calibration import IsotonicCalibrator, PlattCalibrator
from calibration.storage import StorageError, load, replacing_file, writable_file
from tests.calibration.storage.archives import put_together, take_apart


@pytest.fixture
def model(rng):
    scores = rng.uniform(size=300)
    return IsotonicCalibrator().fit(scores, rng.uniform(size=300) < scores)


@pytest.fixture
def path(model, tmp_path):
    model.save(tmp_path / "model.zip")
    return tmp_path / "model.zip"


def test_a_missing_file_is_the_business_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.zip"):
        load(tmp_path / "none.zip")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        PlattCalibrator().save(tmp_path / "nowhere" / "model.zip")


@pytest.mark.parametrize(
    ("content", "mark", "said"),
    [
        (b"", None, "it is no saved model, or"),
        (b"hello", None, "it is no saved model, or"),
        (b"PK\x03\x04 and no more", None, "it is no saved model, or"),
        (None, b"", "it is not a saved model"),
        (None, b"calibration/model 2", "format version '2', .* reads version 4"),
        (None, b"calibration/model", "it has format version ''"),
    ],
)
def test_foreign_files_and_formats_are_named(content, mark, said, path):
    if content is None:
        put_together(path, *take_apart(path), mark=mark)
    else:
        path.write_bytes(content)
    with pytest.raises(StorageError, match=rf"model\.zip': .*{said}"):
        load(path)


@pytest.mark.parametrize("name", ["../evil.bin", "arrays.bin"])
def test_members_that_are_not_ours(name, path):
    with warnings.catch_warnings(), zipfile.ZipFile(path, "a") as archive:
        warnings.simplefilter("ignore")  # a name that is there twice
        archive.writestr(name, b"x")
    with pytest.raises(StorageError, match=r"other members than model\.json and"):
        load(path)


def test_a_bomb_is_not_unpacked(path):
    nodes, _ = take_apart(path)
    put_together(path, nodes, bytes(2**28))
    assert path.stat().st_size < 2**20
    with pytest.raises(StorageError, match=r"more than \d+ bytes of memory"):
        load(path)


def test_equal_models_make_equal_files(model, path):
    again = path.with_name("again.zip")
    model.save(again)
    assert again.read_bytes() == path.read_bytes()
    load(path).save(again)
    assert again.read_bytes() == path.read_bytes()


def test_gaps_between_fields_are_not_written(model, path):
    dtype = np.dtype([("a", "i8"), ("b", "u1")], align=True)
    model.x = np.frombuffer(b"\xff" * 2 * dtype.itemsize, dtype)
    model.save(path)
    assert take_apart(path)[1].endswith((b"\xff" * 9 + bytes(7)) * 2)
    assert load(path).x.tolist() == model.x.tolist()


def test_writing_is_all_or_nothing(path, monkeypatch):
    before = path.read_bytes()

    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        PlattCalibrator().save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o666])
def test_links_and_permissions_stay_and_are_never_wider_before(tmp_path, mode):
    path, link = tmp_path / ("\u6f22" * 85), tmp_path / "link"
    link.symlink_to(path)
    assert writable_file(link) == path  # which is not there yet
    path.write_text("old")
    path.chmod(mode)
    with replacing_file(link) as temporary:
        assert temporary.stat().st_mode & 0o077 == 0
        temporary.write_text("new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_what_is_no_file_is_refused_and_left(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is no ordinary file"):
        writable_file(tmp_path / "pipe")
    with (
        pytest.raises(IsADirectoryError, match="it is a directory"),
        replacing_file(tmp_path),
    ):
        pytest.fail("began to write")
    with pytest.raises(FileNotFoundError, match=r"No such file or .*none/file'$"):
        writable_file(tmp_path / "none" / "file")
    read, write = os.pipe()
    with (
        os.fdopen(read, "rb"),
        os.fdopen(write, "wb"),
        pytest.raises(OSError, match="it is no ordinary file"),
    ):
        # A pipe that only a link leads to.
        writable_file(f"/dev/fd/{write}")
    assert os.listdir(tmp_path) == ["pipe"]
