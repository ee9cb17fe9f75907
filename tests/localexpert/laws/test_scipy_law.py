"""ScipyLaw against closed forms and adaptive quadrature."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats

from localexpert.laws.scipy_law import ScipyLaw
from tests.localexpert.laws.test_quantile_law import normal_crps

FAMILIES = {
    "norm": (),
    "gamma": (2.0,),
    "lognorm": (1.0,),
    "t": (3.0,),
    "laplace": (),
    "uniform": (),
    "expon": (),
    "gumbel_r": (),
    "weibull_min": (0.7,),
    "johnsonsu": (1.0, 1.5),
    "beta": (2.0, 3.0),
    "triang": (0.3,),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_scores_are_those_of_scipy(name):
    shapes = FAMILIES[name]
    frozen = getattr(stats, name)(*shapes, loc=-1.0, scale=2.0)
    law = ScipyLaw(name, [[*shapes, -1.0, 2.0]])
    y = frozen.ppf([[0.01, 0.5, 0.95]])
    crps, (below, above) = law.crps(y), law.partial_means(y)
    tails = np.logspace(-9, -1, 9)
    inner = np.linspace(0.2, 0.8, 7)
    grid = [frozen.ppf(tails), frozen.ppf(inner), frozen.isf(tails), y[0]]
    grid = np.unique(np.concatenate(grid))
    for j, at in enumerate(y[0]):
        sums = np.zeros(3)
        for a, b in pairwise(grid):
            side = frozen.cdf if b <= at else frozen.sf
            part = integrate.quad(side, a, b)[0]
            sums[0] += integrate.quad(lambda x, side=side: side(x) ** 2, a, b)[0]
            sums[1 if b <= at else 2] += part
        got = np.array([crps[0, j], below[0, j], above[0, j]])
        assert_allclose(got / frozen.std(), sums / frozen.std(), atol=2e-4)
    assert_allclose(law.mode(), _mode(frozen), atol=2e-3)
    scanned = (law.nodes()[1] * -law.logpdf(law.nodes()[0])).sum(axis=1)
    assert_allclose(law.entropy(), scanned, atol=5e-3)


def _mode(frozen):
    grid = np.linspace(frozen.ppf(1e-9), frozen.ppf(1 - 1e-9), 200_001)
    density = frozen.pdf(grid)
    return grid[np.argmax(density)] if frozen.dist.name != "uniform" else -1.0


def test_normal_laws_in_closed_form(rng):
    mean, spread = rng.normal(size=500), rng.uniform(0.1, 4.0, 500)
    law = ScipyLaw("norm", np.column_stack([mean, spread]))
    y = (mean + spread * rng.normal(0.0, 3.0, 500))[:, None]
    want = normal_crps(y, mean[:, None], spread[:, None])
    assert_allclose(law.crps(y) / spread[:, None], want / spread[:, None], atol=1e-7)
    moments = np.column_stack([mean, spread**2, 0.0 * mean, 3.0 * spread**4])
    assert_allclose(law.moments(), moments, atol=1e-12)
    assert_array_equal(law.cdf(y), stats.norm(mean, spread).cdf(y[:, 0])[:, None])


def test_far_tails_keep_their_digits():
    law = ScipyLaw("norm", [[0.0, 1.0]])
    z = np.array([[-30.0, -9.0, 9.0, 30.0]])
    assert_allclose(law.ppf_scores(z), z, rtol=1e-12)
    assert_allclose(law.sf(np.array([[30.0]])), stats.norm.sf(30.0), rtol=1e-12)
    assert_array_equal(law.ppf(np.array([[0.0, 1.0]])), [[-np.inf, np.inf]])


def test_quantiles_that_scipy_loses_are_the_last_that_it_knows():
    class Plain(stats.rv_continuous):
        """A logistic law that is told of its quantiles only."""

        def _cdf(self, x):
            return 1.0 / (1.0 + np.exp(-x))

        def _ppf(self, q):
            return np.log(q) - np.log1p(-q)

    with np.errstate(divide="ignore"):
        law = ScipyLaw(Plain(name="plain"), [[0.0, 1.0]])
        far = law.ppf_scores(np.array([[8.0, 12.0, np.inf]]))
    assert far[0, 1] == far[0, 0] < np.inf
    assert far[0, 2] == np.inf


def test_moments_that_do_not_exist_are_said_so():
    law = ScipyLaw("t", [[1.0, 0.0, 1.0], [2.5, 0.0, 1.0]])
    moments = law.moments()
    assert np.isnan(moments[0]).all() or np.isinf(moments[0]).any()
    assert moments[1, 0] == 0.0
    assert moments[1, 1] == pytest.approx(5.0)
    assert np.isinf(moments[1, 3])


def test_an_infinite_density_is_cut_off():
    law = ScipyLaw("gamma", [[0.5, 0.0, 1.0]])
    assert law.logpdf(np.zeros((1, 1))) == 300.0
    assert np.isfinite(law.nodes()[1]).all()
    assert law.mode().shape == (1,)


def test_names_are_kept_and_laws_pickle():
    frozen = stats.gamma(2.0)
    law = ScipyLaw(frozen.dist, [[2.0, 0.0, 1.0]])
    assert law.family == "gamma"
    again = pickle.loads(pickle.dumps(law))
    assert_array_equal(again.parameters, law.parameters)
    assert law.is_like(again)
    assert not law.is_like(ScipyLaw("norm", [[0.0, 1.0]]))
    own = stats.rv_histogram(np.histogram([0.0, 1.0, 1.5, 3.0], bins=3))
    assert ScipyLaw(own, [[0.0, 1.0]]).family is own


def test_supports_are_those_of_all_rows():
    law = ScipyLaw("uniform", [[0.0, 1.0], [5.0, 2.0]])
    assert law.support == (0.0, 7.0)
    assert len(law.take(np.arange(0))) == 0


def test_what_is_refused():
    with pytest.raises(
        ValueError, match="`gamma` has a law, got a=-1, loc=0, scale=1 in row 1"
    ):
        ScipyLaw("gamma", [[1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]])
    with pytest.raises(ValueError, match=r"`parameters` must have shape \(any, 2\)"):
        ScipyLaw("norm", [[1.0, 0.0, 1.0]])
    with pytest.raises(ValueError, match="`parameters` must be finite"):
        ScipyLaw("norm", [[np.nan, 1.0]])
    with pytest.raises(
        TypeError, match=r"`family` must be a continuous .* got 'poisson'"
    ):
        ScipyLaw("poisson", [[1.0, 0.0]])
    with pytest.raises(
        TypeError, match=r"`family` must be a continuous .* got 'nothing'"
    ):
        ScipyLaw("nothing", [[1.0, 0.0]])
