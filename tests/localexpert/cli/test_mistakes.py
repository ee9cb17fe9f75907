"""The user's mistakes: one line that names the thing, code 2, nothing half-written."""

import os
import subprocess
import sys
import zipfile

import pytest

from localexpert.cli.main import main
from localexpert.regressor.regressor import LocalExpertRegressor

GOOD = [["x", "y"], *([str(i), str(i * i % 17)] for i in range(30))]


@pytest.fixture
def no_fit(monkeypatch):
    """Whoever fits before the mistake is found fails."""

    def fail(*_, **__):
        pytest.fail("fitted before the mistake was found")

    monkeypatch.setattr(LocalExpertRegressor, "fit", fail)


@pytest.fixture
def refuse_fit(write, refused, tmp_path, no_fit):  # noqa: ARG001
    """Return a function that fits rows and returns the error."""

    def refuse(rows, *options):
        path = write(rows)
        before = sorted(os.listdir(tmp_path))
        message = refused("fit", path, *options, "--out", tmp_path / "m.zip")
        assert sorted(os.listdir(tmp_path)) == before
        return message.replace(path, "T")

    return refuse


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("", "T is empty"),
        ("x,y\n1,\n2,\n", "T must have at least 2 rows with a target 'y', got 0"),
        ("x,Y\n1,2\n3,4\n", "T has no target 'y'; its columns are 'x', 'Y'"),
        ("x,y\n1,2\n\n3,a\n", "must hold finite numbers, got 'a' in line 4 of T"),
        ("x,y,y\n1,2,3\n1,a,3\n", "T has several columns of one name: 'y'"),
    ],
)
def test_training_tables(refuse_fit, rows, message):
    assert message in refuse_fit(rows, "--target", "y")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--weight", "w"], "T has no weight 'w'"),
        (["--group", "g"], "T has no group 'g'"),
        (["--drop", "x,z"], "T has no column to drop 'z'"),
        (["--drop", "y"], "target 'y' cannot be weight, group or dropped as well"),
        (["--weight", "neg"], "weight 'neg' must hold numbers from 0 on, got '-1' in"),
        (["--weight", "zero"], "weight 'zero' must not be 0 in every row"),
        (["--weight", "gap"], "numbers from 0 on, got '' in line 2 of T"),
        (["--group", "gap"], "group 'gap' has a gap in line 2 of T"),
    ],
)
def test_named_columns(refuse_fit, options, message):
    rows = [["x", "neg", "zero", "gap", "y"]]
    rows += [[str(i), "-1", "0", "", str(i * i % 5)] for i in range(9)]
    assert message in refuse_fit(rows, "--target", "y", *options)


def test_what_the_regressor_refuses(write, refused, tmp_path):
    words = ["--target", "y", "--folds", "31", "--fast", "--out", tmp_path / "m.zip"]
    message = refused("fit", write(GOOD), *words)
    assert "`cv` must not be greater than the number of rows" in message
    assert os.listdir(tmp_path) == ["table.csv"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--monotone", "rooms:+1"], "`monotone` must name columns of `X`"),
        (["--monotone", "x:+1", "--fast"], "`strategy` must be"),
    ],
)
def test_directions_that_cannot_be_kept(write, refused, tmp_path, words, told):
    words = ["--target", "y", *words, "--out", tmp_path / "m.zip"]
    assert told in refused("fit", write(GOOD), *words)


class TestPaths:
    @pytest.mark.parametrize(
        ("out", "message"),
        [
            ("no/such/m.zip", "No such file or directory"),
            (".", "is a directory"),
            ("table.csv", "is the same file as"),
            ("table.csv/m.zip", "Not a directory"),
            ("x" * 300, "File name too long"),
        ],
    )
    @pytest.mark.usefixtures("no_fit")
    def test_are_tried_before_the_fit(self, write, refused, tmp_path, out, message):
        path = write(GOOD)
        got = refused("fit", path, "--target", "y", "--out", tmp_path / out)
        assert message in got
        assert os.listdir(tmp_path) == ["table.csv"]

    @pytest.mark.usefixtures("no_fit")
    def test_devices_are_not_replaced(self, write, refused, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        words = ["--target", "y", "--out", tmp_path / "pipe"]
        assert "is no ordinary file" in refused("fit", write(GOOD), *words)

    def test_a_disk_that_fills_up(self, write, refused, tmp_path, monkeypatch):
        def fail(_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", fail)
        words = ["--target", "y", "--fast", "--out", tmp_path / "m.zip"]
        assert "No space left on device" in refused("fit", write(GOOD), *words)
        assert os.listdir(tmp_path) == ["table.csv"]


class TestModels:
    @pytest.fixture
    def refuse_model(self, houses, refused, tmp_path):
        def refuse(data):
            path = tmp_path / "m.zip"
            path.write_bytes(data)
            message = refused("predict", path, houses / "test.csv")
            assert str(path) in message
            return message

        return refuse

    def test_damaged(self, refuse_model, houses):
        data = (houses / "model.zip").read_bytes()
        assert "is no sound model" in refuse_model(data[: len(data) // 2])
        assert "is no sound model of `localexpert fit`" in refuse_model(b"")
        with zipfile.ZipFile(houses / "model.zip") as archive:
            part = max(archive.infolist(), key=lambda info: info.compress_size)
        # Inside the part, for not every byte between parts means something.
        middle = part.header_offset + 100 + part.compress_size // 2
        damaged = data[:middle] + bytes([data[middle] ^ 255]) + data[middle + 1 :]
        assert "is no sound model" in refuse_model(damaged)

    def test_wrong_columns_at_predict(self, houses, refused, write, tmp_path):
        path, out = write([["area", "kind"], ["80", "hut"]]), tmp_path / "f.csv"
        message = refused("predict", houses / "model.zip", path, "--out", out)
        assert message == (
            f"{path} lacks 2 columns that the model was trained on: 'sold', 'garden'"
        )
        assert not out.exists()

    def test_a_name_of_no_letters_is_no_default(self, houses, refused):
        words = [houses / "model.zip", houses / "test.csv", "--target", ""]
        assert "has no target ''" in refused("evaluate", *words)


def test_interruption_is_quiet(write, tmp_path, capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalExpertRegressor, "fit", interrupt)
    words = ["fit", write(GOOD), "--target", "y", "--quiet"]
    assert main([*words, "--out", str(tmp_path / "m.zip")]) == 130
    assert capsys.readouterr() == ("", "")
    assert os.listdir(tmp_path) == ["table.csv"]


def test_memory_that_runs_out(write, tmp_path, refused, monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr("localexpert.reading.files.join_tables", fail)
    words = ["--target", "y", "--out", tmp_path / "m.zip"]
    assert "not enough memory" in refused("fit", write(GOOD), *words)


def test_as_a_process(tmp_path):
    """No traceback, the code, and one line; also for a name that is no UTF-8."""
    done = subprocess.run(
        [sys.executable, "-m", "localexpert", "fit", b"no\xff.csv"]
        + ["--target", "y", "--out", str(tmp_path / "m.zip")],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.startswith(b"localexpert: error: cannot read ")
    assert done.stderr.count(b"\n") == 1
