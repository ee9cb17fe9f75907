"""Blends of forecasts against a general optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize

from localexpert.data.blend import blend_weights, robust_weights


def best_shares(loss):
    """Return the three shares of a whole with the least loss."""
    return minimize(
        loss,
        np.full(3, 1 / 3),
        bounds=[(0, 1)] * 3,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
    ).x


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

    got = blend_weights(answers, below, cost, least=0.0)
    np.testing.assert_allclose([*got.values()], best_shares(loss), atol=2e-3)


def test_small_members_are_dropped(rng):
    below = rng.uniform(size=(200, 3)) < 0.5
    answers = {"good": 0.8 * below + 0.1, "bad": rng.uniform(size=below.shape)}
    assert blend_weights(answers, below, np.ones(below.shape), least=0.05) == {
        "good": 1.0
    }


class TestRobustWeights:
    @pytest.fixture
    def answers(self, rng):
        y = rng.normal(size=400)
        spread = zip("abc", (1.0, 1.3, 2.0), strict=True)
        said = {k: y + s * rng.standard_t(3, 400) for k, s in spread}
        return said, y, rng.uniform(0.5, 2.0, 400)

    def test_they_have_the_least_loss_of_huber(self, answers):
        said, y, w = answers
        errors = np.stack([x - y for x in said.values()])
        shares = np.array([*robust_weights(said, y, w, least=0.0).values()])
        missed = np.abs(shares @ errors)
        edge = np.quantile(missed, 0.5, weights=w, method="inverted_cdf")

        def loss(x):
            error = np.abs(x @ errors)
            return w @ np.where(error < edge, 0.5 * error**2, edge * (error - edge / 2))

        np.testing.assert_allclose(shares, best_shares(loss), atol=5e-3)

    def test_few_errors_far_out_count_little(self, answers):
        said, y, w = answers
        before = robust_weights(said, y, w, least=0.0)["a"]
        said["a"][:3] += 30.0
        assert robust_weights(said, y, w, least=0.0)["a"] > 0.75 * before
        assert blend_weights(said, y, w, least=0.0)["a"] < 0.75 * before

    def test_weight_is_repetition(self, answers):
        said, y, _ = answers
        w = np.resize([1.0, 2.0, 3.0], 400)
        rows = np.repeat(np.arange(400), w.astype(int))
        again = {k: x[rows] for k, x in said.items()}
        once = robust_weights(said, y, w, least=0.05)
        often = robust_weights(again, y[rows], np.ones(len(rows)), least=0.05)
        assert once == pytest.approx(often, abs=1e-9)

    def test_nothing_missed_and_nothing_to_choose(self, rng):
        y, w = rng.normal(size=20), np.ones(20)
        assert robust_weights({"true": y, "not": -y}, y, w, least=0.05) == {"true": 1.0}
        level = robust_weights({"a": 0 * y, "b": 0 * y}, 0 * y, w, least=0.05)
        assert sum(level.values()) == pytest.approx(1.0)

    def test_rows_without_weight_do_not_count(self, answers):
        said, y, w = answers
        w[:50] = 0.0
        found = robust_weights(said, y, w, least=0.05)
        for x in said.values():
            x[:50] = 1e6
        assert robust_weights(said, y, w, least=0.05) == pytest.approx(found)
