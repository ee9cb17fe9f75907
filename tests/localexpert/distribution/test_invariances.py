"""What may not depend on order, batch, units, or the way a forecast was put together.

Nothing here knows what is behind a forecast; `contract_cases` holds the makers.
"""

import pickle
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from localexpert import (
    ConformalRecalibration,
    PitRecalibration,
    PredictiveDistribution,
    concatenate,
    crps_score,
    interval_coverage,
    pool,
)
from tests.localexpert.distribution import contract_cases
from tests.localexpert.law.kinds import FORECASTS

every = pytest.mark.parametrize("name", contract_cases.CASES)
SMOOTH = [name for name, case in contract_cases.CASES.items() if case.smooth]
LEVELS = np.array([0.003, 0.05, 0.25, 0.5, 0.76, 0.93, 0.998])

Answers = dict[str, contract_cases.Floats]


def _outcomes(dist):
    """Return values (7, n) that are met, and for smooth rows all over the place."""
    return dist.quantiles(LEVELS).T


def _answers(dist, y):
    """Return answers of all kinds, rows last."""
    below, above = dist.partial_means(y)
    found = {name: getattr(dist, name)(y) for name in POINTWISE}
    found |= {name: getattr(dist, name)() for name in SUMMARIES}
    return found | {
        "quantiles": dist.quantiles(LEVELS).T,
        "interval": dist.interval(0.8).T,
        "hdi": dist.hdi(0.8).T,
        "shortfall": dist.expected_shortfall(0.9),
        "expect": dist.expect(np.tanh),
        "below": below,
        "above": above,
    }


POINTWISE = ("cdf", "sf", "logpdf", "pmf", "crps", "pit", "log_score")
SUMMARIES = ("mean", "std", "skew", "kurtosis", "median", "mode", "entropy")
# Answers in units of y, those in its powers, and those that gain a log of the unit.
VALUES = ("mean", "median", "quantiles", "interval", "hdi", "mode", "shortfall")
SIZES = ("std", "crps", "below", "above")
SAME = ("cdf", "sf", "pit", "pmf", "skew", "kurtosis")


@cache
def _known(name):
    """Return outcomes and answers of a case, found once."""
    dist = contract_cases.forecast_of(name)
    return _outcomes(dist), _answers(dist, _outcomes(dist))


def _assert_same(got, want, rtol):
    for name, values in want.items():
        # What is next to nothing is so beside the greatest, not beside itself.
        finite = values[np.isfinite(values)]
        atol = rtol * float(np.abs(finite).max(initial=0.0))
        assert_allclose(got[name], values, rtol=rtol, atol=atol, err_msg=name)


@every
@pytest.mark.parametrize(
    "rows",
    [[2, 0, 1], [1], [0, 0, 2, 1, 1], slice(1, None), [True, False, True], 1, -1],
    ids=["order", "one", "again", "slice", "mask", "number", "last"],
)
def test_rows_do_not_know_of_each_other(name, rows):
    dist = contract_cases.forecast_of(name)
    y, known = _known(name)
    picked = np.atleast_1d(np.arange(3)[rows])
    some = dist[rows]
    assert isinstance(some, PredictiveDistribution)
    assert len(some) == len(picked)
    want = {key: values[..., picked] for key, values in known.items()}
    # Rows of lattices share the cells that far values are joined in.
    lattice = name in ("lattice", "counts")
    _assert_same(_answers(some, y[:, picked]), want, 1e-9 if lattice else 1e-12)


@pytest.mark.parametrize("way", ["pickled", "arrays"])
@pytest.mark.parametrize("name", [*contract_cases.CASES, *FORECASTS])
def test_what_comes_back_answers_to_the_bit(name, way):
    dist = FORECASTS[name] if name in FORECASTS else contract_cases.forecast_of(name)
    if way == "pickled":
        again = pickle.loads(pickle.dumps(dist))
    else:
        again = PredictiveDistribution.from_arrays(**dist.to_arrays())
    y = _outcomes(dist)
    got = _answers(again, y)
    for key, values in _answers(dist, y).items():
        assert_array_equal(got[key], values, err_msg=key)
    assert_array_equal(again.rvs(50, random_state=0), dist.rvs(50, random_state=0))
    assert repr(again) == repr(dist)
    assert dist.masses.shape == (3, len(dist.atoms))
    assert len(dist.coefficients) == 3


@every
def test_slices_put_together_are_the_whole(name):
    dist = contract_cases.forecast_of(name)
    whole = concatenate([dist[:1], dist[1:2], dist[2:]])
    assert len(whole) == 3
    y, known = _known(name)
    _assert_same(_answers(whole, y), known, 1e-9)
    twice = concatenate([dist, dist])
    assert len(twice) == 6
    assert_allclose(twice.crps(np.tile(y, 2)), np.tile(known["crps"], 2), rtol=1e-9)


