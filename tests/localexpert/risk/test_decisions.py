"""Decisions of least loss or cost, and profits of policies, against brute force."""

import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import quad
from scipy.special import ndtr, ndtri
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB

from calibration import CalibratedClassifier, IsotonicCalibrator
from localexpert import PredictiveDistribution
from localexpert.risk import (
    best_action,
    cost_decision,
    decision_threshold,
    expected_loss,
    newsvendor,
    policy_profit,
    realised_cost,
)
from tests.forecasts import normal, of_values
from tests.localexpert.law.kinds import FORECASTS, every

# Beside the action, losses may bend here: a deductible, and a cap.
BREAKS = np.array([0.5, 2.5])
LOSSES = {
    "absolute": lambda y, a: abs(y - a),
    "pinball": lambda y, a: np.where(y > a, 3.0 * (y - a), a - y),
    "squared": lambda y, a: (y - a) ** 2,
    "squares that differ": lambda y, a: np.where(y > a, 3.0, 1.0) * (y - a) ** 2,
    "zero-one": lambda y, a: y > a,
    "fee": lambda y, a: np.where(y > a, 2.0 + (y - a), 0.2 * (a - y) ** 2),
    "insured": lambda y, a: np.clip(y - 0.5, 0, 2) + 0.5 * abs(y - a) + (y > 2.5),
}


def by_brute_force(dist, loss, action):
    """Return E loss as a sum over cells of scores, which end where quantiles jump."""
    out = []
    for i in range(len(dist)):
        law = dist.law.take([i])
        at = np.r_[action[i], BREAKS, -1.0, 0.0, 1.0, 3.0, 5.0]
        if law.step > 0.0:
            at = np.r_[at, law.offset + law.step * np.arange(-99, 99)]
        levels = np.c_[law.cdf(at[None]), law.cdf_left(at[None])]
        jumps = ndtri(levels[0]).clip(-8.5, 8.5)
        edges = np.unique(np.r_[np.linspace(-8.5, 8.5, 20_001), jumps])
        y = law.ppf_scores(0.5 * (edges[None, :-1] + edges[None, 1:]))[0]
        out.append(np.diff(ndtr(edges)) @ (1.0 * loss(y, action[i])))
    return np.array(out)


@every
@pytest.mark.parametrize("kind", LOSSES)
def test_losses_are_those_of_brute_force(name, kind, frozen):
    dist, loss = FORECASTS[name], LOSSES[kind]
    breaks = BREAKS if kind == "insured" else None
    for q in (0.05, 0.6):
        action = dist.ppf(q) + 1e-3
        got = expected_loss(dist, loss, frozen(action), breaks=breaks)
        assert_allclose(got, by_brute_force(dist, loss, action), rtol=1e-4, atol=1e-9)
    if breaks is not None:
        rows = np.tile(frozen(breaks), (3, 1))
        assert_array_equal(expected_loss(dist, loss, action, breaks=rows), got)


@every
def test_actions_may_be_values_of_positive_probability(name):
    dist = FORECASTS[name]
    for at in (0.0, 1.0, dist.ppf(0.4)):
        over = expected_loss(dist, lambda y, a: y > a, at)
        assert_allclose(over, dist.sf(at), rtol=1e-9, atol=1e-12)
        reached = expected_loss(dist, lambda y, a: y >= a, at)
        assert_allclose(reached, dist.sf(at) + dist.pmf(at), rtol=1e-9, atol=1e-12)
        away = expected_loss(dist, LOSSES["absolute"], at)
        assert_allclose(away, np.sum(dist.partial_means(at), axis=0), rtol=1e-9)


def test_losses_are_asked_where_there_is_probability_alone():
    def root(y, a):
        assert y.min() >= 0.0
        return np.sqrt(y) * abs(y - a)

    for action in (0.0, 1e-9, -3.0, 1.0):
        assert np.isfinite(expected_loss(FORECASTS["bounded"], root, action)).all()
    # A value without probability may cost whatever it likes.
    sure = of_values([0.0, 1.0], [[1.0, 0.0]])
    assert expected_loss(sure, lambda y, a: np.where(y == a, np.inf, 2.0), 1.0) == 2.0
    table = np.array([[0.0, 4.0], [1.0, 2.0], [9.0, 0.0]])
    dist = of_values([0.0, 1.0, 2.0], [[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]])
    got = expected_loss(dist, lambda y, a: table[y.astype(int), a.astype(int)], [0, 1])
    assert_allclose(got, [0.5 + 2.7, 0.2], rtol=1e-15)


