"""Risk measures against closed forms, draws and brute force, on laws of every kind."""

import numpy as np
import pytest
from scipy import stats

from localexpert.risk import expected_loss
from tests.forecasts import beside, of_values

LOSSES = {
    "absolute": lambda y, a: abs(y - a),
    "pinball": lambda y, a: np.where(y > a, 3.0 * (y - a), a - y),
    "squared": lambda y, a: (y - a) ** 2,
    "squares that differ": lambda y, a: np.where(y > a, 3.0, 1.0) * (y - a) ** 2,
    "zero-one": lambda y, a: y > a,
    "fee": lambda y, a: np.where(y > a, 2.0 + (y - a), 0.2 * (a - y) ** 2),
}


def test_probabilities_equal_the_shares_of_many_draws(forecast):
    draws = forecast.rvs(40_000, random_state=1)
    low, high = forecast.ppf(0.2), forecast.ppf(0.7) + 0.1
    over = (draws > high).mean(axis=0)
    within = ((draws >= low) & (draws <= high)).mean(axis=0)
    np.testing.assert_allclose(forecast.sf(high), over, atol=0.01)
    np.testing.assert_allclose(forecast.prob_between(low, high), within, atol=0.01)


def test_value_at_risk_and_shortfall_equal_those_of_many_draws(forecast):
    draws = np.sort(forecast.rvs(40_000, random_state=1), axis=0)
    n_tail = len(draws) // 10
    for tail, beyond in (("upper", draws[-n_tail:]), ("lower", draws[:n_tail])):
        shortfall = forecast.expected_shortfall(0.9, tail)
        v = forecast.value_at_risk(0.9, tail)
        # The tail's own spread, and that of the share of draws in it.
        variance = beyond.var(axis=0) + (beyond.mean(axis=0) - v) ** 2
        error = 4.0 * np.sqrt(variance / n_tail) + 1e-12
        assert (abs(shortfall - beyond.mean(axis=0)) < error).all()
        outside = draws > v if tail == "upper" else draws < v
        assert (outside.mean(axis=0) < 0.11).all()


@pytest.mark.parametrize("name", LOSSES)
def test_expected_loss_equals_brute_force(forecast, brute_force, name):
    loss = LOSSES[name]
    for q in (0.05, 0.6):
        action = forecast.ppf(q) + 1e-3
        expected = brute_force(
            forecast, lambda y, i, a=action: 1.0 * loss(y, a[i]), action[:, None]
        )
        got = expected_loss(forecast, loss, action)
        np.testing.assert_allclose(got, expected, rtol=2e-5)


def test_absolute_loss_is_exact(normal):
    ours, expected = normal
    action = expected.ppf([0.01, 0.3, 0.5, 0.8, 0.999])
    z = (action - expected.mean()) / expected.std()
    closed = z * (2.0 * stats.norm.cdf(z) - 1.0) + 2.0 * stats.norm.pdf(z)
    got = expected_loss(ours, LOSSES["absolute"], action)
    below, above = ours.partial_means(action)
    np.testing.assert_allclose(got, below + above, rtol=1e-9)
    np.testing.assert_allclose(got, expected.std() * closed, rtol=1e-4)


def test_nodes_that_do_not_know_the_action_are_much_worse(make):
    ours = make("mixed")
    action = ours.ppf(0.77) + 1e-3
    y, weights = ours.law.nodes()
    plain = (abs(y - action[:, None]) * weights).sum(axis=1)
    exact = np.sum(ours.partial_means(action), axis=0)
    error = abs(expected_loss(ours, LOSSES["absolute"], action) / exact - 1.0)
    assert error.max() < 1e-9
    assert abs(plain / exact - 1.0).max() > 1e-6


def test_breaks_beside_the_action_are_integrated_when_named(forecast, brute_force):
    """A deductible at 0.5 and a cap at 2.5, beside the bend at the action."""

    def loss(y, a):
        return np.clip(y - 0.5, 0.0, 2.0) + 0.5 * abs(y - a) + (y > 2.5)

    action = np.linspace(-0.5, 2.5, 5)
    breaks = np.tile([0.5, 2.5], (5, 1))
    expected = brute_force(
        forecast, lambda y, i: loss(y, action[i]), np.c_[action, breaks]
    )
    shared = expected_loss(forecast, loss, action, breaks=[0.5, 2.5])
    np.testing.assert_allclose(shared, expected, rtol=2e-5)
    own = expected_loss(forecast, loss, action, breaks=breaks)
    np.testing.assert_array_equal(own, shared)


def test_a_break_named_twice_counts_once(make):
    ours = make("normal")
    once = expected_loss(ours, LOSSES["fee"], 0.7)
    twice = expected_loss(ours, LOSSES["fee"], 0.7, breaks=[0.7])
    np.testing.assert_allclose(twice, once, rtol=1e-8)


