"""Counts of values beside a dictionary."""

import numpy as np

from localexpert.data.counts import count_values


def test_values_and_weights_are_those_of_a_dictionary(rng, frozen):
    y = rng.integers(-2, 3, 50).astype(float)
    weight = rng.integers(0, 3, 50).astype(float)
    weight[y == 2.0] = 0.0
    sums = {}
    for value, one in zip(y, weight, strict=True):
        if one > 0.0:
            sums[value] = sums.get(value, 0.0) + one
    values, weights = count_values(frozen(y), frozen(weight))
    assert dict(zip(values.tolist(), weights.tolist(), strict=True)) == sums
    assert (np.diff(values) > 0.0).all()
