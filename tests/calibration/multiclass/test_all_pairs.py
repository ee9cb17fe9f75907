import warnings
from itertools import combinations

import numpy as np
import pytest
from scipy.special import expit

from calibration import (
    AllPairsCalibrator,
    BetaCalibrator,
    CalibrationWarning,
    IsotonicCalibrator,
    LogisticCalibrator,
    PlattCalibrator,
    couple_pairs,
    load,
    log_loss,
)

COUPLINGS = ("least_squares", "log_loss", "pkpd")
BINARY = [LogisticCalibrator(), PlattCalibrator(), IsotonicCalibrator()]


def draw(rng, n=600, k=4, power=2.0):
    """Labels, and scores that are too sharp."""
    p = rng.dirichlet(np.ones(k), size=n)
    y = (rng.uniform(size=(n, 1)) > p.cumsum(axis=1)).sum(axis=1)
    return y, p**power / (p**power).sum(axis=1, keepdims=True)


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("weighted", [False, True])
def test_is_what_its_definition_says(coupling, weighted, rng):
    y, p = draw(rng)
    w = rng.integers(0, 4, size=len(y)) if weighted else np.ones(len(y))
    new = draw(rng, 50)[1]
    pairs, weight = np.full((50, 4, 4), 0.5), np.zeros((4, 4))
    for i, j in combinations(range(4), 2):
        rows = np.flatnonzero((y == i) | (y == j))
        binary = IsotonicCalibrator().fit(
            p[rows, j] / (p[rows, i] + p[rows, j]), y[rows] == j, w[rows]
        )
        pairs[:, j, i] = binary.predict(new[:, j] / (new[:, i] + new[:, j]))
        pairs[:, i, j] = 1.0 - pairs[:, j, i]
        weight[i, j] = weight[j, i] = w[rows].sum()
    expected = couple_pairs(pairs, coupling, pair_weight=weight)
    calibrator = AllPairsCalibrator(IsotonicCalibrator(), coupling)
    found = calibrator.fit(p, y, w if weighted else None).predict(new)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("binary", BINARY, ids=lambda b: type(b).__name__)
def test_two_classes_are_the_binary_calibrator(coupling, binary, rng):
    y, p = draw(rng, k=2)
    expected = binary.fit(p[:, 1], y).predict(p[:, 1])
    found = AllPairsCalibrator(binary, coupling).fit(p, y).predict(p)
    np.testing.assert_allclose(found[:, 1], expected, rtol=0, atol=1e-6)
    z = np.column_stack([np.zeros(len(y)), rng.normal(size=len(y))])
    y = rng.uniform(size=len(y)) < expit(0.5 * z[:, 1])
    logit = PlattCalibrator(scale="logit").fit(z[:, 1], y).predict(z[:, 1])
    pairs = AllPairsCalibrator(PlattCalibrator(), coupling, scale="logit")
    found = pairs.fit(z + rng.normal(size=(len(y), 1)), y).predict(z)
    np.testing.assert_allclose(found[:, 1], logit, rtol=0, atol=1e-6)


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("binary", [*BINARY, None], ids=lambda b: type(b).__name__)
def test_calibrates(coupling, binary, rng):
    y, p = draw(rng, 4000, power=3.0)
    y_new, new = draw(rng, 4000, power=3.0)
    found = AllPairsCalibrator(binary, coupling).fit(p, y).predict(new)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert log_loss(y_new, found) < log_loss(y_new, new) - 0.3


def test_weights_are_repetitions_and_rows_have_no_order(rng):
    y, p = draw(rng)
    w = rng.integers(0, 4, size=len(y))
    weighted = AllPairsCalibrator().fit(p, y, w).predict(p)
    order = rng.permutation(np.repeat(np.arange(len(y)), w))
    repeated = AllPairsCalibrator().fit(p[order], y[order]).predict(p)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-7)


