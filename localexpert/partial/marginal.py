"""The distribution of all targets together, if some are right-censored."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation import check_weights, refuse, show
from calibration.typing import Float64Array
from localexpert.partial.outcomes import read_ends


def kaplan_meier(
    y: Any, sample_weight: ArrayLike | None = None
) -> tuple[Float64Array, Float64Array]:
    r"""Return Kaplan and Meier's estimate of the survival function.

    Parameters
    ----------
    y : array-like of shape (n, 2) or structured array of shape (n,)
        Targets as `fit` takes them, known or right-censored; `censored` makes them from
        times and events.
    sample_weight : array-like of shape (n,), optional
        Numbers of repetitions.

    Returns
    -------
    values : ndarray of shape (m,)
        All values at which a target is known or censored, increasing.
    survival : ndarray of shape (m,)
        Estimates of P(Y > value).

    Notes
    -----
    With :math:`d_v` known targets at v and :math:`n_v` rows whose target or limit is at
    least v,

    .. math:: S(t) = \prod_{v \le t} (1 - d_v / n_v).

    A row that is censored at a value counts among those at risk there, as is usual. The
    estimate does not reach 0 if the greatest value is censored: nothing is known beyond
    it. Censoring must not depend on the target.

    References
    ----------
    Kaplan & Meier (1958), Nonparametric estimation from incomplete observations.

    Examples
    --------
    >>> from localexpert import censored, kaplan_meier
    >>> kaplan_meier(censored([1, 2, 3, 4], event=[1, 0, 1, 1]))
    (array([1., 2., 3., 4.]), array([0.75 , 0.75 , 0.375, 0.   ]))
    """
    time, event = read_right(y)
    return product_limit(time, event, check_weights(sample_weight, len(time)))


def read_right(y: Any, name: str = "y") -> tuple[Float64Array, NDArray[np.bool_]]:
    """Return times (n,) and which of them are known; refuse targets cut elsewhere.

    Parameters
    ----------
    y : array-like of shape (n, 2) or structured array of shape (n,)
    name : str
        Name of the parameter in errors.

    Returns
    -------
    time, event : ndarrays of shape (n,)
    """
    lower, upper = read_ends(y, name)
    event = lower == upper
    wrong = ~event & ((upper < np.inf) | (lower == -np.inf))
    if wrong.any():
        i = int(np.argmax(wrong))
        got = f"({show(lower[i])}, {show(upper[i])}) at position {i}"
        refuse(name, "be known or right-censored, (c, inf), in every row", got)
    return lower, event


def product_limit(
    time: Float64Array, hit: NDArray[np.bool_], weight: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return the different times (m,) and the share that is not hit until then.

    Parameters
    ----------
    time : ndarray of shape (n,)
    hit : ndarray of shape (n,)
        Whether what is waited for comes at this time. Else it comes later.
    weight : ndarray of shape (n,)

    Returns
    -------
    times, share : ndarrays of shape (m,)
    """
    times, place = np.unique(time, return_inverse=True)
    hits, others = (np.bincount(place, weight * part) for part in (hit, ~hit))
    # Those who go on after a time; if there are none, exactly 0 are left.
    later = np.append(np.cumsum((hits + others)[:0:-1])[::-1], 0.0) + others
    at_risk = later + hits
    left = np.divide(later, at_risk, out=np.ones(len(times)), where=at_risk > 0.0)
    return times, np.cumprod(left)
