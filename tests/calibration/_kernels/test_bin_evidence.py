"""The evidence of a bin against its definition, an integral over the event rate."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

from calibration._kernels.binnings import (
    all_bin_evidences,
    bin_rate,
    log_bin_evidence,
)


@pytest.mark.parametrize("rate", [0.005, 0.2, 0.5, 0.77, 0.995])
@pytest.mark.parametrize(("n0", "n1"), [(0, 0), (3, 0), (0, 4), (2.5, 1.25), (7, 5)])
def test_evidence_is_the_prior_mean_of_the_likelihood(rate, n0, n1):
    prior = beta(2 * rate, 2 - 2 * rate)

    # Halves apart: the prior may have a pole at either end.
    def integrand(theta):
        return theta**n1 * (1 - theta) ** n0 * prior.pdf(theta)

    halves = [quad(integrand, *ends, limit=200)[0] for ends in ((0, 0.5), (0.5, 1))]
    assert log_bin_evidence(n0, n1, rate) == pytest.approx(
        math.log(sum(halves)), abs=1e-5
    )


def test_a_uniform_prior_gives_k2():
    """Eq. 3.6 of the thesis: n0! n1! / (n + 1)!."""
    factorial = math.factorial
    for n0, n1 in [(0, 1), (4, 2), (10, 9)]:
        expected = factorial(n0) * factorial(n1) / factorial(n0 + n1 + 1)
        assert math.exp(log_bin_evidence(n0, n1, 0.5)) == pytest.approx(expected)


def test_an_empty_bin_says_nothing():
    for rate in (0.005, 0.4, 0.5, 0.995):
        assert abs(log_bin_evidence(0.0, 0.0, rate)) < 1e-12


def test_rate_is_the_middle_of_a_bin_held_off_the_ends():
    assert bin_rate(0.2, 0.6) == pytest.approx(0.4)
    assert bin_rate(0.0, 0.001) == 0.005
    assert bin_rate(0.999, 1.0) == 0.995


def test_all_bins_stand_in_their_places(rng):
    m = 9
    sum0, sum1 = np.zeros(m + 1), np.zeros(m + 1)
    sum0[1:], sum1[1:] = np.cumsum(rng.integers(0, 4, (2, m)), axis=1)
    edges = np.sort(rng.uniform(size=m + 1))
    evidences = all_bin_evidences(sum0, sum1, edges)
    assert len(evidences) == m * (m + 1) // 2
    for last in range(m):
        for first in range(last + 1):
            expected = log_bin_evidence(
                sum0[last + 1] - sum0[first],
                sum1[last + 1] - sum1[first],
                bin_rate(edges[first], edges[last + 1]),
            )
            assert evidences[last * (last + 1) // 2 + first] == expected
