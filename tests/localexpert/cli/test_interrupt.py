"""Ctrl-C: code 130 and silence, whenever it comes."""

import signal
import subprocess
import sys
import time

import pytest

from localexpert.cli.interrupt import clean_up_first, leave_at_once

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has no such signals")


@pytest.mark.parametrize("seconds", [0.3, 0.8])
def test_while_modules_are_imported(seconds):
    process = subprocess.Popen(
        [sys.executable, "-m", "localexpert", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60) == (b"", b"")
    assert process.returncode == 130


@pytest.mark.parametrize(
    ("words", "orig", "mine"),
    [
        (["/usr/bin/localexpert", "fit"], [], True),
        (["-m", "fit"], ["python", "-m", "localexpert", "fit"], True),
        (["-m", "fit"], ["python", "-m", "other", "fit"], False),
        (["train.py"], ["python", "train.py"], False),
        ([], [], False),
    ],
)
def test_programs_that_import_the_package_keep_their_ways(
    monkeypatch, words, orig, mine
):
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setattr(sys, "orig_argv", orig)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        leave_at_once()
        changed = signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        clean_up_first()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert changed == mine


def test_who_ignores_it_goes_on_ignoring(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["localexpert"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        leave_at_once()
        clean_up_first()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
