"""Growth of a mixture by splits."""

import numpy as np
import pytest

from calibration._kernels.mixture import (
    COUNT,
    MEAN,
    RATE,
    SHAPE,
    climb,
    grow_mixture,
    split_component,
)

PRIOR = np.array([1.0, 0.0, 0.1, 1.0, 0.1])


def rows_as_groups(x):
    return np.stack([np.ones(len(x)), x, np.zeros(len(x))])


@pytest.fixture
def three_clusters(rng):
    parts = [rng.normal(m, s, n) for m, s, n in ((-4, 0.5, 30), (0, 1, 90), (5, 1, 60))]
    return np.concatenate(parts)


def test_finds_the_clusters_and_no_more(three_clusters):
    parameters, bounds = grow_mixture(rows_as_groups(three_clusters), 6, PRIOR, 0.01)
    np.testing.assert_allclose(parameters[COUNT], [90, 60, 30, 0, 0, 0], atol=3)
    np.testing.assert_allclose(parameters[MEAN, :3], [0, 5, -4], atol=0.3)
    deviations = np.sqrt(parameters[RATE] / parameters[SHAPE])
    np.testing.assert_allclose(deviations[:3], [1, 1, 0.5], atol=0.2)
    assert np.diff(bounds).min() > -1e-9


def test_reaches_at_least_what_random_starts_reach(rng, three_clusters):
    groups = rows_as_groups(three_clusters)
    grown = grow_mixture(groups, 6, PRIOR, 0.01)[1][-1]
    for _ in range(8):
        shares = np.ascontiguousarray(rng.dirichlet(np.full(6, 0.1), 180).T)
        assert climb(groups, shares, PRIOR, 0.01, 500)[2][-1] < grown + 0.05


def test_a_narrow_core_is_split_from_its_tails(rng):
    x = np.concatenate([rng.normal(0, 0.1, 150), rng.normal(0, 2.0, 150)])
    parameters, _ = grow_mixture(rows_as_groups(x), 4, PRIOR, 0.01)
    deviations = np.sort(np.sqrt(parameters[RATE] / parameters[SHAPE])[:2])
    np.testing.assert_allclose(deviations, [0.1, 2.0], rtol=0.25)


def test_split_moves_shares_and_keeps_their_sum(rng):
    x = rng.normal(size=20)
    shares = np.zeros((3, 20))
    shares[0] = 1.0
    groups = rows_as_groups(x)
    parameters, shares, _ = climb(groups, shares, PRIOR, 0.01, 50)
    right = split_component(groups, shares, parameters, 0, 2, False)
    far = split_component(groups, shares, parameters, 0, 2, True)
    mean = parameters[MEAN, 0]
    deviation = np.sqrt(parameters[RATE, 0] / parameters[SHAPE, 0])
    np.testing.assert_allclose(right.sum(axis=0), 1.0)
    np.testing.assert_array_equal(right[0] == 0.0, x > mean)
    np.testing.assert_array_equal(far[0] == 0.0, abs(x - mean) > deviation)


def test_stops_after_the_most_steps_and_when_nothing_is_gained(rng):
    groups = rows_as_groups(rng.normal(size=30))
    shares = np.ascontiguousarray(rng.dirichlet(np.ones(3), 30).T)
    assert len(climb(groups, shares, PRIOR, 0.0, 7)[2]) == 7
    _, _, bounds = climb(groups, shares, PRIOR, 0.5, 500)
    gains = np.diff(bounds)
    assert gains[-1] < 0.5
    assert (gains[:-1] >= 0.5).all()
