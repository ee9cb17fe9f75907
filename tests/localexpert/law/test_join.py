"""Laws one after another, and pools, against what their members say."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import ndtr, ndtri

from localexpert import PredictiveDistribution
from localexpert.law.join import append_laws, can_pool_scores, pool_laws
from tests.localexpert.law.kinds import KINDS, LATTICES, SMOOTH, every, places_of

WEIGHTS = np.array([[0.3, 0.7], [0.9, 0.1], [0.0, 1.0]])
# Kinds without bounds. Where a member's bound lies within another the density jumps,
# which 91 scores tell less well.
FREE = {"smooth", "two peaks", "mixed", "discrete"}


@every
@pytest.mark.parametrize("other", KINDS)
def test_rows_and_pools_of_unlike_laws(name: str, other: str) -> None:
    laws = [KINDS[name], KINDS[other]]
    joined = append_laws([*laws, KINDS[name].take(slice(0, 0))])
    assert len(joined) == 6
    for k, law in enumerate(laws):
        own, y = joined.take(slice(3 * k, 3 * k + 3)), places_of(law)
        for method in ("cdf", "cdf_left"):
            want = getattr(law, method)(y)
            assert_allclose(getattr(own, method)(y), want, rtol=0.0, atol=1e-3)
        sd = np.sqrt(law.moments()[:, 1])[:, None] + 1e-9
        assert_allclose((own.crps(y) - law.crps(y)) / sd, 0.0, atol=1e-3)
    steps = {law.step for law in laws if not law.is_discrete}
    if len(steps) > 1:
        with pytest.raises(ValueError, match="of different lattices have no pool, got"):
            pool_laws(laws, WEIGHTS, "linear")
        return
    pool = pool_laws(laws, WEIGHTS, "linear")
    y = np.hstack([places_of(law) for law in laws])
    bar = 1e-3 if name == other or {name, other} <= FREE else 3e-2
    for method in ("cdf", "cdf_left", "sf"):
        parts = [getattr(law, method)(y) for law in laws]
        want = np.einsum("ik,kij->ij", WEIGHTS, parts)
        assert_allclose(getattr(pool, method)(y), want, rtol=0.0, atol=bar)
    below = np.einsum("ik,kij->ij", WEIGHTS, [law.partial_means(y)[0] for law in laws])
    sd = np.sqrt(pool.moments()[:, 1])[:, None] + 1e-9
    assert_allclose((pool.partial_means(y)[0] - below) / sd, 0.0, atol=bar)


@pytest.mark.parametrize("name", SMOOTH)
def test_probit_pools_are_means_of_scores(name: str) -> None:
    laws = [KINDS[name], KINDS[name].take([1, 2, 0])]
    assert can_pool_scores(laws)
    pool = pool_laws(laws, WEIGHTS, "probit", 1.3)
    y = pool.ppf(np.tile([0.01, 0.2, 0.5, 0.8, 0.99], (3, 1)))
    own = [np.clip(law.scores(y), -37.0, 37.0) for law in laws]
    z = 1.3 * np.einsum("ik,kij->ij", WEIGHTS, own)
    assert_allclose(pool.cdf(y), ndtr(z), rtol=0.0, atol=3e-3)
    plain, sharp = (pool_laws(laws, WEIGHTS, "linear", k) for k in (1.0, 1.3))
    assert_allclose(sharp.cdf(y), ndtr(1.3 * ndtri(plain.cdf(y))), atol=3e-3)


def test_moments_that_a_member_has_not_got() -> None:
    heavy = PredictiveDistribution.from_scipy(stats.cauchy(np.zeros(3))).law
    pool = pool_laws([heavy, KINDS["smooth"]], WEIGHTS, "linear")
    assert np.isfinite(pool.moments()).all(axis=1).tolist() == [False, False, True]


def test_what_has_no_pool_is_refused() -> None:
    pair = [KINDS["smooth"], KINDS["mixed"]]
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
    coarse = replace(KINDS[LATTICES[0]], step=2.0)
    with pytest.raises(ValueError, match=r"no pool, got steps 0\.5, 2"):
        pool_laws([KINDS[LATTICES[0]], coarse], [0.5, 0.5], "linear")
