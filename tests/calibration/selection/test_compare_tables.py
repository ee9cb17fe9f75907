"""`compare_calibrators` of several classes, against folds written out."""

import numpy as np
import pandas as pd
import pytest

import calibration
from calibration.multiclass.class_scores import ClassScores, deal_by_class
from tests.calibration.multiclass.draws import draw

NAMES = ["ox", "hen", "cat", "dog"]


P, Y = draw(np.random.default_rng(0), 400)
SOME = {
    "one": calibration.SoftmaxCalibrator("temperature", classes=NAMES),
    "steps": calibration.IsotonicCalibrator(),
}


def held_out(calibrator, p, y, weight):
    """Each fold by a fit on the others, and a row of any class for each fit."""
    answers, labels, weights = [], [], []
    data = ClassScores(p, y, weight.astype(float))
    for rest, fold in deal_by_class(data, 5, 0):
        fitted = calibrator.fit(rest.scores, rest.labels, rest.weight)
        told, n = fitted.predict(fold.scores), rest.n
        if not isinstance(calibrator, calibration.IdentityCalibrator):
            told = n / (n + 1) * told + 1 / ((n + 1) * p.shape[1])
        answers.append(told)
        labels.append(fold.labels)
        weights.append(fold.weight)
    return map(np.concatenate, (answers, labels, weights))


def test_scores_are_those_of_held_out_rows(rng):
    times = rng.integers(1, 4, size=400)
    found = calibration.compare_calibrators(P, Y, SOME, sample_weight=times)
    assert found.names == ("identity", "one", "steps")
    assert found.reference == "identity"
    everyone = [
        calibration.IdentityCalibrator(),
        calibration.SoftmaxCalibrator("temperature"),
        calibration.OneVsRestCalibrator("isotonic"),
    ]
    for i, one in enumerate(everyone):
        q, y, weight = held_out(one, P, Y, times)
        for column, measure in (
            (found.log_loss, calibration.log_loss),
            (found.brier, calibration.brier_score),
            (found.calibration_error, calibration.expected_calibration_error),
            (found.maximum_calibration_error, calibration.maximum_calibration_error),
            (found.auc, calibration.auc_score),
        ):
            expected = measure(y, q, sample_weight=weight)
            # Answers of steps are tied but for rounding, which orders and bins see.
            exact = i < 2 or measure in (calibration.log_loss, calibration.brier_score)
            near = 1e-9 if exact else 1e-3
            assert column[i] == pytest.approx(expected, rel=near)
        hits = weight @ (q.argmax(axis=1) == y) / weight.sum()
        assert found.accuracy[i] == pytest.approx(hits, rel=1e-12)
        pooled = found.curves[found.names[i]]
        assert pooled.lower is None
        gaps = pooled.weight @ np.abs(pooled.event_rate - pooled.mean_prob)
        error = found.calibration_error[i]
        assert gaps / pooled.weight.sum() == pytest.approx(error, rel=1e-6)
    assert found.probability_of_harm[0] == 0.0
    assert found.probability_of_harm[1] < 1e-3
    assert not hasattr(SOME["one"], "classes_")


def test_columns_have_names_and_logits_are_scores():
    plain = calibration.compare_calibrators(P, Y, SOME)
    named = calibration.compare_calibrators(P, np.array(NAMES)[Y], SOME, classes=NAMES)
    np.testing.assert_array_equal(named.log_loss, plain.log_loss)
    other = pd.DataFrame(P, columns=NAMES)[NAMES[::-1]]
    with pytest.raises(ValueError, match="`scores` must have its columns in the order"):
        calibration.compare_calibrators(other, np.array(NAMES)[Y], SOME, classes=NAMES)
    logits = calibration.compare_calibrators(np.log(P) + 3.0, Y, SOME, scale="logit")
    np.testing.assert_allclose(logits.log_loss[:2], plain.log_loss[:2], rtol=1e-6)
    # Halfway between two scores, where steps are, is not halfway between their logits.
    assert logits.log_loss[2] == pytest.approx(plain.log_loss[2], rel=1e-3)


def test_rows_that_weigh_next_to_nothing():
    light = np.full(len(Y), 1e-20)
    with pytest.warns(calibration.CalibrationWarning, match="counts repetitions"):
        found = calibration.compare_calibrators(P, Y, SOME, sample_weight=light)
    np.testing.assert_allclose(found.log_loss[1], np.log(4))  # nothing is learned


def test_default_menu():
    found = calibration.compare_calibrators(P, np.array(NAMES)[Y], classes=NAMES)
    known = ("temperature", "vector", "matrix", "isotonic", "shallow_net", "auto")
    assert found.names == ("identity", *known)
    assert found.log_loss[0] == found.log_loss.max()
    assert str(found).splitlines()[-2].split()[0] == "identity"


def test_a_class_without_rows():
    found = calibration.compare_calibrators(P[Y != 1], Y[Y != 1], SOME)
    assert np.isfinite(found.log_loss).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scale": "real"}, "`scale` must be one of .* got 'real'"),
        ({"classes": ["a", "b"]}, "`classes` must name each of the 4"),
        ({"y": np.zeros(400)}, "`y` must leave two classes, at two scores"),
    ],
)
def test_bad_arguments_are_named(change, words):
    with pytest.raises(ValueError, match=words):
        calibration.compare_calibrators(**{"scores": P, "y": Y, **change})
