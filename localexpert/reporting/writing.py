"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from calibration.storage import replacing_file


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Return the file that a path names; refuse one that cannot be written."""
    try:
        # A link stays, and what it names is replaced.
        target = Path(os.path.realpath(os.fspath(path)))
        if target.exists() and not target.is_file():
            reason = "it is a directory" if target.is_dir() else "it is no file"
        elif not target.parent.is_dir():
            reason = f"there is no directory {str(target.parent)!r}"
        elif target.exists() and not os.access(target, os.W_OK):
            reason = "permission denied"
        else:
            with tempfile.TemporaryFile(dir=target.parent):
                pass
            return target
    except OSError as error:
        reason = error.strerror or str(error)
    msg = f"`path` must name a file that can be written, got {str(path)!r}: {reason}."
    raise OSError(msg)


def write_whole(target: Path, text: str) -> None:
    """Write a text to a file beside the target, which then takes its place."""
    with replacing_file(target) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
