"""The centre's forest: what it says is scikit-learn's, in a smaller file."""

import pickle
import zlib

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from localexpert.coordinate.forest import Forest
from localexpert.data.folds import make_folds

KINDS = [
    ExtraTreesRegressor(bootstrap=True),
    RandomForestRegressor(max_features=0.67, min_samples_leaf=3),
]


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: type(kind).__name__)
def fitted(request):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    # Ties on cuts, and numbers that single precision does not tell apart.
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] += 1e6
    y = X[:, 0] + X[:, 1] ** 2 + 0.1 * rng.normal(size=300)
    folds = make_folds(300, 3, random_state=0)
    forest = Forest(request.param, random_state=0, n_jobs=2)
    plain = clone(forest.make(300)).fit(X, y, sample_weight=np.ones(300))
    return forest.fit(X, y, folds, np.ones(300)), plain, X


def test_its_answers_are_those_of_the_plain_forest(fitted):
    forest, plain, X = fitted
    # Beyond what was seen, and on the cuts themselves.
    cuts = np.tile(plain.estimators_[0].tree_.threshold[:, None], 4)
    rows = np.concatenate([X, 3.0 * X, cuts, np.nextafter(cuts, np.inf)])
    expected = plain.predict(rows)
    # Leaves hold their means in single precision.
    np.testing.assert_allclose(
        forest.predict_each(rows)[0], expected, rtol=1e-7, atol=1e-7
    )
    # Its own way around the trees adds up in the order of scikit-learn's.
    again = forest.model_.set_params(n_jobs=None).predict(rows)
    np.testing.assert_array_equal(forest.predict_each(rows)[0], again)


def test_rows_find_the_leaves_of_the_plain_forest(fitted):
    forest, plain, X = fitted
    cuts = np.tile(plain.estimators_[0].tree_.threshold[:, None], 4)
    rows = np.concatenate([X, cuts, np.nextafter(cuts, -np.inf)])
    np.testing.assert_array_equal(forest.model_.apply(rows), plain.apply(rows))


def test_a_row_alone_is_told_what_it_is_told_among_others(fitted):
    forest, _, X = fitted
    alone = np.concatenate([forest.predict_each(X[[k]])[0] for k in range(20)])
    np.testing.assert_array_equal(alone, forest.predict_each(X[:20])[0])


def test_it_packs_to_half_of_the_plain_forest(fitted):
    forest, plain, _ = fitted
    sizes = [
        sum(len(zlib.compress(pickle.dumps(t.tree_))) for t in model.estimators_)
        for model in (forest.model_, plain)
    ]
    assert sizes[0] < 0.6 * sizes[1]
