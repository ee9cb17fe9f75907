"""The one place that knows how kernels are compiled."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def njit(function: Kernel) -> Kernel:
    """Compile `function` for the machine at its first call and cache it on disk.

    `nogil` lets thread pools run kernels side by side; `error_model="numpy"` makes
    a division by zero an inf or nan, as in numpy, instead of an exception.
    """
    # No fastmath: sums keep their order, so a result has the same bits on every machine
    # and in the leg that runs kernels as plain Python.
    compiled = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return cast(Kernel, compiled)
