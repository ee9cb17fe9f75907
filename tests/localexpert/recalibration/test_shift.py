"""Weights of a shift beside the true ratio of densities."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from localexpert import shift_weights
from localexpert.recalibration.weighted import effective_rows


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
    np.testing.assert_allclose(found.of(at), np.exp(0.8 * at[:, 0] - 0.32), rtol=0.35)


def test_without_a_shift_rows_keep_their_weight(rng):
    both = rng.normal(size=(1000, 3))
    found = shift_weights(both[:500], both[500:], random_state=0)
    assert found.effective_rows > 480.0


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
    np.testing.assert_allclose(found.weight, 1.0, atol=0.02)
    np.testing.assert_allclose(found.of(table), 1.0, atol=0.15)
    # Of a part of the old rows that was drawn blindly, too.
    part = table[:300]
    assert shift_weights(table, part, random_state=0).effective_rows > 850.0


def test_new_rows_that_are_few_different_ones(rng):
    old = rng.normal(size=(60, 2))
    found = shift_weights(old, np.repeat(old[:1], 60, axis=0), random_state=0)
    assert found.effective_rows < 20.0


def test_categories_and_gaps_tell_tables_apart(rng):
    def table(n, p, gaps):
        x = rng.normal(size=n)
        x[rng.uniform(size=n) < gaps] = np.nan
        return pd.DataFrame({"x": x, "town": rng.choice(["a", "b"], n, p=[p, 1 - p])})

    old, new = table(800, 0.8, 0.1), table(800, 0.4, 0.1)
    found = shift_weights(old, new, random_state=0)
    means = [found.weight[old["town"] == town].mean() for town in "ab"]
    np.testing.assert_allclose(means, [0.5, 3.0], rtol=0.2)
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


def test_a_classifier_of_ones_own(rng):
    old, new = rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) + 0.5
    plain = shift_weights(old, new, classifier=LogisticRegression(), random_state=0)
    assert isinstance(plain.classifier.estimator_, LogisticRegression)
    assert repr(plain).startswith("ShiftWeights(n=300, effective_rows=")


def test_refusals(rng):
    old = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    with pytest.raises(ValueError, match=r"`X_new` must have 2 columns .* got 1"):
        shift_weights(old, old[["a"]])
    with pytest.raises(ValueError, match=r"`X_new` must have the columns .* got 'c'"):
        shift_weights(old, old.rename(columns={"b": "c"}))
    with pytest.raises(ValueError, match="`X_old` must have at least 50 rows, got 20"):
        shift_weights(old[:20], old)
    with pytest.raises(ValueError, match="`X_new` must have at least 50 rows, got 9"):
        shift_weights(old, old[:9])
    with pytest.raises(TypeError, match="`X_old` must be a data frame or an array"):
        shift_weights("x", old)
    with pytest.raises(TypeError, match="`classifier` must be a classifier"):
        shift_weights(old, old, classifier=LogisticRegression)
    with pytest.raises(ValueError, match="`most` must"):
        shift_weights(old, old, most=1.0)
