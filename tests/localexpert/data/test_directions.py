"""Directions of columns: what they may be, and where they are looked for."""

import numpy as np
import pandas as pd
import pytest

from localexpert import (
    IndependentExperts,
    LocalExpertRegressor,
    SharedBoosting,
    make_folds,
)
from localexpert.data.directions import check_directions, read_directions
from localexpert.data.table import TableReader


def reader(**columns):
    return TableReader.learn(pd.DataFrame(columns))


def test_signs_by_name_and_by_position():
    table = reader(a=[1.0, 2.0], b=[True, False], c=[3, 4])
    assert read_directions({"c": -1, "b": 1}, table) == [0, 1, -1]
    assert read_directions(None, table) == [0, 0, 0]
    assert read_directions({1: 1}, TableReader.learn(np.eye(3))) == [0, 1, 0]


def test_names_that_are_numbers_are_names():
    table = TableReader.learn(pd.DataFrame(np.eye(3), columns=[2, 0, 1]))
    assert read_directions({2: 1}, table) == [1, 0, 0]


def test_they_are_integers_of_one_type():
    found = check_directions({"a": np.float64(-1.0), "b": np.int8(1)})
    assert found == {"a": -1, "b": 1}
    assert {type(sign) for sign in found.values()} == {int}
    assert check_directions({}) is None
    assert check_directions(None) is None


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


@pytest.mark.parametrize(
    "experts",
    [
        lambda signs: SharedBoosting(max_rounds=5, monotone=signs, random_state=0),
        lambda signs: IndependentExperts(monotone=signs, random_state=0),
    ],
)
def test_lists_and_mappings_say_the_same(experts, rng):
    X, y = rng.normal(size=(80, 2)), rng.normal(size=80)
    told = [
        experts(signs).fit(X, y, [0.0], make_folds(80, 2, random_state=0)).predict(X)
        for signs in ([1, 0], {0: 1})
    ]
    np.testing.assert_array_equal(*told)


def test_a_regressor_reports_a_list(rng):
    X, y = rng.normal(size=(80, 2)), rng.normal(size=80)
    model = LocalExpertRegressor(monotone=[0, -1], n_thresholds=3, cv=2, random_state=0)
    model.fit(X, y)
    assert model.report_.choices["monotone"] == {"chosen": "1 -1"}


@pytest.mark.parametrize("monotone", ["a", 1])
def test_no_mapping(monotone):
    with pytest.raises(TypeError, match="`monotone` must be a mapping of columns"):
        check_directions(monotone)


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
