"""Folds of rows, and the rows that trials are held on."""

import numpy as np
import pytest

from calibration.multiclass.class_folds import deal_by_class, draw_rows
from calibration.multiclass.class_scores import ClassScores


def make(labels):
    """Return rows of some labels; scores are their numbers."""
    labels = np.asarray(labels)
    n = len(labels)
    scores = np.column_stack([np.arange(n), np.zeros(n), np.zeros(n)]).astype(float)
    return ClassScores(scores, labels, np.ones(n))


def test_folds_spread_classes_evenly(rng):
    data = make(rng.choice(3, p=[0.7, 0.2, 0.1], size=103))
    folds = deal_by_class(data, 4, 0)
    np.testing.assert_array_equal(
        np.sort(np.concatenate([held for _, held in folds])), np.arange(103)
    )
    for rest, held in folds:
        assert not set(rest) & set(held)
        assert len(rest) + len(held) == 103
        shares = np.bincount(data.labels[held], minlength=3)
        expected = np.bincount(data.labels, minlength=3) / 4
        assert (np.abs(shares - expected) <= 1.0).all()


def test_one_seed_has_one_answer(rng):
    data = make(rng.integers(3, size=50))
    first, again = deal_by_class(data, 5, 7), deal_by_class(data, 5, 7)
    other = deal_by_class(data, 5, 8)
    assert all((a[1] == b[1]).all() for a, b in zip(first, again, strict=True))
    assert any(
        len(a[1]) != len(b[1]) or (a[1] != b[1]).any()
        for a, b in zip(first, other, strict=True)
    )


@pytest.mark.parametrize("labels", [[0], [0, 1], [0, 0, 0, 1]])
def test_rows_too_few_have_no_folds(labels):
    assert deal_by_class(make(labels), 5, 0) == []


def test_rows_are_drawn_where_they_are_many():
    data = make(np.arange(100) % 3)
    assert draw_rows(data, 100, 0) is data
    some = draw_rows(data, 30, 0)
    assert len(set(some.scores[:, 0])) == len(some.labels) == 30
    np.testing.assert_array_equal(some.labels, some.scores[:, 0].astype(int) % 3)
