"""Fits on tables, targets and weights of all kinds: sound, in order, or refused."""

import copy
import datetime as dt
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import dummy, naive_bayes, pipeline, tree
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from calibration import PlattCalibrator
from localexpert import (
    FrameRoad,
    JointForest,
    LocalExpertRegressor,
    SharedBoosting,
    Transformed,
)
from localexpert.experts import IndependentExperts
from localexpert.metrics import crps_score, pit_test
from localexpert.recalibration.pit import PitRecalibration
from tests.fuzz.cases import answer_or_refusal, named_in, pick

START = np.datetime64("2020-01-01")
WORDS = np.array(["a", "b", "ü", "", "NA", "1"])


def draw_table(rng, n):
    """Return rows of a container of some kind."""
    if rng.uniform() < 0.25:
        return draw_array(rng, n)
    names = [f"x{j}" for j in range(int(rng.integers(1, 4)))]
    columns = {}
    for name in names:
        make = COLUMNS[rng.integers(len(COLUMNS))]
        columns[name] = make(rng, rng.normal(size=n), rng.uniform(size=n) < 0.15)
    table = pd.DataFrame(columns)
    if rng.uniform() < 0.2:
        table.index = rng.integers(0, 5, n)
    if rng.uniform() < 0.1:
        table.columns = range(table.shape[1])
    return table


def draw_array(rng, n):
    """Return an array of numbers of some type, with gaps where it may have them."""
    X = rng.normal(size=(n, int(rng.integers(1, 4)))) * 10.0 ** rng.integers(-9, 10)
    kinds = [
        lambda: X,
        lambda: np.where(rng.uniform(size=X.shape) < 0.15, np.nan, X),
        lambda: X.astype(np.float32),
        lambda: np.round(X).astype(np.int64),
        lambda: X > 0.0,
        lambda: X.astype(object),
        lambda: np.asfortranarray(X),
        lambda: 1e8 + X,
        lambda: np.round(X) * 0.0,
        lambda: np.full(X.shape, np.nan),
    ]
    return kinds[rng.integers(len(kinds))]()


def holes(values, gaps, hole):
    """Return values as a list, with another in the gaps."""
    return [hole if g else v for v, g in zip(values, gaps, strict=True)]


def floats(_, z, gaps):
    return np.where(gaps, np.nan, z)


def plain(dtype):
    return lambda _, z, __: (3.0 * z).astype(dtype)


def nullable(dtype):
    def column(_, z, gaps):
        values = z > 0.0 if dtype == "boolean" else np.round(3.0 * z)
        return pd.array(holes(values.tolist(), gaps, pd.NA), dtype)

    return column


def words(rng, z, gaps):
    picked = rng.choice(WORDS, len(z)).tolist()
    hole = [None, np.nan, pd.NA][rng.integers(3)]
    return pd.Series(holes(picked, gaps, hole), dtype=object)


def texts(dtype):
    return lambda rng, z, gaps: pd.array(
        holes(rng.choice(WORDS, len(z)).tolist(), gaps, None), dtype
    )


def factor(rng, z, gaps):
    levels = rng.permutation([3, 1, 2]).tolist()
    picked = holes(rng.choice(levels, len(z)).tolist(), gaps, None)
    return pd.Categorical(picked, levels, ordered=bool(rng.integers(2)))


def times(_, z, gaps):
    return pd.Series(START + np.round(100.0 * z).astype("m8[D]")).mask(gaps)


def days(_, z, gaps):
    picked = [dt.date(2020, 1, 1) + dt.timedelta(days=int(9 * value)) for value in z]
    return pd.Series(holes(picked, gaps, None), dtype=object)


COLUMNS = [
    floats,
    floats,
    *(plain(dtype) for dtype in ("float32", "float16", "int8", "int64", "bool")),
    *(nullable(dtype) for dtype in ("Int64", "Float32", "boolean", "int64[pyarrow]")),
    *(texts(dtype) for dtype in ("string", "str", "string[pyarrow]")),
    words,
    factor,
    times,
    lambda *given: times(*given).dt.tz_localize("Europe/Berlin"),
    lambda _, z, gaps: pd.Series(np.round(1e3 * z).astype("m8[s]")).mask(gaps),
    days,
    lambda _, z, __: 1e8 + z,
    lambda _, z, __: np.full(len(z), np.nan),
    lambda _, z, __: pd.Series([None] * len(z), dtype=object),
]


