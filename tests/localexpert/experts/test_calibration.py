"""Calibration per threshold: honest, chosen once, harmless where nothing is to do."""

import numpy as np
import pytest
from scipy.special import expit, logit

from calibration import BetaCalibrator, PlattCalibrator
from localexpert.experts.calibration import ExpertCalibration


@pytest.fixture
def experts(rng):
    """Underconfident experts at three thresholds, and folds."""
    x = rng.normal(size=2000)
    r = x + rng.normal(size=2000)
    thresholds = np.array([-1.0, 0.0, 1.0])
    below = r[:, None] <= thresholds
    truth = expit(1.7 * (thresholds - x[:, None]))
    return expit(0.5 * logit(truth)), below, rng.integers(0, 5, 2000)


def log_loss(p, below):
    return -np.log(np.where(below, p, 1 - p)).mean()


def test_auto_repairs_underconfidence(experts):
    p, below, fold = experts
    stage = ExpertCalibration().fit(p, below, fold)
    assert stage.report_.chosen == "quadratic"
    assert set(stage.report_.losses) == {"identity", "quadratic"}
    assert log_loss(stage.calibrated_, below) < log_loss(p, below) - 0.02


def test_auto_leaves_honest_experts_alone(rng):
    p = rng.uniform(0.05, 0.95, size=(500, 4))
    below = rng.uniform(size=p.shape) < p
    stage = ExpertCalibration().fit(p, below, np.arange(500) % 5)
    assert stage.report_.chosen == "identity"
    np.testing.assert_array_equal(stage.calibrated_, p)
    np.testing.assert_array_equal(stage.predict(p), p)


@pytest.mark.parametrize("calibrator", ["isotonic", "beta", PlattCalibrator(), "auto"])
def test_a_row_never_calibrates_itself(experts, calibrator):
    p, below, fold = experts
    other = below.copy()
    row = 17
    other[row] = ~other[row]
    same = [
        ExpertCalibration(calibrator).fit(p, labels, fold).calibrated_[row]
        for labels in (below, other)
    ]
    np.testing.assert_array_equal(*same)


def test_training_rows_are_calibrated_by_the_other_folds(experts):
    p, below, fold = experts
    stage = ExpertCalibration(BetaCalibrator()).fit(p, below, fold)
    for k in range(3):
        rest = fold != 2
        by_hand = BetaCalibrator().fit(p[rest, k], below[rest, k])
        np.testing.assert_allclose(
            stage.calibrated_[~rest, k], by_hand.predict(p[~rest, k])
        )
        full = BetaCalibrator().fit(p[:, k], below[:, k])
        np.testing.assert_allclose(stage.predict(p)[:, k], full.predict(p[:, k]))


def test_weights_are_repetitions(experts, rng):
    p, below, fold = experts
    weight = rng.integers(0, 3, 2000).astype(float)
    rows = np.repeat(np.arange(2000), weight.astype(int))
    weighted = ExpertCalibration(PlattCalibrator()).fit(p, below, fold, weight)
    repeated = ExpertCalibration(PlattCalibrator()).fit(
        p[rows], below[rows], fold[rows]
    )
    np.testing.assert_allclose(weighted.calibrated_[rows], repeated.calibrated_)
    np.testing.assert_allclose(
        weighted.report_.losses["PlattCalibrator"],
        repeated.report_.losses["PlattCalibrator"],
    )


def test_a_fold_left_with_one_class_is_not_calibrated():
    p = np.full((6, 1), 0.2)
    below = np.array([[True], [False], [False], [False], [False], [False]])
    stage = ExpertCalibration("isotonic").fit(p, below, np.array([0, 0, 1, 1, 2, 2]))
    np.testing.assert_array_equal(stage.calibrated_[:2], p[:2])


def test_unknown_calibrators_are_named():
    with pytest.raises(
        ValueError, match=r"`calibrator` must be None, one of 'auto'.*7"
    ):
        ExpertCalibration(7).fit(np.ones((2, 1)), np.ones((2, 1), bool), np.arange(2))


@pytest.mark.parametrize(
    "calibrator",
    [
        *("auto", "isotonic", "centered_isotonic", "bagged_isotonic", "beta"),
        *("temperature", "venn_abers", None, BetaCalibrator(scale="probability")),
    ],
    ids=str,
)
def test_increasing_ones_keep_the_order_of_scores_that_lie(experts, calibrator):
    """Scores that speak for the wrong side, which freer calibrators turn round."""
    p, below, fold = experts
    stage = ExpertCalibration(calibrator, increasing=True).fit(1.0 - p, below, fold)
    grid = np.linspace(0.0, 1.0, 1001)[:, None].repeat(3, axis=1)
    assert (np.diff(stage.predict(grid), axis=0) >= -1e-15).all()
    free = ExpertCalibration("quadratic").fit(1.0 - p, below, fold)
    assert (np.diff(free.predict(grid), axis=0) < 0.0).any()


@pytest.mark.parametrize(
    "calibrator",
    ["quadratic", "logistic", "platt", "histogram", BetaCalibrator("moments")],
    ids=str,
)
def test_those_that_may_decrease_are_refused(experts, calibrator):
    with pytest.raises(ValueError, match=r"`calibrator` must be None.*`monotone`, got"):
        ExpertCalibration(calibrator, increasing=True).fit(*experts)
