"""Python in a process of its own, since what is imported stays imported."""

import os
import subprocess
import sys
from pathlib import Path


def run_python(*words: str, folder: Path | None = None, **variables: str) -> str:
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
