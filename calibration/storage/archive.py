"""Files that are written whole or not at all, and saved models read on a budget."""

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

# A temporary name has this many letters of the file's name, so it has 255 bytes at
# most.
_NAME = 50


def writable_file(path: str | os.PathLike[str]) -> Path:
    """Return the file that a path or link names. Refuse one that cannot be written.

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
    # Ask for the path. The target of a link such as /dev/fd/3 may have no name.
    with suppress(FileNotFoundError):
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "it is a directory", str(path))
        if not stat.S_ISREG(mode):
            # A file would take the place of a device or pipe.
            raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    # Make a file to find out whether files can be made there.
    try:
        tempfile.TemporaryFile(dir=target.parent).close()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    return target


@contextmanager
def replacing_file(path: Path) -> Iterator[Path]:
    """Yield a path beside the given one. It takes its place if all goes well.

    A link stays, and the file that it names is replaced. The new file gets the
    permissions of the old one.

    Parameters
    ----------
    path : Path

    Yields
    ------
    Path
        The path of an empty file.
    """
    target = writable_file(path)
    old = target.stat() if target.exists() else None
    name = f".{target.name[:_NAME]}.{secrets.token_hex(8)}.tmp"
    temporary = target.with_name(name)
    # Whoever may not read the old file must not read the new one at any time.
    mode = 0o666 if old is None else 0o600
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL, mode))
    try:
        yield temporary
        if old is not None:
            if sys.platform != "win32":
                with suppress(OSError):
                    os.chown(temporary, old.st_uid, old.st_gid)
            temporary.chmod(old.st_mode & 0o777)
        # Meanwhile it may have become something else.
        temporary.replace(writable_file(target))
    finally:
        temporary.unlink(missing_ok=True)


# Reading a sound file of any size may take this memory, and this many times its own
# size. What we write keeps within this, if need be unpacked.
_FREE_BYTES = 2**28
_MOST_RATIO = 100
# Python takes about this many bytes for the character of a description that opens a
# list, ends a text, or separates two items, which may be keys of a dict. The second
# number is for the others.
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
    """Turn all errors into those of storage. Errors of storage pass unchanged.

    Parameters
    ----------
    message : str
        Text with {error} in the place of the reason, and {kind} in that of the error's
        class.
    """
    try:
        yield
    except StorageError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise StorageError(message.format(error=error, kind=kind)) from error


def default_limit(size: int) -> int:
    """Return how many bytes of memory may be taken to read a file of some size."""
    return _FREE_BYTES + _MOST_RATIO * size


def cost_of_text(text: bytes) -> int:
    """Return how many bytes a description takes, with the nodes that it lists."""
    marks = sum(text.count(mark) * cost for mark, cost in _OF_TEXT.items())
    return _OF_LETTER * len(text) + marks


class Budget:
    """Bytes of memory. They are spent before they are taken.

    Parameters
    ----------
    limit : float
        Greatest number of bytes to spend.
    """

    def __init__(self, limit: float):
        self.limit = limit
        self.spent = 0

    def spend(self, n_bytes: int, what: str) -> None:
        """Refuse the file if there are more bytes than are left."""
        self.spent += n_bytes
        if self.spent > self.limit:
            refuse(
                f"it would take more than {self.limit:.0f} bytes of memory ({what}). "
                "If you know who wrote the file, load it with a greater `max_memory`."
            )


#: Version of the format. No other version is read.
FORMAT_VERSION = 4

#: The members: the description, and the bytes of all arrays, one after the other.
MEMBERS = ("model.json", "arrays.bin")

_FORMAT = b"calibration/model"
# Effort of deflate. Beyond it, time doubles and 4 % are gained.
_EFFORT = 4
_EPOCH = (1980, 1, 1, 0, 0, 0)
# Members are held as they are read and as they are unpacked, and each once more. Then
# the bytes that are made of one byte of arrays in all: an array, and a value's copies.
_COPIES, _OF_BYTE = 3, 15


def write_archive(path: Path, text: bytes, arrays: bytes) -> None:
    """Write a description and arrays to a file, or write nothing.

    Parameters
    ----------
    path : Path
        It is replaced if it is there.
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
    """Return description and arrays of a file. Nothing is unpacked to disk.

    Parameters
    ----------
    path : Path
    max_memory : float or None
        Greatest number of bytes that reading may take. None: it depends on the size of
        the file.

    Returns
    -------
    text, arrays : bytes
    budget : Budget
        What is left to make a model from them.
    """
    # Read once. So what is checked is what is used, whatever happens to the file.
    data = path.read_bytes()
    budget = Budget(default_limit(len(data)) if max_memory is None else max_memory)
    # If the bytes are no zip, any error may come.
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
    """Refuse all files except those of the format that is read here."""
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
    """Return a member, unless it is packed or hidden in a way that is not ours."""
    known = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    if info.flag_bits or not known:
        refuse(f"the member {info.filename!r} is not packed as we do it.")
    # Never read more than was declared, whatever the packed bytes say.
    with archive.open(info) as member:
        return member.read(info.file_size + 1)