def test_names_of_columns(rng):
    y, p = draw(rng)
    names = np.array(["d", "b", "a", "c"])
    named = AllPairsCalibrator(classes=names.tolist()).fit(p, names[y])
    plain = AllPairsCalibrator().fit(p, y)
    np.testing.assert_array_equal(named.predict(p), plain.predict(p))
    np.testing.assert_array_equal(named.classes_, names)


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_classes_have_no_order(coupling, rng):
    y, p = draw(rng)
    order = np.array([2, 0, 3, 1])
    place = np.argsort(order)
    plain = AllPairsCalibrator(PlattCalibrator(), coupling).fit(p, y).predict(p)
    moved = AllPairsCalibrator(PlattCalibrator(), coupling)
    found = moved.fit(p[:, order], place[y]).predict(p[:, order])
    np.testing.assert_allclose(found, plain[:, order], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_classes_without_rows_keep_a_small_probability(coupling, rng):
    y, p = draw(rng, k=5)
    kept = y < 3
    calibrator = AllPairsCalibrator(PlattCalibrator(), coupling).fit(p[kept], y[kept])
    absent = [(0, 3), (0, 4), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]
    pairs = list(combinations(range(5), 2))
    missing = [pairs[i] for i, c in enumerate(calibrator.calibrators_) if c is None]
    assert missing == absent
    found = calibrator.predict(p)
    assert (found[:, 3:] > 0.0).all()
    assert (found[:, 3:] < 0.02).all()
    # Of two that are both without rows none is the likelier.
    np.testing.assert_allclose(found[:, 3], found[:, 4], rtol=1e-6)


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_forecasts_of_0_and_1(coupling, rng):
    p = np.eye(3)[rng.integers(0, 3, size=200)]
    y = np.where(rng.uniform(size=200) < 0.7, p.argmax(axis=1), 0)
    found = AllPairsCalibrator(IsotonicCalibrator(), coupling).fit(p, y).predict(p)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    # Where both are 0 neither is the likelier: the score is 1/2.
    assert found[p[:, 2] == 1.0, 2].min() > 0.3


def test_one_class_and_one_row(rng):
    y, p = draw(rng, 20, 3)
    with pytest.warns(CalibrationWarning, match="predicts the constant"):
        found = AllPairsCalibrator().fit(p, np.ones(20)).predict(p)
    np.testing.assert_allclose(found, np.tile([1 / 23, 21 / 23, 1 / 23], (20, 1)))
    with pytest.warns(CalibrationWarning, match="predicts the constant"):
        AllPairsCalibrator().fit(p[:1], y[:1])


def test_rows_beyond_one_chunk(rng, monkeypatch):
    y, p = draw(rng)
    calibrator = AllPairsCalibrator().fit(p, y)
    whole = calibrator.predict(p)
    monkeypatch.setattr("calibration.multiclass.all_pairs._CHUNK", 100)
    np.testing.assert_allclose(calibrator.predict(p), whole, rtol=1e-12)


def test_the_given_calibrator_is_left_alone(rng):
    y, p = draw(rng)
    binary = IsotonicCalibrator()
    AllPairsCalibrator(binary).fit(p, y)
    assert not hasattr(binary, "map_")


def test_light_weights_are_told_of_once(rng):
    y, p = draw(rng)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        AllPairsCalibrator().fit(p, y, np.full(len(y), 0.01))
    assert ["repetitions" in str(one.message) for one in told].count(True) == 1


def test_saves_and_loads(rng, tmp_path):
    y, p = draw(rng)
    calibrator = AllPairsCalibrator(BetaCalibrator(), "log_loss").fit(p, y)
    calibrator.save(tmp_path / "pairs.zip")
    loaded = load(tmp_path / "pairs.zip")
    np.testing.assert_array_equal(loaded.predict(p), calibrator.predict(p))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"calibrator": IsotonicCalibrator},
            TypeError,
            "`calibrator` must be a ScoreCalibrat",
        ),
        ({"calibrator": AllPairsCalibrator()}, TypeError, "`calibrator` must be a Sco"),
        ({"scale": "real"}, ValueError, "`scale` of AllPairsCalibrator must be one of"),
    ],
)
def test_bad_parameters_are_named(options, error, message, rng):
    y, p = draw(rng)
    with pytest.raises(error, match=message):
        AllPairsCalibrator(**options).fit(p, y)
