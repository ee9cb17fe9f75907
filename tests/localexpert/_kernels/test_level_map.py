"""Maps of scores against Hermite splines of scipy, straight beyond their knots."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.interpolate import CubicHermiteSpline, PchipInterpolator

from localexpert._kernels.level_map import map_scores, unmap_scores


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("m", [2, 9])
def test_maps_and_their_inverse(n: int, m: int, rng: np.random.Generator) -> None:
    knots = np.cumsum(rng.uniform(0.1, 1.0, m)) - 2.0
    values = np.cumsum(rng.exponential(size=(n, m)), axis=1) - 3.0
    slopes = PchipInterpolator(knots, values, axis=1).derivative()(knots) + 1e-3
    z = np.tile(np.append(np.linspace(-9.0, 9.0, 400), knots), (5, 1))
    got, log_slopes = map_scores(knots, values, slopes, z)
    spline = CubicHermiteSpline(knots, np.broadcast_to(values, (5, m)),
                                np.broadcast_to(slopes, (5, m)), axis=1)  # fmt: skip
    first, last = spline(knots[[0, -1]]).T
    outer = spline(knots[[0, -1]], 1)
    inside = np.clip(z[0], knots[0], knots[-1])
    below, above = np.minimum(z[0] - knots[0], 0.0), np.maximum(z[0] - knots[-1], 0.0)
    want = spline(inside) + outer[:, :1] * below + outer[:, 1:] * above
    assert_allclose(got, want, rtol=1e-11, atol=1e-12)
    assert_allclose(np.exp(log_slopes), spline(inside, 1), rtol=1e-9)
    assert_allclose(unmap_scores(knots, values, slopes, got), z, atol=1e-8)
    assert (first < last).all()
