"""Fitted models corrected by other rows, and which rows they have learned from."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibration import CalibrationWarning
from localexpert import (
    DistributionEnsemble,
    LocalExpertRegressor,
    PitRecalibration,
    ShiftWeights,
    adapt,
    interval_coverage,
    recalibrate,
    seen_rows,
    shift_weights,
)
from localexpert.regressor.recalibrated import RecalibratedRegressor
from tests.forecasts import Coin

QUICK = {"strategy": "joint", "frame": None, "n_thresholds": 5, "cv": 2}


@pytest.fixture(scope="module")
def scene():
    """Return a model that does not see how the spread grows, and rows to correct by."""
    rng = np.random.default_rng(3)

    def draw(n, mean=0.0):
        x, b = rng.normal(mean, 1.0, n), rng.choice(["p", "q"], n)
        X = pd.DataFrame({"x": x, "b": b})
        spread = np.exp(0.5 * X["x"]) * np.where(X["b"] == "q", 2.0, 1.0)
        return X, (spread * rng.normal(size=n)).to_numpy()

    X, y = draw(200)
    flat = X.assign(x=0.0, b=rng.permutation(X["b"]))
    model = LocalExpertRegressor(**QUICK, random_state=0).fit(flat, y)
    return model, draw(500), draw(2000, 1.0)


def test_adapt_covers_rows_of_another_kind(scene):
    model, (X, y), (X_new, y_new) = scene
    blind = recalibrate(model, X, y, random_state=0)
    for weights in (None, by_first, shift_weights(X, X_new, random_state=0)):
        moved = adapt(model, X, y, X_new, weights=weights, random_state=0)
        assert 100.0 < moved.effective_rows_ < 320.0
        assert moved.bound_ < 0.12
        covered = interval_coverage(y_new, moved.predict_dist(X_new))
        assert abs(covered - 0.9) < 0.05
        assert covered > interval_coverage(y_new, blind.predict_dist(X_new)) + 0.05
    assert isinstance(moved.weights_, ShiftWeights)
    smooth = adapt(model, X, y, X_new, method="pit", random_state=0)
    assert interval_coverage(y_new, smooth.predict_dist(X_new)) > 0.85


def test_a_row_of_no_weight_has_the_same_forecast_alone(scene):
    model, (X, y), (X_new, _) = scene
    moved = adapt(model, X, y, X_new, weights=only_above_zero, random_state=0)
    below = X[X["x"] < 0.0]
    whole, one = moved.predict_dist(X), moved.predict_dist(below[:1])
    first = int(np.flatnonzero(X["x"] < 0.0)[0])
    np.testing.assert_allclose(
        one.quantiles([0.1, 0.9]), whole[first].quantiles([0.1, 0.9]), rtol=1e-12
    )


@pytest.mark.parametrize("method", ["conformal", "pit"])
def test_a_factor_of_weights_does_not_matter(scene, method):
    model, (X, y), (X_new, _) = scene
    rows = pd.concat([X_new[:9], X_new[:1].assign(x=99.0)])

    def corrected(factor):
        def weigh(X):
            return factor * np.where(X["x"] > 9.0, 1e20, by_first(X))

        moved = adapt(model, X, y, X_new, method=method, weights=weigh, random_state=0)
        quantiles = moved.predict_dist(rows).quantiles([0.05, 0.5, 0.95])
        return [*quantiles.ravel(), moved.bound_, moved.effective_rows_]

    for factor in (1e-300, 1e20, 1e280):
        np.testing.assert_allclose(corrected(factor), corrected(1.0), rtol=1e-6)


@pytest.mark.parametrize(
    ("how", "most"),
    # The map of PIT values is the least correction that they ask for.
    [("recalibrate", 0.03), ("conformal", 0.06), ("pit", 0.08)],
)
def test_groups_are_covered_each(scene, how, most):
    model, old, new = scene
    correct, (X, y) = partial(recalibrate, model, *old, random_state=0), old
    if how != "recalibrate":
        given = {"weights": by_first, "method": how, "random_state": 0}
        correct, (X, y) = partial(adapt, model, *old, new[0], **given), new
    plain, grouped = correct(), correct(by="b")
    assert grouped.effective_rows_ < plain.effective_rows_
    assert np.isnan(grouped.bound_) == (how == "pit")
    assert grouped.bound_ > plain.bound_ or how == "pit"
    q = (X["b"] == "q").to_numpy()
    if how == "conformal":
        bounds = grouped.recalibration_.bound(X["b"], by_first(X))
        assert grouped.bound_ == max(bounds[q].mean(), bounds[~q].mean())
    off, off_of_plain = (
        [abs(interval_coverage(y[r], each.predict_dist(X[r])) - 0.9) for r in (q, ~q)]
        for each in (grouped, plain)
    )
    assert max(off) < most
    # The other group is nearly right without groups, too.
    assert off[0] < off_of_plain[0]
    assert interval_coverage(y[q], plain.predict_dist(X[q])) < 0.87


def only_night(X):
    """Return weights that are on a few rows of one group."""
    return np.where(X["b"] == "q", np.exp(6.0 * X["x"]), 1.0)


def only_day(X):
    """Return weights that are 0 in one group."""
    return np.where(X["b"] == "q", 0.0, 1.0)


def of_all_rows(X):
    """Return weights that are cut off where few of the rows are."""
    return np.minimum(by_first(X), np.quantile(by_first(X), 0.99))


def only_above_zero(X):
    """Return weights that are 0 where there is no new row."""
    return np.where(X["x"] > 0.0, by_first(X), 0.0)


def by_first(X):
    """Return the true weights."""
    return np.exp(X["x"].to_numpy() - 0.5)


def test_a_method_of_ones_own_is_taken(scene):
    model, (X, y), _ = scene
    pit = recalibrate(model, X, y, method=PitRecalibration(random_state=0))
    (learned,) = pit.recalibration_.recalibrations_.values()
    assert isinstance(learned, PitRecalibration)


def test_rows_may_be_lists(rng):
    X = np.column_stack([rng.integers(0, 2, 300), rng.normal(size=300)])
    y = X[:, 1] + rng.normal(size=300)
    model = quick().fit(X[:100], y[:100])
    said, settings = [], {"weights": lambda X: np.ones(len(X)), "random_state": 0}
    for rows, new in ((X[100:], X[:50]), (X[100:].tolist(), X[:50].tolist())):
        corrected = recalibrate(model, rows, y[100:], by=0, random_state=0)
        adapted = adapt(model, rows, y[100:], new, **settings)
        said.append([one.predict(rows) for one in (corrected, adapted)])
    np.testing.assert_array_equal(*said)


def test_refusals(scene):
    model, (X, y), (X_new, _) = scene
    grouped = recalibrate(model, X, y, by="b")
    with (
        pytest.warns(UserWarning, match="b"),
        pytest.raises(ValueError, match=r"`X` must hold groups .* got 'r' in row 2"),
    ):
        grouped.predict(X[:3].assign(b=["p", "q", "r"]))
    with pytest.raises(ValueError, match="`weights` must be None without `X_new`"):
        RecalibratedRegressor(model, weights=by_first).fit(X, y)
    far, other = X_new.assign(x=X_new["x"] + 9.0), X_new.assign(b="r")
    for new, given, message in (
        (far, {}, r"`X_cal` .* 50 effective rows, got .* of 500"),
        (X_new, {"weights": lambda X: -np.ones(len(X))}, "weights that are not"),
        (X_new, {"weights": lambda X: np.zeros(len(X))}, "must not return 0 for every"),
        (X_new, {"weights": lambda _: np.ones(3)}, "must return a finite number"),
        (X_new, {"weights": of_all_rows}, "the same for a row alone .* for row "),
        (other, {"by": "b", "weights": by_first}, r"`X_new` must hold .*'p'.* got 'r'"),
        (X_new, {"by": "b", "weights": only_night}, r"50 effective rows of 'q', got "),
        (X_new, {"by": "b", "weights": only_day}, "'q', got 0.0 of .*: all weigh 0"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            adapt(model, X, y, new, random_state=0, **given)


def quick(**options):
    return LocalExpertRegressor(effort="quick", cv=2, random_state=0, **options)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.normal(size=(460, 2)), columns=["a", "b"])
    X["town"] = rng.choice(["x", "y"], 460)
    return X, (X["a"] + rng.normal(size=460)).to_numpy()


@pytest.fixture(scope="module")
def model(rows):
    X, y = rows
    return quick(recalibrate="conformal").fit(X[:200], y[:200])


def test_rows_that_a_model_has_learned_from_are_known(model, rows, reload):
    X, y = rows
    numbers = X[["a", "b"]].to_numpy()
    piped = make_pipeline(StandardScaler(), quick()).fit(numbers[:200], y[:200])
    weight = np.repeat([1.0, 0.0], [150, 50])
    once = recalibrate(model, X[200:300], y[200:300])
    both = DistributionEnsemble([("one", quick()), ("two", quick(bounds=None))])
    for one, table, n_known in (
        (model, X, 200),  # also those set aside
        (reload(model), X, 200),
        (quick().fit(X[:200], y[:200], weight), X, 150),
        (FrozenEstimator(model), X, 200),
        (once, X, 300),
        (recalibrate(once, X[300:400], y[300:400]), X, 400),
        (piped, numbers, 200),
        (both.fit(X[:200], y[:200]), X, 200),
    ):
        learned = seen_rows(one, table, y).learned
        np.testing.assert_array_equal(learned, np.arange(460) < n_known, repr(one))


def test_nothing_is_said_of_models_that_cannot_tell(rows):
    X, y = rows
    assert seen_rows(Coin(), X, y).share is None
    model = quick().fit(X[:100], y[:100])
    model.training_sketch_ = None
    assert seen_rows(model, X, y).share is None


@pytest.mark.parametrize("how", ["recalibrate", "adapt"])
def test_corrections_by_training_rows_are_warned_of(how, model, rows):
    X, y = rows

    def correct(part):
        if how == "recalibrate":
            return recalibrate(model, X[part], y[part])
        return adapt(model, X[part], y[part], X[300:])

    with pytest.warns(CalibrationWarning, match="learned from 100 of the 150 rows"):
        correct(slice(100, 250))
    better = correct(slice(200, 350))
    assert seen_rows(better, X[150:300], y[150:300]).learned.all()
    assert not seen_rows(better, X[350:], y[350:]).found
    with pytest.warns(CalibrationWarning, match="learned from 50 of the 100 rows"):
        recalibrate(better, X[300:400], y[300:400])
