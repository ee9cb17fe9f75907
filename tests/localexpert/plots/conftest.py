"""Forecasts of every kind for the pictures, and a clean desk after each test."""

import numpy as np
import pytest

from tests.forecasts import normal, sixty


@pytest.fixture(autouse=True)
def closed_always(closed):
    """Close the figures of a test."""


@pytest.fixture
def smooth():
    return sixty("smooth")


@pytest.fixture
def discrete():
    return sixty("discrete")


@pytest.fixture
def mixed():
    return sixty("mixed")


@pytest.fixture
def many():
    """Return a function that makes n forecasts."""
    return lambda n: normal(np.linspace(0.0, 5.0, n))


@pytest.fixture
def legend():
    """Return a function that reads the legend of an Axes."""

    def read(ax):
        return [text.get_text() for text in ax.get_legend().get_texts()]

    return read


@pytest.fixture
def labelled():
    """Return a function that finds the one artist of an Axes with a label."""

    def find(ax, label):
        artists = [*ax.lines, *ax.collections, *ax.patches, *ax.containers]
        (found,) = [artist for artist in artists if artist.get_label() == label]
        return found

    return find
