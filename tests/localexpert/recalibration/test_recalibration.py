"""Recalibration: the fit against a generic optimiser, the guarantee by simulation."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.interpolate import BSpline
from scipy.optimize import minimize
from scipy.special import ndtr, ndtri
from sklearn.model_selection import PredefinedSplit

from calibration import CalibrationWarning
from localexpert import (
    ConformalRecalibration,
    GroupedRecalibration,
    PitRecalibration,
    WeightedConformal,
)
from localexpert.data.folds import make_folds
from localexpert.recalibration.conformal import set_aside
from localexpert.recalibration.groups import read_groups
from localexpert.recalibration.pit import PitCells, fit_curve
from tests.forecasts import normal, of_values

too_narrow = pytest.mark.filterwarnings("ignore:.* are much too narrow:Warning")


def same_law(n):
    """The standard normal law for every row, so that scores are outcomes."""
    return normal(np.zeros(n)).law


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
    assert_allclose(got.values[1:-1], knots + curve(best.x)(knots), atol=2e-3)
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
    assert_allclose(fitted.map_(levels), truth, atol=0.012)
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
    rest, test = folds[2]
    other = scores.copy()
    other[test] = 0.6 * rng.normal(size=len(test)) + 0.1
    first, second = (
        PitRecalibration((30.0,)).fit(same_law(n), z, folds=folds).oof_map_.values
        for z in (scores, other)
    )
    assert_array_equal(first[test], second[test])
    assert (np.abs(first[rest] - second[rest]).max(axis=1) > 1e-4).all()


def test_weights_are_repetitions(rng):
    n = 120
    weight = rng.integers(0, 4, n)
    y = 0.6 * rng.normal(size=n)
    rows = np.repeat(np.arange(n), weight)
    number = rng.integers(0, 3, n)
    once, often = ([*PredefinedSplit(k).split()] for k in (number, number[rows]))
    weighted = PitRecalibration().fit(same_law(n), y, weight.astype(float), once)
    repeated = PitRecalibration().fit(same_law(len(rows)), y[rows], None, often)
    assert weighted.strength_ == repeated.strength_ < np.inf
    assert_allclose(weighted.map_.values, repeated.map_.values, atol=1e-7)
    weighted = ConformalRecalibration().fit(same_law(n), y, weight)
    repeated = ConformalRecalibration().fit(same_law(len(rows)), y[rows])
    assert_allclose(weighted.map_.values, repeated.map_.values)
    assert_allclose(weighted.map_.knots, repeated.map_.knots)


# The forecast is wrong: V = F(Y) has a beta law instead of the uniform.
TRUE_PIT = stats.beta(2.0, 0.7)
LEVELS = np.linspace(0.01, 0.99, 99)


@too_narrow
@pytest.mark.parametrize(("m", "gap"), [(20, "auto"), (57, 4)])
def test_conformal_quantiles_cover_as_promised(m, gap):
    rng = np.random.default_rng(7)
    law, n_draws = same_law(m), 600
    covered = np.empty((n_draws, len(LEVELS)))
    for draw in range(n_draws):
        y = ndtri(TRUE_PIT.rvs(size=m, random_state=rng))
        fitted = ConformalRecalibration(gap).fit(law, y)
        # P(Y <= Q(a)) given the calibration rows, exactly.
        quantile = ndtr(fitted.map_.inverse(ndtri(LEVELS)[None, :]))[0]
        covered[draw] = TRUE_PIT.cdf(quantile)
    miss = np.abs(covered.mean(axis=0) - LEVELS)
    assert (miss <= fitted.bound_).all()
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
    assert_allclose(levels, ranks, atol=1e-9)
    assert_allclose(fitted.map_.knots[inner], np.sort(scores)[ranks - 1], atol=1e-9)
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
            assert_allclose(new.cdf(new.ppf(q)), q, atol=1e-4)


def test_a_share_of_the_rows_or_whole_groups_are_set_aside(rng):
    fitting, aside = set_aside(np.ones(1000), 5, None, 1)
    assert len(aside) == 200
    assert_array_equal(np.sort(np.append(fitting, aside)), range(1000))
    assert_array_equal(set_aside(np.ones(1000), 5, None, 1)[1], aside)
    assert len(set_aside(np.ones(120), 5, None, 0)[1]) == 50
    groups = np.array([f"g{g}" for g in rng.integers(0, 40, 1000)])
    fitting, aside = set_aside(np.ones(1000), 5, groups, 0)
    assert not set(groups[fitting]) & set(groups[aside])
    largest = np.unique(groups, return_counts=True)[1].max()
    assert 200 <= len(aside) < 200 + largest


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_bound_holds_for_forecasts_that_are_far_too_narrow(seed):
    rng, m, n = np.random.default_rng(seed), 1000, 20_000
    narrow = normal(np.zeros(m), 0.1)
    with pytest.warns(CalibrationWarning, match="much too narrow"):
        learned = ConformalRecalibration(random_state=0).fit(narrow, rng.normal(size=m))
    levels = np.array([0.05, 0.5, 0.95])
    quantiles = learned.apply(narrow[:1]).quantiles(levels)[0]
    shares = (rng.normal(size=(n, 1)) <= quantiles).mean(axis=0)
    # Both the rows of the calibration and the new ones are a sample.
    errors = np.sqrt(levels * (1.0 - levels) * (1.0 / m + 1.0 / n))
    assert (np.abs(shares - levels) <= learned.bound_ + 3.0 * errors).all()


def test_rows_without_weight_do_not_make_forecasts_too_narrow(rng):
    y, weight = np.append(rng.normal(size=400), np.full(12, 100.0)), np.ones(412)
    weight[400:] = 0.0
    found = ConformalRecalibration(random_state=0).fit(same_law(412), y, weight)
    assert found.bound_ < 0.1


def test_labels_of_totals_stay(rng):
    total = normal(np.zeros(4)).total(groups=["u", "u", "v", "v"])
    y = rng.normal(size=300)
    one_group = GroupedRecalibration(random_state=0).fit(said(300), y, None)
    assert_array_equal(one_group.apply(total, None).labels, ["u", "v"])
    for kind in (PitRecalibration, ConformalRecalibration):
        learned = kind(random_state=0).fit(said(300), y)
        assert_array_equal(learned.apply(total).labels, ["u", "v"], kind.__name__)


SPREADS = np.array([0.5, 1.0, 2.0, 4.0])


def said(n):
    """The same normal forecast for all."""
    return normal(np.zeros(n), 1.5)


@too_narrow
@pytest.mark.parametrize("kind", [ConformalRecalibration, WeightedConformal])
def test_each_group_is_a_recalibration_of_its_own_rows(rng, kind):
    group, new = rng.integers(4, size=800), rng.integers(4, size=60)
    y = SPREADS[group] * rng.normal(size=800)
    # Weights of the rows that are learned, and of the new ones, where there are any.
    weights = [rng.uniform(0.5, 2.0, size=n) for n in (800, 60)]
    known, own = weights if kind is WeightedConformal else (None, None)
    found = GroupedRecalibration(random_state=0).fit(said(800), y, group, known)
    got = found.apply(said(60), new, own).quantiles([0.1, 0.5, 0.95])
    for k in range(4):
        part, rows = group == k, new == k
        learned, asked = ((), ()) if known is None else ([known[part]], [own[rows]])
        alone = kind(random_state=0).fit(said(part.sum()), y[part], *learned)
        want = alone.apply(said(rows.sum()), *asked).quantiles([0.1, 0.5, 0.95])
        assert_allclose(got[rows], want)
        if known is not None:
            assert_allclose(found.bound(new, own)[rows], alone.bound(*asked))


def test_groups_are_combinations_of_columns_and_gaps_are_one(rng):
    a, b = rng.choice(["x", "y"], 400), rng.choice([1.0, np.nan], 400)
    table = pd.DataFrame({"a": a, "b": b})
    found = GroupedRecalibration("pit", random_state=0)
    found.fit(said(400), rng.normal(size=400), read_groups(table, ["a", "b"]))
    assert set(found.recalibrations_) == {(a, b) for a in "xy" for b in (1.0, None)}
    array = np.column_stack([rng.normal(size=400), np.arange(400) % 2])
    again = GroupedRecalibration(PitRecalibration(random_state=0))
    again.fit(said(400), rng.normal(size=400), read_groups(array, 1))
    assert set(again.recalibrations_) == {(0.0,), (1.0,)}
    days = np.array(["2020-01-01", "2020-01-02"] * 200, "datetime64[ns]")
    by_day = again.fit(said(400), rng.normal(size=400), days)
    want = by_day.apply(said(2), days[:2]).quantiles([0.1, 0.9])
    got = by_day.apply(said(2), pd.Series(days[:2])).quantiles([0.1, 0.9])
    assert_array_equal(got, want)
    assert len(by_day.apply(said(0), days[:0])) == 0


def fitted(recalibrate="conformal", groups=("a", "b") * 50, weight=None):
    made = GroupedRecalibration(recalibrate, random_state=0)
    return made.fit(said(100), np.zeros(100), groups, weight)


def fit(recalibration, law=30, y=30, weight=None):
    law = same_law(law) if isinstance(law, int) else law
    return recalibration.fit(law, np.zeros(y), weight)


TABLE, ONES = pd.DataFrame({"a": [1.0]}), np.ones(1000)
FEW = np.repeat([0.0, 1.0], [100, 20])
CONFORMAL, PIT = ConformalRecalibration, PitRecalibration


@too_narrow
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fit(CONFORMAL(), 19, 19), "at least 20 calibration rows"),
        (lambda: fit(CONFORMAL(), weight=[0] * 20 + [1] * 10), "rows, got 10"),
        (lambda: fit(CONFORMAL(), weight=[0.1] * 30), "rows, got 3"),
        (lambda: fit(CONFORMAL(16)), "`largest_gap` must be at most half the"),
        (lambda: fit(CONFORMAL("best")), '`largest_gap` must be "auto" or an'),
        (lambda: fit(PIT((-1.0,))), "`strengths` must"),
        (lambda: fit(PIT(30.0)), "`strengths` must be a list of numbers, got"),
        (lambda: fit(PIT(), 1, 1), "`y` must have at least two rows, got 1"),
        (lambda: fit(PIT(), 30, 5), "`y` must be as long as law, got 5"),
        (lambda: fit(PIT(), [1.0]), "`law` must be a Law or a Predictive"),
        (lambda: set_aside(ONES, 5, 0 * ONES, 0), "`groups` must be of sizes"),
        (lambda: set_aside(FEW, 5, None, 0), "must have at least 100 rows with weight"),
        (lambda: fitted(groups=["a"] * 90 + ["b"] * 10), "at least 20 .* 10 of 'b'"),
        (lambda: fitted("none"), "`recalibrate` must be"),
        (lambda: fitted(PIT(), weight=ONES[:100]), "`recalibrate` must be one of"),
        (lambda: fitted(weight=ONES[:3]), "`weight` must be as long as"),
        (lambda: fitted(weight=ONES[:100]).apply(said(1), ["a"]), "given as it was"),
        (lambda: fitted(groups=["a"] * 50), "groups"),
        (lambda: fitted(groups=[{}] * 100), "`groups` must be labels"),
        (
            lambda: fitted().apply(said(3), ["a", "c", "c"]),
            r"`groups` .* \('a', 'b'\), got 'c' in row 1 and 2 such rows",
        ),
        (lambda: read_groups(TABLE, "b"), r"`by` .* \('a'\), got 'b'"),
        (lambda: read_groups(np.eye(2), 7), "`by` must hold numbers of columns .* 7"),
        (lambda: read_groups(TABLE, []), "`by` must name at least one column"),
    ],
)
def test_refusals(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
