"""Reliability curves and parts of scores, against loops and known laws."""

import math
from functools import partial

import numpy as np
import pytest
from scipy import stats
from sklearn.calibration import calibration_curve
from sklearn.isotonic import IsotonicRegression

from calibration import (
    brier_decomposition,
    brier_score,
    corp_decomposition,
    expected_calibration_error,
    log_loss,
    proper_score,
    reliability_curve,
    spherical_score,
)


def draw(rng, n=400):
    """Labels that follow their forecasts."""
    y_prob = rng.beta(0.8, 1.2, size=n)
    return (rng.uniform(size=n) < y_prob).astype(int), y_prob


@pytest.mark.parametrize("n_bins", [1, 7, 10])
def test_width_bins_agree_with_scikit_learn(rng, n_bins):
    y, p = draw(rng)
    rate, forecast = calibration_curve(y, p, n_bins=n_bins)
    curve = reliability_curve(y, p, n_bins=n_bins, binning="width")
    np.testing.assert_allclose(curve.event_rate, rate, rtol=1e-12)
    np.testing.assert_allclose(curve.mean_prob, forecast, rtol=1e-12)


@pytest.mark.parametrize("binning", ["frequency", "width"])
def test_error_over_the_bins_is_the_ece(rng, binning):
    y, p = draw(rng)
    w = rng.uniform(size=len(y))
    curve = reliability_curve(y, p, sample_weight=w, n_bins=8, binning=binning)
    ece = expected_calibration_error(y, p, sample_weight=w, n_bins=8, binning=binning)
    assert curve.calibration_error == pytest.approx(ece, rel=1e-12)
    assert curve.weight.sum() == pytest.approx(w.sum())


def test_isotonic_curve_is_the_isotonic_regression(rng):
    y, p = draw(rng)
    p = np.round(p, 2)
    w = rng.uniform(size=len(y))
    curve = reliability_curve(y, p, sample_weight=w, binning="isotonic", bands=None)
    np.testing.assert_array_equal(curve.mean_prob, np.unique(p))
    fit = IsotonicRegression().fit(p, y, w).predict(np.unique(p))
    np.testing.assert_allclose(curve.event_rate, fit, atol=1e-12)
    assert curve.lower is None
    assert curve.upper is None


def poisson_binomial(p):
    """Return the probabilities of 0, 1, ..., n events, by convolution."""
    out = np.ones(1)
    for one in p:
        out = np.convolve(out, [1.0 - one, one])
    return out


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("scale", [1.0, 0.1, 0.01])
def test_consistency_bounds_are_poisson_binomial_quantiles(rng, level, scale):
    p = scale * rng.uniform(size=120)
    curve = reliability_curve(np.zeros(120), p, n_bins=1, level=level)
    below = np.cumsum(poisson_binomial(p))
    low = np.searchsorted(below, 0.5 * (1.0 - level))
    high = np.searchsorted(below, 0.5 * (1.0 + level))
    # To one event of 120.
    assert abs(curve.lower[0] * 120.0 - low) <= 1.0 + 1e-9
    assert abs(curve.upper[0] * 120.0 - high) <= 1.0 + 1e-9
    covered = below[round(curve.upper[0] * 120.0)]
    if curve.lower[0] > 0.0:
        covered -= below[round(curve.lower[0] * 120.0) - 1]
    assert covered > level - 0.02


def test_consistency_of_a_single_row_and_of_certain_forecasts():
    # One row: no event unless the chance of it exceeds 5 %, and the reverse.
    p = [0.0, 0.03, 0.5, 0.97, 1.0]
    curve = reliability_curve([0, 0, 1, 1, 1], p, n_bins=5)
    np.testing.assert_array_equal(curve.lower, [0.0, 0.0, 0.0, 1.0, 1.0])
    np.testing.assert_array_equal(curve.upper, [0.0, 0.0, 1.0, 1.0, 1.0])


@pytest.mark.parametrize("weight", [3.46e-222, 1e-307, 1e-12])
def test_consistency_of_next_to_no_rows_is_that_of_one(weight):
    """The square of such a weight underflows."""
    few = reliability_curve([0, 1], [0.3, 0.5], sample_weight=[weight, 1.0], n_bins=2)
    one = reliability_curve([0, 1], [0.3, 0.5], n_bins=2)
    np.testing.assert_array_equal([few.lower, few.upper], [one.lower, one.upper])


