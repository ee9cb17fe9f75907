"""Kernel densities of a class, and what bandwidths are worth."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from calibration.densities.kde import (
    KERNELS,
    KernelDensity,
    LeaveOneOut,
    silverman_bandwidth,
    tabulate_kernel,
)

FORMULAS = {
    "gaussian": norm.pdf,
    "boxcar": lambda u: 0.5 * (abs(u) <= 1),
    "epanechnikov": lambda u: 0.75 * np.maximum(1 - u**2, 0),
    "tricube": lambda u: 70 / 81 * np.maximum(1 - abs(u) ** 3, 0) ** 3,
}
everyone = pytest.mark.parametrize("kernel", FORMULAS)


@pytest.fixture
def rows(rng):
    return np.sort(rng.uniform(size=80)), rng.uniform(0.1, 2.0, 80)


@everyone
def test_constants_of_the_kernels_are_their_integrals(kernel):
    shape, formula = KERNELS[kernel], FORMULAS[kernel]
    reach = shape.reach

    def integral(function):
        return 2.0 * quad(function, 0.0, reach)[0]

    assert integral(formula) == pytest.approx(1.0, abs=1e-9)
    assert integral(lambda u: formula(u) ** 2) == pytest.approx(shape.roughness)
    variance = integral(lambda u: u**2 * formula(u))
    assert variance == pytest.approx(shape.variance, rel=1e-7)


@everyone
def test_table_is_the_formula_over_its_peak(kernel):
    table = tabulate_kernel(kernel)
    u = np.arange(len(table)) / 16
    expected = FORMULAS[kernel](u) / FORMULAS[kernel](0.0)
    if kernel == "boxcar":
        expected[-1] = 0.5
    np.testing.assert_allclose(table, expected, atol=1e-15)


@everyone
def test_density_is_the_direct_sum_and_has_mass_one(kernel, rows):
    x, weight = rows
    density = KernelDensity.from_rows(x, weight, kernel, 0.2)
    grid = np.linspace(-1.5, 2.5, 20_001)
    values = density.density(grid)
    u = (grid[:, None] - x) / 0.2
    direct = FORMULAS[kernel](u) @ weight / (0.2 * weight.sum())
    step = grid[1] - grid[0]
    assert values.sum() * step == pytest.approx(1.0, abs=1e-6)
    # The jumps of a boxcar come out as slopes of a sixteenth of its half-width.
    tolerance = 0.02 if kernel == "boxcar" else 3e-3
    assert abs(values - direct).sum() * step < tolerance


def test_own_is_what_a_row_adds_to_its_own_sum(rows):
    x, weight = rows
    density = KernelDensity.from_rows(x, weight, "gaussian", 0.3)
    own = density.own(x)
    for i in (0, 17, 79):
        more = weight + (np.arange(80) == i)
        heavier = KernelDensity.from_rows(x, more, "gaussian", 0.3)
        gain = heavier.sums(x)[i] - density.sums(x)[i]
        assert own[i] == pytest.approx(gain, rel=1e-9)


def test_many_points_are_answered_in_their_order(rows, rng):
    density = KernelDensity.from_rows(*rows, "gaussian", 0.1)
    points = rng.uniform(size=5000)
    np.testing.assert_array_equal(
        density.sums(points)[:100], density.sums(points[:100])
    )


def test_silverman_is_the_rule_of_thumb(rng):
    x = np.sort(rng.normal(scale=3.0, size=2001))
    expected = 1.06 * min(x.std(), (x[1500] - x[500]) / 1.349) * 2001**-0.2
    value = silverman_bandwidth(x, np.ones(2001), "gaussian")
    assert value == pytest.approx(expected, rel=1e-12)
    # Marron & Nolan's factors from the normal kernel, as printed (Haerdle 1991).
    for kernel, factor in (("boxcar", 1.740), ("epanechnikov", 2.214)):
        ratio = silverman_bandwidth(x, np.ones(2001), kernel) / value
        assert ratio == pytest.approx(factor, abs=5e-4)


def brute_force(x, y, bandwidths, prior_weight, kernel="gaussian"):
    """Fit without each row and score it; plain arithmetic of the docstring."""
    losses = []
    for i in range(len(x)):
        others = np.delete(np.arange(len(x)), i)
        heights = []
        for k in (0, 1):
            rows = others[y[others] == k]
            place = np.sort(x[rows])
            density = KernelDensity.from_rows(
                place, np.ones(len(rows)), kernel, bandwidths[k]
            )
            rate = (len(rows) + 1) / (len(others) + 2)
            height = density.sums(x[i : i + 1])[0] / bandwidths[k]
            extra = prior_weight * rate / np.sqrt(bandwidths[0] * bandwidths[1])
            heights.append(height + extra)
        losses.append(-np.log(heights[y[i]] / sum(heights)))
    return np.mean(losses)


@pytest.mark.parametrize("bandwidths", [(0.1, 0.1), (0.05, 0.3)])
def test_is_the_loss_of_every_row_left_out(rng, bandwidths):
    x = np.round(rng.uniform(size=60), 1)
    y = (rng.uniform(size=60) < x).astype(int)
    place = np.unique(x)
    weights = np.stack(
        [[((x == value) & (y == k)).sum() for value in place] for k in (0, 1)]
    ).astype(float)
    judge = LeaveOneOut(place, weights, 0.5)
    heights = []
    for k in (0, 1):
        density = KernelDensity.from_rows(place, weights[k], "gaussian", bandwidths[k])
        heights.append(judge.heights(density, k))
    expected = brute_force(x, y, bandwidths, 0.5)
    assert judge.loss(*heights) == pytest.approx(expected, rel=1e-10)


def test_a_weight_below_one_is_one_row():
    place, weights = np.array([0.0, 0.1]), np.array([[0.5, 0.0], [0.0, 0.25]])
    judge = LeaveOneOut(place, weights, 1.0)
    densities = [
        KernelDensity.from_rows(place, weight, "boxcar", 0.2) for weight in weights
    ]
    # Row 0 left out: no class 0; one row of class 1, weight .25, rates 1 and 1.25
    # over 2.25. Row 1 left out: half a row of class 0, rates 1.5 and 1 over 2.5.
    first = -np.log((1 / 2.25) / (1.25 / 2.25 + 0.25 + 1 / 2.25))
    second = -np.log((1 / 2.5) / (1.5 / 2.5 + 0.5 + 1 / 2.5))
    expected = (0.5 * first + 0.25 * second) / 0.75
    heights = [judge.heights(density, k) for k, density in enumerate(densities)]
    assert judge.loss(*heights) == pytest.approx(expected, rel=1e-12)
