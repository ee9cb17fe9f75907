"""What `fit` and `predict` are given: right answers, or refusals by name first."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge

from calibration import CalibrationWarning
from localexpert import DistributionEnsemble, LocalExpertRegressor, PitRecalibration

N = 60
DAYS = pd.date_range("2020-01-01", periods=N)
CONTAINERS = [pd.DataFrame, pl.DataFrame, lambda a: np.column_stack([*a.values()])]


QUICK = {"strategy": "joint", "n_thresholds": 7, "cv": 2, "random_state": 0}


def quick():
    return LocalExpertRegressor(frame=None, **QUICK)


@pytest.fixture
def columns(rng):
    return {"a": rng.uniform(size=N), "b": rng.normal(size=N)}


@pytest.fixture
def y(rng, columns):
    return columns["a"] + 0.1 * rng.normal(size=N)


@pytest.mark.parametrize("container", CONTAINERS, ids=["pandas", "polars", "numpy"])
def test_targets_that_are_none(columns, y, container):
    gaps = "`y` must have no gaps, got nan at position 0 and 1"
    for wrong, message in (
        (DAYS, "`y` must be numeric, got dtype datetime64"),
        (DAYS - DAYS[0], "`y` must be numeric, got dtype timed"),
        (pl.Series([None, *DAYS[1:].to_pydatetime()]), "got dtype datetime64"),
        (y.astype(str), "got '.*' at position 0; convert texts to numbers"),
        (y + 1j, "`y` must be numeric, got dtype complex128"),
        ([[1], [2, 3]], "`y` must be numeric: setting an array"),
        ([None, *y[1:]], gaps),
        (pd.array([pd.NA, *y[1:]]), gaps),
        (np.column_stack([y, y, y]), r"`y` must .* shape \(60, 3\)"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            quick().fit(container(columns), wrong)


def test_targets_and_features_in_any_wrapping(columns, y):
    table = pd.DataFrame(columns)
    model = quick().fit(table, y)
    for wrapped in (
        [Decimal(float(value)) for value in y],
        pd.Series(y, dtype="double[pyarrow]"),
        pl.Series(y),
    ):
        found = quick().fit(table.astype(object), wrapped).predict(table)
        np.testing.assert_array_equal(found, model.predict(table))
    one = pd.DataFrame([{"a": None, "b": table["b"][0]}])
    gap = pd.DataFrame({"a": [np.nan], "b": table["b"][:1]})
    np.testing.assert_array_equal(model.predict(one), model.predict(gap))


def test_tables_that_are_none(columns, y):
    frame = pd.DataFrame(columns)
    for wrong, message in (
        (frame[[]], "at least one column"),
        (np.empty((N, 0)), r"0 feature\(s\)"),
        (frame.set_axis(["a", "a"], axis=1), "different names, got 'a' 2 times"),
        (pa.table(columns), "of pandas or polars, got pyarrow.lib.Table"),
        (DAYS.to_numpy()[:, None], "`X` must be numeric, got dtype datetime64"),
        ((DAYS - DAYS[0]).to_numpy()[:, None], "got .* to hold dates"),
        (DAYS.to_pydatetime()[:, None], "got .* to hold dates"),
        (np.full((N, 1), "a"), "`X` must be numeric, got 'a'"),
        (np.full((N, 1), np.inf), "hold finite numbers .* inf in row 0, column 0"),
        (frame.assign(b=np.inf), "hold finite numbers .* inf in row 0, column 'b'"),
        (frame["a"], "got a Series of 60 values"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            quick().fit(wrong, y)
    with pytest.raises(ValueError, match=r"`X` must have at least two .* 1 sample"):
        quick().fit(frame[:1], y[:1])
    fitted = quick().fit(frame, y)
    with pytest.raises(ValueError, match="`X` must have at least one row, got 0 rows"):
        fitted.predict_dist(frame[:0])
    for none in (3, {"a": [1.0]}, None):
        with pytest.raises(TypeError, match="`X` must be a data frame or an array"):
            fitted.predict(none)
    with pytest.raises(TypeError, match=r"`X` must be .* Series of 2 .*iloc\[\[i\]\]"):
        fitted.predict(frame.iloc[3])


def test_frames_and_arrays_in_turn(columns, y, rng):
    frame = pd.DataFrame(columns)
    plain = quick().fit(frame, y)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        found = plain.predict(frame.to_numpy())
    np.testing.assert_array_equal(found, plain.predict(frame))
    towns = quick().fit(frame.assign(b=rng.choice(["Ulm", "Bonn"], N)), y)
    with (
        pytest.warns(UserWarning, match="valid feature names"),
        pytest.raises(TypeError, match=r"categories or dates \('b'\), got ndarray"),
    ):
        towns.predict(frame.to_numpy())
    for wrong in (frame[["b", "a"]], frame[["a"]], frame.assign(c=1.0)):
        with pytest.raises(ValueError, match="feature names should match"):
            plain.predict(wrong)


def draw(rng):
    X = rng.uniform(size=(300, 2))
    return X, np.sin(9.0 * X[:, 0]) + 0.1 * rng.normal(size=300)


@pytest.fixture
def data(rng):
    return draw(rng)


@pytest.fixture(scope="module")
def plain():
    """A model of 200 rows of `data` in their own unit."""
    X, y = draw(np.random.default_rng(0))
    return LocalExpertRegressor(frame="center", **QUICK).fit(X[:200], y[:200])


@pytest.mark.parametrize(("shift", "unit"), [(1e9, 1.0), (0.0, 1e60), (0.0, 1e-60)])
def test_origin_and_unit_of_a_target_do_not_matter(data, plain, shift, unit):
    X, y = data
    moved = LocalExpertRegressor(frame="center", **QUICK)
    said = moved.fit(X[:200], shift + unit * y[:200]).predict(X[200:])
    errors = [
        np.abs(forecast - y[200:]).mean()
        for forecast in (plain.predict(X[200:]), (said - shift) / unit)
    ]
    assert errors[1] < 1.05 * errors[0]


@pytest.mark.parametrize(
    ("shift", "unit", "wrong"),
    [
        (0.0, 1e160, r"lie within \+-1e\+70, got -?1.\d*e\+160 at position"),
        (0.0, 1e-160, "differ by at least 1e-70, .*: take another unit"),
        (1e9, 1e-4, "differ by more than 1e-10 of its size, .*: subtract one"),
    ],
)
def test_targets_that_floats_cannot_tell_are_refused(data, shift, unit, wrong):
    X, y = data
    with pytest.raises(ValueError, match=f"^`y` must {wrong}"):
        quick().fit(X, shift + unit * y)


@pytest.mark.parametrize(
    ("weight", "wrong"),
    [
        (np.where(np.arange(300) % 2, 1.0, 1e-14), "not differ by more than .* 1e-14"),
        (np.full(300, 1e20), r"add up to at most 2\^53"),
        (np.full(300, 1e-300), "count rows, .* divide by their mean"),
    ],
)
def test_weights_that_cannot_be_summed_are_refused(data, weight, wrong):
    with pytest.raises(ValueError, match=f"^`sample_weight` must {wrong}"):
        quick().fit(*data, weight)


def test_weights_that_are_shares_of_a_whole_are_pointed_out(data):
    """Once, whatever is fitted within."""
    model = LocalExpertRegressor(frame=None, recalibrate="pit", **QUICK)
    fits = (model, DistributionEnsemble([("a", model), ("b", clone(model))]))
    shares = np.full(300, 1.0 / 300.0)
    for one in fits:
        with pytest.warns(CalibrationWarning, match="300 rows add up to 1:") as caught:
            one.fit(*data, shares)
        told = [one for one in caught if "add up to" in str(one.message)]
        assert [warning.filename for warning in told] == [__file__]
    law = model.oof_distribution_.law
    with pytest.warns(CalibrationWarning, match="300 rows add up to 1:"):
        PitRecalibration().fit(law, data[1], shares)


def test_mass_below_zero_is_told_where_no_target_is(data, rng):
    X, y = data
    positive = (1.0 + X[:, 0]) * rng.exponential(size=300)
    model = LocalExpertRegressor(frame=None, bounds=None, **QUICK).fit(X, positive)
    told = model.report_.choices["below zero"]
    assert told["mass"] == pytest.approx(model.oof_distribution_.cdf(0.0).mean())
    said = f"below zero   {100 * told['mass']:.2g}% of the mass out of fold"
    assert said in str(model.report_)
    assert "bounds=(0, None)" in str(model.report_)
    for bounds in ("auto", (0, None)):
        bounded = clone(model).set_params(bounds=bounds).fit(X, positive)
        assert bounded.bounds_ == (0.0, np.inf)
        assert ("bounds" in bounded.report_.choices) == (bounds == "auto")
        assert (bounded.oof_distribution_.cdf(0.0) == 0.0).all()
    others = [clone(model).fit(X, one) for one in (y - y.mean(), y + 1e6)]
    for other in (bounded, *others):
        assert "below zero" not in other.report_.choices


@pytest.mark.parametrize("parameter", ["center", "stacker"])
def test_regressors_without_an_answer_are_named(data, parameter, monkeypatch):
    given = {"center": LinearRegression(), parameter: Ridge()}
    for answer, wrong in (
        (np.inf, "NaN or infinity"),
        ([1.0, 2.0], r"shape \(150, 2\) for 150 rows"),
    ):
        monkeypatch.setattr(Ridge, "predict", lambda _, X, a=answer: [a] * len(X))
        said = f"^`{parameter}`: Ridge failed: .*, got {wrong}"
        with pytest.raises(RuntimeError, match=said):
            LocalExpertRegressor(**given, **QUICK).fit(*data)


def test_labels_in_another_order_are_pointed_out(columns, y):
    X = pd.DataFrame(columns)
    target = pd.Series(y)
    shuffled = target.sample(frac=1.0, random_state=0)
    with pytest.warns(CalibrationWarning, match=r"`y` has .* y\.loc\[X\.index"):
        by_place = quick().fit(X, shuffled).predict(X)
    # Neither another index nor none is a mistake.
    other = quick().fit(X, shuffled.reset_index(drop=True)).predict(X)
    np.testing.assert_array_equal(by_place, other)
    quick().fit(X, target.set_axis(range(7, 7 + N)))


@pytest.mark.parametrize("stacker", [None, "auto"])
def test_new_gaps_and_new_categories_are_averaged_over(rng, stacker):
    n = 900
    year, kind = rng.integers(0, 21, size=n), rng.integers(0, 9, size=n)
    y = 3.0 * year + 9.0 * kind + rng.normal(size=n)
    X = pd.DataFrame({"year": year.astype(float), "kind": [f"k{k}" for k in kind]})
    model = LocalExpertRegressor(effort="quick", stacker=stacker, random_state=0)
    model.fit(X[:300], y[:300])
    new = X[300:].reset_index(drop=True)
    new.loc[:199, "year"] = np.nan
    new.loc[200:399, "kind"] = "other"
    whole = new[400:]
    with pytest.warns(CalibrationWarning, match="not met in `fit`"):
        dist, means = model.predict_dist(new), model.predict(new)
    held = dist.covered(y[300:], 0.9)
    assert 0.8 < held[:200].mean() < 0.99
    assert 0.8 < held[200:400].mean() < 0.99
    known = model.predict_dist(whole)
    assert_array_equal(dist[400:].quantiles([0.1, 0.9]), known.quantiles([0.1, 0.9]))
    assert_allclose(means, dist.mean(), rtol=0.02)
    assert_array_equal(means[:7], model.predict(new[:7]))
