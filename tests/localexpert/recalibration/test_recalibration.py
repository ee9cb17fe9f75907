"""Recalibration: the fit against a generic optimiser, the guarantee by simulation."""

import numpy as np
import pytest
from scipy import stats
from scipy.interpolate import BSpline
from scipy.optimize import minimize
from scipy.special import ndtr, ndtri

from localexpert.data.folds import make_folds
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.metrics import crps_score, interval_coverage
from localexpert.recalibration.conformal import (
    ConformalRecalibration,
    set_aside,
    split_calibration_rows,
)
from localexpert.recalibration.pit import PitCells, PitRecalibration, fit_curve
from tests.forecasts import normal, of_values

too_narrow = pytest.mark.filterwarnings("ignore:.* are too narrow by far:Warning")


def same_law(n):
    """The standard normal law for every row, so that scores are outcomes."""
    return normal(np.zeros(n)).law


def coins(p):
    """Laws of 0 and 1."""
    return of_values([0.0, 1.0], np.column_stack([1.0 - p, p])).law


def test_the_curve_maximises_the_penalised_likelihood(rng):
    z = 0.8 * rng.normal(size=400) + 0.2
    fold = np.zeros(400, dtype=np.int64)
    cells = PitCells.of(z[:, None], 8.0, np.ones(400), fold, 1)
    strength = 40.0
    got = fit_curve(cells, strength)
    knots = np.linspace(-3.0, 3.0, 11)
    grid = np.linspace(-8.0, 8.0, 2001)
    uniform = strength * stats.norm.pdf(grid) / stats.norm.pdf(grid).sum()
    bends = np.linspace(-3.0, 3.0, 4001)

    def curve(d):
        # Flat and straight at both ends: three equal coefficients.
        coefficients = np.concatenate([d[[0, 0]], d, d[[-1, -1]]])
        return BSpline(0.6 * np.arange(-8.0, 9.0), coefficients, 3)

    def loss(d):
        spline = curve(d)

        def score(x):
            inside = np.clip(x, -3.0, 3.0)
            h, slope = x + spline(inside), 1.0 + spline(inside, 1)
            return np.log(np.maximum(slope, 1e-12)) - 0.5 * h**2 + 0.5 * x**2

        rough = np.trapezoid(spline(bends, 2) ** 2, bends)
        return 0.05 * strength * rough - score(z).sum() - uniform @ score(grid)

    best = minimize(loss, np.zeros(9), method="BFGS", options={"gtol": 1e-4})
    np.testing.assert_allclose(
        got.values[1:-1], knots + curve(best.x)(knots), atol=2e-3
    )
    assert np.abs(best.x).max() > 0.2


@pytest.mark.parametrize(
    "bend",
    [lambda z: 0.8 * z, lambda z: 1.3 * z, lambda z: z + 0.2, lambda z: np.sinh(z) / 2],
    ids=["wide", "narrow", "low", "light"],
)
def test_a_known_map_is_found(rng, bend):
    n = 20_000
    y = bend(rng.normal(size=n))
    fitted = PitRecalibration(random_state=0).fit(same_law(n), y)
    levels = np.linspace(0.01, 0.99, 99)
    truth = np.mean(bend(rng.normal(size=100_000)) <= ndtri(levels)[:, None], axis=1)
    assert np.abs(levels - truth).max() > 0.02
    np.testing.assert_allclose(fitted.map_(levels), truth, atol=0.012)
    pit = fitted.apply_oof(same_law(n)).cdf(y[:, None])[:, 0]
    assert stats.kstest(pit, "uniform").statistic < 0.015


@pytest.mark.parametrize("n", [10, 30, 300])
def test_nothing_is_changed_for_noise(n):
    unchanged, changes, test = [], [], np.random.default_rng(99).normal(size=20_000)
    for seed in range(20):
        y = np.random.default_rng(seed).normal(size=n)
        fitted = PitRecalibration(random_state=seed).fit(same_law(n), y)
        mapped, log_slopes = fitted.map_.forward(test[:, None])
        gain = log_slopes[:, 0] + 0.5 * (test**2 - mapped[:, 0] ** 2)
        changes.append(gain.mean())
        law = same_law(3)
        unchanged.append(fitted.apply(law) is law)
        assert unchanged[-1] == (fitted.strength_ == np.inf)
    assert np.mean(changes) > -0.005
    assert np.mean(unchanged) > 0.6


def test_out_of_fold_maps_have_not_seen_their_rows(rng):
    n = 400
    folds = make_folds(n, 4, random_state=0)
    scores = 0.6 * rng.normal(size=n)
    test = folds[2][1]
    other = scores.copy()
    other[test] = 0.6 * rng.normal(size=len(test)) + 0.1
    maps = [
        PitRecalibration((30.0,)).fit(same_law(n), z, folds=folds)
        for z in (scores, other)
    ]
    assert [one.strength_ for one in maps] == [30.0, 30.0]
    first, second = (one.oof_map_.values for one in maps)
    np.testing.assert_array_equal(first[test], second[test])
    rest = folds[2][0]
    assert (np.abs(first[rest] - second[rest]).max(axis=1) > 1e-4).all()


