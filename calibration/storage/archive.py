"""Files that are written whole or not at all, and that of a saved model on a budget."""

from __future__ import annotations

import errno
import io
import os
import secrets
import stat
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

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
    try:
        tempfile.TemporaryFile(dir=target.parent).close()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
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


# A sound file of any size may take this, and so many times its own size. What is
# written keeps within it, if need be by not being packed.
_FREE_BYTES = 2**28
_MOST_RATIO = 100
# About what Python takes for the character of a description that opens a list, ends a
# text or parts two items, which may be keys of a dict; for the others.
_OF_TEXT = {b"[": 150, b'"': 16, b",": 250}
_OF_LETTER = 4


class StorageError(ValueError):
    """A model cannot be saved, or a file is no sound saved model.

    Examples
    --------
    >>> from calibration.storage import StorageError, load
    >>> try:
    ...     load(__file__)
    ... except StorageError as error:
    ...     print(str(error).split(": ")[-1])
    it is no saved model, or damaged or truncated (File is not a zip file).
    """


def refuse(message: str) -> NoReturn:
    """Raise the error of a model or file that is refused."""
    raise StorageError(message)


@contextmanager
def refusing(message: str) -> Iterator[None]:
    """Make all errors those of storage, which themselves pass unchanged.

    Parameters
    ----------
    message : str
        With {error} where the reason goes, and {kind} where the class of the error.
    """
    try:
        yield
    except StorageError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise StorageError(message.format(error=error, kind=kind)) from error


def default_limit(size: int) -> int:
    """Return the bytes of memory that reading a file of some size may take."""
    return _FREE_BYTES + _MOST_RATIO * size


def cost_of_text(text: bytes) -> int:
    """Return the bytes that a description takes, with the nodes that it lists."""
    marks = sum(text.count(mark) * cost for mark, cost in _OF_TEXT.items())
    return _OF_LETTER * len(text) + marks


class Budget:
    """Bytes of memory, spent before they are taken.

    Parameters
    ----------
    limit : float
        Most bytes to spend.
    """

    def __init__(self, limit: float):
        self.limit = limit
        self.spent = 0

    def spend(self, n_bytes: int, what: str) -> None:
        """Refuse the file if the bytes are more than are left."""
        self.spent += n_bytes
        if self.spent > self.limit:
            refuse(
                f"it would take more than {self.limit:.0f} bytes of memory ({what}). "
                "If you know who wrote the file, load it with a greater `max_memory`."
            )


#: Version of the format, the only one that is read.
FORMAT_VERSION = 4

#: The members: the description, and the bytes of all arrays one after the other.
MEMBERS = ("model.json", "arrays.bin")

_FORMAT = b"calibration/model"
# Of deflate; beyond it time doubles and 4 % are gained.
_EFFORT = 4
_EPOCH = (1980, 1, 1, 0, 0, 0)
# Members are held as read and unpacked, and once more each. What is made of a byte of
# arrays in all: one of these, and a value that copies it.
_COPIES, _OF_BYTE = 3, 15


def write_archive(path: Path, text: bytes, arrays: bytes) -> None:
    """Write a description and arrays to a file, all of it or nothing.

    Parameters
    ----------
    path : Path
        Replaced if it is there.
    text, arrays : bytes
    """
    data = _pack(text, arrays, zipfile.ZIP_DEFLATED)
    # Zeros pack so well that the file would be taken for a bomb.
    if cost_of_text(text) + _OF_BYTE * len(arrays) > default_limit(len(data)):
        data = _pack(text, arrays, zipfile.ZIP_STORED)
    with replacing_file(path) as temporary, temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _pack(text: bytes, arrays: bytes, packing: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in zip(MEMBERS, (text, arrays), strict=True):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), data, packing, _EFFORT)
        archive.comment = b"%s %d" % (_FORMAT, FORMAT_VERSION)
    return buffer.getvalue()


def read_archive(path: Path, max_memory: float | None) -> tuple[bytes, bytes, Budget]:
    """Return description and arrays of a file; nothing is unpacked to disk.

    Parameters
    ----------
    path : Path
    max_memory : float or None
        Most bytes that reading may take; None: by the size of the file.

    Returns
    -------
    text, arrays : bytes
    budget : Budget
        What is left to make a model of them.
    """
    # One read: what is checked is what is used, whatever happens to the file.
    data = path.read_bytes()
    budget = Budget(default_limit(len(data)) if max_memory is None else max_memory)
    # Of bytes that are no zip anything may come.
    with (
        refusing("it is no saved model, or damaged or truncated ({error})."),
        zipfile.ZipFile(io.BytesIO(data)) as archive,
    ):
        _check_format(archive)
        listed = archive.infolist()
        budget.spend(_COPIES * sum(info.file_size for info in listed), "its members")
        text, arrays = (_read_member(archive, info) for info in listed)
        return text, arrays, budget


def _check_format(archive: zipfile.ZipFile) -> None:
    """Refuse all files but those of the format that is read here."""
    mark, _, version = archive.comment.partition(b" ")
    if mark != _FORMAT:
        refuse("it is not a saved model.")
    if version != b"%d" % FORMAT_VERSION:
        refuse(
            f"it has format version {version.decode('latin-1')!r}, and this version of "
            f"the package reads version {FORMAT_VERSION}: take the version that saved "
            "it, or fit the model again."
        )
    if tuple(archive.namelist()) != MEMBERS:
        refuse(f"it holds other members than {' and '.join(MEMBERS)}.")


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Return a member, not packed or hidden by ways that we do not write."""
    known = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    if info.flag_bits or not known:
        refuse(f"the member {info.filename!r} is not packed as we do it.")
    # Never more than declared, whatever the packed bytes go on to say.
    with archive.open(info) as member:
        return member.read(info.file_size + 1)
