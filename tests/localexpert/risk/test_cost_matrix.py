"""Decisions by a cost matrix against loops, and on the loans that made them known."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB

from calibration import CalibratedClassifier, IsotonicCalibrator, SoftmaxCalibrator
from localexpert.risk import cost_decision, decision_threshold, realised_cost

# Give a loan (0) or refuse it (1) to one who repays (0) or defaults (1); the two
# tables of Pakdaman Naeini's thesis (2016), table 1.
LOAN = np.array([[0.0, 5.0], [1.0, 0.0]])
REFINED = np.array([[-1.0, 10.0], [1.0, 0.0]])


@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (4, 3), (1, 2)])
def test_no_decision_is_cheaper(rng, shape):
    costs = rng.normal(size=shape)
    p = rng.dirichlet(np.ones(shape[1]), size=200)
    result = cost_decision(p, costs)
    assert result.decision.dtype.kind == "i"
    for i in range(200):
        each = [
            sum(p[i, j] * costs[d, j] for j in range(shape[1])) for d in range(shape[0])
        ]
        assert result.decision[i] == int(np.argmin(each))
        assert result.expected_cost[i] == pytest.approx(min(each), rel=1e-12)


def test_a_vector_is_the_probability_of_class_one(rng):
    p = rng.uniform(size=50)
    one, both = cost_decision(p, LOAN), cost_decision(np.c_[1.0 - p, p], LOAN)
    np.testing.assert_array_equal(one.decision, both.decision)
    np.testing.assert_array_equal(one.expected_cost, both.expected_cost)


@pytest.mark.parametrize(
    ("costs", "threshold"),
    [(LOAN, 1 / 6), (REFINED, 2 / 12), ([[0.0, 1.0], [1.0, 0.0]], 0.5)],
)
def test_the_threshold_divides_the_decisions(costs, threshold):
    assert decision_threshold(costs) == pytest.approx(threshold, rel=1e-14)
    p = np.linspace(0.0, 1.0, 1000)
    expected = (p > threshold).astype(int)
    np.testing.assert_array_equal(cost_decision(p, costs).decision, expected)


def test_adding_to_a_column_and_scaling_change_no_decision(rng):
    """What a class costs whatever one decides is no argument (Elkan, section 1.1)."""
    p = rng.uniform(size=100)
    shifted = 3.0 * LOAN + [7.0, -2.0]
    expected = cost_decision(p, LOAN).decision
    np.testing.assert_array_equal(cost_decision(p, shifted).decision, expected)
    assert decision_threshold(shifted) == pytest.approx(decision_threshold(LOAN))


def test_an_expert_may_be_asked(rng):
    """A third decision at a fixed cost, taken where neither other one is cheap."""
    p = rng.uniform(size=500)
    costs = [[0.0, 1.0], [1.0, 0.0], [0.2, 0.2]]
    decision = cost_decision(p, costs).decision
    np.testing.assert_array_equal(decision == 2, (p > 0.2) & (p < 0.8))


def test_realised_cost_is_the_mean_of_what_was_paid(rng):
    decision, came = rng.integers(3, size=100), rng.integers(2, size=100)
    costs, weight = rng.normal(size=(3, 2)), rng.integers(4, size=100)
    paid = [costs[d, c] for d, c in zip(decision, came, strict=True)]
    assert realised_cost(decision, came, costs) == pytest.approx(np.mean(paid))
    weighted = realised_cost(decision, came, costs, sample_weight=weight)
    assert weighted == pytest.approx(np.average(paid, weights=weight))
    repeated = np.repeat(decision, weight), np.repeat(came, weight)
    assert realised_cost(*repeated, costs) == pytest.approx(weighted)


def test_calibrated_probabilities_keep_their_promise(rng):
    p = rng.beta(1.0, 3.0, size=20_000)
    came = rng.uniform(size=len(p)) < p
    ours = cost_decision(p, LOAN)
    paid = realised_cost(ours.decision, came, LOAN)
    assert paid == pytest.approx(ours.expected_cost.mean(), rel=0.03)
    distorted = cost_decision(p**2 / (p**2 + (1.0 - p) ** 2), LOAN).decision
    assert paid < realised_cost(distorted, came, LOAN)


def test_calibrated_probabilities_of_several_classes(rng):
    p = rng.dirichlet([1.0, 1.0, 1.0, 1.0], size=20_000)
    came = (rng.uniform(size=(len(p), 1)) > p.cumsum(axis=1)).sum(axis=1)
    sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    fitted = SoftmaxCalibrator("temperature").fit(sharp[:10_000], came[:10_000])
    told, known = fitted.predict(sharp[10_000:]), came[10_000:]
    # Five decisions for four classes, one of them to ask at a fixed cost.
    costs = np.vstack([rng.uniform(0.5, 3.0, size=(4, 4)) * (1 - np.eye(4)), [0.6] * 4])
    ours = cost_decision(told, costs)
    by_hand = np.array([[row @ cost for cost in costs] for row in told])
    np.testing.assert_array_equal(ours.decision, by_hand.argmin(axis=1))
    np.testing.assert_allclose(ours.expected_cost, by_hand.min(axis=1))
    paid = realised_cost(ours.decision, known, costs)
    assert paid == pytest.approx(ours.expected_cost.mean(), rel=0.03)
    bold = cost_decision(sharp[10_000:], costs).decision
    assert paid < realised_cost(bold, known, costs)
    wrong = 1 - np.eye(4)
    most = cost_decision(told, wrong).decision
    np.testing.assert_array_equal(most, told.argmax(axis=1))


@pytest.mark.parametrize(
    ("probabilities", "costs", "message"),
    [
        ([0.5], [[0.0, 1.0]] * 0, r"`costs` must have shape \(any, any\)"),
        ([0.5], [[1.0], [0.0]], r"`costs` must have a row per decision .*\(2, 1\)"),
        ([0.5], [[0.0, np.nan], [1.0, 0.0]], "`costs` must be finite, got nan"),
        ([1.5], LOAN, r"`probabilities` must lie in \[0, 1\], got 1.5"),
        ([[0.5, 0.6]], LOAN, "`probabilities` must sum to 1 in every row, got 1.1"),
        ([[0.5, 0.2, 0.3]], LOAN, r"`probabilities` must have shape \(any, 2\)"),
        ([0.5], np.eye(3), r"`probabilities` must have shape \(n, 3\) for 3 classes"),
    ],
)
def test_bad_probabilities_and_costs_are_named(probabilities, costs, message):
    with pytest.raises(ValueError, match=message):
        cost_decision(probabilities, costs)


@pytest.mark.parametrize("costs", [[[1.0, 5.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 2.0]]])
def test_costs_that_one_decision_wins_have_no_threshold(costs):
    message = "`costs` must be higher for the wrong decision than for the right one"
    with pytest.raises(ValueError, match=message):
        decision_threshold(costs)


@pytest.mark.parametrize(
    ("decision", "y_true", "message"),
    [
        ([0, 2], [0, 1], r"`decision` must hold whole numbers from 0 to 1, got 2"),
        ([0, 1], [0, -1], r"`y_true` must hold whole numbers from 0 to 1, got -1"),
        ([0, 0.5], [0, 1], "`decision` must hold whole numbers .* got 0.5 at pos"),
        ([0, 1], [0], "`y_true` must be as long as decision, got 1 and 2"),
        ([], [], "`decision` must hold at least one value"),
    ],
)
def test_bad_codes_are_named(decision, y_true, message):
    with pytest.raises(ValueError, match=message):
        realised_cost(decision, y_true, LOAN)


def german_loans():
    """A thousand loans; class 1 defaulted."""
    folder = os.environ.get("LOCALEXPERT_DATA")
    if folder is None:
        pytest.skip("LOCALEXPERT_DATA does not name the folder with binary/")
    path = Path(folder) / "binary" / "german_numer.csv.gz"
    if not path.is_file():
        pytest.skip(f"{path} does not exist")
    rows = np.loadtxt(path, delimiter=",", skiprows=1)
    return rows[:, :-1], rows[:, -1].astype(int)


@pytest.mark.parametrize("costs", [LOAN, REFINED], ids=["original", "refined"])
def test_calibration_lowers_the_cost_of_german_loans(costs):
    """Out of fold, against naive Bayes as it is and against one answer for all.

    What naive Bayes promises is half of what it then costs at most.
    """
    X, y = german_loans()
    calibrated = CalibratedClassifier(GaussianNB(), IsotonicCalibrator(), cv=5)
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    paid, promised = [], []
    for model in (GaussianNB(), calibrated):
        p = cross_val_predict(model, X, y, cv=folds, method="predict_proba")
        ours = cost_decision(p, costs)
        paid.append(realised_cost(ours.decision, y, costs))
        promised.append(ours.expected_cost.mean())
    alike = [realised_cost(np.full(len(y), d), y, costs) for d in (0, 1)]
    assert paid[1] < paid[0] < min(alike)
    assert paid[0] > 2.0 * promised[0]
    assert abs(paid[1] - promised[1]) < 0.25 * (paid[0] - promised[0])


def test_a_calibrated_classifier_of_three_classes_decides():
    X, y = load_iris(return_X_y=True)
    model = CalibratedClassifier(GaussianNB(), "temperature").fit(X, y)
    p = model.predict_proba(X)
    plain = cost_decision(p, 1.0 - np.eye(3))
    np.testing.assert_array_equal(model.classes_[plain.decision], model.predict(X))
    # To miss the last class costs so much that it is decided for wherever it may come.
    wary = cost_decision(p, [[0.0, 1.0, 1e6], [1.0, 0.0, 1e6], [1.0, 1.0, 0.0]])
    assert (wary.decision == 2).sum() > (plain.decision == 2).sum()