def test_weights_are_repetitions(rng):
    n = 120
    weight = rng.integers(0, 4, n)
    y = 0.6 * rng.normal(size=n)
    rows = np.repeat(np.arange(n), weight)
    number = rng.integers(0, 3, n)

    def folds_of(numbers):
        return [(np.flatnonzero(numbers != k), np.flatnonzero(numbers == k)) for k in
                range(3)]  # fmt: skip

    weighted = PitRecalibration().fit(
        same_law(n), y, weight.astype(float), folds_of(number)
    )
    repeated = PitRecalibration().fit(
        same_law(len(rows)), y[rows], None, folds_of(number[rows])
    )
    assert weighted.strength_ == repeated.strength_ < np.inf
    np.testing.assert_allclose(weighted.map_.values, repeated.map_.values, atol=1e-7)
    weighted = ConformalRecalibration().fit(same_law(n), y, weight)
    repeated = ConformalRecalibration().fit(same_law(len(rows)), y[rows])
    np.testing.assert_allclose(weighted.map_.values, repeated.map_.values)
    np.testing.assert_allclose(weighted.map_.knots, repeated.map_.knots)


# The forecast is wrong: V = F(Y) has a beta law instead of the uniform.
TRUE_PIT = stats.beta(2.0, 0.7)
LEVELS = np.linspace(0.01, 0.99, 99)


@too_narrow
@pytest.mark.parametrize(("m", "gap"), [(20, "auto"), (57, 4), (99, "auto"), (61, 10)])
def test_conformal_quantiles_cover_as_promised(m, gap):
    rng = np.random.default_rng(7)
    law, n_draws = same_law(m), 1500
    covered = np.empty((n_draws, len(LEVELS)))
    for draw in range(n_draws):
        y = ndtri(TRUE_PIT.rvs(size=m, random_state=rng))
        fitted = ConformalRecalibration(gap).fit(law, y)
        # P(Y <= Q(a)) given the calibration rows, exactly.
        quantile = ndtr(fitted.map_.inverse(ndtri(LEVELS)[None, :]))[0]
        covered[draw] = TRUE_PIT.cdf(quantile)
    miss = np.abs(covered.mean(axis=0) - LEVELS)
    noise = 4.0 * covered.std(axis=0) / np.sqrt(n_draws)
    assert (miss <= fitted.bound_ + noise).all()
    k = int(np.ceil(np.sqrt(m + 1))) if gap == "auto" else gap
    # What is lost where curves are read anew is counted, too.
    assert fitted.bound_ <= k / (m + 1) + 5e-3
    # As it is the forecast breaks the bound.
    assert np.abs(TRUE_PIT.cdf(LEVELS) - LEVELS).max() > 1.3 * fitted.bound_


@pytest.mark.parametrize(("m", "gap"), [(20, 1), (64, 7), (999, "auto"), (57, 29)])
def test_the_map_passes_through_order_statistics(rng, m, gap):
    scores = rng.normal(size=m)
    fitted = ConformalRecalibration(gap).fit(same_law(m), scores)
    inner = slice(1, -1)  # the first and last knot lead over to the tails
    levels = ndtr(fitted.map_.values[inner]) * (m + 1)
    ranks = np.round(levels).astype(int)
    np.testing.assert_allclose(levels, ranks, atol=1e-9)
    np.testing.assert_allclose(
        fitted.map_.knots[inner], np.sort(scores)[ranks - 1], atol=1e-9
    )
    gaps = np.diff(np.concatenate([[0], ranks, [m + 1]]))
    assert 0.0 <= fitted.bound_ - gaps.max() / (m + 1) < 0.02
    assert gaps.max() <= (gap if gap != "auto" else np.ceil(np.sqrt(m + 1)))


def test_jumps_cover_from_both_sides():
    rng, m, n_draws = np.random.default_rng(5), 60, 600
    values, truth = np.arange(4.0), np.array([0.5, 0.1, 0.1, 0.3])
    law = of_values(values, np.tile([0.2, 0.3, 0.3, 0.2], (m, 1))).law
    q = np.linspace(0.05, 0.95, 19)
    upto, below = np.empty((n_draws, 19)), np.empty((n_draws, 19))
    for draw in range(n_draws):
        y = rng.choice(values, size=m, p=truth)
        fitted = ConformalRecalibration(random_state=draw).fit(law, y)
        place = fitted.apply(law).ppf(np.tile(q, (m, 1)))[0].astype(int)
        upto[draw] = np.cumsum(truth)[place]
        below[draw] = (np.cumsum(truth) - truth)[place]
    noise = 4.0 * upto.std(axis=0) / np.sqrt(n_draws)
    assert (upto.mean(axis=0) >= q - fitted.bound_ - noise).all()
    assert (below.mean(axis=0) <= q + fitted.bound_ + noise).all()


