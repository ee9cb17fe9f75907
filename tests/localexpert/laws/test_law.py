"""What all laws have in common: shapes, and the helpers that they share."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from localexpert.curves.base_cdf import BaseCDF
from localexpert.laws import DiscreteLaw, Law, MixedLaw, SplineLaw
from localexpert.laws.append_laws import append_laws
from localexpert.laws.law import central_moments_about, freeze_fields, golden_section
from localexpert.laws.pooled_law import PooledLaw
from localexpert.laws.quantile_law import QuantileLaw
from localexpert.laws.recalibrated import RecalibratedLaw, recalibrate_law
from localexpert.laws.scipy_law import ScipyLaw
from localexpert.laws.score_map import ProbitMap
from localexpert.laws.transformed import TransformedLaw
from localexpert.laws.value_map import ValueMap

N = 4
WIDER = ProbitMap([-1.0, 1.0], [-0.8, 0.8], [0.8, 0.8])


def smooth(shift=0.0):
    base = BaseCDF.fit(np.random.default_rng(0).normal(size=2000))
    one = np.ones((N, 1))
    return SplineLaw(np.arange(N) + shift, np.ones(N), [0.0], 0.0 * one, one, base)


def of_quantiles(low=-np.inf):
    values = np.arange(N)[:, None] + [0.1, 0.5, 1.5]
    return QuantileLaw.through([-1.0, 0.1, 1.0], values, (low, np.inf))


def of_scipy():
    return ScipyLaw(
        "gamma", np.column_stack([np.arange(2.0, 6.0), [0.0] * N, [1.0] * N])
    )


LAWS = {
    "spline": smooth,
    "discrete": lambda: DiscreteLaw([0.0, 1.0, 3.0], np.full((N, 3), 1.0 / 3.0)),
    "mixed": lambda: MixedLaw([0.0], np.full((N, 1), 0.3), smooth(), [0.1]),
    "recalibrated": lambda: RecalibratedLaw(smooth(), WIDER),
    "linear pool": lambda: PooledLaw([smooth(), smooth(2.0)], [0.5, 0.5]),
    "probit pool": lambda: PooledLaw([smooth(), smooth(2.0)], [0.5, 0.5], "probit"),
    "transformed": lambda: TransformedLaw(smooth(), ValueMap(np.arcsinh, np.sinh)),
    "quantiles": of_quantiles,
    "quantiles above a bound": lambda: of_quantiles(-0.2),
    "scipy": of_scipy,
    "scipy recalibrated": lambda: recalibrate_law(of_scipy(), WIDER),
    "appended": lambda: append_laws([of_scipy(), smooth()]).take(
        np.array([4, 0, 1, 7])
    ),
}
OF_VALUES = ("cdf", "cdf_left", "sf", "logpdf", "pdf", "crps", "partial_means")
OF_LEVELS = ("ppf", "ppf_scores")


@pytest.fixture(params=LAWS)
def law(request):
    return LAWS[request.param]()


@pytest.mark.parametrize("method", OF_VALUES + OF_LEVELS)
def test_columns_are_answered_each_by_itself(law, method, rng):
    ask = getattr(law, method)
    values = rng.uniform(0.1, 0.9, size=(N, 3))
    whole = np.asarray(ask(values))
    assert whole.shape[-2:] == (N, 3)
    for j in range(3):
        alone = np.asarray(ask(values[:, [j]]))
        assert_allclose(alone[..., 0], whole[..., j], rtol=1e-9)


@pytest.mark.parametrize("method", OF_VALUES + OF_LEVELS)
def test_views_are_as_good_as_arrays_of_their_own(law, method):
    ask = getattr(law, method)
    row = np.array([0.2, 0.5])
    want = ask(np.tile(row, (N, 1)))
    assert_array_equal(ask(np.broadcast_to(row, (N, 2))), want)
    assert_array_equal(ask(np.asfortranarray(np.tile(row, (N, 1)))), want)


def test_rows_are_taken_by_slices_indices_and_masks(law):
    assert isinstance(law, Law)
    y = np.linspace(0.1, 0.9, N)[:, None]
    for rows in (slice(1, 3), np.array([3, 0]), np.arange(N) % 2 == 0):
        part = law.take(rows)
        assert type(part) is type(law)
        assert_allclose(part.cdf(y[rows]), law.cdf(y)[rows], rtol=1e-12)


def test_rows_as_a_whole(law):
    assert law.moments().shape == (N, 4)
    assert law.mode().shape == law.entropy().shape == (N,)
    assert law.shortest_interval(0.5).shape == (N, 2)
    assert len(law.densest_regions(np.full(N, 0.5))) == N
    y, weights = law.nodes()
    assert_allclose((y * weights).sum(axis=1), law.moments()[:, 0], atol=1e-3)


def test_golden_section_finds_the_lowest_place():
    lowest = np.array([[0.1, 0.5], [0.9, 2.0]])
    found = golden_section(
        lambda x: (x - np.tile(lowest, (1, 2))) ** 2,
        np.zeros((2, 2)),
        np.ones((2, 2)),
        60,
    )
    assert_allclose(found, [[0.1, 0.5], [0.9, 1.0]], atol=1e-7)


def test_moments_about_another_centre(rng):
    x = rng.gumbel(size=1000)
    away = x - x.mean()
    central = tuple(np.array([(away**k).mean()]) for k in (2, 3, 4))
    got = central_moments_about(central, np.array([x.mean() - 0.7]))
    assert_allclose(np.ravel(got), [((x - 0.7) ** k).mean() for k in (2, 3, 4)])


def test_frozen_fields_cannot_be_written_to():
    class Owner:
        values: np.ndarray

    owner = Owner()
    freeze_fields(owner, values=np.zeros(2))
    with pytest.raises(ValueError, match="read-only"):
        owner.values[0] = 1.0
