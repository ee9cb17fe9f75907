"""What a forecast is asked: shapes, definitions, and the laws behind them."""

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy import stats

from localexpert.curves.base_cdf import BaseCDF
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.laws import DiscreteLaw, MixedLaw, SplineLaw
from localexpert.laws.pooled_law import PooledLaw
from localexpert.laws.recalibrated import recalibrate_law
from localexpert.laws.recentred import recentre
from localexpert.laws.score_map import ProbitMap

N = 5
INF = np.inf


def make_base():
    """A straight line between tails: close to a standard normal law."""
    levels = np.linspace(-1.4, 1.4, 5)
    return BaseCDF(levels, levels, np.ones(5), (-0.2, -0.2))


def make_normal(n=N, bounds=(-INF, INF)):
    """Rows whose CDF is the normal one between -8 and 8 deviations."""
    base = make_base()
    knots = np.concatenate(
        [
            np.linspace(-9.0, -1.4, 300),
            np.linspace(-1.2, 1.2, 7),
            np.linspace(1.4, 9.0, 300),
        ]
    )
    values, slopes = base.inverse(knots), 1.0 / base.derivative(base.inverse(knots))
    center, scale = np.arange(n) - 1.0, np.linspace(0.5, 3.0, n)
    rows = np.ones((n, 1))
    law = SplineLaw(center, scale, knots, rows * values, rows * slopes, base, bounds)
    return law, stats.norm(center, scale)


def make_discrete():
    probabilities = np.random.default_rng(1).dirichlet(np.ones(4), size=N)
    return DiscreteLaw([0.0, 1.0, 2.0, 5.0], probabilities)


def make_mixed():
    masses = np.linspace(0.1, 0.6, N)[:, None]
    return MixedLaw([0.0], masses, make_normal()[0], [0.1])


LAWS = {
    "spline": lambda: make_normal()[0],
    "bounded": lambda: make_normal(bounds=(-2.0, INF))[0],
    "discrete": make_discrete,
    "mixed": make_mixed,
}
POINTWISE = ["cdf", "sf", "pdf", "logpdf", "ppf", "pit", "crps", "log_score"]


@pytest.fixture(params=LAWS)
def forecast(request):
    return PredictiveDistribution(LAWS[request.param]())


@pytest.fixture
def normal():
    law, expected = make_normal()
    return PredictiveDistribution(law), expected


def test_normal_forecasts_equal_scipy(normal, rng):
    ours, expected = normal
    y = expected.mean() + expected.std() * rng.uniform(-4.0, 4.0, size=(7, N))
    for name in ("cdf", "sf", "pdf", "logpdf"):
        got, wanted = getattr(ours, name)(y), getattr(expected, name)(y)
        np.testing.assert_allclose(got, wanted, rtol=2e-3)
    q = rng.uniform(size=(7, N))
    np.testing.assert_allclose(ours.ppf(q), expected.ppf(q), atol=1e-4)
    np.testing.assert_allclose(ours.mean(), expected.mean(), atol=1e-5)
    np.testing.assert_allclose(ours.std(), expected.std(), rtol=1e-5)
    np.testing.assert_allclose(ours.var(), expected.var(), rtol=1e-5)
    np.testing.assert_allclose(ours.skew(), 0.0, atol=1e-5)
    np.testing.assert_allclose(ours.kurtosis(), 0.0, atol=1e-4)
    np.testing.assert_allclose(ours.median(), expected.median(), atol=1e-6)
    np.testing.assert_allclose(ours.entropy(), expected.entropy(), atol=1e-5)
    np.testing.assert_allclose(ours.mode(), expected.mean(), atol=0.01)
    np.testing.assert_allclose(
        ours.interval(0.8), np.transpose(expected.interval(0.8)), atol=1e-4
    )
    np.testing.assert_allclose(
        ours.hdi(0.8), np.transpose(expected.interval(0.8)), atol=0.01
    )


def test_normal_risk_measures_equal_their_closed_forms(normal):
    ours, expected = normal
    sd, mean = expected.std(), expected.mean()
    z = stats.norm.ppf(0.95)
    np.testing.assert_allclose(ours.value_at_risk(0.95), mean + z * sd, atol=1e-3)
    np.testing.assert_allclose(
        ours.value_at_risk(0.95, "lower"), mean - z * sd, atol=1e-3
    )
    shortfall = stats.norm.pdf(z) / 0.05 * sd
    np.testing.assert_allclose(
        ours.expected_shortfall(0.95), mean + shortfall, rtol=1e-4
    )
    lower = ours.expected_shortfall(0.95, tail="lower")
    np.testing.assert_allclose(lower, mean - shortfall, rtol=1e-4)
    np.testing.assert_allclose(ours.expect(np.square), mean**2 + sd**2, rtol=1e-5)
    moment = np.exp(0.3 * mean + 0.045 * sd**2)
    np.testing.assert_allclose(
        ours.expect(lambda y: np.exp(0.3 * y)), moment, rtol=1e-4
    )


