"""Laws clipped to bounds: mass is moved, and the order of rows stays."""

import numpy as np
import pytest
from scipy import stats

from localexpert.curves.base_cdf import BaseCDF
from localexpert.laws.clipped import clip_law
from localexpert.laws.discrete import DiscreteLaw
from localexpert.laws.mixed import MixedLaw
from localexpert.laws.spline import SplineLaw
from localexpert.laws.transformed import TransformedLaw
from localexpert.laws.value_map import ValueMap

BASE = BaseCDF.fit(stats.norm.ppf(np.arange(1, 4000) / 4000))


def make_law(bounds=(-np.inf, np.inf)):
    """Return two laws; nowhere is the first one's CDF below the second one's."""
    knots = np.array([-1.0, 0.0, 1.0, 2.0])
    values = np.array([[-0.1, 0.0, 0.5, 1.5], [-2.3, -1.3, 0.4, 1.4]])
    return SplineLaw(
        [0.0, 0.0], [1.0, 1.0], knots, values, np.full((2, 4), 0.1), BASE, bounds
    )


def test_order_is_kept_where_cutting_off_loses_it():
    at = np.tile(np.linspace(-1.0, 4.0, 200), (2, 1))
    whole, bounds = make_law(), (0.0, np.inf)
    first, second = whole.cdf(at)
    assert (first >= second).all()
    first, second = make_law(bounds).cdf(at)
    assert (second - first).max() > 0.05
    first, second = clip_law(whole, bounds, 0.1).cdf(at)
    assert (first >= second).all()


@pytest.mark.parametrize("bounds", [(-0.5, np.inf), (-np.inf, 1.0), (-0.5, 1.0)])
@pytest.mark.parametrize("transformed", [False, True])
def test_it_is_the_law_of_clipped_draws(bounds, transformed):
    law = make_law()
    if transformed:
        law = TransformedLaw(law, ValueMap(np.arcsinh, np.sinh))
        bounds = tuple(np.arcsinh(bounds))
    clipped = clip_law(law, bounds, 0.1)
    assert isinstance(clipped, MixedLaw)
    at = np.tile(np.linspace(-2.0, 2.0, 41), (2, 1))
    inside = (at >= bounds[0]) & (at < bounds[1])
    wanted = np.where(inside, law.cdf(at), at >= bounds[1])
    np.testing.assert_allclose(clipped.cdf(at), wanted, atol=1e-12)
    levels = np.tile(np.linspace(0.001, 0.999, 57), (2, 1))
    np.testing.assert_allclose(
        clipped.ppf(levels), np.clip(law.ppf(levels), *bounds), rtol=1e-7, atol=1e-9
    )
    fine = np.tile((np.arange(200_000) + 0.5) / 200_000, (2, 1))
    means = np.clip(law.ppf(fine), *bounds).mean(axis=1)
    np.testing.assert_allclose(clipped.moments()[:, 0], means, rtol=1e-4)


def test_nothing_beyond_the_bounds_changes_nothing():
    law = TransformedLaw(make_law(), ValueMap(np.exp, np.log, np.exp))
    assert clip_law(law, (0.0, np.inf), 0.1) is law
    assert clip_law(law, (-3.0, np.inf), 0.1) is law


def test_other_laws_are_refused():
    with pytest.raises(TypeError, match=r"`law` must be a spline .*got DiscreteLaw"):
        clip_law(DiscreteLaw([-1.0, 1.0], [[0.5, 0.5]]), (0.0, np.inf), 0.1)
