"""Folds dealt by rank: they add up, hold both classes, and know no unit."""

import numpy as np

from calibration import ScoreSummary
from calibration.base.log_odds import deal_by_rank


def make_cells(rng, n=200):
    return ScoreSummary.from_scores(rng.normal(size=n), rng.random(n) < 0.3)


def test_a_fold_and_its_rest_are_the_whole(rng):
    cells = make_cells(rng)
    pairs = deal_by_rank(cells, 5, 0)
    assert len(pairs) == 5
    for rest, fold in pairs:
        whole = rest + fold
        np.testing.assert_array_equal(whole.scores, cells.scores)
        np.testing.assert_array_equal(whole.weight1, cells.weight1)
    assert sum(fold.n for _, fold in pairs) == cells.n


def test_the_unit_of_the_scores_plays_no_part(rng):
    cells = make_cells(rng)
    scaled = ScoreSummary(0.1 * cells.scores + 7.0, cells.weight0, cells.weight1)
    for (_, one), (_, other) in zip(
        deal_by_rank(cells, 4, 3), deal_by_rank(scaled, 4, 3), strict=True
    ):
        np.testing.assert_array_equal(0.1 * one.scores + 7.0, other.scores)
        np.testing.assert_array_equal(one.weight0, other.weight0)


def test_a_rest_of_one_class_is_left_out():
    """The only event is in one fold, whose rest has none."""
    cells = ScoreSummary.from_scores(np.arange(30.0), np.arange(30) == 11)
    pairs = deal_by_rank(cells, 3, 0)
    assert len(pairs) == 2
    assert all(fold.n1 == 0.0 for _, fold in pairs)


def test_too_few_rows_for_two_folds():
    assert deal_by_rank(ScoreSummary.from_scores([0.5], [1]), 5, 0) == []
