"""Saved models taken apart and put together again, as damage or malice would."""

import json
import zipfile
from pathlib import Path

import numpy as np

from calibration.storage.archive import MEMBERS


def take_apart(path):
    """Return the nodes and the bytes of the arrays of a saved model."""
    with zipfile.ZipFile(path) as archive:
        text, arrays = (archive.read(name) for name in MEMBERS)
    return json.loads(text), arrays


def put_together(path, nodes, arrays=b"", *, mark=b"calibration/model 4"):
    """Write nodes, or any text, with checksums that are right."""
    text = nodes if isinstance(nodes, bytes) else json.dumps(nodes).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in zip(MEMBERS, (text, arrays), strict=True):
            archive.writestr(name, data)
        archive.comment = mark
    return Path(path)


def read_array(node, arrays):
    """Return a copy of the array of a node."""
    _, descr, order, _, start, *shape = node
    fields = descr if isinstance(descr, str) else [tuple(one) for one in descr]
    dtype = np.dtype(fields)
    size = int(np.prod(shape)) * dtype.itemsize
    held = np.ndarray(shape, dtype, arrays[start : start + size] or None, order=order)
    return held.copy()


def with_array(nodes, arrays, place, array):
    """Return nodes and bytes with another array in the place of one."""
    node = nodes[place]
    descr = node[1] if array.dtype.names else array.dtype.str
    changed = ["array", descr, "C", node[3], len(arrays), *array.shape]
    return [*nodes[:place], changed, *nodes[place + 1 :]], arrays + array.tobytes()
