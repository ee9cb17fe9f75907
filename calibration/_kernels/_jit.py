"""The one place that knows how kernels are compiled."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def njit(function: Kernel) -> Kernel:
    """Compile `function` for the machine at its first call and cache it, if it can be.

    `nogil` lets thread pools run kernels side by side; `error_model="numpy"` makes
    a division by zero an inf or nan, as in numpy, instead of an exception.
    """
    # No fastmath: sums keep their order, so a result has the same bits on every machine
    # and in the leg that runs kernels as plain Python.
    compile_lazily = partial(numba.njit, nogil=True, error_model="numpy")
    try:
        return cast(Kernel, compile_lazily(cache=True)(function))
    except RuntimeError:
        # No folder that could hold a cache can be written, as in many containers.
        return cast(Kernel, compile_lazily()(function))
