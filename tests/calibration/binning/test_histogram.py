"""Histogram binning against bins counted by hand."""

import numpy as np

from calibration import HistogramCalibrator


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
