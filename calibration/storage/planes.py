"""Arrays byte by byte: first bytes of all numbers, second bytes, and so on.

The leading bytes of floats resemble each other and pack well where they stand
together; as numpy writes them they stand apart. Nothing is lost.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: What the name of a member with planes ends in; the others are `.npy`.
SUFFIX = "planes"

# Fewer bytes are not worth the trouble, and so many show what packs better.
_LEAST_BYTES = 4096
_SAMPLE = 2**18


def to_planes(data: bytes, start: int, width: int) -> bytes:
    """Return bytes with the numbers after `start` in planes.

    Parameters
    ----------
    data : bytes
    start : int
        Bytes before it stay where they are.
    width : int
        Bytes of a number; they divide the bytes after `start`.

    Returns
    -------
    bytes
    """
    return data[:start] + _bytes_after(data, start).reshape(-1, width).T.tobytes()


def from_planes(data: bytes, start: int, width: int) -> bytes:
    """Return what `to_planes` was given.

    Parameters
    ----------
    data : bytes
    start, width : int

    Returns
    -------
    bytes
    """
    return data[:start] + _bytes_after(data, start).reshape(width, -1).T.tobytes()


def pack_better(data: bytes, start: int, width: int) -> bool:
    """Say whether planes of a sample of the numbers take less space than they do.

    Parameters
    ----------
    data : bytes
    start, width : int

    Returns
    -------
    bool
    """
    if width < 2 or len(data) - start < _LEAST_BYTES:
        return False
    sample = data[start : start + _SAMPLE // width * width]
    planes = to_planes(sample, 0, width)
    return len(zlib.compress(planes, 1)) < len(zlib.compress(sample, 1))


def _bytes_after(data: bytes, start: int) -> NDArray[Any]:
    return np.frombuffer(data, dtype=np.uint8, offset=start)
