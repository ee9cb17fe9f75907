"""ACP against a loop over the calibration rows, and its conventions."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from calibration import ACPCalibrator, CalibrationWarning


@pytest.fixture
def rows(rng):
    scores = np.round(rng.uniform(size=300), 2)
    return scores, rng.uniform(size=300) < scores, rng.uniform(size=300)


def around(points, rng):
    """Intervals of many widths; some end on a score, some have no width."""
    width = np.round(rng.uniform(0.05, 0.3, (len(points), 2)), 2)
    return np.column_stack([points - width[:, 0], points + width[:, 1]])


def test_prediction_is_the_mean_label_in_the_interval(rows, rng):
    scores, y, weight = rows
    points = np.round(rng.uniform(size=200), 2)
    intervals = around(points, rng)
    acp = ACPCalibrator(smoothing=1.5).fit(scores, y, weight)
    base = np.average(y, weights=weight)
    for p, (low, high) in zip(acp.predict(points, intervals), intervals, strict=True):
        inside = (scores >= low) & (scores <= high)
        ones = (weight * y)[inside].sum() + 1.5 * base
        assert p == pytest.approx(ones / (weight[inside].sum() + 1.5), abs=1e-13)


def test_light_rows_are_not_lost_beside_heavy_ones():
    weight = [1e12, 1e12, 1e-5, 1e-5]
    acp = ACPCalibrator().fit([0.1, 0.12, 0.5, 0.6], [0, 1, 0, 1], weight)
    p = acp.predict([0.5, 0.6], [[0.45, 0.55], [0.55, 0.65]])
    assert_array_equal(p, [0.0, 1.0])


def test_an_empty_interval_reaches_to_the_nearest_score():
    acp = ACPCalibrator().fit([0.125, 0.5, 0.75], [0, 1, 0])
    points = np.array([0.0625, 0.25, 0.4, 0.625, 0.8])
    intervals = np.column_stack([points - 0.01, points + 0.01])
    match = "5 of 5 `intervals` hold no calibration score"
    with pytest.warns(CalibrationWarning, match=match) as caught:
        p = acp.predict(points, intervals)
    assert caught[0].filename == __file__
    assert_array_equal(p, [0.0, 0.0, 1.0, 0.5, 0.0])


def test_evidence_of_certain_answers_is_infinite():
    certain = ACPCalibrator().fit([0.1, 0.9], [0, 1])
    told = certain.llr([0.1, 0.9], [[0.0, 0.2], [0.8, 1.0]])
    assert told.tolist() == [-np.inf, np.inf]


def test_a_base_rate_that_rounds_to_1_leaves_finite_evidence():
    acp = ACPCalibrator().fit([0.1, 0.1, 0.9], [0, 1, 1], [1e-3, 1e-3, 1e15])
    assert np.isfinite(acp.llr([0.1], [[0.1, 0.2]])).all()


def brier_without_itself(scores, y, weight, intervals, factor, smoothing=0.0):
    """Forecast each repetition of a row from all rows but itself, by loops."""
    base, total = np.average(y, weights=weight), 0.0
    ends = scores[:, None] + factor * (intervals - scores[:, None])
    for i, (low, high) in enumerate(ends):
        rest = weight - (np.arange(len(y)) == i)
        rest = np.where((scores >= low) & (scores <= high), rest, 0.0)
        n = rest.sum() + smoothing
        p = (rest[y].sum() + smoothing * base) / n if n > 0 else base
        total += weight[i] * (p - y[i]) ** 2
    return total


@pytest.mark.parametrize("smoothing", [0.0, 2.0])
def test_the_factor_has_the_least_loss_of_rows_left_out(rng, smoothing):
    scores = rng.uniform(size=150)
    y = rng.uniform(size=150) < 0.5 + 0.4 * np.sin(25.0 * scores)
    weight = rng.integers(1, 4, size=150).astype(float)
    intervals = scores[:, None] + np.array([-0.4, 0.3])
    acp = ACPCalibrator(smoothing=smoothing)
    acp.fit(scores, y, weight, intervals=intervals)
    factors = 2.0 ** np.arange(-8, 5)
    losses = [
        brier_without_itself(scores, y, weight, intervals, factor, smoothing)
        for factor in factors
    ]
    assert acp.factor_ == factors[np.argmin(losses)] < 1.0
    i = np.repeat(np.arange(150), weight.astype(int))
    repeated = ACPCalibrator(smoothing=smoothing)
    repeated.fit(scores[i], y[i], intervals=intervals[i])
    assert repeated.factor_ == acp.factor_
    plain = ACPCalibrator(smoothing=smoothing).fit(scores, y, weight)
    narrow = scores[:, None] + acp.factor_ * (intervals - scores[:, None])
    assert_array_equal(acp.predict(scores, intervals), plain.predict(scores, narrow))


def test_one_class_has_no_factor():
    with pytest.warns(CalibrationWarning, match="holds class 1 only"):
        acp = ACPCalibrator().fit([0.1, 0.2], [1, 1], intervals=[[0, 1], [0, 1]])
    assert acp.predict([0.3], [[0.2, 0.4]])[0] == 0.75


def test_refused(rows):
    acp, two = ACPCalibrator().fit(*rows[:2]), [0.5, 0.5]
    for call, given, message in (
        (acp.predict, (two, [[0.4, 0.6], [0.6, 0.7]]), r"got \[0.6, 0.7\] for .* 1"),
        (acp.predict, ([0.5], [[0.6, 0.4]]), r"must contain .*, got \[0.6, 0.4\] for"),
        (acp.predict, (two, [[0.4, 0.6]]), r"shape \(2, 2\), .*, got shape \(1, 2\)"),
        (acp.predict, ([0.5], [[np.nan, 1.0]]), "finite, got nan in row 0, column 0"),
        (acp.predict, ([1.5], [[1.0, 2.0]]), r"must lie in \[0, 1\], got 1.5"),
        (acp.fit, ([0.5, 3.0], [0, 1]), r"must lie in \[0, 1\], got 3"),
    ):
        with pytest.raises(ValueError, match=message):
            call(*given)
    with pytest.raises(TypeError, match="`summary` must be a ScoreSummary, got list"):
        acp.fit_summary([0.1])
    with pytest.raises(ValueError, match=r"shape \(300, 2\), .*got shape \(2, 2\)"):
        acp.fit(*rows[:2], intervals=[[0, 1], [0, 1]])
    with pytest.raises(ValueError, match="`intervals` must contain their predictions"):
        acp.fit(*rows[:2], intervals=np.full((300, 2), 2.0))
