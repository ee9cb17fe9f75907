"""Archives: named members in a zip file, each with its size and checksum."""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from calibration.storage.errors import StorageError
from calibration.storage.whole_file import replacing_file

#: Version of the format that is written; all versions up to it are read.
FORMAT_VERSION = 1

_FORMAT = "calibration/model"
_MANIFEST = "manifest.json"
_NAME = re.compile(r"[a-z0-9_]+(/[a-z0-9_]+)*\.[a-z0-9]+")
# A sound file unpacks to no more than some bytes and this many times its own. Zeros
# pack better: where they would exceed that, they are not packed.
_MOST_RATIO = 64
_FREE_BYTES = 2**26
# Of deflate; beyond it time doubles and 2 % are gained.
_EFFORT = 4
_EPOCH = (1980, 1, 1, 0, 0, 0)
# General purpose bits of a member of ours: none, for names are ASCII.
_PLAIN = 0
_DAMAGE = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    ValueError,
    OverflowError,
    RuntimeError,
)


def write_archive(path: Path, members: Mapping[str, bytes]) -> None:
    """Write members to a file, all of it or nothing.

    They are written to a temporary file beside it, which then takes its place.

    Parameters
    ----------
    path : Path
        Replaced if it is there.
    members : mapping of str to bytes
    """
    with replacing_file(path) as temporary, temporary.open("xb") as file:
        too_small = _write_zip(file, members, plain=set())
        if too_small:
            file.seek(0)
            file.truncate()
            _write_zip(file, members, plain=too_small)
        file.flush()
        os.fsync(file.fileno())


def read_archive(path: Path) -> dict[str, bytes]:
    """Return all members of a file; nothing is unpacked to disk.

    Parameters
    ----------
    path : Path

    Returns
    -------
    dict of str to bytes

    Raises
    ------
    StorageError
        If the file is foreign, damaged, or of a newer format.
    """
    # One read: what is checked is what is used, whatever happens to the file.
    with path.open("rb") as file:
        data = file.read()
    if not zipfile.is_zipfile(io.BytesIO(data)):
        raise StorageError(_describe_foreign(data))
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            sizes = _check_entries(archive, len(data))
            manifest = _read_manifest(archive, sizes)
            return _read_members(archive, manifest["members"], sizes)
    except StorageError:
        raise
    except _DAMAGE as error:
        msg = f"the file is damaged or truncated ({error})."
        raise StorageError(msg) from error


def _write_zip(file: Any, members: Mapping[str, bytes], plain: set[str]) -> set[str]:
    """Write members and then the manifest, whose checksum is the file's comment.

    Returns members to be written plain, lest readers take the file for a bomb.
    """
    listed = {
        name: {"size": len(data), "sha256": sha256(data).hexdigest()}
        for name, data in members.items()
    }
    content = {
        "format": _FORMAT,
        "format_version": FORMAT_VERSION,
        "members": listed,
    }
    manifest = json.dumps(content, indent=1).encode()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in [*members.items(), (_MANIFEST, manifest)]:
            info = zipfile.ZipInfo(name, _EPOCH)
            packing = zipfile.ZIP_STORED if name in plain else zipfile.ZIP_DEFLATED
            archive.writestr(info, data, packing, _EFFORT)
        archive.comment = f"{_FORMAT} {sha256(manifest).hexdigest()}".encode()
        written = archive.infolist()
    packed = sum(info.compress_size for info in written)
    if sum(info.file_size for info in written) <= _FREE_BYTES + _MOST_RATIO * packed:
        return set()
    return {i.filename for i in written if i.file_size > _MOST_RATIO * i.compress_size}


def _check_entries(archive: zipfile.ZipFile, file_size: int) -> dict[str, int]:
    """Return the declared sizes of members that are what we write, or refuse them."""
    sizes: dict[str, int] = {}
    for info in archive.infolist():
        name = info.filename
        if not _NAME.fullmatch(name) or info.orig_filename != name:
            msg = f"it holds a member with the foreign name {name[:80]!r}."
            raise StorageError(msg)
        if name in sizes:
            msg = f"it holds the member {name!r} twice."
            raise StorageError(msg)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            msg = f"the member {name!r} is packed by an unknown method."
            raise StorageError(msg)
        if info.flag_bits != _PLAIN:
            msg = f"the member {name!r} is encrypted or otherwise not as we write it."
            raise StorageError(msg)
        sizes[name] = info.file_size
    if sum(sizes.values()) > _FREE_BYTES + _MOST_RATIO * file_size:
        msg = (
            f"it says it unpacks to {sum(sizes.values())} bytes from {file_size}, more "
            "than any sound file."
        )
        raise StorageError(msg)
    return sizes


def _read_manifest(archive: zipfile.ZipFile, sizes: dict[str, int]) -> dict[str, Any]:
    if _MANIFEST not in sizes or not archive.comment.startswith(_FORMAT.encode()):
        msg = "it is not a saved model."
        raise StorageError(msg)
    text = _read_member(archive, _MANIFEST, sizes)
    if archive.comment != f"{_FORMAT} {sha256(text).hexdigest()}".encode():
        msg = "the file is damaged (the checksum of its list of members is wrong)."
        raise StorageError(msg)
    manifest = read_json(text, _MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        msg = "it is not a saved model."
        raise StorageError(msg)
    version = manifest.get("format_version")
    if type(version) is not int or version < 1:
        msg = f"its format version is {version!r}, which is none."
        raise StorageError(msg)
    if version > FORMAT_VERSION:
        msg = (
            f"it has format version {version}, and this version of the package reads "
            f"versions up to {FORMAT_VERSION}: a newer one is needed."
        )
        raise StorageError(msg)
    members = manifest.get("members")
    if not isinstance(members, dict) or set(members) | {_MANIFEST} != set(sizes):
        msg = "its members are not those that it lists."
        raise StorageError(msg)
    return manifest


def _read_members(
    archive: zipfile.ZipFile, listed: dict[str, Any], sizes: dict[str, int]
) -> dict[str, bytes]:
    out = {}
    for name, entry in listed.items():
        data = _read_member(archive, name, sizes)
        want = {"size": len(data), "sha256": sha256(data).hexdigest()}
        if entry != want:
            msg = f"the member {name!r} is damaged (its checksum is wrong)."
            raise StorageError(msg)
        out[name] = data
    return out


def _read_member(archive: zipfile.ZipFile, name: str, sizes: dict[str, int]) -> bytes:
    # Never more than declared, whatever the packed bytes go on to say.
    with archive.open(name) as member:
        data = member.read(sizes[name] + 1)
    if len(data) != sizes[name]:
        msg = f"the member {name!r} is damaged (it has not the size it should have)."
        raise StorageError(msg)
    return data


def read_json(text: bytes, name: str) -> Any:
    """Return the content of a JSON member.

    Parameters
    ----------
    text : bytes
    name : str
        Of the member, for messages.

    Returns
    -------
    object
    """

    def refuse(value: str) -> None:
        msg = f"{value} is no number of JSON"
        raise ValueError(msg)

    try:
        return json.loads(text.decode("ascii"), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        msg = f"the member {name!r} is no sound JSON ({error})."
        raise StorageError(msg) from error


def _describe_foreign(data: bytes) -> str:
    if data[:4] == b"PK\x03\x04":
        return "the file is truncated or damaged."
    if not data:
        return "the file is empty."
    return "it is not a saved model."
