"""What every strategy promises: honesty, repeatability, weights, any table."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from examples.templates.own_experts import NearestExperts
from localexpert.data.folds import make_folds
from localexpert.experts import IndependentExperts, JointForest, SharedBoosting
from localexpert.experts.thresholds import place_thresholds

LIGHT = LGBMClassifier(n_estimators=10, num_leaves=7, min_data_per_group=5)
STRATEGIES = {
    "shared": SharedBoosting(max_rounds=20, random_state=0),
    "forest": JointForest(30, random_state=0),
    "forest by folds": JointForest(30, out_of_bag=False, random_state=0),
    "boosted": IndependentExperts(random_state=0),
    "lightgbm": IndependentExperts(LIGHT, random_state=0),
    "logistic": IndependentExperts(LogisticRegression()),
    "svm": IndependentExperts(LinearSVC(), random_state=0),
    "template": NearestExperts(),
}
TABLES = ("shared", "forest", "forest by folds", "boosted", "template")


def strategies(*names):
    names = names or tuple(STRATEGIES)
    params = [pytest.param(STRATEGIES[n], id=n) for n in names]
    return pytest.mark.parametrize("experts", params)


@pytest.fixture
def problem(rng):
    """Heteroscedastic targets of two features, a third is noise."""
    n = 240
    X = rng.uniform(-1.0, 1.0, (n, 3))
    r = 2.0 * X[:, 0] + np.exp(X[:, 1]) * 0.4 * rng.normal(size=n)
    return X, r, place_thresholds(r, 7), make_folds(n, 3, random_state=0)


def brier(probabilities, r, thresholds):
    return np.mean((probabilities - (r[:, None] <= thresholds)) ** 2)


def base_brier(r, thresholds):
    rates = np.mean(r[:, None] <= thresholds, axis=0)
    return np.mean(rates * (1.0 - rates))


@strategies()
def test_learns_and_answers_in_range(experts, problem, rng):
    X, r, thresholds, folds = problem
    fitted = clone(experts).fit(X, r, thresholds, folds)
    oof = fitted.oof_probabilities_
    assert oof.shape == (len(r), len(thresholds))
    assert oof.dtype == np.float64
    assert 0.0 <= oof.min() <= oof.max() <= 1.0
    assert brier(oof, r, thresholds) < 0.75 * base_brier(r, thresholds)
    np.testing.assert_array_equal(fitted.thresholds_, thresholds)
    new = rng.uniform(-1.0, 1.0, (500, 3))
    r_new = 2.0 * new[:, 0] + np.exp(new[:, 1]) * 0.4 * rng.normal(size=500)
    probabilities = fitted.predict(new)
    assert probabilities.shape == (500, len(thresholds))
    assert brier(probabilities, r_new, thresholds) < 0.75 * base_brier(r, thresholds)


@strategies("shared", "forest", "forest by folds")
@pytest.mark.parametrize(
    ("unit", "offset"), [(1.0, 1e8), (2.0**130, 0.0), (2.0**-30, 0.0)]
)
def test_features_keep_their_precision(experts, problem, unit, offset):
    # In single precision 1e8 has no neighbour nearer than 8, and 2^130 is infinite.
    # Trees of scikit-learn take values within 1e-7 as equal.
    X, r, thresholds, folds = problem
    plain = clone(experts).fit(X, r, thresholds, folds)
    moved = clone(experts).fit(unit * X + offset, r, thresholds, folds)
    # LightGBM gives zero a bin of its own, so its bins are not quite the same.
    for expected, found in (
        (plain.oof_probabilities_, moved.oof_probabilities_),
        (plain.predict(X), moved.predict(unit * X + offset)),
    ):
        assert np.abs(found - expected).mean() < 0.02
        assert brier(found, r, thresholds) < 1.03 * brier(expected, r, thresholds)


@strategies("shared", "forest", "forest by folds")
def test_increases_along_the_thresholds(experts, problem):
    X, r, thresholds, folds = problem
    fitted = clone(experts).fit(X, r, thresholds, folds)
    for probabilities in (fitted.oof_probabilities_, fitted.predict(X)):
        assert (np.diff(probabilities, axis=1) >= 0.0).all()


@strategies()
def test_a_rows_own_target_never_changes_its_answer(experts, problem, monkeypatch):
    X, r, thresholds, folds = problem
    # The number of rounds is one for all and any label may move it: hold it.
    monkeypatch.setattr("localexpert.experts.independent._MOST_ROUNDS", 8)
    experts = clone(experts)
    first = clone(experts).fit(X, r, thresholds, folds)
    for row in (int(np.argmin(r)), int(np.argmax(r))):
        flipped = r.copy()
        flipped[row] = r.max() + r.min() - r[row]
        second = clone(experts).fit(X, flipped, thresholds, folds)
        rounds = [getattr(fit, "n_rounds_", None) for fit in (first, second)]
        assert rounds[0] == rounds[1]
        told = [fit.oof_probabilities_[row] for fit in (first, second)]
        np.testing.assert_array_equal(*told)
        assert (second.oof_probabilities_ != first.oof_probabilities_).any()


@strategies(*list(STRATEGIES)[:-1])  # the template does its work in one job
def test_does_not_depend_on_n_jobs(experts, problem):
    X, r, thresholds, folds = problem
    one, two = (
        clone(experts).set_params(n_jobs=n_jobs).fit(X, r, thresholds, folds)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.oof_probabilities_, two.oof_probabilities_)
    # Nor do answers depend on parameters that were set after the fit.
    for name in one.get_params(deep=False).keys() - {"n_jobs"}:
        setattr(one, name, "another")
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


@strategies()
def test_rows_without_weight_are_absent(experts, problem, rng):
    X, r, thresholds, folds = problem
    n, n_more = len(r), 2 * len(r)
    more = rng.uniform(-1.0, 1.0, (n_more, 3))
    # A column far from 0 for its spread is moved before it gets single precision.
    X, more = X + [1e9, 0.0, 0.0], more * [1e9, 1.0, 1.0]
    weight = np.concatenate([rng.uniform(0.5, 2.0, n), np.zeros(n_more)])
    new = np.arange(n, n + n_more)
    wider = [
        (np.append(train, new[new % 3 != k]), np.append(test, new[new % 3 == k]))
        for k, (train, test) in enumerate(folds)
    ]
    lone = clone(experts).fit(X, r, thresholds, folds, weight[:n])
    rows = np.concatenate([X, more]), np.append(r, rng.normal(size=n_more) * 9.0)
    wide = clone(experts).fit(*rows, thresholds, wider, weight)
    np.testing.assert_array_equal(lone.predict(more), wide.predict(more))
    np.testing.assert_array_equal(lone.oof_probabilities_, wide.oof_probabilities_[:n])
    assert np.isfinite(wide.oof_probabilities_[n:]).all()
    # The weights themselves reach the learner.
    plain = clone(experts).fit(X, r, thresholds, folds)
    assert (plain.oof_probabilities_ != lone.oof_probabilities_).any()


@strategies()
@pytest.mark.parametrize(("n", "cv"), [(2, 2), (4, 2), (5, 5)])
def test_tiny_data(experts, n, cv):
    r = np.arange(n, dtype=float)
    thresholds = place_thresholds(r, 2)
    folds = make_folds(n, cv, random_state=0)
    fitted = clone(experts).fit(r[:, None], r, thresholds, folds)
    for probabilities in (fitted.oof_probabilities_, fitted.predict(r[:, None])):
        assert probabilities.shape == (n, len(thresholds))
        assert ((probabilities >= 0.0) & (probabilities <= 1.0)).all()


@strategies(*TABLES)
def test_frames_with_categories_and_gaps(experts, problem):
    """The problem with its first feature as a category, gaps, and other types."""
    X, r, thresholds, folds = problem
    frame = pd.DataFrame({"number": X[:, 1], "flag": X[:, 2] > 0.0})
    frame["text"] = [f"c{code}" for code in np.digitize(X[:, 0], np.linspace(-1, 1, 9))]
    frame["count"] = pd.array(np.arange(len(r)) % 5, dtype="Int64")
    frame.loc[::7, "number"] = frame.loc[::11, "text"] = frame.loc[3, "count"] = None
    frame["kind"] = frame["text"].astype("category")
    fitted = clone(experts).fit(frame, r, thresholds, folds)
    loss = brier(fitted.oof_probabilities_, r, thresholds)
    assert loss < 0.8 * base_brier(r, thresholds)
    new = frame.head(6).copy()
    new.loc[0, "text"] = "never met"
    assert np.isfinite(fitted.predict(new)).all()
