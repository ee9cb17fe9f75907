"""Python in a process of its own, since what is imported stays imported."""

import os
import subprocess
import sys


def run_python(*words, folder=None, **variables):
    """Return what a fresh Python prints; it must not fail."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
