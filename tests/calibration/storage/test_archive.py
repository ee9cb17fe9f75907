"""Files: foreign, damaged, of a newer format, and writing that fails half way."""

import os
import zipfile

import numpy as np
import pytest

from calibration import IsotonicCalibrator, PlattCalibrator
from calibration.storage import StorageError, load
from calibration.storage import archive as archives
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


def test_a_newer_format_is_named(path):
    put_together(path, take_apart(path), version=archives.FORMAT_VERSION + 1)
    with pytest.raises(StorageError, match=r"format version 2, .* up to 1: a newer"):
        load(path)
    put_together(path, take_apart(path), version="x")
    with pytest.raises(StorageError, match="format version is 'x'"):
        load(path)


@pytest.mark.parametrize(
    "name",
    ["../evil.npy", "/etc/passwd.txt", "a\\b.npy", "C:/x.npy", "a/../b.npy", "A.npy"],
)
def test_names_that_are_not_ours(name, path):
    put_together(path, {**take_apart(path), name: b"x"})
    with pytest.raises(StorageError, match="foreign name"):
        load(path)


def test_members_missing_added_and_twice(path):
    members = take_apart(path)
    fewer = dict(list(members.items())[:-1])
    put_together(path, fewer)
    with pytest.raises(StorageError, match="is missing"):
        load(path)
    put_together(path, members, extra=[("stray.txt", b"x")])
    with pytest.raises(StorageError, match="not those that it lists"):
        load(path)
    with pytest.warns(UserWarning, match="Duplicate name"):
        put_together(path, members, extra=[("description.json", b"{}")])
    with pytest.raises(StorageError, match=r"'description\.json' twice"):
        load(path)


def test_a_wrong_checksum(path):
    members = take_apart(path)
    entry = {"size": 3, "sha256": "0" * 64}
    put_together(path, members, manifest={"members": dict.fromkeys(members, entry)})
    with pytest.raises(StorageError, match=r"description.json' is damaged"):
        load(path)


def test_a_bomb_is_not_unpacked(path):
    members = take_apart(path)
    put_together(path, {**members, "arrays/999.bin": bytes(2**28)})
    assert path.stat().st_size < 2**20
    with pytest.raises(StorageError, match="more than any sound file"):
        load(path)


def test_what_packs_like_a_bomb_is_written_plain(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "_FREE_BYTES", 1000)
    path = tmp_path / "zeros.zip"
    members = {"arrays/0.bin": bytes(10**6), "arrays/1.bin": b"abcd" * 10}
    archives.write_archive(path, members)
    assert path.stat().st_size > 10**6
    assert archives.read_archive(path) == members


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