def test_chunks_units_and_breaks_named_twice_are_nothing():
    p, action = np.random.default_rng(0).uniform(size=5000), np.linspace(0, 1, 5000)
    many = of_values([0.0, 1.0], np.c_[1.0 - p, p])
    expected = (1.0 - p) * action**2 + p * (1.0 - action) ** 2
    assert_allclose(expected_loss(many, LOSSES["squared"], action), expected)
    fee = LOSSES["fee"]
    for name in ("smooth", "discrete"):
        near = expected_loss(FORECASTS[name], fee, 1.1)
        far = expected_loss(FORECASTS[name], lambda y, a: fee(y, a) + 1e6, 1.1)
        assert_allclose(far - 1e6, near, rtol=1e-5)
    twice = expected_loss(FORECASTS["smooth"], fee, 0.7, breaks=[0.7])
    assert_allclose(twice, expected_loss(FORECASTS["smooth"], fee, 0.7), rtol=1e-8)
    assert expected_loss(many[:0], fee, 1.0).shape == (0,)


@every
def test_no_other_order_is_cheaper(name):
    dist = FORECASTS[name]
    order = newsvendor(dist, underage=3.0, overage=1.0)
    assert_allclose(order.fractile, 0.75)
    actions = order.action[:, None] + np.linspace(-3.0, 3.0, 61)
    best = best_action(dist, LOSSES["pinball"], actions, keep_table=True)
    assert (order.expected_cost <= best.table.min(axis=1) + 1e-9).all()
    assert_allclose(best.table[:, 30], order.expected_cost, rtol=1e-5)
    assert_array_equal(best.expected_loss, best.table.min(axis=1))
    assert_array_equal(best.action, actions[range(3), best.chosen])
    column = expected_loss(dist, LOSSES["pinball"], actions[:, 17])
    assert_array_equal(best.table[:, 17], column)
    under, over = np.array([1.0, 4.0, 9.0]), np.array([3.0, 1.0, 1.0])
    each = newsvendor(dist, underage=under, overage=over)
    assert_allclose(each.action, dist.ppf(under / (under + over)))
    below, above = dist.partial_means(each.action)
    assert_allclose(each.expected_cost, under * above + over * below)
    equal = newsvendor(dist, underage=7.0, overage=7.0)
    assert_array_equal(equal.action, dist.median())


def test_costs_of_any_size_have_a_decision():
    dist = normal([0.0, 1.0, 2.0], 1.0)
    huge = newsvendor(dist, underage=1e308, overage=1e308)
    assert_allclose(huge.action, [0.0, 1.0, 2.0], atol=1e-9)
    far = newsvendor(dist, underage=1e17, overage=1.0)
    assert_allclose(far.action, stats.norm.isf(1e-17, [0.0, 1.0, 2.0]), rtol=1e-6)
    assert_array_equal(far.fractile, 1.0)
    with pytest.raises(ValueError, match="`underage` must leave the decision finite"):
        newsvendor(dist, underage=1e308, overage=1e-308)


def test_actions_are_shared_or_each_rows_own_and_the_first_of_equals_wins():
    dist, actions = FORECASTS["mixed"], np.linspace(-1.0, 3.0, 9)
    loss = LOSSES["insured"]
    shared = best_action(dist, loss, actions, breaks=BREAKS)
    own = best_action(dist, loss, np.tile(actions, (3, 1)), breaks=BREAKS)
    assert_array_equal(shared.action, own.action)
    expected = expected_loss(dist, loss, shared.action, breaks=BREAKS)
    assert_array_equal(shared.expected_loss, expected)
    assert (expected != expected_loss(dist, loss, shared.action)).any()
    assert shared.table is None
    coin = of_values([0.0, 1.0], [[0.5, 0.5]])
    assert best_action(coin, LOSSES["absolute"], [1.0, 0.0]).chosen == [0]


# Give a loan (0) or refuse it (1) to one who repays (0) or defaults (1); the two
# tables of Pakdaman Naeini's thesis (2016), table 1.
LOAN = np.array([[0.0, 5.0], [1.0, 0.0]])
REFINED = np.array([[-1.0, 10.0], [1.0, 0.0]])


@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (4, 3), (1, 2)])
def test_no_decision_is_cheaper(rng, shape):
    costs, p = rng.normal(size=shape), rng.dirichlet(np.ones(shape[1]), size=200)
    result = cost_decision(p, costs)
    assert result.decision.dtype.kind == "i"
    each = [[sum(own * row) for row in costs] for own in p]
    assert_array_equal(result.decision, np.argmin(each, axis=1))
    assert_allclose(result.expected_cost, np.min(each, axis=1))
    if shape == (2, 2):
        assert_array_equal(cost_decision(p[:, 1], costs).decision, result.decision)


