"""Evidence of bins and sums over binnings, against enumeration and fractions."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from calibration._kernels import binnings
from tests.open_kernels import open_kernels


def test_all_bins_stand_in_their_places(rng):
    m = 9
    sum0, sum1 = np.zeros(m + 1), np.zeros(m + 1)
    sum0[1:], sum1[1:] = np.cumsum(rng.integers(0, 4, (2, m)), axis=1)
    edges = np.sort(rng.uniform(size=m + 1))
    evidences = binnings.all_bin_evidences(sum0, sum1, edges)
    assert len(evidences) == m * (m + 1) // 2
    for last in range(m):
        for first in range(last + 1):
            bins = binnings.count_bins(sum0, sum1, edges, first, last + 1)
            expected = binnings.log_bin_evidence(*bins)
            assert evidences[last * (last + 1) // 2 + first] == expected


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


@pytest.mark.parametrize("m", [1, 2, 8])
def test_posterior_sums_equal_enumeration(rng, m):
    # Arbitrary evidences and priors: the sums must not depend on their origin.
    sums = rng.normal(0, 3, m * (m + 1) // 2), *rng.normal(size=(2, m))
    sum0, sum1 = np.zeros(m + 1), np.zeros(m + 1)
    sum0[1:], sum1[1:] = np.cumsum(rng.uniform(0, 3, (2, m)), axis=1)
    edges = np.sort(rng.uniform(size=m + 1))
    mean, square, cut = np.zeros(m), np.zeros(m), np.zeros(m + 1)
    total = binnings.forward_sums(*sums)[-1]
    for starts in list_binnings(m):
        share = np.exp(log_weight(starts, m, *sums) - total)
        cut[m] += share
        for first, end in zip(starts, (*starts[1:], m), strict=True):
            n0, n1, prior = binnings.count_bins(sum0, sum1, edges, first, end)
            ones = n1 + 2 * prior
            rate = ones / (n0 + n1 + 2)
            mean[first:end] += share * rate
            square[first:end] += share * rate * (ones + 1) / (n0 + n1 + 3)
            cut[first] += share
    forward = binnings.forward_sums(*sums)
    got = binnings.posterior_sums(*sums, forward, sum0, sum1, edges)
    for found, expected in zip(got, (mean, square, cut), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_negligible_terms_leave_the_sums_finite():
    """Binnings that differ by thousands of nats, and cuts that cannot be."""
    m = 30
    evidences = -1000.0 * np.arange(m * (m + 1) // 2, dtype=float)
    opening, closing = np.full(m, -500.0), np.zeros(m)
    opening[3] = -np.inf
    opening[0] = 0.0
    forward = binnings.forward_sums(evidences, opening, closing)
    assert np.isfinite(forward).all()
    starts = binnings.best_binning(evidences, opening, closing)
    assert 3 not in starts
    best = log_weight(tuple(starts), m, evidences, opening, closing)
    assert forward[-1] == pytest.approx(best, rel=1e-12)
    sums = np.arange(m + 1.0)
    mean, _, cut = binnings.posterior_sums(
        evidences, opening, closing, forward, sums, sums, np.full(m + 1, 0.5)
    )
    np.testing.assert_allclose(mean, 0.5)
    assert set(np.flatnonzero(cut > 0.5)) == {*starts, m}


def running_sums(*weights):
    """Weight of each class below every edge."""
    return [np.append(0.0, np.cumsum(weight)) for weight in weights]


def slow_starts(weight, n_bins):
    """Bins of floor(n / B) rows and a last one; a cell goes where its centre is."""
    weight = [Fraction(w) for w in weight.tolist()]
    rows = sum(weight) // n_bins
    centres = [sum(weight[:i]) + weight[i] / 2 for i in range(len(weight))]
    bins = [min(centre // rows, n_bins - 1) for centre in centres]
    return [i for i in range(len(bins)) if i == 0 or bins[i] != bins[i - 1]]


def random_cells(rng, kind, m=40):
    if kind == "rows":
        ones = rng.integers(0, 2, m)
        return 1.0 - ones, ones + 0.0
    if kind == "ties":
        return rng.integers(1, 30, m) ** 2 + 0.0, rng.integers(0, 5, m) + 0.0
    return rng.uniform(0.3, 3.0, m), rng.uniform(0.0, 2.0, m)


@pytest.mark.parametrize("kind", ["rows", "ties", "real"])
def test_starts_are_those_of_bins_of_equal_weight(rng, kind):
    weight0, weight1 = random_cells(rng, kind)
    weight = weight0 + weight1
    centres = binnings.twice_centres(*running_sums(weight0, weight1))
    for n_bins in [n for n in (1, 2, 3, 5, 8, 13, 39, 40, 200) if n <= weight.sum()]:
        starts = binnings.quantile_starts(centres, n_bins)
        assert starts.tolist() == slow_starts(weight, n_bins)


@pytest.mark.parametrize("guess", [0, 1, 20, 39, 40, 70])
def test_the_search_is_right_from_any_guess(rng, guess):
    [find_cell] = open_kernels(binnings._find_cell)
    centres = binnings.twice_centres(*running_sums(*random_cells(rng, "ties")))
    for goal in [0.0, *centres, *(centres[:-1] + 0.5)]:
        expected = np.searchsorted(centres, goal)
        for low in (0, expected // 2, expected):
            assert find_cell(centres, goal, low, max(low, guess)) == expected


def test_blocks_of_cells_do_not_matter(rng):
    """More cells than a block holds."""
    weight0 = rng.integers(0, 2, 40_000) + 0.0
    sums = running_sums(weight0, 1.0 - weight0)
    edges = np.linspace(0, 1, 40_001)
    numbers = np.array([1, 2, 7, 30])
    centres = binnings.twice_centres(*sums)
    scores = binnings.score_quantile_bins(*sums, edges, centres, numbers)
    for n_bins, score in zip(numbers, scores, strict=True):
        starts = binnings.quantile_starts(centres, n_bins)
        assert len(starts) == n_bins
        bins = binnings.count_bins(*sums, edges, starts, np.append(starts[1:], 40_000))
        expected = sum(map(binnings.log_bin_evidence, *bins))
        assert score == pytest.approx(expected, rel=1e-12)