@too_narrow
def test_ties_and_wild_forecasts_still_give_a_map(rng):
    n = 100
    for y in (np.zeros(n), np.repeat([1.0, 2.0], n // 2), np.full(n, 1e12)):
        law = same_law(n)
        for recalibration in (ConformalRecalibration(), PitRecalibration()):
            new = recalibration.fit(law, y).apply(law)
            assert np.isfinite(new.logpdf(y[:, None])).all()
            q = rng.uniform(size=(n, 1))
            np.testing.assert_allclose(new.cdf(new.ppf(q)), q, atol=1e-4)


def test_split_sets_a_share_aside():
    fitting, calibration = split_calibration_rows(1000, 0.2, random_state=1)
    assert len(calibration) == 200
    np.testing.assert_array_equal(np.sort(np.append(fitting, calibration)), range(1000))
    assert (np.diff(calibration) > 0).all()
    again = split_calibration_rows(1000, 0.2, random_state=1)[1]
    np.testing.assert_array_equal(calibration, again)
    assert len(split_calibration_rows(120)[1]) == 50


def test_split_keeps_groups_whole(rng):
    groups = np.array([f"g{g}" for g in rng.integers(0, 40, 1000)])
    fitting, calibration = split_calibration_rows(1000, groups=groups, random_state=0)
    assert not set(groups[fitting]) & set(groups[calibration])
    largest = np.unique(groups, return_counts=True)[1].max()
    assert 200 <= len(calibration) < 200 + largest


@pytest.mark.parametrize(
    ("recalibration", "m", "weight", "message"),
    [
        (ConformalRecalibration(), 19, None, "must have at least 20 calibration rows"),
        (ConformalRecalibration(), 30, np.repeat([0.0, 1.0], [20, 10]), "rows, got 10"),
        (ConformalRecalibration(), 30, np.full(30, 0.1), "calibration rows, got 3"),
        (
            ConformalRecalibration(16),
            30,
            None,
            "`largest_gap` must be at most half the",
        ),
        (
            ConformalRecalibration("best"),
            30,
            None,
            '`largest_gap` must be "auto" or an',
        ),
        (PitRecalibration((-1.0,)), 30, None, "`strengths` must"),
    ],
)
def test_what_is_refused(recalibration, m, weight, message):
    with pytest.raises(ValueError, match=message):
        recalibration.fit(same_law(m), np.zeros(m), weight)
    with pytest.raises(ValueError, match="`y` must be as long as law, got 5"):
        PitRecalibration().fit(same_law(30), np.zeros(5))


@pytest.mark.parametrize(
    ("n", "given", "message"),
    [
        (99, {}, "`n` must be at least 100 rows, 50 to fit and"),
        (1000, {"groups": np.zeros(1000)}, "`groups` must be of sizes that can be"),
        (1000, {"share": 0.7}, "`share` must"),
    ],
)
def test_splits_that_are_refused(n, given, message):
    with pytest.raises(ValueError, match=message):
        split_calibration_rows(n, **given)
    weight = np.repeat([0.0, 1.0], [100, 20])
    with pytest.raises(ValueError, match="`y` must have at least 100 rows with weight"):
        set_aside(weight, 5, None, 0)


class TestDistributionsOfAnyModel:
    """Recalibrations take what is no law of a fit of ours, and give it back in kind."""

    @pytest.fixture
    def pair(self, rng):
        center = rng.normal(size=900)
        # Forecasts of spread 1 and bias .5 of outcomes of spread 1.5.
        dist = PredictiveDistribution.from_scipy(stats.norm(center + 0.5, 1.0))
        return dist, rng.normal(center, 1.5)

    @pytest.mark.parametrize("kind", [PitRecalibration, ConformalRecalibration])
    def test_they_are_corrected_by_their_past(self, pair, kind):
        dist, y = pair
        recalibration = kind(random_state=0).fit(dist[:600], y[:600])
        corrected = recalibration.apply(dist[600:])
        assert isinstance(corrected, PredictiveDistribution)
        assert crps_score(y[600:], corrected) < 0.97 * crps_score(y[600:], dist[600:])
        assert abs(interval_coverage(y[600:], corrected) - 0.9) < 0.06
        assert interval_coverage(y[600:], dist[600:]) < 0.8
        honest = recalibration.apply_oof(dist[:600])
        assert len(honest) == 600

    def test_what_is_refused(self, pair):
        dist, y = pair
        fitted = PitRecalibration(random_state=0).fit(dist, y)
        for call in (lambda: PitRecalibration().fit(y, y), lambda: fitted.apply(y)):
            with pytest.raises(TypeError, match="`law` must be a Law or a Predictive"):
                call()
