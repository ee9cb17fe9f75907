"""A binary heap of keys with an item each, in arrays with room to grow."""

from calibration._kernels._jit import njit
from calibration.typing import Float64Array, Int64Array


@njit
def push(
    keys: Float64Array, items: Int64Array, size: int, key: float, item: int
) -> None:
    """Add an entry to the heap in the first `size` places, which becomes one longer."""
    i = size
    # Sift up: a hole moves to the root while its parent is greater.
    while i > 0 and keys[(i - 1) // 2] > key:
        keys[i], items[i] = keys[(i - 1) // 2], items[(i - 1) // 2]
        i = (i - 1) // 2
    keys[i], items[i] = key, item


@njit
def pop_least(keys: Float64Array, items: Int64Array, size: int) -> None:
    """Remove the entry of least key, which stands first; the heap is one shorter."""
    key, item = keys[size - 1], items[size - 1]
    i = 0
    # Sift down: the last entry fills the hole that the least one leaves.
    while 2 * i + 1 < size - 1:
        child = 2 * i + 1
        if child + 1 < size - 1 and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[i], items[i] = keys[child], items[child]
        i = child
    keys[i], items[i] = key, item
