from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from calibration.measures import auc_score


def count_wins(y, p, w, i, j):
    """A(i | j) over all pairs of rows."""
    wins = total = 0.0
    for a in np.flatnonzero(y == i):
        for b in np.flatnonzero(y == j):
            pair = w[a] * w[b]
            wins += pair * ((p[a, i] > p[b, i]) + 0.5 * (p[a, i] == p[b, i]))
            total += pair
    return wins / total


def draw(rng, n=60, k=4):
    p = rng.multinomial(10, rng.dirichlet(np.ones(k), size=n)) / 10.0
    return rng.integers(0, k, size=n), p


def test_is_the_mean_over_pairs_of_classes_and_rows(rng):
    y, p = draw(rng)
    w = rng.uniform(size=len(y))
    means = [
        0.5 * (count_wins(y, p, w, i, j) + count_wins(y, p, w, j, i))
        for i, j in combinations(range(4), 2)
    ]
    assert auc_score(y, p, sample_weight=w) == pytest.approx(np.mean(means), rel=1e-12)


@pytest.mark.parametrize("unit", [2.0**-540, 2.0**-1000, 2.0**40])
def test_knows_no_unit_of_weights(rng, unit):
    """Products of weights, which pairs have, underflow."""
    y, p = draw(rng)
    w = rng.uniform(size=len(y))
    expected = auc_score(y, p, sample_weight=w)
    assert auc_score(y, p, sample_weight=unit * w) == expected
    # Nor of the rows of one class: A(i | j) is a mean over pairs.
    w = np.where(y == 2, unit, 1.0) * w
    assert auc_score(y, p, sample_weight=w) == pytest.approx(expected, rel=1e-12)


def test_scikit_learn_agrees(rng):
    y, p = draw(rng, 500)
    theirs = roc_auc_score(y, p, multi_class="ovo", average="macro")
    assert auc_score(y, p) == pytest.approx(theirs, rel=1e-12)
    ones, chances = y > 1, p[:, 0]
    w = rng.integers(0, 3, size=len(y))
    theirs = roc_auc_score(ones, chances, sample_weight=w)
    assert auc_score(ones, chances, sample_weight=w) == pytest.approx(theirs, rel=1e-12)


def test_by_hand():
    assert auc_score([0, 1, 1], [0.5, 0.5, 0.9]) == 0.75
    assert auc_score([0, 1, 2], np.eye(3)) == 1.0
    assert auc_score([1, 2, 0], np.full((3, 3), 1 / 3)) == 0.5
    # Two of three classes have rows: one pair is left.
    assert auc_score([0, 1], [[0.6, 0.2, 0.2], [0.2, 0.2, 0.6]]) == 0.75


def test_two_classes_are_one_pair(rng):
    y, chances = rng.integers(0, 2, size=80), rng.uniform(size=80)
    rows = np.column_stack([1.0 - chances, chances])
    assert auc_score(y, rows) == pytest.approx(auc_score(y, chances), rel=1e-13)


def test_order_alone_counts(rng):
    y, chances = rng.integers(0, 2, size=80), rng.uniform(size=80)
    assert auc_score(y, chances) == pytest.approx(auc_score(y, chances**7), rel=1e-13)


@pytest.mark.parametrize(
    ("y", "p", "w"),
    [
        ([1, 1], [0.2, 0.4], None),
        ([1, 0], [0.2, 0.4], [1, 0]),
        ([1], [[0.2, 0.4, 0.4]], None),
    ],
)
def test_one_class_has_no_order(y, p, w):
    with pytest.raises(ValueError, match="`y_true` must hold two classes or more, got"):
        auc_score(y, p, sample_weight=w)
