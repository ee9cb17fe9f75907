"""Maps and kernel sums at points against numpy, and the hash against its reference."""

import numpy as np
import pytest

from calibration._kernels import evaluate
from calibration._kernels.cells import mix64, next_key


def test_reproduces_splitmix64():
    # First outputs of Vigna's reference splitmix64.c for seed 1234567.
    key, got = np.uint64(1234567), []
    for _ in range(3):
        key = np.uint64(next_key(key))
        got.append(int(mix64(key)))
    assert got == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@pytest.mark.parametrize("shape", ["uniform", "clustered", "one", "outlier"])
@pytest.mark.parametrize("n", [3, 20_000])
def test_count_below_is_searchsorted(rng, shape, n):
    knots = {
        "uniform": np.sort(rng.uniform(size=50)),
        "clustered": np.sort(0.5 + 1e-13 * rng.uniform(size=50)),
        "one": np.array([0.3]),
        "outlier": np.array([0.0, 1e-9, 2e-9, 1e300]),
    }[shape]
    knots = np.unique(knots)
    points = np.concatenate([rng.uniform(-0.5, 1.5, n), knots, [-np.inf, np.inf]])
    expected = np.searchsorted(knots, points, side="right")
    np.testing.assert_array_equal(evaluate.count_below(knots, points), expected)


def test_values_at_and_beside_a_knot():
    one = np.array([0.0, 1.0])
    left, at, right = np.array([0.1, 0.3]), np.array([0.2, 0.5]), np.array([0.4, 0.9])
    points = np.array([-1.0, 0.0, 0.5, 1.0, 2.0])
    linear = evaluate.evaluate_map(points, one, left, at, right, True)
    step = evaluate.evaluate_map(points, one, left, at, right, False)
    np.testing.assert_allclose(linear, [0.1, 0.2, 0.35, 0.5, 0.9])
    np.testing.assert_allclose(step, [0.1, 0.2, 0.4, 0.5, 0.9])


def test_binning_is_the_hat_function_at_every_node(rng):
    x, weight = np.sort(rng.normal(size=60)), rng.uniform(0.0, 2.0, 60)
    nodes, mass = evaluate.bin_rows(x, weight, 0.2)
    hats = np.maximum(1.0 - np.abs(nodes[:, None] - x / 0.2), 0.0)
    np.testing.assert_allclose(mass, hats @ weight, atol=1e-13)


def test_rows_without_weight_and_neighbours_swapped_by_rounding():
    x = np.array([0.5, 0.75, np.nextafter(0.75, 0.0), 9.0])
    nodes, mass = evaluate.bin_rows(x, np.array([0.0, 1.0, 1.0, 2.0]), 0.25)
    assert nodes.tolist() == [3.0, 4.0, 36.0, 37.0]
    assert mass.tolist() == [2.0, 0.0, 2.0, 0.0]


def test_far_rows_and_points_are_out_of_reach():
    binned = evaluate.bin_rows(np.array([-1e12, 0.0, 1e12]), np.ones(3), 0.1)
    at = np.array([-1e15, -50.0, 0.0, 1e12])
    table = np.exp(-0.5 * (np.arange(71) / 10) ** 2)
    sums = evaluate.kernel_sums(at, *binned, table, 0.1)
    np.testing.assert_allclose(sums, [0.0, 0.0, 1.0, 1.0])
