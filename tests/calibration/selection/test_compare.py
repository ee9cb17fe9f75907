"""`compare_calibrators` against folds written out, and what its picture holds."""

import numpy as np
import pytest

from calibration import (
    AutoCalibrator,
    BetaCalibrator,
    IdentityCalibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    ScoreSummary,
    SoftmaxCalibrator,
    auc_score,
    brier_score,
    compare_calibrators,
    expected_calibration_error,
    log_loss,
    maximum_calibration_error,
    reliability_curve,
)

RNG = np.random.default_rng(0)
SCORES = RNG.uniform(0.01, 0.99, size=400)
Y = (RNG.uniform(size=400) < SCORES**2).astype(int)
SOME = {"Platt": PlattCalibrator(), "PAV": IsotonicCalibrator()}


def held_out(calibrator, scores, y, k=5):
    """Row by row: each fold of distinct scores by a fit on the other rows."""
    ranks = np.argsort(np.argsort(scores)).astype(float)
    answers = np.full(len(y), np.nan)
    for fold in ScoreSummary.from_scores(ranks, y).split(k, 0):
        test = np.isin(ranks, fold.scores)
        train = ~test
        p = calibrator.fit(scores[train], y[train]).predict(scores[test])
        edge = 1.0 / (2.0 * train.sum() + 2.0)
        answers[test] = np.clip(p, edge, 1.0 - edge)
    return answers


def test_scores_are_those_of_held_out_rows():
    comparison = compare_calibrators(SCORES, Y, SOME)
    assert comparison.names == ("identity", "Platt", "PAV")
    assert comparison.reference == "identity"
    everyone = [IdentityCalibrator(), PlattCalibrator(), IsotonicCalibrator()]
    for i, one in enumerate(everyone):
        p = held_out(one, SCORES, Y)
        assert comparison.log_loss[i] == pytest.approx(log_loss(Y, p), rel=1e-12)
        assert comparison.brier[i] == pytest.approx(brier_score(Y, p), rel=1e-12)
        ece = expected_calibration_error(Y, p)
        assert comparison.calibration_error[i] == pytest.approx(ece, rel=1e-9)
        mce = maximum_calibration_error(Y, p)
        assert comparison.maximum_calibration_error[i] == pytest.approx(mce, rel=1e-9)
        assert comparison.auc[i] == pytest.approx(auc_score(Y, p), rel=1e-12)
        hits = ((p > 0.5) == Y).mean()
        assert comparison.accuracy[i] == pytest.approx(hits, rel=1e-12)
        curve = comparison.curves[comparison.names[i]]
        expected = reliability_curve(Y, p)
        np.testing.assert_allclose(curve.event_rate, expected.event_rate, rtol=1e-9)
        np.testing.assert_allclose(curve.upper, expected.upper, rtol=1e-9)
    assert comparison.probability_of_harm[0] == 0.0
    assert (comparison.probability_of_harm[1:] < 1e-3).all()
    assert not hasattr(SOME["Platt"], "coef_")


def test_scores_that_are_surely_wrong_have_finite_losses():
    scores, y = np.append(SCORES, [0.0, 1.0]), np.append(Y, [1, 0])
    comparison = compare_calibrators(scores, y, SOME)
    assert np.isfinite([comparison.log_loss, comparison.standard_error]).all()


def test_weights_are_repetitions(rng):
    weight = rng.integers(0, 4, 400)
    weighted = compare_calibrators(SCORES, Y, SOME, sample_weight=weight)
    rows = np.repeat(SCORES, weight), np.repeat(Y, weight)
    repeated = compare_calibrators(*rows, SOME)
    np.testing.assert_array_equal(weighted.log_loss, repeated.log_loss)
    np.testing.assert_array_equal(weighted.standard_error, repeated.standard_error)


