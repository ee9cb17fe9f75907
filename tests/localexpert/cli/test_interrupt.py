"""Ctrl-C: code 130 and silence, whenever it comes."""

import signal
import subprocess
import sys

import pytest

from localexpert.cli.interrupt import clean_up_first, leave_at_once

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has no such signals")


@pytest.fixture(autouse=True)
def heard():
    """Have Ctrl-C heard, also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_while_modules_are_imported():
    # Python tells on stderr what it has imported.
    command = [sys.executable, "-X", "importtime", "-m", "localexpert", "--help"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while not process.stderr.readline().rstrip().endswith("cli.interrupt"):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    assert "localexpert.cli.main" not in err


@pytest.mark.parametrize(
    ("words", "mine"),
    [
        (["/usr/bin/localexpert", "fit"], True),
        (["/usr/lib/localexpert/__main__.py", "fit"], True),
        (["/usr/lib/other/__main__.py", "fit"], False),
        (["train.py"], False),
        ([], False),
    ],
)
def test_programs_that_import_the_package_keep_their_ways(monkeypatch, words, mine):
    monkeypatch.setattr(sys, "argv", words)
    leave_at_once()
    changed = signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    clean_up_first()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert changed == mine


def test_who_ignores_it_goes_on_ignoring(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["localexpert"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    leave_at_once()
    clean_up_first()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
