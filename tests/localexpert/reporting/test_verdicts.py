"""Verdicts follow from tests, and tests see what is there and no more."""

import numpy as np
import pytest
from scipy.stats import binomtest, chi2, norm

from localexpert import PredictiveDistribution
from localexpert.distribution.answers import loss_variances
from localexpert.reporting.groups import (
    count,
    show,
    show_feature,
    show_p,
    show_percent,
)
from localexpert.reporting.scores import (
    BackTest,
    Calibration,
    CoverageTest,
    Promise,
    adjust_holm,
)


def test_coverage_is_tested_by_the_binomial_law():
    test = CoverageTest(100, 78, 78.0, 0.9)
    assert test.p_value == binomtest(78, 100, 0.9).pvalue
    assert (test.share, test.verdict) == (0.78, "narrow")
    assert CoverageTest(100, 99, 99.0, 0.9).verdict == "wide"
    assert CoverageTest(100, 93, 93.0, 0.9).verdict == "right"
    # Literal, and corrected for jumps, by which it is judged.
    test = CoverageTest(1000, 950, 899.75, 0.9)
    assert test.p_value == binomtest(900, 1000, 0.9).pvalue
    assert (test.literal, test.share, test.verdict) == (0.95, 0.89975, "right")


def calibration_of(pit, hits=0.9):
    n = len(pit)
    return Calibration(CoverageTest(n, round(hits * n), hits * n, 0.9), pit)


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (lambda u: u, []),
        (lambda u: u**1.5, ["too high"]),
        (lambda u: u**0.7, ["too low"]),
        (lambda u: 0.5 + 0.7 * (u - 0.5), ["too wide"]),
        (lambda u: 0.5 - 0.5 * np.cos(np.pi * u), ["too narrow"]),
    ],
)
def test_shapes_of_pit_values_have_their_names(shape, words):
    found = calibration_of(shape((np.arange(2000) + 0.5) / 2000.0)).faults
    assert found[: len(words)] == words
    assert bool(found) == bool(words)


def test_true_forecasts_are_seldom_blamed_and_wrong_ones_are(rng):
    def share_blamed(change, n):
        verdicts = []
        for _ in range(100):
            u = change(rng.uniform(size=n))
            hits = ((u > 0.05) & (u < 0.95)).mean()
            found = calibration_of(u, hits)
            verdicts.append(found.test.verdict != "right" or bool(found.faults))
        return np.mean(verdicts)

    assert share_blamed(lambda u: u, 20) < 0.08
    assert share_blamed(lambda u: u, 300) < 0.08
    assert share_blamed(lambda u: u**1.5, 300) == 1.0
    assert share_blamed(lambda u: 0.5 + 0.6 * (u - 0.5), 300) == 1.0


def test_a_spread_that_denies_the_intervals_is_placed():
    # Nearly all values in the middle, and a tenth too many at the ends.
    middle = np.linspace(0.42, 0.58, 380)
    pit = np.concatenate([middle, np.full(40, 0.001), np.full(40, 0.999)])
    found = calibration_of(pit, 380 / 460)
    assert found.test.verdict == "narrow"
    assert found.faults == ["too wide around their medians"]


def likelihood_ratio(outcomes, null, free):
    """Twice the gain of log-likelihood, a row at a time."""
    told = 0.0
    for came, at, best in zip(outcomes, null, free, strict=True):
        told += np.log(best if came else 1.0 - best) - np.log(at if came else 1.0 - at)
    return 2.0 * told


@pytest.mark.parametrize("share", [0.02, 0.05, 0.2])
def test_back_tests_equal_an_independent_computation(share, rng):
    passed = rng.uniform(size=400) < share
    passed[1:] |= passed[:-1] & (rng.uniform(size=399) < 0.3)
    found = BackTest.of(passed, 0.95, 0.05)
    n = len(passed)
    often = likelihood_ratio(passed, [0.05] * n, [passed.mean()] * n)
    before, now = passed[:-1], passed[1:]
    given = np.where(before, now[before].mean(), now[~before].mean())
    runs = likelihood_ratio(now, [now.mean()] * (n - 1), given)
    want = chi2.sf([often, runs, often + runs], [1, 1, 2])
    got = found.kupiec, found.independence, found.conditional
    np.testing.assert_allclose(got, want, atol=1e-9)


def test_back_tests_of_nothing_and_of_all_have_an_answer():
    none, every = (BackTest.of(np.full(100, one), 0.95, 0.05) for one in (False, True))
    # (1 - .05)^100 against 1.
    assert none.kupiec == pytest.approx(chi2.sf(-200 * np.log(0.95), 1))
    assert (none.independence, every.independence) == (1.0, 1.0)
    assert every.kupiec < 1e-9
    assert BackTest.of(np.array([True]), 0.95, 0.05).independence == 1.0
    certain = BackTest.of(np.array([False, True]), 0.95, 0.0)
    assert certain.kupiec == 0.0


@pytest.mark.parametrize("sd", [1.0, 0.7, 1.4])
def test_losses_are_as_promised_or_not(sd, rng):
    dist = PredictiveDistribution.from_scipy(norm(np.zeros(2000), sd))
    y = rng.normal(size=2000)
    means = dist.expected_crps()
    spread = loss_variances(dist.law, "crps", means)
    kept = Promise.of(dist.crps(y), means, spread)
    assert kept.expected.mean == pytest.approx(sd / np.sqrt(np.pi), rel=1e-9)
    assert kept.realised == pytest.approx(dist.crps(y).mean())
    inside = kept.expected.low <= kept.realised <= kept.expected.high
    assert inside == (kept.p_value >= 0.05) == (sd == 1.0)


def test_holm_is_as_by_hand():
    # Sorted .01, .02, .03 times 3, 2, 1, never less than one before.
    np.testing.assert_allclose(adjust_holm([0.02, 0.01, 0.03]), [0.04, 0.03, 0.04])
    np.testing.assert_allclose(adjust_holm([0.9, 0.8]), [1.0, 1.0])
    assert len(adjust_holm([])) == 0


def test_numbers_are_written_as_people_write_them():
    values = (0.0, -1234.5678, 0.00012345, 1e-7, 2.5e12, np.inf, np.nan, 100.0)
    assert [show(value) for value in values] == [
        *("0", "\u22121,235", "0.0001234", "1e-7".replace("-", "\u2212"), "2.5e12"),
        *("\u221e", "missing", "100"),
    ]
    assert [show_p(p) for p in (1e-9, 0.012345)] == ["p < 0.0001", "p = 0.012"]
    assert show_percent(-0.1234) == "\u221212.3\u00a0%"
    assert [count(n, "row") for n in (0, 1, 2000)] == ["0 rows", "1 row", "2,000 rows"]
    # Years have no marks and long numbers do.
    shown = [show_feature(value) for value in (1987.0, 12345.0, -2000.0)]
    assert shown == ["1987", "12,345", "\u22122000"]