@pytest.mark.parametrize("name", POINTWISE)
def test_arguments_broadcast_against_the_rows(forecast, rng, name):
    method = getattr(forecast, name)
    y = rng.uniform(size=(3, N)).round(1)
    full = method(y)
    assert full.shape == (3, N)
    assert method(0.5).shape == (N,)
    np.testing.assert_array_equal(method(0.5), method(np.full(N, 0.5)))
    np.testing.assert_array_equal(method(y[1]), full[1])
    np.testing.assert_array_equal(method(y[1].tolist()), full[1])
    np.testing.assert_array_equal(method(y[:, :1]), method(np.tile(y[:, :1], N)))
    assert method(y.reshape(3, 1, N)).shape == (3, 1, N)
    np.testing.assert_array_equal(method(y.reshape(3, 1, N))[:, 0], full)
    for i in range(N):
        np.testing.assert_array_equal(
            getattr(forecast[i], name)(y[:, i : i + 1])[:, 0], full[:, i]
        )


def test_shared_arguments_give_a_row_of_answers_per_row(forecast):
    levels = [0.1, 0.5, 0.9]
    quantiles = forecast.quantiles(levels)
    assert quantiles.shape == (N, 3)
    np.testing.assert_array_equal(quantiles[:, 1], forecast.median())
    np.testing.assert_array_equal(quantiles.T, forecast.ppf(np.reshape(levels, (3, 1))))
    assert forecast.quantiles(0.5).shape == (N, 1)
    grid = [-1.0, 0.0, 1.0, 2.5]
    np.testing.assert_array_equal(
        forecast.cdf_at(grid).T, forecast.cdf(np.reshape(grid, (4, 1)))
    )


def test_one_summary_a_row(forecast):
    for name in ("mean", "var", "std", "skew", "kurtosis", "median", "mode", "entropy"):
        values = getattr(forecast, name)()
        assert values.shape == (N,)
        assert np.isfinite(values).all()
    for name in ("interval", "hdi"):
        pairs = getattr(forecast, name)(0.5)
        assert pairs.shape == (N, 2)
        assert (pairs[:, 0] <= pairs[:, 1]).all()
        held = forecast.prob_between(*pairs.T)
        assert (held >= 0.5 - 1e-6).all()
    widths = [
        np.diff(getattr(forecast, name)(0.5), axis=1) for name in ("hdi", "interval")
    ]
    assert (widths[0] <= widths[1] + 1e-9).all()
    regions = forecast.hdi_regions(0.5)
    assert len(regions) == N
    assert all(region.ndim == 2 and region.shape[1] == 2 for region in regions)


def test_draws_follow_the_distribution(forecast):
    draws = forecast.rvs(4000, random_state=3)
    assert draws.shape == (4000, N)
    np.testing.assert_array_equal(draws, forecast.rvs(4000, np.random.default_rng(3)))
    error = np.abs(draws.mean(axis=0) - forecast.mean())
    assert (error < 4.5 * forecast.std() / np.sqrt(4000)).all()
    share = (draws <= 0.7).mean(axis=0)
    assert (np.abs(share - forecast.cdf(0.7)) < 0.04).all()
    correlation = np.corrcoef(draws.T) - np.eye(N)
    assert np.abs(correlation).max() < 0.08
    assert forecast.rvs().shape == (1, N)


def test_pit_is_uniform_over_draws(forecast):
    y = forecast.rvs(1500, random_state=0)
    # The seed that y was drawn with is no trap.
    for seed in (0, 1, np.random.default_rng(1)):
        pit = forecast.pit(y, seed)
        assert stats.kstest(pit.ravel(), "uniform").pvalue > 1e-3
    np.testing.assert_array_equal(forecast.pit(y, 1), forecast.pit(y, 1))
    middle = forecast.pit(y)
    left = forecast.cdf(y) - forecast.prob_between(y, y)
    np.testing.assert_allclose(middle, 0.5 * (left + forecast.cdf(y)), atol=1e-9)


def test_expectations_agree_with_moments_and_probabilities(forecast):
    mean = forecast.mean()
    np.testing.assert_allclose(forecast.expect(lambda y: y), mean, atol=1e-8)
    np.testing.assert_allclose(forecast.expect(np.ones_like), 1.0, rtol=1e-12)
    second = forecast.expect(lambda y: y**2)
    np.testing.assert_allclose(second - mean**2, forecast.var(), rtol=1e-6)


