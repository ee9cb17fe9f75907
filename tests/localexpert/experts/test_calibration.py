"""Calibration of each threshold: honest, chosen once, and rightly reported."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, cohen_kappa_score, log_loss, roc_auc_score
from sklearn.model_selection import PredefinedSplit

from calibration import BetaCalibrator, PlattCalibrator
from localexpert import JointForest, LocalExpertRegressor, SharedBoosting, crps_score
from localexpert.experts import calibration
from localexpert.experts.calibration import CalibratedExperts, ExpertCalibration
from localexpert.experts.report import ExpertReport, TaskRecord, round_odds
from tests.regressors import sample_of


@pytest.fixture
def experts(rng):
    """Underconfident experts at three thresholds, and folds."""
    x = rng.normal(size=2000)
    r = x + rng.normal(size=2000)
    thresholds = np.array([-1.0, 0.0, 1.0])
    below = r[:, None] <= thresholds
    truth = expit(1.7 * (thresholds - x[:, None]))
    return expit(0.5 * logit(truth)), below, rng.integers(0, 5, 2000)


def test_auto_leaves_honest_experts_alone(rng):
    p = rng.uniform(0.05, 0.95, size=(500, 4))
    below = rng.uniform(size=p.shape) < p
    stage = ExpertCalibration().fit(p, below, np.arange(500) % 5)
    assert stage.chosen_ == "identity"
    assert_array_equal(stage.calibrated_, p)
    assert_array_equal(stage.predict(p), p)


def test_answers_that_hardly_differ_are_not_turned_round(rng):
    # Rows of one category know each other: the answers are against their own labels.
    below = rng.uniform(size=(300, 4)) < 0.5
    p = expit(0.02 * rng.normal(size=below.shape) - 0.01 * (2 * below - 1))
    stage = ExpertCalibration().fit(p, below, np.arange(300) % 5)
    assert np.abs(stage.predict(p) - 0.5).max() < 0.15


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
    assert_array_equal(*same)


@pytest.mark.parametrize("weighted", [False, True])
def test_folds_do_not_tell_their_base_rates(rng, weighted):
    # Each answer is the rate of the other folds: little where its own fold has much.
    y, weight = rng.normal(size=60), rng.uniform(0.5, 2.0, 60) if weighted else None
    model = LocalExpertRegressor(
        expert=DummyClassifier(strategy="prior"), frame=None, n_thresholds=5, cv=5
    ).fit(rng.normal(size=(60, 1)), y, sample_weight=weight)
    assert model.report_.choices["calibration"]["chosen"] == "identity"
    rates = np.average(y[:, None] <= model.thresholds_, axis=0, weights=weight)
    same = np.broadcast_to(rates, (60, 5))
    assert_allclose(model.oof_probabilities_, same, rtol=1e-3)


def test_a_fold_that_trains_on_one_class_keeps_its_answers(rng):
    # These weights have sums that rounding leaves near 0, not at it.
    n, fold = 400, np.arange(400) % 4
    X, weight = rng.normal(size=(n, 3)), rng.uniform(0.5, 1.5, n)
    y = X[:, 0] + 0.3 * rng.normal(size=n) + 6.0 * (fold == 3)
    losses = []
    for own in (weight, np.round(1024.0 * weight) / 1024.0):
        model = LocalExpertRegressor(
            strategy="shared", frame=None, cv=PredefinedSplit(fold), random_state=0
        ).fit(X, y, sample_weight=own)
        losses.append(crps_score(y, model.oof_distribution_, sample_weight=own))
    assert losses[0] == pytest.approx(losses[1], rel=0.02)


def test_training_rows_are_calibrated_by_the_other_folds(experts):
    p, below, fold = experts
    stage = ExpertCalibration(BetaCalibrator()).fit(p, below, fold)
    for k in range(3):
        rest = fold != 2
        by_hand = BetaCalibrator().fit(p[rest, k], below[rest, k])
        assert_allclose(stage.calibrated_[~rest, k], by_hand.predict(p[~rest, k]))
        full = BetaCalibrator().fit(p[:, k], below[:, k])
        assert_allclose(stage.predict(p)[:, k], full.predict(p[:, k]))


def test_a_fold_left_with_one_class_is_not_calibrated():
    p = np.full((6, 1), 0.2)
    below = np.array([[True], [False], [False], [False], [False], [False]])
    stage = ExpertCalibration("isotonic").fit(p, below, np.array([0, 0, 1, 1, 2, 2]))
    assert_array_equal(stage.calibrated_[:2], p[:2])


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


@pytest.fixture
def units(rng):
    """Many rows of few units: a forest on y is sure of far too little."""
    profiles, levels = rng.normal(size=(25, 5)), rng.uniform(0.0, 50.0, size=25)
    unit = rng.integers(25, size=500)
    X = profiles[unit] + 0.4 * rng.normal(size=(500, 5))
    y = levels[unit] + 0.3 * rng.normal(size=500)
    return sample_of(X, y, cv=3)


def loss_of(p, sample, thresholds):
    """Return the Brier score summed over thresholds by their spacing."""
    below = sample.y[:, None] <= thresholds
    return float(((p - below) ** 2 @ np.gradient(thresholds)).mean())


def test_the_estimated_loss_is_near_what_is_reached(units):
    thresholds = np.quantile(units.y, np.linspace(0.02, 0.98, 49))
    forest = JointForest(60, max_features=0.8, min_samples_leaf=5, random_state=0)
    experts = CalibratedExperts({"joint": forest}, ExpertCalibration(random_state=0))
    experts.ask(units, thresholds, np.ones(500))
    estimate = experts.estimate_loss()
    raw = loss_of(experts.pooled_, units, thresholds)
    assert experts.losses_["joint"] == pytest.approx(raw, rel=0.05)
    experts.calibrate()
    reached = loss_of(experts.tasks_.calibrated, units, thresholds)
    assert reached < 0.95 * raw
    assert estimate < 0.98 * raw
    assert estimate == pytest.approx(reached, rel=0.1)


def test_forests_are_weighed_without_noise_that_new_rows_are_spared(units, monkeypatch):
    thresholds = np.quantile(units.y, np.linspace(0.1, 0.9, 9))
    members = {"joint": JointForest(random_state=0), "shared": SharedBoosting()}
    weights = []
    for charge in (3.0, 0.0):
        monkeypatch.setattr(calibration, "_SPARED", charge)
        experts = CalibratedExperts(members, ExpertCalibration(random_state=0))
        experts.ask(units, thresholds, np.ones(500))
        weights.append(experts.weights_["joint"])
    assert weights[0] > weights[1] + 0.02


def test_members_that_are_all_sure_are_no_more_than_sure():
    pool = CalibratedExperts({}, ExpertCalibration())
    # As the solver may leave them, up to rounding.
    pool.weights_ = {"a": 0.6000000000000001, "b": 0.4000000000000001}
    sure = {"a": np.ones((2, 3)), "b": np.ones((2, 3))}
    assert sum(pool.weights_.values()) > 1.0
    assert_array_equal(pool._join(sure), np.ones((2, 3)))


EDGES = [0.0, 5e-324, 2.0**-1000, 2.0**-53, 0.25, 0.5, 0.75, 1.0 - 2.0**-53, 1.0]


@pytest.fixture(scope="module")
def odds():
    rng = np.random.default_rng(0)
    small = 10.0 ** -rng.uniform(0.0, 16.0, 5000)
    near = np.nextafter(0.5, [0.0, 1.0])
    return np.concatenate([rng.uniform(size=5000), small, 1.0 - small, near, EDGES])


def test_odds_change_by_less_than_one_part_in_3000(odds):
    inner = odds[(odds > 1e-300) & (odds < 1.0)]
    q = round_odds(inner)
    odds = (q / (1.0 - q)) / (inner / (1.0 - inner))
    assert np.abs(odds - 1.0).max() < 1.0 / 3000.0


def test_order_and_ends_are_kept(odds):
    q = round_odds(np.sort(odds))
    assert (np.diff(q) >= 0.0).all()
    assert q[0] == 0.0
    assert q[-1] == 1.0
    assert round_odds(np.array([0.5])) == 0.5


def test_both_sides_are_treated_alike_and_once_is_enough(odds):
    exact = odds[odds >= 0.5]
    assert_array_equal(round_odds(1.0 - exact), 1.0 - round_odds(exact))
    assert_array_equal(round_odds(round_odds(odds)), round_odds(odds))


def report_of(thresholds, raw, calibrated, below, fold, weight):
    folds = [np.nonzero(fold == f)[0] for f in np.unique(fold)]
    pairs = [(np.setdiff1d(np.arange(len(fold)), test), test) for test in folds]
    record = TaskRecord(thresholds, raw, calibrated, below, pairs, weight)
    return ExpertReport.of(record)


def test_agrees_with_sklearn(rng):
    x = np.round(rng.normal(size=600), 1)
    below = (x + rng.normal(size=600))[:, None] <= [-0.5, 0.5]
    raw = 1 / (1 + np.exp(2 * (x[:, None] - [-0.5, 0.5])))
    weight = rng.integers(1, 4, 600).astype(float)
    fold = rng.integers(0, 3, 600)
    calibrated = np.clip(0.9 * raw + 0.03, 0, 1)
    got = report_of(np.array([-0.5, 0.5]), raw, calibrated, below, fold, weight)
    assert_allclose(got.base_rate, np.average(below, axis=0, weights=weight))
    for k in range(2):
        own, p, each = below[:, k], calibrated[:, k], {"sample_weight": weight}
        assert got.auc[k] == pytest.approx(roc_auc_score(own, raw[:, k], **each))
        assert got.log_loss[k] == pytest.approx(log_loss(own, p, **each))
        for f in range(3):
            rows = fold == f
            pair, each = (own[rows], p[rows] >= 0.5), {"sample_weight": weight[rows]}
            accuracy, kappa = got.accuracy[k, f], got.kappa[k, f]
            assert accuracy == pytest.approx(accuracy_score(*pair, **each))
            assert kappa == pytest.approx(cohen_kappa_score(*pair, **each))


@pytest.mark.parametrize("alike", ["all", "the expert", "the rows"])
def test_one_answer_or_one_class_is_no_ranking_and_has_no_kappa(rng, alike):
    for n in range(2, 60):
        mixed, one = np.arange(n)[:, None] % 2 == 0, np.ones((n, 1), dtype=bool)
        said = np.where(mixed if alike == "the rows" else one, 0.9, 0.1)
        below, weight = mixed if alike == "the expert" else one, rng.uniform(size=n)
        got = report_of(np.zeros(1), said, said, below, np.zeros(n, int), weight)
        assert got.auc[0] == pytest.approx(0.5)
        assert got.kappa[0, 0] == 0.0