@pytest.mark.parametrize("chance", [5e-324, 1e-310, 1e-200, 1e-20])
def test_consistency_of_forecasts_that_are_next_to_certain(chance):
    curve = reliability_curve([0, 1, 0], [0.0, 1.0, chance], n_bins=1)
    np.testing.assert_allclose([curve.lower, curve.upper], [[1 / 3]] * 2, rtol=1e-12)
    many = [1e15, 1e15, 1.0]
    p = [0.0, 1.0, chance]
    curve = reliability_curve([0, 1, 0], p, sample_weight=many, n_bins=1)
    np.testing.assert_allclose([curve.lower, curve.upper], [[0.5]] * 2, rtol=1e-7)
    curve = reliability_curve([0, 0], [chance, chance], sample_weight=[1.0, 1.0])
    np.testing.assert_array_equal([curve.lower, curve.upper], [[0.0]] * 2)


def test_confidence_bounds_are_jeffreys_intervals():
    y = [0, 0, 0, 1, 0, 1, 1, 1]
    curve = reliability_curve(
        y, [0.1] * 2 + [0.5] * 4 + [0.9] * 2, bands="confidence", level=0.8, n_bins=3
    )
    quantiles = stats.beta(2.5, 2.5).ppf([0.1, 0.9])
    np.testing.assert_allclose([curve.lower[1], curve.upper[1]], quantiles)
    # No events: the interval is open to 0; nothing but events: to 1.
    assert curve.lower[0] == 0.0
    assert curve.upper[0] == pytest.approx(stats.beta(0.5, 2.5).ppf(0.9))
    assert curve.upper[2] == 1.0


@pytest.mark.parametrize("bands", ["consistency", "confidence"])
def test_isotonic_bands_repeat_with_the_seed(rng, bands):
    y, p = draw(rng)

    def lower(seed):
        options = {"binning": "isotonic", "bands": bands, "n_resamples": 20}
        return reliability_curve(y, p, random_state=seed, **options).lower

    np.testing.assert_array_equal(lower(3), lower(3))
    np.testing.assert_array_equal(lower(3), lower(np.random.default_rng(3)))
    assert (lower(3) != lower(4)).any()


def test_isotonic_bands_know_fractions_of_rows():
    # A weight of 1/2 is half a row: rates are 0, 1/3, 2/3 or 1.
    how = {"binning": "isotonic", "level": 0.1, "random_state": 0}
    curve = reliability_curve([0, 1], [0.4, 0.4], sample_weight=[0.5, 1.0], **how)
    assert {round(3.0 * curve.lower[0]), round(3.0 * curve.upper[0])} <= {0, 1, 2, 3}
    assert curve.event_rate[0] == pytest.approx(2.0 / 3.0)


def test_confidence_of_the_isotonic_curve_holds_the_curve(rng):
    y, p = draw(rng)
    options = {"binning": "isotonic", "bands": "confidence"}
    curve = reliability_curve(y, p**2, random_state=0, **options)
    inside = (curve.lower <= curve.event_rate) & (curve.event_rate <= curve.upper)
    assert inside.mean() > 0.95


def test_very_many_forecasts_are_resampled_on_fewer_cells(rng):
    y, p = draw(rng, 30_000)
    curve = reliability_curve(y, p, binning="isotonic", n_resamples=50, random_state=0)
    assert len(curve.lower) == len(curve.mean_prob) == len(np.unique(p))
    inside = (curve.lower <= curve.event_rate) & (curve.event_rate <= curve.upper)
    assert inside.mean() > 0.5
    assert (curve.upper - curve.lower).mean() < 0.1


def draw_rounded(rng, n=300, digits=2):
    y_prob = np.round(rng.uniform(size=n), digits)
    return (rng.uniform(size=n) < y_prob**2).astype(int), y_prob


