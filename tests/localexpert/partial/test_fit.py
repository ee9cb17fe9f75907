"""Fits on targets known in part: contracts, refusals, and truths of simulations."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import TimeSeriesSplit

from calibration import CalibrationWarning
from calibration.storage import load
from localexpert import LocalExpertRegressor, censored, seen_rows

# Some say of few rows that hardly any target is known.
pytestmark = pytest.mark.filterwarnings("ignore::calibration.CalibrationWarning")
INF = np.inf
N = 100


def draw(n=N, seed=0):
    """Return features (n, 2) and positive targets."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 2))
    return X, np.exp(1.0 + X[:, 0] + (0.2 + 0.3 * X[:, 1]) * rng.normal(size=n))


X, Y = draw()
LIMIT = np.random.default_rng(1).exponential(8.0, N)
RIGHT = censored(np.minimum(Y, LIMIT), Y <= LIMIT)
LEFT = np.column_stack([np.where(Y > LIMIT, Y, -INF), np.maximum(Y, LIMIT)])
EDGES = np.array([-INF, 2.5, 4.0, 6.0, INF])
PLACE = np.searchsorted(EDGES, Y)
CLASSES = np.column_stack([EDGES[PLACE - 1], EDGES[PLACE]])


def quick(**options):
    """Return a regressor that is fitted in a moment."""
    return LocalExpertRegressor(**{"effort": "quick", "random_state": 0, **options})


def test_known_targets_are_fitted_as_ever():
    one, two = quick().fit(X, Y), quick().fit(X, np.column_stack([Y, Y]))
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    np.testing.assert_array_equal(one.oof_prediction_, two.oof_prediction_)
    assert one.score(X, Y) == one.score(X, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match="`y` must be known in every row"):
        one.score(X, RIGHT)


