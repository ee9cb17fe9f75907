"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


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
    with suppress(FileNotFoundError):
        mode = target.stat().st_mode
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
    permissions.

    Parameters
    ----------
    path : Path

    Yields
    ------
    Path
        Where nothing is yet.
    """
    target = writable_file(path)
    name = f".{target.name[:100]}.{secrets.token_hex(8)}.tmp"
    temporary = target.with_name(name)
    try:
        yield temporary
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o777)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
