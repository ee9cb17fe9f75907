"""Expected losses, and the actions of least loss, against brute force over scores."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import ndtr, ndtri

from localexpert import PredictiveDistribution
from localexpert.risk import best_action, expected_loss, newsvendor
from tests.forecasts import normal, of_values
from tests.localexpert.law.kinds import KINDS

FORECASTS = {name: PredictiveDistribution(law) for name, law in KINDS.items()}
every = pytest.mark.parametrize("name", FORECASTS)
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


def asymmetric(y, a):
    return 4.0 * np.maximum(y - a, 0.0) + np.maximum(a - y, 0.0)


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
    order = newsvendor(dist, underage=4.0, overage=1.0)
    assert_allclose(order.fractile, 0.8)
    actions = order.action[:, None] + np.linspace(-3.0, 3.0, 61)
    best = best_action(dist, asymmetric, actions, keep_table=True)
    assert (order.expected_cost <= best.table.min(axis=1) + 1e-9).all()
    assert_allclose(best.table[:, 30], order.expected_cost, rtol=1e-5)
    assert_array_equal(best.expected_loss, best.table.min(axis=1))
    assert_array_equal(best.action, actions[range(3), best.chosen])
    column = expected_loss(dist, asymmetric, actions[:, 17])
    assert_array_equal(best.table[:, 17], column)
    equal = newsvendor(dist, underage=7.0, overage=7.0)
    assert_array_equal(equal.action, dist.median())


def test_normal_newsvendor_has_its_closed_form():
    """With z the fractile's quantile the least cost is (u + o) sd phi(z)."""
    under, over = np.array([1.0, 4.0, 9.0]), np.array([3.0, 1.0, 1.0])
    sd = np.array([0.5, 1.0, 3.0])
    order = newsvendor(normal([0.0, 1.0, 2.0], sd), underage=under, overage=over)
    z = stats.norm.ppf(under / (under + over))
    assert_allclose(order.action, [0.0, 1.0, 2.0] + sd * z, atol=2e-3)
    closed = (under + over) * sd * stats.norm.pdf(z)
    assert_allclose(order.expected_cost, closed, rtol=1e-3)


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


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        (newsvendor, {"underage": 0.0}, "`underage` must be positive, got 0 in row 0"),
        (newsvendor, {"overage": [1, 1, -2]}, "`overage` must be positive, got -2 in"),
        (newsvendor, {"overage": [1, 2]}, "`overage` must broadcast against the 3"),
        (best_action, {"actions": []}, r"`actions` must have shape .* got .*\(0,\)"),
        (best_action, {"actions": 1.0}, r"`actions` must have shape .* got shape \(\)"),
        (best_action, {"actions": np.ones((2, 2))}, r"have shape \(A,\) or \(3, A\)"),
        (best_action, {"actions": [0.0, np.inf]}, "`actions` must be finite, got inf"),
        (expected_loss, {"loss": lambda *of: of[1]}, "`loss` must return an array of"),
        (expected_loss, {"loss": lambda *of: len(of)}, "`loss` must return an array"),
        (
            expected_loss,
            {"loss": lambda *of: of[0] + np.nan},
            r"`loss` must be finite, got nan for y = .* and action = 1\.",
        ),
        (expected_loss, {"action": np.ones((2, 3))}, r"a number or have shape \(3,\)"),
        (expected_loss, {"action": np.inf}, "`action` must be finite"),
        (expected_loss, {"breaks": [[1.0], [2.0]]}, r"`breaks` must have shape \(3, a"),
    ],
)
def test_refusals(call, given, message):
    right = {
        newsvendor: {"underage": 1.0, "overage": 1.0},
        best_action: {"loss": asymmetric, "actions": [0.0]},
        expected_loss: {"loss": asymmetric, "action": 1.0},
    }
    with pytest.raises(ValueError, match=message):
        call(FORECASTS["smooth"], **{**right[call], **given})