def test_probability_between_two_values(forecast, rng):
    a = rng.normal(size=(4, N))
    b = a + rng.uniform(size=(4, N))
    got = forecast.prob_between(a, b)
    np.testing.assert_allclose(got, forecast.cdf(b) - forecast.cdf(a), atol=1e-12)
    np.testing.assert_allclose(forecast.prob_between(-INF, INF), 1.0)
    np.testing.assert_allclose(forecast.prob_between(-INF, 0.0), forecast.cdf(0.0))
    assert (forecast.prob_between(1.0, 0.0) == 0.0).all()
    point = forecast.prob_between(1.0, 1.0)
    np.testing.assert_allclose(
        point,
        forecast.pdf(1.0) if isinstance(forecast.law, DiscreteLaw) else 0.0,
        atol=1e-12,
    )


def test_probability_between_values_far_in_the_upper_tail(normal):
    ours, expected = normal
    a = expected.mean() + 6.0 * expected.std()
    got = ours.prob_between(a, a + expected.std())
    np.testing.assert_allclose(got, stats.norm.sf(6.0) - stats.norm.sf(7.0), rtol=1e-2)


def test_shortfall_is_the_mean_of_the_quantiles_beyond(forecast):
    q = 0.8 + 0.2 * (np.arange(20_000) + 0.5) / 20_000
    upper = forecast.quantiles(q).mean(axis=1)
    np.testing.assert_allclose(forecast.expected_shortfall(0.8), upper, rtol=1e-3)
    lower = forecast.quantiles(1.0 - q).mean(axis=1)
    got = forecast.expected_shortfall(0.8, "lower")
    np.testing.assert_allclose(got, lower, rtol=1e-3, atol=1e-3)
    assert (got <= forecast.value_at_risk(0.8, "lower")).all()
    assert (forecast.expected_shortfall(0.8) >= forecast.value_at_risk(0.8)).all()


def test_a_true_forecast_has_the_least_expected_scores(forecast):
    y = forecast.rvs(3000, random_state=5)
    order = np.roll(np.arange(N), 1)
    other = forecast[order]
    for score in ("crps", "log_score"):
        own, wrong = (getattr(one, score)(y).mean() for one in (forecast, other))
        assert own < wrong or (score == "log_score" and np.isinf(wrong))
    entropy = forecast.entropy().mean()
    assert forecast.log_score(y).mean() == pytest.approx(entropy, abs=0.1)


def test_rows_are_picked_as_from_an_array(forecast):
    mean = forecast.mean()
    assert len(forecast) == N
    for rows in (
        slice(1, 3),
        slice(None, None, -1),
        [0, 2],
        np.arange(N) > 2,
        np.array([4, 4]),
    ):
        part = forecast[rows]
        np.testing.assert_allclose(part.mean(), mean[rows], rtol=1e-13)
        assert len(part) == len(mean[rows])
    for row in (0, -1, np.int64(2)):
        assert len(forecast[row]) == 1
        np.testing.assert_allclose(forecast[row].mean(), mean[row], rtol=1e-13)
    assert len(forecast[[False] * N]) == 0
    assert forecast[:0].quantiles([0.5]).shape == (0, 1)
    assert forecast[:0].expect(np.square).shape == (0,)
    assert [len(one) for one in forecast] == [1] * N
    with pytest.raises(IndexError, match="out of bounds"):
        forecast[N]


def every_kind():
    """Laws of all kinds by name."""
    smooth, bounded = LAWS["spline"](), LAWS["bounded"]()
    parts = {name: make() for name, make in LAWS.items()}
    parts["linear"] = PooledLaw([smooth, bounded], [0.5, 0.5])
    parts["probit"] = PooledLaw([smooth, smooth], [0.5, 0.5], "probit")
    bent = ProbitMap([-1.0, 1.0], [-1.0, 1.2], [1.0, 1.0])
    mapped = {
        f"{name} mapped": recalibrate_law(law, bent) for name, law in parts.items()
    }
    return {**parts, **mapped}


@pytest.mark.parametrize("name", every_kind())
def test_no_rows_give_empty_answers(name):
    none = PredictiveDistribution(every_kind()[name])[[]]
    assert len(none) == len(none[[]]) == len(none[:0]) == 0
    for method in POINTWISE:
        assert getattr(none, method)(0.5).shape == (0,)
        assert getattr(none, method)(np.full((3, 1), 0.5)).shape == (3, 0)
    for method in ("mean", "var", "std", "skew", "kurtosis", "median", "mode"):
        assert getattr(none, method)().shape == (0,)
    assert none.entropy().shape == none.expect(np.square).shape == (0,)
    assert none.interval().shape == none.hdi().shape == (0, 2)
    assert none.hdi_regions() == []
    assert none.rvs(4).shape == (4, 0)
    assert none.quantiles([0.1, 0.9]).shape == none.cdf_at([0.0, 1.0]).shape == (0, 2)
    assert [part.shape for part in none.partial_means(1.0)] == [(0,), (0,)]
    assert [part.shape[0] for part in none.law.nodes()] == [0, 0]
    assert len(recentre(none.law, np.empty(0))) == 0


