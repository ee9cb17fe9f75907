"""The lasso by coordinate descent on sums of squares and products."""

import numpy as np

from calibration._kernels._jit import njit
from calibration.typing import Float64Array

# Sweeps of one penalty, and the last step in units of the greatest coefficient.
_MOST_SWEEPS, _LITTLE = 2000, 1e-6


@njit
def lasso_path(
    gram: Float64Array, along: Float64Array, penalties: Float64Array, most: float
) -> Float64Array:
    """Return the b that minimise b'Gb / 2 - b'c + l |b|_1, shape (n_penalties, p).

    G is `gram`, c is `along`. Penalties fall, and each begins where the one before it
    ended (Friedman, Hastie & Tibshirani 2010). Sweeps go over the numbers that are not
    0 until these are still, and then over all. Columns without variance get 0. The path
    ends, and the rest is 0, after a b with more than `most` numbers that are not 0, and
    where sweeps do not settle.
    """
    n_penalties, p = len(penalties), len(along)
    # Loops in place of `zeros` and `copy`: each of these is one more to compile.
    b, rest, paths = np.empty(p), np.empty(p), np.empty((n_penalties, p))
    for j in range(p):
        b[j], rest[j] = 0.0, along[j]
        for k in range(n_penalties):
            paths[k, j] = 0.0
    for k in range(n_penalties):
        is_whole, still = True, False
        for _ in range(_MOST_SWEEPS):
            moved, greatest = 0.0, 0.0
            for j in range(p):
                if gram[j, j] <= 0.0 or not (is_whole or b[j] != 0.0):
                    continue
                goal, new = rest[j] + gram[j, j] * b[j], 0.0
                if goal > penalties[k]:
                    new = (goal - penalties[k]) / gram[j, j]
                elif goal < -penalties[k]:
                    new = (goal + penalties[k]) / gram[j, j]
                step = new - b[j]
                if step != 0.0:
                    b[j] = new
                    for i in range(p):
                        rest[i] -= step * gram[j, i]
                moved = max(moved, abs(step))
                greatest = max(greatest, abs(new))
            calm = moved <= _LITTLE * greatest
            still = calm and is_whole
            if still:
                break
            is_whole = calm
        if not still:
            break
        held = 0
        for j in range(p):
            paths[k, j] = b[j]
            held += b[j] != 0.0
        if held > most:
            break
    return paths
