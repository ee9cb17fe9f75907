"""Kernel densities as a calibrator: the formula, the bandwidths, the designs."""

import numpy as np
import pytest
from scipy.special import expit, logit

from calibration.densities import kde
from calibration.densities.kde import KDECalibrator

KERNELS = {
    "gaussian": lambda u: np.exp(-0.5 * u**2),
    "boxcar": lambda u: (abs(u) <= 1).astype(float),
    "epanechnikov": lambda u: np.maximum(1 - u**2, 0),
    "tricube": lambda u: np.maximum(1 - abs(u) ** 3, 0) ** 3,
}


@pytest.fixture
def data(rng):
    y = (rng.uniform(size=300) < 0.3).astype(int)
    return rng.normal(1.5 * y), y, rng.uniform(0.1, 2.0, 300)


def direct_log_odds(points, x, y, weight, bandwidths, kernel, prior_weight=0.5):
    """Bayes' rule by O(n^2) sums, before the mean is brought to the base rate."""
    log_heights = []
    totals = [weight[y == k].sum() for k in (0, 1)]
    for k, h in enumerate(bandwidths):
        rows, mass = x[y == k], weight[y == k]
        height = KERNELS[kernel]((points[:, None] - rows) / h) @ mass / h
        rate = (totals[k] + 1) / (sum(totals) + 2)
        extra = prior_weight * rate / np.sqrt(bandwidths[0] * bandwidths[1])
        log_heights.append(np.log(height + extra))
    return log_heights[1] - log_heights[0]


def root_mean_square(values):
    return np.sqrt(np.mean(values**2))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("shared", [True, False])
def test_is_the_direct_sum(kernel, shared, data, rng):
    x, y, weight = data
    fitted = KDECalibrator(
        "silverman", kernel, shared_bandwidth=shared, scale="real"
    ).fit(x, y, weight)
    points = rng.uniform(x.min(), x.max(), 200)
    expected = direct_log_odds(points, x, y, weight, fitted.bandwidths_, kernel)
    n0, n1 = (weight[y == k].sum() for k in (0, 1))
    shift = fitted.prior_log_odds_ - np.log(n1 / n0)
    assert abs(shift) < 0.15
    gap = expit(fitted.predict_log_odds(points) - shift) - expit(expected)
    assert root_mean_square(gap) < (0.01 if kernel == "boxcar" else 0.001)
    assert root_mean_square(gap) > 0.0


def test_error_of_binning_shrinks_with_the_square_of_the_step(data, monkeypatch):
    x, y, weight = data
    points = np.linspace(x.min(), x.max(), 300)
    errors = []
    for steps in (4, 8, 16, 32, 64):
        monkeypatch.setattr(kde, "STEPS", steps)
        fitted = KDECalibrator(0.3, scale="real").fit(x, y, weight)
        exact = direct_log_odds(points, x, y, weight, fitted.bandwidths_, "gaussian")
        gap = fitted.predict_log_odds(points) - exact
        errors.append(gap.std())  # the shift of the prior is the same everywhere
    ratios = np.array(errors[:-1]) / np.array(errors[1:])
    assert (ratios > 3.0).all()
    assert errors[2] < 0.01


def test_mean_prediction_is_the_base_rate(data):
    x, y, weight = data
    for shared in (True, False):
        fitted = KDECalibrator(shared_bandwidth=shared, scale="real")
        p = fitted.fit(x, y, weight).predict(x)
        base_rate = weight @ y / weight.sum()
        assert weight @ p / weight.sum() == pytest.approx(base_rate, abs=1e-12)


def test_cross_validation_takes_the_least_brute_force_loss(rng):
    x = rng.uniform(size=120)
    y = (rng.uniform(size=120) < 0.5 + 0.4 * np.sin(9 * x)).astype(int)
    fitted = KDECalibrator("cv", scale="real").fit(x, y)
    losses = []
    for h, _ in fitted.cv_bandwidths_:
        log_losses = []
        for i in range(120):
            others = np.arange(120) != i
            weight = np.ones(119)
            log_odds = direct_log_odds(
                x[i : i + 1],
                x[others],
                y[others],
                weight,
                [h, h],
                "gaussian",
            )
            p = expit(log_odds[0])
            log_losses.append(-np.log(p if y[i] else 1 - p))
        losses.append(np.mean(log_losses))
    np.testing.assert_allclose(fitted.cv_losses_, losses, rtol=2e-3)
    best = int(np.argmin(losses))
    assert 0 < best < len(losses) - 1
    assert fitted.bandwidths_[0] == pytest.approx(fitted.cv_bandwidths_[best, 0])


def test_separate_bandwidths_are_tried_in_all_pairs(rng):
    y = np.arange(600) % 2
    x = np.where(y == 1, rng.normal(0, 0.05, 600), rng.normal(0, 2.0, 600))
    fitted = KDECalibrator("cv", shared_bandwidth=False, scale="real").fit(x, y)
    pairs = fitted.cv_bandwidths_
    assert len(pairs) == len(np.unique(pairs[:, 0])) * len(np.unique(pairs[:, 1]))
    np.testing.assert_allclose(fitted.bandwidths_, pairs[fitted.cv_losses_.argmin()])
    assert fitted.bandwidths_[0] > 3 * fitted.bandwidths_[1]


def test_gap_between_scores_has_the_base_rate():
    x = np.concatenate([np.linspace(0, 1, 100), np.linspace(9, 10, 100)])
    y = (np.arange(200) % 4 > 0).astype(int)
    fitted = KDECalibrator(0.2, scale="real").fit(x, y)
    assert fitted.predict([5.0])[0] == pytest.approx(151 / 202, abs=1e-3)


def test_one_sided_neighbourhoods_are_never_certain():
    """Where all rows agree, the odds are their number over the rows added."""
    x, y = np.repeat([0.0, 1.0], 20), np.repeat([0, 1], 20)
    fitted = KDECalibrator(0.01, prior_weight=2.0, scale="real").fit(x, y)
    expected = np.log((20 + 1.0) / 1.0)
    np.testing.assert_allclose(
        fitted.predict_log_odds([0.0, 1.0]), [-expected, expected], rtol=1e-9
    )


def test_a_class_of_one_score_has_a_bandwidth(rng):
    x, y = np.append(rng.normal(size=99), 0.3), np.repeat([0, 1], [99, 1])
    fitted = KDECalibrator("silverman", shared_bandwidth=False, scale="real").fit(x, y)
    pooled = KDECalibrator("silverman", scale="real").fit(x, y).bandwidths_[0]
    assert fitted.bandwidths_[1] == pytest.approx(pooled / np.sqrt(2.0))


def test_a_bandwidth_that_rounding_would_lose_is_refused():
    with pytest.raises(ValueError, match=r"`bandwidth` must be at least 2\*\*-40 of"):
        KDECalibrator(1e-20).fit([0.1, 0.2, 0.4], [0, 1, 1])


def test_log_odds_are_finite_at_the_edge_of_the_floats():
    fitted = KDECalibrator("silverman").fit([0.0, 1.0, 0.0, 1.0], [0, 1, 0, 1])
    scores = [0.0, 1e-300, 0.5, 1 - 1e-16, 1.0]
    assert np.isfinite(fitted.predict_log_odds(scores)).all()
    assert np.isfinite(logit(fitted.predict(scores))).all()
