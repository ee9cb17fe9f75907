"""Directions of columns: what they may be, and where they are looked for."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from localexpert import IndependentExperts, LocalExpertRegressor, SharedBoosting
from localexpert.data.directions import check_directions, read_directions
from localexpert.data.table import TableReader


def reader(**columns):
    return TableReader.learn(pd.DataFrame(columns))


def test_signs_by_name_and_by_position():
    table = reader(a=[1.0, 2.0], b=[True, False], c=[3, 4])
    assert read_directions({"c": -1, "b": 1}, table) == [0, 1, -1]
    assert read_directions(None, table) == [0, 0, 0]
    assert read_directions({1: 1}, TableReader.learn(np.eye(3))) == [0, 1, 0]


@pytest.mark.parametrize("sign", [0, 2, 0.5, True, "+1", None, np.nan])
def test_other_signs(sign):
    with pytest.raises(ValueError, match=r"`monotone` must be \+1 or -1, got .* 'a'"):
        check_directions({"a": sign})


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_a_number_for_every_column_as_lightgbm_has_it(kind):
    table = reader(a=[1.0, 2.0], b=["x", "y"], c=[3, 4])
    assert check_directions(kind([0, 0])) is None
    found = check_directions(kind([-1, 0, 1]))
    assert read_directions(found, table) == [-1, 0, 1]
    with pytest.raises(ValueError, match="where it is a list, got 2 for 3 columns"):
        read_directions(check_directions(kind([1, 0])), table)
    with pytest.raises(ValueError, match=r"columns of numbers.*got 'b'"):
        read_directions(check_directions(kind([0, 1, 0])), table)
    with pytest.raises(ValueError, match=r"must be \+1, -1 or 0, got .* column 1"):
        check_directions(kind([0, 2]))


def test_columns_that_cannot_be_meant():
    table = reader(a=[1.0, 2.0], kind=["x", "y"])
    with pytest.raises(ValueError, match=r"columns of numbers.*got 'kind'"):
        read_directions({"kind": 1}, table)
    with pytest.raises(ValueError, match=r"columns of `X` \('a', 'kind'\), got 'b'"):
        read_directions({"b": 1}, table)
    twins = pd.DataFrame(np.eye(2), columns=["a", "a"])
    with pytest.raises(ValueError, match="one column each, got 'a' of 2"):
        read_directions({"a": 1}, TableReader.learn(twins))
    for column in (2, -1, 0.0, "a", True):
        with pytest.raises(ValueError, match="positions, 0 to 1, got"):
            read_directions({column: 1}, TableReader.learn(np.eye(2)))


@pytest.mark.parametrize("strategy", [SharedBoosting, IndependentExperts])
def test_a_list_has_no_numbers_for_what_a_frame_adds(rng, strategy):
    X, y = rng.normal(size=(120, 2)), rng.normal(size=120)
    told = []
    for signs in ([0, -1], {1: -1}):
        experts = strategy(monotone=signs, random_state=0)
        options = {"frame": "center", "center": Ridge(), "n_thresholds": 3, "cv": 2}
        model = LocalExpertRegressor(strategy=experts, random_state=0, **options)
        told.append(model.fit(X, y).predict(X))
    np.testing.assert_array_equal(*told)
