"""Near values: what differs by rounding only is one value, and nothing else is."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import ArrayLike

from localexpert.law.steps import merge_near_values, near_runs

THIRD = 0.1 + 0.2  # one float above .3


def test_sums_are_the_numbers_they_stand_for() -> None:
    tenths = np.arange(1, 1001) / 10
    y = np.concatenate([tenths, tenths, np.cumsum(np.full(1000, 0.1))])
    assert_array_equal(merge_near_values(y, np.ones(3000)), np.tile(tenths, 3))
    few = np.array([0.3, THIRD, 0.7])
    heavier = merge_near_values(few, np.array([1.0, 2.0, 1.0]))
    assert_array_equal(heavier, [THIRD, THIRD, 0.7])
    assert merge_near_values(few, np.array([1.0, 0.0, 1.0])) is few


@pytest.mark.parametrize(
    ("values", "n_runs"),
    [
        ([0.3, THIRD], 1),
        ([0.0, 0.1 + 0.2 - 0.3, 0.1, 0.2], 3),
        ([-THIRD, -0.3, 0.1], 2),
        ([0.1, 0.2, 0.3, 1e12], 4),
        ([1.0, 2.0, 9.97e36], 3),
        ([1e-300, 2e-300, 3e-300], 3),
        (1e15 + np.arange(60) / 8, 60),
        (1e9 + np.append(np.arange(50) * 5e-4, 1e36), 51),
        ([7.0], 1),
        ([], 0),
    ],
)
def test_only_rounding_is_near(values: ArrayLike, n_runs: int) -> None:
    assert len(np.unique(near_runs(np.asarray(values)))) == n_runs
