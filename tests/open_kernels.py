"""Kernels that only other kernels call, for tests to call."""

import numba


def open_kernels(*kernels):
    """Compile kernels once more, with an entrance from Python.

    Not cached: the files of the cache are those of the kernels without entrance.
    """
    compiled = numba.njit(nogil=True, error_model="numpy")
    return [compiled(getattr(kernel, "py_func", kernel)) for kernel in kernels]