@pytest.mark.parametrize(
    ("costs", "threshold"),
    [
        (LOAN, 1 / 6),
        (REFINED, 2 / 12),
        ([[0.0, 1.0], [1.0, 0.0]], 0.5),
        # What a class costs whatever one decides is no argument (Elkan, section 1.1).
        (3.0 * LOAN + [7.0, -2.0], 1 / 6),
    ],
)
def test_the_threshold_divides_the_decisions(costs, threshold):
    assert decision_threshold(costs) == pytest.approx(threshold, rel=1e-14)
    p = np.linspace(0.0, 1.0, 1000)
    assert_array_equal(cost_decision(p, costs).decision, p > threshold)


def test_realised_cost_is_the_mean_of_what_was_paid(rng):
    decision, came = rng.integers(3, size=100), rng.integers(2, size=100)
    costs, weight = rng.normal(size=(3, 2)), rng.integers(4, size=100)
    paid = [costs[d, c] for d, c in zip(decision, came, strict=True)]
    assert realised_cost(decision, came, costs) == pytest.approx(np.mean(paid))
    weighted = realised_cost(decision, came, costs, sample_weight=weight)
    assert weighted == pytest.approx(np.average(paid, weights=weight))


def german_loans():
    """A thousand loans; class 1 defaulted."""
    path = Path(os.environ.get("LOCALEXPERT_DATA", ""), "binary/german_numer.csv.gz")
    if not path.is_file():
        pytest.skip("LOCALEXPERT_DATA does not name the folder with binary/")
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


@pytest.fixture
def campaign(rng):
    """A charity's letters: rare gifts, skewed amounts, calibrated chances."""
    p, amount = rng.beta(1.0, 12.0, size=4000), 2.0 + rng.gamma(2.0, 5.0, size=4000)
    return p, amount, np.where(rng.uniform(size=4000) < p, rng.poisson(amount), 0.0)


def send(p, amount, received, **given):
    given = {"cost": 0.68, "random_state": 0, "received": received, **given}
    return policy_profit(p, amount, **given)


def test_profit_equals_that_of_a_loop(campaign):
    p, amount, received = campaign
    result = send(p, amount, received)
    expected = realised = n_sent = 0.0
    for chance, gift, came in zip(*campaign, strict=True):
        if chance * gift > 0.68:
            n_sent += 1
            expected += chance * gift - 0.68
            realised += came - 0.68
    assert result.expected_profit == pytest.approx(expected, rel=1e-12)
    assert result.realised_profit == pytest.approx(realised, rel=1e-12)
    assert result.share_sent == n_sent / len(p)
    low, high = result.interval
    assert low < result.realised_profit < high
    assert low < result.expected_profit < high


def test_intervals_are_those_of_the_central_limit_and_of_the_seed(campaign):
    result = send(*campaign, n_bootstrap=4000, coverage=0.8)
    profits = np.where(result.send, campaign[2] - 0.68, 0.0)
    half = 1.2816 * profits.std() * np.sqrt(len(profits))
    low, high = result.interval
    assert high - low == pytest.approx(2.0 * half, rel=0.06)
    assert 0.5 * (low + high) == pytest.approx(profits.sum(), abs=0.15 * half)
    seeds = (0, 0, 1, np.random.default_rng(0))
    first, again, other, drawn = (
        send(*campaign, n_bootstrap=50, random_state=seed).interval for seed in seeds
    )
    assert first == again == drawn != other


def test_amounts_may_be_forecasts_and_what_is_worth_the_cost_is_not_sent():
    dist, p = normal([1.0, 1.0, 2.0]), np.array([0.5, 1.0, 0.2])
    cost, came = np.array([0.0, 1.0, 0.5]), np.arange(3.0)
    first, again = (send(p, x, came, cost=cost) for x in (dist, dist.mean().round(9)))
    assert_array_equal(first.send, [True, False, False])
    assert_array_equal(again.send, [True, False, False])
    assert first.expected_profit == pytest.approx(0.5)
    nobody = send(0.1, 1.0, [0.0, 9.0], cost=5.0)
    assert (nobody.expected_profit, nobody.realised_profit) == (0.0, 0.0)
    assert nobody.interval == (0.0, 0.0)