def test_brier_parts_against_a_loop(rng):
    y, p = draw_rounded(rng, digits=1)
    w = rng.uniform(size=len(y))
    parts = brier_decomposition(y, p, sample_weight=w)
    calibration = refinement = 0.0
    for forecast in set(p):
        here = p == forecast
        share, rate = w[here].sum() / w.sum(), np.average(y[here], weights=w[here])
        calibration += share * (forecast - rate) ** 2
        refinement += share * rate * (1.0 - rate)
    assert parts.calibration == pytest.approx(calibration, rel=1e-12)
    assert parts.refinement == pytest.approx(refinement, rel=1e-12)
    assert parts.brier == pytest.approx(brier_score(y, p, sample_weight=w), rel=1e-15)
    rate = (w * y).sum() / w.sum()
    assert parts.uncertainty == pytest.approx(rate * (1.0 - rate), rel=1e-12)


def test_a_weight_that_vanishes_beside_another_has_a_part():
    parts = brier_decomposition(
        [0, 1, 0], [0.0, 1.0, 1.0], sample_weight=[2.0, 5e-324, 0.0], n_bins=3
    )
    assert parts.brier == parts.calibration == parts.uncertainty == 0.0


def beta_member(a, b):
    """Return a member of the proper family whose density is e^(a-1) (1-e)^(b-1)."""
    return partial(
        proper_score, weight=lambda e: e ** (a - 1.0) * (1.0 - e) ** (b - 1.0)
    )


FAMILY = {
    "brier": brier_score,
    "log": log_loss,
    "spherical": spherical_score,
    "boosting": beta_member(0.5, 0.5),
    "beta(2, 5)": beta_member(2.0, 5.0),
    "beta(4, 1)": beta_member(4.0, 1.0),
    "error rate": partial(proper_score, weight={0.5: 0.5}),
    "costs": partial(proper_score, weight={0.1: 0.2, 0.35: 1.0, 0.8: 0.1}),
}


@pytest.fixture(params=FAMILY)
def score(request):
    return FAMILY[request.param]


def test_corp_parts_against_another_isotonic_regression(score, rng):
    y, p = draw_rounded(rng)
    p = np.clip(p, 0.01, 0.99)
    w = rng.uniform(size=len(y))
    fit = IsotonicRegression(y_min=0.0, y_max=1.0).fit(p, y, w).predict(p)
    # Their rates carry rounding of their own; 1/2 must stay on its side of a cost.
    fit = np.round(fit, 12)
    rate = np.full(len(y), (w * y).sum() / w.sum())
    parts = corp_decomposition(y, p, sample_weight=w, score=score)
    best, base = score(y, fit, sample_weight=w), score(y, rate, sample_weight=w)
    expected = score(y, p, sample_weight=w) - best
    assert parts.miscalibration == pytest.approx(expected, abs=1e-6)
    assert parts.discrimination == pytest.approx(base - best, abs=1e-6)
    assert parts.uncertainty == pytest.approx(base, abs=1e-12)


def test_recalibrated_forecasts_are_not_miscalibrated(score, rng):
    # Integers in, so that pools have the same rates the second time.
    y, p = draw_rounded(rng)
    first = corp_decomposition(y, p, score=score)
    curve = reliability_curve(y, p, binning="isotonic", bands=None)
    fit = curve.event_rate[np.searchsorted(curve.mean_prob, p)]
    second = corp_decomposition(y, fit, score=score)
    assert second.miscalibration == 0.0
    assert second.discrimination == pytest.approx(first.discrimination, abs=1e-12)
    assert second.uncertainty == pytest.approx(first.uncertainty, rel=1e-12)


def test_an_infinite_score_has_infinite_miscalibration():
    parts = corp_decomposition([1, 0, 1], [0.0, 0.5, 0.5], score=log_loss)
    assert parts.miscalibration == parts.score == math.inf
    assert parts.uncertainty < math.inf
    # Recalibration may be certain of a class and right; that is no infinity.
    parts = corp_decomposition([0, 0, 1], [0.0, 0.1, 0.9], score=log_loss)
    assert parts.discrimination == parts.uncertainty > 0.0


def test_a_score_of_the_users_sees_labels_forecasts_and_weights():
    def absolute(y_true, y_prob, *, sample_weight):
        assert (sample_weight > 0.0).all()
        return np.average(np.abs(y_prob - y_true), weights=sample_weight)

    parts = corp_decomposition([0, 1, 1], [0.2, 0.2, 0.6], score=absolute)
    assert parts.score == pytest.approx((0.2 + 0.8 + 0.4) / 3.0)
