"""Forecasts of every kind for the pictures, and a clean desk after each test."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from tests.forecasts import beside, normal, of_values

N = 60


@pytest.fixture(autouse=True)
def closed():
    """Close the figures of a test."""
    yield
    plt.close("all")


@pytest.fixture
def ax():
    return plt.subplots()[1]


@pytest.fixture
def smooth():
    """60 forecasts of growing centre and spread."""
    return normal(np.linspace(0.0, 5.0, N), np.linspace(0.5, 2.0, N))


@pytest.fixture
def discrete():
    """60 forecasts of the values 0, 1, 3."""
    p = np.linspace(0.1, 0.6, N)
    rows = np.column_stack([p, 0.2 * np.ones(N), 0.8 - p])
    return of_values([0.0, 1.0, 3.0], rows)


@pytest.fixture
def mixed():
    """60 forecasts with zeros beside a density."""
    zeros = np.linspace(0.1, 0.6, N)[:, None]
    return beside(normal(np.linspace(2.0, 5.0, N), 0.7), [0.0], zeros, [0.01])


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
