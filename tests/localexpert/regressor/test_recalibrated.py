"""Fitted models corrected for other rows, and within groups."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from localexpert import (
    ConformalRecalibration,
    LocalExpertRegressor,
    PitRecalibration,
    ShiftWeights,
    adapt,
    interval_coverage,
    load,
    recalibrate,
    shift_weights,
)
from localexpert.regressor.recalibrated import RecalibratedRegressor

QUICK = {"strategy": "joint", "frame": None, "n_thresholds": 5, "cv": 2}


@pytest.fixture(scope="module")
def scene():
    """Return a model that does not see how the spread grows, and rows to correct by."""
    rng = np.random.default_rng(3)

    def draw(n, mean=0.0):
        X = pd.DataFrame(
            {"x": rng.normal(mean, 1.0, n), "b": rng.choice(["p", "q"], n)}
        )
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
    assert np.isnan(smooth.bound_)
    assert interval_coverage(y_new, smooth.predict_dist(X_new)) > 0.85


@pytest.mark.parametrize("method", ["conformal", "pit"])
def test_adapt_covers_each_group(scene, method):
    model, (X, y), (X_new, y_new) = scene
    settings = {"weights": by_first, "method": method, "random_state": 0}
    plain = adapt(model, X, y, X_new, **settings)
    grouped = adapt(model, X, y, X_new, by="b", **settings)
    assert grouped.effective_rows_ < plain.effective_rows_
    assert np.isnan(grouped.bound_) == (method == "pit")
    assert method == "pit" or grouped.bound_ > plain.bound_
    q = (X_new["b"] == "q").to_numpy()
    # The map of PIT values is the least correction that they ask for.
    most = 0.06 if method == "conformal" else 0.08
    for rows in (q, ~q):
        off, off_of_plain = (
            abs(interval_coverage(y_new[rows], each.predict_dist(X_new[rows])) - 0.9)
            for each in (grouped, plain)
        )
        assert off < most
        assert off < off_of_plain
    assert interval_coverage(y_new[q], plain.predict_dist(X_new[q])) < 0.87


def test_one_group_is_all_rows(scene):
    model, (X, y), (X_new, _) = scene
    settings = {"weights": by_first, "random_state": 0}
    X, X_new = X.assign(b="p"), X_new.assign(b="p")
    plain = adapt(model, X, y, X_new, **settings)
    same = adapt(model, X, y, X_new, by="b", **settings)
    assert same.bound_ == plain.bound_
    assert same.effective_rows_ == plain.effective_rows_
    grouped = same.recalibration_.recalibrations_[("p",)]
    np.testing.assert_array_equal(grouped.knots_, plain.recalibration_.knots_)


def only_night(X):
    """Return weights that are on a few rows of one group."""
    return np.where(X["b"] == "q", np.exp(6.0 * X["x"]), 1.0)


def by_first(X):
    """Return the true weights."""
    return np.exp(X["x"].to_numpy() - 0.5)


def test_groups_are_covered_each(scene):
    model, (X, y), _ = scene
    one = recalibrate(model, X, y, by="b", random_state=0)
    other = recalibrate(model, X, y, random_state=0)
    assert isinstance(other.recalibration_, ConformalRecalibration)
    assert one.bound_ > other.bound_
    q = (X["b"] == "q").to_numpy()
    covered = [interval_coverage(y[r], one.predict_dist(X[r])) for r in (q, ~q)]
    np.testing.assert_allclose(covered, 0.9, atol=0.03)
    assert interval_coverage(y[q], other.predict_dist(X[q])) < 0.87
    pit = recalibrate(model, X, y, method=PitRecalibration(random_state=0))
    assert isinstance(pit.recalibration_, PitRecalibration)


@pytest.mark.parametrize("kind", ["groups", "weights", "known", "both", "plain"])
def test_saved_and_cloned(scene, kind, tmp_path):
    model, (X, y), (X_new, _) = scene
    if kind in ("groups", "plain"):
        made = recalibrate(model, X, y, by="b" if kind == "groups" else None)
    else:
        given = shift_weights(X, X_new) if kind == "known" else None
        by = "b" if kind == "both" else None
        made = adapt(model, X, y, X_new, by=by, weights=given, random_state=0)
    made.save(tmp_path / "model.zip")
    again = load(tmp_path / "model.zip")
    want = made.predict_quantiles(X[:50], [0.05, 0.5, 0.9])
    np.testing.assert_array_equal(
        again.predict_quantiles(X[:50], [0.05, 0.5, 0.9]), want
    )
    assert again.bound_ == made.bound_
    copy = clone(made)
    assert isinstance(copy.model, FrozenEstimator)
    assert not hasattr(copy, "recalibration_")
    assert np.isfinite(copy.model.predict(X[:3])).all()


def test_the_model_stays_as_it_is(scene):
    model, (X, y), _ = scene
    before = model.predict(X)
    recalibrate(model, X, y)
    np.testing.assert_array_equal(model.predict(X), before)
    inside = RecalibratedRegressor(model, random_state=0).fit(X, y)
    np.testing.assert_array_equal(
        inside.predict(X), recalibrate(model, X, y, random_state=0).predict(X)
    )


def test_refusals(scene):
    model, (X, y), (X_new, _) = scene
    far = X_new.assign(x=X_new["x"] + 9.0)
    with pytest.raises(
        ValueError, match=r"`X_cal` .* 50 effective rows, got .* of 500"
    ):
        adapt(model, X, y, far, random_state=0)
    with pytest.raises(ValueError, match=r"`X_new` must have 2 columns .* got 1"):
        adapt(model, X, y, X_new[["x"]])
    with pytest.raises(ValueError, match=r"`by` must hold columns .* got 'town'"):
        recalibrate(model, X, y, by="town")
    with pytest.raises(ValueError, match="`by` must have at least 20 rows each"):
        recalibrate(model, X, y, by="x")
    with pytest.raises(ValueError, match="`weights` must return weights that are not"):
        adapt(model, X, y, X_new, weights=lambda X: -np.ones(len(X)))
    with pytest.raises(ValueError, match="`weights` must return a finite number"):
        adapt(model, X, y, X_new, weights=lambda _: np.ones(3))
    with pytest.raises(TypeError, match="`weights` must be ShiftWeights or callable"):
        adapt(model, X, y, X_new, weights=[1.0])
    with pytest.raises(ValueError, match="`method` must be one of"):
        adapt(model, X, y, X_new, method="none")
    with pytest.raises(ValueError, match=r"`method` must be .* got None"):
        recalibrate(model, X, y, method=None)
    with pytest.raises(ValueError, match="`weights` must be None without `X_new`"):
        RecalibratedRegressor(model, weights=by_first).fit(X, y)
    with pytest.raises(ValueError, match=r"`X_new` must hold groups .*'p'.* got 'r'"):
        adapt(model, X, y, X_new.assign(b="r"), by="b", weights=by_first)
    with pytest.raises(ValueError, match=r"50 effective rows of 'q', got \d"):
        adapt(model, X, y, X_new, by="b", weights=only_night)
    with pytest.raises(TypeError, match="`model` must have a method predict_dist"):
        adapt("model", X, y, X_new)
    with pytest.raises(ValueError, match="y_cal"):
        recalibrate(model, X, y[:30])
    grouped = recalibrate(model, X, y, by="b")
    with (
        pytest.warns(UserWarning, match="b"),
        pytest.raises(ValueError, match=r"`X` must hold groups .* got 'r' in row 2"),
    ):
        grouped.predict(X[:3].assign(b=["p", "q", "r"]))
