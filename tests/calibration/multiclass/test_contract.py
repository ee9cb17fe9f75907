"""What every calibrator of several classes promises."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import calibration
from tests.calibration.multiclass.draws import check_simplex, draw

FEW = {
    "temperature": calibration.TemperatureCalibrator(),
    "isotonic": calibration.IsotonicCalibrator(),
}
LEARNERS = [
    calibration.SoftmaxCalibrator(),
    calibration.SoftmaxCalibrator(penalty=1.0),
    calibration.SoftmaxCalibrator("vector", 0.1),
    calibration.SoftmaxCalibrator("matrix", 0.0),
    calibration.SoftmaxCalibrator("temperature"),
    calibration.OneVsRestCalibrator("isotonic"),
    calibration.OneVsRestCalibrator("quadratic"),
    calibration.AutoCalibrator(max_harm=1.0, candidates=FEW),
    calibration.ShallowNetCalibrator(3),
]
EVERYONE = [
    *LEARNERS,
    calibration.AllPairsCalibrator(),
    calibration.IdentityCalibrator(),
]


everyone = pytest.mark.parametrize("calibrator", EVERYONE, ids=repr)
learners = pytest.mark.parametrize("calibrator", LEARNERS, ids=repr)


def test_every_exported_one_is_tested():
    # Names are found when they are asked for, so `vars` need not have all.
    public = {getattr(calibration, name) for name in calibration.__all__}
    base = calibration.MulticlassCalibrator
    found = {one for one in public if isinstance(one, type) and issubclass(one, base)}
    assert found - {base} == {type(one) for one in EVERYONE}


@everyone
def test_predicts_probabilities_on_both_scales(calibrator, rng, frozen):
    p, y = (frozen(one) for one in draw(rng))
    check_simplex(clone(calibrator).fit(p, y).predict(p), p.shape)
    on_logits = clone(calibrator).set_params(scale="logit")
    shift = rng.normal(size=(len(p), 1))
    found = on_logits.fit(np.log(p) + shift, y).predict(np.log(p))
    expected = clone(calibrator).fit(p, y).predict(p)
    # Rows in another order have other folds.
    near = 0.05 if isinstance(calibrator, calibration.AutoCalibrator) else 1e-6
    assert_allclose(found, expected, rtol=2e-5, atol=near)


@everyone
def test_names_of_columns(calibrator, rng):
    p, y = draw(rng)
    names = np.array(["d", "b", "c", "a"])
    named = clone(calibrator).set_params(classes=names.tolist()).fit(p, names[y])
    assert named.classes_.tolist() == ["d", "b", "c", "a"]
    plain = clone(calibrator).fit(p, y)
    assert plain.classes_.tolist() == [0, 1, 2, 3]
    assert_array_equal(named.predict(p), plain.predict(p))
    frame = pd.DataFrame(p, columns=names)
    assert_array_equal(named.predict(frame), named.predict(p))
    match = (
        r"`scores` must have its columns in the order \['d', 'b', 'c', 'a'\], got 'a'"
    )
    for ask in (named.predict, named.llr, lambda s: clone(named).fit(s, names[y])):
        with pytest.raises(ValueError, match=match):
            ask(frame[sorted(names)])
    # The same for names that are no classes.
    framed = clone(calibrator).fit(frame, y)
    assert framed.feature_names_in_.tolist() == names.tolist()
    assert_array_equal(framed.predict(p), plain.predict(p))
    for ask in (framed.predict, framed.llr):
        with pytest.raises(ValueError, match=match):
            ask(frame[sorted(names)])
    assert not hasattr(framed.fit(p, y), "feature_names_in_")
    numbers = clone(calibrator).set_params(classes=(10, 5, 7, -1))
    found = numbers.fit(p, np.array([10, 5, 7, -1])[y]).predict(p)
    assert_array_equal(found, plain.predict(p))


@everyone
def test_evidence_and_a_prior_make_the_forecast(calibrator, rng):
    p, y = draw(rng)
    fitted = clone(calibrator).fit(p, y, 1.0 + (y == 2))
    shares = np.bincount(y, 1.0 + (y == 2)) / np.sum(1.0 + (y == 2))
    assert_allclose(fitted.class_prior_, shares)
    evidence, said = fitted.llr(p), fitted.predict(p)
    assert evidence.shape == p.shape
    assert (evidence.max(axis=1) == 0.0).all()
    again = softmax(evidence + np.log(shares), axis=1)
    assert_allclose(again, said, atol=1e-12)
    new = np.array([0.05, 0.6, 0.05, 0.3])
    moved = softmax(evidence + np.log(new), axis=1)
    assert_allclose(moved, calibration.shift_prior(said, shares, new), atol=1e-12)


def test_evidence_needs_a_prior(rng):
    fitted = calibration.SoftmaxCalibrator("temperature").fit(*draw(rng))
    del fitted.class_prior_  # as in a file of a version that had none
    with pytest.raises(NotFittedError, match="`class_prior_`, which `llr` needs"):
        fitted.llr(draw(rng)[0])


@everyone
def test_pickled_and_saved(calibrator, rng, tmp_path):
    p, y = draw(rng, 80)
    fitted = clone(calibrator).set_params(classes=list("wxyz"))
    fitted.fit(p, np.array(list("wxyz"))[y])
    expected = fitted.predict(p)
    assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(p), expected)
    fitted.save(tmp_path / "one.zip")
    again = calibration.load(tmp_path / "one.zip")
    assert_array_equal(again.predict(p), expected)
    assert again.classes_.tolist() == list("wxyz")


@learners
def test_weights_are_repetitions_in_any_order(calibrator, rng):
    p, y = draw(rng, 200)
    times = rng.integers(0, 4, size=len(y))
    weighted = clone(calibrator).fit(p, y, times).predict(p)
    rows = rng.permutation(np.repeat(np.arange(200), times))
    repeated = clone(calibrator).fit(p[rows], y[rows])
    # Merged rows are the same to the last digit.
    near = 1e-12 if isinstance(calibrator, calibration.AutoCalibrator) else 1e-5
    assert_allclose(weighted, repeated.predict(p), rtol=near, atol=1e-8)


@learners
def test_zeros_ones_and_ties(calibrator, rng):
    p, y = draw(rng, 300, 3, 1.0)
    p = np.round(3 * p) / np.round(3 * p).sum(axis=1, keepdims=True)
    found = clone(calibrator).fit(p, y).predict(np.vstack([p, np.eye(3)]))
    check_simplex(found, (303, 3))
    hard = np.eye(3)[rng.permutation(y)]
    check_simplex(clone(calibrator).fit(hard, y).predict(hard), hard.shape)


@learners
def test_separable_scores_far_out(calibrator, rng):
    y = np.arange(60) % 3
    z = 400.0 * np.eye(3)[y] + rng.normal(size=(60, 3))
    p = softmax(z, axis=1)
    check_simplex(clone(calibrator).fit(p, y).predict(p), p.shape)
    on_logits = clone(calibrator).set_params(scale="logit")
    check_simplex(on_logits.fit(1e6 * z, y).predict(1e6 * z), z.shape)


@learners
def test_a_class_without_rows_keeps_a_little(calibrator, rng):
    p, y = draw(rng, 300, 4)
    fitted = clone(calibrator).fit(p[y != 2], y[y != 2])
    found = fitted.predict(p)
    check_simplex(found, p.shape)
    if calibrator.get_params().get("structure") != "temperature":
        assert found[:, 2].mean() < p[:, 2].mean()
    assert np.isfinite(fitted.llr(p)).all()


@learners
def test_one_class_has_the_constant_of_laplace(calibrator, rng):
    p, _ = draw(rng, 8, 4)
    with pytest.warns(calibration.CalibrationWarning, match="`y` holds class 1 only"):
        fitted = clone(calibrator).fit(p, np.ones(8))
    assert_allclose(fitted.predict(p[:2]), [[1 / 12, 9 / 12, 1 / 12, 1 / 12]] * 2)
    with pytest.warns(calibration.CalibrationWarning, match="rows of `scores` are all"):
        fitted = clone(calibrator).fit(np.full((8, 4), 0.25), [0, 0, 0, 0, 0, 1, 2, 3])
    assert_allclose(fitted.predict(p[:1]), [[6 / 12, 2 / 12, 2 / 12, 2 / 12]])
    assert (fitted.llr(p) == 0.0).all()
    fitted.fit(*draw(rng))
    assert fitted.constant_ is None


@learners
def test_fewer_rows_than_classes(calibrator, rng):
    p, _ = draw(rng, 4, 9)
    with pytest.warns(calibration.CalibrationWarning, match="fewer rows than classes"):
        fitted = clone(calibrator).fit(p, [0, 1, 2, 0])
    check_simplex(fitted.predict(p), p.shape)


@everyone
@pytest.mark.parametrize(
    ("scores", "y", "complaint"),
    [
        ([[0.5, 0.6]], [0], "`scores` must have rows that sum to 1, got 1.1 in row 0"),
        ([[-0.5, 1.5]], [0], r"`scores` must .*\[0, 1\].* got .*-0.5"),
        ([[0.5, np.nan]], [0], "`scores` must be finite, got nan in row 0, column 1"),
        (np.empty((0, 2)), [], "`scores` must hold at least one row"),
        ([[0.5, 0.5]], [2], "`y` must hold column numbers .* to 1, .* got 2.* at"),
        ([[0.5, 0.5]], [0, 1], "`y` must be as long as scores, got 2 and 1"),
        ([[0.5, 0.5]], ["a"], "`classes` must name .* got None and 'a'"),
    ],
)
def test_bad_data_is_refused_by_name(calibrator, scores, y, complaint):
    with pytest.raises((ValueError, TypeError), match=complaint):
        clone(calibrator).fit(scores, y)


@pytest.mark.parametrize("scores", [[[1.0], [0.0]], [0.2, 0.8]])
@everyone
def test_scores_of_one_column_are_those_of_two_classes(calibrator, scores):
    if isinstance(calibrator, calibration.ScoreCalibrator):
        assert clone(calibrator).fit(scores, [0, 1]).predict(scores).shape == (2,)
        return
    with pytest.raises(ValueError, match=r"must have shape \(n, k\), k >= 2, got sh"):
        clone(calibrator).fit(scores, [0, 1])


def test_light_weights_are_told_of_once(rng):
    p, y = draw(rng, 100)
    for one in LEARNERS:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            clone(one).fit(p, y, np.full(100, 0.05))
        texts = [str(each.message) for each in caught]
        assert len([text for text in texts if "counts repetitions" in text]) == 1


@pytest.mark.filterwarnings("ignore::calibration.CalibrationWarning")
@learners
def test_rows_that_weigh_next_to_nothing(calibrator, rng):
    p, y = draw(rng, 40)
    fitted = clone(calibrator).fit(p, y, np.full(40, 1e-20))
    check_simplex(fitted.predict(p), p.shape)
