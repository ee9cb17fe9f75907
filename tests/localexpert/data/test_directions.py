"""Directions of columns: what they may be, and where they are looked for."""

import numpy as np
import pandas as pd
import pytest

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


@pytest.mark.parametrize("monotone", ["a", ["a"], 1])
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
