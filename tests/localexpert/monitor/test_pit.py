"""Bets on a band of CDFs: their greatest mean by linear programming."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import ndtr

from localexpert.monitor.forecast import (
    EDGES,
    N_BINS,
    BandBets,
    count_bins,
    gains_of_bins,
    greatest_mean,
    make_bet,
    normal_bins,
    shift_likelihoods_of_bins,
)


def mean_by_program(pays, low, high):
    k = len(low)
    order = np.eye(k)[:-1] - np.eye(k)[1:]
    done = linprog(
        -(pays[:-1] - pays[1:]),
        A_ub=order,
        b_ub=np.zeros(k - 1),
        bounds=np.column_stack([low, high]),
    )
    return pays[-1] - done.fun


@pytest.mark.parametrize("tolerance", [0.0, 0.03, 0.4, 3.0])
def test_the_greatest_mean_is_that_of_a_linear_program(rng, tolerance):
    low, high = ndtr(EDGES - tolerance), ndtr(EDGES + tolerance)
    pays = rng.gamma(0.5, size=(20, N_BINS))
    got = greatest_mean(pays, low, high)
    wanted = [mean_by_program(row, low, high) for row in pays]
    assert got == pytest.approx(np.array(wanted), rel=1e-7)


def test_bets_have_a_mean_of_at_most_1_in_the_band(rng):
    for law in (normal_bins(0.5), normal_bins(0.0, 1.6), rng.dirichlet(np.ones(20))):
        pays = np.exp(make_bet(law, 0.1))
        for shift in (-0.1, 0.0, 0.1):
            assert pays @ normal_bins(shift) <= 1.0 + 1e-12
        # A law that goes from one edge of the band to the other within it.
        cdf = np.clip(ndtr(1.1 * EDGES), ndtr(EDGES - 0.1), ndtr(EDGES + 0.1))
        assert pays @ np.diff(cdf, prepend=0.0, append=1.0) <= 1.0 + 1e-12


def test_a_shifted_law_pays_its_likelihood_over_that_of_the_edge():
    pays = np.exp(make_bet(normal_bins(0.5), 0.1))
    assert pays == pytest.approx(normal_bins(0.5) / normal_bins(0.1))


def test_forecasts_that_are_too_sure_are_found(rng):
    bets = BandBets(0.04, 2000.0)
    for _ in range(15):
        bets.step(count_bins(ndtr(rng.normal(0.0, 1.5, size=200)), np.ones(200)))
    assert bets.log_e > np.log(1e4)
    quiet = BandBets(0.04, 2000.0)
    for _ in range(15):
        quiet.step(count_bins(rng.uniform(size=200), np.ones(200)))
    assert quiet.log_e < np.log(20.0)


def test_ends_of_the_unit_interval_have_bins():
    counts = count_bins(np.array([0.0, 1.0, 0.05]), np.array([1.0, 2.0, 4.0]))
    assert (counts[0], counts[-1], counts[1]) == (1.0, 2.0, 4.0)


def test_likelihoods_of_shifts_by_differences(rng):
    counts = count_bins(rng.uniform(size=300), np.ones(300))
    shifts = np.array([-5.0, -0.3, 0.0, 0.7])
    logs, slopes = shift_likelihoods_of_bins(counts, shifts)
    assert logs[2] == pytest.approx(0.0, abs=1e-9)
    up, _ = shift_likelihoods_of_bins(counts, shifts + 1e-5)
    down, _ = shift_likelihoods_of_bins(counts, shifts - 1e-5)
    assert slopes == pytest.approx((up - down) / 2e-5, rel=1e-4)


def test_the_line_of_scores_is_found():
    counts = 2000.0 * normal_bins(0.3, 1.4)
    gains, (offset, scale) = gains_of_bins(counts)
    assert (offset, scale) == pytest.approx((0.3, 1.4), abs=2e-3)
    assert gains["shift and slope"] > gains["shift"] + 50.0
    assert gains["shift and slope"] > gains["recalibrate"]
