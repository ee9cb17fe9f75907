"""Arrays as bytes of numpy's own format, read without trusting their headers."""

from __future__ import annotations

import io
import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from calibration.storage.errors import StorageError
from calibration.storage.planes import SUFFIX, from_planes, pack_better, to_planes


def pack_array(array: NDArray[Any]) -> bytes:
    """Return an array in the `.npy` format.

    Parameters
    ----------
    array : ndarray
        Not of objects.

    Returns
    -------
    bytes
    """
    buffer = io.BytesIO()
    # A plain array, whatever memory it lies in; order "F" is kept.
    npy.write_array(buffer, np.asarray(array), allow_pickle=False)
    return buffer.getvalue()


def unpack_array(data: bytes) -> NDArray[Any]:
    """Return the array of `.npy` bytes; its size is that of the bytes, or an error.

    Parameters
    ----------
    data : bytes

    Returns
    -------
    ndarray
        Its own memory, writeable.
    """
    head = _read_header(data)
    if not head.size:
        return _empty(head.shape, head.dtype)
    flat = np.frombuffer(data, dtype=head.dtype, count=head.size, offset=head.start)
    order: Literal["F", "C"] = "F" if head.fortran else "C"
    return flat.reshape(head.shape, order=order).copy(order=order)


def shrink_array(data: bytes) -> tuple[str, bytes]:
    """Return `.npy` bytes in the form that packs better, and the suffix of its name.

    Parameters
    ----------
    data : bytes

    Returns
    -------
    suffix : {"npy", "planes"}
    data : bytes
    """
    head = _read_header(data)
    if not pack_better(data, head.start, head.dtype.itemsize):
        return "npy", data
    return SUFFIX, to_planes(data, head.start, head.dtype.itemsize)


def restore_array(data: bytes) -> bytes:
    """Return the `.npy` bytes that `shrink_array` turned into planes.

    Parameters
    ----------
    data : bytes

    Returns
    -------
    bytes
    """
    head = _read_header(data)
    if not head.size:
        msg = "an array without numbers is said to be in planes."
        raise StorageError(msg)
    return from_planes(data, head.start, head.dtype.itemsize)


class _Header(NamedTuple):
    """What stands before the numbers of an array, and where they start."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    size: int
    start: int


def _empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    try:
        return np.empty(shape, dtype=dtype)
    except (ValueError, MemoryError, OverflowError) as error:
        msg = f"an empty array says it has the shape {shape!r}."
        raise StorageError(msg) from error


def _read_header(data: bytes) -> _Header:
    """Read a header that fits the bytes after it, or refuse it."""
    buffer = io.BytesIO(data)
    try:
        version = npy.read_magic(buffer)
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        shape, fortran, dtype = read[version](buffer)
    except Exception as error:
        # The header is a literal of any kind, and numpy raises what comes of it.
        msg = f"an array has no sound header ({type(error).__name__}: {error})."
        raise StorageError(msg) from error
    if dtype.hasobject:
        msg = "an array of objects is not read from `.npy`."
        raise StorageError(msg)
    if any(type(length) is not int or length < 0 for length in shape):
        msg = f"an array says it has the shape {shape!r}."
        raise StorageError(msg)
    count, start = math.prod(shape), buffer.tell()
    if count * dtype.itemsize != len(data) - start or (not dtype.itemsize and count):
        msg = f"an array of shape {shape} and dtype {dtype} has {len(data)} bytes."
        raise StorageError(msg)
    return _Header(shape, bool(fortran), dtype, count, start)
