"""The walk over all thresholds at once is LightGBM's own answer at each of them."""

import lightgbm as lgb
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from localexpert.experts.shared_boosting import ThresholdTrees

PLACES = np.arange(0.0, 11.0)


def boost(rng, *, categories, missing, n=2000, n_rounds=30, **options):
    """A model of `r <= place` of numbers, a category of many values, and gaps."""
    X = rng.normal(size=(n, 4))
    X[:, 1] = rng.integers(0, 70, n)
    if missing:
        X[rng.random((n, 4)) < 0.1] = np.nan
    effect = rng.normal(size=70)
    r = np.nan_to_num(X[:, 0]) + 2.0 * effect[np.nan_to_num(X[:, 1]).astype(int)] + 4.0
    r += 2.0 * np.isnan(X[:, 2])
    place = rng.uniform(0.5, 9.5, n)
    parameters = {
        "objective": "binary",
        "verbosity": -1,
        "num_threads": 1,
        "min_data_per_group": 5,
        "monotone_constraints": [0, 0, 0, 0, 1],
        **options,
    }
    table, below = np.column_stack([X, place]), (r <= place).astype(float)
    data = lgb.Dataset(table, below, categorical_feature=categories)
    return lgb.train(parameters, data, n_rounds), X


def ask_lightgbm(booster, X):
    table = np.column_stack(
        [np.repeat(X, len(PLACES), axis=0), np.tile(PLACES, len(X))]
    )
    raw = booster.predict(table, raw_score=True, num_threads=1)
    return raw.reshape(len(X), len(PLACES))


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("categories", [[], [1]])
def test_equals_lightgbm(rng, categories, missing):
    booster, X = boost(rng, categories=categories, missing=missing)
    X = X[:300]
    # Categories never met, negative ones, and gaps where training had none.
    X[:20, 1], X[20:30, 1], X[30:40] = 300.0, -1.0, np.nan
    raw, first, rest = (
        ThresholdTrees.from_booster(booster, *rounds).sum(X, PLACES)
        for rounds in ((), (0, 10), (10, 30))
    )
    assert_allclose(first + rest, raw, atol=1e-12)
    assert_array_equal(raw, ask_lightgbm(booster, X))
    assert (np.diff(raw, axis=1) >= 0.0).all()
    assert (np.diff(raw, axis=1) > 0.0).any()


def test_trees_of_one_leaf(rng):
    booster, X = boost(rng, categories=[], missing=False, min_data_in_leaf=2000)
    trees = ThresholdTrees.from_booster(booster)
    assert len(trees.feature) == 0
    assert_array_equal(trees.sum(X[:5], PLACES), ask_lightgbm(booster, X[:5]))


def test_zero_as_missing_is_refused(rng):
    booster, _ = boost(rng, categories=[], missing=False, zero_as_missing=True)
    with pytest.raises(ValueError, match="must not take zeros as missing"):
        ThresholdTrees.from_booster(booster)
