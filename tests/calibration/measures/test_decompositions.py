"""Parts of scores beside loops and other regressions."""

import math
from functools import partial

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from calibration import (
    brier_decomposition,
    brier_score,
    corp_decomposition,
    log_loss,
    proper_score,
    spherical_score,
)


def draw(rng, n=300, digits=2):
    y_prob = np.round(rng.uniform(size=n), digits)
    return (rng.uniform(size=n) < y_prob**2).astype(int), y_prob


def brier_parts_by_loop(y, p, w):
    """Return calibration and refinement over distinct forecasts, term by term."""
    calibration = refinement = 0.0
    for forecast in sorted(set(p)):
        here = p == forecast
        share = w[here].sum() / w.sum()
        rate = (w * y)[here].sum() / w[here].sum()
        calibration += share * (forecast - rate) ** 2
        refinement += share * rate * (1.0 - rate)
    return calibration, refinement


def test_brier_parts_against_a_loop(rng):
    y, p = draw(rng, digits=1)
    w = rng.uniform(size=len(y))
    parts = brier_decomposition(y, p, sample_weight=w)
    calibration, refinement = brier_parts_by_loop(y, p, w)
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
    y, p = draw(rng)
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
    y, p = draw(rng)
    first = corp_decomposition(y, p, score=score)
    fit = pav(y, p)
    second = corp_decomposition(y, fit, score=score)
    assert second.miscalibration == 0.0
    assert second.discrimination == pytest.approx(first.discrimination, abs=1e-12)
    assert second.uncertainty == pytest.approx(first.uncertainty, rel=1e-12)


def pav(y, p):
    """Isotonic regression at each row by the max-min formula, exact in integers."""
    cells = np.unique(p)
    ones = np.array([y[p == cell].sum() for cell in cells])
    sizes = np.array([(p == cell).sum() for cell in cells])
    m = len(cells)
    fit = np.zeros(m)
    for i in range(m):
        best = -1.0
        for low in range(i + 1):
            worst = min(
                ones[low : high + 1].sum() / sizes[low : high + 1].sum()
                for high in range(i, m)
            )
            best = max(best, worst)
        fit[i] = best
    return fit[np.searchsorted(cells, p)]


def test_a_constant_forecast_at_the_base_rate():
    parts = corp_decomposition([0, 0, 1, 0], [0.25] * 4, score=log_loss)
    assert parts.miscalibration == parts.discrimination == 0.0
    assert parts.score == parts.uncertainty


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