DECIDE, PAY, SMOOTH = cost_decision, realised_cost, FORECASTS["smooth"]
ORDER = partial(newsvendor, dist=SMOOTH, underage=1.0, overage=1.0)
CHOOSE = partial(best_action, SMOOTH, LOSSES["pinball"])
LOSE = partial(expected_loss, SMOOTH, loss=LOSSES["pinball"], action=1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ORDER(underage=0.0), "`underage` must be positive, got 0 in row 0"),
        (lambda: ORDER(overage=[1, 1, -2]), "`overage` must be positive, got -2 in"),
        (lambda: ORDER(overage=[1, 2]), "`overage` must broadcast against the 3"),
        (lambda: ORDER(dist=normal([0.0]), overage=[1, 2]), r"shape \(1,\), got"),
        (lambda: CHOOSE(1.0), r"`actions` must have shape .* got shape \(\)"),
        (lambda: CHOOSE(np.ones((2, 2))), r"have shape \(A,\) or \(3, A\)"),
        (lambda: CHOOSE([0.0, np.inf]), "`actions` must be finite, got inf"),
        (lambda: LOSE(loss=lambda *of: of[1]), "`loss` must return an array of"),
        (lambda: LOSE(loss=lambda *of: len(of)), "`loss` must return an array"),
        (lambda: LOSE(loss=lambda *of: of[0] + np.nan), r"nan for y = .*n = 1\."),
        (lambda: LOSE(action=np.ones((2, 3))), r"a number or have shape \(3,\)"),
        (lambda: LOSE(breaks=[[1.0], [2.0]]), r"`breaks` must have shape \(3, a"),
        (lambda: DECIDE([0.5], [[1.0], [0.0]]), r"must have a row per .*\(2, 1\)"),
        (lambda: DECIDE([0.5], [[0.0, np.nan], [1, 0]]), "`costs` must be finite, got"),
        (lambda: DECIDE([1.5], LOAN), r"`probabilities` must lie in \[0, 1\], got 1.5"),
        (lambda: DECIDE([[0.5, 0.6]], LOAN), "must sum to 1 in every row, got 1.1"),
        (lambda: DECIDE([[0.5, 0.2, 0.3]], LOAN), r"must have shape \(any, 2\)"),
        (lambda: DECIDE([0.5], np.eye(3)), r"must have shape \(n, 3\) for 3 classes"),
        (lambda: decision_threshold([[1.0, 5.0], [1.0, 0.0]]), "`costs` must be high"),
        (lambda: decision_threshold([[0.0, 1.0], [1.0, 1.0]]), "`costs` must be high"),
        (lambda: PAY([0, 2], [0, 1], LOAN), r"`decision` must hold whole .* 1, got 2"),
        (lambda: PAY([0, 1], [0, -1], LOAN), r"`y_true` must hold whole numbers .* -1"),
        (lambda: PAY([0, 0.5], [0, 1], LOAN), "got 0.5 at position 1"),
        (lambda: PAY([0, 1], [0], LOAN), "`y_true` must be as long as .* got 1 and 2"),
        (lambda: send(1.5, 1.0, [0.0]), r"`probability` must lie in \[0, 1\], got 1.5"),
        (lambda: send([0.1, 0.2], 1.0, [0] * 3), "`probability` must .* the 3 rows"),
        (lambda: send(0.1, 1.0, 1.0), r"`received` must have shape \(any,\)"),
        (lambda: send(0.1, normal([0.0] * 5), [0, 1]), "`amount` must have .* got 5"),
        (lambda: send(0.1, 1, [0] * 3, cost=[0, 0, -2]), "negative, got -2 in row 2"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_bounded_losses_have_an_expectation_where_the_mean_has_none():
    dist = PredictiveDistribution.from_scipy(stats.pareto([0.9, 3.0]))
    found = expected_loss(dist, lambda y, a: 1.0 * (y > a), 2.0)
    np.testing.assert_allclose(found, dist.sf(2.0), rtol=1e-9)
    capped = expected_loss(
        dist, lambda y, a: np.clip(y - a, 0.0, 5.0), 2.0, breaks=[2.0, 7.0]
    )
    want = [quad(stats.pareto(b).sf, 2.0, 7.0)[0] for b in (0.9, 3.0)]
    np.testing.assert_allclose(capped, want, rtol=1e-3)


def test_breaks_beside_each_other_are_told_apart():
    dist = PredictiveDistribution.from_scipy(stats.norm([0.0], [1.0]))

    def jump(y, a):
        return np.abs(y - a) + 10.0 * (y > 1.0)

    a = 1.0012
    want = 2 * stats.norm.pdf(a) + a * (2 * ndtr(a) - 1) + 10 * stats.norm.sf(1.0)
    found = expected_loss(dist, jump, [a], breaks=[1.0])
    assert found[0] == pytest.approx(want, rel=1e-9)
    two = expected_loss(
        dist, lambda y, _: 5.0 * (y > 1.0) + 5.0 * (y > 1.001), [0.0], breaks=[1, 1.001]
    )
    want = 5.0 * (stats.norm.sf(1.0) + stats.norm.sf(1.001))
    assert two[0] == pytest.approx(want, rel=1e-9)
