"""Joining of cells that nearly coincide."""

import numpy as np
import pytest

from calibration._kernels.cells import join_close_cells


@pytest.mark.parametrize("least_gap", [1e-4, 1e-3, 0.02])
@pytest.mark.parametrize("law", ["uniform", "bunched"])
def test_gaps_are_kept_and_weight_moves_little(rng, law, least_gap):
    scores = rng.uniform(size=2000) if law == "uniform" else rng.beta(0.1, 0.2, 2000)
    scores = np.unique(np.append(scores, [0.0, 1.0]))
    weight0, weight1 = rng.integers(1, 4, (2, len(scores))).astype(float)
    cells, sum0, sum1 = join_close_cells(scores, weight0, weight1, least_gap)
    assert np.diff(cells).min() >= least_gap * (1 - 1e-9)
    assert (sum0.sum(), sum1.sum()) == (weight0.sum(), weight1.sum())
    # Groups are runs of cells: their totals say which, and how far each was moved.
    ends = np.searchsorted(np.cumsum(weight0), np.cumsum(sum0))
    group = np.searchsorted(ends, np.arange(len(scores)))
    np.testing.assert_array_equal(sum1, np.bincount(group, weight1))
    assert np.abs(cells[group] - scores).max() < least_gap


def test_distant_cells_stay_as_they_are(rng):
    scores = np.linspace(0.0, 1.0, 11)
    weight0, weight1 = rng.uniform(0.1, 1.0, (2, 11))
    cells = join_close_cells(scores, weight0, weight1, 0.05)
    for kept, given in zip(cells, (scores, weight0, weight1), strict=True):
        np.testing.assert_array_equal(kept, given)


def test_weight_cannot_drag_a_group_along():
    """Groups stay narrower than two gaps however the weights grow to the right."""
    scores = np.arange(12) * 0.9
    weight = 1000.0 ** np.arange(12)
    cells, _, _ = join_close_cells(scores, weight, 0.0 * weight, 1.0)
    np.testing.assert_allclose(cells, 0.45 + 1.8 * np.arange(6))
