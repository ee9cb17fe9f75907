"""Coverage within groups, and groups that are not known."""

import numpy as np
import pandas as pd
import pytest

from localexpert import (
    ConformalRecalibration,
    GroupedRecalibration,
    PitRecalibration,
)
from localexpert.recalibration.groups import read_groups
from localexpert.recalibration.weighted import WeightedConformal
from tests.forecasts import normal

SPREADS = np.array([0.5, 1.0, 2.0, 4.0])


def said(n):
    """The same normal forecast for all."""
    return normal(np.zeros(n), 1.5)


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


def fitted(recalibrate="conformal", groups=(), y=100):
    groups = np.repeat(["a", "b"], 50) if len(groups) == 0 else groups
    return GroupedRecalibration(recalibrate).fit(said(100), np.zeros(y), groups)


TABLE = pd.DataFrame({"a": [1.0]})


@pytest.mark.filterwarnings("ignore:.* are much too narrow:Warning")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fitted(groups=["a"] * 90 + ["b"] * 10), "at least 20 .* 10 of 'b'"),
        (lambda: fitted("none"), "`recalibrate` must be"),
        (lambda: fitted(None), r"`recalibrate` must be .* got None"),
        (lambda: fitted(groups=["a"] * 50), "groups"),
        (lambda: fitted(groups=[{}] * 100), "`groups` must be labels"),
        (
            lambda: fitted().apply(said(3), ["a", "c", "c"]),
            r"`groups` .* \('a', 'b'\), got 'c' in row 1 and 2 such rows",
        ),
        (lambda: read_groups(TABLE, "b"), r"`by` .* \('a'\), got 'b'"),
        (lambda: read_groups(np.eye(2), 7), "`by` must hold numbers of columns .* 7"),
        (lambda: read_groups(TABLE, []), "`by` must name at least one column"),
    ],
)
def test_refusals(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
