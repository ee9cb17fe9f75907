"""Files: foreign, damaged, of a newer format, and writing that fails half way."""

import os
import warnings
import zipfile

import numpy as np
import pytest

from calibration import IsotonicCalibrator, PlattCalibrator
from calibration.storage import StorageError, load
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
    ("content", "complaint"),
    [
        (b"", "the file is empty"),
        (b"hello", "it is not a saved model"),
        (b"\x80\x04\x95", "it is not a saved model"),
        (b"PK\x03\x04 and no more", "truncated or damaged"),
    ],
)
def test_foreign_files(content, complaint, tmp_path):
    path = tmp_path / "foreign.zip"
    path.write_bytes(content)
    with pytest.raises(StorageError, match=rf"foreign\.zip': .*{complaint}"):
        load(path)


def test_other_zips(tmp_path):
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("manifest.json", "{}")
    with pytest.raises(StorageError, match="not a saved model"):
        load(tmp_path / "other.zip")
    np.savez(tmp_path / "arrays.npz", a=np.ones(3))
    with pytest.raises(StorageError, match="not a saved model"):
        load(tmp_path / "arrays.npz")


def test_other_formats_are_named(path):
    pieces = take_apart(path)
    put_together(path, *pieces, mark=b"calibration/model 3")
    with pytest.raises(StorageError, match=r"format version 3, .* version 2: a newer"):
        load(path)
    put_together(path, *pieces, mark=b"calibration/model 1")
    with pytest.raises(StorageError, match=r"format version 1, .* fit the model again"):
        load(path)
    for odd in (b"x", b"", b"0", b"-1", b"1 1"):
        put_together(path, *pieces, mark=b"calibration/model " + odd)
        with pytest.raises(StorageError, match=f"format version is '{odd.decode()}'"):
            load(path)


@pytest.mark.parametrize("name", ["../evil.bin", "/etc/passwd", "arrays.bin"])
def test_members_that_are_not_ours(name, path):
    with (
        warnings.catch_warnings(),
        zipfile.ZipFile(path, "a") as archive,
    ):
        warnings.simplefilter("ignore")  # a name that is there twice
        archive.writestr(name, b"x")
    with pytest.raises(StorageError, match=r"other members than model\.json and"):
        load(path)


def test_a_wrong_checksum(path):
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("model.json")
    wrong = data.replace(info.CRC.to_bytes(4, "little"), bytes(4))
    path.write_bytes(wrong)
    with pytest.raises(StorageError, match=r"damaged or truncated \(Bad CRC"):
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


def test_writing_is_all_or_nothing(path, monkeypatch):
    before = path.read_bytes()

    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        PlattCalibrator().save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    monkeypatch.undo()
    PlattCalibrator().save(path)
    assert type(load(path)) is PlattCalibrator


def test_rights_and_links_stay(model, path):
    path.chmod(0o640)
    link = path.with_name("link.zip")
    link.symlink_to(path)
    model.save(link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    np.testing.assert_array_equal(load(link).predict([0.3]), model.predict([0.3]))


def test_a_name_in_the_place_of_a_list_of_them(path):
    with pytest.raises(TypeError, match=r"`trusted` must be a list .* got 'x'"):
        load(path, trusted="x")