def test_immutable_pickled_shown(forecast):
    copy = pickle.loads(pickle.dumps(forecast))
    np.testing.assert_array_equal(copy.mean(), forecast.mean())
    assert (
        repr(forecast)
        == f"PredictiveDistribution(n=5, law={type(forecast.law).__name__})"
    )
    with pytest.raises(FrozenInstanceError, match="law"):
        forecast.law = None
    forecast.mean()[0] = 1e9
    np.testing.assert_array_equal(copy.mean(), forecast.mean())


def test_inputs_are_not_written_to(forecast, frozen):
    y = frozen(np.linspace(0.1, 0.9, N))
    for name in POINTWISE:
        getattr(forecast, name)(y)


def test_far_targets_have_finite_scores(forecast):
    far = np.array([[1e5], [1e3], [-1.5]])
    assert (forecast.cdf(far)[0] == 1.0).all()
    assert np.isfinite(forecast.crps(far)).all()
    if isinstance(forecast.law, SplineLaw):
        assert np.isfinite(forecast.log_score(far)).all()
    assert (forecast.pdf([[INF], [-INF]]) == 0.0).all()
    assert (forecast.sf([[INF], [-INF]]) == [[0.0], [1.0]]).all()


def test_a_law_without_spread_has_no_skew():
    forecast = PredictiveDistribution(DiscreteLaw([1.0, 2.0], [[1.0, 0.0]]))
    assert forecast.std() == 0.0
    assert forecast.skew() == 0.0
    assert forecast.kurtosis() == 0.0


def test_moments_that_do_not_exist():
    one = np.ones((1, 1))
    base = BaseCDF([-1.0, 1.0], [-1.0, 1.0], [1.0, 1.0], (0.3, 0.3))
    forecast = PredictiveDistribution(SplineLaw([0], [1], [0], 0 * one, one, base))
    assert np.isfinite(forecast.skew()).all()
    assert forecast.kurtosis() == INF
    wide = PredictiveDistribution(SplineLaw([0], [1], [0], 0 * one, 0.7 * one, base))
    assert wide.var() == INF
    assert wide.std() == INF
    assert np.isnan(wide.skew()).all()
    assert np.isnan(wide.kurtosis()).all()


@pytest.mark.parametrize(
    ("method", "arguments", "error", "message"),
    [
        ("cdf", (np.nan,), ValueError, "`y` must not be NaN, got nan"),
        ("cdf", (np.zeros(3),), ValueError, r"`y` must broadcast against the 5 rows"),
        ("cdf", ("a",), TypeError, "`y` must be numeric"),
        ("crps", (INF,), ValueError, "`y` must be finite, got inf"),
        (
            "log_score",
            ([0, 0, 0, np.nan, 0],),
            ValueError,
            "`y` must be finite, got nan",
        ),
        ("pit", (INF,), ValueError, "`y` must be finite"),
        ("ppf", (1.5,), ValueError, r"`q` must lie in \[0, 1\], got 1\.5"),
        ("quantiles", ([0.5, -0.1],), ValueError, r"`levels` must lie in \[0, 1\]"),
        ("quantiles", ([[0.5, 0.1]],), ValueError, "`levels` must have shape"),
        ("cdf_at", ([np.nan],), ValueError, "`grid` must be finite"),
        ("interval", (1.0,), ValueError, r"`coverage` must lie in \(0, 1\), got 1\.0"),
        ("hdi", (0.0,), ValueError, r"`coverage` must lie in \(0, 1\)"),
        ("hdi_regions", ("x",), TypeError, "`coverage` must be a real number"),
        ("rvs", (0,), ValueError, "`size` must be at least 1, got 0"),
        ("rvs", (2.5,), TypeError, "`size` must be an integer"),
        ("value_at_risk", (0.9, "left"), ValueError, "`tail` must be one of 'upper'"),
        ("expected_shortfall", (2.0,), ValueError, r"`level` must lie in \(0, 1\)"),
        ("prob_between", (0.0, np.nan), ValueError, "`b` must not be NaN"),
        ("expect", (np.sum,), ValueError, "`func` must return an array of the shape"),
    ],
)
def test_refusals(normal, method, arguments, error, message):
    with pytest.raises(error, match=message):
        getattr(normal[0], method)(*arguments)


def test_only_laws_are_wrapped():
    with pytest.raises(TypeError, match="`law` must be a Law, got int"):
        PredictiveDistribution(3)
