"""Folds of rows, the rows that trials are held on, and losses that tell them apart."""

import numpy as np
import pytest

from calibration.multiclass.class_scores import ClassScores, deal_by_class, draw_rows


def make(labels):
    """Return rows of some labels; scores are their numbers."""
    labels = np.asarray(labels)
    n = len(labels)
    scores = np.column_stack([np.arange(n), np.zeros(n), np.zeros(n)]).astype(float)
    return ClassScores(scores, labels, np.ones(n))


def test_folds_spread_classes_evenly(rng):
    data = make(rng.choice(3, p=[0.7, 0.2, 0.1], size=103))
    folds = deal_by_class(data, 4, 0)
    held = np.concatenate([fold.scores[:, 0] for _, fold in folds])
    np.testing.assert_array_equal(np.sort(held), np.arange(103))
    for rest, fold in folds:
        assert not set(rest.scores[:, 0]) & set(fold.scores[:, 0])
        assert (np.abs(fold.counts - data.counts / 4) <= 1.0).all()


@pytest.mark.parametrize("labels", [[0], [0, 1], [0, 0, 0, 1]])
def test_rows_too_few_have_no_folds(labels):
    assert deal_by_class(make(labels), 5, 0) == []


def test_rows_are_drawn_where_they_are_many():
    data = make(np.arange(100) % 3)
    assert draw_rows(data, 100, 0) is data
    some = draw_rows(data, 30, 0)
    assert len(set(some.scores[:, 0])) == len(some.labels) == 30
    np.testing.assert_array_equal(some.labels, some.scores[:, 0].astype(int) % 3)
