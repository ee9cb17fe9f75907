"""Laws of sums over rows: closed forms, brute force, draws, and correlated rows."""

import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from localexpert import PredictiveDistribution, concatenate, estimate_correlation
from tests.forecasts import beside, normal, of_values

WEIGHTS = np.array([1.0, -2.0, 0.5, 0.0, 3.0])
CENTER, SCALE = np.arange(5.0) - 1.0, np.linspace(0.5, 3.0, 5)
NORMAL = normal(CENTER, SCALE)


def make_coins(n, p=0.3):
    return of_values([0.0, 1.0], np.tile([1 - p, p], (n, 1)))


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_sums_of_normals_are_normal(weights):
    w = np.ones(5) if weights is None else weights
    want = stats.norm(w @ CENTER, np.sqrt(w**2 @ SCALE**2))
    total = NORMAL.total(weights)
    levels = np.arange(1, 100) / 100
    y = want.ppf(levels)
    assert_allclose(total.cdf_at(y)[0], levels, atol=5e-4)
    assert_allclose(total.logpdf(y[:, None])[:, 0], want.logpdf(y), atol=2e-3)
    assert_allclose(total.mean(), want.mean(), atol=1e-4 * want.std())
    assert_allclose(total.std(), want.std(), rtol=1e-6)
    assert_allclose([total.skew(), total.kurtosis()], 0.0, atol=1e-6)
    # A tail of a millionth to a hundredth of itself.
    low, high = want.ppf([1e-6, 1.0 - 1e-6])
    assert_allclose([total.sf(high), total.cdf(low)], 1e-6, rtol=0.01)


def test_sums_of_coins_are_binomial():
    total, k = make_coins(40).total(), np.arange(41)
    assert total.law.is_discrete
    assert_allclose(total.cdf_at(k)[0], stats.binom(40, 0.3).cdf(k), atol=1e-13)
    assert_allclose([total.mean()[0], total.var()[0]], [12.0, 8.4], rtol=1e-12)


def test_rounding_of_many_rows_does_not_add_up():
    # The grid is a window around the mean.
    total, want = make_coins(100_000, 0.1).total(), stats.binom(100_000, 0.1)
    at = want.ppf([1e-9, 0.1, 0.5, 0.9, 1.0 - 1e-9])
    assert_allclose(total.cdf_at(at)[0], want.cdf(at), atol=1e-11)
    assert_allclose(total.pmf([9300, 10_710]), want.pmf([9300, 10_710]), rtol=0.1)
    scale, levels = np.linspace(0.2, 3.0, 30_000), [1e-9, 1e-8, 1e-3]
    total = normal(np.zeros(30_000), scale).total()
    want = stats.norm(0.0, np.sqrt(scale @ scale)).ppf(levels)
    assert_allclose(total.quantiles(levels)[0], want, rtol=1e-6)


def test_rows_much_narrower_than_the_sum_do_not_move_it():
    coins = concatenate([normal([0.0], 1000.0), make_coins(2000, 0.4)])
    want = stats.norm(800.0, np.sqrt(1e6 + 480.0)).ppf([0.05, 0.5, 0.95])
    assert_allclose(coins.total().cdf_at(want)[0], [0.05, 0.5, 0.95], atol=2e-3)


def test_a_narrow_peak_beside_a_wide_rest_stays_in_its_place():
    wide = PredictiveDistribution.from_scipy(stats.norm(1000.0, 200.0))
    rain, narrow = beside(wide, [0.0], [[0.6]], [0.1]), normal([5.0], [1.0])
    total = concatenate([rain, narrow]).total()
    y = np.array([4.0, 5.0, 6.0])
    assert_allclose(total.cdf_at(y)[0], 0.6 * stats.norm(5.0, 1.0).cdf(y), atol=0.005)


def test_correlated_tenths_are_counts_in_another_unit(rng):
    masses = rng.dirichlet(np.ones(3), 60)
    counts, tenths = (
        of_values(np.arange(3) * unit, masses).total(correlation=0.1, random_state=0)
        for unit in (1.0, 0.1)
    )
    k = np.arange(121.0)
    assert_allclose(tenths.pmf(0.1 * k[:, None]), counts.pmf(k[:, None]), atol=1e-9)


