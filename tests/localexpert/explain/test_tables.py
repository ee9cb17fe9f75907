"""Tables keep the types of their columns; what cannot be explained is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from localexpert import (
    LocalExpertRegressor,
    SharedBoosting,
)
from localexpert.explain import explain_forecast, permutation_importance
from tests.forecasts import of_values

WORTH = {"ant": 1.0, "bee": 2.0, "cat": -1.0}


def coins(p):
    """Laws on 0 and 1, whose means are p."""
    p = np.asarray(p, dtype=np.float64)
    return of_values([0.0, 1.0], np.stack([1.0 - p, p], 1))


class Flat:
    """One half, whatever the row."""

    def predict_dist(self, X):
        return coins(np.full(len(X), 0.5))


class Categorical:
    """The mean is a number per town, times `rooms`; refuses columns of other types."""

    def __init__(self, types):
        self.types = types

    def predict_dist(self, X):
        assert list(X.dtypes) == self.types
        assert list(X.columns) == ["rooms", "town", "open"]
        towns = np.array([WORTH[town] for town in X["town"].to_list()])
        center = X["rooms"].to_numpy() * towns + X["open"].to_numpy() * towns
        return coins(0.5 + center.astype(float) / 40.0)


class Numbers:
    """The same of arrays, with the worth of the town in its place."""

    def predict_dist(self, X):
        return coins(0.5 + (X[:, 0] + X[:, 2]) * X[:, 1] / 40.0)


def frame(rows, town, opened):
    return pd.DataFrame(
        {
            "rooms": np.array(rows, dtype=np.int64),
            "town": pd.Categorical(town, categories=["ant", "bee", "cat"]),
            "open": np.array(opened, dtype=bool),
        },
        index=np.arange(len(rows)) + 7,
    )


class TestFrames:
    def test_types_are_kept_and_the_answer_is_that_of_numbers(self):
        X = frame([3, 1], ["bee", "cat"], [True, False])
        background = frame([1, 2, 2], ["ant", "ant", "cat"], [False, True, True])
        told = explain_forecast(Categorical(list(X.dtypes)), X, background)
        rows, others = (
            T.assign(town=T["town"].map(WORTH)).to_numpy(float) for T in (X, background)
        )
        truth = explain_forecast(Numbers(), rows, others)
        np.testing.assert_allclose(told.values, truth.values, atol=1e-14)
        assert told.feature_names == ("rooms", "town", "open")
        assert told.inputs[0].tolist() == ["3", "bee", "True"]

    def test_polars(self):
        X = pl.DataFrame({"rooms": [3, 1], "town": ["bee", "cat"], "open": [1, 0]})
        more = pl.DataFrame({"rooms": [2, 1], "town": ["ant", "cat"], "open": [0, 0]})
        told = explain_forecast(Categorical(list(X.dtypes)), X, more)
        ours, others = (pd.DataFrame(T.to_dict(as_series=False)) for T in (X, more))
        same = explain_forecast(Categorical(list(ours.dtypes)), ours, others)
        np.testing.assert_array_equal(told.values, same.values)

    def test_named_groups(self):
        X = frame([3], ["bee"], [True])
        background = frame([1, 2], ["ant", "cat"], [False, True])
        told = explain_forecast(
            Categorical(list(X.dtypes)),
            X,
            background,
            groups={"house": ["open", "rooms"]},
        )
        assert told.feature_names == ("house", "town")
        assert told.inputs[0].tolist() == ["3, True", "bee"]

    def test_refuses_other_tables(self):
        X = frame([3], ["bee"], [True])
        model = Categorical(list(X.dtypes))
        with pytest.raises(ValueError, match=r"columns of `X`, .*got \('size'"):
            explain_forecast(model, X, X.rename(columns={"rooms": "size"}))
        with pytest.raises(ValueError, match="columns of `X`, 3, got 2"):
            explain_forecast(model, np.ones((1, 3)), np.ones((4, 2)))
        with pytest.raises(TypeError, match="type of `X`, DataFrame, got ndarray"):
            explain_forecast(model, X, np.ones((4, 3)))
        other = X.assign(town=pd.Categorical(["dog"]))
        with pytest.raises(TypeError, match=r"types of the columns.*column 'town'"):
            explain_forecast(model, X, other)
        with pytest.raises(TypeError, match=r"types of the columns.*column 'open'"):
            explain_forecast(model, X, X.assign(open=["yes"]))
        many = X.assign(rooms=pd.Series(["many"], X.index, dtype=object))
        with pytest.raises(TypeError, match=r"types of the columns.*column 'rooms'"):
            explain_forecast(model, X, many)


def test_a_regressor_with_categories_and_gaps(rng):
    X = pd.DataFrame({"a": rng.normal(size=400), "noise": rng.normal(size=400)})
    X["town"] = pd.Categorical(rng.choice(["ant", "bee", "cat"], 400))
    y = X["a"] + 2.0 * X["town"].map(WORTH).astype(float) + rng.normal(size=400)
    X.loc[rng.random(400) < 0.1, "noise"] = np.nan
    model = LocalExpertRegressor(
        strategy=SharedBoosting(max_rounds=40, random_state=0),
        frame=None,
        n_thresholds=9,
        random_state=0,
    ).fit(X[:300], y[:300])
    told = explain_forecast(
        model, X[300:306], X[:300], of="exceedance", at=2.0, random_state=0
    )
    truth = model.predict_dist(X[300:306]).sf(2.0)
    np.testing.assert_allclose(told.total, truth, atol=1e-12)
    sums = told.base + told.values.sum(axis=1)
    np.testing.assert_allclose(sums, truth, atol=1e-12)
    size = np.abs(told.values).mean(axis=0)
    assert size[2] > size[0] > 3.0 * size[1]
    lost = permutation_importance(model, X[300:], y[300:], random_state=0)
    assert lost.crps[2] > lost.crps[0] > 3.0 * abs(lost.crps[1])


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            (
                {"of": "median", "at": 0.5},
                ValueError,
                "`at` must .* None, got 0.5",
            ),
            ({"of": "quantile"}, ValueError, "`at` must be a level or .*, got None"),
            ({"of": "quantile", "at": 1.0}, ValueError, r"`at` must lie in \(0, 1\)"),
            (
                {"of": lambda d: d.mean()[:, None]},
                ValueError,
                r"`of` must return one number per row, .* got shape \(4, 1\)",
            ),
            (
                {"of": lambda d: d.mean() * np.nan},
                ValueError,
                "`of` must return finite numbers, got nan of <lambda>",
            ),
            ({"groups": {"g": ["x3"]}}, ValueError, "`groups` must hold features of"),
            ({"groups": {"g": [0], "h": ["x0"]}}, ValueError, "hold a feature once"),
            ({"groups": {"g": []}}, ValueError, "at least one feature, got none"),
            ({"groups": {"g": "x1"}}, TypeError, "must be a list of features"),
            ({"groups": {"x2": [0]}}, ValueError, "named as a feature is, got 'x2'"),
            ({"n_permutations": 5}, ValueError, "`n_permutations` must be even, got 5"),
        ],
    )
    def test_bad_arguments(self, arguments, error, message):
        X = np.eye(3)
        with pytest.raises(error, match=message):
            explain_forecast(Flat(), X[:1], X, **arguments)

    def test_bad_tables_and_models(self):
        with pytest.raises(TypeError, match="`model` must have a method predict_dist"):
            explain_forecast(object(), np.eye(3), np.eye(3))
        with pytest.raises(ValueError, match=r"`X` must be .*got shape \(3,\)"):
            explain_forecast(Flat(), np.ones(3), np.eye(3))
        with pytest.raises(ValueError, match=r"`background` must be .*shape \(0, 3\)"):
            explain_forecast(Flat(), np.eye(3), np.ones((0, 3)))

    def test_too_many_coalitions(self):
        X = np.ones((1, 13))
        with pytest.raises(ValueError, match="for more than 12 features"):
            explain_forecast(Flat(), X, X, method="enumerate")
