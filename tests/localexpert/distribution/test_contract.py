"""What every forecast must answer, and how near to the truth: makers by operations.

Nothing here knows what is behind a forecast; `contract_cases` holds the makers, what
is true of each row, and the bars.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import ndtr

from calibration import brier_score
from localexpert import PredictiveDistribution, survival_brier_score
from localexpert.recalibration.pit import PitRecalibration
from tests.forecasts import beside, normal, of_values
from tests.localexpert.distribution.contract_cases import (
    CASES,
    LEVELS,
    Truth,
    forecast_of,
)

SMOOTH = [name for name, case in CASES.items() if case.smooth]
# Levels of outcomes to be scored; none is at a step of the CDF of a discrete case.
SCORES = np.array([-3.09, -2.0, -1.1, -0.3, 0.05, 0.5, 1.2, 2.1, 3.09])
OUTCOMES = ndtr(SCORES)

every = pytest.mark.parametrize("name", CASES)


def _within(got, want, bar, case):
    """Check values that are to be so many standard deviations apart at most."""
    assert got.shape == want.shape
    assert_allclose(got / case.std(), want / case.std(), rtol=0.0, atol=bar)


@every
def test_crps_and_partial_means(name):
    case, dist = CASES[name], forecast_of(name)
    y = case.of_rows(lambda row: row.ppf(OUTCOMES))
    crps, *want = case.at(Truth.losses, y)
    assert_allclose(dist.crps(y), crps, rtol=case.bars.crps)
    below, above = dist.partial_means(y)
    _within(np.stack([below, above]), np.stack(want), case.bars.partial, case)
    # Their difference is y less the mean.
    _within(below - above, y - dist.mean(), 1e-6, case)


@pytest.mark.parametrize("name", [name for name in CASES if not CASES[name].discrete])
def test_log_score(name):
    case, dist = CASES[name], forecast_of(name)
    levels = np.array([0.001, 0.01, *np.linspace(0.05, 0.95, 19), 0.99, 0.999])
    y = case.of_rows(lambda row: row.ppf(levels))
    want = case.at(Truth.logpdf, y)
    held = y != 0.0 if name == "rain" else np.full(y.shape, True)
    assert_allclose(dist.logpdf(y)[held], want[held], rtol=0.0, atol=case.bars.log)
    assert_allclose(dist.log_score(y), -dist.logpdf(y), rtol=1e-12)
    assert_allclose(dist.pdf(y), np.exp(dist.logpdf(y)), rtol=1e-9)


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].end])
def test_density_near_and_at_the_end(name):
    case, dist = CASES[name], forecast_of(name)
    y = case.of_rows(lambda row: row.ppf([0.001, 0.0]))
    want = case.at(Truth.logpdf, y)
    assert_allclose(dist.logpdf(y[0]), want[0], rtol=0.0, atol=0.02)
    # On the inner side: by rounding the end itself may lie outside.
    inner = y[1] + 1e-6 * case.std()
    assert_allclose(dist.logpdf(inner), want[1], rtol=0.0, atol=0.1)
    assert_allclose(dist.cdf(y[1] - 1e-3 * case.std()), 0.0, rtol=0.0, atol=1e-3)


@every
def test_quantiles(name):
    case, dist = CASES[name], forecast_of(name)
    want = case.of_rows(lambda row: row.ppf(LEVELS))
    _within(dist.quantiles(LEVELS).T, want, case.bars.quantile, case)
    assert_allclose(dist.ppf(LEVELS[:, None]), dist.quantiles(LEVELS).T, rtol=1e-12)
    assert_allclose(dist.median(), dist.ppf(0.5), rtol=1e-12)
    assert (np.diff(dist.quantiles(LEVELS)) >= 0.0).all()
    ends = case.of_rows(lambda row: row.ppf([0.1, 0.9]))
    _within(dist.interval(0.8).T, ends, case.bars.quantile, case)


@every
def test_cdf_and_pmf(name):
    case, dist = CASES[name], forecast_of(name)
    grid = case.of_rows(lambda row: row.ppf([0.02, 0.3, 0.6, 0.98])) + 0.01
    assert_allclose(
        dist.cdf(grid), case.at(Truth.cdf, grid), rtol=0.0, atol=case.bars.cdf
    )
    assert_allclose(dist.cdf_at(grid[:, 1])[1], dist.cdf(grid)[:, 1], rtol=1e-12)
    low, high = dist.quantiles([0.001, 0.999]).T
    y = low + (high - low) * np.linspace(-0.5, 1.5, 101)[:, None]
    assert_allclose(dist.cdf(y) + dist.sf(y), 1.0, rtol=0.0, atol=1e-12)
    assert (np.diff(dist.cdf(y), axis=0) >= -1e-15).all()
    ends = [[-np.inf], [np.inf]]
    assert dist.cdf(ends).tolist() == dist.sf(ends)[::-1].tolist() == [[0] * 3, [1] * 3]
    assert_array_equal(dist.pmf(ends), 0.0)
    for i, row in enumerate(case.rows):
        at = np.append(row.values, row.ppf(0.61) + 0.25)
        pmf = dist[i].pmf(at[:, None])[:, 0]
        assert_allclose(pmf, np.append(row.masses, 0.0), rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("slip", [2.0**-52, 5e-8, -5e-8])
def test_outcomes_are_values_up_to_rounding(slip):
    values = np.array([0.1, 0.2, 0.3, 0.4])
    y, dist = values * (1.0 + slip), of_values(values, np.tile(values, (4, 1)))
    for found, want in ((dist.pit(y), dist.pit(values)), (dist.pmf(y), values)):
        assert_array_equal(found, want)
    maps = [PitRecalibration((10.0,)).fit(dist, came) for came in (y, values)]
    assert_array_equal(*(one.apply(dist).pmf(values) for one in maps))
    found = survival_brier_score(np.column_stack([y, y]), dist, [0.3])
    assert_allclose(found, brier_score(values <= 0.3, dist.cdf(0.3)))
    clipped = PredictiveDistribution.from_arrays(
        coefficients=normal([0.0], [1.0]).to_arrays()["coefficients"],
        ends=(0.1, 0.4),
        end_width=0.1,
    )
    assert_array_equal(*(clipped.cdf_at(came[[0, 3]]) for came in (y, values)))


@pytest.mark.parametrize("name", ["atoms", "lattice", "discrete"])
def test_outcomes_of_single_precision_are_values_that_lie_close(name):
    values, masses = np.array([12.344, 12.345, 12.346]), np.array([[0.2, 0.3, 0.1]])
    smooth = normal([12.0], [0.2])
    dist = beside(smooth, values, masses, [1e-3] * 3)
    if name == "discrete":
        dist = of_values(values, masses / 0.6)
    if name == "lattice":
        arrays = smooth.to_arrays() | {"moments": None, "step": 1e-3}
        dist = PredictiveDistribution.from_arrays(**arrays)
    single = values.astype(np.float32)
    assert (np.abs(single - values) > 1e-8).any()
    for method in ("cdf", "sf", "pmf", "logpdf", "log_score", "pit", "covered"):
        asked = getattr(dist, method)
        assert_array_equal(asked(single[:, None]), asked(values[:, None]))
    want = dist.given(lower=values[1]).pmf(values[:, None])
    assert_array_equal(dist.given(lower=single[1]).pmf(single[:, None]), want)


@pytest.mark.parametrize("atoms", [(), (0.3, 0.6, 0.7)])
def test_lattices_in_tenths_have_their_ends_and_atoms(atoms):
    curve = normal([0.5, 0.4], [0.2, 0.3]).to_arrays()["coefficients"]
    held = {"atoms": atoms, "masses": np.full((2, 3), 0.1)} if atoms else {}
    options = {"step": 0.1, "ends": (0.3, 0.7), **held}
    dist = PredictiveDistribution.from_arrays(coefficients=curve, **options)
    values = np.array([0.3, 0.4, 0.5, 0.6, 0.7])
    # As they are written, by products, and in single precision.
    products = np.arange(3, 8) * 0.1
    for y in (values, products, values.astype(np.float32).astype(float)):
        masses = np.diff(dist.cdf_at(values), axis=1, prepend=0.0)
        assert_allclose([dist.pmf(one) for one in y], masses.T, atol=1e-12)
        assert_allclose(masses.sum(axis=1), 1.0)
        assert_allclose(dist.pdf(values[:, None]), masses.T / 0.1)
        for k, low in enumerate(y):
            want = masses[:, k] / masses[:, k:].sum(axis=1)
            assert_allclose(dist.given(lower=low).pmf(low), want, atol=1e-9)
            assert_array_equal(dist.law.snap(low), dist.law.snap(values[k]))


@every
def test_pit_is_uniform(name):
    case, dist = CASES[name], forecast_of(name)
    rng = np.random.default_rng(0)
    y = case.of_rows(lambda row: row.ppf(rng.uniform(size=2000)))
    pit = dist.pit(y, random_state=1)
    assert min(stats.kstest(column, "uniform").pvalue for column in pit.T) > 1e-3
    middle = dist.cdf(y) - 0.5 * dist.pmf(y)
    assert_allclose(dist.pit(y), middle, rtol=0.0, atol=1e-9)


@every
def test_draws(name):
    case, dist = CASES[name], forecast_of(name)
    draws = dist.rvs(4000, random_state=0)
    assert (draws.shape, dist.rvs().shape) == ((4000, 3), (1, 3))
    assert_array_equal(draws, dist.rvs(4000, np.random.default_rng(0)))
    errors = np.abs(draws.mean(axis=0) - case.of_rows(Truth.mean))
    assert (errors < 5.0 * case.std() / np.sqrt(4000)).all()
    y = case.of_rows(lambda row: row.ppf([0.1, 0.5, 0.9]))
    want, shares = case.at(Truth.cdf, y), (draws <= y[:, None]).mean(axis=1)
    # Beside the noise of draws, as far off as the CDF may be.
    assert_allclose(shares, want, rtol=0.0, atol=0.03 + case.bars.cdf)
    # Rows are independent, and levels drawn by the same seed are no trap.
    assert np.abs(np.corrcoef(draws.T) - np.eye(3)).max() < 0.08
    pit = dist.pit(draws, random_state=0)
    assert_array_equal(pit, dist.pit(draws, random_state=0))
    assert stats.kstest(pit.ravel(), "uniform").pvalue > 1e-3


@every
@pytest.mark.parametrize("tail", ["upper", "lower"])
def test_expected_shortfall(name, tail):
    case, dist = CASES[name], forecast_of(name)
    up = tail == "upper"
    at = case.of_rows(lambda row: row.ppf(0.95 if up else 0.05))
    _, below, above = case.at(Truth.losses, at[None])[:, 0] / 0.05
    want = at + above if up else at - below
    got = dist.expected_shortfall(0.95, tail)
    # To be off by its 1 / 0.05 times is as good as the partial mean behind it.
    _within(got, want, 20.0 * case.bars.partial, case)
    risk = dist.value_at_risk(0.95, tail)
    _within(risk, at, case.bars.quantile, case)


@every
def test_shortest_interval(name):
    case, dist = CASES[name], forecast_of(name)
    got, want = dist.hdi(0.8).T, case.of_rows(lambda row: row.shortest(0.8))
    # Where it lies is hardly told by a density that is flat at its ends.
    _within(got[1] - got[0], want[1] - want[0], 2.0 * case.bars.quantile, case)
    held = dist.prob_between(*got)
    assert (held >= 0.8 - 1e-6).all()
    if case.end and name != "uniform":
        _within(got, want, 1e-2, case)


def test_the_shortest_interval_may_reach_the_upper_end():
    rising = PredictiveDistribution.from_scipy(stats.triang([1.0]))
    assert_allclose(rising.hdi(0.75), [[0.5, 1.0]], atol=5e-3)


@pytest.mark.parametrize("name", [*SMOOTH, "poisson", "lattice", "counts"])
def test_entropy(name):
    case, dist = CASES[name], forecast_of(name)
    want = case.of_rows(Truth.entropy)
    assert_allclose(dist.entropy(), want, rtol=0.0, atol=case.bars.entropy)


@every
def test_moments_and_expectations(name):
    case, dist = CASES[name], forecast_of(name)
    mean, sd = case.of_rows(Truth.mean), case.std()
    _within(dist.mean(), mean, case.bars.mean, case)
    assert_allclose(dist.std(), sd, rtol=case.bars.sd)
    assert_allclose(dist.var(), dist.std() ** 2, rtol=1e-12)
    _within(dist.expect(lambda y: y), mean, case.bars.mean, case)
    assert_allclose(dist.expect(np.ones_like), 1.0, rtol=1e-12)
    # Bounded and smooth, over the width of all rows.
    wide = float(sd.max())
    want = case.of_rows(lambda row: row.expect(lambda y: np.tanh(y / wide)))
    got = dist.expect(lambda y: np.tanh(y / wide))
    assert_allclose(got, want, rtol=0.0, atol=case.bars.cdf)


@every
def test_prob_between(name):
    case, dist = CASES[name], forecast_of(name)
    low, high = case.of_rows(lambda row: row.ppf([0.15, 0.7]))
    rows = enumerate(case.rows)
    # Of a value at the lower end the whole probability counts.
    want = [
        row.cdf(high[i]) - row.cdf(low[i]) + row.masses[row.values == low[i]].sum()
        for i, row in rows
    ]
    got = dist.prob_between(low, high)
    assert_allclose(got, want, rtol=0.0, atol=2.0 * case.bars.cdf)
    assert dist.prob_between(high + 1.0, low).tolist() == [0.0] * 3
    assert_allclose(dist.prob_between(-np.inf, np.inf), 1.0, rtol=1e-12)
