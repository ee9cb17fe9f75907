"""Saved models taken apart and put together again, as damage or malice would."""

import json
import zipfile
from hashlib import sha256
from pathlib import Path

MANIFEST = "manifest.json"
DESCRIPTION = "description.json"


def take_apart(path):
    """Return the members of a saved model, without its list of them."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name != MANIFEST]
        return {name: archive.read(name) for name in names}


def put_together(path, members, *, version=1, manifest=None, extra=()):
    """Write members with checksums that are right, so that nothing looks damaged."""
    listed = {
        name: {"size": len(data), "sha256": sha256(data).hexdigest()}
        for name, data in members.items()
    }
    content = {
        "format": "calibration/model",
        "format_version": version,
        "members": listed,
        **(manifest or {}),
    }
    text = json.dumps(content).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in [*members.items(), *extra, (MANIFEST, text)]:
            archive.writestr(name, data)
        archive.comment = b"calibration/model " + sha256(text).hexdigest().encode()
    return Path(path)


def describe(members):
    """Return the description in the members."""
    return json.loads(members[DESCRIPTION])


def with_description(members, description):
    """Return members with another description."""
    return {**members, DESCRIPTION: json.dumps(description).encode()}
