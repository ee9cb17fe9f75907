"""Laws whose levels are mapped: what G(F) is, and what a map must leave as it is."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import ndtr, ndtri

from localexpert import PredictiveDistribution
from localexpert.law.level_map import LevelMap, log_rate, map_levels
from tests.forecasts import beside, normal
from tests.localexpert.law.kinds import KINDS, LEVELS, SMOOTH, every, places_of

X = np.array([-1.0, 0.0, 1.0])
BENT = LevelMap.through(X, np.array([-1.1, 0.2, 1.3]), np.array([1.1, 1.2, 1.1]))
WIDE = LevelMap.through(X, np.array([-0.7, 0.0, 0.8]), np.array([0.7, 0.8, 0.8]))


@every
def test_the_identity_returns_the_very_same_law(name: str) -> None:
    law = KINDS[name]
    assert map_levels(law, LevelMap.line(0.0)) is law
    assert map_levels(law, LevelMap.through(X, X, np.ones(3))) is law


@pytest.mark.parametrize("number", [(0, 0, 0), (1, 0, 1)], ids=["one", "each its own"])
@every
def test_levels_are_mapped(name: str, number: tuple[int, ...]) -> None:
    law, levels = KINDS[name], LevelMap.by_row([BENT, WIDE], np.array(number))
    found = map_levels(law, levels)
    y = places_of(law)
    # Between 91 scores curves are not exact; those beside atoms have kinks there.
    bar = 1e-12 if name == "discrete" else 1e-3
    for left in (False, True):
        below, above = law.levels(y, left=left)
        got = found.levels(y, left=left)
        assert_allclose(got[0], levels(below), rtol=0.0, atol=bar)
        assert_allclose(got[1], 1.0 - levels(1.0 - above), rtol=0.0, atol=bar)
    assert found.support == law.support
    both = map_levels(law.take([2]), levels.take([2]))
    assert_allclose(both.cdf(y[2:]), found.cdf(y)[2:], atol=1e-12)


@every
def test_ten_maps_there_and_back_do_not_widen_a_law(name: str) -> None:
    law = found = KINDS[name]
    for _ in range(10):
        found = map_levels(found, LevelMap.line(0.3, 1.2))
        found = map_levels(found, LevelMap.line(-0.25, 1.0 / 1.2))
    before, after = law.moments(), found.moments()
    sd = np.sqrt(before[:, 1])
    # Beside atoms a curve has kinks, where each reading leaves something.
    bar = 2e-4 if name == "mixed" else 1e-4
    assert_allclose(after[:, 0], before[:, 0], rtol=0.0, atol=bar * sd.max())
    assert_allclose(np.sqrt(after[:, 1]), sd, rtol=bar, atol=1e-6)
    if name in SMOOTH:
        error = (found.ppf(LEVELS) - law.ppf(LEVELS)) / sd[:, None]
        assert_allclose(error, 0.0, atol=2e-3)


def test_maps_of_levels_themselves(rng: np.random.Generator) -> None:
    p = np.append(rng.uniform(size=20), [0.0, 1e-300, 1e-12, 1.0])
    assert_allclose(LevelMap.line(0.4, 1.5)(p), ndtr(0.4 + 1.5 * ndtri(p)), rtol=1e-10)
    one = LevelMap(np.zeros(1), np.array([0.4]), np.array([1.5]))
    assert_allclose(one(p), ndtr(0.4 + 1.5 * ndtri(p)), rtol=1e-10)
    z = np.linspace(-9.0, 9.0, 181)[None]
    h, log_slopes = BENT.forward(z)
    assert_allclose(BENT.inverse(h), z, atol=1e-9)
    # Beyond a further piece at each end the slope is 1.
    assert_allclose(log_slopes[np.abs(z) > 2.0], 0.0, atol=1e-12)
    assert_allclose(h[0, [0, -1]], [-9.1, 9.3])
    assert BENT.take(slice(0, 1)) is BENT


def test_moments_that_do_not_exist_do_not_come_to_be() -> None:
    law = PredictiveDistribution.from_scipy(stats.t([1.0, 1.5, 3.5])).law
    before, after = law.moments(), map_levels(law, WIDE).moments()
    assert_array_equal(np.isfinite(before), np.isfinite(after))


@pytest.mark.parametrize(("atom", "slope"), [(0.0, 0.3), (-5.0, 1.6)])
def test_modes_beside_atoms_are_where_there_is_probability(
    atom: float, slope: float
) -> None:
    # A tail of steps that rounding made flat is no peak. Atoms are in wide cells.
    levels = LevelMap.line(0.0, slope)
    law = beside(normal([0.3], 1.0), [atom], np.array([[0.3]]), [9.0]).law
    y = np.linspace(-4.0, 4.0, 8001)[None]
    y = y[:, np.abs(y[0] - atom) > 1e-3]
    scores = law.scores(y)
    density = law.logpdf(y) + log_rate(scores, *levels.forward(scores))
    mode = map_levels(law, levels).mode()[0]
    assert abs(mode) < 4.0
    assert density.max() - np.interp(mode, y[0], density[0]) < 0.1
