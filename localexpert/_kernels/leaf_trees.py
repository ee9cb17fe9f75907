"""One tree whose leaves hold rows: down every row, and add what it finds."""

import math

import numpy as np
from numpy.typing import NDArray

from calibration._kernels._jit import njit
from calibration.typing import Float64Array


@njit
def add_leaves(
    X: Float64Array,
    asked: NDArray[np.bool_],
    feature: NDArray[np.int32],
    cut: Float64Array,
    missing_left: NDArray[np.bool_],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    leaf: NDArray[np.int32],
    first: NDArray[np.int32],
    below: NDArray[np.int32],
    share: Float64Array,
    sums: Float64Array,
    counts: Float64Array,
) -> None:
    """Add to `sums` (n, N) the leaf of every row that is asked, one to its `counts`.

    Node 0 is the root; `leaf` is -1 at inner nodes. Leaf l has the shares j of
    `first[l]` to `first[l + 1] - 1`, which lie below threshold `below[j]` and above
    those before.
    """
    for i in range(X.shape[0]):
        if not asked[i]:
            continue
        node = 0
        while leaf[node] < 0:
            value = X[i, feature[node]]
            goes_left = missing_left[node] if math.isnan(value) else value <= cut[node]
            node = left[node] if goes_left else right[node]
        place = leaf[node]
        for j in range(first[place], first[place + 1]):
            if below[j] < sums.shape[1]:
                sums[i, below[j]] += share[j]
        counts[i] += 1.0
