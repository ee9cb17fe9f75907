"""The three rates, counted by hand."""

import numpy as np
import pytest
from scipy.special import expit

from calibration.binning.three_values import ThreeValueCalibrator
from calibration.summary import ScoreSummary


def test_rates_are_counted_in_three_regions(rng):
    scores = np.round(rng.normal(scale=1.5, size=800), 1)
    y = rng.uniform(size=800) < expit(scores)
    weight = rng.uniform(size=800)
    three = ThreeValueCalibrator(smoothing=2.0, scale="real").fit(scores, y, weight)
    base = np.average(y, weights=weight)
    p = three.predict(scores)
    for rows in (scores <= -1.0, np.abs(scores) < 1.0, scores >= 1.0):
        ones = (weight * y)[rows].sum() + 2.0 * base
        rate = ones / (weight[rows].sum() + 2.0)
        np.testing.assert_allclose(p[rows], rate, rtol=1e-12)
    assert len(np.unique(p)) == 3


def test_margins_belong_to_the_regions_beyond_them():
    scores, y = [-1.5, -1.0, -0.9, 0.0, 0.9, 1.0, 1.5], [0, 0, 1, 0, 1, 1, 1]
    three = ThreeValueCalibrator(scale="logit").fit(scores, y)
    points = [-1.0, np.nextafter(-1.0, 0), np.nextafter(1.0, 0), 1.0]
    np.testing.assert_allclose(three.predict(points), [0, 2 / 3, 2 / 3, 1])


def test_probabilities_are_compared_by_their_log_odds(rng):
    logits = rng.normal(scale=2.0, size=300)
    y = rng.uniform(size=300) < expit(logits)
    by_logit = ThreeValueCalibrator(0.5, scale="logit").fit(logits, y)
    by_probability = ThreeValueCalibrator(0.5).fit(expit(logits), y)
    np.testing.assert_array_equal(
        by_logit.predict(logits), by_probability.predict(expit(logits))
    )


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([-2.0, -1.5, 2.0, 3.0], [0.5, 0.5, 1.0]),
        ([0.0, 0.5, 2.0, 3.0], [0.5, 0.5, 1.0]),
        ([-3.0, -2.0, 0.0, 0.5], [0.5, 1.0, 1.0]),
        ([-0.5, 0.0, 0.5, 0.7], [0.75, 0.75, 0.75]),
    ],
)
def test_a_region_without_rows_joins_the_one_below(scores, expected):
    three = ThreeValueCalibrator(scale="real").fit(scores, [0, 1, 1, 1])
    np.testing.assert_array_equal(three.predict([-1.0, 0.0, 1.0]), expected)


def test_the_interval_counts_the_rows_of_the_region():
    summary = ScoreSummary.from_scores([-2.0, -1.0, 0.0, 2.0], [0, 1, 1, 1])
    three = ThreeValueCalibrator(scale="real").fit_summary(summary)
    np.testing.assert_array_equal(three.map_.weight0, [1, 0, 0])
    np.testing.assert_array_equal(three.map_.weight1, [1, 1, 1])
    low, high = three.predict_interval([-5.0])[0]
    assert low < 0.5 < high
