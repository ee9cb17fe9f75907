"""Held-out trials, harm, and the pool of least loss, against loops and optimisers."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax
from scipy.stats import norm

from calibration import (
    IdentityCalibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    ScoreSummary,
)
from calibration.multiclass.class_scores import simplest_of_best
from calibration.selection.trials import Cells, Trials, hold_trials, read_log_odds
from tests.calibration.multiclass.draws import draw


def both(log_odds):
    """Log-probabilities of both classes."""
    return np.stack([-np.logaddexp(0.0, log_odds), -np.logaddexp(0.0, -log_odds)])


def hold(odds, weight0, weight1):
    """Trials of candidates with these log-odds."""
    names = tuple("abcdef"[: len(odds)])
    weight = np.stack([weight0, weight1]).astype(float)
    return Trials(names, np.stack([both(row) for row in odds]), weight, {})


def odds_of(trials):
    """Log-odds of all candidates."""
    return trials.logs[:, 1] - trials.logs[:, 0]


# Three candidates on 60 cells: one too steep, one good, one of noise.
RNG = np.random.default_rng(0)
Z = np.sort(RNG.normal(scale=2.0, size=60))
WEIGHT0 = RNG.binomial(5, expit(-Z)).astype(float)
ODDS = np.stack([3.0 * Z, Z + 0.1, RNG.normal(size=60)])
TRIALS = hold(ODDS, WEIGHT0, 5.0 - WEIGHT0)


def gap_and_error(trials, one, other):
    gap = trials.losses(both(one)).less(trials.losses(both(other)))
    return gap.mean, gap.error


def harm(trials, one, other):
    return trials.losses(both(one)).harm(trials.losses(both(other)))


def row_losses(log_odds):
    """Losses of each row of the trials, those without the event first."""
    losses = np.logaddexp(0.0, np.stack([log_odds, -log_odds]))
    return np.repeat(losses.ravel(), TRIALS.weight.ravel().astype(int))


def test_mean_and_error_are_those_of_single_rows():
    for row in ODDS:
        losses = row_losses(row)
        found = TRIALS.losses(both(row))
        assert found.mean == pytest.approx(losses.mean())
        assert found.error == pytest.approx(losses.std(ddof=1) / np.sqrt(len(losses)))


def test_harm_is_the_smaller_of_normal_tail_and_likelihood_ratio():
    bad, good, _ = ODDS
    for one, other in [(good, bad), (bad, good), (good, good + 0.03)]:
        gaps = row_losses(one) - row_losses(other)
        z = gaps.mean() / (gaps.std(ddof=1) / np.sqrt(len(gaps)))
        expected = min(norm.cdf(z), np.exp(gaps.sum()))
        assert harm(TRIALS, one, other) == pytest.approx(expected)
    assert harm(TRIALS, good, good) == 0.0


def test_one_impossible_event_is_proof_enough():
    """Its loss makes the mean and the error alike: z stays near -1 whatever n."""
    sure, careful = np.array([-36.0, -5.0]), np.array([-5.0, -5.0])
    one = hold(np.stack([sure, careful]), np.array([50.0, 50.0]), np.array([1.0, 0]))
    gap, error = gap_and_error(one, careful, sure)
    assert -1.0 < gap / error < -0.9
    assert harm(one, careful, sure) < 1e-10


def test_one_row_has_no_error_to_go_by():
    one = hold(np.array([[0.0], [1.0]]), np.zeros(1), np.ones(1))
    assert one.losses(one.logs[1]).error == np.inf
    assert harm(one, *odds_of(one)[::-1]) == 0.5


def test_simplest_of_best_is_the_first_within_a_quarter_of_an_error():
    def best(trials):
        return simplest_of_best([trials.losses(one) for one in trials.logs])

    assert best(TRIALS) == 1
    good = ODDS[1]
    rough, steep = good + 0.01 * (-1.0) ** np.arange(60), 1.05 * good
    gap, error = gap_and_error(TRIALS, rough, good)
    assert 0.0 < gap <= 0.25 * error
    assert best(hold(np.stack([rough, good]), *TRIALS.weight)) == 0
    gap, error = gap_and_error(TRIALS, steep, good)
    assert gap > 0.25 * error
    assert best(hold(np.stack([steep, good]), *TRIALS.weight)) == 1


def total(w, trials):
    """The total loss of a pool as it is written."""
    z = np.tensordot(w, trials.logs, axes=1)
    loss = -(trials.weight * log_softmax(z, axis=0)).sum()
    return loss + 5.0 * ((w - np.eye(len(w))[0]) ** 2).sum()


@pytest.mark.parametrize("k", [2, 3])
def test_stack_is_the_optimum_of_a_general_optimiser(k, rng):
    p, y = draw(rng, 200, k)
    candidates = [p, draw(rng, 200, k)[0], p**0.3, 1.0 - 0.9 * p]
    logs = np.stack([log_softmax(np.log(one.T), axis=0) for one in candidates])
    weight = np.eye(k)[y].T * rng.integers(1, 4, size=200)
    trials = Trials(tuple("abcd"), logs, weight, {})
    how = {"bounds": [(0.0, None)] * 4, "options": {"ftol": 1e-15, "gtol": 1e-10}}
    truth = minimize(total, np.full(4, 0.3), trials, "L-BFGS-B", **how)
    found = trials.stack()
    np.testing.assert_allclose(found, truth.x, atol=1e-4)
    assert total(found, trials) <= truth.fun + 1e-9
    # One of them is at its bound.
    assert (found == 0.0).any()


def test_stack_of_extreme_log_odds_is_finite():
    odds = np.array([[-700.0, -30.0, 30.0, 700.0], [-1.0, 0.0, 0.5, 1.0]])
    wrong = hold(odds, np.array([9.0, 5.0, 5.0, 1.0]), np.array([1.0, 5.0, 5.0, 9.0]))
    weights = wrong.stack()
    assert np.isfinite(weights).all()
    assert wrong.losses(both(weights @ odds)).mean < wrong.losses(both(odds[0])).mean


def test_trials_are_fits_on_the_other_folds(rng):
    x = rng.normal(size=400)
    cells = ScoreSummary.from_scores(x, rng.uniform(size=400) < expit(2 * x))
    menu = {
        "identity": IdentityCalibrator(scale="logit"),
        "platt": PlattCalibrator(scale="logit"),
    }
    held = hold_trials(menu, Cells(cells), 4, 0)
    assert held.weight.sum() == 400
    by_hand = [
        PlattCalibrator(scale="logit")
        .fit_summary(rest.summary)
        .predict_log_odds(fold.summary.scores)
        for rest, fold in Cells(cells).folds(4, 0)
    ]
    np.testing.assert_allclose(odds_of(held)[1], np.concatenate(by_hand), atol=1e-12)
    np.testing.assert_allclose(np.sort(odds_of(held)[0]), cells.scores, atol=1e-12)
    assert not hasattr(menu["platt"], "coef_")
    few = Cells(ScoreSummary.from_scores([0, 1], [0, 1]))
    assert hold_trials(menu, few, 4, 0) is None


def test_log_odds_of_maps_are_clipped_to_what_n_rows_can_know():
    steps = IsotonicCalibrator(scale="logit").fit([-1, 0, 1, 2], [0, 0, 1, 1])
    odds = read_log_odds(steps, np.array([-5.0, 5.0]), 4.0)
    np.testing.assert_allclose(odds, [-np.log(9.0), np.log(9.0)])
    platt = PlattCalibrator(scale="logit").fit([-1, 0, 1, 2], [0, 0, 1, 1])
    far = read_log_odds(platt, np.array([800.0]), 4.0)
    assert far[0] == platt.predict_log_odds([800.0])[0] > 100.0
