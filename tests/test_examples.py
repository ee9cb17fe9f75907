"""Every example runs from start to end and leaves its picture."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip(), "an example says what it found"
    pictures = list(tmp_path.glob("*.png"))
    assert pictures, "an example leaves a picture"
    assert all(picture.stat().st_size > 1000 for picture in pictures)


def test_there_are_examples() -> None:
    assert EXAMPLES