def test_an_action_may_be_a_value_of_positive_probability(make):
    ours = make("mixed")
    for atom in (-1.0, 0.0):
        over = expected_loss(ours, lambda y, a: y > a, atom)
        np.testing.assert_allclose(over, ours.sf(atom), rtol=1e-9)
        reached = expected_loss(ours, lambda y, a: y >= a, atom)
        expected = 1.0 - ours.law.cdf_left(np.full((5, 1), atom))[:, 0]
        np.testing.assert_allclose(reached, expected, rtol=1e-9)
        away = expected_loss(ours, LOSSES["absolute"], atom)
        exact = np.sum(ours.partial_means(atom), axis=0)
        np.testing.assert_allclose(away, exact, rtol=1e-9)


def test_rows_of_one_value_pay_the_loss_of_that_value(make):
    ours = beside(make("normal"), [2.0], np.ones((5, 1)), [0.1])
    for action in (1.5, 2.0, 2.5):
        for loss in LOSSES.values():
            got = expected_loss(ours, loss, action)
            np.testing.assert_allclose(got, float(loss(2.0, action)), atol=1e-12)


def test_arguments_may_be_read_only(make, frozen):
    ours, action = make("wavy"), frozen(np.arange(5.0))
    got = expected_loss(ours, LOSSES["fee"], action, breaks=frozen([1.0]))
    again = expected_loss(ours, LOSSES["fee"], np.arange(5), breaks=[1])
    np.testing.assert_array_equal(got, again)


def test_a_loss_is_never_asked_beyond_the_bounds(make):
    ours = make("bounded")

    def loss(y, a):
        assert y.min() >= -2.0
        return np.sqrt(y + 2.0) * abs(y - a)

    for action in (-2.0, -2.0 + 1e-9, -3.0, 0.0):
        got = expected_loss(ours, loss, action)
        assert np.isfinite(got).all()


def test_a_table_of_losses_is_asked_for_its_values_only():
    table = np.array([[0.0, 4.0], [1.0, 2.0], [9.0, 0.0]])
    ours = of_values([0.0, 1.0, 2.0], [[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]])

    def loss(y, a):
        assert set(np.unique(y)) <= {0.0, 1.0, 2.0}
        return table[y.astype(int), a.astype(int)]

    got = expected_loss(ours, loss, [0.0, 1.0])
    np.testing.assert_allclose(got, [0.5 + 2.7, 0.2], rtol=1e-15)


def test_many_rows_are_taken_in_chunks():
    n = 5000
    p = np.random.default_rng(0).uniform(size=n)
    ours = of_values([0.0, 1.0], np.c_[1.0 - p, p])
    action = np.linspace(0.0, 1.0, n)
    got = expected_loss(ours, LOSSES["squared"], action)
    expected = (1.0 - p) * action**2 + p * (1.0 - action) ** 2
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_forecasts_of_no_rows_have_no_losses(make):
    none = make("normal")[:0]
    assert expected_loss(none, LOSSES["absolute"], 1.0).shape == (0,)


@pytest.mark.parametrize("name", ["normal", "discrete"])
def test_units_of_y_do_not_matter(make, name):
    """A far origin, as of prices: differences to the action keep their digits."""
    ours = make(name)
    near = expected_loss(ours, LOSSES["fee"], 1.1)
    far = expected_loss(ours, lambda y, a: LOSSES["fee"](y, a) + 1e6, 1.1)
    np.testing.assert_allclose(far - 1e6, near, rtol=1e-5)


def refuse(error, message, function, *args, **options):
    with pytest.raises(error, match=message):
        function(*args, **options)


def test_bad_losses_are_named(make):
    ours = make("normal")
    absolute = LOSSES["absolute"]
    shape = r"`loss` must return an array of the shape of its first argument"
    refuse(ValueError, shape, expected_loss, ours, lambda *of: of[1], 0.0)
    refuse(ValueError, shape, expected_loss, ours, lambda *of: len(of), 0.0)
    finite = r"`loss` must be finite, got nan for y = .* and action = 3\."
    refuse(ValueError, finite, expected_loss, ours, lambda *of: of[0] + np.nan, 3.0)
    shape = r"`action` must be a number or have shape \(5,\), got shape \(2, 5\)"
    refuse(ValueError, shape, expected_loss, ours, absolute, np.ones((2, 5)))
    refuse(ValueError, "`action` must be finite", expected_loss, ours, absolute, np.inf)
    shape = r"`breaks` must have shape \(5, any\), got shape \(2, 1\)"
    refuse(ValueError, shape, expected_loss, ours, absolute, 0.0, breaks=[[1.0], [2.0]])
