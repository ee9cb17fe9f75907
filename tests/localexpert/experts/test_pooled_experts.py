"""Weights of pooled experts against a general optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize

from localexpert.experts.pooled_experts import pool_weights, spacing


def test_weights_minimise_the_brier_score_on_the_simplex(rng):
    below = rng.uniform(size=(300, 4)) < 0.4
    answers = {
        name: np.clip(
            0.4 + s * (below - 0.4) + 0.3 * rng.normal(size=below.shape), 0, 1
        )
        for name, s in (("a", 0.5), ("b", 0.4), ("c", 0.3))
    }
    cost = rng.uniform(0.5, 2.0, below.shape)

    def loss(x):
        mix = sum(w * p for w, p in zip(x, answers.values(), strict=True))
        return (cost * (mix - below) ** 2).sum()

    best = minimize(
        loss,
        np.full(3, 1 / 3),
        bounds=[(0, 1)] * 3,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
    )
    got = pool_weights(answers, below, cost, least=0.0)
    np.testing.assert_allclose([*got.values()], best.x, atol=2e-3)


def test_small_members_are_dropped(rng):
    below = rng.uniform(size=(200, 3)) < 0.5
    answers = {"good": 0.8 * below + 0.1, "bad": rng.uniform(size=below.shape)}
    assert pool_weights(answers, below, np.ones(below.shape)) == {"good": 1.0}


def test_spacing_is_half_of_the_way_to_either_neighbour():
    assert spacing(np.array([0.0, 1.0, 3.0])).tolist() == [1.0, 1.5, 2.0]
    assert spacing(np.array([5.0])).tolist() == [1.0]
    assert spacing(np.array([0.0, 2.0])) == pytest.approx([2.0, 2.0])
