"""Laws one after another, and pools, against what their members say."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import ndtr, ndtri

from localexpert import PredictiveDistribution
from localexpert.law.join import append_laws, can_pool_scores, jump_values, pool_laws
from localexpert.law.law import Law
from tests.forecasts import of_values
from tests.localexpert.law.kinds import KINDS, LATTICES, SMOOTH, every, places_of

WEIGHTS = np.array([[0.3, 0.7], [0.9, 0.1], [0.0, 1.0]])


@every
@pytest.mark.parametrize("other", KINDS)
def test_rows_of_unlike_laws_stay_what_they_are(name: str, other: str) -> None:
    laws = [KINDS[name], KINDS[other], KINDS[name].take(slice(0, 0))]
    joined = append_laws(laws)
    assert len(joined) == 6
    for k, law in enumerate(laws[:2]):
        own, y = joined.take(slice(3 * k, 3 * k + 3)), places_of(law)
        assert_allclose(own.cdf(y), law.cdf(y), rtol=0.0, atol=1e-3)
        assert_allclose(own.cdf_left(y), law.cdf_left(y), rtol=0.0, atol=1e-3)
        sd = np.sqrt(law.moments()[:, 1])[:, None]
        assert_allclose((own.crps(y) - law.crps(y)) / (sd + 1e-9), 0.0, atol=1e-3)


@every
@pytest.mark.parametrize("other", KINDS)
def test_linear_pools_are_mixtures(name: str, other: str) -> None:
    laws = [KINDS[name], KINDS[other]]
    if name in LATTICES and other in LATTICES and name != other:
        with pytest.raises(ValueError, match="of different lattices have no pool, got"):
            pool_laws(laws, WEIGHTS, "linear")
        return
    if (name in LATTICES) != (other in LATTICES):
        return  # see `test_lattices_and_others_have_no_pool`
    pool = pool_laws(laws, WEIGHTS, "linear")
    y = np.hstack([places_of(law) for law in laws])
    w = WEIGHTS.T[:, :, None]
    for method in ("cdf", "cdf_left", "sf"):
        want = sum(
            each * getattr(law, method)(y) for each, law in zip(w, laws, strict=True)
        )
        assert_allclose(getattr(pool, method)(y), want, rtol=0.0, atol=1e-3)
    below = sum(
        each * law.partial_means(y)[0] for each, law in zip(w, laws, strict=True)
    )
    sd = np.sqrt(pool.moments()[:, 1])[:, None] + 1e-9
    assert_allclose((pool.partial_means(y)[0] - below) / sd, 0.0, atol=1e-3)


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("sharpness", [1.0, 1.3])
def test_probit_pools_are_means_of_scores(name: str, sharpness: float) -> None:
    laws = [KINDS[name], KINDS[name].take([1, 2, 0])]
    assert can_pool_scores(laws)
    pool = pool_laws(laws, WEIGHTS, "probit", sharpness)
    y = pool.ppf(np.tile([0.01, 0.2, 0.5, 0.8, 0.99], (3, 1)))
    own = [np.clip(law.scores(y), -37.0, 37.0) for law in laws]
    z = sharpness * sum(w[:, None] * s for w, s in zip(WEIGHTS.T, own, strict=True))
    assert_allclose(pool.cdf(y), ndtr(z), rtol=0.0, atol=1e-3)


def test_a_sharpness_multiplies_the_scores_of_a_linear_pool() -> None:
    laws = [KINDS["smooth"], KINDS["two peaks"]]
    plain, sharp = (pool_laws(laws, WEIGHTS, "linear", k) for k in (1.0, 1.2))
    y = places_of(plain)
    assert_allclose(sharp.cdf(y), ndtr(1.2 * ndtri(plain.cdf(y))), atol=1e-3)


@pytest.mark.parametrize("kind", ["linear", "probit"])
def test_near_values_are_one(kind: str) -> None:
    third, rows = 0.1 + 0.2, [[0.2, 0.5, 0.3]]
    laws = [of_values([0.1, v, 0.5], rows).law for v in (0.3, third)]
    assert_array_equal(jump_values(laws), [0.1, 0.3, 0.5])
    pool = pool_laws(laws, [0.5, 0.5], kind)  # type: ignore[arg-type]
    assert_array_equal(pool.atoms, [0.1, 0.3, 0.5])
    assert_allclose(pool.masses, rows)
    assert_array_equal(append_laws(laws).atoms, [0.1, 0.3, 0.5])


def test_moments_that_a_member_has_not_got() -> None:
    heavy = PredictiveDistribution.from_scipy(stats.cauchy([0.0, 0.0, 0.0])).law
    pool = pool_laws(
        [KINDS["smooth"], heavy], [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], "linear"
    )
    assert np.isfinite(pool.moments()).all(axis=1).tolist() == [True, False, False]


def test_what_has_no_pool_is_refused() -> None:
    pair: list[Law] = [KINDS["smooth"], KINDS["mixed"]]
    assert not can_pool_scores(pair)
    assert not can_pool_scores([KINDS["clipped"]] * 2)
    with pytest.raises(
        ValueError, match='`kind` must be "linear" for laws with values'
    ):
        pool_laws(pair, [0.5, 0.5], "probit")
    with pytest.raises(ValueError, match="`kind` must be one of 'linear', 'probit'"):
        pool_laws(pair, [0.5, 0.5], "mean")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`weights` must sum to 1 in every row"):
        pool_laws(pair, [0.5, 0.6], "linear")
    steps = [replace(KINDS["lattice"], step=step) for step in (1.0, 2.0)]
    with pytest.raises(ValueError, match="no pool, got steps 1, 2"):
        pool_laws(steps, [0.5, 0.5], "linear")