@every
def test_shift_and_scale(name):
    dist = contract_cases.forecast_of(name)
    moved = dist.transform(lambda y: 3.0 * y + 2.0, lambda z: (z - 2.0) / 3.0)
    y, old = _known(name)
    if name not in SMOOTH:
        # Beside steps, where rounding of the map could change the side.
        y = y + 0.25
        old = _answers(dist, y)
    new = _answers(moved, 3.0 * y + 2.0)
    sd = dist.std()
    for key in VALUES:
        # A flat peak has no place of its own.
        bar = 5e-2 if key == "mode" else 1e-2 if key == "hdi" else 1e-4
        if not (key in ("mode", "hdi") and name == "uniform"):
            error = (new[key] - 2.0) / 3.0 - old[key]
            assert_allclose(error / sd, 0.0, atol=bar, err_msg=key)
    for key in SIZES:
        assert_allclose(new[key] / 3.0 / sd, old[key] / sd, atol=1e-4, err_msg=key)
    for key in SAME:
        # Third and fourth moments are told by what is far out, or do not exist.
        bar = 1e-2 if key in ("skew", "kurtosis") else 1e-6
        assert_allclose(new[key], old[key], rtol=bar, atol=bar, err_msg=key)
    if name in SMOOTH:
        step = np.log(3.0)
        assert_allclose(new["logpdf"], old["logpdf"] - step, atol=1e-5)
        assert_allclose(new["entropy"], old["entropy"] + step, atol=1e-3)


@every
def test_a_pool_of_one_is_it_and_of_equals_too(name):
    dist, (y, known) = contract_cases.forecast_of(name), _known(name)
    _assert_same(_answers(pool([dist]), y), known, 1e-9)
    if name != "rain":  # a probit pool is of smooth forecasts, or of discrete ones
        _assert_same(_answers(pool([dist], kind="probit"), y), known, 1e-9)
    weightless = pool([dist, dist[::-1]], [1.0, 0.0])
    assert_allclose(weightless.cdf(y), dist.cdf(y), rtol=0.0, atol=1e-9)
    assert_allclose(weightless.crps(y), dist.crps(y), rtol=1e-6)
    assert_allclose(pool([dist, dist]).cdf(y), known["cdf"], rtol=0.0, atol=1e-6)
    got, sd = _answers(pool([dist, dist], [0.2, 0.8]), y), dist.std()
    for key in ("cdf", "sf", "pmf", "pit", "logpdf"):
        assert_allclose(got[key], known[key], rtol=0.0, atol=1e-6, err_msg=key)
    for key in ("mean", "std", "quantiles", "crps", "below", "above"):
        # The deviations of heavy tails are told by scipy, and of pools by curves.
        room = 1e-4 if key == "std" else 1e-6
        assert_allclose(got[key] / sd, known[key] / sd, atol=room, err_msg=key)


@pytest.mark.parametrize(
    "make", [PitRecalibration, ConformalRecalibration], ids=["pit", "conformal"]
)
@every
def test_a_calibrated_forecast_is_hardly_recalibrated(name, make):
    dist, case = contract_cases.forecast_of(name), contract_cases.CASES[name]
    # Outcomes at the middles of equal shares, the same for each row.
    m = 400
    levels = np.random.default_rng(0).permutation((np.arange(m) + 0.5) / m)
    rows = np.arange(m) % 3
    every_y = dist.quantiles(levels)
    y = every_y[rows, np.arange(m)]
    learned = make(random_state=0).fit(dist[rows], y)
    new = learned.apply(dist)
    grid = _outcomes(dist)
    # Discrete outcomes are drawn inside of their jumps, so there is noise.
    bar = 0.05 if case.smooth else 0.1
    assert_allclose(new.cdf(grid), dist.cdf(grid), rtol=0.0, atol=bar)
    assert_allclose(new.mean() / case.std(), dist.mean() / case.std(), atol=2 * bar)
    assert crps_score(y, new[rows]) == pytest.approx(crps_score(y, dist[rows]), rel=bar)
    assert interval_coverage(y, new[rows], coverage=0.8) == pytest.approx(0.8, abs=bar)


@pytest.mark.parametrize("k", [2, 5, 19, 99])
@pytest.mark.parametrize("bounds", [None, (0.0, None), (0.0, 1e6)])
def test_quantiles_come_back(k, bounds, rng):
    levels = np.arange(1, k + 1) / (k + 1)
    rows = np.cumsum(rng.exponential(size=(50, k)) + 0.05, axis=1)
    dist = PredictiveDistribution.from_quantiles(rows, levels, bounds=bounds)
    assert_allclose(dist.quantiles(levels), rows, rtol=1e-9)
    assert_allclose(dist.cdf(rows.T), np.tile(levels[:, None], 50), rtol=1e-9)
    assert np.isfinite(dist.logpdf(rows.T)).all()


@pytest.mark.parametrize("df", [1.0, 1.5, 2.5, 3.0])
def test_moments_that_do_not_exist_are_not_finite(df):
    loc = np.array([0.0, 3.0])
    frozen = stats.t(df, loc, 2.0)
    dist = contract_cases.from_scipy(frozen)
    assert np.isfinite(dist.mean()).all() == (df > 1.0)
    assert np.isfinite(dist.std()).all() == (df > 2.0)
    assert not np.isfinite(dist.kurtosis()).any()
    # What does exist is as good as ever.
    if df > 1.0:
        assert_allclose(dist.mean(), loc, atol=1e-4)
        assert np.isfinite(dist.expected_shortfall(0.9)).all()
    else:
        assert not np.isfinite(dist.expected_shortfall(0.9)).any()
        # The integral of arctan(1 / x)^2 from 0 on is pi log 2.
        assert_allclose(dist.crps(loc), 4.0 * np.log(2.0) / np.pi, rtol=1e-3)
        assert np.isfinite(dist.logpdf([[1e6], [-1e6]])).all()
    if df > 2.0:
        assert_allclose(dist.std(), 2.0 * np.sqrt(df / (df - 2.0)), rtol=2e-3)
    assert_allclose(dist.quantiles(LEVELS).T, frozen.ppf(LEVELS[:, None]), atol=1e-2)
