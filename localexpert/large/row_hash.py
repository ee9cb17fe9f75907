"""Hashes of rows: what a row is, wherever and however it is kept."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert._kernels.row_hashes import add_hashes, finish_hashes
from localexpert.large.roles import as_floats, as_texts

Hashes = NDArray[np.uint64]

# Of a gap, of a number or text.
_GAP = np.uint64(0x7FF8000000000000)


def hash_rows(columns: Mapping[str, Any], kinds: Mapping[str, str]) -> Hashes:
    """Return a hash of each row's content.

    Parameters
    ----------
    columns : mapping of str to Series of shape (n,)
    kinds : mapping of str to str
        As `Source` tells them.

    Returns
    -------
    ndarray of uint64, shape (n,)
        Equal rows have equal hashes, in whatever order their columns are, in single
        or double precision, as categories or texts.
    """
    total: Hashes | None = None
    for name, column in columns.items():
        bits = _text_bits(column) if kinds[name] == "text" else _bits(column)
        total = np.zeros(len(bits), np.uint64) if total is None else total
        add_hashes(total, bits, salt_of(name))
    assert total is not None
    return finish_hashes(total, salt_of("rows"))


def salt_of(name: str) -> np.uint64:
    """Return a number for a text, the same on every machine.

    Parameters
    ----------
    name : str

    Returns
    -------
    uint64
    """
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return np.uint64(int.from_bytes(digest[:8], "little"))


def deal(hashes: Hashes, purpose: str, n_parts: int) -> NDArray[np.int64]:
    """Return the part, of several of equal size, that each hash falls into.

    Parameters
    ----------
    hashes : ndarray of uint64, shape (n,)
    purpose : str
        Parts for different purposes tell nothing of each other.
    n_parts : int

    Returns
    -------
    ndarray of int, shape (n,)
    """
    parts = finish_hashes(hashes, salt_of(purpose)) % np.uint64(n_parts)
    return parts.astype(np.int64)


def shares_of(hashes: Hashes, purpose: str) -> Float64Array:
    """Return a number in (0, 1) for each hash, evenly spread.

    Parameters
    ----------
    hashes : ndarray of uint64, shape (n,)
    purpose : str

    Returns
    -------
    ndarray of shape (n,)
    """
    mixed = finish_hashes(hashes, salt_of(purpose)) >> np.uint64(11)
    return (mixed.astype(np.float64) + 0.5) * 2.0**-53


def _bits(column: Any) -> NDArray[np.uint64]:
    """Return the bits of numbers, truths and times as floats; a zero has no sign."""
    floats = as_floats(column) + 0.0
    bits: NDArray[np.uint64] = floats.view(np.uint64)
    bits[np.isnan(floats)] = _GAP
    return bits


def _text_bits(column: Any) -> NDArray[np.uint64]:
    """Return hashes of texts."""
    import pandas as pd

    codes, values = pd.factorize(as_texts(column), use_na_sentinel=True)
    met = [str(value) for value in values]
    bits = np.array([salt_of(value) for value in met] + [_GAP], dtype=np.uint64)
    # A gap has the code -1, the last place.
    return np.asarray(bits[codes])
