"""Correlation within groups, and what totals make of it."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from localexpert import PredictiveDistribution, concatenate, estimate_correlation
from tests.forecasts import normal


def of_groups(rng, sizes, rho, mean=0.0, scale=1.0):
    """Return targets of standard normal forecasts, and groups."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    shared = rng.normal(size=len(sizes))[group]
    own = rng.normal(size=len(group))
    return mean + scale * (np.sqrt(rho) * shared + np.sqrt(1.0 - rho) * own), group


def flat(n):
    return normal(np.zeros(n), np.ones(n))


def test_equal_groups_have_the_correlation_of_the_analysis_of_variance(rng):
    y, group = of_groups(rng, np.full(40, 6), 0.3)
    found = estimate_correlation(flat(240), y, group)
    table = y.reshape(40, 6)
    between = 6.0 * table.mean(axis=1).var(ddof=1)
    within = table.var(axis=1, ddof=1).mean()
    anova = (between - within) / (between + 5.0 * within)
    assert found.correlation == pytest.approx(anova, abs=1e-9)
    ratio = between / within / stats.f.ppf([0.975, 0.025], 39, 200)
    ends = (ratio - 1.0) / (ratio + 5.0)
    np.testing.assert_allclose(found.interval, ends, atol=1e-9)
    assert (found.n_groups, found.n_rows, found.coverage) == (40, 240, 0.95)


def test_neither_scale_and_mean_nor_order_are_correlation(rng):
    y, group = of_groups(rng, rng.integers(1, 9, size=60), 0.2)
    dist = flat(len(y))
    found = estimate_correlation(dist, y, group)
    other = estimate_correlation(dist, 0.5 + 2.0 * y, group)
    assert other.correlation == pytest.approx(found.correlation, abs=1e-6)
    order = rng.permutation(len(y))
    shuffled = estimate_correlation(dist, y[order], group[order])
    np.testing.assert_allclose(shuffled.interval, found.interval, atol=1e-9)


@pytest.mark.parametrize("rho", [0.0, 0.1, 0.5])
def test_intervals_cover_with_groups_of_any_size(rho):
    hits, means = [], []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        y, group = of_groups(rng, 1 + rng.geometric(0.2, size=12), rho)
        found = estimate_correlation(flat(len(y)), y, group, coverage=0.9)
        hits.append(found.interval[0] <= rho <= found.interval[1])
        means.append(found.correlation)
    assert abs(np.mean(hits) - 0.9) < 0.05
    assert abs(np.mean(means) - rho) < 0.05


def test_counts_have_the_correlation_of_their_copula(rng):
    z, group = of_groups(rng, np.full(2000, 4), 0.2)
    y = stats.poisson(0.7).ppf(stats.norm.cdf(z))
    k = np.arange(12.0)
    masses = np.tile(stats.poisson(0.7).pmf(k), (len(y), 1))
    masses /= masses.sum(axis=1, keepdims=True)
    dist = PredictiveDistribution.from_arrays(atoms=k, masses=masses)
    found = estimate_correlation(dist, y, group)
    assert found.correlation == pytest.approx(0.2, abs=0.03)
    assert found.interval[0] < 0.2 < found.interval[1]


def test_rows_that_are_all_one_or_stray_apart(rng):
    shared = rng.normal(size=50)
    one = estimate_correlation(flat(100), np.repeat(shared, 2), np.repeat(range(50), 2))
    assert one.correlation == 1.0
    apart = np.stack([shared, -shared], axis=1).ravel()
    least = estimate_correlation(flat(100), apart, np.repeat(range(50), 2))
    assert least.correlation == pytest.approx(-1.0, abs=1e-6)
    # What two rows can be, three cannot.
    total = flat(3).total(correlation=least, random_state=0)
    np.testing.assert_allclose(total.std(), 0.0, atol=0.02)


def test_totals_take_an_estimate_and_name_their_groups(rng):
    y, group = of_groups(rng, np.full(100, 10), 0.15)
    dist, week = flat(1000), np.array([f"w{g:02d}" for g in group])
    found = estimate_correlation(dist, y, week)
    total = dist.total(groups=week, correlation=found, random_state=0)
    plain = dist.total(groups=week, correlation=found.correlation, random_state=0)
    np.testing.assert_array_equal(total.std(), plain.std())
    variance = 10.0 + 90.0 * found.correlation
    np.testing.assert_allclose(total.var(), variance, rtol=1e-4)
    names = np.unique(week)
    np.testing.assert_array_equal(total.labels, names)
    assert total[names == "w07"].labels.tolist() == ["w07"]
    np.testing.assert_array_equal(total.to_frame().index, names)
    assert total.to_frame(index=range(100)).index[0] == 0
    doubled = total.transform(lambda v: 2.0 * v, lambda v: 0.5 * v)
    np.testing.assert_array_equal(doubled.labels, names)
    both = concatenate([total[:2], total[5:6]])
    assert both.labels.tolist() == ["w00", "w01", "w05"]
    assert concatenate([total, dist]).labels is None
    assert dist.total().labels is None
    dates = pd.date_range("2024-01-01", periods=100).to_numpy()
    np.testing.assert_array_equal(dist.total(groups=dates[group]).labels, dates)


def test_refusals(rng):
    dist, y = flat(4), rng.normal(size=4)
    with pytest.raises(ValueError, match=r"`groups` must be two or more, .* got 4 for"):
        estimate_correlation(dist, y, [1, 2, 3, 4])
    with pytest.raises(ValueError, match=r"`groups` must be two or more, .* got 1 for"):
        estimate_correlation(dist, y, np.zeros(4))
