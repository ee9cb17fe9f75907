"""The theorems on histogram binning hold in simulation, against the known rates."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from calibration import HistogramCalibrator, maximum_calibration_error
from calibration.binning.histogram import auc_loss_bound, ece_bound, mce_bound

# P(y = 1 | s) for s uniform on (0, 1), and its integral from 0 to s.
TRUTHS = {
    "half": (lambda s: 0.5 + 0.0 * s, lambda s: 0.5 * s),
    "square": (lambda s: s**2, lambda s: s**3 / 3),
    "wave": (
        lambda s: 0.5 - 0.4 * np.cos(9.0 * s),
        lambda s: 0.5 * s - 0.4 / 9.0 * np.sin(9.0 * s),
    ),
    "step": (
        lambda s: np.where(s < 0.37, 0.1, 0.9),
        lambda s: 0.1 * s + 0.8 * np.maximum(s - 0.37, 0.0),
    ),
}

everywhere = pytest.mark.parametrize("truth", TRUTHS)


def fit(rng, rate, n, n_bins):
    scores = rng.uniform(size=n)
    labels = rng.uniform(size=n) < rate(scores)
    return HistogramCalibrator(n_bins).fit(scores, labels)


def bin_errors(fitted, integral):
    """Size of every bin and |observed rate - true rate| in it."""
    edges = np.append(fitted.map_.knots, 1.0)
    edges[0] = 0.0
    size = np.diff(edges)
    return size, np.abs(fitted.map_.right - np.diff(integral(edges)) / size)


def test_formulas_by_hand():
    assert mce_bound(1000, 1, 2 / np.e) == pytest.approx(np.sqrt(0.002))
    assert mce_bound(400, 5, 0.1) == pytest.approx(np.sqrt(10 * np.log(100) / 400))
    assert ece_bound(50 * np.pi, 1) == pytest.approx(0.1)
    assert auc_loss_bound(1) == 0.5
    assert mce_bound(4e6, 7, 0.3) == pytest.approx(mce_bound(1e6, 7, 0.3) / 2)
    assert ece_bound(1e6, 28) == pytest.approx(2 * ece_bound(1e6, 7))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mce_bound(0, 10, 0.1), r"`n` must lie in \(0, inf\), got 0"),
        (lambda: mce_bound(10, 0, 0.1), "`n_bins` must be at least 1, got 0"),
        (lambda: mce_bound(10, 2, 1.0), r"`delta` must lie in \(0, 1\), got 1.0"),
        (lambda: ece_bound(-1, 2), r"`n` must lie in \(0, inf\), got -1"),
        (lambda: ece_bound(10, -2), "`n_bins` must be at least 1, got -2"),
        (lambda: auc_loss_bound(0), "`n_bins` must be at least 1, got 0"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.slow
@everywhere
@pytest.mark.parametrize(("n", "n_bins"), [(100, 3), (1000, 10), (5000, 40)])
def test_mce_of_the_population_exceeds_its_bound_as_seldom_as_said(
    truth, n, n_bins, rng
):
    """Theorem 5.2.1, by its stronger form: the worst of the bins on the scores."""
    rate, integral = TRUTHS[truth]
    worst = np.array(
        [bin_errors(fit(rng, rate, n, n_bins), integral)[1].max() for _ in range(400)]
    )
    for delta in (0.02, 0.1, 0.5):
        assert (worst > mce_bound(n, n_bins, delta)).mean() <= delta
    # The bound is of the right size: a sixth of it would fail, for all but the
    # smallest rates, more often than it may.
    if truth != "square":
        assert (worst > mce_bound(n, n_bins, 0.1) / 6).mean() > 0.1


@pytest.mark.slow
def test_mce_bound_is_not_one_on_an_estimate_from_test_data(rng):
    rate, integral = TRUTHS["half"]
    fitted = fit(rng, rate, 100_000, 10)
    bound = mce_bound(100_000, 10, 0.05)
    assert bin_errors(fitted, integral)[1].max() < bound
    labels = rng.uniform(size=200) < 0.5
    estimate = maximum_calibration_error(labels, fitted.predict(rng.uniform(size=200)))
    assert estimate > bound


@pytest.mark.slow
@everywhere
def test_ece_is_bounded_and_falls_at_its_rate(truth, rng):
    """Theorem 5.2.2: sqrt(B / N), in both directions."""
    rate, integral = TRUTHS[truth]
    log_ratio, design = [], []
    for n in (500, 2000, 8000):
        for n_bins in (5, 10, 20):
            errors = []
            for _ in range(100):
                size, error = bin_errors(fit(rng, rate, n, n_bins), integral)
                errors.append(size @ error)
            assert np.mean(errors) <= ece_bound(n, n_bins)
            log_ratio.append(np.log(np.mean(errors)))
            design.append([1.0, np.log(n), np.log(n_bins)])
    powers = np.linalg.lstsq(np.array(design), np.array(log_ratio), rcond=None)[0]
    assert powers[1] == pytest.approx(-0.5, abs=0.05)
    assert powers[2] == pytest.approx(0.5, abs=0.12)


@pytest.mark.slow
@everywhere
@pytest.mark.parametrize("n_bins", [2, 5, 20])
def test_auc_loss_is_bounded(truth, n_bins, rng):
    """Theorem 5.2.5, for the population: a fine grid with weights p and 1 - p."""
    rate, _ = TRUTHS[truth]
    grid = (np.arange(20_000) + 0.5) / 20_000
    p = rate(grid)
    labels = np.repeat([1, 0], len(grid))
    weights = np.concatenate([p, 1.0 - p])
    calibrated = fit(rng, rate, 400_000, n_bins).predict(grid)
    before = roc_auc_score(labels, np.tile(grid, 2), sample_weight=weights)
    after = roc_auc_score(labels, np.tile(calibrated, 2), sample_weight=weights)
    assert before - after <= auc_loss_bound(n_bins)
    if truth == "wave" and n_bins == 20:
        assert after > before + 0.1


@pytest.mark.slow
def test_auc_loss_bound_is_reached(rng):
    """One bin loses all that perfect scores have: 1 - 1/2."""
    scores = rng.uniform(size=1000)
    labels = scores > 0.5
    calibrated = HistogramCalibrator(1).fit(scores, labels).predict(scores)
    loss = roc_auc_score(labels, scores) - roc_auc_score(labels, calibrated)
    assert loss == pytest.approx(auc_loss_bound(1))
