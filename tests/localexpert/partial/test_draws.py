"""Draws within intervals: their law, their weights, and what folds do with them."""

import numpy as np
import pytest
from scipy import stats

from localexpert import PredictiveDistribution
from localexpert.partial.draws import Outcomes, draw_between, mix_laws, row_losses
from tests.forecasts import of_values

INF = np.inf


def law_of(frozen, n):
    """Return the law of n rows that are alike."""
    return PredictiveDistribution.from_scipy(frozen, n).law


def test_quantiles_within_intervals_or_the_end_nearest_to_all_mass():
    share = np.array([0.2, 0.7, 0.5, 0.1, 0.9, 0.5, 0.5])
    lower = np.array([-INF, 1.0, 6.0, -0.5, -INF, 50.0, -60.0])
    upper = np.array([INF, INF, INF, 0.25, -7.0, INF, -55.0])
    found = draw_between(law_of(stats.norm(), 7), lower, upper, share)
    wanted = stats.truncnorm(lower[:5], upper[:5]).ppf(share[:5])
    np.testing.assert_allclose(found[:5], wanted, atol=1e-4)
    np.testing.assert_array_equal(found[5:], [50.0, -55.0])


def test_counts_stay_counts_and_both_ends_are_possible():
    n = 4000
    share = (np.arange(n) + 0.5) / n
    law = of_values(np.arange(4.0), np.tile([0.1, 0.2, 0.3, 0.4], (n, 1))).law
    found = draw_between(law, np.full(n, 1.0), np.full(n, 2.0), share)
    values, counts = np.unique(found, return_counts=True)
    np.testing.assert_array_equal(values, [1.0, 2.0])
    np.testing.assert_allclose(counts / n, [0.4, 0.6], atol=1e-3)


def test_copies_have_parts_of_the_weight_and_one_fold(rng):
    lower, upper = np.array([[1.0, 0.0, 2.0, 0.0], [1.0, INF, 2.0, 3.0]])
    weight = np.array([1.0, 2.0, 3.0, 4.0])
    outcomes = Outcomes.of(lower, upper, None, weight)
    laws = [law_of(stats.norm(), 4)] * 2
    draws = outcomes.draw(laws, np.full((2, 4), 0.5), 3, rng)
    np.testing.assert_allclose(np.bincount(draws.rows, draws.weight), weight)
    np.testing.assert_array_equal(np.bincount(draws.rows), [1, 3, 1, 3])
    assert (draws.y >= lower[draws.rows]).all()
    assert (draws.y <= upper[draws.rows]).all()
    first, second = np.array([0, 1]), np.array([2, 3])
    (folds,) = draws.spread([(first, second)])
    for part, rows in zip(folds, (first, second), strict=True):
        assert set(draws.rows[part]) == set(rows.tolist())
        assert len(part) == np.isin(draws.rows, rows).sum()


@pytest.mark.parametrize("n_draws", [1, 4])
def test_no_draw_of_unseen_targets_outweighs_its_row(n_draws, rng):
    y, weight = np.full(60, 4.0), np.repeat([0.5, 1.0, 50.0], 20)
    entry = np.tile(np.append(-INF, np.linspace(-2.0, 3.0, 19)), 3)
    outcomes = Outcomes.of(y, y, entry, weight)
    draws = outcomes.draw([law_of(stats.norm(), 60)], np.ones((1, 60)), n_draws, rng)
    assert (draws.weight <= weight[draws.rows]).all()
    odds = np.minimum(stats.norm.cdf(entry) / stats.norm.sf(entry), 20.0)
    found = np.bincount(draws.rows, draws.weight)
    np.testing.assert_allclose(found, weight * (1.0 + odds), rtol=1e-3)
    assert draws.repeats
    # Draws of a row are all different.
    assert len(np.unique(np.stack([draws.rows, draws.y]), axis=1).T) == len(draws.rows)


def test_each_law_is_drawn_from_by_its_share(rng):
    n = 2000
    outcomes = Outcomes.of(np.zeros(n), np.full(n, INF), None, np.ones(n))
    laws = [law_of(stats.uniform(left, 1.0), n) for left in (0.0, 5.0)]
    shares = np.array([[0.3], [0.7]]) * np.ones(n)
    draws = outcomes.draw(laws, shares, 4, rng)
    assert draws.weight[draws.y > 3.0].sum() / n == pytest.approx(0.7, abs=0.01)


@pytest.mark.parametrize(
    ("values", "drawn"),
    [(np.arange(6.0), np.arange(7.0, 10.0)), (np.array([0.0, 1.0, 2.7, 7.0]), [7.0])],
)
def test_draws_are_values_like_those_known(values, drawn, rng):
    known = np.repeat(values, 20)
    lower = np.append(known, np.full(30, 7.0))
    upper = np.append(known, np.full(30, INF))
    outcomes = Outcomes.of(lower, upper, None, np.ones(len(lower)))
    law = law_of(stats.uniform(6.0, 3.4), len(lower))
    found = outcomes.draw([law], np.ones((1, len(lower))), 1, rng).y
    np.testing.assert_array_equal(np.unique(found[len(known) :]), drawn)


@pytest.mark.parametrize("unit", [1.0, 1e20])
def test_row_losses_are_those_of_what_is_known(unit):
    """Those of densities differ by the logarithm of the unit."""
    lower = unit * np.array([0.3, 1.0, -INF, -1.0, 2.0, 9.0])
    upper = unit * np.array([0.3, INF, -2.0, 0.5, 2.0, 9.0])
    entry = unit * np.array([-INF, 0.5, -INF, -INF, 1.0, -INF])
    outcomes = Outcomes.of(lower, upper, entry, np.ones(6))
    found = row_losses(outcomes, law_of(stats.norm(0.0, unit), 6))
    cdf, logpdf = stats.norm.cdf, stats.norm(0.0, unit).logpdf
    wanted = [
        logpdf(0.3 * unit),
        np.log(cdf(-1.0) / cdf(-0.5)),
        np.log(cdf(-2.0)),
        np.log(cdf(0.5) - cdf(-1.0)),
        logpdf(2.0 * unit) - np.log(cdf(-1.0)),
        -31.28976 - np.log(unit),  # no loss is greater
    ]
    np.testing.assert_allclose(-found, wanted, rtol=1e-5, atol=1e-4)


def test_the_best_mixture_of_laws(rng):
    losses, weight = rng.gamma(2.0, size=(2, 300)), rng.uniform(size=300)
    parts = np.linspace(0.0, 1.0, 2001)
    mixed = np.column_stack([parts, 1.0 - parts]) @ np.exp(-losses)
    wanted = -(np.log(mixed) @ weight) / weight.sum()
    loss, shares = mix_laws(losses, weight)
    assert loss == pytest.approx(wanted.min(), abs=1e-5)
    np.testing.assert_allclose(shares.sum(axis=0), 1.0)
    best = parts[np.argmin(wanted)]
    assert np.average(shares[0], weights=weight) == pytest.approx(best, abs=5e-3)
