"""Nets of the centre that learn anew from all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import delayed

from calibration.typing import Float64Array
from localexpert.coordinate.small_nets import SmallNets
from localexpert.data.dense_inputs import DenseInputs
from localexpert.data.threads import thread_pool
from localexpert.large.all_rows import AllRows, HalfRows
from localexpert.progress import current_progress

# Inputs that nets of a half learn from, twice in memory, in single precision.
_MOST_NUMBERS = 30_000_000
# With so many rows shorter steps leave less noise, and so many are seen in all, in 4 to
# 8 passes.
_MANY_ROWS, _RATE, _ROWS_SEEN = 200_000, 0.005, 3_000_000


def teach_nets(
    inputs: DenseInputs,
    rows: AllRows,
    targets: list[Float64Array],
    weights: list[Float64Array],
    n_jobs: int | None,
    seed: int,
) -> list[SmallNets]:
    """Return nets of each half of the rows.

    What is left of a target that trees and nets have learned is too faint for nets to
    begin with: they learn the target itself.

    Parameters
    ----------
    inputs : DenseInputs
        What nets read.
    rows : AllRows
    targets, weights : list of ndarrays of shape (n,)
        Of each half.
    n_jobs : int or None
    seed : int

    Returns
    -------
    list of SmallNets
    """
    with current_progress().stage("nets"), thread_pool(n_jobs) as pool:
        calls = zip(rows.halves, targets, weights, strict=False)
        return list(
            pool(
                delayed(_teach)(inputs, half, y, w, seed + number)
                for number, (half, y, w) in enumerate(calls)
            )
        )


def _teach(
    inputs: DenseInputs, half: HalfRows, y: Float64Array, w: Float64Array, seed: int
) -> SmallNets:
    """Return the nets of one half, or of as many of its rows as fit into memory."""
    width = inputs.transform(half.scratch.read(0, 1)).shape[1]
    step = -(-len(y) * width // _MOST_NUMBERS)
    kept = (np.arange(len(y)) % step == 0) & (w > 0.0)
    X: NDArray[Any] = np.empty((int(kept.sum()), width), np.float32)
    filled = 0
    for start, stop, codes in half.scratch.batches():
        own = inputs.transform(codes[kept[start:stop]])
        X[filled : filled + len(own)] = own
        filled += len(own)
    nets = SmallNets(random_state=seed)
    if filled > _MANY_ROWS:
        passes = round(float(np.clip(_ROWS_SEEN / filled, 4.0, 8.0)))
        nets.set_params(n_passes=passes, rate=_RATE)
    return nets.fit(X, y[kept], w[kept])
