"""Counts: inflated ends, long tails, and a value that is far from the others."""

import numpy as np
import pytest
from scipy.stats import nbinom

from localexpert import LocalExpertRegressor
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.learn.values import Cells, Tails
from tests.forecasts import normal, of_values


def sample_of(y):
    n = len(y)
    folds = [(np.arange(n // 2), np.arange(n // 2, n))]
    return Sample(Table.of(np.zeros((n, 1))), np.asarray(y, float), np.ones(n), folds)


def draw(rng, n):
    X = rng.normal(size=(n, 2))
    mean = np.exp(1.9 + 0.5 * X[:, 0])
    y = nbinom(3, 3.0 / (3.0 + mean)).rvs(random_state=rng)
    return X, np.where(rng.random(n) < 0.3, 0.0, y), 0.3 + 0.7 * (3 / (3 + mean)) ** 3


@pytest.mark.slow
def test_zeros_and_means_are_as_many_as_come(rng):
    X, y, _ = draw(rng, 2000)
    dist = LocalExpertRegressor(random_state=0).fit(X, y).oof_distribution_
    assert dist.pmf(0.0).mean() == pytest.approx((y == 0.0).mean(), abs=0.02)
    assert dist.mean().mean() == pytest.approx(y.mean(), rel=0.03)
    new, _, zero = draw(rng, 2000)
    model = LocalExpertRegressor(random_state=0).fit(X, y)
    assert model.predict_dist(new).pmf(0.0).mean() == pytest.approx(
        zero.mean(), abs=0.03
    )


def test_targets_are_learned_in_their_cells(rng):
    y = np.append(rng.poisson(6.0, size=500), 200.0)
    step = Cells(atoms=np.array([0.0]))
    step.fit(sample_of(y))
    z = step.there(y)
    assert (np.abs(z - y) <= 0.5).all()
    assert (z[y == 0.0] == 0.0).all()
    assert len(np.unique(z[y > 0.0])) == (y > 0.0).sum()
    np.testing.assert_array_equal(step.there(y), z)
    few = Cells()
    few.fit(sample_of(y % 5.0))
    np.testing.assert_array_equal(few.there(y % 5.0), y % 5.0)


def test_mass_is_that_of_the_cell(rng):
    y = rng.poisson(6.0, size=500).astype(float)
    step = Cells(bounds=(0.0, np.inf))
    step.fit(sample_of(y))
    inner = normal([6.0], 2.0)
    law = step.read(inner.law)
    at = np.arange(1.0, 10.0)
    expected = inner.law.cdf(at[None] + 0.5) - inner.law.cdf(at[None] - 0.5)
    # One row in 501 is shared by all.
    np.testing.assert_allclose(law.mass_at(at[None]), expected, atol=2e-3)
    assert law.masses.min() > 0.0


def test_no_count_is_impossible_beside_one_that_is_far_out():
    met = np.append(np.arange(70.0), [79.0, 95.0, 238.0])
    y = np.repeat(met, np.append(np.full(70, 20), [1, 1, 1]))
    step, cells = Tails((0.0, np.inf)), Cells(bounds=(0.0, np.inf))
    step.fit(sample_of(y))
    cells.fit(sample_of(y))
    law = step.read(cells.read(normal([30.0, 90.0], 20.0).law))
    at = np.append(np.arange(400.0), [1000.0, 1e5])
    masses = law.mass_at(np.tile(at, (2, 1)))
    assert (masses > 0.0).all()
    assert np.isfinite(law.logpdf(np.tile(at, (2, 1)))).all()
    np.testing.assert_allclose(masses.sum(axis=1), 1.0, atol=1e-3)
    assert (law.mass_at(np.array([[-1.0], [0.5]])) == 0.0).all()


def test_uneven_values_go_on_in_their_cells():
    values = np.cumsum(np.tile([1.0, 2.5, 0.7], 20))
    step = Tails((-np.inf, np.inf))
    step.fit(sample_of(np.repeat(values, 3)))
    law = of_values(values, np.full((1, 60), 1.0 / 60.0)).law
    between = 0.5 * (values[1:] + values[:-1])
    assert np.isfinite(step.read(law).logpdf(between[None])).all()
