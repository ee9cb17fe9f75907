"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


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
    handle, name = tempfile.mkstemp(
        dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".tmp"
    )
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        # A temporary file is for its owner only; the report is as other new files.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(target.stat().st_mode if target.exists() else 0o666 & ~mask)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
