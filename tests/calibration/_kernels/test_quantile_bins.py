"""Equal-frequency binnings against bins counted cell by cell in exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from calibration._kernels.binnings import (
    _find_cell,
    _twice_centre,
    average_quantile_bins,
    bin_rate,
    log_bin_evidence,
    quantile_starts,
    running_sums,
    score_quantile_bins,
)


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
    sums = running_sums(weight0, weight1)
    for n_bins in [n for n in (1, 2, 3, 5, 8, 13, 39, 40, 200) if n <= weight.sum()]:
        starts = quantile_starts(*sums, n_bins)
        assert starts.tolist() == slow_starts(weight, n_bins)


@pytest.mark.parametrize("guess", [0, 1, 20, 39, 40, 70])
def test_the_search_is_right_from_any_guess(rng, guess):
    sums = running_sums(*random_cells(rng, "ties"))
    centres = np.array([_twice_centre(*sums, i) for i in range(40)]) / 2
    for rows in [0.0, *centres, *(centres + 0.25), centres[-1] + 9]:
        expected = np.searchsorted(centres, rows)
        assert _find_cell(*sums, rows, guess) == expected


@pytest.mark.parametrize("kind", ["rows", "ties", "real"])
def test_scores_and_averages_are_sums_over_bins(rng, kind):
    weight0, weight1 = random_cells(rng, kind)
    edges = np.sort(rng.uniform(size=41))
    numbers = np.array([1, 3, 6, 17, 25, 40])
    shares = np.array([0.1, 0.3, 0.2, 0.2, 0.15, 0.05])
    scores, mean, square = np.zeros(6), np.zeros(40), np.zeros(40)
    for k, n_bins in enumerate(numbers):
        starts = slow_starts(weight0 + weight1, n_bins)
        for first, end in zip(starts, [*starts[1:], 40], strict=True):
            n0, n1 = weight0[first:end].sum(), weight1[first:end].sum()
            rate = bin_rate(edges[first], edges[end])
            scores[k] += log_bin_evidence(n0, n1, rate)
            p = (n1 + 2 * rate) / (n0 + n1 + 2)
            mean[first:end] += shares[k] * p
            square[first:end] += shares[k] * p * (n1 + 2 * rate + 1) / (n0 + n1 + 3)
    args = (*running_sums(weight0, weight1), edges, numbers)
    np.testing.assert_allclose(score_quantile_bins(*args), scores, rtol=1e-12)
    starts, *steps = average_quantile_bins(*args, shares)
    sizes = np.diff(starts, append=40)
    for found, expected in zip(steps, (mean, square), strict=True):
        np.testing.assert_allclose(np.repeat(found, sizes), expected, atol=1e-13)


def test_blocks_of_cells_do_not_matter(rng):
    """More cells than a block holds."""
    weight0 = rng.integers(0, 2, 40_000) + 0.0
    sums = running_sums(weight0, 1.0 - weight0)
    edges = np.linspace(0, 1, 40_001)
    numbers = np.array([1, 2, 7, 30])
    scores = score_quantile_bins(*sums, edges, numbers)
    for n_bins, score in zip(numbers, scores, strict=True):
        starts = quantile_starts(*sums, n_bins)
        assert len(starts) == n_bins
        ends = np.append(starts[1:], 40_000)
        expected = [
            log_bin_evidence(
                sums[0][e] - sums[0][s],
                sums[1][e] - sums[1][s],
                bin_rate(edges[s], edges[e]),
            )
            for s, e in zip(starts, ends, strict=True)
        ]
        assert score == pytest.approx(sum(expected), rel=1e-12)
