"""SBA against a loop over all distances, and its conventions."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from calibration import CalibrationWarning, SBACalibrator
from calibration.neighbours import side_information


@pytest.fixture(params=["continuous", "lattice"])
def rows(request, rng):
    """Features, scores and labels; on a lattice most distances are ties."""
    X = rng.normal(size=(120, 2)) * [1.0, 50.0]
    scores = rng.uniform(size=120)
    if request.param == "lattice":
        X, scores = np.round(X / [1.0, 50.0]), np.round(scores, 1)
    return X, scores, (rng.uniform(size=120) < expit(X[:, 0]) * scores).astype(float)


def by_loop(train, labels, weight, points, k, score_weight=1.0):
    """Take whole rows in order of distance; those at the k-th share what is left."""
    center = np.average(train, axis=0, weights=weight)
    unit = np.sqrt(np.average((train - center) ** 2, axis=0, weights=weight))
    scale = np.append(1 / unit[:-1], score_weight / unit[-1])
    out = []
    for point in points:
        distance = np.sqrt((((train - point) * scale) ** 2).sum(axis=1)).round(9)
        taken = ones = 0.0
        for radius in np.unique(distance):
            ring = distance == radius
            share = min(1.0, (k - taken) / weight[ring].sum())
            ones += share * (weight * labels)[ring].sum()
            taken += share * weight[ring].sum()
            if taken >= k - 1e-9:
                break
        out.append(ones / k)
    return np.array(out)


@pytest.mark.parametrize("kind", ["ones", "integers", "real"])
@pytest.mark.parametrize("k", [1, 7, 40])
def test_equals_a_loop_over_all_distances(rows, rng, kind, k):
    X, scores, y = rows
    weight = {
        "ones": np.ones(120),
        "integers": rng.integers(0, 4, 120).astype(float),
        "real": rng.uniform(0.3, 1.5, 120),
    }[kind]
    sba = SBACalibrator(k, score_weight=0.7).fit(X, scores, y, weight)
    held = weight > 0
    train = np.column_stack([X, scores])
    points = np.concatenate([train[:40], train[:40] + 0.125])
    points[:, -1] = np.minimum(points[:, -1], 1.0)
    expected = by_loop(train[held], y[held], weight[held], points, k, 0.7)
    got = sba.predict(points[:, :-1], points[:, -1])
    np.testing.assert_allclose(got, expected, atol=1e-8)


def test_rows_are_answered_the_same_in_chunks(rows, monkeypatch):
    X, scores, y = rows
    sba = SBACalibrator(9).fit(X, scores, y)
    together = sba.predict(X, scores)
    monkeypatch.setattr(side_information, "_CHUNK", 50)
    np.testing.assert_allclose(sba.predict(X, scores), together, atol=1e-12)


def test_all_rows_as_neighbours_give_the_base_rate(rows, rng):
    X, scores, y = rows
    sba = SBACalibrator(120).fit(X, scores, y)
    np.testing.assert_allclose(sba.predict(X, scores), y.mean(), rtol=1e-12)
    weight = rng.uniform(size=120)
    weight *= 60 / weight.sum()
    sba = SBACalibrator(59).fit(X, scores, y, weight)
    assert np.ptp(sba.predict(X, scores)) < 0.05
    with pytest.warns(CalibrationWarning, match="add up to 0.6"):
        sba = SBACalibrator().fit(X, scores, y, np.full(120, 0.005))
    np.testing.assert_allclose(sba.predict(X, scores), y.mean(), rtol=1e-12)


def test_units_of_features_do_not_matter_and_constants_are_left_out(rows):
    X, scores, y = rows
    plain = SBACalibrator(9).fit(X, scores, y).predict(X, scores)
    wide = np.column_stack([X * [1024.0, 2.0**-20], np.full(120, 7.0)])
    sba = SBACalibrator(9).fit(wide, scores, y)
    np.testing.assert_array_equal(plain, sba.predict(wide, scores))
    assert sba.units_[2] == 0.0


def test_smoothing_adds_rows_at_the_base_rate(rows):
    X, scores, y = rows
    plain = SBACalibrator(8).fit(X, scores, y).predict(X, scores)
    smooth = SBACalibrator(8, smoothing=2.0).fit(X, scores, y)
    expected = (8 * plain + 2 * y.mean()) / 10
    np.testing.assert_allclose(smooth.predict(X, scores), expected, rtol=1e-12)


def test_refused(rows):
    X, scores, y = rows
    sba, few = SBACalibrator(5).fit(X, scores, y), np.full(120, 0.5)
    for call, given, message in (
        (SBACalibrator(121).fit, (X, scores, y), r"not be greater .*, got 121 for 120"),
        (SBACalibrator(100).fit, (X, scores, y, few), "got 100 for 60"),
        (sba.fit, (X[1:], scores, y), "`X` must be as long as scores, got 119"),
        (sba.fit, (X[:, 0], scores, y), r"\(n, n_features\), got shape \(120,"),
        (sba.fit, (X * np.nan, scores, y), r"`X` must be finite, got .*nan.* in row 0"),
        (sba.predict, (X[:, :1], scores), "`X` must have 2 features .*, got 1"),
        (sba.predict, (X[:1], [2.0]), r"must lie in \[0, 1\], got 2"),
    ):
        with pytest.raises(ValueError, match=message):
            call(*given)


def test_many_features_far_from_zero_have_the_same_neighbours(rng):
    X, scores = np.round(rng.normal(size=(120, 16)), 1), rng.uniform(size=120)
    y = rng.uniform(size=120) < scores
    near = SBACalibrator().fit(X, scores, y).predict(X, scores)
    far = SBACalibrator().fit(X + 1e8, scores, y).predict(X + 1e8, scores)
    np.testing.assert_allclose(far, near, atol=1e-6)


def test_columns_have_names(rows):
    X, scores, y = rows
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = SBACalibrator().fit(frame, scores, y)
    np.testing.assert_array_equal(model.feature_names_in_, ["a", "b"])
    with pytest.raises(ValueError, match="`X` must have its columns in the order"):
        model.predict(frame[["b", "a"]], scores)
