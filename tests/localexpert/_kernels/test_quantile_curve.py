"""Quantile curves against plain formulas."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from localexpert._kernels.quantile_curve import curve_scores, curve_values

KNOTS = np.array([-1.0, 0.0, 2.0])
VALUES = np.array([[1.0, 2.0, 5.0], [3.0, 3.5, 4.0]])
SLOPES = np.array([[1.0, 1.2, 1.5], [0.4, 0.3, 0.2]])
TAILS = np.array([[1.0, 2.0], [0.5, 0.2]])


def curves(low=-np.inf, high=np.inf):
    parts = KNOTS, VALUES, SLOPES, TAILS, np.array([low, high])
    for part in parts:
        part.setflags(write=False)
    return parts


def frozen(*columns):
    at = np.ascontiguousarray(np.column_stack(columns))
    at.setflags(write=False)
    return at


def test_knots_tails_and_slopes():
    y, log_slopes = curve_values(
        *curves(), frozen([-3.0, -1.0], [0.0, 0.0], [4.0, 3.0])
    )
    assert_allclose(y, [[-1.0, 2.0, 9.0], [3.0, 3.5, 4.2]])
    assert_allclose(np.exp(log_slopes), [[1.0, 1.2, 2.0], [0.4, 0.3, 0.2]])


def test_a_tail_nears_its_bound():
    low, high = 0.5, 7.0
    away = np.array([0.3, 1.0, 9.0, np.inf])
    lower, upper = np.tile(-1.0 - away, (2, 1)), np.tile(2.0 + away, (2, 1))
    got, log_slopes = curve_values(*curves(low, high), frozen(lower, upper))
    gaps = VALUES[:, [0]] - low, high - VALUES[:, [2]]
    below = low + gaps[0] * np.exp(-TAILS[:, [0]] / gaps[0] * away)
    above = high - gaps[1] * np.exp(-TAILS[:, [1]] / gaps[1] * away)
    assert_allclose(got, np.hstack([below, above]))
    assert_allclose(
        np.exp(log_slopes[:, 0]), TAILS[:, 0] / gaps[0][:, 0] * (got[:, 0] - low)
    )
    back = curve_scores(*curves(low, high), frozen(got))
    assert_allclose(
        back[:, [0, 1, 3, 4, 5, 7]], frozen(lower, upper)[:, [0, 1, 3, 4, 5, 7]]
    )
    beyond = curve_scores(*curves(low, high), frozen([0.5, 0.1], [7.0, 9.0]))
    assert_allclose(beyond, [[-np.inf, np.inf]] * 2)


@pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (0.9, np.inf), (0.0, 5.5)])
def test_scores_invert_values(bounds):
    z = frozen(*np.linspace(-4.0, 4.0, 41)[:, None].repeat(2, axis=1))
    y, log_slopes = curve_values(*curves(*bounds), z)
    assert (np.diff(y, axis=1) > 0.0).all()
    # Nearer to a bound little is left of what y says.
    far = np.abs(z) > 2.5
    back = curve_scores(*curves(*bounds), frozen(y))
    assert_allclose(back[~far], z[~far], atol=1e-6)
    ahead, _ = curve_values(*curves(*bounds), frozen(z + 1e-6))
    # Not where a tail begins with another slope.
    inner = ~np.isin(z, KNOTS)
    assert_allclose(
        ((ahead - y) / 1e-6)[inner], np.exp(log_slopes)[inner], rtol=1e-4, atol=1e-9
    )
