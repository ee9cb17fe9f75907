"""Integrals of powers of F on curves against sums over very many values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr

from localexpert._kernels.law_integrals import (
    curve_integrals,
    curve_moments,
    curve_nodes,
)
from localexpert.law.basis import Basis
from tests.localexpert._kernels.test_law_curve import BASES, draw_rows, follow

GRID = np.linspace(-8.0, 8.0, 400_001)


@pytest.mark.parametrize("flat", [0.0, 0.6])
@pytest.mark.parametrize("basis", BASES.values(), ids=BASES)
def test_integrals_are_sums_over_a_fine_grid(
    basis: Basis, flat: float, rng: np.random.Generator
) -> None:
    rows = draw_rows(rng, basis, flat=flat)
    values = follow(basis, rows, GRID)[0]
    # Within, at both ends, beyond them, and beyond bounds.
    inner = values[:, ::80_000]
    ends = values[:, [0, -1]] + [-1.5, 2.5]
    y = np.hstack([inner, 0.5 * (inner[:, 1:] + inner[:, :-1]), ends])
    out, spread = curve_integrals(basis.shared, rows, basis.panels, y)
    below, above = ndtr(GRID), ndtr(-GRID)
    powers = below, below**2, above, above**2
    for i, own in enumerate(values):
        dy = np.diff(own)
        sd = own[240_000] - own[160_000]
        parts = [np.append(0.0, np.cumsum(0.5 * dy * (p[1:] + p[:-1]))) for p in powers]
        under, over = np.maximum(y[i] - own[-1], 0.0), np.maximum(own[0] - y[i], 0.0)
        for k, part in enumerate(parts):
            want = np.interp(y[i], own, part)
            want = want + under if k < 2 else part[-1] - want + over
            assert_allclose(out[k, i], want, rtol=2e-5, atol=2e-6 * sd)
        both = below * above
        want = (0.5 * dy * (both[1:] + both[:-1])).sum()
        assert spread[i] == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("basis", BASES.values(), ids=BASES)
def test_moments_are_sums_over_nodes(basis: Basis, rng: np.random.Generator) -> None:
    rows = draw_rows(rng, basis)
    rows.coefficients[0] += 1e8  # where digits are lost
    z, shares = basis.nodes
    y = curve_nodes(basis.shared, rows, basis.panels)
    assert_allclose(y, follow(basis, rows, z)[0], rtol=1e-12, atol=1e-12)
    mean = y @ shares
    want = [mean, *((y - mean[:, None]) ** k @ shares for k in (2, 3, 4))]
    moments = curve_moments(basis.shared, rows, basis.panels)
    assert_allclose(moments, np.column_stack(want), rtol=1e-6)
