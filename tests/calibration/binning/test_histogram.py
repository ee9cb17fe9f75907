"""Histogram binning, and what is known of its error."""

import numpy as np
import pytest

from calibration import HistogramCalibrator, auc_loss_bound, ece_bound, mce_bound


def test_width_bins_are_closed_on_the_left(rng):
    scores = np.concatenate([np.arange(11) / 10, rng.uniform(size=200)])
    y = (rng.uniform(size=211) < 0.5).astype(int)
    fitted = HistogramCalibrator(10, "width").fit(scores, y)
    bins = np.minimum((scores * 10 + 1e-9).astype(int), 9)
    rates = np.array([y[bins == b].mean() for b in range(10)])
    np.testing.assert_allclose(fitted.predict(scores), rates[bins])


def test_frequency_bins_hold_equal_weight_and_never_split_ties():
    scores = [0.1, 0.1, 0.1, 0.1, 0.5, 0.6, 0.7, 0.8]
    y = [0, 1, 0, 1, 1, 1, 0, 0]
    fitted = HistogramCalibrator(4).fit(scores, y)
    assert fitted.map_.block_weights()[0].tolist() == [2.0, 0.0, 2.0]
    assert fitted.predict([0.1, 0.55, 0.9]).tolist() == [0.5, 1.0, 0.0]


def test_auto_takes_the_cube_root_of_the_weight(rng):
    scores, y = rng.uniform(size=1000), rng.integers(0, 2, 1000)
    assert len(HistogramCalibrator().fit(scores, y).map_) == 10
    assert len(HistogramCalibrator().fit(scores, y, np.full(1000, 8)).map_) == 20


def test_empty_width_bins_join_the_bin_below():
    fitted = HistogramCalibrator(10, "width").fit([0.25, 0.27, 0.85], [0, 1, 1])
    assert fitted.predict([0.0, 0.22, 0.7, 0.81]).tolist() == [0.5, 0.5, 0.5, 1.0]


def test_width_bins_of_real_scores_cover_their_range():
    fitted = HistogramCalibrator(2, "width", scale="real")
    fitted.fit([-4.0, -1.0, 1.0, 4.0], [0, 0, 1, 1])
    assert fitted.map_.knots.tolist() == [-4.0, 0.0]


def test_smoothing_adds_rows_at_the_base_rate():
    fitted = HistogramCalibrator(2, smoothing=2.0)
    fitted.fit([0.1, 0.2, 0.8, 0.9], [0, 0, 0, 1])
    np.testing.assert_allclose(fitted.predict([0.1, 0.9]), [0.5 / 4, 1.5 / 4])


# P(y = 1 | s) for s uniform on (0, 1), and its integral from 0 to s.
TRUTHS = {
    "wave": (
        lambda s: 0.5 - 0.4 * np.cos(9.0 * s),
        lambda s: 0.5 * s - 0.4 / 9.0 * np.sin(9.0 * s),
    ),
    "step": (
        lambda s: np.where(s < 0.37, 0.1, 0.9),
        lambda s: 0.1 * s + 0.8 * np.maximum(s - 0.37, 0.0),
    ),
}


def test_formulas_by_hand():
    assert mce_bound(1000, 1, 2 / np.e) == pytest.approx(np.sqrt(0.002))
    assert mce_bound(400, 5, 0.1) == pytest.approx(np.sqrt(10 * np.log(100) / 400))
    assert ece_bound(50 * np.pi, 1) == pytest.approx(0.1)
    assert auc_loss_bound(1) == 0.5
    assert mce_bound(4e6, 7, 0.3) == pytest.approx(mce_bound(1e6, 7, 0.3) / 2)
    assert ece_bound(1e6, 28) == pytest.approx(2 * ece_bound(1e6, 7))


@pytest.mark.slow
@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize(("n", "n_bins"), [(100, 3), (1000, 10), (5000, 40)])
def test_mce_of_the_population_exceeds_its_bound_seldom(truth, n, n_bins, rng):
    """Theorem 5.2.1, by its stronger form: the worst of the bins on the scores."""
    rate, integral = TRUTHS[truth]
    worst = np.empty(400)
    for i in range(400):
        scores = rng.uniform(size=n)
        fitted = HistogramCalibrator(n_bins).fit(
            scores, rng.uniform(size=n) < rate(scores)
        )
        edges = np.concatenate([[0.0], fitted.map_.knots[1:], [1.0]])
        truths = np.diff(integral(edges)) / np.diff(edges)
        worst[i] = np.abs(fitted.map_.right - truths).max()
    for delta in (0.02, 0.1, 0.5):
        assert (worst > mce_bound(n, n_bins, delta)).mean() <= delta
    # The bound is of the right size: a sixth of it would fail more often than it may.
    assert (worst > mce_bound(n, n_bins, 0.1) / 6).mean() > 0.1
