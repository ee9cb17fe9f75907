"""Out-of-fold distributions against fits of the folds by hand."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    ShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from localexpert import (
    LocalExpertRegressor,
    cross_val_predict_dist,
    crps_scorer,
    predict_dist,
)
from tests.forecasts import beside, normal, of_values

QUICK = {"strategy": "joint", "frame": None, "n_thresholds": 3, "cv": 2}


class Kinds(RegressorMixin, BaseEstimator):
    """Laws whose kind and scale depend on the rows of the fit, and on weights."""

    def __init__(self, kinds="smd"):
        self.kinds = kinds

    def fit(self, X, y, sample_weight=None, groups=None):
        del X
        self.mean_ = float(np.average(y, weights=sample_weight))
        self.kind_ = self.kinds[len(y) % len(self.kinds)]
        self.groups_ = groups
        return self

    def predict(self, X):
        return self.predict_dist(X).mean()

    def predict_dist(self, X):
        n, center = len(X), self.mean_ + np.asarray(X, dtype=float)[:, 0]
        if self.kind_ == "d":
            values = np.sort(self.mean_ + np.arange(3.0))
            return of_values(values, np.tile([0.2, 0.3, 0.5], (n, 1)))
        dist = normal(center, 1.5)
        if self.kind_ == "m":
            atoms = np.sort([9.0, self.mean_])
            return beside(dist, atoms, np.full((n, 2), 0.2), [1.0, 1.0])
        return dist


@pytest.fixture
def table(rng):
    X = rng.normal(size=(24, 2))
    return X, X[:, 0] + rng.normal(size=24)


def check_rows(dist, model, X, y, folds, **given):
    """Compare with one fit after another; return the kinds of their laws."""
    kinds, at = set(), np.linspace(-3.0, 4.0, 7)
    assert len(dist) == len(y)
    for train, test in folds:
        part = {name: values[train] for name, values in given.items()}
        own = predict_dist(clone(model).fit(X[train], y[train], **part), X[test])
        kinds.add((own.law.is_smooth, own.law.is_discrete))
        got = dist[test]
        np.testing.assert_allclose(got.cdf_at(at), own.cdf_at(at), atol=1e-12)
        np.testing.assert_allclose(got.crps(y[test]), own.crps(y[test]), rtol=1e-6)
        np.testing.assert_allclose(got.mean(), own.mean(), rtol=1e-9, atol=1e-12)
        levels = [0.05, 0.37, 0.93]
        np.testing.assert_allclose(
            got.quantiles(levels), own.quantiles(levels), rtol=1e-6, atol=1e-9
        )
    return kinds


@pytest.mark.parametrize("kinds", ["s", "d", "m", "smd"])
def test_rows_are_those_of_the_folds(table, kinds):
    X, y = table
    # Training parts of 21, 22 and 23 rows: each has its kind.
    order = np.random.default_rng(1).permutation(24)
    tests = np.split(order, np.cumsum([1, 2, 3, 3, 2, 1, 3, 3, 3, 1, 1]))
    folds = [(np.setdiff1d(order, test), test) for test in tests]
    dist = cross_val_predict_dist(Kinds(kinds), X, y, cv=folds)
    seen = check_rows(dist, Kinds(kinds), X, y, folds)
    assert len(seen) == (1 if len(kinds) == 1 else 3)


def test_one_fold_a_row_and_two_rows(table):
    X, y = table
    dist = cross_val_predict_dist(Kinds("s"), X[:2], y[:2], cv=2)
    folds = [([1], [0]), ([0], [1])]
    check_rows(dist, Kinds("s"), X[:2], y[:2], folds)


def test_the_default_is_five_folds_in_order(table):
    X, y = table
    dist = cross_val_predict_dist(Kinds(), X, y)
    check_rows(dist, Kinds(), X, y, KFold(5).split(X))
    lists = cross_val_predict_dist(Kinds(), X.tolist(), y.tolist())
    np.testing.assert_array_equal(lists.mean(), dist.mean())


def test_weights_and_groups_reach_the_fit(table, rng):
    X, y = table
    weight, groups = rng.integers(1, 4, 24).astype(float), np.arange(24) // 4
    dist = cross_val_predict_dist(
        Kinds("s"), X, y, cv=3, groups=groups, sample_weight=weight
    )
    folds = list(GroupKFold(3).split(X, groups=groups))
    check_rows(dist, Kinds("s"), X, y, folds, sample_weight=weight)
    piped = make_pipeline(StandardScaler(), Kinds("s"))
    search = GridSearchCV(
        piped, {"kinds__kinds": ["s", "d"]}, scoring=crps_scorer, cv=2
    )
    for model in (piped, search):
        dist = cross_val_predict_dist(model, X, y, cv=folds, sample_weight=weight)
        given = {"kinds__sample_weight": weight}
        check_rows(dist, model, X, y, folds, **given)
    with config_context(enable_metadata_routing=True):
        own = Kinds("s").set_fit_request(sample_weight=True, groups=True)
        piped = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False), own
        )
        dist = cross_val_predict_dist(
            piped, X, y, cv=folds, groups=groups, sample_weight=weight
        )
        check_rows(dist, piped, X, y, folds, sample_weight=weight, groups=groups)


def test_a_local_expert_and_its_jobs(rng):
    X = pd.DataFrame({"town": rng.choice(["a", "b"], 60), "x": rng.normal(size=60)})
    y = X["x"] + rng.normal(size=60)
    model = LocalExpertRegressor(center=LinearRegression(), random_state=0, **QUICK)
    dist = cross_val_predict_dist(model, X, y, cv=2, n_jobs=2)
    first = clone(model).fit(X.iloc[30:], y.iloc[30:]).predict_dist(X.iloc[:30])
    np.testing.assert_allclose(dist[:30].mean(), first.mean(), rtol=1e-9)
    np.testing.assert_allclose(dist[:30].crps(y[:30]), first.crps(y[:30]), rtol=1e-5)
    polars = cross_val_predict_dist(model, pl.from_pandas(X), y, cv=2)
    np.testing.assert_array_equal(polars.mean(), dist.mean())


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"cv": TimeSeriesSplit(3)}, ValueError, "test part here, got 6 of 24 rows in"),
        (
            {"cv": ShuffleSplit(9, random_state=0)},
            ValueError,
            "more than one test part",
        ),
        ({"cv": [(range(24), range(24))]}, ValueError, "test rows out of the training"),
        ({"cv": 1}, ValueError, "`cv` must be at least 2, got 1"),
        ({"y": np.zeros(9)}, ValueError, "`y` must be as long as X, got 9 and 24"),
        ({"sample_weight": [1.0]}, ValueError, "`sample_weight` must be as long"),
        ({"groups": [1, 2]}, ValueError, "`groups` must be as long"),
        ({"n_jobs": 0}, ValueError, "`n_jobs` must not be 0"),
        (
            {"model": LinearRegression()},
            TypeError,
            "predict_dist, got LinearRegression",
        ),
    ],
)
def test_bad_input_is_named(table, change, error, words):
    X, y = table
    given = {"model": Kinds(), "X": X, "y": y, **change}
    with pytest.raises(error, match=words):
        cross_val_predict_dist(
            given.pop("model"), given.pop("X"), given.pop("y"), **given
        )


def test_weights_that_no_fit_takes(table):
    class Plain(Kinds):
        def fit(self, X, y):
            return super().fit(X, y)

    with pytest.raises(TypeError, match="`sample_weight` must be None for a model"):
        cross_val_predict_dist(Plain(), *table, sample_weight=np.ones(24))
