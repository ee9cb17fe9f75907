"""Permutation importance: known designs, every loss by hand, weights, bad input."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from calibration import brier_score
from localexpert import crps_score, permutation_importance, pinball_loss
from localexpert.explain.permutation import _draw_donors
from tests.forecasts import Witness, of_values

LEVELS = [0.05, 0.5, 0.95]
LOSSES = "crps", "pinball", "events"


def mean_and_spread():
    """Return the truth of `design`: mean x0, deviation .3 + 1.5 x1; x2 is noise."""
    return Witness(lambda X: X[:, 0], lambda X: 0.3 + 1.5 * X[:, 1])


def design(rng, n=600):
    X = rng.uniform(size=(n, 3))
    return X, X[:, 0] + (0.3 + 1.5 * X[:, 1]) * rng.normal(size=n)


def explain(X, y, model=None, **given):
    model = mean_and_spread() if model is None else model
    return permutation_importance(model, X, y, **{"random_state": 0, **given})


def test_every_increase_is_the_loss_of_the_permuted_forecast(rng, capsys):
    X, y = design(rng, 81)
    model, w = mean_and_spread(), rng.uniform(0.5, 2.0, 81)
    told = explain(X, y, model, levels=LEVELS, n_repeats=3, sample_weight=w)

    def measure(table):
        dist = mean_and_spread().predict_dist(table)
        pinball = [pinball_loss(y, dist, level=q, sample_weight=w) for q in LEVELS]
        events = [
            brier_score(y <= v, dist.cdf(v), sample_weight=w) for v in told.thresholds
        ]
        return np.array([crps_score(y, dist, sample_weight=w), *pinball, *events])

    own, *tables = model.calls
    assert len(tables) == 3 * 3  # one call per feature and repeat
    assert told.feature_names == ("x0", "x1", "x2")
    assert_array_equal(own, X)
    assert_allclose(told.baseline, measure(X), rtol=1e-12)
    for j in range(3):
        parts = tables[3 * j : 3 * j + 3]
        for table in parts:
            assert_array_equal(np.delete(table, j, 1), np.delete(X, j, 1))
            assert (table[:, j] != X[:, j]).mean() > 0.9
        assert not np.array_equal(parts[0], parts[1])
        gains = np.array([measure(table) for table in parts]) - told.baseline
        assert_allclose(told.increases[j], gains.mean(axis=0), atol=1e-12)
        error = gains.std(axis=0, ddof=1) / np.sqrt(3)
        assert_allclose(told.standard_errors[j], error, atol=1e-12)
    assert capsys.readouterr().err == ""
    given = {"levels": LEVELS, "n_repeats": 3, "sample_weight": w}
    again = explain(X, y, **given, verbose=1)
    assert capsys.readouterr().err.startswith("permutation importance: done [")
    assert_array_equal(again.increases, told.increases)
    other = explain(X, y, **given, random_state=1)
    assert (other.increases != told.increases).any()


def test_targets_known_in_part_have_the_crps_alone(rng):
    X, y = design(rng, 60)
    want, both = explain(X, y), np.column_stack([y, y])
    told = explain(X, both)
    assert_allclose(told.increases, want.increases[:, :1])
    both[y > 1.0, 1] = np.inf
    told = explain(X, both, n_repeats=2)
    assert told.baseline == crps_score(both, mean_and_spread().predict_dist(X))
    assert (told.increases.shape, told.levels.size) == ((3, 1), 0)
    assert [told.to_frame(loss).shape for loss in LOSSES] == [(3, 1), (3, 0), (3, 0)]
    with pytest.raises(ValueError, match="`thresholds` must be None where `y` has two"):
        explain(X, both, thresholds=[0.0])
    both[0, 0] = -np.inf
    with pytest.raises(ValueError, match="`y` must be known or right-censored"):
        explain(X, both)


def test_donors_come_in_proportion_to_weight(rng):
    weight = np.array([0.0, 1.0, 2.0, 5.0, 0.0])
    draws = np.array([_draw_donors(weight, rng) for _ in range(3000)])
    counts = np.array([(draws == j).sum(axis=1) for j in range(5)])
    wanted = 5.0 * weight / weight.sum()
    assert_allclose(counts.mean(axis=1), wanted, atol=0.03)
    assert (np.abs(counts - wanted[:, None]) < 1.0).all()


def test_weights_are_repetitions_on_average(rng):
    X, y = design(rng, 50)
    w = rng.integers(0, 4, 50)
    given = {"levels": [0.9], "thresholds": [1.0], "n_repeats": 60}
    weighted = explain(X, y, sample_weight=w, **given)
    repeated = explain(np.repeat(X, w, axis=0), np.repeat(y, w), **given)
    assert_allclose(weighted.baseline, repeated.baseline, rtol=1e-12)
    gap = np.abs(weighted.increases - repeated.increases)
    error = np.hypot(weighted.standard_errors, repeated.standard_errors)
    assert (gap <= 3.0 * error + 1e-12).all()


def test_groups_move_together_and_thresholds_are_quantiles(rng):
    X, y = design(rng, 101)
    model, groups = mean_and_spread(), {12: [0, 1]}
    told = explain(X, y, model, groups=groups, levels=[0.25, 0.5], n_repeats=2)
    assert_array_equal(told.thresholds, np.sort(y)[[25, 50]])
    assert told.feature_names == ("12", "x2")
    assert "12" in str(told)
    pairs = {tuple(row) for row in X[:, :2]}
    assert all(tuple(row) in pairs for row in model.calls[1][:, :2])
    assert told.crps[0] > 0.0


def test_frames_keep_their_types_and_answers_are_tables(rng):
    types = []

    class Recorder:
        def predict_dist(self, X):
            types.append(list(X.dtypes))
            p = norm.cdf(X["a"].to_numpy() + (X["town"] == "bee"))
            return of_values([0.0, 1.0], np.stack([1.0 - p, p], axis=1))

    X = pd.DataFrame({"a": rng.normal(size=40), "n": np.arange(40)})
    X["town"] = pd.Categorical(rng.choice(["ant", "bee"], 40))
    y = (X["town"] == "bee").to_numpy().astype(float)
    told = explain(X, y, Recorder(), n_repeats=2)
    assert types == [list(X.dtypes)] * 7
    names = ("loss", "level of the quantile", "threshold")
    values = np.split(told.increases, [1, 1 + len(told.levels)], axis=1)
    for loss, name, part in zip(LOSSES, names, values, strict=True):
        table = told.to_frame(loss)
        assert list(table.index) == ["a", "n", "town"]
        assert table.columns.name == name
        assert_array_equal(table, part)
    assert table.loc["n"].abs().max() == 0.0
    largest = told.feature_names[int(np.argmax(told.crps))]
    assert str(told).splitlines()[1].split()[0] == largest
    with pytest.raises(ValueError, match="`loss` must be one of 'crps', 'pinball'"):
        told.to_frame("brier")
