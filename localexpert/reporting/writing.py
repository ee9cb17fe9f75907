"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from calibration.storage import replacing_file, writable_file
from localexpert._validation import check_path


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Return the file that a path names; refuse one that cannot be written."""
    path = check_path(path)
    try:
        return writable_file(path)
    except (FileNotFoundError, NotADirectoryError):
        reason = f"there is no directory {str(path.parent)!r}"
    except OSError as error:
        reason = error.strerror or str(error)
    msg = f"`path` must name a file that can be written, got {str(path)!r}: {reason}."
    raise OSError(msg)


def write_whole(target: Path, text: str) -> None:
    """Write a text to a file beside the target, which then takes its place."""
    with replacing_file(target) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
