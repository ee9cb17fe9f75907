"""Piecewise logistic regression against the paper's own parametrisation."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from calibration import LogisticCalibrator, PiecewiseLogisticCalibrator, ScoreSummary
from calibration.base.log_odds import WEAK_RIDGE, deal_by_rank
from calibration.logistic import piecewise


def make_real(*args, **parameters):
    return PiecewiseLogisticCalibrator(*args, **parameters, scale="real")


@pytest.fixture
def data(rng):
    x = np.round(2 * rng.normal(size=400), 2)
    y = (rng.uniform(size=400) < expit(2 * np.clip(x, -1, 1) + 0.2 * x)).astype(int)
    return x, y, rng.uniform(0.1, 2.0, 400)


def fit_as_the_paper(x, y, weight, knots, strength, prior=0.0):
    """Minimise O_reg over w_j at knots theta_0 .. theta_K by a general optimiser.

    theta_0 = min x and theta_K = max x + epsilon as in section 3.3, the penalty in
    standard deviations of x, plus the documented weak ridge on the first slope.
    """
    theta = np.concatenate([[x.min()], knots, [x.max() + 1e-3]])
    hats = np.stack([np.interp(x, theta, row) for row in np.eye(len(theta))])
    center = np.average(x, weights=weight)
    spread = np.sqrt(np.average((x - center) ** 2, weights=weight))
    slopes = spread * np.diff(np.eye(len(theta)), axis=0) / np.diff(theta)[:, None]
    jumps = np.diff(slopes, axis=0)

    def loss(w):
        f = w @ hats
        objective = weight @ (np.logaddexp(0, f) - y * f)
        gradient = hats @ (weight * (expit(f) - y))
        objective += strength * ((jumps @ w) ** 2).sum()
        gradient += 2 * strength * jumps.T @ (jumps @ w)
        away = slopes[0] @ w - prior * spread
        objective += WEAK_RIDGE / 2 * away**2
        return objective, gradient + WEAK_RIDGE * away * slopes[0]

    start = np.zeros(len(theta))
    best = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-9})
    return best.x @ hats, best.fun, loss, theta


@pytest.mark.parametrize("strength", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("n_pieces", [2, 3, 5])
@pytest.mark.parametrize("scale", ["logit", "real"])
def test_minimises_the_papers_objective(data, n_pieces, strength, scale):
    x, y, weight = data
    ours = PiecewiseLogisticCalibrator(n_pieces, strength, scale=scale)
    ours.fit(x, y, weight)
    assert ours.n_pieces_ == len(ours.slopes_) == len(ours.knots_) + 1 == n_pieces
    assert ours.regularization_ == strength
    prior = float(scale == "logit")
    f, least, loss, theta = fit_as_the_paper(x, y, weight, ours.knots_, strength, prior)
    np.testing.assert_allclose(ours.predict_log_odds(x), f, atol=1e-6)
    assert loss(ours.predict_log_odds(theta))[0] == pytest.approx(least, rel=1e-10)


def test_three_pieces_take_the_most_likely_pair(data):
    x, y, _ = data
    ones = np.ones(len(x))
    lows, highs = (
        np.quantile(x[y == k], np.arange(1, 10) / 10, method="inverted_cdf")
        for k in (0, 1)
    )
    # The weak ridge on kinks of the search is that of strength WEAK_RIDGE / 2.
    fits = {
        (a, b): fit_as_the_paper(x, y, ones, [a, b], WEAK_RIDGE / 2)[0]
        for a in lows
        for b in highs
        if a < b
    }
    best = min(fits, key=lambda pair: np.logaddexp(0, (1 - 2 * y) * fits[pair]).sum())
    ours = make_real(3, 0.0).fit(x, y)
    np.testing.assert_array_equal(ours.knots_, best)
    np.testing.assert_allclose(ours.predict_log_odds(x), fits[best], atol=1e-5)


def test_hill_climbing_adds_the_best_knot_and_moves_knots_while_that_gains(data):
    x, y, _ = data
    places = np.quantile(x, np.arange(1, 20) / 20, method="inverted_cdf")

    def loss(at):
        knots = places[sorted(at)]
        f = fit_as_the_paper(x, y, np.ones(len(x)), knots, WEAK_RIDGE / 2)[0]
        return np.logaddexp(0, (1 - 2 * y) * f).sum()

    at = set()
    for n_pieces in (2, 3, 4):
        at = min((at | {i} for i in set(range(19)) - at), key=loss)
        while True:
            near = [(i, i + side) for i in at for side in (-1, 1)]
            moves = [at - {i} | {j} for i, j in near if 0 <= j < 19 and j not in at]
            if loss(best := min(moves, key=loss)) >= loss(at):
                break
            at = best
        if n_pieces != 3:
            ours = make_real(n_pieces, 0.0).fit(x, y)
            np.testing.assert_array_equal(ours.knots_, places[sorted(at)])


def test_one_piece_is_logistic_regression(data):
    x, y, weight = data
    ours = make_real(1).fit(x, y, weight)
    line = LogisticCalibrator(WEAK_RIDGE, scale="real").fit(x, y, weight)
    np.testing.assert_allclose(ours.slopes_, line.coef_, rtol=1e-9)
    assert ours.intercept_ == pytest.approx(line.intercept_, rel=1e-9)
    assert (ours.n_pieces_, ours.regularization_) == (1, 0.0)


def test_strength_is_the_best_on_held_out_folds(data):
    """Refit by the public interface."""
    x, y, weight = data
    ours = make_real(random_state=3).fit(x, y, weight)
    cells = ScoreSummary.from_scores(x, y, weight)
    strengths = [1e4, 1e3, 100.0, 10.0, 1.0, 0.1, 0.01]
    losses = np.zeros(7)
    for rest, fold in deal_by_rank(cells, 5, 3):
        for i, strength in enumerate(strengths):
            f = make_real(3, strength).fit_summary(rest).predict_log_odds(fold.scores)
            losses[i] += fold.weight0 @ np.logaddexp(0, f)
            losses[i] += fold.weight1 @ np.logaddexp(0, -f)
    assert ours.regularization_ == strengths[int(np.argmin(losses))]


def test_hill_climbing_finds_few_knots_on_a_line_and_more_on_a_w(rng):
    x = rng.uniform(-2, 2, 20_000)
    straight = make_real("auto").fit(x, rng.uniform(size=len(x)) < expit(1.5 * x))
    assert straight.n_pieces_ == 1
    f = 4 * np.abs(np.abs(x) - 1) - 2
    w_shape = make_real("auto").fit(x, rng.uniform(size=len(x)) < expit(f))
    assert w_shape.n_pieces_ == 4
    np.testing.assert_allclose(w_shape.knots_, [-1, 0, 1], atol=0.05)
    np.testing.assert_allclose(w_shape.slopes_, [-4, 4, -4, 4], atol=0.4)
    assert np.sqrt(np.mean((w_shape.predict(x) - expit(f)) ** 2)) < 0.013


def test_search_on_condensed_cells_finds_the_same_knots(rng, monkeypatch):
    x = rng.normal(size=20_000)
    y = rng.uniform(size=len(x)) < expit(4 * np.clip(x, -0.7, 0.4) + x)
    coarse = [make_real(k, 1.0).fit(x, y) for k in (3, 4)]
    monkeypatch.setattr(piecewise, "_SEARCH_CELLS", len(x))
    for few in coarse:
        full = make_real(few.n_pieces, 1.0).fit(x, y)
        np.testing.assert_array_equal(few.knots_, full.knots_)
        np.testing.assert_allclose(few.predict(x), full.predict(x), atol=1e-9)


def test_scores_that_allow_no_pair_get_one_knot_or_none():
    """Three pieces need theta_1 < theta_2, which reversed scores do not offer."""
    x = np.arange(20.0)
    reversed_ = make_real(3, 1.0).fit(x, x < 10)
    assert reversed_.n_pieces_ == 2
    assert (np.diff(reversed_.predict(x)) < 0).all()
    assert make_real(3).fit([0, 0, 1, 1], [0, 1, 0, 1]).n_pieces_ == 1
    assert make_real(20, 1.0).fit([0, 1, 2, 3, 4], [0, 1, 0, 1, 1]).n_pieces_ == 4


def test_knots_that_seem_to_gain_for_ever_are_moved_once_to_each_place():
    """Fits that run out of steps gain whenever they are gone on with."""

    class Creeping:
        fits, values, left = 0, 0, 0

        def best(self, _, start, choices):
            self.fits += 1
            assert self.fits < 100
            self.left = len(choices)
            return piecewise._Line(choices[0], start.theta) if choices else start

        def value(self, *_):
            # The line that is asked for first, the new one, is the better if it is one.
            self.values += 1 if self.left else 0
            return -self.values

    likelihood, places = Creeping(), np.arange(19.0)
    start = piecewise._Line(places[9:10], np.zeros(3))
    end = piecewise._settle(likelihood, None, places, start)
    assert likelihood.fits <= len(places)
    assert end.knots[0] in places
