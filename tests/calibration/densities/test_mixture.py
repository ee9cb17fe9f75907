"""The variational mixture against sums."""

from itertools import product

import numpy as np
import pytest
from scipy.special import betaln, gammaln, logsumexp

from calibration.densities import mixture

# Concentration; mean, its rows, shape and rate of the base measure.
PRIOR = np.array([0.7, 0.2, 0.1, 1.5, 0.2])


def rows_as_groups(x):
    return np.stack([np.ones(len(x)), x, np.zeros(len(x))])


def converge(groups, shares, prior, steps=300):
    bounds = []
    for _ in range(steps):
        parameters = mixture.update_components(groups, shares, prior)
        shares, bound = mixture.share_groups(groups, parameters, prior)
        bounds.append(bound)
    return parameters, shares, np.array(bounds)


def random_shares(rng, n_components, m):
    return np.ascontiguousarray(rng.dirichlet(np.ones(n_components), m).T)


@pytest.fixture
def two_clusters(rng):
    return np.concatenate([rng.normal(-3.0, 0.5, 40), rng.normal(2.0, 1.0, 80)])


def log_marginal(x, prior):
    """Log evidence of rows in one normal component."""
    _, mean0, precision0, shape0, rate0 = prior
    n = len(x)
    if n == 0:
        return 0.0
    precision, shape = precision0 + n, shape0 + n / 2
    squares = ((x - x.mean()) ** 2).sum()
    squares += precision0 * n / precision * (x.mean() - mean0) ** 2
    out = gammaln(shape) - gammaln(shape0) + shape0 * np.log(rate0)
    out += 0.5 * np.log(precision0 / precision) - n / 2 * np.log(2 * np.pi)
    return out - shape * np.log(rate0 + squares / 2)


def log_joint(x, second, prior):
    """Log probability of the rows together with who is in the second component."""
    n0, n1 = (~second).sum(), second.sum()
    sticks = betaln(1 + n0, prior[0] + n1) - betaln(1, prior[0])
    return sticks + log_marginal(x[~second], prior) + log_marginal(x[second], prior)


def log_evidence(x, prior):
    """Sum over all memberships in two components."""
    memberships = product([False, True], repeat=len(x))
    return logsumexp([log_joint(x, np.array(second), prior) for second in memberships])


@pytest.mark.parametrize("gap", [0.0, 1.0, 4.0])
def test_bound_lies_between_one_membership_and_all_of_them(rng, gap):
    """With memberships fixed the posterior is exact, and so is the bound."""
    x = np.concatenate([rng.normal(0, 0.4, 5), rng.normal(gap, 0.4, 4)])
    second = np.arange(9) >= 5
    shares = np.stack([~second, second]).astype(float)
    groups = rows_as_groups(x)
    fitted = mixture.update_components(groups, shares, PRIOR)
    bound = mixture.share_groups(groups, fitted, PRIOR)[1]
    settled = converge(groups, shares, PRIOR)[2][-1]
    assert log_joint(x, second, PRIOR) < bound <= settled < log_evidence(x, PRIOR)
    if gap == 4.0:  # hardly any doubt who belongs where
        assert bound < log_joint(x, second, PRIOR) + 0.02


def test_no_other_parameters_near_the_fixed_point_are_better(rng, two_clusters):
    groups = rows_as_groups(two_clusters)
    parameters, _, bounds = converge(groups, random_shares(rng, 3, 120), PRIOR, 2000)
    for _ in range(50):
        moved = parameters * (1.0 + 0.02 * rng.normal(size=parameters.shape))
        assert mixture.share_groups(groups, moved, PRIOR)[1] < bounds[-1]


def test_a_group_counts_as_its_rows_with_common_shares(rng):
    x = rng.normal(size=12)
    shares = random_shares(rng, 3, 4)
    cells = x.reshape(4, 3)
    groups = np.stack([np.full(4, 3.0), cells.mean(axis=1), cells.var(axis=1)])
    grouped = mixture.update_components(groups, shares, PRIOR)
    rows, shares = rows_as_groups(x), np.repeat(shares, 3, axis=1)
    by_rows = mixture.update_components(rows, shares, PRIOR)
    np.testing.assert_allclose(grouped, by_rows, rtol=1e-12)
    bound = mixture.share_groups(groups, grouped, PRIOR)[1]
    assert bound <= mixture.share_groups(rows_as_groups(x), by_rows, PRIOR)[1]


CENTRED = np.array([1.0, 0.0, 0.1, 1.0, 0.1])


@pytest.fixture
def three_clusters(rng):
    parts = [rng.normal(m, s, n) for m, s, n in ((-4, 0.5, 30), (0, 1, 90), (5, 1, 60))]
    return np.concatenate(parts)


def test_reaches_at_least_what_random_starts_reach(rng, three_clusters):
    groups = rows_as_groups(three_clusters)
    grown = mixture.grow_mixture(groups, 6, CENTRED, 0.01)[1][-1]
    for _ in range(8):
        shares = np.ascontiguousarray(rng.dirichlet(np.full(6, 0.1), 180).T)
        assert mixture.climb(groups, shares, CENTRED, 0.01, 500)[2][-1] < grown + 0.05


def test_a_narrow_core_is_split_from_its_tails(rng):
    x = np.concatenate([rng.normal(0, 0.1, 150), rng.normal(0, 2.0, 150)])
    parameters, _ = mixture.grow_mixture(rows_as_groups(x), 4, CENTRED, 0.01)
    variances = parameters[mixture.RATE] / parameters[mixture.SHAPE]
    deviations = np.sort(np.sqrt(variances[:2]))
    np.testing.assert_allclose(deviations, [0.1, 2.0], rtol=0.25)


@pytest.mark.parametrize("by_distance", [True, False])
def test_a_split_moves_all_of_some_shares(by_distance, three_clusters):
    groups, shares = rows_as_groups(three_clusters), np.eye(3)[:, [0] * 180]
    parameters, shares, _ = mixture.climb(groups, shares, CENTRED, 0.01, 50)
    split = mixture.split_component(groups, shares, parameters, 0, 2, by_distance)
    assert ((split[0] == 0.0) ^ (split[2] == shares[2])).all()
    moved, mean = groups[1, split[0] == 0.0], parameters[mixture.MEAN, 0]
    assert np.abs(moved - mean).min() > 0.0
    assert by_distance == (moved.min() < mean)
    np.testing.assert_allclose(split.sum(axis=0), 1.0)
