"""Out-of-fold distributions against fits of the folds by hand."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from localexpert import cross_val_predict_dist, predict_dist
from tests.forecasts import beside, normal, of_values


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
        np.testing.assert_allclose(
            got.quantiles([0.05, 0.93]), own.quantiles([0.05, 0.93]), rtol=1e-6
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


def test_the_default_is_five_folds_in_order(table):
    X, y = table
    dist = cross_val_predict_dist(Kinds(), X, y, n_jobs=2)
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
    dist = cross_val_predict_dist(piped, X, y, cv=folds, sample_weight=weight)
    check_rows(dist, piped, X, y, folds, kinds__sample_weight=weight)
    with config_context(enable_metadata_routing=True):
        own = Kinds("s").set_fit_request(sample_weight=True, groups=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        piped = make_pipeline(scaler, own)
        dist = cross_val_predict_dist(
            piped, X, y, cv=folds, groups=groups, sample_weight=weight
        )
        check_rows(dist, piped, X, y, folds, sample_weight=weight, groups=groups)


class Plain(Kinds):
    """Takes no weights."""

    def fit(self, X, y):
        return super().fit(X, y)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cv": TimeSeriesSplit(3)}, "test part here, got 6 of 24 rows in"),
        ({"cv": ShuffleSplit(9, random_state=0)}, "more than one test part"),
        ({"cv": [(range(24), range(24))]}, "test rows out of the training"),
        ({"cv": 1}, "`cv` must be at least 2, got 1"),
        ({"y": np.zeros(9)}, "`y` must be as long as X, got 9 and 24"),
        ({"sample_weight": [1.0]}, "`sample_weight` must be as long"),
        ({"groups": [1, 2]}, "`groups` must be as long"),
        ({"n_jobs": 0}, "`n_jobs` must not be 0"),
        ({"model": LinearRegression()}, "predict_dist, got LinearRegression"),
        ({"model": Plain(), "sample_weight": np.ones(24)}, "must be None for a model"),
    ],
)
def test_bad_input_is_named(table, change, words):
    given = {"model": Kinds(), "X": table[0], "y": table[1], **change}
    with pytest.raises((TypeError, ValueError), match=words):
        cross_val_predict_dist(**given)
