"""Bagged isotonic regression as a calibrator."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from calibration import BaggedIsotonicCalibrator, ScoreSummary


@pytest.fixture
def data(rng):
    scores = np.round(rng.uniform(size=500), 2)
    return scores, (rng.uniform(size=500) < scores**2).astype(int)


def test_agrees_with_refitting_bootstrap_samples(data, rng):
    """The talk's five steps done naively; agreement within Monte Carlo noise."""
    scores, y = data
    cells = np.unique(scores)
    fits = []
    for _ in range(600):
        rows = rng.integers(0, 500, 500)
        isotonic = IsotonicRegression(out_of_bounds="clip")
        fits.append(isotonic.fit(scores[rows], y[rows]).predict(cells))
    naive, noise = np.mean(fits, axis=0), np.std(fits, axis=0) / np.sqrt(600)
    ours = BaggedIsotonicCalibrator(600, random_state=1).fit(scores, y)
    # Besides noise, scores that a bag misses are stepped over here, joined there.
    assert (np.abs(ours.predict(cells) - naive) < 6 * noise + 0.004).all()


def test_is_one_increasing_map_that_keeps_the_base_rate(data):
    scores, y = data
    fitted = BaggedIsotonicCalibrator(200, random_state=0).fit(scores, y)
    assert fitted.map_.is_increasing
    assert fitted.predict(scores).mean() == pytest.approx(y.mean(), abs=0.01)


def test_does_not_depend_on_the_number_of_threads(data):
    one = BaggedIsotonicCalibrator(50, random_state=3, n_jobs=1).fit(*data)
    two = BaggedIsotonicCalibrator(50, random_state=3, n_jobs=2).fit(*data)
    assert one.map_.to_dict() == two.map_.to_dict()


def test_random_state_decides(data):
    maps = [
        BaggedIsotonicCalibrator(5, random_state=seed).fit(*data).map_.to_dict()
        for seed in (0, 0, 1)
    ]
    assert maps[0] == maps[1]
    assert maps[0] != maps[2]
    generator = np.random.RandomState(0)
    drawn = BaggedIsotonicCalibrator(5, random_state=generator)
    assert drawn.fit(*data).map_.to_dict() != drawn.fit(*data).map_.to_dict()


def test_bounded_summary_uses_counts(rng):
    scores = rng.uniform(size=20_000)
    y = rng.uniform(size=20_000) < scores**2
    cells = ScoreSummary.from_scores(scores, y, max_cells=64)
    fitted = BaggedIsotonicCalibrator(50, random_state=0).fit_summary(cells)
    grid = np.linspace(0.05, 0.95, 50)
    assert np.abs(fitted.predict(grid) - grid**2).max() < 0.05
