"""What a discrete target may take beside the values that were met."""

import numpy as np
import pytest
from scipy.stats import nbinom, poisson

from localexpert.learn.values import Support
from tests.forecasts import of_values


def support(values, weight, *bounds):
    return Support.of(np.array(values, float), np.array(weight, float), *bounds)


@pytest.mark.parametrize(
    ("values", "weight"),
    [
        ([0, 1], [3, 1]),  # a coin, however few rows
        ([1, 2, 3, 4, 5, 6], [100] * 6),  # a die
        ([1, 2, 4, 8], [30, 30, 30, 30]),  # doses: gaps that are meant
        ([2.0], [5]),
    ],
)
def test_values_that_are_well_known_are_all(values, weight):
    found = support(values, weight)
    np.testing.assert_array_equal(found.values, values)
    np.testing.assert_array_equal(found.shares, np.eye(len(values)))


def test_counts_have_gaps_and_go_on_upwards():
    found = support([0, 1, 2, 4], [50, 30, 9, 1])
    np.testing.assert_array_equal(found.values, np.arange(9.0))
    shares = found.shares
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    # What is well known keeps all that is said of it.
    np.testing.assert_array_equal(shares[:2, :2], np.eye(2))
    # 2 was met 9 times, and 3 beside it never: half a row in 9.
    assert shares[2, 3] / shares[2, 2] == pytest.approx(0.5 / 9.0)
    # 4 was met once: half a row on either side; further away there is less.
    assert shares[3, 3] / shares[3, 4] == pytest.approx(0.5)
    assert shares[3, 5:].sum() / shares[3, 4] == pytest.approx(0.5)
    assert (np.diff(shares[3, 5:]) < 0.0).all()


def test_no_bound_and_no_sign_is_crossed():
    # Zero is an end where it was met.
    assert support([0, 2, 3, 4], [1, 9, 9, 1]).values[[0, -1]].tolist() == [0.0, 8.0]
    assert support([1, 2, 3, 4], [1, 9, 9, 1]).values[[0, -1]].tolist() == [-2.0, 7.0]
    assert support([-4, -2, -1], [1, 9, 1]).values[[0, -1]].tolist() == [-7.0, 2.0]
    assert support([-1, 0, 1], [1, 9, 1]).values[[0, -1]].tolist() == [-3.0, 3.0]
    bounded = support([1, 2, 3, 4], [1, 9, 9, 1], (1.0, 5.0))
    assert bounded.values.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    grid = np.cumsum(np.full(9, 0.1))
    assert support(grid, [1] * 9, (0.1, 1.0)).values[[0, -1]] == pytest.approx([0.1, 1])


@pytest.mark.parametrize("far", [-1e12, 1e12, 9.97e36])
def test_values_far_out_have_no_part(far):
    met, weight = np.arange(7.0), np.array([30.0, 80, 90, 60, 30, 8, 2])
    near = support(met, weight)
    both = np.append(met, far)
    order = np.argsort(both)
    found = support(both[order], np.append(weight, 1.0)[order])
    np.testing.assert_array_equal(found.values, np.sort(np.append(near.values, far)))
    shares = found.shares[np.argsort(order)][:, np.argsort(found.values == far)]
    np.testing.assert_array_equal(shares[:-1, :-1][:, :], near.shares)
    assert shares[-1, -1] == 1.0


@pytest.mark.parametrize("law", [poisson(1.5), poisson(10), nbinom(1, 0.1)])
@pytest.mark.parametrize("n", [50, 500])
def test_new_counts_cost_little(rng, law, n):
    """Mean log loss over that of the truth, and the chance of what is impossible."""
    y = np.arange(400.0)[:, None]
    chance = law.pmf(y[:, 0])
    loss, impossible, closed = [], [], []
    for _ in range(100):
        values, weight = np.unique(
            law.rvs(size=n, random_state=rng), return_counts=True
        )
        found = support(values, weight)
        given = of_values(found.values, [(weight / n) @ found.shares]).pdf(y)[:, 0]
        loss.append(-chance @ np.log(np.maximum(given, 1e-9)) - law.entropy())
        impossible.append(chance[given == 0.0].sum())
        closed.append(1.0 - law.cdf(values.max()))
    assert np.mean(impossible) < 0.1 * np.mean(closed)
    assert 0.0 < np.mean(loss) < 40.0 / n


def test_a_row_is_spread_as_if_it_were_alone(rng):
    support = Support.of(np.arange(12.0), rng.integers(1, 25, size=12).astype(float))
    masses = rng.dirichlet(np.ones(12), size=41)
    spread = support.spread(masses)
    np.testing.assert_allclose(spread, masses @ support.shares, rtol=1e-14)
    for n in range(1, 41):
        np.testing.assert_array_equal(support.spread(masses[-n:]), spread[-n:])
