"""The purest of a few random cuts of one binned feature, for a vector of targets.

Rows come as moments (m, 2 + q): weight, one, and the q weighted targets, so that the
sum over some rows is their weight, their number, and the sum of their targets. Their
numbers are fixed and they are written out, which saves a quarter of the time.
"""

import numpy as np
from numpy.typing import NDArray

from calibration._kernels._jit import fused, inner
from calibration._kernels.hashing import mix64, next_key
from calibration.typing import Float64Array, Int64Array

# The code of a missing value; those of numbers are less, and ordered as they are.
MISSING = 255
# Cuts that are drawn of a feature, targets of a row, and sums of its moments.
N_CUTS = 8
N_TARGETS = 4
N_SUMS = 2 + N_TARGETS
# Runs of codes between the cuts, and the missing values.
N_BUCKETS = N_CUTS + 2
_S33, _B31 = np.uint64(33), 31


@fused
def draw_below(bound: int, key: np.uint64) -> int:
    """Draw one of 0, ..., bound - 1, for bounds far below 2^31."""
    # 31 random bits times a bound below 2^31 fit into 64: no division, and a bias of
    # bound / 2^31 at most.
    return (int(mix64(key) >> _S33) * bound) >> _B31


@fused
def read_codes(
    codes: NDArray[np.uint8], rows: NDArray[np.uint32], found: NDArray[np.uint8]
) -> tuple[int, int, bool]:
    """Copy the codes of some rows to `found`; return the ends, and if one is missing.

    The ends are the least and the greatest code of a number, (MISSING, -1) if none.
    """
    least, greatest, missing = MISSING, -1, False
    for i in range(len(rows)):
        code = codes[rows[i]]
        found[i] = code
        if code == MISSING:
            missing = True
        else:
            least = min(least, int(code))
            greatest = max(greatest, int(code))
    return least, greatest, missing


@fused
def draw_cuts(least: int, greatest: int, cuts: Int64Array, key: np.uint64) -> np.uint64:
    """Draw a cut from each eighth of the codes; return the key of the last draw.

    Codes up to a cut go left. All cuts where there are no more than eight; those left
    over lie at the end, where all numbers go left.
    """
    span = greatest - least
    if span <= N_CUTS:
        for t in range(N_CUTS):
            cuts[t] = least + t if t < span else MISSING - 1
        return key
    for t in range(N_CUTS):
        key = next_key(key)
        first, stop = t * span // N_CUTS, (t + 1) * span // N_CUTS
        # One in each eighth (stratified): eight cuts drawn anywhere would often lie
        # together.
        cuts[t] = least + first + draw_below(stop - first, key)
    return key


@fused
def fill_buckets(
    found: NDArray[np.uint8],
    moments: Float64Array,
    cuts: Int64Array,
    buckets: Float64Array,
) -> None:
    """Sum the moments of rows between cuts, and of missing values in the last bucket.

    `found` (m,) holds the codes of the first rows of `moments`; `buckets` (10, 6).
    """
    for bucket in range(N_BUCKETS):
        for k in range(N_SUMS):
            buckets[bucket, k] = 0.0
    cut0, cut1, cut2, cut3 = cuts[0], cuts[1], cuts[2], cuts[3]
    cut4, cut5, cut6, cut7 = cuts[4], cuts[5], cuts[6], cuts[7]
    for i in range(len(found)):
        code = int(found[i])
        # Comparisons that are added up have no branch to be predicted wrong.
        bucket = int(code > cut0) + int(code > cut1) + int(code > cut2)
        bucket += int(code > cut3) + int(code > cut4) + int(code > cut5)
        bucket += int(code > cut6) + int(code > cut7) + int(code == MISSING)
        for k in range(N_SUMS):
            buckets[bucket, k] += moments[i, k]


@inner
def best_cut(
    buckets: Float64Array, total: Float64Array, min_leaf: int, share: float
) -> tuple[float, int, bool]:
    """Find the cut with the purest sides.

    Parameters
    ----------
    buckets : ndarray of shape (10, 6)
    total : ndarray of shape (6,)
        Their sum.
    min_leaf : int
        Least number of rows on a side, at least 1.
    share : float
        1.0 if missing values go left, else 0.0.

    Returns
    -------
    purity : float
        sum_k (left sum)_k^2 / left weight + the same to the right: the greater, the
        less the sum of squared errors on both sides. -inf where no cut is allowed.
    cut : int
        Its number; N_CUTS where numbers go left and missing values right. Cuts with
        no rows since the one before are the same split, and passed over.
    most_left : bool
        Whether more rows go left than right.
    """
    best, best_t, most_left = -np.inf, -1, False
    # Missing values are counted in from the start, or never.
    gaps = buckets[N_CUTS + 1]
    w, n, s0 = share * gaps[0], share * gaps[1], share * gaps[2]
    s1, s2, s3 = share * gaps[3], share * gaps[4], share * gaps[5]
    for t in range(N_CUTS + 1):
        # The same split as the one before.
        if buckets[t, 1] == 0.0:
            continue
        w += buckets[t, 0]
        n += buckets[t, 1]
        s0 += buckets[t, 2]
        s1 += buckets[t, 3]
        s2 += buckets[t, 4]
        s3 += buckets[t, 5]
        if n < min_leaf or total[1] - n < min_leaf:
            continue
        # The least squared error of a side is its sum of squares less sum_k (sum)_k^2 /
        # weight; the sums of squares of both sides together do not depend on the cut.
        r0, r1, r2, r3 = total[2] - s0, total[3] - s1, total[4] - s2, total[5] - s3
        purity = (s0 * s0 + s1 * s1 + s2 * s2 + s3 * s3) / w
        purity += (r0 * r0 + r1 * r1 + r2 * r2 + r3 * r3) / (total[0] - w)
        if purity > best:
            best, best_t, most_left = purity, t, 2.0 * n > total[1]
    return best, best_t, most_left
