"""`JointForest`: leaves, bags, inputs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.tree import ExtraTreeRegressor

from localexpert.data.folds import make_folds
from localexpert.experts import JointForest
from localexpert.experts import joint_forest as joint_module
from localexpert.experts.joint_forest import LeafLaws
from localexpert.experts.thresholds import place_thresholds


@pytest.fixture
def problem(rng):
    n = 500
    X = rng.uniform(-1.0, 1.0, (n, 4)).astype(np.float32).astype(np.float64)
    r = 2.0 * X[:, 0] + (1.2 + X[:, 1]) * 0.4 * rng.normal(size=n)
    return X, r, place_thresholds(r, 9), make_folds(n, 4, random_state=0)


def brier(probabilities, r, thresholds):
    return np.mean((probabilities - (r[:, None] <= thresholds)) ** 2)


def test_is_as_good_as_scikit_learns_forest_on_the_indicators(problem, rng):
    X, r, thresholds, folds = problem
    how = {"min_samples_leaf": 3, "max_features": 0.67, "random_state": 0}
    ours = JointForest(200, **how).fit(X, r, thresholds, folds)
    theirs = ExtraTreesRegressor(200, bootstrap=True, oob_score=True, **how)
    theirs.fit(np.tile(X, (1, 3)), (r[:, None] <= thresholds).astype(float))
    reference = theirs.oob_prediction_
    # Two seeds of scikit-learn's forest are 0.035 apart.
    loss = brier(ours.oof_probabilities_, r, thresholds)
    assert 0.97 < loss / brier(reference, r, thresholds) < 1.03
    difference = ours.oof_probabilities_ - reference
    assert np.sqrt(np.mean(difference**2)) < 0.045
    new = rng.uniform(-1.0, 1.0, (300, 4))
    difference = ours.predict(new) - theirs.predict(np.tile(new, (1, 3)))
    assert np.sqrt(np.mean(difference**2)) < 0.03


def test_answers_are_the_shares_of_the_rows_in_the_leaves(problem, rng):
    """One tree that has drawn each row as often as it is weighted: counted by hand."""
    X, r, thresholds, _ = problem
    X = X.astype(np.float32)
    weights, below = rng.integers(0, 3, len(r)) * 1.0, np.searchsorted(thresholds, r)
    trees = [
        ExtraTreeRegressor(max_depth=depth, random_state=0).fit(X, r, weights).tree_
        for depth in (3, 5)
    ]
    parts = [LeafLaws.fill(t, X, below, weights, len(thresholds)) for t in trees]
    laws, new = LeafLaws.join(parts), X[:40]
    answers, hit = [], r[:, None] <= thresholds
    for tree in trees:
        leaves, own = tree.apply(X), tree.apply(new)
        held = [leaves == leaf for leaf in own]
        shares = [np.average(hit[at], axis=0, weights=weights[at]) for at in held]
        answers.append(np.array(shares))
    n_thresholds = len(thresholds)
    assert_allclose(laws.mean(new, n_thresholds), np.mean(answers, axis=0), atol=1e-6)
    asked = np.tile([[False, True]], (40, 1))
    asked[3] = False
    some = laws.mean(new, n_thresholds, asked)
    assert np.isnan(some[3]).all()
    assert_allclose(some[4:], answers[1][4:], atol=1e-6)


def test_all_components_keep_all_distances(rng):
    """Splits by them are splits by all indicators: the projection is a rotation."""
    below = rng.integers(0, 5, 300)
    weights = rng.uniform(0.5, 2.0, 300)
    table = joint_module.project_indicators(below, weights, 4, 4)
    indicators = np.arange(5)[:, None] <= np.arange(4)
    want = np.sqrt((indicators[:, None] != indicators).sum(axis=2))
    assert_allclose(np.linalg.norm(table[:, None] - table, axis=2), want, atol=1e-12)
    assert_allclose(weights @ table[below], 0.0, atol=1e-9)
    fewer = joint_module.project_indicators(below, weights, 4, 2)
    assert_allclose(fewer, table[:, :2])
    spread = weights @ table[below] ** 2
    assert (np.diff(spread) < 0.0).all()


def test_one_tree_out_of_bag(problem):
    """A single tree speaks for the rows it has not drawn; base rates fill the rest."""
    X, r, thresholds, folds = problem
    forest = JointForest(1, min_samples_leaf=2, random_state=0)
    oof = forest.fit(X, r, thresholds, folds).oof_probabilities_
    labels = r[:, None] <= thresholds
    others = (labels.sum(axis=0) - labels + 1.0) / (len(r) - 1 + 2.0)
    is_base = (oof == others).all(axis=1)
    assert is_base.mean() == pytest.approx(1.0 - np.exp(-1.0), abs=0.07)
    assert brier(oof[~is_base], r[~is_base], thresholds) < 0.12


def test_new_rows_are_spared_the_noise_of_trees_that_were_silent(problem):
    """Of m trees that speak it is p (1 - p) / m, where leaves hold single rows."""
    X, r, thresholds, folds = problem
    bags = JointForest(60, random_state=0).fit(X, r, thresholds, folds)
    # A tree has drawn a row with probability 1 - 1 / e.
    assert bags.spared_ == pytest.approx((np.e - 1.0) / 60, rel=0.1)
    parts = JointForest(60, out_of_bag=False, random_state=0)
    assert parts.fit(X, r, thresholds, folds).spared_ == pytest.approx(3.0 / 60)
    pairs = parts.set_params(min_samples_leaf=2).fit(X, r, thresholds, folds)
    assert pairs.spared_ == pytest.approx(3.0 / 120)
