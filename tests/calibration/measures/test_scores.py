"""Scores beside their formulas, scikit-learn and figures by hand."""

import math
from itertools import combinations

import numpy as np
import pytest
import sklearn.metrics
from sklearn.metrics import roc_auc_score

from calibration import auc_score, brier_score, log_loss, spherical_score

LOSSES = {
    brier_score: lambda y, p: (p - y) ** 2,
    log_loss: lambda y, p: -math.log(p if y else 1.0 - p),
    spherical_score: lambda y, p: (
        1.0 - (p if y else 1.0 - p) / math.sqrt(p * p + (1.0 - p) ** 2)
    ),
}


@pytest.mark.parametrize("measure", LOSSES)
def test_is_the_weighted_mean_of_the_formula(measure, rng):
    y = rng.integers(0, 2, size=50)
    p = rng.uniform(0.01, 0.99, size=50)
    w = rng.uniform(size=50)
    total = 0.0
    for yi, pi, wi in zip(y, p, w, strict=True):
        total += wi * LOSSES[measure](yi, pi)
    assert measure(y, p, sample_weight=w) == pytest.approx(total / sum(w), rel=1e-13)


def test_hand_values():
    assert brier_score([0, 1, 1], [0.0, 1.0, 0.5]) == pytest.approx(0.25 / 3.0)
    assert log_loss([0, 1], [0.75, 0.25]) == pytest.approx(math.log(4.0))
    # q = 3/5 of what happened: s = .6 / sqrt(.52)
    expected = 1.0 - 0.6 / math.sqrt(0.52)
    assert spherical_score([0], [0.4]) == pytest.approx(expected)
    assert spherical_score([1], [0.0]) == 1.0


def test_scikit_learn_agrees(rng):
    y = rng.integers(0, 2, size=500)
    p = rng.uniform(0.001, 0.999, size=500)
    w = rng.uniform(size=500)
    theirs = sklearn.metrics.brier_score_loss(y, p, sample_weight=w)
    assert brier_score(y, p, sample_weight=w) == pytest.approx(theirs, rel=1e-12)
    theirs = sklearn.metrics.log_loss(y, p, sample_weight=w)
    assert log_loss(y, p, sample_weight=w) == pytest.approx(theirs, rel=1e-12)


@pytest.mark.parametrize(("y", "p"), [(1, 0.0), (0, 1.0)])
def test_log_loss_of_the_impossible_is_infinite(y, p):
    assert log_loss([y, 1, 0], [p, 0.5, 0.5]) == math.inf


def test_log_loss_of_an_impossible_row_that_counts_zero_times():
    assert log_loss([1, 1], [0.0, 0.5], sample_weight=[0, 1]) == math.log(2.0)


def test_log_loss_of_certain_and_right_is_zero():
    loss = log_loss([0, 1], [0.0, 1.0])
    assert loss == 0.0
    assert math.copysign(1.0, loss) == 1.0


def test_log_loss_keeps_tiny_probabilities():
    assert log_loss([0], [1e-20]) == pytest.approx(1e-20, rel=1e-12)
    assert log_loss([1], [1e-300]) == pytest.approx(-math.log(1e-300), rel=1e-12)


@pytest.mark.parametrize("clip", [1e-17, 1e-3, 0.25, 0.5])
def test_log_loss_clips_forecasts_on_both_sides(clip):
    y = [0, 0, 0, 1, 1, 1]
    p = np.array([0.0, 0.4, 1.0, 0.0, 0.4, 1.0])
    total = 0.0
    for yi, pi in zip(y, p, strict=True):
        q = pi if yi else 1.0 - pi
        q = min(max(q, clip), 1.0 - clip)
        total -= math.log(q)
    assert log_loss(y, p, clip=clip) == pytest.approx(total / 6.0, rel=1e-12)


def test_spherical_score_of_good_forecasts_keeps_its_digits():
    # 1 - s = (p / (1 - p))^2 / 2 to first order for y = 0
    assert spherical_score([0], [1e-9]) == pytest.approx(0.5e-18, rel=1e-8)


def spherical_loss(y, p):
    return 1.0 - p[y] / math.sqrt(sum(chance**2 for chance in p))


CLASS_LOSSES = {
    brier_score: lambda y, p: sum((p[c] - (c == y)) ** 2 for c in range(len(p))),
    log_loss: lambda y, p: -math.log(p[y]),
    spherical_score: spherical_loss,
}


@pytest.mark.parametrize("measure", CLASS_LOSSES)
@pytest.mark.parametrize("k", [2, 3, 6])
def test_classes_have_the_weighted_mean_of_the_formula(measure, k, rng):
    y = rng.integers(0, k, size=50)
    p = rng.dirichlet(np.ones(k), size=50)
    w = rng.uniform(size=50)
    losses = [CLASS_LOSSES[measure](*row) for row in zip(y, p, strict=True)]
    expected = np.average(losses, weights=w)
    assert measure(y, p, sample_weight=w) == pytest.approx(expected, rel=1e-12)


def test_scikit_learn_agrees_on_classes(rng):
    y = rng.integers(0, 4, size=500)
    p = rng.dirichlet(np.ones(4), size=500)
    w = rng.uniform(size=500)
    theirs = sklearn.metrics.log_loss(y, p, sample_weight=w)
    assert log_loss(y, p, sample_weight=w) == pytest.approx(theirs, rel=1e-12)
    rows = np.repeat(w, 4)
    # The mean over all cells of the table, of which a row has four.
    theirs = 4.0 * sklearn.metrics.mean_squared_error(
        np.eye(4)[y].ravel(), p.ravel(), sample_weight=rows
    )
    assert brier_score(y, p, sample_weight=w) == pytest.approx(theirs, rel=1e-12)


def test_hand_values_of_classes():
    p = [[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]]
    assert brier_score([0, 1], p) == pytest.approx((0.25 + 0.0625 + 0.0625) / 2.0)
    assert log_loss([0, 1], p) == pytest.approx(math.log(2.0) / 2.0)
    assert spherical_score([0, 1], p) == pytest.approx((1 - 0.5 / math.sqrt(0.375)) / 2)
    assert brier_score([2], [[1.0, 0.0, 0.0]]) == 2.0


def test_log_loss_of_classes_at_the_ends():
    p = [[0.0, 1.0, 0.0], [0.2, 0.3, 0.5]]
    assert log_loss([0, 2], p) == math.inf
    assert log_loss([0, 2], p, sample_weight=[0, 1]) == pytest.approx(math.log(2.0))
    assert log_loss([0], p[:1], clip=1e-12) == pytest.approx(-math.log(1e-12))
    certain = log_loss([1], p[:1])
    assert certain == 0.0
    assert math.copysign(1.0, certain) == 1.0
    assert log_loss([1], p[:1], clip=0.1) == pytest.approx(-math.log(0.9))


def test_good_forecasts_of_classes_keep_their_digits():
    p = [[1.0, 1e-9, 0.0]]
    assert brier_score([0], p) == pytest.approx(1e-18, rel=1e-12)
    assert spherical_score([0], p) == pytest.approx(0.5e-18, rel=1e-12)


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


def test_scikit_learn_has_the_same_auc(rng):
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
