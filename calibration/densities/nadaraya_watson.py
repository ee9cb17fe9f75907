"""Boxcar densities and Bayes' rule: the event rate of the scores within a bandwidth."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration._kernels.evaluate import window_sums
from calibration._validation import check_choice, check_flag, check_number, refuse
from calibration.base.calibrators import MapCalibrator, Scale
from calibration.densities.kde import class_bandwidths
from calibration.maps import CalibrationMap
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

_LARGEST = float(np.finfo(np.float64).max)
# For limits from the left, at a knot and from the right: where `searchsorted` puts a
# score that is halfway between two others.
_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right", "right")


class NadarayaWatsonCalibrator(MapCalibrator):
    r"""Boxcar densities of the two classes and Bayes' rule, to the letter.

    This is the kernel calibrator of Naeini's thesis. With one bandwidth for both
    classes it is the event rate of all scores within the bandwidth. `KDECalibrator` is
    built on the same idea and is smoother. It has other kernels, works on log-odds,
    cross-validates the bandwidth, and never says 0 or 1.

    Parameters
    ----------
    bandwidth : "normal", float or pair of float
        "normal" is the rule for normal densities; see Notes. A number above 0 is the
        bandwidth itself, on the scale of the scores. Two numbers are those of class 0
        and of class 1.
    shared_bandwidth : bool
        Whether "normal" gives both classes the bandwidth of all rows, or each its own.
    smoothing : float
        Rows at the base rate that are added to every window. 0 gives plain event
        rates, which may be 0 or 1.
    scale : {"probability", "logit", "real"}
        What a score is. Distances are measured on it.

    Attributes
    ----------
    bandwidths_ : ndarray of shape (2,)
        The bandwidths :math:`h_0, h_1` that are used.
    map_ : CalibrationMap
        The steps. They lie where a window takes a score in, and where it loses it.

    Notes
    -----
    With :math:`K(u) = \frac12 I(|u| \le 1)`, class densities :math:`f_k(s) =
    \frac{1}{n_k h_k} \sum_{y_i = k} w_i K((s - s_i) / h_k)` and priors
    :math:`n_k / n`, Bayes' rule (eq. 3.1) is

    .. math:: P(y=1|s) = \frac{n_1 f_1(s)}{n_0 f_0(s) + n_1 f_1(s)}, \qquad
        h_k = 1.06\, \hat\sigma_k\, n_k^{-1/5},

    Here :math:`\hat\sigma_k^2` is the unbiased variance of the scores of the class.
    With a shared bandwidth it is that of all scores, and the rule is the estimator of
    Nadaraya and Watson. A class of one distinct score has the bandwidth of all rows
    over :math:`\sqrt{n_k + 1}`. If no score is within its bandwidth, the formula is
    0 / 0. Then the answer is that of the nearest score. If the classes are of equal
    size, this is eq. 3.2 of the thesis. As printed, that equation drops their prior
    odds.

    References
    ----------
    Pakdaman Naeini (2016), Obtaining accurate probabilities using classifier
    calibration, section 3.1. Silverman (1986), Density estimation for statistics and
    data analysis. Wasserman (2006), All of nonparametric statistics, section 5.4.

    Examples
    --------
    >>> from calibration import NadarayaWatsonCalibrator
    >>> scores, y = [0.1, 0.2, 0.3, 0.7, 0.9], [0, 1, 0, 1, 1]
    >>> window = NadarayaWatsonCalibrator(0.15).fit(scores, y)
    >>> window.predict([0.0, 0.2, 0.6, 0.8]).round(2)
    array([0.  , 0.33, 1.  , 1.  ])
    """

    bandwidths_: Float64Array

    def __init__(
        self,
        bandwidth: Literal["normal"] | float | tuple[float, float] = "normal",
        *,
        shared_bandwidth: bool = True,
        smoothing: float = 0.0,
        scale: Scale = "probability",
    ):
        self.bandwidth = bandwidth
        self.shared_bandwidth = shared_bandwidth
        self.smoothing = smoothing
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.bandwidth, str):
            check_choice(self.bandwidth, "bandwidth", ("normal",))
        else:
            self._given_bandwidths()
        check_flag(self.shared_bandwidth, "shared_bandwidth", "a bool")
        check_number(self.smoothing, "smoothing", 0.0)

    def _given_bandwidths(self) -> Float64Array:
        """Return the given bandwidths as two numbers."""
        given = self.bandwidth
        pair = given if isinstance(given, tuple | list) else (given, given)
        if len(pair) != 2:
            refuse("bandwidth", "be one number or two", f"{given!r}")
        return np.array(
            [check_number(h, "bandwidth", 0.0, _LARGEST, open_low=True) for h in pair]
        )

    def _fit(self, summary: ScoreSummary) -> None:
        if self.bandwidth == "normal":
            self.bandwidths_ = class_bandwidths(
                lambda weight: _normal_rule(summary.scores, weight),
                summary,
                self.shared_bandwidth,
            )
        else:
            self.bandwidths_ = self._given_bandwidths()
        scores, h = summary.scores, self.bandwidths_
        # Masses are rows per bandwidth. If both classes share one bandwidth, the unit
        # is a row.
        units = np.ones(2) if h[0] == h[1] else np.sqrt(h[::-1]) / np.sqrt(h)
        masses = units[0] * summary.weight0, units[1] * summary.weight1
        windows = [_Windows.around(scores, *one) for one in zip(masses, h, strict=True)]
        # If no window joins two scores, the nearest score changes halfway between them.
        middles = scores[:-1] + 0.5 * np.diff(scores)
        alone = ~np.any([one.hold(middles) for one in windows], axis=0)
        edges = [edge for one in windows for edge in (one.opens, one.closes)]
        knots = np.unique(np.concatenate([*edges, middles[alone]]))
        zeros, ones = (one.sums(knots) for one in windows)
        for row, late in enumerate(_SIDES):
            empty = zeros[row] + ones[row] == 0.0
            nearest = np.searchsorted(middles, knots[empty], late)
            zeros[row, empty], ones[row, empty] = (mass[nearest] for mass in masses)
        events = ones + self.smoothing * summary.base_rate
        left, at, right = np.clip(events / (zeros + ones + self.smoothing), 0.0, 1.0)
        self.map_ = CalibrationMap(knots, left, at, right, "step")


class _Windows(NamedTuple):
    """Where each score of a class is within the bandwidth, and the score's weight."""

    opens: Float64Array
    closes: Float64Array
    mass: Float64Array

    @classmethod
    def around(cls, scores: Float64Array, mass: Float64Array, h: float) -> _Windows:
        """Return the windows of the scores that have mass."""
        held = mass > 0.0
        with np.errstate(over="ignore"):
            opens = np.maximum(scores[held] - h, -_LARGEST)
            closes = np.minimum(scores[held] + h, _LARGEST)
        return cls(opens, closes, mass[held])

    def hold(self, places: Float64Array) -> NDArray[np.bool_]:
        """Return which places lie in any window. A window includes its ends."""
        ended = np.searchsorted(self.closes, places, "left")
        return np.searchsorted(self.opens, places, "right") > ended

    def sums(self, knots: Float64Array) -> Float64Array:
        """Return the mass left of, at and right of knots. All ends must be knots."""
        begun, ended = _count(self.opens, knots), _count(self.closes, knots)
        # A window holds both its ends.
        spans = (ended[0], begun[0]), (ended[0], begun[1]), (ended[1], begun[1])
        return np.stack([window_sums(self.mass, a, b - a) for a, b in spans])


def _count(
    ends: Float64Array, knots: Float64Array
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return how many ends lie below each knot, and up to it. All ends are knots."""
    here = np.bincount(np.searchsorted(knots, ends), minlength=len(knots))
    upto = np.cumsum(here)
    return upto - here, upto


def _normal_rule(scores: Float64Array, weight: Float64Array) -> float:
    """Return 1.06 sd n^(-1/5) with the unbiased sd, or 0 for one distinct score."""
    scores, weight = scores[weight > 0.0], weight[weight > 0.0]
    if len(scores) == 1:
        return 0.0
    # Use units of the largest score, because its square may overflow.
    unit = float(np.abs(scores).max())
    x, n = scores / unit, weight.sum()
    squares = float(weight @ (x - weight @ x / n) ** 2)
    # Weights below two rows in all have no unbiased variance. They count as two rows.
    sd = np.sqrt(squares / n * max(n, 2.0) / (max(n, 2.0) - 1.0))
    # A product of Python's floats overflows without a warning.
    return min(float(1.06 * sd * n**-0.2) * unit, _LARGEST)
