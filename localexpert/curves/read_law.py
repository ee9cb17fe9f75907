"""`law_of_curves`: from curves against a marginal to a law."""

from __future__ import annotations

import numpy as np

from calibration._kernels._jit import for_kernels
from calibration.typing import Float64Array
from localexpert._kernels.level_map import unmap_scores
from localexpert.curves.base_cdf import BaseCDF
from localexpert.curves.ordered_spline import Curves
from localexpert.law.basis import REACH, STANDARD
from localexpert.law.curve import read_curve
from localexpert.law.law import Law


def law_of_curves(
    center: Float64Array,
    scale: Float64Array,
    curves: Curves,
    base: BaseCDF,
    *,
    ordered: bool = False,
) -> Law:
    """Return the laws with F_i(y) = Phi(g_i(t(r))), r = (y - center_i) / scale_i.

    t is the probit of the base CDF and g_i a cubic Hermite curve that increases,
    straight beyond its end knots. Where g_i(t) = t the row is the base itself.

    Parameters
    ----------
    center, scale : ndarrays of shape (n,)
    curves : Curves
    base : BaseCDF
    ordered : bool
        Whether rows whose curves are in order keep it: see `read_curve`.

    Returns
    -------
    Law
        Without bounds.
    """
    z = np.tile(STANDARD.greville, (len(center), 1))
    t = unmap_scores(*(for_kernels(part) for part in (*curves, z)))
    y = center[:, None] + scale[:, None] * base.inverse(t)
    free = np.full(len(center), np.inf)
    ends = None
    if ordered:
        # One for all rows: lines of different slopes cross.
        ends = scale[:, None] / base.derivative(base.inverse([-REACH, REACH]))
    y = np.maximum.accumulate(y, axis=1)
    curve = read_curve(y, -free, free, plain=ordered, slopes=ends)
    return Law.smooth(curve, ordered=ordered)
