"""CalibrationMap: evaluation, averages, inverse, intervals, files."""

import pickle

import numpy as np
import pytest
from scipy.stats import beta

from calibration import CalibrationMap, HistogramCalibrator, IsotonicCalibrator, load


def random_map(rng, kind, size=6):
    knots = np.unique(np.round(rng.uniform(size=size), 1))
    if kind == "step":
        return CalibrationMap.step(knots, rng.uniform(size=len(knots)))
    return CalibrationMap.linear(knots, rng.uniform(size=len(knots)))


COLUMNS = [0.0, 0.5], [0.25, 0.8], [3.0, 2.0], [1.0, 8.0]
STEP = CalibrationMap.step(*map(np.array, COLUMNS))


@pytest.mark.parametrize("kinds", [["step"] * 3, ["linear"] * 3, ["step", "linear"]])
def test_average_is_the_average_at_every_point(rng, kinds):
    maps = [random_map(rng, kind) for kind in kinds]
    weights = rng.uniform(size=len(maps))
    mean = CalibrationMap.average(maps, weights)
    points = np.concatenate([rng.uniform(-0.2, 1.2, 500), np.arange(0, 1.1, 0.1)])
    expected = sum(w * m(points) for w, m in zip(weights, maps, strict=True))
    np.testing.assert_allclose(mean(points), expected / weights.sum(), atol=1e-14)
    assert mean.kind == ("step" if set(kinds) == {"step"} else "linear")


def test_inverse_is_the_least_score_that_reaches_a_probability(rng):
    for kind in ("step", "linear"):
        knots = np.sort(rng.uniform(size=8))
        values = np.sort(rng.uniform(0.1, 0.9, size=8))
        values[3] = values[4]
        one = getattr(CalibrationMap, kind)(knots, values)
        goals = np.concatenate([rng.uniform(size=50), values])
        fine = np.concatenate([np.linspace(-0.1, 1.1, 20001), knots])
        fine.sort()
        reached = one(fine)
        for goal, got in zip(goals, one.inverse(goals), strict=True):
            where = np.flatnonzero(reached >= goal - 1e-12)
            if goal <= values[0]:
                assert got == -np.inf
            elif len(where) == 0:
                assert got == np.inf
            else:
                assert got == pytest.approx(fine[where[0]], abs=1e-4)


def test_beta_interval_is_the_jeffreys_posterior():
    got = STEP.interval([0.2, 0.7], coverage=0.8)
    expected = [beta(1.5, 3.5).interval(0.8), beta(8.5, 2.5).interval(0.8)]
    np.testing.assert_allclose(got, expected)


def test_beta_interval_reaches_the_ends_that_were_observed():
    bins = HistogramCalibrator(2).fit([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
    interval = bins.predict_interval([0.1, 0.9])
    assert interval[0, 0] == 0.0
    assert interval[1, 1] == 1.0


def test_what_cannot_be_answered_is_refused():
    falling = CalibrationMap.linear(np.array([0.0, 1.0]), np.array([1.0, 0.0]))
    for call, given, message in (
        (STEP, ([np.nan],), "`scores` must be finite, got nan"),
        (STEP.interval, ([0.1], 1), r"`coverage` must lie in \(0, 1\), got 1"),
        (falling.interval, ([0.1],), "`weight0` and `weight1` must be known"),
        (falling.inverse, ([0.5],), "never decreases, got one that does"),
        (CalibrationMap.average, ([],), "`maps` must hold at least one map, got none"),
    ):
        with pytest.raises(ValueError, match=message):
            call(*given)


def test_files_and_pickles_hold_the_map(rng, tmp_path):
    llr = CalibrationMap.step(np.array([0.0, 1.0]), np.array([-np.inf, np.inf]))
    points = rng.uniform(-1, 2, 100)
    for one in (STEP, llr, random_map(rng, "linear")):
        one.save(tmp_path / "map.zip")
        for copy in (load(tmp_path / "map.zip"), pickle.loads(pickle.dumps(one))):
            np.testing.assert_array_equal(copy(points), one(points))
            assert repr(copy) == repr(one)


def test_arrays_are_read_only_copies():
    knots = np.array([0.0, 1.0])
    one = CalibrationMap.linear(knots, knots)
    knots[0] = 9.0
    assert one.knots[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        one.at[0] = 1.0


def test_repr_says_what_it_is():
    assert repr(STEP) == "CalibrationMap(kind='step', n_knots=2, from 0.25 to 0.8)"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"knots": [0.0, np.inf]}, "`knots` must be finite, got inf at position 1"),
        ({"knots": [np.nan, 1.0]}, "`knots` must increase strictly"),
        ({"knots": [0.0, 0.0]}, "`knots` must increase strictly"),
        ({"knots": []}, r"`knots` must have shape \(k,\) with k >= 1"),
        ({"left": [0.1]}, r"`left` must have shape \(k,\)"),
        ({"left": [0.0, np.nan]}, "`left` must hold numbers, got nan at knot 1"),
        ({"at": [np.nan, 0.0]}, "`at` must hold numbers, got nan at knot 0"),
        ({"right": [0.0, np.inf]}, "`right` must hold numbers, got inf at knot 1"),
        ({"weight0": [1.0, -2.0]}, "`weight0` must not be negative, got -2"),
        ({"weight1": [1.0, np.nan]}, "`weight1` must not be negative, got nan"),
    ],
)
def test_values_that_are_none_are_refused(changes, message):
    parts = {name: [0.0, 1.0] for name in ("left", "at", "right", "weight0")}
    with pytest.raises(ValueError, match=message):
        CalibrationMap(**{"knots": [0.0, 1.0], "kind": "linear", **parts, **changes})
    one = {"knots": [np.nan], "kind": "step", "left": [0], "at": [0], "right": [0]}
    with pytest.raises(ValueError, match="`knots` must be finite, got nan"):
        CalibrationMap(**one)


def test_maps_of_evidence_may_be_infinite():
    rows = [0.1, 0.2, 0.3, 0.6, 0.9], [0, 0, 1, 0, 1]
    one = IsotonicCalibrator().fit(*rows).llr_map()
    assert one.is_increasing
    assert one.inverse([0.5])[0] == 0.75
    flat = IsotonicCalibrator().fit(*rows).map_
    both = CalibrationMap.average([one, flat], [0.0, 1.0])
    assert both(rows[0]).tolist() == flat(rows[0]).tolist()