@pytest.mark.parametrize(
    ("values", "weights"),
    [
        ([0.0, 1.0, 2.0], [1.0, 1.0, 1.0]),
        ([-1.0, 0.5, 2.0], [0.1, -0.1, 0.3]),
        ([0.0, 1.0, 3.5], [1.0, np.pi, -np.sqrt(2.0)]),
        ([1e6, 1e6 + 1, 1e6 + 2], [1.0, 2.0, -1.0]),
    ],
)
def test_discrete_sums_are_all_sums(values, weights, rng):
    rows = rng.dirichlet(np.ones(3), size=3)
    rows[0] = [0.25, 0.0, 0.75]
    total = of_values(values, rows).total(weights)
    at = np.array([*itertools.product(range(3), repeat=3)])
    sums, masses = np.array(values)[at] @ weights, rows[range(3), at].prod(axis=1)
    near = np.abs(sums[:, None] - sums) < 1e-9 * max(1.0, np.abs(sums).max())
    assert_allclose(total.pmf(sums[:, None])[:, 0], near @ masses, atol=1e-14)
    assert_allclose(total.mean(), masses @ sums, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("law", "bar"), [(stats.gamma(1.5), 4e-3), (stats.pareto(0.5), 0.01)]
)
def test_sums_of_rain_keep_the_chance_of_none(law, bar, rng):
    base = law.dist(*law.args, scale=SCALE)
    smooth = PredictiveDistribution.from_scipy(base)
    rain = beside(smooth, [0.0], np.full((5, 1), 0.6), [0.1])
    total = rain.total()
    assert_allclose(total.pmf(0.0), 0.6**5, rtol=1e-6)
    assert_allclose(total.mean(), rain.mean().sum(), rtol=1e-9)
    assert_allclose(total.var(), rain.var().sum(), rtol=1e-9)
    draws = base.rvs((200_000, 5), rng) * (rng.uniform(size=(200_000, 5)) > 0.6)
    at = np.quantile(draws.sum(axis=1), [0.2, 0.5, 0.9, 0.99])
    assert_allclose(total.cdf_at(at)[0], [0.2, 0.5, 0.9, 0.99], atol=bar)
    # Beside a row without atoms there are none.
    both = concatenate([rain, normal([0.0])]).total()
    assert_allclose(both.pmf(0.0), 0.0, atol=1e-12)


def test_groups_are_totals_in_the_order_of_their_labels():
    weights, m = [1, 1, 2, 1, 0], CENTER
    total = NORMAL.total(groups=["b", "a", "b", "c", "a"], weights=weights)
    assert_allclose(total.mean(), [m[1], m[0] + 2.0 * m[2], m[3]], atol=1e-12)
    alone = NORMAL[[0, 2]].total([1.0, 2.0])
    assert_allclose(total[1].cdf_at([0.3, 1.0]), alone.cdf_at([0.3, 1.0]), atol=1e-12)
    nothing = NORMAL.total(weights=np.zeros(5))
    assert (nothing.mean(), nothing.pmf(0.0)) == (0.0, 1.0)
    coins = make_coins(6).total(groups=[0, 0, 0, 1, 1, 2])
    assert_allclose(coins.pmf(2.0), [3 * 0.09 * 0.7, 0.09, 0.0], atol=1e-14)
    assert total.labels.tolist() == ["a", "b", "c"]
    assert total[[2]].labels.tolist() == total.to_frame().index[[2]].tolist() == ["c"]
    assert total.to_frame(index=range(3)).index[0] == 0
    doubled = total.transform(lambda v: 2.0 * v, lambda v: 0.5 * v)
    assert concatenate([doubled[:2], total[2:]]).labels.tolist() == ["a", "b", "c"]
    assert concatenate([total, NORMAL]).labels is None
    assert NORMAL.total().labels is None
    dates = pd.date_range("2024-01-01", periods=5).to_numpy()
    assert_array_equal(NORMAL.total(groups=dates).labels, dates)


def test_moments_that_do_not_exist_stay_so():
    heavy = PredictiveDistribution.from_scipy(stats.t(1.7, [0.0, 1.0, 5.0]))
    total = heavy.total()
    assert_array_equal(total.var(), [np.inf])
    assert_allclose(total.mean(), heavy.mean().sum())


@pytest.mark.parametrize("rho", [-0.2, 0.3, 1.0])
def test_correlated_normals(rho):
    variance = rho * SCALE.sum() ** 2 + (1.0 - rho) * (SCALE @ SCALE)
    want = stats.norm(CENTER.sum(), np.sqrt(variance))
    total = NORMAL.total(correlation=rho, random_state=0)
    assert_allclose(total.mean(), want.mean(), rtol=1e-12)
    assert_allclose(total.var(), variance, rtol=1e-6)
    z = want.ppf([0.01, 0.1, 0.5, 0.9, 0.99])
    assert_allclose(total.cdf_at(z)[0], want.cdf(z), atol=5e-3)
    matrix = np.full((5, 5), rho) + (1.0 - rho) * np.eye(5)
    same = NORMAL.total(WEIGHTS, correlation=matrix, random_state=0)
    w = WEIGHTS * SCALE
    assert_allclose(same.var(), w @ matrix @ w, rtol=1e-6)


