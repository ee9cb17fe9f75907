"""`ForecastMonitor`: what is of distributions alone."""

import numpy as np
import pytest
from scipy.stats import norm

from calibration import CalibrationWarning
from localexpert import ForecastMonitor, PredictiveDistribution
from localexpert.data.training_rows import SeenRows
from tests.forecasts import of_values


def draw(rng, n, shift=0.0):
    mean = rng.normal(size=n)
    dist = PredictiveDistribution.from_scipy(norm(mean, 1.0))
    return dist, mean + shift + rng.normal(size=n)


def test_an_offset_is_told_in_deviations_and_in_units(rng):
    monitor = ForecastMonitor()
    for _ in range(16):
        monitor.partial_fit(*draw(rng, 250, 0.4))
    low, high = monitor.confidence_interval()
    assert low < 0.4 < high < low + 0.2
    assert monitor.history_["bias"].mean() == pytest.approx(0.4, abs=0.06)
    assert monitor.find_onset() == 0.0
    assert monitor.tolerance_ == pytest.approx(1.25 / np.sqrt(1000.0))


def test_jumps_are_drawn_within_by_a_seed(rng):
    dist = of_values([0.0, 1.0], np.tile([0.7, 0.3], (2000, 1)))
    y = (rng.uniform(size=2000) < 0.3).astype(float)
    one, same = (ForecastMonitor(thresholds=[0.0]).fit(dist, y) for _ in range(2))
    other = ForecastMonitor(thresholds=[0.0], random_state=1).fit(dist, y)
    assert one.log_e_ == same.log_e_ != other.log_e_
    # Without the draw all transforms would lie at two points.
    assert not one.alarm_


def test_outcomes_outside_of_the_support_are_counted_and_speak():
    dist = of_values([0.0, 1.0], np.tile([0.5, 0.5], (60, 1)))
    y = np.repeat([0.0, 1.0, 7.0, -3.0], 15)
    monitor = ForecastMonitor(thresholds=[0.0]).fit(dist, y)
    assert monitor.history_["outside"].tolist() == [30.0]
    assert np.isfinite(monitor.log_e_)


def test_rows_that_were_learned_from_are_told_of(rng):
    seen = SeenRows(60, 0.15, np.arange(60) < 9, 60)
    with pytest.warns(CalibrationWarning, match=r"9 of the 60 rows\. .* new rows"):
        ForecastMonitor().fit(*draw(rng, 60), seen=seen)


def test_wrong_settings_are_refused(rng):
    for wrong, said in [
        ({"n_fit": 0}, "`n_fit` must be at least 1"),
        ({"thresholds": [np.nan]}, "`thresholds` must be finite"),
        ({"thresholds": []}, "`thresholds`"),
        ({"random_state": -1}, "`random_state` must be at least 0"),
    ]:
        with pytest.raises(ValueError, match=said):
            ForecastMonitor(**wrong).fit(*draw(rng, 60))
