"""One tree whose leaves hold distributions: down every row, and add what it finds."""

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
    reached: NDArray[np.float32],
    sums: Float64Array,
    counts: Float64Array,
) -> None:
    """Add to `sums` (n, N) the leaf of every row that is asked, one to its `counts`.

    Node 0 is the root; `leaf` is -1 at inner nodes. The CDF of leaf l steps up to
    `reached[j]` at threshold `below[j]`, j from `first[l]` to `first[l + 1] - 1`.
    """
    n_thresholds = sums.shape[1]
    for i in range(X.shape[0]):
        if not asked[i]:
            continue
        node = 0
        while leaf[node] < 0:
            value = X[i, feature[node]]
            goes_left = missing_left[node] if math.isnan(value) else value <= cut[node]
            node = left[node] if goes_left else right[node]
        place = leaf[node]
        # A leaf answers for all thresholds at once, and increases along them: so do
        # sums.
        stop = first[place + 1]
        for j in range(first[place], stop):
            end = min(below[j + 1], n_thresholds) if j + 1 < stop else n_thresholds
            for k in range(below[j], end):
                sums[i, k] += reached[j]
        counts[i] += 1.0
