"""Kernel densities: shapes, mass, reflection, rule of thumb."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gaussian_kde, norm

from calibration.densities.kernel_density import (
    KERNELS,
    KernelDensity,
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
    density = KernelDensity.from_rows(x, weight, kernel, 0.2, False)
    grid = np.linspace(-1.5, 2.5, 20_001)
    values = density.density(grid)
    u = (grid[:, None] - x) / 0.2
    direct = FORMULAS[kernel](u) @ weight / (0.2 * weight.sum())
    step = grid[1] - grid[0]
    assert values.sum() * step == pytest.approx(1.0, abs=1e-6)
    # The jumps of a boxcar come out as slopes of a sixteenth of its half-width.
    tolerance = 0.02 if kernel == "boxcar" else 3e-3
    assert abs(values - direct).sum() * step < tolerance


def test_normal_kernel_agrees_with_scipy(rows):
    x, weight = rows
    theirs = gaussian_kde(x, weights=weight, bw_method=0.3)
    bandwidth = float(np.sqrt(theirs.covariance[0, 0]))
    ours = KernelDensity.from_rows(x, weight, "gaussian", bandwidth, False)
    grid = np.linspace(-0.5, 1.5, 50)
    np.testing.assert_allclose(ours.density(grid), theirs(grid), atol=2e-3)


@everyone
@pytest.mark.parametrize("bandwidth", [0.05, 0.4, 1.0])
def test_reflection_keeps_all_mass_between_zero_and_one(kernel, bandwidth, rows):
    density = KernelDensity.from_rows(*rows, kernel, bandwidth, True)
    grid = (np.arange(20_000) + 0.5) / 20_000
    assert density.density(grid).mean() == pytest.approx(1.0, abs=1e-5)
    plain = KernelDensity.from_rows(*rows, kernel, bandwidth, False)
    inside = plain.density(grid).mean()
    assert inside < 0.99


def test_reflection_adds_the_images(rows):
    x, weight = rows
    density = KernelDensity.from_rows(x, weight, "tricube", 0.5, True)
    plain = KernelDensity.from_rows(x, weight, "tricube", 0.5, False)
    grid = np.linspace(0.0, 1.0, 21)
    images = plain.sums(grid) + plain.sums(-grid) + plain.sums(2.0 - grid)
    np.testing.assert_allclose(density.sums(grid), images, rtol=1e-12)


@pytest.mark.parametrize("reflect", [False, True])
def test_own_is_what_a_row_adds_to_its_own_sum(reflect, rows):
    x, weight = rows
    density = KernelDensity.from_rows(x, weight, "gaussian", 0.3, reflect)
    own = density.own(x)
    for i in (0, 17, 79):
        more = weight + (np.arange(80) == i)
        heavier = KernelDensity.from_rows(x, more, "gaussian", 0.3, reflect)
        gain = heavier.sums(x)[i] - density.sums(x)[i]
        assert own[i] == pytest.approx(gain, rel=1e-9)


def test_many_points_are_answered_in_their_order(rows, rng):
    density = KernelDensity.from_rows(*rows, "gaussian", 0.1, False)
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


def test_silverman_counts_weights_as_repetitions(rng):
    x, weight = np.sort(rng.normal(size=50)), rng.integers(1, 5, 50).astype(float)
    repeated = np.repeat(x, weight.astype(int))
    assert silverman_bandwidth(x, weight, "gaussian") == pytest.approx(
        silverman_bandwidth(repeated, np.ones(len(repeated)), "gaussian"), rel=1e-12
    )
