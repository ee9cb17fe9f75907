"""Rows of several laws one after another, against the laws themselves."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from localexpert.curves.base_cdf import BaseCDF
from localexpert.laws import DiscreteLaw, MixedLaw, SplineLaw
from localexpert.laws.append_laws import AppendedLaw, append_laws
from localexpert.laws.quantile_law import QuantileLaw
from localexpert.laws.recalibrated import recalibrate_law
from localexpert.laws.scipy_law import ScipyLaw
from localexpert.laws.score_map import ProbitMap


def spline(seed, n=3):
    base = BaseCDF.fit(np.random.default_rng(seed).gamma(5.0, size=500))
    one = np.ones((n, 1))
    return SplineLaw(np.arange(n) + seed, np.ones(n), [0.0], 0.0 * one, one, base)


def of_quantiles(knots, shift, low=-np.inf):
    values = shift + np.arange(2)[:, None] + np.linspace(0.1, 1.5, len(knots))
    return QuantileLaw.through(knots, values, (low, np.inf))


def norm(mean):
    return ScipyLaw("norm", [[mean, 1.0], [mean + 1.0, 2.0]])


def mixed(atom, seed=1):
    return MixedLaw([0.0, atom], np.full((3, 2), 0.2), spline(seed), [0.1, 0.2])


SETS = {
    "of one kind": ([norm(0.0), norm(3.0)], ScipyLaw),
    "quantiles": (
        [of_quantiles([-1.0, 0.0, 1.0], 0.0), of_quantiles([-1.0, 0.0, 1.0], 2.0)],
        QuantileLaw,
    ),
    "other levels": (
        [of_quantiles([-1.0, 0.0, 1.0], 0.0), of_quantiles([-1.0, 1.0], 2.0)],
        AppendedLaw,
    ),
    "other bounds": (
        [of_quantiles([-1.0, 1.0], 0.0), of_quantiles([-1.0, 1.0], 2.0, 0.0)],
        AppendedLaw,
    ),
    "splines": ([spline(1), spline(2)], AppendedLaw),
    "of all kinds": (
        [spline(1), norm(0.0), of_quantiles([-1.0, 1.0], 0.0)],
        AppendedLaw,
    ),
    "discrete": (
        [
            DiscreteLaw([0.0, 2.0], [[0.2, 0.8]]),
            DiscreteLaw([0.0, 1.0, 2.0], [[0.5, 0.25, 0.25]]),
        ],
        DiscreteLaw,
    ),
    "mixed": ([mixed(1.0), mixed(2.0, 2)], MixedLaw),
    "smooth and mixed": ([spline(1), mixed(2.0)], MixedLaw),
    "discrete and mixed": (
        [DiscreteLaw([0.0, 5.0], [[0.2, 0.8]]), mixed(2.0)],
        MixedLaw,
    ),
}


@pytest.fixture(params=SETS)
def laws(request):
    return SETS[request.param]


def test_answers_are_those_of_the_laws(laws, rng):
    laws, kind = laws
    law = append_laws(laws)
    assert type(law) is kind
    order = rng.permutation(len(law))
    law = law.take(order)
    starts = np.cumsum([0, *(len(one) for one in laws)])
    y = rng.uniform(0.0, 4.0, (len(law), 3))
    q = rng.uniform(0.05, 0.95, (len(law), 3))
    for i, row in enumerate(order):
        k = int(np.searchsorted(starts, row, "right") - 1)
        one, own = laws[k].take(np.array([row - starts[k]])), law.take(np.array([i]))
        for method in ("cdf", "cdf_left", "sf", "crps", "partial_means"):
            want = np.asarray(getattr(one, method)(y[[i]]))
            got = np.asarray(getattr(law, method)(y))[..., [i], :]
            assert_allclose(got, want, atol=1e-9)
        assert_allclose(law.ppf(q)[i], one.ppf(q[[i]])[0], atol=1e-9)
        assert_allclose(law.moments()[i], one.moments()[0], rtol=1e-6)
        assert_allclose(
            law.shortest_interval(0.8)[i], one.shortest_interval(0.8)[0], atol=1e-5
        )
        assert_allclose(own.mode(), law.mode()[i], rtol=1e-6)


def test_what_an_appended_law_says_of_rows():
    law = append_laws([spline(1), norm(0.0)]).take(np.array([4, 0, 2]))
    parts = [norm(0.0).take(np.array([1])), spline(1).take(np.array([0, 2]))]
    y = np.array([[0.5], [2.0], [3.0]])
    for method in ("logpdf", "pdf"):
        want = np.vstack(
            [
                getattr(p, method)(y[r])
                for p, r in zip(parts, ([0], [1, 2]), strict=True)
            ]
        )
        assert_allclose(getattr(law, method)(y), want)
    assert_allclose(law.entropy(), np.concatenate([p.entropy() for p in parts]))
    values, weights = law.nodes()
    assert_allclose(weights.sum(axis=1), 1.0)
    assert_allclose((values * weights).sum(axis=1), law.moments()[:, 0], atol=1e-5)
    assert (np.diff(values, axis=1) >= 0.0).all()
    regions = law.densest_regions(np.full(3, 0.8))
    assert_allclose(regions[1], parts[1].densest_regions(np.full(2, 0.8))[0])
    assert np.isfinite(law.kinks()).all()
    assert law.support == (-np.inf, np.inf)
    again = pickle.loads(pickle.dumps(law))
    assert_array_equal(again.cdf(y), law.cdf(y))


def test_an_appended_law_is_recalibrated_and_may_be_empty():
    law = append_laws([spline(1), norm(0.0)])
    lower = recalibrate_law(law, ProbitMap([0.0], [1.0], [0.5]))
    middle = law.ppf(np.full((5, 1), 0.5))
    assert_allclose(lower.cdf(middle), 0.841345, atol=1e-5)
    none = law.take(np.arange(0))
    assert none.moments().shape == (0, 4)
    assert none.cdf(np.empty((0, 2))).shape == (0, 2)
    assert none.densest_regions(np.empty(0)) == []


def test_one_law_is_itself_and_empty_ones_are_left_out():
    law = spline(1)
    assert append_laws([law]) is law
    assert append_laws([law.take(np.arange(0)), law]) is law
    assert len(append_laws([law.take(np.arange(0))] * 2)) == 0
