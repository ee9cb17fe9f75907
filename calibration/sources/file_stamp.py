"""What tells that a file has not been written to since its layout was read."""

from __future__ import annotations

from pathlib import Path


def stamp_of(path: Path) -> str:
    """Return size and time of a file.

    Parameters
    ----------
    path : Path

    Returns
    -------
    str
    """
    stat = path.stat()
    return f"{stat.st_size}|{stat.st_mtime_ns}"


def check_stamp(path: Path, stamp: str, name: str) -> None:
    """Refuse a file that is not what it was: its parts lie elsewhere by now.

    Parameters
    ----------
    path : Path
    stamp : str
        What `stamp_of` said.
    name : str
        What messages call the part.
    """
    if stamp_of(path) != stamp:
        msg = (
            f"`source` must stay as it is while it is read, got {name}, whose file was "
            "written to."
        )
        raise ValueError(msg)
