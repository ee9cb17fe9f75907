"""For all tests, and for the examples of docstrings."""

import sys

import pytest


@pytest.fixture(autouse=True)
def close_figures():
    """Close what pyplot has opened: it warns of more than twenty figures."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(autouse=True)
def forget_closed_clients():
    """Let Dask run by itself where no client is left.

    Clients of two files that end in the order in which they began leave Dask with the
    scheduler of one that is closed.
    """
    yield
    if "distributed" in sys.modules and "dask" in sys.modules:
        try:
            sys.modules["distributed"].default_client()
        except ValueError:
            sys.modules["dask"].config.config.pop("scheduler", None)
