"""Permutation importance: known designs, every loss by hand, weights, bad input."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from calibration import brier_score
from localexpert import (
    crps_score,
    pinball_loss,
)
from localexpert.explain import permutation_importance
from localexpert.explain.permutation import _draw_donors
from tests.forecasts import of_values

GRID = np.linspace(-8.0, 8.0, 161)
LEVELS = [0.05, 0.5, 0.95]


class MeanAndSpread:
    """The truth of `design`: mean x0, standard deviation .3 + 1.5 x1; x2 is noise."""

    def __init__(self):
        self.calls = []

    def predict_dist(self, X):
        X = np.asarray(X, dtype=np.float64)
        self.calls.append(X)
        z = (GRID - X[:, :1]) / (0.3 + 1.5 * X[:, 1:2])
        weight = np.exp(-0.5 * z**2)
        rows = weight / weight.sum(axis=1, keepdims=True)
        return of_values(GRID, rows)


def design(rng, n=600):
    X = rng.uniform(size=(n, 3))
    return X, X[:, 0] + (0.3 + 1.5 * X[:, 1]) * rng.normal(size=n)


def test_finds_what_drives_the_middle_and_what_the_spread(rng):
    X, y = design(rng)
    told = permutation_importance(
        MeanAndSpread(), X, y, levels=LEVELS, thresholds=[-2.0, 3.0], random_state=0
    )
    assert told.feature_names == ("x0", "x1", "x2")
    np.testing.assert_allclose(told.increases[2], 0.0, atol=1e-12)
    # The median is the mean's affair; tails and rare events are the spread's.
    assert told.pinball[0, 1] > 5.0 * abs(told.pinball[1, 1])
    assert (told.pinball[1, [0, 2]] > 3.0 * told.pinball[0, [0, 2]]).all()
    assert (told.events[1] > 3.0 * np.abs(told.events[0])).all()
    assert told.crps[0] > 3.0 * told.standard_errors[0, 0]
    assert told.crps[1] > 3.0 * told.standard_errors[1, 0]


def test_every_increase_is_the_loss_of_the_permuted_forecast(rng):
    X, y = design(rng, 80)
    w = rng.uniform(0.5, 2.0, 80)
    cuts = [0.0, 1.5]
    model = MeanAndSpread()
    told = permutation_importance(
        model,
        X,
        y,
        levels=LEVELS,
        thresholds=cuts,
        n_repeats=3,
        sample_weight=w,
        random_state=0,
    )

    def measure(table):
        dist = MeanAndSpread().predict_dist(table)
        return np.array(
            [
                crps_score(y, dist, sample_weight=w),
                *(pinball_loss(y, dist, level=q, sample_weight=w) for q in LEVELS),
                *(brier_score(y <= v, dist.cdf(v), sample_weight=w) for v in cuts),
            ]
        )

    own, *tables = model.calls
    assert len(tables) == 3 * 3  # one call per feature and repeat
    np.testing.assert_array_equal(own, X)
    np.testing.assert_allclose(told.baseline, measure(X), rtol=1e-12)
    for j in range(3):
        parts = tables[3 * j : 3 * j + 3]
        for table in parts:
            kept = [k for k in range(3) if k != j]
            np.testing.assert_array_equal(table[:, kept], X[:, kept])
            assert (table[:, j] != X[:, j]).mean() > 0.9
        gains = np.array([measure(table) for table in parts]) - told.baseline
        np.testing.assert_allclose(told.increases[j], gains.mean(axis=0), atol=1e-12)
        error = gains.std(axis=0, ddof=1) / np.sqrt(3)
        np.testing.assert_allclose(told.standard_errors[j], error, atol=1e-12)


def test_standard_errors_are_those_over_seeds(rng):
    X, y = design(rng, 60)
    told = [
        permutation_importance(
            MeanAndSpread(), X, y, levels=[0.9], n_repeats=4, random_state=seed
        )
        for seed in range(60)
    ]
    spread = np.std([one.increases[:2] for one in told], axis=0, ddof=1)
    stated = np.sqrt(np.mean([one.standard_errors[:2] ** 2 for one in told], axis=0))
    np.testing.assert_allclose(stated, spread, rtol=0.35)


def test_default_thresholds_are_quantiles_of_y(rng):
    X, y = design(rng, 101)
    told = permutation_importance(
        MeanAndSpread(), X, y, levels=[0.25, 0.5], n_repeats=2, random_state=0
    )
    np.testing.assert_array_equal(told.thresholds, np.sort(y)[[25, 50]])


class TestWeights:
    def test_donors_come_in_proportion_to_weight(self, rng):
        weight = np.array([0.0, 1.0, 2.0, 5.0, 0.0])
        draws = np.array([_draw_donors(weight, rng) for _ in range(3000)])
        counts = np.array([(draws == j).sum(axis=1) for j in range(5)])
        wanted = 5.0 * weight / weight.sum()
        np.testing.assert_allclose(counts.mean(axis=1), wanted, atol=0.03)
        assert (np.abs(counts - wanted[:, None]) < 1.0).all()

    def test_weights_are_repetitions_on_average(self, rng):
        X, y = design(rng, 50)
        w = rng.integers(0, 4, 50)
        options = {"levels": [0.9], "thresholds": [1.0], "n_repeats": 150}
        weighted = permutation_importance(
            MeanAndSpread(), X, y, sample_weight=w, random_state=0, **options
        )
        repeated = permutation_importance(
            MeanAndSpread(),
            np.repeat(X, w, axis=0),
            np.repeat(y, w),
            random_state=0,
            **options,
        )
        np.testing.assert_allclose(weighted.baseline, repeated.baseline, rtol=1e-12)
        gap = np.abs(weighted.increases - repeated.increases)
        error = np.hypot(weighted.standard_errors, repeated.standard_errors)
        assert (gap <= 4.0 * error + 1e-12).all()


def test_groups_move_together(rng):
    X, y = design(rng, 100)
    model = MeanAndSpread()
    told = permutation_importance(
        model, X, y, groups={"both": [0, 1]}, n_repeats=2, random_state=0
    )
    assert told.feature_names == ("both", "x2")
    pairs = {tuple(row) for row in X[:, :2]}
    assert all(tuple(row) in pairs for row in model.calls[1][:, :2])
    assert told.crps[0] > 0.0


def test_seed_decides_everything(rng):
    X, y = design(rng, 50)

    def draw(seed):
        return permutation_importance(MeanAndSpread(), X, y, random_state=seed)

    first, again, other = (draw(seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.increases, again.increases)
    assert (first.increases != other.increases).any()


def test_progress_is_shown_where_asked_for_and_changes_nothing(rng, capsys):
    X, y = design(rng, 30)
    silent = permutation_importance(MeanAndSpread(), X, y, random_state=0)
    assert capsys.readouterr().err == ""
    told = permutation_importance(MeanAndSpread(), X, y, random_state=0, verbose=1)
    np.testing.assert_array_equal(told.increases, silent.increases)
    assert capsys.readouterr().err.startswith("permutation importance: done [")


def test_frames_keep_their_types(rng):
    types = []

    class Recorder:
        def predict_dist(self, X):
            types.append(list(X.dtypes))
            p = norm.cdf(X["a"].to_numpy() + (X["town"] == "bee"))
            return of_values([0.0, 1.0], np.stack([1.0 - p, p], axis=1))

    X = pd.DataFrame({"a": rng.normal(size=40), "n": np.arange(40)})
    X["town"] = pd.Categorical(rng.choice(["ant", "bee"], 40))
    y = (X["town"] == "bee").to_numpy().astype(float)
    told = permutation_importance(Recorder(), X, y, n_repeats=2, random_state=0)
    assert types == [list(X.dtypes)] * 7
    table = told.to_frame("pinball")
    assert list(table.index) == ["a", "n", "town"]
    assert list(table.columns) == told.levels.tolist()
    assert table.loc["n"].abs().max() == 0.0


@pytest.mark.parametrize("loss", ["crps", "pinball", "events"])
def test_tables(rng, loss):
    X, y = design(rng, 40)
    told = permutation_importance(
        MeanAndSpread(), X, y, levels=LEVELS, thresholds=[0.0, 1.0], random_state=0
    )
    table = told.to_frame(loss)
    np.testing.assert_array_equal(
        table.to_numpy(), np.reshape(getattr(told, loss), (3, -1))
    )
    named = {"crps": "loss", "pinball": "level of the quantile", "events": "threshold"}
    assert table.columns.name == named[loss]
    largest = told.feature_names[int(np.argmax(told.crps))]
    assert str(told).splitlines()[1].split()[0] == largest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"levels": [0.5, 1.0]}, r"`levels` must lie in \(0, 1\), got 1.0"),
        ({"n_repeats": 1}, "`n_repeats` must be at least 2, got 1"),
        ({"groups": {"g": ["z"]}}, "`groups` must hold features of `X`"),
        ({"sample_weight": [1.0]}, "`sample_weight` must be as long as"),
    ],
)
def test_bad_arguments(rng, arguments, message):
    X, y = design(rng, 20)
    with pytest.raises(ValueError, match=message):
        permutation_importance(MeanAndSpread(), X, y, **arguments)
    told = permutation_importance(MeanAndSpread(), X, y, random_state=0)
    with pytest.raises(ValueError, match="`loss` must be one of 'crps', 'pinball'"):
        told.to_frame("brier")
