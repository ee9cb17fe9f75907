"""Archives: a description in JSON and the bytes of arrays, in one zip file."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

from calibration.storage.errors import (
    Budget,
    cost_of_text,
    default_limit,
    refuse,
    refusing,
)
from calibration.storage.whole_file import replacing_file

#: Version of the format, the only one that is read.
FORMAT_VERSION = 2

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
