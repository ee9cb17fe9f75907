"""How sure losses are to tell forecasts apart."""

import numpy as np
import pytest
from scipy.stats import norm

from calibration.selection.row_losses import RowLosses, simplest_of_best


def test_mean_and_error_are_those_of_repeated_rows(rng):
    losses, weight = rng.exponential(size=30), rng.integers(1, 5, size=30)
    one = RowLosses(losses, weight.astype(float))
    repeated = np.repeat(losses, weight)
    assert one.mean == pytest.approx(repeated.mean())
    n = len(repeated)
    assert one.error == pytest.approx(repeated.std(ddof=1) / np.sqrt(n))
    assert RowLosses(losses[:1], np.ones(1)).error == np.inf


def test_harm_is_the_smaller_of_two_bounds(rng):
    gap = rng.normal(-0.05, 1.0, size=50)
    base = rng.exponential(size=50)
    reference = RowLosses(base, np.ones(50))
    one = RowLosses(base + gap, np.ones(50))
    normal = norm.cdf(gap.mean() / (gap.std(ddof=1) / np.sqrt(50)))
    expected = min(normal, np.exp(min(gap.sum(), 0.0)))
    assert one.harm(reference) == pytest.approx(expected)
    # One row that the reference held to be impossible.
    gap = np.append(np.full(49, 0.01), -700.0)
    sure = RowLosses(base + gap, np.ones(50))
    assert sure.harm(reference) < 1e-100
    assert reference.harm(reference) == 0.0
    worse = RowLosses(base + 1.0, np.ones(50))
    assert worse.harm(reference) == 1.0


def test_the_simplest_that_is_near_the_best(rng):
    base, weight = rng.exponential(size=100), np.ones(100)
    noise = rng.normal(size=100)
    noise -= noise.mean()
    near = RowLosses(base + 0.02 + noise, weight)
    far = RowLosses(base + 0.5 + noise, weight)
    best = RowLosses(base, weight)
    assert simplest_of_best([far, near, best]) == 1
    assert simplest_of_best([far, near, best], near=0.0) == 2
    assert simplest_of_best([best, near]) == 0
