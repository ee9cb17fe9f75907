"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
    permissions.

    Parameters
    ----------
    path : Path

    Yields
    ------
    Path
        Of an empty file.
    """
    target = writable_file(path)
    old = target.stat() if target.exists() else None
    name = f".{target.name[:_NAME]}.{secrets.token_hex(8)}.tmp"
    temporary = target.with_name(name)
    # Nobody may read the new file before who might not read the old one.
    mode = 0o666 if old is None else 0o600
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL, mode))
    try:
        yield temporary
        if old is not None:
            if sys.platform != "win32":
                with suppress(OSError):
                    os.chown(temporary, old.st_uid, old.st_gid)
            temporary.chmod(old.st_mode & 0o777)
        # It may have become something else meanwhile.
        temporary.replace(writable_file(target))
    finally:
        temporary.unlink(missing_ok=True)
