"""Maps of normal scores: cubic Hermite curves, straight beyond their end knots."""

import numpy as np

from calibration._kernels._jit import njit
from calibration.typing import Float64Array
from localexpert._kernels.hermite import curve_at, curve_inverse
from localexpert._kernels.normal import safe_log


def map_scores(
    knots: Float64Array, values: Float64Array, slopes: Float64Array, z: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return h(z) and log h'(z), z (n, k); curves are (1, m) or (n, m)."""
    # Arrays are made here: each kernel that makes one compiles that, too.
    out = np.empty((2, *z.shape))
    _fill_maps(knots, values, slopes, z, False, out)
    return out[0], out[1]


def unmap_scores(
    knots: Float64Array, values: Float64Array, slopes: Float64Array, z: Float64Array
) -> Float64Array:
    """Return the s with h(s) = z."""
    out = np.empty((2, *z.shape))
    _fill_maps(knots, values, slopes, z, True, out)
    return np.asarray(out[0])


@njit
def _fill_maps(
    knots: Float64Array,
    values: Float64Array,
    slopes: Float64Array,
    z: Float64Array,
    inverse: bool,
    out: Float64Array,
) -> None:
    for i in range(z.shape[0]):
        row = i if len(values) > 1 else 0
        for j in range(z.shape[1]):
            if inverse:
                out[0, i, j] = curve_inverse(knots, values[row], slopes[row], z[i, j])
            else:
                value, slope = curve_at(knots, values[row], slopes[row], z[i, j])
                out[0, i, j], out[1, i, j] = value, safe_log(slope)
