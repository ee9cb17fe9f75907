"""Sums over binnings against the list of all of them."""

from itertools import combinations

import numpy as np
import pytest

from calibration._kernels.binnings import (
    best_binning,
    bin_rate,
    forward_sums,
    posterior_sums,
)


def list_binnings(m):
    """All tuples of first cells of bins."""
    for k in range(m):
        for cuts in combinations(range(1, m), k):
            yield (0, *cuts)


def log_weight(starts, m, evidences, opening, closing):
    total = 0.0
    for first, end in zip(starts, (*starts[1:], m), strict=True):
        last = end - 1
        total += opening[first] + closing[last]
        total += evidences[last * (last + 1) // 2 + first]
    return total


def random_sums(rng, m):
    """Arbitrary evidences and priors: the sums must not depend on their origin."""
    evidences = rng.normal(0, 3, m * (m + 1) // 2)
    return evidences, rng.normal(size=m), rng.normal(size=m)


@pytest.mark.parametrize("m", [1, 2, 3, 9])
def test_forward_sums_and_best_binning_equal_enumeration(rng, m):
    for _ in range(5):
        sums = random_sums(rng, m)
        forward = forward_sums(*sums)
        weights = {s: log_weight(s, m, *sums) for s in list_binnings(m)}
        total = np.logaddexp.reduce(list(weights.values()))
        assert forward[-1] == pytest.approx(total, abs=1e-12)
        assert tuple(best_binning(*sums)) == max(weights, key=weights.get)


@pytest.mark.parametrize("m", [1, 2, 8])
def test_posterior_sums_equal_enumeration(rng, m):
    sums = random_sums(rng, m)
    sum0, sum1 = np.zeros(m + 1), np.zeros(m + 1)
    sum0[1:], sum1[1:] = np.cumsum(rng.uniform(0, 3, (2, m)), axis=1)
    edges = np.sort(rng.uniform(size=m + 1))
    mean, square, cut = np.zeros(m), np.zeros(m), np.zeros(m + 1)
    total = forward_sums(*sums)[-1]
    for starts in list_binnings(m):
        share = np.exp(log_weight(starts, m, *sums) - total)
        cut[m] += share
        for first, end in zip(starts, (*starts[1:], m), strict=True):
            n0, n1 = sum0[end] - sum0[first], sum1[end] - sum1[first]
            ones = n1 + 2 * bin_rate(edges[first], edges[end])
            rate = ones / (n0 + n1 + 2)
            mean[first:end] += share * rate
            square[first:end] += share * rate * (ones + 1) / (n0 + n1 + 3)
            cut[first] += share
    got = posterior_sums(*sums, forward_sums(*sums), sum0, sum1, edges)
    for found, expected in zip(got, (mean, square, cut), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_negligible_terms_leave_the_sums_finite():
    """Binnings that differ by thousands of nats, and cuts that cannot be."""
    m = 30
    evidences = -1000.0 * np.arange(m * (m + 1) // 2, dtype=float)
    opening, closing = np.full(m, -500.0), np.zeros(m)
    opening[3] = -np.inf
    opening[0] = 0.0
    forward = forward_sums(evidences, opening, closing)
    assert np.isfinite(forward).all()
    starts = best_binning(evidences, opening, closing)
    assert 3 not in starts
    best = log_weight(tuple(starts), m, evidences, opening, closing)
    assert forward[-1] == pytest.approx(best, rel=1e-12)
    sums = np.arange(m + 1.0)
    mean, _, cut = posterior_sums(
        evidences, opening, closing, forward, sums, sums, np.full(m + 1, 0.5)
    )
    np.testing.assert_allclose(mean, 0.5)
    assert set(np.flatnonzero(cut > 0.5)) == {*starts, m}
