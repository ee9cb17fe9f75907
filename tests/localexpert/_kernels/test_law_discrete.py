"""Quantiles and shortest intervals of discrete rows against loops over values."""

import numpy as np
import pytest

from localexpert._kernels.law_discrete import discrete_quantiles, discrete_shortest


@pytest.fixture
def rows(rng):
    values = np.cumsum(rng.uniform(0.1, 2.0, 7))
    probabilities = rng.dirichlet(np.full(7, 0.5), size=30)
    probabilities[:, 2] = 0.0
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    cumulative = np.cumsum(probabilities, axis=1)
    cumulative[:, -1] = 1.0
    return values, probabilities, cumulative


def test_quantiles_equal_the_definition(rng, rows):
    values, probabilities, cumulative = rows
    q = rng.uniform(size=(30, 20))
    got = discrete_quantiles(values, cumulative, q)
    for i in range(30):
        for j in range(20):
            expected = min(
                v for v, c in zip(values, cumulative[i], strict=True) if c >= q[i, j]
            )
            assert got[i, j] == expected
    ends = discrete_quantiles(values, cumulative, np.tile([0.0, 1.0], (30, 1)))
    held = probabilities > 0.0
    assert (ends[:, 0] == values[np.argmax(held, axis=1)]).all()
    assert (ends[:, 1] <= values[-1]).all()


def test_quantiles_forgive_the_rounding_of_sums():
    cumulative = np.cumsum(np.full((1, 10), 0.1), axis=1)
    q = np.round(np.arange(1, 11) / 10.0, 1)[None]
    got = discrete_quantiles(np.arange(10.0), cumulative, q)
    assert got[0].tolist() == list(range(10))


@pytest.mark.parametrize("coverage", [0.05, 0.5, 0.9, 0.999])
def test_shortest_interval_equals_all_pairs(rows, coverage):
    values, probabilities, cumulative = rows
    got = discrete_shortest(values, cumulative, coverage)
    for i in range(30):
        pairs = [
            (values[b] - values[a], values[a], values[b])
            for a in range(7)
            for b in range(a, 7)
            if probabilities[i, a : b + 1].sum() >= coverage * (1 - 1e-12)
        ]
        assert got[i, 1] - got[i, 0] == pytest.approx(min(pairs)[0])
        inside = (values >= got[i, 0]) & (values <= got[i, 1])
        assert probabilities[i, inside].sum() >= coverage * (1 - 1e-12)
