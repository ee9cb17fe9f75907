"""The only file that knows how kernels are compiled."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event

from calibration.typing import Float64Array

Kernel = TypeVar("Kernel", bound=Callable[..., object])

_PACKAGES = ("calibration.", "localexpert.")
_CACHED = "loops are being compiled, which takes a while and happens once"
_UNCACHED = (
    "loops are being compiled, and in every process anew, since no folder to keep "
    "them in can be written: set NUMBA_CACHE_DIR to one that can, and fill it by "
    "`localexpert warm`"
)


def njit(function: Kernel, **options: Any) -> Kernel:
    """Compile `function` for the machine at its first call, and cache it if possible.

    `nogil` lets thread pools run kernels side by side. With `error_model="numpy"`, a
    division by zero is an inf or nan, as in numpy, instead of an exception.
    """
    # There is no fastmath. Sums keep their order, so a result has the same bits on
    # every machine, and in the tests that run kernels as plain Python. There is no
    # entrance for C, because nobody uses it, and it takes time to compile.
    compile_lazily = partial(
        numba.njit, nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options
    )
    try:
        return cast(Kernel, compile_lazily(cache=True)(function))
    except RuntimeError:
        # No folder for a cache can be written. This is so in many containers.
        return cast(Kernel, compile_lazily()(function))


def inner(function: Kernel) -> Kernel:
    """Compile `function` as `njit` does, but only for other kernels.

    Python cannot call it. The entrance for Python would be a quarter of all that is
    compiled, and more if arguments are tuples of arrays.
    """
    return njit(function, no_cpython_wrapper=True)


def fused(function: Kernel) -> Kernel:
    """Compile `function` as a part of the kernels that call it.

    Use it for functions that have one caller, or one or two lines. They are then not
    compiled, optimised and linked on their own first. A large function with many
    callers would be compiled in each of them.
    """
    return njit(function, inline="always")


def for_kernels(values: Float64Array) -> Float64Array:
    """Return values in the form that kernels expect: contiguous and read-only."""
    if values.flags.writeable or not values.flags.c_contiguous:
        values = np.ascontiguousarray(values).view()
        values.setflags(write=False)
    return values


def can_be_kept() -> bool:
    """Return whether there is a folder in which compiled kernels can be kept."""
    try:
        numba.njit(cache=True)(can_be_kept)
    except RuntimeError:
        return False
    return True


class _FirstCompilation(event.Listener):
    """Tells of the first kernel that this process compiles, if anyone wants to know."""

    def __init__(self) -> None:
        self.tellers: list[Callable[[str], None]] = []
        self.is_told = False

    def on_start(self, started: Any) -> None:
        """Tell it if the cache does not hold a kernel of ours."""
        module = started.data["dispatcher"].py_func.__module__
        if self.tellers and not self.is_told and module.startswith(_PACKAGES):
            self.is_told = True
            self.tellers[-1](_CACHED if can_be_kept() else _UNCACHED)

    def on_end(self, ended: Any) -> None:
        """Do nothing, because nothing is to be told."""


_FIRST = _FirstCompilation()


@contextmanager
def telling(tell: Callable[[str], None]) -> Iterator[None]:
    """Call `tell` when kernels are about to be compiled inside, once per process."""
    _FIRST.tellers.append(tell)
    try:
        with event.install_listener("numba:compile", _FIRST):
            yield
    finally:
        _FIRST.tellers.remove(tell)
