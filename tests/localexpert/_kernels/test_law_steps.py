"""Answers of probabilities of values against plain loops."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from localexpert._kernels.law_steps import (
    step_integrals,
    step_quantiles,
    step_shortest,
)

Floats = NDArray[np.float64]
SHAPES = [(1, 1, 1), (1, 4, 6), (4, 4, 6), (3, 3, 1)]
shapes = pytest.mark.parametrize(("own", "n", "m"), SHAPES)


def draw(rng: np.random.Generator, own: int, n: int, m: int) -> tuple[Floats, Floats]:
    """Return values (own, m) and masses (n, m), some of them 0."""
    values = np.cumsum(rng.integers(1, 4, (own, m)), axis=1).astype(np.float64)
    masses = rng.dirichlet(np.ones(m), n)
    masses[:, 0] = np.where(m > 1, 0.0, masses[:, 0])
    return values, masses / masses.sum(axis=1, keepdims=True)


@shapes
def test_quantiles(own: int, n: int, m: int, rng: np.random.Generator) -> None:
    values, masses = draw(rng, own, n, m)
    upto = np.minimum(np.cumsum(masses, axis=1), 1.0)
    # Levels at steps, too, and at both ends.
    q = np.hstack([rng.uniform(size=(n, 20)), upto, np.tile([0.0, 1.0], (n, 1))])
    got = step_quantiles(values, upto, q)
    for i in range(n):
        at = values[i if own > 1 else 0]
        for j, level in enumerate(q[i]):
            enough = (upto[i] >= level * (1.0 - 1e-14)) & (upto[i] > 0.0)
            # Of rounding of sums the last value has all that is left.
            want = at[enough][0] if enough.any() else at[-1]
            assert got[i, j] == want


@shapes
@pytest.mark.parametrize("coverage", [0.1, 0.5, 0.9])
def test_shortest_intervals(
    own: int, n: int, m: int, coverage: float, rng: np.random.Generator
) -> None:
    values, masses = draw(rng, own, n, m)
    upto = np.minimum(np.cumsum(masses, axis=1), 1.0)
    upto[:, -1] = 1.0
    got = step_shortest(values, upto, coverage)
    for i in range(n):
        at = values[i if own > 1 else 0]
        pairs = [(a, b) for a in range(m) for b in range(a, m)]
        held = [(a, b) for a, b in pairs if masses[i, a : b + 1].sum() >= coverage]
        widths = [at[b] - at[a] for a, b in held]
        a, b = held[int(np.argmin(widths))]
        assert_array_equal(got[i], [at[a], at[b]])


@shapes
def test_integrals(own: int, n: int, m: int, rng: np.random.Generator) -> None:
    values, masses = draw(rng, own, n, m)
    y = np.hstack([rng.uniform(-3.0, 25.0, (n, 12)), np.broadcast_to(values, (n, m))])
    out, spread = step_integrals(values, masses, y)
    for i in range(n):
        at = values[i if own > 1 else 0]
        for j, cut in enumerate(y[i]):
            borders = np.unique(np.append(at, cut))
            widths = np.diff(borders)
            f = np.array([masses[i, at <= x].sum() for x in borders[:-1]])
            low = borders[:-1] < cut
            want = [
                widths[low] @ f[low],
                widths[low] @ f[low] ** 2,
                widths[~low] @ (1.0 - f[~low]),
                widths[~low] @ (1.0 - f[~low]) ** 2,
            ]
            assert_allclose(out[:, i, j], want, rtol=1e-12, atol=1e-14)
        gaps = np.abs(at[:, None] - at)
        assert spread[i] == pytest.approx(0.5 * masses[i] @ gaps @ masses[i], abs=1e-14)