def test_default_menu_is_what_the_scale_allows():
    names = compare_calibrators(SCORES, Y).names
    known = ("platt", "quadratic", "beta", "elite", "isotonic", "auto")
    assert names == ("identity", *known)
    real = compare_calibrators(8 * SCORES - 4, Y, scale="real")
    assert real.names == ("platt", "quadratic", "elite", "isotonic", "auto")
    assert real.reference == "platt"


def test_table_is_sorted_by_log_loss():
    comparison = compare_calibrators(SCORES, Y, SOME)
    head, *lines, foot = str(comparison).splitlines()
    named = ["log", "loss", "error", "Brier", "ECE", "MCE", "AUC", "accuracy"]
    assert head.split()[1:] == [*named, "P(harm)"]
    first = int(np.argmin(comparison.log_loss))
    found = [float(cell) for cell in lines[0].split()[1:]]
    columns = "log_loss standard_error brier calibration_error"
    columns += " maximum_calibration_error auc accuracy probability_of_harm"
    expected = [getattr(comparison, name)[first] for name in columns.split()]
    np.testing.assert_allclose(found, expected, atol=6e-4)
    assert foot == "harm against identity"
    losses = [float(line.split()[1]) for line in lines]
    assert losses == sorted(losses)
    assert lines[-1].split()[0] == "identity"


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"calibrators": {"a": "isotonic"}}, TypeError, r"\['a'\]` must be .* 'isoto"),
        ({"calibrators": [SoftmaxCalibrator()]}, TypeError, r"be a ScoreCal.* \(n,\)"),
        (
            {"calibrators": {"identity": PlattCalibrator()}},
            ValueError,
            r"\['identity'\]` must be an IdentityCalib",
        ),
        (
            {"calibrators": [BetaCalibrator()], "scale": "real"},
            ValueError,
            "needs probabilities or log-odds",
        ),
        ({"scores": [0.1, 0.9], "y": [0, 1]}, ValueError, "`y` must leave two classes"),
        ({"y": np.eye(400)[7]}, ValueError, "`y` must leave two classes, at two sco"),
        ({"classes": [0, 1, 2]}, ValueError, "`classes` must name each of the 2 col"),
        ({"classes": [0, 7]}, ValueError, "`y` must hold labels that `classes` names"),
    ],
)
def test_bad_arguments_are_named(change, error, words):
    with pytest.raises(error, match=words):
        compare_calibrators(**{"scores": SCORES, "y": Y, **change})


def test_a_list_is_named_by_classes():
    pair = [IsotonicCalibrator(), PlattCalibrator()]
    told = compare_calibrators(SCORES, Y, pair)
    assert told.names == ("identity", "isotonic", "platt")
    named = compare_calibrators(SCORES, Y, dict(zip(told.names[1:], pair, strict=True)))
    np.testing.assert_array_equal(told.log_loss, named.log_loss)
    twins = compare_calibrators(SCORES, Y, [PlattCalibrator(), PlattCalibrator()])
    assert twins.names == ("identity", "platt-1", "platt-2")


def test_names_are_texts():
    pair = {1: PlattCalibrator(), ("a", 2): IsotonicCalibrator()}
    told = compare_calibrators(SCORES, Y, pair)
    assert told.names == ("identity", "1", "('a', 2)")
    assert str(told).count("('a', 2)") == 1
    auto = AutoCalibrator(pair).fit(SCORES, Y)
    assert str(auto.report_).count("('a', 2)") == 1
    with pytest.raises(ValueError, match=r"must have names that .* texts, got '1'"):
        compare_calibrators(SCORES, Y, dict.fromkeys([1, "1"], pair[1]))


def test_labels_of_two_classes_have_names():
    plain = compare_calibrators(SCORES, Y, SOME)
    words = np.array(["no", "yes"])[Y]
    named = compare_calibrators(SCORES, words, SOME, classes=["no", "yes"])
    np.testing.assert_array_equal(named.log_loss, plain.log_loss)
