"""Hashes of rows, gathered column by column."""

import numpy as np
from numpy.typing import NDArray

from calibration._kernels._jit import njit
from calibration._kernels.cells import mix64


@njit
def add_hashes(
    total: NDArray[np.uint64], bits: NDArray[np.uint64], salt: np.uint64
) -> None:
    """Add to the hash of each row (n,) that of its bits in one column (n,).

    Sums do not depend on the order of columns; the salt tells these apart.
    """
    for i in range(len(total)):
        total[i] += mix64(mix64(bits[i]) ^ salt)


def finish_hashes(total: NDArray[np.uint64], salt: np.uint64) -> NDArray[np.uint64]:
    """Return hashes of hashes, (n,): those of another salt tell nothing of these."""
    # Made outside of the kernel, where it would be two more functions to compile.
    out = np.empty_like(total)
    _fill_hashes(out, total, salt)
    return out


@njit
def _fill_hashes(
    out: NDArray[np.uint64], total: NDArray[np.uint64], salt: np.uint64
) -> None:
    for i in range(len(total)):
        out[i] = mix64(total[i] ^ salt)
