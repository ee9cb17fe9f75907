"""Scores of targets known in part: brute force, full knowledge, scikit-survival."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from localexpert import (
    DistributionScorer,
    PredictiveDistribution,
    censored,
    concordance_index,
    crps_score,
    d_calibration_test,
    integrated_brier_score,
    interval_coverage,
    log_score,
    pit_test,
    survival_brier_score,
)
from tests.forecasts import beside, normal, of_values

INF = np.inf
expon = partial(stats.expon, 0.0)

# Lives of forty rows, of which some have no event, and means of their forecasts.
TIME = 0.01 + 4.0 * (0.618 * np.arange(40) % 1.0) ** 2
EVENT = np.arange(40) % 5 % 3 != 1
SCALE = 0.5 + 2.5 * (0.414 * np.arange(40) % 1.0)


def _lives(scale):
    return PredictiveDistribution.from_scipy(expon(scale))


def _trial(rng, n, slope):
    """Return features, lives of mean 1 + x, limits of mean 2 exp(slope x)."""
    x = rng.uniform(size=n)
    limits = 2.0 * np.exp(slope * x)
    return x, rng.exponential(1.0 + x), rng.exponential(limits), limits


def test_numbers_of_scikit_survival():
    """They are those of scikit-survival 0.28 for exponential survival functions."""
    y, dist, times = censored(TIME, EVENT), _lives(SCALE), [0.2, 0.5, 1.0, 1.5]
    want = [0.12316379, 0.20116434, 0.28375408, 0.27152341]
    assert_allclose(survival_brier_score(y, dist, times), want, rtol=2e-5)
    assert_allclose(survival_brier_score(y, dist, times, censoring=y), want, rtol=2e-5)
    assert integrated_brier_score(y, dist, times) == pytest.approx(0.23746015, rel=2e-5)
    assert concordance_index(y, SCALE) == pytest.approx(0.60038986)
    assert concordance_index(y, dist) == pytest.approx(0.60038986)


def test_events_come_before_limits_of_the_same_day(rng):
    n, masses = 200_000, np.array([0.3, 0.3, 0.2, 0.2])
    life, limit = rng.choice(4, n, p=masses) + 1.0, rng.integers(1, 5, n)
    dist = of_values(np.arange(1.0, 5.0), np.tile(masses, (n, 1)))
    y = censored(np.minimum(life, limit), life <= limit)
    survives = 1.0 - np.cumsum(masses)[:3]
    want = survives * (1.0 - survives)
    assert_allclose(survival_brier_score(y, dist, [1, 2, 3]), want, atol=0.003)
    # Rounded limits are those days, too.
    late = np.where(y == np.inf, y, np.nextafter(y, np.inf))
    assert_allclose(survival_brier_score(late, dist, [1, 2, 3]), want, atol=0.003)
    # The forecast of limits and their own steps say the same.
    limits = of_values(np.arange(1.0, 5.0), np.full((n, 4), 0.25))
    found = survival_brier_score(y, dist, [1, 2, 3], censoring=limits)
    assert_allclose(found, want, atol=0.003)


def _brute_crps(y, dist, limit):
    """Sum over fine thresholds; G by its definition, row by row."""
    time, event = y[:, 0], y[:, 0] == y[:, 1]
    low = float(min(dist.ppf(0.0005).min(), time.min()))
    high = float(min(max(dist.ppf(0.9995).max(), time.max()), limit))
    step = (high - low) / 20_000
    z = low + step * (np.arange(20_000) + 0.5)

    def share(t, passed=np.greater_equal):
        out = np.ones(np.shape(t))
        for v in np.unique(time[~event]):
            # Events at v come first.
            ends = ((time == v) & ~event).sum()
            left = 1.0 - ends / (ends + (time > v).sum())
            out = np.where(passed(t, v), out * left, out)
        return np.maximum(out, 1e-9)

    level, own = dist.cdf_at(z), share(time, np.greater)[:, None]
    alive, dead = time[:, None] > z, event[:, None] & (time[:, None] <= z)
    losses = alive / share(z) * level**2 + dead / own * (1.0 - level) ** 2
    return losses.sum(axis=1) * step


@pytest.mark.parametrize("kind", ["smooth", "counts", "mixed", "late"])
def test_crps_by_brute_force(kind, rng):
    n, limit = 40, INF
    time, event = rng.exponential(2.0, n), rng.random(n) < 0.7
    dist = _lives(rng.uniform(1.0, 3.0, n))
    if kind == "counts":
        time = np.floor(time)
        dist = of_values(np.arange(12.0), rng.dirichlet(np.ones(12), n))
    elif kind == "mixed":
        dist = beside(normal(np.ones(n), 1.0), [0.0, 1.0], np.full((n, 2), 0.2), [1, 1])
    elif kind == "late":  # the greatest row is censored, and nothing known beyond
        event[np.argmax(time)] = False
        limit = float(time.max())
    y = censored(time, event)
    want = _brute_crps(y, dist, limit)
    assert crps_score(y, dist) == pytest.approx(want.mean(), rel=2e-3)
    weight = rng.integers(0, 3, n)
    repeated = np.repeat(np.arange(n), weight)
    assert crps_score(y, dist, sample_weight=weight) == pytest.approx(
        crps_score(y[repeated], dist[repeated]), rel=1e-3
    )


def test_rows_without_weight_do_not_count():
    y, dist, weight = censored(TIME, EVENT), _lives(SCALE), np.ones(40)
    weight[1::3] = 0.0
    # Without the latest rows nobody is left who is not yet censored.
    weight[TIME > 2.0] = 0.0
    held = weight > 0.0
    brier = partial(survival_brier_score, times=[0.5, TIME[held].max()])
    for score in (crps_score, brier):
        want = score(y[held], dist[held])
        assert_allclose(score(y, dist, sample_weight=weight), want, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("slope", [0.0, 1.5])
def test_crps_is_that_of_full_knowledge(slope, rng):
    """Thresholds to where 5 % are not yet censored, whatever limits depend on."""
    x, life, limit, mean = _trial(rng, 6000, slope)
    y = censored(np.minimum(life, limit), life <= limit)
    dist, wrong = _lives(1.0 + x), _lives(np.full(len(x), 1.5))
    censoring = _lives(mean) if slope else None
    far = mean * np.log(20.0)
    for forecast in (dist, wrong):
        # The integrals of F^2 to the life or the limit, and of (1 - F)^2 from there on.
        scale, t = forecast.mean(), np.minimum(life, far)
        once, twice = -np.expm1(-t / scale), -np.expm1(-2.0 * t / scale)
        rest = np.exp(-2.0 * t / scale) - np.exp(-2.0 * far / scale)
        want = (t + scale * (0.5 * twice - 2.0 * once + 0.5 * rest)).mean()
        found = crps_score(y, forecast, censoring=censoring)
        assert found == pytest.approx(want, rel=0.04)
    # The true forecast wins, and by as much as with full knowledge.
    lost = [crps_score(y, one, censoring=censoring) for one in (wrong, dist)]
    gain = lost[0] - lost[1]
    full = crps_score(life, wrong) - crps_score(life, dist)
    assert gain == pytest.approx(full, abs=0.6 * full)
    assert gain > 0.0


@pytest.mark.parametrize("scale", [1.0, 1.3])
def test_true_forecasts_are_calibrated_and_others_not(scale, rng):
    x, life, limit, _ = _trial(rng, 4000, 1.0)
    y = censored(np.minimum(life, limit), life <= limit)
    halves = 2.0 * life[::3, None]
    y[::3] = 0.5 * np.hstack([np.floor(halves), np.ceil(halves)])
    dist = _lives(scale * (1.0 + x))
    p_values = [pit_test(y, dist)[1], d_calibration_test(y, dist)[1]]
    covered = [interval_coverage(y, dist, coverage=c) for c in (0.5, 0.9)]
    if scale == 1.0:
        assert min(p_values) > 1e-3
        assert_allclose(covered, [0.5, 0.9], atol=0.02)
    else:
        assert max(p_values) < 1e-6
        assert covered[1] > 0.905


@pytest.mark.parametrize("seed", range(3))
def test_d_calibration_holds_its_level_with_atoms(seed):
    rng = np.random.default_rng(seed)
    masses = rng.dirichlet(np.ones(6), 3000)
    dist = of_values(np.arange(6.0), masses)
    y = dist.rvs(1, random_state=rng)[0]
    limit = rng.integers(0, 6, 3000).astype(float)
    ends = censored(np.minimum(y, limit), y < limit)
    assert d_calibration_test(ends, dist)[1] > 0.01
    assert d_calibration_test(ends, dist[::-1])[1] < 1e-9


def test_log_score_of_intervals():
    dist = normal(np.zeros(4), 1.0)
    y = np.array([[0.5, 0.5], [1.0, INF], [-INF, -1.0], [-1.0, 1.0]])
    law = stats.norm
    between = np.log(law.cdf(1.0) - law.cdf(-1.0))
    want = [law.logpdf(0.5), law.logsf(1.0), law.logcdf(-1.0), between]
    assert log_score(y, dist) == pytest.approx(-np.mean(want), rel=1e-5)
    sold_out = of_values([0.0, 1.0, 2.0], np.array([[0.5, 0.3, 0.2]]))
    assert log_score([[1.0, INF]], sold_out) == pytest.approx(-np.log(0.5))


def test_known_ends_score_as_values(rng):
    masses = rng.dirichlet(np.ones(3), 50)
    for dist in (normal(rng.normal(size=50), 1.0), of_values([0.0, 1, 2], masses)):
        y = dist.rvs(random_state=rng)[0]
        ends, weight = np.column_stack([y, y]), rng.uniform(size=50)
        for score in (crps_score, log_score):
            told = [score(one, dist, sample_weight=weight) for one in (ends, y)]
            assert told[0] == told[1]
        assert pit_test(ends, dist) == pit_test(y, dist)
        covered = interval_coverage(y, dist)
        assert interval_coverage(ends, dist) == pytest.approx(covered, rel=1e-12)


def test_scorers_take_two_ends():
    y, model = censored(TIME, EVENT), SimpleNamespace(predict_dist=_lives)
    for loss in (crps_score, log_score):
        assert DistributionScorer(loss)(model, SCALE, y) == -loss(y, _lives(SCALE))


def test_concordance_by_pairs(rng):
    time, life = rng.integers(0, 6, 30).astype(float), rng.integers(0, 4, 30)
    event = rng.random(30) < 0.6
    right, pairs = 0.0, 0
    for i in range(30):
        for j in range(30):
            tie = time[i] == time[j] and not event[j]
            if event[i] and (time[i] < time[j] or tie):
                pairs += 1
                right += (life[i] < life[j]) + 0.5 * (life[i] == life[j])
    assert concordance_index(censored(time, event), life) == right / pairs


def test_refusals():
    dist, y = _lives(np.ones(2)), censored([1.0, 2.0], [True, False])
    late, times, many = censored([1, 1.5], [1, 0]), [1.0, 1.8], _lives(np.ones(3))
    for call, message in (
        (lambda: crps_score([[1, 2], [1, 1]], dist), "known or right-censored"),
        (lambda: log_score(y, many), "`y_true` must be as long as dist, got 2"),
        (lambda: crps_score(y, dist, censoring=many), "`censoring` must be as long"),
        (lambda: survival_brier_score(y, dist, times, censoring=late), "none at 1.8"),
        (lambda: integrated_brier_score(y, dist, [1.0]), "`times` must hold at lea"),
        (lambda: concordance_index(late[[1, 1]], [1, 2]), "`y_true` must hold a pair"),
        (lambda: d_calibration_test(y, dist, n_bins=1), "`n_bins` must be"),
        (lambda: crps_score(y, [1.0, 2.0]), "`dist` must be a PredictiveDistribution"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            call()
