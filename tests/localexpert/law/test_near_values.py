"""Near values: what differs by rounding only is one value, and nothing else is."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import ArrayLike

from localexpert.law.near_values import merge_near_values, near_runs
from tests.forecasts import beside, normal, of_values

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


def test_laws_know_their_values_in_spite_of_rounding() -> None:
    dist = of_values([0.1, THIRD, 0.5], [[0.2, 0.5, 0.3]])
    for y in (0.3, THIRD, np.nextafter(THIRD, 1.0)):
        assert_allclose(
            [dist.cdf(y)[0], dist.sf(y)[0], dist.pmf(y)[0]], [0.7, 0.3, 0.5]
        )
    assert dist.cdf(0.3 - 1e-9)[0] == pytest.approx(0.2)
    apart = of_values([0.3, THIRD, 0.7], [[0.2, 0.5, 0.3]])
    assert_allclose(apart.cdf_at([0.3, THIRD, 0.7]), [[0.2, 0.7, 1.0]])
    mixed = beside(normal([0.0]), [THIRD], [[0.4]], [0.01])
    assert_allclose(mixed.pdf([[0.3], [THIRD]])[:, 0], 40.0)
    assert mixed.pdf(0.3 - 1e-6)[0] < 1.0
