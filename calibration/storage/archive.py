"""Archives: what skops writes as the one packed member of a zip file."""

from __future__ import annotations

import io
import os
import re
import zipfile
import zlib
from pathlib import Path

from calibration.storage.budget import Budget, default_limit
from calibration.storage.errors import refuse, refusing
from calibration.storage.whole_file import replacing_file

#: Version of the format that is written; all versions up to it are read.
FORMAT_VERSION = 1

#: The member that holds what skops has written.
MEMBER = "model.skops"

_FORMAT = b"calibration/model"
# What files written before version 0.1 of the package hold besides a manifest.
_OLD_MEMBER = "description.json"
_NAME = re.compile(r"schema\.json|[0-9a-f-]+\.(npy|bin)")
# Of deflate; beyond it time doubles and 4 % are gained.
_EFFORT = 4
_EPOCH = (1980, 1, 1, 0, 0, 0)


def write_archive(path: Path, members: dict[str, bytes], cost: int) -> None:
    """Write the members of what skops has written to a file, all of it or nothing.

    They are packed as a whole, for many of them are small and resemble each other.

    Parameters
    ----------
    path : Path
        Replaced if it is there.
    members : dict of str to bytes
    cost : int
        Bytes of memory that reading them takes.
    """
    data = pack_members(members)
    packing = zipfile.ZIP_DEFLATED
    # Zeros pack so well that the file would be taken for a bomb.
    if cost > default_limit(0):
        packed = len(zlib.compress(data, _EFFORT))
        if cost > default_limit(packed):
            packing = zipfile.ZIP_STORED
    with replacing_file(path) as temporary, temporary.open("wb") as file:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(zipfile.ZipInfo(MEMBER, _EPOCH), data, packing, _EFFORT)
            archive.comment = b"%s %d" % (_FORMAT, FORMAT_VERSION)
        file.flush()
        os.fsync(file.fileno())


def read_archive(
    path: Path, max_memory: float | None
) -> tuple[dict[str, bytes], Budget]:
    """Return the members of what skops has written; nothing is unpacked to disk.

    Parameters
    ----------
    path : Path
    max_memory : float or None
        Most bytes that reading may take; None: by the size of the file.

    Returns
    -------
    members : dict of str to bytes
    budget : Budget
        What is left to make a model of them.

    Raises
    ------
    StorageError
        If the file is foreign, damaged, or of another format.
    """
    # One read: what is checked is what is used, whatever happens to the file.
    data = path.read_bytes()
    budget = Budget(default_limit(len(data)) if max_memory is None else max_memory)
    budget.spend_members(data)
    if not zipfile.is_zipfile(io.BytesIO(data)):
        refuse(_describe_foreign(data))
    # Of bytes that are no zip anything may come.
    with refusing("the file is damaged or truncated ({error}).", Exception):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_format(archive)
            budget.spend_unpacking(archive.getinfo(MEMBER).file_size)
            inner = _read_members(archive, None)[MEMBER]
        budget.spend_members(inner)
        with zipfile.ZipFile(io.BytesIO(inner)) as archive:
            for name in archive.namelist():
                if not _NAME.fullmatch(name):
                    refuse(f"it holds a member with the foreign name {name[:80]!r}.")
            return _read_members(archive, len(inner)), budget


def pack_members(members: dict[str, bytes]) -> bytes:
    """Return members as skops reads them.

    Parameters
    ----------
    members : dict of str to bytes

    Returns
    -------
    bytes
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), data)
    return buffer.getvalue()


def _check_format(archive: zipfile.ZipFile) -> None:
    """Refuse all files but those of a format that is read here."""
    if _OLD_MEMBER in archive.namelist():
        refuse(
            "it was saved by a version of the package from before 0.1, whose files are "
            "no longer read: fit the model again and save it."
        )
    mark, _, version = archive.comment.partition(b" ")
    if mark != _FORMAT or archive.namelist() != [MEMBER]:
        refuse("it is not a saved model.")
    if not re.fullmatch(rb"[1-9]\d{0,8}", version):
        refuse(f"its format version is {version.decode('latin-1')!r}, which is none.")
    if int(version) > FORMAT_VERSION:
        refuse(
            f"it has format version {int(version)}, and this version of the package "
            f"reads versions up to {FORMAT_VERSION}: a newer one is needed."
        )


def _read_members(archive: zipfile.ZipFile, most: int | None) -> dict[str, bytes]:
    """Return all members, none packed or hidden by ways that we do not write."""
    listed = archive.infolist()
    size = sum(info.file_size for info in listed)
    if most is not None and size > most:
        refuse(f"it says it unpacks to {size} bytes, more than any sound file.")
    members: dict[str, bytes] = {}
    for info in listed:
        name = info.filename
        known = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        if info.flag_bits or name in members or not known:
            refuse(f"the member {name!r} is there twice, or not packed as we do it.")
        # Never more than declared, whatever the packed bytes go on to say.
        with archive.open(info) as member:
            members[name] = member.read(info.file_size + 1)
    return members


def _describe_foreign(data: bytes) -> str:
    if data[:4] == b"PK\x03\x04":
        return "the file is truncated or damaged."
    if not data:
        return "the file is empty."
    return "it is not a saved model."
