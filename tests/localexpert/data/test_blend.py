"""Blends of forecasts against a general optimiser."""

import numpy as np
from scipy.optimize import minimize

from localexpert.data.blend import blend_weights


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
    got = blend_weights(answers, below, cost, least=0.0)
    np.testing.assert_allclose([*got.values()], best.x, atol=2e-3)


def test_small_members_are_dropped(rng):
    below = rng.uniform(size=(200, 3)) < 0.5
    answers = {"good": 0.8 * below + 0.1, "bad": rng.uniform(size=below.shape)}
    assert blend_weights(answers, below, np.ones(below.shape), least=0.05) == {
        "good": 1.0
    }
