"""Coverage within groups, and groups that are not known."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from localexpert import (
    ConformalRecalibration,
    GroupedRecalibration,
    PitRecalibration,
    PredictiveDistribution,
)
from localexpert.recalibration.groups import read_groups
from localexpert.recalibration.weighted import WeightedConformal

SPREADS = np.array([0.5, 1.0, 2.0, 4.0])


def said(n):
    """The same normal forecast for all."""
    return PredictiveDistribution.from_scipy(stats.norm(np.zeros(n), 1.5))


def test_each_group_is_a_recalibration_of_its_own_rows(rng):
    group = rng.integers(4, size=500)
    y = SPREADS[group] * rng.normal(size=500)
    found = GroupedRecalibration(random_state=0).fit(said(500), y, group)
    new = rng.integers(4, size=60)
    got = found.apply(said(60), new).quantiles([0.1, 0.5, 0.95])
    for one in range(4):
        own = ConformalRecalibration(random_state=0).fit(
            said(int((group == one).sum())), y[group == one]
        )
        want = own.apply(said(1)).quantiles([0.1, 0.5, 0.95])
        rows = got[new == one]
        np.testing.assert_allclose(rows, np.repeat(want, len(rows), axis=0))


def test_groups_are_combinations_of_columns_and_gaps_are_one(rng):
    table = pd.DataFrame(
        {"a": rng.choice(["x", "y"], 400), "b": rng.choice([1.0, np.nan], 400)}
    )
    found = GroupedRecalibration("pit", random_state=0)
    found.fit(said(400), rng.normal(size=400), read_groups(table, ["a", "b"]))
    assert set(found.recalibrations_) == {
        ("x", 1.0),
        ("x", None),
        ("y", 1.0),
        ("y", None),
    }
    array = np.column_stack([rng.normal(size=400), np.arange(400) % 2])
    again = GroupedRecalibration(PitRecalibration(random_state=0))
    again.fit(said(400), rng.normal(size=400), read_groups(array, 1))
    assert set(again.recalibrations_) == {(0.0,), (1.0,)}


def test_weights_within_groups_are_those_of_each_alone(rng):
    group, weight = rng.integers(2, size=400), rng.uniform(0.5, 2.0, size=400)
    y = SPREADS[group] * rng.normal(size=400)
    found = GroupedRecalibration(random_state=0).fit(said(400), y, group, weight)
    new, own = np.array([0, 1, 0]), np.array([0.5, 2.0, 1.0])
    got = found.apply(said(3), new, own).quantiles([0.1, 0.95])
    for k in range(2):
        part = group == k
        alone = WeightedConformal(random_state=0)
        alone.fit(said(int(part.sum())), y[part], weight[part])
        rows = new == k
        want = alone.apply(said(int(rows.sum())), own[rows]).quantiles([0.1, 0.95])
        np.testing.assert_allclose(got[rows], want)
        np.testing.assert_allclose(found.bound(new, own)[rows], alone.bound(own[rows]))
    with pytest.raises(ValueError, match="`weight` must be given as it was in `fit`"):
        found.apply(said(3), new)
    with pytest.raises(ValueError, match="`weight` must be as long as"):
        GroupedRecalibration().fit(said(400), y, group, weight[:3])
    again = GroupedRecalibration(PitRecalibration())
    with pytest.raises(ValueError, match="`recalibrate` must be one of"):
        again.fit(said(400), y, group, weight)


def test_refusals(rng):
    y, group = rng.normal(size=100), np.repeat(["a", "b"], [90, 10])
    with pytest.raises(
        ValueError, match=r"`groups` must have at least 20 .* 10 of 'b'"
    ):
        GroupedRecalibration().fit(said(100), y, group)
    with pytest.raises(ValueError, match="`recalibrate` must be"):
        GroupedRecalibration("none").fit(said(100), y, group)
    with pytest.raises(ValueError, match=r"`recalibrate` must be .* got None"):
        GroupedRecalibration(None).fit(said(100), y, group)
    with pytest.raises(ValueError, match="groups"):
        GroupedRecalibration().fit(said(100), y, group[:50])
    with pytest.raises(TypeError, match="`groups` must be labels"):
        GroupedRecalibration().fit(said(100), y, [{}] * 100)
    found = GroupedRecalibration().fit(said(100), y, np.repeat(["a", "b"], 50))
    with pytest.raises(
        ValueError, match=r"`groups` .* \('a', 'b'\), got 'c' in row 1 and 2 such rows"
    ):
        found.apply(said(3), ["a", "c", "c"])
    table = pd.DataFrame({"a": [1.0]})
    with pytest.raises(ValueError, match=r"`by` .* \('a'\), got 'b'"):
        read_groups(table, "b")
    with pytest.raises(ValueError, match=r"`by` must hold numbers of columns .* got 7"):
        read_groups(np.ones((3, 2)), 7)
    with pytest.raises(ValueError, match="`by` must name at least one column"):
        read_groups(table, [])
