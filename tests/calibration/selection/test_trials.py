"""Held-out trials: against rows written out one by one, and a general optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm

from calibration.logistic.identity import IdentityCalibrator
from calibration.logistic.polynomial import PlattCalibrator
from calibration.measures import log_loss
from calibration.monotone.isotonic import IsotonicCalibrator
from calibration.selection.trials import (
    HeldOut,
    deal_folds,
    hold_trials,
    read_log_odds,
)
from calibration.summary import ScoreSummary


@pytest.fixture
def trials(rng):
    """Three candidates on 60 cells: one too steep, one good, one of noise."""
    z = np.sort(rng.normal(scale=2.0, size=60))
    weight0 = rng.binomial(5, expit(-z)).astype(float)
    odds = np.stack([3.0 * z, z + 0.1, rng.normal(size=60)])
    return HeldOut(odds, weight0, 5.0 - weight0)


def rows_of(trials):
    """Every row on its own: place of its cell, and its label."""
    cells = np.arange(len(trials.weight0))
    place = np.concatenate(
        [
            np.repeat(cells, trials.weight0.astype(int)),
            np.repeat(cells, trials.weight1.astype(int)),
        ]
    )
    return place, np.repeat(
        [0, 1], [int(trials.weight0.sum()), int(trials.weight1.sum())]
    )


def gap_and_error(trials, one, other):
    gap = trials.losses(one).less(trials.losses(other))
    return gap.mean, gap.error


def harm(trials, one, other):
    return trials.losses(one).harm(trials.losses(other))


def row_losses(trials, log_odds):
    place, y = rows_of(trials)
    return np.logaddexp(0.0, np.where(y == 1, -1.0, 1.0) * log_odds[place])


def test_mean_and_error_are_those_of_single_rows(trials):
    for row in trials.log_odds:
        losses = row_losses(trials, row)
        found = trials.losses(row)
        mean, error = found.mean, found.error
        assert mean == pytest.approx(losses.mean())
        assert error == pytest.approx(losses.std(ddof=1) / np.sqrt(len(losses)))
        place, y = rows_of(trials)
        assert mean == pytest.approx(log_loss(y, expit(row)[place]))


def test_harm_is_the_smaller_of_normal_tail_and_likelihood_ratio(trials):
    bad, good, _ = trials.log_odds
    for one, other in [(good, bad), (bad, good), (good, good + 0.03)]:
        gaps = row_losses(trials, one) - row_losses(trials, other)
        z = gaps.mean() / (gaps.std(ddof=1) / np.sqrt(len(gaps)))
        expected = min(norm.cdf(z), np.exp(gaps.sum()))
        assert harm(trials, one, other) == pytest.approx(expected)
    assert harm(trials, good, good) == 0.0


def test_one_impossible_event_is_proof_enough():
    """Its loss makes the mean and the error alike: z stays near -1 whatever n."""
    sure, careful = np.array([-36.0, -5.0]), np.array([-5.0, -5.0])
    one = HeldOut(np.stack([sure, careful]), np.array([50.0, 50.0]), np.array([1.0, 0]))
    gap, error = gap_and_error(one, careful, sure)
    assert -1.0 < gap / error < -0.9
    assert harm(one, careful, sure) < 1e-10


def test_the_likelihood_ratio_seldom_refutes_a_reference_that_is_right(rng):
    z = rng.normal(size=50)
    refuted = []
    for _ in range(500):
        weight1 = rng.binomial(1, expit(z)).astype(float)
        held = HeldOut(np.stack([z, 0.5 * z]), 1.0 - weight1, weight1)
        gap, _ = gap_and_error(held, 0.5 * z, z)
        refuted.append(len(z) * gap < np.log(0.1))
    assert np.mean(refuted) <= 0.1


def test_one_row_has_no_error_to_go_by():
    one = HeldOut(np.array([[0.0], [1.0]]), np.zeros(1), np.ones(1))
    assert one.losses(one.log_odds[1]).error == np.inf
    assert harm(one, one.log_odds[1], one.log_odds[0]) == 0.5


def test_simplest_of_best_is_the_first_within_one_standard_error(trials):
    assert trials.simplest_of_best() == 1
    good = trials.log_odds[1]
    rough = good + 0.05 * (-1.0) ** np.arange(60)
    gap, error = gap_and_error(trials, rough, good)
    near = HeldOut(np.stack([rough, good]), trials.weight0, trials.weight1)
    assert 0.0 < gap <= error
    assert near.simplest_of_best() == 0
    steep = HeldOut(np.stack([1.05 * good, good]), trials.weight0, trials.weight1)
    gap, error = gap_and_error(steep, 1.05 * good, good)
    assert gap > error
    assert steep.simplest_of_best() == 1


@pytest.mark.parametrize("ridge", [0.01, 10.0, 1000.0])
def test_stack_is_the_optimum_of_a_general_optimiser(trials, ridge):
    def loss(w):
        return (
            row_losses(trials, w @ trials.log_odds).sum()
            + ridge / 2 * ((w - [1, 0, 0]) ** 2).sum()
        )

    weights = trials.stack(ridge)
    best = minimize(
        loss,
        np.full(3, 0.3),
        bounds=[(0, None)] * 3,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-9},
    )
    assert (weights >= 0.0).all()
    assert loss(weights) <= best.fun + 1e-9
    np.testing.assert_allclose(weights, best.x, atol=1e-4)


def test_stack_leaves_out_what_does_harm_exactly(trials):
    good = trials.log_odds[1]
    two = HeldOut(np.stack([0.5 * good, -good]), trials.weight0, trials.weight1)
    weights = two.stack(1.0)
    assert weights[1] == 0.0
    assert weights[0] > 1.5


def test_stack_of_extreme_log_odds_is_finite():
    odds = np.array([[-700.0, -30.0, 30.0, 700.0], [-1.0, 0.0, 0.5, 1.0]])
    wrong = HeldOut(
        odds, np.array([9.0, 5.0, 5.0, 1.0]), np.array([1.0, 5.0, 5.0, 9.0])
    )
    weights = wrong.stack(10.0)
    assert np.isfinite(weights).all()
    assert wrong.losses(weights @ odds).mean < wrong.losses(odds[0]).mean


def test_folds_are_disjoint_parts_of_the_summary(rng):
    cells = ScoreSummary.from_scores(
        rng.normal(size=300), rng.integers(0, 2, 300), rng.integers(1, 4, 300)
    )
    pairs = deal_folds(cells, 5, 0)
    assert len(pairs) == 5
    whole = sum(fold for _, fold in pairs)
    np.testing.assert_array_equal(whole.scores, cells.scores)
    np.testing.assert_array_equal(whole.weight1, cells.weight1)
    for rest, fold in pairs:
        np.testing.assert_array_equal((rest + fold).weight0, cells.weight0)


def test_folds_do_not_depend_on_the_unit_of_scores(rng):
    x, y = rng.normal(size=100), rng.integers(0, 2, 100)
    once = deal_folds(ScoreSummary.from_scores(x, y), 3, 0)
    again = deal_folds(ScoreSummary.from_scores(3.3 * x - 1.0, y), 3, 0)
    for (_, one), (_, other) in zip(once, again, strict=True):
        np.testing.assert_array_equal(one.weight0, other.weight0)
        np.testing.assert_allclose(other.scores, 3.3 * one.scores - 1.0)


def test_folds_whose_rest_has_one_class_are_left_out():
    assert deal_folds(ScoreSummary.from_scores([0.0, 1.0], [0, 1]), 5, 0) == []
    one_event = ScoreSummary.from_scores(np.arange(40.0), np.arange(40) == 7)
    pairs = deal_folds(one_event, 4, 0)
    assert len(pairs) == 3
    assert all(fold.n1 == 0.0 for _, fold in pairs)


def test_trials_are_fits_on_the_other_folds(rng):
    x = rng.normal(size=400)
    cells = ScoreSummary.from_scores(x, rng.uniform(size=400) < expit(2 * x))
    menu = {
        "identity": IdentityCalibrator(scale="logit"),
        "platt": PlattCalibrator(scale="logit"),
    }
    held = hold_trials(menu, cells, 4, 0)
    assert held.weight0.sum() + held.weight1.sum() == 400
    by_hand = [
        PlattCalibrator(scale="logit").fit_summary(rest).predict_log_odds(fold.scores)
        for rest, fold in deal_folds(cells, 4, 0)
    ]
    np.testing.assert_array_equal(held.log_odds[1], np.concatenate(by_hand))
    np.testing.assert_array_equal(np.sort(held.log_odds[0]), cells.scores)
    assert not hasattr(menu["platt"], "coef_")
    assert hold_trials(menu, ScoreSummary.from_scores([0, 1], [0, 1]), 4, 0) is None


def test_log_odds_of_maps_are_clipped_to_what_n_rows_can_know():
    steps = IsotonicCalibrator(scale="logit").fit([-1, 0, 1, 2], [0, 0, 1, 1])
    odds = read_log_odds(steps, np.array([-5.0, 5.0]), 4.0)
    np.testing.assert_allclose(odds, [-np.log(9.0), np.log(9.0)])
    platt = PlattCalibrator(scale="logit").fit([-1, 0, 1, 2], [0, 0, 1, 1])
    far = read_log_odds(platt, np.array([800.0]), 4.0)
    assert far[0] == platt.predict_log_odds([800.0])[0] > 100.0