def of_groups(rng, sizes, rho):
    """Return targets of standard normal forecasts, and groups."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    shared, own = rng.normal(size=len(sizes))[group], rng.normal(size=len(group))
    return np.sqrt(rho) * shared + np.sqrt(1.0 - rho) * own, group


def test_equal_groups_have_the_correlation_of_the_analysis_of_variance(rng):
    y, group = of_groups(rng, np.full(40, 6), 0.3)
    dist = normal(np.zeros(240))
    found = estimate_correlation(dist, y, group)
    table = y.reshape(40, 6)
    between = 6.0 * table.mean(axis=1).var(ddof=1)
    within = table.var(axis=1, ddof=1).mean()
    anova = (between - within) / (between + 5.0 * within)
    assert found.correlation == pytest.approx(anova, abs=1e-9)
    ratio = between / within / stats.f.ppf([0.975, 0.025], 39, 200)
    assert_allclose(found.interval, (ratio - 1.0) / (ratio + 5.0), atol=1e-9)
    assert (found.n_groups, found.n_rows, found.coverage) == (40, 240, 0.95)
    # Neither scale and mean nor order are correlation.
    order = rng.permutation(240)
    other = estimate_correlation(dist, 0.5 + 2.0 * y[order], group[order])
    assert_allclose(other.interval, found.interval, atol=1e-6)
    # Totals take an estimate.
    total = dist.total(groups=group, correlation=found, random_state=0)
    assert_allclose(total.var(), 6.0 + 30.0 * found.correlation, rtol=1e-4)


@pytest.mark.parametrize("rho", [0.0, 0.1, 0.5])
def test_intervals_cover_with_groups_of_any_size(rho):
    hits, means = [], []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        y, group = of_groups(rng, 1 + rng.geometric(0.2, size=12), rho)
        dist = normal(np.zeros(len(y)))
        found = estimate_correlation(dist, y, group, coverage=0.9)
        hits.append(found.interval[0] <= rho <= found.interval[1])
        means.append(found.correlation)
    assert abs(np.mean(hits) - 0.9) < 0.05
    assert abs(np.mean(means) - rho) < 0.05


def test_counts_have_the_correlation_of_their_copula(rng):
    z, group = of_groups(rng, np.full(2000, 4), 0.2)
    counts = stats.poisson(0.7)
    dist = PredictiveDistribution.from_scipy(counts, len(z))
    found = estimate_correlation(dist, counts.ppf(stats.norm.cdf(z)), group)
    assert found.correlation == pytest.approx(0.2, abs=0.03)
    assert found.interval[0] < 0.2 < found.interval[1]


def test_rows_that_are_all_one_or_stray_apart(rng):
    shared, pairs = rng.normal(size=50), np.repeat(range(50), 2)
    dist = normal(np.zeros(100))
    one = estimate_correlation(dist, np.repeat(shared, 2), pairs)
    assert one.correlation == 1.0
    apart = np.stack([shared, -shared], axis=1).ravel()
    least = estimate_correlation(dist, apart, pairs)
    assert least.correlation == pytest.approx(-1.0, abs=1e-6)
    # What two rows can be, three cannot.
    total = dist[:3].total(correlation=least, random_state=0)
    assert_allclose(total.std(), 0.0, atol=0.02)


def test_one_winner_of_each_match_is_as_negative_as_can_be(rng):
    match, won = np.repeat(np.arange(200), 3), np.zeros((200, 3))
    won[np.arange(200), rng.integers(3, size=200)] = 1.0
    coins = make_coins(600, 1.0 / 3.0)
    found = estimate_correlation(coins, won.ravel(), match)
    assert_array_equal([found.correlation, *found.interval], [-0.5] * 3)
    for certain, y in ((coins, 0.0), (make_coins(600, 0.0), 0.0), (NORMAL[:1], 0.3)):
        dist = concatenate([certain] * (600 // len(certain)))
        with pytest.raises(ValueError, match="got one normal score in all rows"):
            estimate_correlation(dist, np.full(600, y), match)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": [1.0]}, "`weights` must have one for each of the 5"),
        ({"groups": [1, 2]}, "`groups` must have a label for each of"),
        ({"groups": [1, "a", None, 2, 2]}, "`groups` must not be missing"),
        ({"groups": np.array([1, "a", 2, 2, 2], object)}, "must be labels of one kind"),
        ({"correlation": 1.5}, "`correlation` must lie in"),
        ({"correlation": -0.5}, "`correlation` must be at least -1 / 4 for 5 rows"),
        ({"correlation": np.eye(3)}, "`correlation` must have shape"),
        ({"correlation": 2 * np.eye(5)}, "must be 1 on its diagonal"),
        ({"correlation": np.tri(5)}, "`correlation` must be symmetric"),
        ({"correlation": 1.9 * np.eye(5) - 0.9}, "must have no negative eigenvalue"),
        ({"self": NORMAL[:0]}, "`total` needs at least one row"),
    ],
)
def test_totals_refuse(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        PredictiveDistribution.total(**{"self": NORMAL, **arguments})


@pytest.mark.parametrize(("groups", "got"), [([1, 2, 3, 4, 5], 5), (np.zeros(5), 1)])
def test_correlations_of_no_groups_are_refused(groups, got):
    message = rf"`groups` must be two or more, .* got {got} for"
    with pytest.raises(ValueError, match=message):
        estimate_correlation(NORMAL, np.zeros(5), groups)


def test_totals_of_heavy_tails_have_their_quantiles(rng):
    """As of draws; sums of positive values are positive."""
    total = PredictiveDistribution.from_scipy(stats.lognorm(2.5 + np.zeros(20))).total()
    draws = np.exp(2.5 * rng.normal(size=(200_000, 20))).sum(axis=1)
    for level in (0.01, 0.5, 0.99):
        found = total.cdf(np.quantile(draws, level))[0]
        assert found == pytest.approx(level, abs=3e-3)
    assert total.ppf(0.001)[0] > 0.0
    # A weak correlation does not take the tail away.
    rows = PredictiveDistribution.from_scipy(stats.t(3), 3)
    alone, weak = rows.total(), rows.total(correlation=0.05, random_state=0)
    assert weak.expected_shortfall(0.999) > 0.9 * alone.expected_shortfall(0.999)


@pytest.mark.parametrize("weights", [[1.0, 1.0, 1.0], [1.0, 2.0, -0.5]])
@pytest.mark.parametrize("law", ["log-normal", "log-t", "Pareto", "Cauchy"])
def test_totals_of_very_heavy_tails_have_their_quantiles(law, weights, rng):
    """Their rows reach so far that no grid has cells for the middle of the sum."""
    logs = {"log-normal": stats.norm([3, 5, 4], 3.0), "log-t": stats.t(3, [3, 5, 4])}
    laws = {
        "Pareto": stats.pareto(0.5, scale=[1, 2, 3]),
        "Cauchy": stats.cauchy([0, 3, 9]),
    }
    base = {**logs, **laws}[law]
    rows, draws = PredictiveDistribution.from_scipy(base), base.rvs((200_000, 3), rng)
    if law in logs:
        rows, draws = rows.transform(np.exp, np.log), np.exp(draws)
    total, levels = rows.total(weights), np.linspace(0.01, 0.99, 50)
    found = total.cdf_at(np.quantile(draws @ weights, levels))[0]
    assert_allclose(found, levels, atol=0.02)
    if law != "Cauchy" and min(weights) > 0.0:
        assert total.ppf(1e-6)[0] > 0.0
    # A weak correlation is none.
    weak = rows.total(weights, correlation=1e-9, random_state=0)
    assert_allclose(weak.cdf_at(total.quantiles(levels)[0])[0], levels, atol=0.02)


def test_draws_of_a_group_do_not_hang_on_the_unit_of_another():
    counts = of_values(np.arange(4), np.full((10, 4), 0.25))
    group = np.repeat([0, 1], 5)
    weights = np.where(group == 0, 1.0, 1e13)
    both = counts.total(weights, groups=group, correlation=0.5, random_state=0)
    alone = counts[:5].total(correlation=0.5, random_state=0)
    assert both.std()[0] == pytest.approx(alone.std()[0], rel=0.05)


@pytest.mark.parametrize("weights", [[2.0, 1.0, 0.3], [2.5, 2.5, 2.5]])
def test_a_row_alone_is_itself_times_its_weight(weights):
    rows = np.sort(np.random.default_rng(0).gamma(0.5, size=(3, 4)), axis=1)
    levels = np.linspace(0.01, 0.99, 99)
    for dist in (
        PredictiveDistribution.from_scipy(stats.gamma(0.7, scale=[1.0, 2.0, 3.0])),
        PredictiveDistribution.from_quantiles(rows, [0.1, 0.4, 0.6, 0.9]),
    ):
        total = dist.total(weights, groups=[0, 1, 2])
        want = np.array(weights)[:, None] * dist.quantiles(levels)
        assert_allclose(total.quantiles(levels), want, rtol=1e-12)
        assert_allclose(total.mean(), weights * dist.mean(), rtol=1e-12)
