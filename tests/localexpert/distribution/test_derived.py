"""Distributions of functions, joined ones, and data frames of what they say."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from localexpert import DiscreteLaw, MixedLaw, PredictiveDistribution, concatenate
from localexpert.distribution.frame import Questions
from tests.localexpert.distribution.test_predictive import make_normal


@pytest.fixture
def normal():
    return PredictiveDistribution(make_normal(5)[0])


def make_counts(values=(0.0, 1.0, 2.0)):
    rows = [[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]]
    return PredictiveDistribution(DiscreteLaw(values, rows))


def test_transformed(normal):
    prices = normal.transform(np.exp, np.log)
    assert isinstance(prices, PredictiveDistribution)
    assert len(prices) == 5
    assert_allclose(prices.median(), np.exp(normal.median()))
    grid = np.array([[0.5], [3.0]])
    assert_allclose(prices.cdf(grid), normal.cdf(np.log(grid)))
    assert_allclose(prices[[3, 1]].mean(), prices.mean()[[3, 1]])
    draws = normal.rvs(50, random_state=3)
    assert_allclose(prices.rvs(50, random_state=3), np.exp(draws))
    assert_allclose(
        prices.expect(lambda z: np.minimum(z, 2.0)),
        normal.expect(lambda y: np.minimum(np.exp(y), 2.0)),
        rtol=1e-2,
    )
    again = pickle.loads(pickle.dumps(prices))
    assert_array_equal(again.mean(), prices.mean())


def test_transform_refuses_what_it_cannot_keep(normal):
    with pytest.raises(ValueError, match="`func` must increase strictly"):
        normal.transform(np.negative, np.negative)
    with pytest.raises(TypeError, match="`inverse` must be callable"):
        normal.transform(np.exp, "log")


def test_frames_hold_what_was_asked_for(normal):
    frame = normal.to_frame(
        quantiles=[0.05, 0.5], interval=0.9, exceed=[1, 2.5], index=list("abcde")
    )
    assert isinstance(frame, pd.DataFrame)
    names = "mean std q0.05 q0.5 low_0.9 high_0.9 p_above_1 p_above_2.5"
    assert list(frame.columns) == names.split()
    assert list(frame.index) == list("abcde")
    assert_allclose(frame["mean"], normal.mean())
    assert_allclose(frame["std"], normal.std())
    assert_allclose(frame["q0.05"], normal.ppf(0.05))
    assert_allclose(frame[["low_0.9", "high_0.9"]], normal.interval(0.9))
    assert_allclose(frame["p_above_2.5"], normal.sf(2.5))


def test_frames_where_nothing_or_many_intervals_are_asked_for(normal):
    assert list(normal.to_frame().columns) == ["mean", "std", "q0.05", "q0.5", "q0.95"]
    frame = normal.to_frame(interval=(0.5, 0.9))
    assert list(frame.columns)[2:] == ["low_0.5", "high_0.5", "low_0.9", "high_0.9"]
    assert list(normal.to_frame(exceed=1e-3).columns)[2:] == ["p_above_0.001"]
    assert normal[:0].to_frame(exceed=1).shape == (0, 3)
    close = Questions.of([0.1, 0.1 + 1e-15]).answers(normal)
    assert len(close) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"quantiles": [1.5]}, r"`quantiles` must lie in \[0, 1\], got 1.5"),
        ({"interval": 1.0}, r"`interval` must lie in \(0, 1\), got 1"),
        ({"exceed": np.nan}, "`exceed` must be finite"),
        ({"index": [1]}, "`index` must have a label for each of the 5 rows, got 1"),
    ],
)
def test_frames_refuse(normal, arguments, message):
    with pytest.raises(ValueError, match=message):
        normal.to_frame(**arguments)


def test_concatenated_rows_keep_their_order(normal):
    counts = make_counts()
    joined = concatenate([normal, counts, normal[:1]])
    assert len(joined) == 8
    want = np.concatenate([normal.mean(), counts.mean(), normal.mean()[:1]])
    assert_allclose(joined.mean(), want)
    y = np.linspace(-1.0, 2.0, 8)
    want = [normal.crps(y[:5]), counts.crps(y[5:7]), normal[:1].crps(y[7:])]
    assert_allclose(joined.crps(y), np.concatenate(want), rtol=1e-9)
    rows = [6, 0, 7, 5]
    assert_allclose(joined[rows].crps(y[rows]), joined.crps(y)[rows])
    assert_allclose(joined.pmf(1.0)[5:7], [0.5, 0.1])
    assert isinstance(joined.law, MixedLaw)
    again = pickle.loads(pickle.dumps(joined))
    assert_array_equal(again.ppf(0.3), joined.ppf(0.3))


def test_concatenated_discrete_rows_stay_discrete():
    joined = concatenate([make_counts(), make_counts((0.0, 5.0, 6.0))])
    assert isinstance(joined.law, DiscreteLaw)
    assert_array_equal(joined.law.values, [0.0, 1.0, 2.0, 5.0, 6.0])
    assert_allclose(joined.pmf(5.0), [0.0, 0.0, 0.5, 0.1], atol=1e-15)


def test_concatenated_transforms(normal):
    joined = concatenate([normal[:2], normal[2:].transform(np.sinh, np.arcsinh)])
    assert_allclose(joined.median()[2:], np.sinh(normal.median()[2:]))
    twice = joined.transform(np.arcsinh, np.sinh)
    assert_allclose(twice.mean()[2:], normal.mean()[2:], rtol=1e-6)


def test_concatenate_refuses(normal):
    with pytest.raises(ValueError, match="`dists` must hold at least one"):
        concatenate([])
    with pytest.raises(TypeError, match="`dists` must be a list of Predictive"):
        concatenate(normal)
    with pytest.raises(TypeError, match="got ndarray at position 1"):
        concatenate([normal, np.zeros(3)])
