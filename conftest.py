"""For all tests, and for the examples of docstrings."""

import sys

import pytest


@pytest.fixture(autouse=True)
def close_figures():
    """Close what pyplot has opened: it warns of more than twenty figures."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
