"""Distributions of functions, joined ones, and data frames of what they say."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from localexpert import concatenate
from localexpert.distribution.frame import Questions
from tests.forecasts import normal as make_normal
from tests.forecasts import of_values


@pytest.fixture
def normal():
    return make_normal(np.arange(5.0) - 1.0, np.linspace(0.5, 3.0, 5))


def make_counts(values=(0.0, 1.0, 2.0)):
    return of_values(values, [[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]])


@pytest.mark.parametrize(
    ("func", "inverse", "message"),
    [
        (np.negative, np.negative, "`func` must increase strictly"),
        (np.exp, "log", "`inverse` must be callable, got str"),
        (None, np.log, "`func` must be callable, got NoneType"),
        (np.exp, np.log1p, "`inverse` must undo `func`, got func"),
        (np.sqrt, np.square, "`func` must be finite wherever the distribution has"),
        (lambda y: y[0], np.log, "`func` must return an array of the shape it is giv"),
        (float, np.log, "`func` must take an array and return one of its"),
    ],
)
def test_transform_refuses_what_it_cannot_keep(normal, func, inverse, message):
    with pytest.raises((TypeError, ValueError), match=message):
        normal.transform(func, inverse)


def test_frames_where_nothing_or_many_intervals_are_asked_for(normal):
    assert list(normal.to_frame().columns) == ["mean", "std", "q0.05", "q0.5", "q0.95"]
    frame = normal.to_frame(interval=(0.5, 0.9))
    assert list(frame.columns)[2:] == ["low_0.5", "high_0.5", "low_0.9", "high_0.9"]
    assert list(normal.to_frame(exceed=1e-3).columns)[2:] == ["p_above_0.001"]
    assert normal[:0].to_frame(exceed=1).shape == (0, 3)
    risks = normal.to_frame(risk=[0.9, 0.995], tail="lower")
    assert list(risks)[2:] == ["var_0.9", "es_0.9", "var_0.995", "es_0.995"]
    assert_array_equal(risks["var_0.9"], normal.value_at_risk(0.9, "lower"))
    assert_array_equal(risks["es_0.995"], normal.expected_shortfall(0.995, "lower"))
    assert len(Questions.of([0.1, 0.1 + 1e-15]).answers(normal)) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"quantiles": [1.5]}, r"`quantiles` must lie in \[0, 1\], got 1.5"),
        ({"interval": 1.0}, r"`interval` must lie in \(0, 1\), got 1"),
        ({"exceed": np.nan}, "`exceed` must be finite"),
        ({"risk": [0.9, 95]}, r"`risk` must lie in \(0, 1\), got 95"),
        ({"tail": "both"}, "`tail` must be one of 'upper', 'lower', got 'both'"),
        ({"index": [1]}, "`index` must have a label for each of the 5 rows, got 1"),
    ],
)
def test_frames_refuse(normal, arguments, message):
    with pytest.raises(ValueError, match=message):
        normal.to_frame(**arguments)


def test_concatenated_rows_of_unlike_kinds(normal):
    counts, grown = make_counts(), normal[2:].transform(np.sinh, np.arcsinh)
    joined = concatenate([normal, counts, grown])
    assert len(joined) == 10
    y = np.linspace(-1.0, 2.0, 10)
    want = [normal.crps(y[:5]), counts.crps(y[5:7]), grown.crps(y[7:])]
    assert_allclose(joined.crps(y), np.concatenate(want), rtol=1e-6)
    rows = [6, 0, 9, 5]
    assert_allclose(joined[rows].crps(y[rows]), joined.crps(y)[rows])
    assert_allclose(joined.pmf(1.0)[5:7], [0.5, 0.1])
    assert (joined.pmf(1.0)[:5] == 0.0).all()


def test_concatenate_refuses(normal):
    with pytest.raises(ValueError, match="`dists` must hold at least one"):
        concatenate([])
    with pytest.raises(TypeError, match="`dists` must be a list of Predictive"):
        concatenate(normal)
    with pytest.raises(TypeError, match="got ndarray at position 1"):
        concatenate([normal, np.zeros(3)])
