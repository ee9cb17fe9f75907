"""Forecasts of every kind for the pictures, and what is read off an Axes."""

import numpy as np
import pytest

from tests.forecasts import normal, sixty


@pytest.fixture
def smooth():
    return sixty("smooth")


@pytest.fixture
def discrete():
    return sixty("discrete")


@pytest.fixture
def mixed():
    return sixty("mixed")


def many(n):
    """Return n forecasts."""
    return normal(np.linspace(0.0, 5.0, n))


def legend(ax):
    """Return the texts of the legend of an Axes."""
    return [text.get_text() for text in ax.get_legend().get_texts()]


def ticks(ax):
    """Return what is written beside the rows of an Axes."""
    return [text.get_text() for text in ax.get_yticklabels()]


def labelled(ax, label):
    """Return the one artist of an Axes with a label."""
    artists = [*ax.lines, *ax.collections, *ax.patches, *ax.containers]
    (found,) = [artist for artist in artists if artist.get_label() == label]
    return found
