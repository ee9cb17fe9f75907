"""`SharedBoosting`: draws, starts, common rounds."""

import ctypes
from dataclasses import replace
from threading import Thread
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, ndtr

from localexpert.coordinate.boosting import FoldBooster, find_rounds
from localexpert.data.folds import make_folds
from localexpert.data.learners import thread_pool
from localexpert.experts import SharedBoosting
from localexpert.experts.base import Tasks
from localexpert.experts.shared_boosting import (
    HeldOutThresholds,
    draw_places,
    start_scores,
)
from localexpert.experts.thresholds import place_thresholds


@pytest.fixture
def problem(rng):
    n = 1500
    X = rng.uniform(-1.0, 1.0, (n, 3))
    r = 2.0 * X[:, 0] + (1.2 + X[:, 1]) * 0.4 * rng.normal(size=n)
    return X, r, place_thresholds(r, 11), make_folds(n, 3, random_state=0)


def test_finds_the_true_distribution(problem, rng):
    X, r, thresholds, folds = problem
    fitted = SharedBoosting(random_state=0).fit(X, r, thresholds, folds)
    new = rng.uniform(-0.9, 0.9, (2000, 3))
    spread = (1.2 + new[:, 1]) * 0.4
    truth = ndtr((thresholds - 2.0 * new[:, [0]]) / spread[:, None])
    error = np.sqrt(np.mean((fitted.predict(new) - truth) ** 2))
    assert error < 0.09
    rates = np.mean(r[:, None] <= thresholds, axis=0)
    assert error < 0.3 * np.sqrt(np.mean((rates - truth) ** 2))


@pytest.mark.parametrize(("n_draws", "n_thresholds"), [(2, 25), (7, 25), (24, 3)])
def test_draws_are_stratified(rng, n_draws, n_thresholds):
    places = draw_places(4000, n_draws, n_thresholds, rng)
    assert places.shape == (4000, n_draws)
    assert places.min() >= 0.5
    assert places.max() <= n_thresholds + 0.5
    # Column j stays in its stratum, or at the threshold nearest to it.
    edges = 0.5 + n_thresholds * np.arange(n_draws + 1) / n_draws
    assert (places >= edges[:-1] - 0.5).all()
    assert (places <= edges[1:] + 0.5).all()
    counts = np.bincount(places[places == np.rint(places)].astype(int))[1:]
    assert len(counts) == n_thresholds
    assert counts.min() > 0.85 * counts.mean()
    assert counts.sum() == pytest.approx(0.7 * places.size, rel=0.05)


def test_boosting_starts_at_the_base_rates_of_the_training_part(rng):
    r, weights = rng.normal(size=60), rng.integers(0, 3, 60).astype(float)
    part, cuts = np.arange(10, 60), np.array([-0.5, 0.0, 1.0])
    knots = [-1.0, -0.5, 0.0, 1.0, 2.0]
    below = np.array([weights[part][r[part] <= knot].sum() for knot in knots])
    expected = (below + 0.5) / (weights[part].sum() + 1.0)
    assert_allclose(expit(start_scores(r[part], weights[part], cuts)), expected)


def test_rounds_are_common_and_stop_when_nothing_is_gained():
    def curve(loss):
        """Return a model whose loss after k rounds is known."""
        return Mock(loss_after=Mock(side_effect=loss))

    with thread_pool(1) as pool:
        # Minima at 40 and 80, with weights 1 and 3: that of the mean is at 70.
        models = [curve(lambda k, best=b: 1e4 + (k - best) ** 2) for b in (40, 80)]
        rounds = find_rounds(models, [1.0, 3.0], 500, pool)
        assert abs(rounds - 70) <= 5
        last = [model.loss_after.call_args.args[0] for model in models]
        assert last[0] == last[1] <= 110
        assert find_rounds([curve(lambda k: 1.0 / k)], [1.0], 37, pool) == 37
        assert find_rounds([curve(float)], [1.0], 500, pool) == 2
        flat = curve(lambda k: 1.0 - 1e-7 * k)
        assert find_rounds([flat], [1.0], 500, pool) == 2
        assert flat.loss_after.call_args.args[0] <= 40


@pytest.fixture
def held_out(rng):
    """Return a model of the first of two folds, and what it is made of."""
    r, weights = rng.normal(size=30), rng.uniform(size=30)
    folds = make_folds(30, 2, random_state=0)
    X = rng.normal(size=(30, 1))
    tasks = Tasks.check(X, r, [-1.0, 0.0, 1.3], folds, weights)
    experts, start = SharedBoosting(min_rows_in_leaf=1), rng.normal(size=5)
    experts.n_draws_ = 4
    return HeldOutThresholds(experts, tasks, folds[0], start, 0), tasks, start


def test_the_loss_held_out_is_a_weighted_mean_over_rows(held_out):
    held, tasks, start = held_out
    spacing, rows = np.gradient(tasks.thresholds), tasks.folds[0][1]
    expected = sum(
        tasks.weight[i]
        * spacing[k]
        * (expit(start[k + 1]) - (tasks.y[i] <= tasks.thresholds[k])) ** 2
        for i in rows
        for k in range(3)
    )
    assert held.loss_after(0) == pytest.approx(expected / tasks.weight[rows].sum())


def test_rows_that_choose_the_rounds_have_a_weight(held_out, monkeypatch):
    _, tasks, start = held_out
    monkeypatch.setattr("localexpert.experts.shared_boosting._HELD_OUT_ROWS", 12)
    weight = np.where(np.arange(30) % 4 == 0, tasks.weight, 0.0)
    experts = SharedBoosting(min_rows_in_leaf=1)
    experts.n_draws_ = 4
    some = replace(tasks, weight=weight)
    held = HeldOutThresholds(experts, some, tasks.folds[0], start, 0)
    assert held.weight.all()


@pytest.mark.parametrize("plain", [True, False])
def test_other_threads_say_nothing(capfd, plain, held_out):
    """LightGBM has a level of talk in each thread, and talks by default."""
    held, *_ = held_out
    if plain:
        X, y, w = np.arange(100.0)[:, None], np.ones(100), np.ones(100)
        fold = np.arange(50), np.arange(50, 100)
        held = FoldBooster({"objective": "l2"}, X, y, fold, w)
    thread = Thread(target=held.loss_after, args=(2,))
    thread.start()
    thread.join()
    ctypes.CDLL(None).fflush(None)
    assert capfd.readouterr().out == ""
