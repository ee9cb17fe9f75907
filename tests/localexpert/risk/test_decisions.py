"""Decisions against brute force over fine grids and against closed forms."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar

from localexpert.risk import best_action, expected_loss, newsvendor
from tests.forecasts import of_values

UNDER, OVER = np.array([1.0, 4.0, 0.5, 2.0, 9.0]), np.array([3.0, 1.0, 0.5, 7.0, 1.0])


def asymmetric(y, a):
    return 4.0 * np.maximum(y - a, 0.0) + np.maximum(a - y, 0.0)


def test_no_order_of_a_fine_grid_is_cheaper(forecast):
    order = newsvendor(forecast, underage=UNDER, overage=OVER)
    grid = order.action + np.linspace(-2.0, 2.0, 201)[:, None]
    below, above = forecast.law.partial_means(np.ascontiguousarray(grid.T))
    costs = UNDER[:, None] * above + OVER[:, None] * below
    assert (order.expected_cost <= costs.min(axis=1) + 1e-9).all()
    np.testing.assert_allclose(order.expected_cost, costs[:, 100], rtol=1e-12)


def test_expected_cost_is_the_mean_cost_of_many_draws(forecast):
    order = newsvendor(forecast, underage=4.0, overage=1.0)
    paid = asymmetric(forecast.rvs(40_000, random_state=1), order.action)
    error = 4.5 * paid.std(axis=0) / np.sqrt(len(paid)) + 1e-12
    assert (abs(paid.mean(axis=0) - order.expected_cost) < error).all()


def test_normal_newsvendor_has_its_closed_form(normal):
    """With z the fractile's quantile the least cost is (u + o) sd phi(z)."""
    ours, expected = normal
    order = newsvendor(ours, underage=UNDER, overage=OVER)
    np.testing.assert_allclose(order.fractile, UNDER / (UNDER + OVER), rtol=1e-14)
    np.testing.assert_allclose(order.action, expected.ppf(order.fractile), atol=2e-3)
    density = stats.norm.pdf(stats.norm.ppf(order.fractile))
    closed = (UNDER + OVER) * expected.std() * density
    np.testing.assert_allclose(order.expected_cost, closed, rtol=1e-3)


def test_equal_costs_order_the_median(forecast):
    order = newsvendor(forecast, underage=7.0, overage=7.0)
    np.testing.assert_array_equal(order.action, forecast.median())


def test_best_action_finds_the_newsvendor_order(forecast):
    """On a grid that holds it; all other actions of the table cost more."""
    order = newsvendor(forecast, underage=4.0, overage=1.0)
    offsets = np.linspace(-3.0, 3.0, 61)
    actions = order.action[:, None] + offsets
    best = best_action(forecast, asymmetric, actions, keep_table=True)
    assert best.table.shape == (5, 61)
    np.testing.assert_allclose(best.expected_loss, order.expected_cost, rtol=1e-5)
    np.testing.assert_allclose(best.table[:, 30], order.expected_cost, rtol=1e-5)
    np.testing.assert_array_equal(best.expected_loss, best.table.min(axis=1))
    rows = np.arange(5)
    np.testing.assert_array_equal(best.action, actions[rows, best.chosen])
    for j in (0, 17, 60):
        column = expected_loss(forecast, asymmetric, actions[:, j])
        np.testing.assert_array_equal(best.table[:, j], column)


def test_best_action_is_near_the_minimum_that_an_optimiser_finds(make):
    """The loss of a price: what is asked if it sells, a fee if it does not."""

    def loss(y, a):
        return np.where(y >= a, -a, 3.0)

    ours = make("wavy")
    grid = np.linspace(-2.0, 6.0, 801)
    best = best_action(ours, loss, grid)
    for i in range(5):
        found = min(
            minimize_scalar(
                lambda a, i=i: 3.0 * ours[i].cdf(a)[0] - a * ours[i].sf(a)[0],
                bounds=(low, low + 1.0),
                method="bounded",
            ).fun
            for low in range(-2, 6)
        )
        assert best.expected_loss[i] == pytest.approx(found, rel=1e-3, abs=1e-3)


def test_shared_actions_are_those_of_every_row(forecast):
    actions = np.linspace(-1.0, 3.0, 9)
    shared = best_action(forecast, asymmetric, actions)
    own = best_action(forecast, asymmetric, np.tile(actions, (5, 1)))
    np.testing.assert_array_equal(shared.action, own.action)
    np.testing.assert_array_equal(shared.expected_loss, own.expected_loss)
    assert shared.table is None
    assert set(shared.action) <= set(actions)


def test_the_first_of_equals_is_chosen():
    coin = of_values([0.0, 1.0], [[0.5, 0.5]])
    best = best_action(coin, lambda y, a: abs(y - a), [1.0, 0.0])
    assert best.chosen == [0]
    assert best.action == [1.0]


def test_breaks_reach_the_integral(make):
    ours = make("wavy")

    def loss(y, a):
        return abs(np.minimum(y, 1.5) - a)

    action = ours.ppf(0.4)
    best = best_action(ours, loss, action[:, None], breaks=[1.5])
    expected = expected_loss(ours, loss, action, breaks=[1.5])
    np.testing.assert_array_equal(best.expected_loss, expected)
    assert (best.expected_loss != expected_loss(ours, loss, action)).any()


@pytest.mark.parametrize("name", ["underage", "overage"])
@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (0.0, r"must be positive, got 0 in row 0\."),
        ([1.0, 1.0, -2.0, 1.0, 1.0], r"must be positive, got -2 in row 2\."),
        ([1.0, 2.0], r"must broadcast against the 5 rows"),
    ],
)
def test_bad_costs_are_named(make, name, cost, message):
    costs = {"underage": 1.0, "overage": 1.0, name: cost}
    with pytest.raises((ValueError, TypeError), match=f"`{name}` {message}"):
        newsvendor(make("normal"), **costs)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([], r"`actions` must have shape \(A,\) or \(5, A\) with A >= 1, got .*\(0,\)"),
        (1.0, r"`actions` must have shape .* got shape \(\)"),
        (np.ones((3, 2)), r"`actions` must have shape .* got shape \(3, 2\)"),
        (np.ones((5, 0)), r"`actions` must have shape .* got shape \(5, 0\)"),
        ([0.0, np.inf], "`actions` must be finite, got inf"),
    ],
)
def test_bad_actions_are_named(make, actions, message):
    with pytest.raises(ValueError, match=message):
        best_action(make("normal"), asymmetric, actions)