@pytest.mark.parametrize(
    ("ends", "options", "given"),
    [
        (LEFT, {}, {"sample_weight": np.arange(N) % 3}),
        (CLASSES, {"bounds": (0.0, None)}, {}),
        (RIGHT, {"cv": 3, "stacker": "auto"}, {"groups": np.arange(N) % 40}),
        (RIGHT, {"cv": TimeSeriesSplit(2)}, {}),
        (RIGHT, {}, {"entry": np.where(np.arange(N) % 2, 0.5 * RIGHT[:, 0], -INF)}),
    ],
)
def test_contract(ends, options, given, tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(
        c=pd.Categorical(np.where(X[:, 0] > 0.5, "up", "down"))
    )
    model = quick(**options).fit(frame, ends, **given)
    rows, y = model.fitted_rows_, model.oof_targets_
    assert len(rows) == len(y) == len(model.oof_distribution_)
    assert rows.max() < N
    if "entry" not in given:
        held = model.oof_weights_ > 0.0
        assert (y >= ends[rows, 0])[held].all()
        assert (y <= ends[rows, 1])[held].all()
    low = -INF if "bounds" not in options else 0.0
    assert (model.predict_quantiles(frame, [0.01]) >= low).all()
    # All draws of a row have the same forecast, which has not seen any of them.
    oof, copies = model.oof_prediction_, rows == rows[:, None]
    assert (np.where(copies, oof, oof[:, None]) == oof[:, None]).all()
    model.save(tmp_path / "model.zip")
    again = load(tmp_path / "model.zip")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert "targets known" in str(model.report_)


def test_rows_of_which_nothing_is_known_have_no_say():
    ends = RIGHT.copy()
    ends[::4] = -INF, INF
    model = quick().fit(X, ends)
    assert (model.oof_weights_[model.fitted_rows_ % 4 == 0] == 0.0).all()
    # What is kept of training rows is of all others, each once.
    assert model.table_summary_.n_rows == N - N // 4
    seen = seen_rows(model, X, ends).learned
    np.testing.assert_array_equal(seen, np.arange(N) % 4 > 0)


@pytest.mark.parametrize("row", [(-50.0, -50.0), (0.0, 0.0), (1e9, INF), (-INF, 5.0)])
def test_targets_of_rows_without_weight_have_no_say(row):
    ends, weight = RIGHT.copy(), np.minimum(np.arange(N), 1)
    ends[0] = row
    one, two = (quick().fit(X, y, sample_weight=weight) for y in (ends, RIGHT))
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    assert one.report_ == two.report_


@pytest.mark.parametrize("code", [(1e9, 1e9), (1e9, INF), (-1e9, -1e9)])
def test_how_far_out_codes_are_has_no_say(code):
    ends = RIGHT.copy()
    ends[:2] = code
    median = quick().fit(X, ends).predict_dist(X).median().mean()
    wanted = quick().fit(X, RIGHT).predict_dist(X).median().mean()
    assert median == pytest.approx(wanted, rel=0.15)


@pytest.mark.parametrize(
    ("y", "options", "given", "message"),
    [
        (RIGHT, {"recalibrate": "conformal"}, {}, "`recalibrate` must set no rows as"),
        (RIGHT, {"bounds": (1.0, None)}, {}, "`bounds` must hold every y, got"),
        (RIGHT, {"effort": "none"}, {}, "`effort` must be one of"),
        (RIGHT, {}, {"entry": np.zeros(3)}, "`entry` must be as long as `?y"),
        (RIGHT, {}, {"entry": np.zeros((N, 1))}, r"`entry` must have shape \(n,\)"),
        (RIGHT, {}, {"entry": Y + 1.0}, r"`entry` must lie below y, got .* at posi"),
        (RIGHT, {}, {"entry": np.full(N, np.nan)}, "`entry` must lie below y, got nan"),
        (RIGHT[1:], {}, {}, "`y` must be as long as X"),
        ([[-INF, INF]] * N, {}, {}, "`y` must have a finite end in some row"),
    ],
)
def test_a_refused_fit_changes_nothing(y, options, given, message):
    model = quick().fit(X, Y)
    before = model.predict(X)
    model.set_params(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, **given)
    np.testing.assert_array_equal(model.predict(X), before)


def test_a_finite_end_needs_weight():
    ends = np.full((N, 2), [-INF, INF])
    ends[0] = 1.0
    with pytest.raises(ValueError, match="finite end in a row with a weight"):
        quick().fit(X, ends, sample_weight=np.arange(N) > 0)


def test_all_censored_is_wide_and_says_so():
    with pytest.warns(CalibrationWarning, match="hardly any known value") as caught:
        model = quick().fit(X, censored(Y, np.zeros(N)))
    assert [one.filename for one in caught] == [__file__] * len(caught)
    low, high = model.predict_interval(X).T
    assert (high > Y).all()
    assert (high - low).min() > np.ptp(Y)


def test_all_left_censored_is_wide_down_to_zero():
    ends = np.column_stack([np.full(N, -INF), np.linspace(1.0, 20.0, N)])
    with pytest.warns(CalibrationWarning, match="`y` holds hardly any known value or"):
        low, high = quick().fit(X, ends).predict_interval(X).T
    assert (low > 0.0).all()
    assert (low < 0.5).all()
    assert (high > 1.0).all()


@pytest.mark.parametrize("unit", [1.0, 1e-9])
def test_one_interval_for_all_is_where_forecasts_lie(unit):
    dist = quick().fit(X, unit * np.tile([3.0, 5.0], (N, 1))).predict_dist(X)
    low, high = dist.interval(0.9).T / unit
    assert (low > 3.0).all()
    assert (high < 5.0).all()
    assert (high > low + 0.1).all()


def test_demand_cut_off_by_stock_stays_on_its_lattice(rng):
    days, _ = draw(400)
    demand = rng.poisson(np.exp(1.0 + days[:, 0])).astype(float)
    stock = rng.poisson(4.0, len(days)).astype(float)
    model = quick().fit(days, censored(np.minimum(demand, stock), demand < stock))
    np.testing.assert_array_equal(model.oof_targets_, np.round(model.oof_targets_))
    assert model.report_.target == "discrete"
    assert model.predict(days).mean() > 0.9 * demand.mean()


@pytest.mark.slow
def test_censored_rows_are_worth_more_than_nothing():
    features, y = draw(1500, 2)
    new, came = draw(1500, 3)
    limit = np.random.default_rng(4).exponential(6.0, len(y))
    ends = censored(np.minimum(y, limit), y <= limit)
    known = ends[:, 1] < INF
    full = quick().fit(features, y).predict_dist(new).crps(came).mean()
    part = quick().fit(features, ends).predict_dist(new)
    left = quick().fit(features[known], y[known]).predict_dist(new).crps(came).mean()
    assert part.crps(came).mean() < 1.03 * full
    assert left > 1.04 * full
    assert 0.86 < part.covered(came, 0.9).mean() < 0.94
    assert abs(part.mean().mean() / came.mean() - 1.0) < 0.06


def test_nothing_unseen_lies_below_all_that_is_possible():
    n, rng = 800, np.random.default_rng(11)
    features = rng.normal(size=(n, 2))
    claim = np.exp(rng.normal(size=n) + 0.5 * features[:, 0])
    seen, least = claim > 0.5, np.full(n, 0.5)
    told = quick().fit(features[seen], claim[seen], entry=least[seen])
    dist = told.predict_dist(features)
    assert dist.cdf(0.0).max() == 0.0
    assert dist.cdf(0.5).mean() == pytest.approx((~seen).mean(), abs=0.06)
    assert dist.mean().mean() == pytest.approx(claim.mean(), rel=0.15)


@pytest.mark.slow
def test_truncated_rows_tell_of_those_not_seen():
    features, y = draw(1500, 5)
    entry = np.random.default_rng(6).uniform(0.0, 6.0, len(y))
    seen = y > entry
    new, came = draw(1500, 7)
    late = quick().fit(features[seen], y[seen], entry=entry[seen]).predict_dist(new)
    naive = quick().fit(features[seen], y[seen]).predict_dist(new)
    assert abs(late.mean().mean() / came.mean() - 1.0) < 0.04
    assert naive.mean().mean() > 1.05 * came.mean()
    assert late.crps(came).mean() < naive.crps(came).mean()
