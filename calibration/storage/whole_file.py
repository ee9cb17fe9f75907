"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

# Letters of a file's name in that of its temporary one: no more than 255 bytes in all.
_NAME = 50


def writable_file(path: str | os.PathLike[str]) -> Path:
    """Return the file that a path or link names; refuse one that cannot be written.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    Path

    Raises
    ------
    OSError
        Its `strerror` says why nothing can be written there.
    """
    target = Path(os.path.realpath(path))
    # Not the target's: what a link such as /dev/fd/3 leads to may have no name.
    with suppress(FileNotFoundError):
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "it is a directory", str(path))
        if not stat.S_ISREG(mode):
            # A device or pipe would be replaced by a file.
            raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    # Whether files can be made there is found out by making one.
    with tempfile.TemporaryFile(dir=target.parent):
        pass
    return target


@contextmanager
def replacing_file(path: Path) -> Iterator[Path]:
    """Yield a path beside the given one, which takes its place if all goes well.

    A link stays, and what it names is replaced; a file that is replaced hands on its
    permissions. What writers that were killed have left beside the file is removed.

    Parameters
    ----------
    path : Path

    Yields
    ------
    Path
        Of an empty file.
    """
    target = writable_file(path)
    _sweep(target)
    old = target.stat() if target.exists() else None
    # Nobody may read the new file before who might not read the old one.
    temporary, lock = _make_temporary(target, 0o666 if old is None else 0o600)
    try:
        yield temporary
        if old is not None:
            _hand_on(old, temporary)
        # It may have become something else meanwhile.
        temporary.replace(writable_file(target))
    finally:
        temporary.unlink(missing_ok=True)
        if lock is not None:
            os.close(lock)


def _hand_on(old: os.stat_result, temporary: Path) -> None:
    """Give a file the owner, as far as we may, and the permissions of another."""
    if sys.platform != "win32":
        with suppress(OSError):
            os.chown(temporary, old.st_uid, old.st_gid)
    temporary.chmod(old.st_mode & 0o777)


def _make_temporary(target: Path, mode: int) -> tuple[Path, int | None]:
    """Return a new file beside another, and the open file that holds its lock.

    The lock keeps it from being swept, and ends with the process at the latest.
    """
    while True:
        name = f".{target.name[:_NAME]}.{secrets.token_hex(8)}.tmp"
        temporary = target.with_name(name)
        file = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)
        if sys.platform == "win32":
            # No open file can be moved there.
            os.close(file)
            return temporary, None
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        # Another writer may have swept it before it had its lock.
        if os.fstat(file).st_nlink:
            return temporary, file
        os.close(file)


def _sweep(target: Path) -> None:
    """Remove what writers of a file have left that were killed before they were done.

    The living hold a lock; where there are no locks nothing is removed.
    """
    if sys.platform == "win32":
        return
    ours = re.compile(rf"\.{re.escape(target.name[:_NAME])}\.[0-9a-f]{{16}}\.tmp")
    with suppress(OSError):
        for left in filter(ours.fullmatch, os.listdir(target.parent)):
            _sweep_one(target.with_name(left))


def _sweep_one(temporary: Path) -> None:
    with suppress(OSError):
        file = os.open(temporary, os.O_RDWR | os.O_NOFOLLOW)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            temporary.unlink()
        finally:
            os.close(file)
