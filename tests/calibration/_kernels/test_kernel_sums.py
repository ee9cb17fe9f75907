"""Binned kernel sums against the direct sum over all pairs."""

import numpy as np
import pytest

from calibration._kernels.evaluate import bin_rows, kernel_sums


def table_of(steps):
    return np.exp(-0.5 * (np.arange(7 * steps + 1) / steps) ** 2)


@pytest.fixture
def rows(rng):
    return np.sort(rng.normal(size=60)), rng.uniform(0.0, 2.0, 60)


def test_binning_is_the_hat_function_at_every_node(rows):
    x, weight = rows
    nodes, mass = bin_rows(x, weight, 0.2)
    hats = np.maximum(1.0 - np.abs(nodes[:, None] - x / 0.2), 0.0)
    np.testing.assert_allclose(mass, hats @ weight, atol=1e-13)


def test_rows_without_weight_and_neighbours_swapped_by_rounding():
    x = np.array([0.5, 0.75, np.nextafter(0.75, 0.0), 9.0])
    nodes, mass = bin_rows(x, np.array([0.0, 1.0, 1.0, 2.0]), 0.25)
    assert nodes.tolist() == [3.0, 4.0, 36.0, 37.0]
    assert mass.tolist() == [2.0, 0.0, 2.0, 0.0]


def test_far_rows_and_points_are_out_of_reach():
    binned = bin_rows(np.array([-1e12, 0.0, 1e12]), np.ones(3), 0.1)
    sums = kernel_sums(np.array([-1e15, -50.0, 0.0, 1e12]), *binned, table_of(10), 0.1)
    np.testing.assert_allclose(sums, [0.0, 0.0, 1.0, 1.0])
