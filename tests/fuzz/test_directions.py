"""Directions of columns, whatever the target: no CDF crosses that of a greater row."""

import numpy as np
import pytest

from localexpert import FrameRoad, LocalExpertRegressor, SharedBoosting, Transformed
from localexpert.experts import IndependentExperts
from localexpert.recalibration.pit import PitRecalibration
from tests.fuzz.cases import pick
from tests.fuzz.refusals import answer_or_refusal, named_in
from tests.fuzz.tables import draw_target, draw_weight
from tests.fuzz.test_fits import GIVEN, check_forecasts

SHARE = 0.02
pytestmark = pytest.mark.slow

ROUNDING = 1e-9
CALIBRATORS = ("auto", "isotonic", "beta", "venn_abers", "temperature", None)


def draw_model(rng, y, bounds, sign):
    """Return a regressor that is quick, on the target or on a function of it."""
    rounds = int(rng.choice([3, 20]))
    shared = SharedBoosting(max_rounds=rounds, min_rows_in_leaf=3, random_state=0)
    strategy = pick(rng, shared, shared, IndependentExperts(random_state=0))
    shape = {"strategy": strategy, "n_thresholds": int(rng.integers(1, 8))}
    if rng.uniform() < 0.3 and np.abs(y).max() < 1e9:
        shape = {"roads": Transformed(FrameRoad(**shape), np.arcsinh, np.sinh)}
    return LocalExpertRegressor(
        **shape,
        monotone={0: sign},
        calibrator=pick(rng, *CALIBRATORS),
        cv=int(rng.integers(2, 4)),
        smoothing=pick(rng, 0.0, 0.3, 10.0, "auto"),
        recalibrate=pick(rng, None, None, "pit", PitRecalibration((1.0,))),
        bounds=bounds,
        n_jobs=1,
        random_state=0,
    )


def test_rows_are_in_order(seed):
    rng = np.random.default_rng(seed)
    n, sign = int(rng.integers(20, 90)), int(rng.choice([-1, 1]))
    X = rng.normal(size=(n, int(rng.integers(1, 4)))) * 10.0 ** rng.integers(-9, 10)
    X = np.where(rng.uniform(size=X.shape) < pick(rng, 0.0, 0.15), np.nan, X)
    y, bounds = draw_target(rng, rng.normal(size=n))
    weight = draw_weight(rng, n)
    model = draw_model(rng, y, bounds, sign)
    fitted = answer_or_refusal(lambda: model.fit(X, y, weight))
    if isinstance(fitted, Exception):
        assert named_in(fitted) in GIVEN
        return
    seen = np.ones(n, dtype=bool) if weight is None else weight > 0.0
    check_forecasts(fitted.predict_dist(X), y, bounds, seen)
    low = X[rng.integers(n, size=200)]
    low[:, 0] = np.nan_to_num(low[:, 0]) * pick(rng, 1.0, 1e3)
    high = low.copy()
    step = np.nanstd(X[:, 0]) * 10.0 ** rng.uniform(-3.0, 2.0, size=200)
    high[:, 0] += sign * step
    check_order(*(fitted.predict_dist(side) for side in (low, high)), y[seen])


def check_order(low, high, y):
    """CDFs, quantiles and means of each row of `high` are those of more, or equal."""
    spread = y.std() + 1e-12 * np.abs(y).max()
    values = np.quantile(y, np.linspace(0.0, 1.0, 43))
    ends = [y.min() - spread, y.min() - 9.0 * spread, y.max() + spread]
    at = np.tile([*values, *ends, 0.0, -1.0, 1.0, 1e9], (200, 1))
    assert (high.law.cdf(at) - low.law.cdf(at)).max() <= ROUNDING
    assert (low.law.sf(at) - high.law.sf(at)).max() <= ROUNDING
    levels = [1e-9, *np.linspace(0.01, 0.99, 25), 1.0 - 1e-9]
    above, below = high.quantiles(levels), low.quantiles(levels)
    assert ((below - above) / np.maximum(spread, np.abs(above))).max() <= ROUNDING
    means = high.mean(), low.mean()
    size = np.maximum(spread, np.abs(means[0]))
    assert ((means[1] - means[0]) / size).max() <= ROUNDING