def take(X, rows):
    """Return some rows of a container of any kind."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def as_floats(X):
    """Return a table whose numbers, of whatever type, are plain floats."""
    if isinstance(X, np.ndarray):
        return X.astype(np.float64)
    wide = X.copy()
    for j in range(X.shape[1]):
        column = X.iloc[:, j]
        if column.dtype.kind in "biuf":
            wide.isetitem(j, column.to_numpy(np.float64, na_value=np.nan))
    return wide


def is_plain(X):
    """Say whether a table holds numbers only, and no gaps: what linear models read."""
    return isinstance(X, np.ndarray) and X.dtype != object and np.isfinite(X).all()


def draw_target(rng, signal):
    """Return a target of some kind, and bounds that hold it or None."""
    n = len(signal)
    noise = signal + rng.normal(size=n)
    names = list(TARGETS)
    name = names[rng.integers(len(names))]
    y = np.asarray(TARGETS[name](rng, noise), dtype=np.float64)
    bounds = None
    if name == "bounded":
        bounds = (0.0, 1.0)
    elif rng.uniform() < 0.2:
        room = 0.1 * np.ptp(y) + 1e-9 * np.abs(y).max() + 1e-300
        bounds = (float(y.min() - room), None)
    return y, bounds


TARGETS = {
    "smooth": lambda _, z: z,
    "coarse": lambda _, z: np.round(z, 1),
    "whole numbers": lambda _, z: np.round(2.0 * z),
    "counts": lambda rng, z: rng.poisson(np.exp(np.clip(z, -2.0, 2.0))),
    "yes or no": lambda _, z: z > 0.0,
    "zeros and a rest": lambda _, z: np.maximum(z, 0.0),
    "claims": lambda rng, z: np.where(z > 1.0, rng.lognormal(5.0, 1.0, len(z)), 0.0),
    "two atoms": lambda _, z: np.clip(z, -0.7, 0.7),
    "bounded": lambda _, z: 1.0 / (1.0 + np.exp(-z)),
    "heavy tails": lambda rng, z: z + rng.standard_cauchy(len(z)),
    "skewed": lambda _, z: np.exp(3.0 * z),
    "one far value": lambda _, z: np.where(z == z.max(), 1e12, z),
    "fill values": lambda _, z: np.where(np.argsort(z) < 2, 9.96921e36, z),
    "neighbours": lambda rng, z: rng.choice([0.3, 0.1 + 0.2, 0.6, 0.1 * 6], len(z)),
    "sums": lambda rng, z: np.cumsum(rng.choice([0.0, 0.1], len(z))),
    "an offset": lambda _, z: 1e9 + z,
    "huge": lambda _, z: 1e60 * z,
    "tiny": lambda _, z: 1e-60 * z,
    "too huge": lambda _, z: 1e200 * z,
    "too tiny": lambda _, z: 1e-200 * z,
    "constant": lambda _, z: np.full(len(z), 0.1),
    "nearly constant": lambda _, z: np.where(z == z.max(), 1.0, 0.1),
}


def draw_weight(rng, n):
    """Return weights that some of all rows have, or None."""
    kinds = [
        None,
        None,
        rng.integers(0, 4, n).astype(float),
        rng.uniform(0.1, 3.0, n),
        np.where(rng.uniform(size=n) < 0.3, 0.0, 1.0),
        10.0 ** rng.integers(-3, 4, n),
        1e-9 * rng.uniform(0.5, 2.0, n),
    ]
    weight = kinds[rng.integers(len(kinds))]
    return None if weight is None or not weight.any() else weight


SHARE = 0.08
pytestmark = pytest.mark.slow

# What a refusal may be about: nothing that was not given.
GIVEN = ("X", "y", "sample_weight", "bounds")
# Scaled, for of columns of size 1e8 or 1e60 least squares make rounding.
SCALED_RIDGE = pipeline.make_pipeline(StandardScaler(), Ridge(solver="svd"))
LEVELS = [0.01, 0.1, 0.5, 0.9, 0.99]


def draw_model(rng, X, bounds):
    """Return a regressor that is quick, whatever its strategy."""
    plain = is_plain(X)
    shared = SharedBoosting(max_rounds=4, min_rows_in_leaf=3, random_state=0)
    forest = JointForest(n_estimators=4, random_state=0)
    expert, strategy = pick(rng, (None, shared), (None, forest), (None, forest))
    if plain and rng.uniform() < 0.3:
        stump = tree.DecisionTreeClassifier(max_depth=2)
        expert = pick(rng, LogisticRegression(), naive_bayes.BernoulliNB(), stump)
        strategy = "independent"
    return LocalExpertRegressor(
        expert,
        strategy=strategy,
        n_thresholds=int(rng.integers(1, 6)),
        thresholds=pick(rng, "quantile", "uniform"),
        frame=pick(rng, None, "center", "standardize"),
        center=SCALED_RIDGE if plain else dummy.DummyRegressor(),
        calibrator=pick(rng, "auto", "isotonic", None, PlattCalibrator()),
        cv=int(rng.integers(2, 4)),
        smoothing=pick(rng, 0.1, 10.0, "pchip", "smoothing_spline", "auto"),
        recalibrate=pick(rng, None, None, "pit"),
        stacker=pick(rng, None, None, None, SCALED_RIDGE),
        bounds=bounds,
        n_jobs=1,
        random_state=0,
    )


def fit(model, X, y, weight):
    """Return the model fitted, or None where it refuses what it was given."""
    fitted = answer_or_refusal(lambda: copy.deepcopy(model).fit(X, y, weight))
    if not isinstance(fitted, Exception):
        return fitted
    assert named_in(fitted) in GIVEN
    return None


# A category that only rows of weight 0 hold is not met in `fit`.
@pytest.mark.filterwarnings("ignore:`X` holds categories not met")
def test_fit(seed):
    rng = np.random.default_rng(seed)
    # Conformal recalibration needs a hundred rows.
    n = 110 if seed % 20 == 0 else int(rng.integers(12, 61))
    X = draw_table(rng, n)
    y, bounds = draw_target(rng, rng.normal(size=n))
    weight = draw_weight(rng, n)
    model = draw_model(rng, X, bounds)
    if n > 100 and weight is None:
        model.set_params(recalibrate="conformal")
    fitted = fit(model, X, y, weight)
    if fitted is None:
        return
    dist = fitted.predict_dist(X)
    seen = np.ones(n, dtype=bool) if weight is None else weight > 0.0
    check_forecasts(dist, y, bounds, seen)
    rows = fitted.fitted_rows_
    check_forecasts(fitted.oof_distribution_, y[rows], bounds, seen[rows])
    check_rows(fitted, X, rng.permutation(n))
    assert_same(pickle.loads(pickle.dumps(fitted)).predict_dist(X), dist)
    # Again, and numbers in columns of another type.
    for twin in [X] if is_plain(X) else [X, as_floats(X)]:
        again = fit(model, twin, y, weight)
        assert_same(again.predict_dist(twin), dist)


def check_forecasts(dist, y, bounds, seen):
    """What is said of every row is finite, in range and in order."""
    quantiles = dist.quantiles(LEVELS)
    assert np.isfinite(quantiles).all()
    assert (np.diff(quantiles, axis=1) >= 0.0).all()
    low, high = bounds or (None, None)
    draws = dist.rvs(3, 0)
    for values in (quantiles, dist.mean()[:, None], draws.T, dist.mode()[:, None]):
        assert np.isfinite(values).all()
        assert low is None or (values >= low).all()
        assert high is None or (values <= high).all()
    assert (dist.std() >= 0.0).all()
    cdf, sf, crps = dist.cdf(y), dist.sf(y), dist.crps(y)
    assert ((cdf >= 0.0) & (cdf <= 1.0)).all()
    assert_allclose(cdf + sf, 1.0, atol=1e-9)
    assert np.isfinite(crps).all()
    assert (crps >= 0.0).all()
    assert np.isfinite(dist.log_score(y)[seen]).all()
    assert np.isfinite(dist.entropy()).all()
    pit = dist.pit(y, 0)
    assert ((pit >= 0.0) & (pit <= 1.0)).all()
    assert np.isfinite(crps_score(y, dist))
    assert np.isfinite(pit_test(y, dist)).all()


def assert_same(one, other):
    """Compare two forecasts bit for bit."""
    assert_array_equal(one.quantiles(LEVELS), other.quantiles(LEVELS))
    assert_array_equal(one.mean(), other.mean())


def check_rows(model, X, order):
    """A row is forecast the same in any order, and alone."""
    whole = model.predict_dist(X).quantiles(LEVELS)
    other = model.predict_dist(take(X, order)).quantiles(LEVELS)
    assert_allclose(other, whole[order], rtol=1e-9, atol=1e-9 * np.abs(whole).max())
    single = model.predict_dist(take(X, order[:1])).quantiles(LEVELS)
    assert_allclose(single, other[:1], rtol=1e-9, atol=1e-9 * np.abs(whole).max())


ROUNDING = 1e-9
CALIBRATORS = ("auto", "isotonic", "beta", "venn_abers", "temperature", None)


def draw_ordered_model(rng, y, bounds, sign):
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
    model = draw_ordered_model(rng, y, bounds, sign)
    fitted = fit(model, X, y, weight)
    if fitted is None:
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
    at = np.tile([*values, *ends, 0.0, -1.0, 1.0, 1e9], (len(low), 1))
    assert (high.law.cdf(at) - low.law.cdf(at)).max() <= ROUNDING
    assert (low.law.sf(at) - high.law.sf(at)).max() <= ROUNDING
    levels = [1e-9, *np.linspace(0.01, 0.99, 25), 1.0 - 1e-9]
    above, below = high.quantiles(levels), low.quantiles(levels)
    assert ((below - above) / np.maximum(spread, np.abs(above))).max() <= ROUNDING
    means = high.mean(), low.mean()
    size = np.maximum(spread, np.abs(means[0]))
    assert ((means[1] - means[0]) / size).max() <= ROUNDING
