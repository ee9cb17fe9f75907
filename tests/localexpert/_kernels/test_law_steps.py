"""Answers of probabilities of values against plain loops."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from localexpert._kernels.law_steps import (
    step_integrals,
    step_quantiles,
    step_shortest,
)


@pytest.mark.parametrize(("own", "n", "m"), [(1, 1, 1), (1, 4, 6), (4, 4, 6)])
def test_steps_are_plain_sums(
    own: int, n: int, m: int, rng: np.random.Generator
) -> None:
    values = np.cumsum(rng.integers(1, 4, (own, m)), axis=1).astype(np.float64)
    masses = rng.dirichlet(np.ones(m), n)
    masses[:, 0] *= float(m == 1)  # a value without probability
    masses /= masses.sum(axis=1, keepdims=True)
    upto = np.minimum(np.cumsum(masses, axis=1), 1.0)
    upto[:, -1] = 1.0
    # Levels at steps, too, and at both ends; values between, beyond, and at jumps.
    q = np.hstack([rng.uniform(size=(n, 20)), upto, np.tile([0.0, 1.0], (n, 1))])
    y = np.hstack([rng.uniform(-3.0, 25.0, (n, 12)), np.broadcast_to(values, (n, m))])
    quantiles, (out, spread) = (
        step_quantiles(values, upto, q),
        step_integrals(values, masses, y),
    )
    for i, at in enumerate(np.broadcast_to(values, (n, m))):
        for j, level in enumerate(q[i]):
            enough = (upto[i] >= level * (1.0 - 1e-14)) & (upto[i] > 0.0)
            assert quantiles[i, j] == at[enough][0]
        for coverage in (0.1, 0.5, 0.9):
            pairs = [(a, b) for a in range(m) for b in range(a, m)]
            held = [(a, b) for a, b in pairs if masses[i, a : b + 1].sum() >= coverage]
            best = min(held, key=lambda pair: at[pair[1]] - at[pair[0]])
            got = step_shortest(values, upto, coverage)[i]
            assert_array_equal(got, at[list(best)])
        for j, cut in enumerate(y[i]):
            borders = np.unique(np.append(at, cut))
            widths, low = np.diff(borders), borders[:-1] < cut
            f = np.array([masses[i, at <= x].sum() for x in borders[:-1]])
            below = [widths[low] @ f[low] ** power for power in (1, 2)]
            above = [widths[~low] @ (1.0 - f[~low]) ** power for power in (1, 2)]
            assert_allclose(out[:, i, j], [*below, *above], rtol=1e-12, atol=1e-14)
        gaps = np.abs(at[:, None] - at)
        assert spread[i] == pytest.approx(0.5 * masses[i] @ gaps @ masses[i], abs=1e-14)
