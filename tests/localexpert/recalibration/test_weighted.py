"""Weights of a shift, and the weighted map: its guarantee by enumeration."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr
from sklearn.linear_model import LogisticRegression

from localexpert import WeightedConformal, shift_weights
from localexpert.data.training_rows import effective_rows
from localexpert.recalibration.conformal import ConformalRecalibration
from tests.forecasts import normal, of_values


def test_weights_are_near_the_ratio_of_densities(rng):
    old, new = rng.normal(size=(1500, 2)), rng.normal(size=(1500, 2))
    new[:, 0] += 0.8
    found = shift_weights(old, new, random_state=0)
    # N(.8, 1) over N(0, 1); the mean over old rows is 1.
    true = np.exp(0.8 * old[:, 0] - 0.32)
    assert np.mean(np.abs(found.weight - true / true.mean())) < 0.15
    assert found.weight.mean() == pytest.approx(1.0)
    assert found.effective_rows == pytest.approx(effective_rows(true), rel=0.25)
    at = np.column_stack([np.linspace(-1.5, 1.5, 7), np.zeros(7)])
    assert_allclose(found.of(at), np.exp(0.8 * at[:, 0] - 0.32), rtol=0.35)


def of_cells(rng, n):
    return pd.DataFrame({"a": rng.choice(list("abc"), n), "b": rng.integers(0, 4, n)})


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: rng.normal(size=(n, 4)),
        lambda rng, n: of_cells(rng, n).assign(x=rng.normal(size=n)),
        of_cells,
        lambda rng, n: np.where(rng.uniform(size=(n, 9)) < 0.1, np.nan, 1.0).cumsum(1),
    ],
    ids=["numbers", "both", "cells", "gaps"],
)
def test_the_same_table_has_weights_of_one(rng, draw):
    table = draw(rng, 1000)
    found = shift_weights(table, table, random_state=0)
    assert_allclose(found.weight, 1.0, atol=0.02)
    assert_allclose(found.of(table), 1.0, atol=0.15)
    # Of a part of the old rows that was drawn blindly, too.
    part = table[:300]
    assert shift_weights(table, part, random_state=0).effective_rows > 850.0


def test_categories_and_gaps_tell_tables_apart(rng):
    def table(n, p, gaps):
        x = rng.normal(size=n)
        x[rng.uniform(size=n) < gaps] = np.nan
        return pd.DataFrame({"x": x, "town": rng.choice(["a", "b"], n, p=[p, 1 - p])})

    old, new = table(800, 0.8, 0.1), table(800, 0.4, 0.1)
    found = shift_weights(old, new, random_state=0)
    means = [found.weight[old["town"] == town].mean() for town in "ab"]
    assert_allclose(means, [0.5, 3.0], rtol=0.2)
    gappy = shift_weights(old, table(800, 0.8, 0.5), random_state=0)
    missing = old["x"].isna().to_numpy()
    assert gappy.weight[missing].mean() > 4.0 * gappy.weight[~missing].mean()


def test_weights_are_cut_off_and_say_how_few_rows_they_are(rng):
    old, new = rng.normal(size=(400, 1)), rng.normal(size=(400, 1)) + 6.0
    found = shift_weights(old, new, random_state=0)
    assert found.effective_rows < 50.0
    apart = shift_weights(old, new + 20.0, random_state=0)
    assert apart.overlap < 0.01
    assert apart.effective_rows < 5.0
    assert found.of(np.array([[20.0]]))[0] <= found.most * (1.0 + 1e-12)
    mild = shift_weights(old, new - 5.0, most=2.0, random_state=0)
    assert mild.weight.max() <= 2.0 / 0.5


def through(fitted, scores, weight):
    """G at the normal scores of new rows of such a weight."""
    maps = fitted.map_of(np.full(1, weight))
    return ndtr(maps.forward(np.asarray(scores, dtype=float)[None, :])[0])[0]


def test_knots_are_at_the_sums_of_weights(rng):
    y, weight = rng.normal(size=300), rng.gamma(1.0, size=300)
    fitted = WeightedConformal().fit(normal(np.zeros(300)), y, weight)
    for new in (0.0, 1.0, 30.0):
        got = through(fitted, fitted.knots_, new)
        below = [weight[y < z - 1e-9].sum() for z in fitted.knots_]
        at = [weight[np.abs(y - z) < 1e-9].sum() for z in fitted.knots_]
        want = (below + 0.5 * (np.array(at) + new)) / (weight.sum() + new)
        assert_allclose(got, want, atol=1e-12)


def test_equal_weights_are_conformal_recalibration(rng):
    y = 1.3 * rng.normal(size=399)
    said, ones = normal(np.zeros(399)), np.ones(399)
    mine = WeightedConformal().fit(said, y, 7.0 * ones)
    other = ConformalRecalibration().fit(said, y)
    assert mine.effective_rows_ == pytest.approx(399.0)
    assert_allclose(mine.bound(np.array([7.0])), other.bound_, atol=1e-3)
    levels = np.arange(1, 20) / 20
    assert_allclose(through(mine, np.sort(y)[20 * np.arange(1, 20) - 1], 7.0), levels)


@pytest.mark.parametrize("heavy", [0.0, 0.3, 0.8])
def test_the_guarantee_holds_whichever_row_is_the_new_one(rng, heavy):
    # Given the rows, the new one is row i with probability w_i / sum(w): all cases.
    m = 150
    z = np.sort(rng.normal(size=m + 1) + 0.5)
    weight = np.exp(heavy * rng.normal(size=m + 1))
    share = weight / weight.sum()
    place, bounds = np.empty(m + 1), np.empty(m + 1)
    for i in range(m + 1):
        rest = np.arange(m + 1) != i
        said = normal(np.zeros(m))
        fitted = WeightedConformal().fit(said, z[rest], weight[rest])
        place[i] = through(fitted, [z[i]], weight[i])[0]
        bounds[i] = fitted.bound(weight[[i]])[0]
    for level in np.linspace(0.01, 0.99, 99):
        assert abs(share @ (place <= level) - level) <= bounds.max() + 1e-9
    assert bounds.max() < 0.5


def test_ties_are_one_knot_and_jumps_are_drawn_in(rng):
    y = rng.choice(3, size=600, p=[0.1, 0.2, 0.7])
    said = of_values([0, 1, 2], np.tile([0.3, 0.4, 0.3], (600, 1)))
    fitted = WeightedConformal(random_state=0).fit(said, y, np.ones(600))
    got = fitted.apply(said[:2], np.array([1.0, 1.0])).cdf_at([0.0, 1.0])
    assert_allclose(got, [[0.1, 0.3]] * 2, atol=0.06)
    same = WeightedConformal().fit(normal(np.zeros(100)), np.zeros(100), np.ones(100))
    assert len(same.knots_) == 1


def weights_of(**given):
    cells = np.random.default_rng(0).normal(size=(60, 2))
    old = pd.DataFrame(cells, columns=["a", "b"])
    return shift_weights(**{"X_old": old, "X_new": old, "random_state": 0, **given})


def test_a_classifier_of_ones_own():
    plain = weights_of(classifier=LogisticRegression())
    assert isinstance(plain.classifier.estimator_, LogisticRegression)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"X_new": pd.DataFrame({"a": [1.0]})}, "`X_new` must have 2 columns .* got 1"),
        ({"X_new": pd.DataFrame({"a": [1], "c": 2})}, "the columns .* got 'c'"),
        ({"X_old": np.eye(20)}, "`X_old` must have at least 50 rows, got 20"),
        ({"X_old": np.eye(50), "X_new": np.eye(50)[:9]}, "`X_new` must have .* got 9"),
        ({"classifier": LogisticRegression}, "`classifier` must be a classifier"),
        ({"most": 1.0}, "`most` must"),
    ],
)
def test_shifts_that_are_refused(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        weights_of(**given)
