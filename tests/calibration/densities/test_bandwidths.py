"""Leave-one-out losses against leaving every row out."""

import numpy as np
import pytest

from calibration.densities.bandwidths import LeaveOneOut
from calibration.densities.kernel_density import KernelDensity


def brute_force(x, y, bandwidths, prior_weight, reflect, kernel="gaussian"):
    """Fit without each row and score it; plain arithmetic of the docstring."""
    losses = []
    for i in range(len(x)):
        others = np.delete(np.arange(len(x)), i)
        heights = []
        for k in (0, 1):
            rows = others[y[others] == k]
            place = np.sort(x[rows])
            density = KernelDensity.from_rows(
                place, np.ones(len(rows)), kernel, bandwidths[k], reflect
            )
            rate = (len(rows) + 1) / (len(others) + 2)
            height = density.sums(x[i : i + 1])[0] / bandwidths[k]
            extra = prior_weight * rate / np.sqrt(bandwidths[0] * bandwidths[1])
            heights.append(height + extra)
        losses.append(-np.log(heights[y[i]] / sum(heights)))
    return np.mean(losses)


@pytest.mark.parametrize("reflect", [False, True])
@pytest.mark.parametrize("bandwidths", [(0.1, 0.1), (0.05, 0.3)])
def test_is_the_loss_of_every_row_left_out(rng, reflect, bandwidths):
    x = np.round(rng.uniform(size=60), 1 + reflect)
    y = (rng.uniform(size=60) < x).astype(int)
    place = np.unique(x)
    weights = np.stack(
        [[((x == value) & (y == k)).sum() for value in place] for k in (0, 1)]
    ).astype(float)
    judge = LeaveOneOut(place, weights, 0.5)
    heights = []
    for k in (0, 1):
        density = KernelDensity.from_rows(
            place, weights[k], "gaussian", bandwidths[k], reflect
        )
        heights.append(judge.heights(density, k))
    expected = brute_force(x, y, bandwidths, 0.5, reflect)
    assert judge.loss(*heights) == pytest.approx(expected, rel=1e-10)


def test_a_weight_below_one_is_one_row():
    place, weights = np.array([0.0, 0.1]), np.array([[0.5, 0.0], [0.0, 0.25]])
    judge = LeaveOneOut(place, weights, 1.0)
    densities = [
        KernelDensity.from_rows(place, weight, "boxcar", 0.2, False)
        for weight in weights
    ]
    # Row 0 left out: no class 0; one row of class 1, weight .25, rates 1 and 1.25
    # over 2.25. Row 1 left out: half a row of class 0, rates 1.5 and 1 over 2.5.
    first = -np.log((1 / 2.25) / (1.25 / 2.25 + 0.25 + 1 / 2.25))
    second = -np.log((1 / 2.5) / (1.5 / 2.5 + 0.5 + 1 / 2.5))
    expected = (0.5 * first + 0.25 * second) / 0.75
    heights = [judge.heights(density, k) for k, density in enumerate(densities)]
    assert judge.loss(*heights) == pytest.approx(expected, rel=1e-12)
