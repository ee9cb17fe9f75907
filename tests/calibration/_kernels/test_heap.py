"""The binary heap against sorting."""

import numpy as np
import pytest

from calibration._kernels.near_isotonic import pop_least, push


@pytest.mark.parametrize("n", [1, 2, 3, 100])
def test_entries_leave_in_order_whatever_the_order_they_came_in(rng, n):
    keys, items = np.empty(n), np.empty(n, dtype=np.int64)
    values = rng.integers(0, 20, n).astype(float)  # with ties
    for size, value in enumerate(values):
        push(keys, items, size, value, size)
    left = []
    for size in range(n, 0, -1):
        assert values[items[0]] == keys[0]
        left.append((keys[0], items[0]))
        pop_least(keys, items, size)
    assert [key for key, _ in left] == sorted(values)
    assert sorted(item for _, item in left) == list(range(n))


def test_pushing_and_popping_may_alternate(rng):
    keys, items = np.empty(200), np.empty(200, dtype=np.int64)
    held, size = [], 0
    for value in rng.uniform(size=200):
        push(keys, items, size, value, 0)
        held.append(value)
        size += 1
        if value > 0.6:
            assert keys[0] == min(held)
            held.remove(keys[0])
            pop_least(keys, items, size)
            size -= 1
    assert sorted(keys[:size]) == sorted(held)
