"""Nadaraya and Watson's estimator: the event rate of the scores within a bandwidth."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibration._validation import check_choice, check_number
from calibration.base.calibrators import MapCalibrator, Scale
from calibration.maps import CalibrationMap
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

_LARGEST = float(np.finfo(np.float64).max)


class NadarayaWatsonCalibrator(MapCalibrator):
    r"""Boxcar kernel regression: the event rate of all scores within a bandwidth.

    The kernel calibrator of Naeini's thesis to the letter. `KDECalibrator` is built on
    the same idea and smoother: other kernels, reflection at the ends of the unit
    interval, a bandwidth that is cross-validated, and never 0 or 1.

    Parameters
    ----------
    bandwidth : "normal" or float
        "normal" is the rule for normal densities, see Notes; a number is the
        bandwidth itself, on the scale of the scores, above 0.
    smoothing : float
        Rows at the base rate that are added to every window. 0 gives plain event
        rates, which may be 0 or 1.
    scale : {"probability", "logit", "real"}
        What a score is. Distances are measured on it.

    Attributes
    ----------
    bandwidth_ : float
        The bandwidth h in use.
    map_ : CalibrationMap
        The steps, two a distinct score: where a window takes it in and lets it go.

    Notes
    -----
    With :math:`K(u) = \frac12 I(|u| \le 1)` and one bandwidth for both classes,

    .. math:: P(y=1|s) = \frac{\sum_i w_i K((s - s_i) / h)\, y_i}
        {\sum_i w_i K((s - s_i) / h)}, \qquad h = 1.06\, \hat\sigma\, n^{-1/5},

    :math:`\hat\sigma^2` being the unbiased variance of all scores. Where no score is
    within h, which leaves the formula 0 / 0, the answer is that of the score nearest.
    That is the estimator which the thesis says it uses, and its eq. 3.2 where the
    classes are of one size: as printed, that equation drops their prior odds.

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

    bandwidth_: float

    def __init__(
        self,
        bandwidth: Literal["normal"] | float = "normal",
        *,
        smoothing: float = 0.0,
        scale: Scale = "probability",
    ):
        self.bandwidth = bandwidth
        self.smoothing = smoothing
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.bandwidth, str):
            check_choice(self.bandwidth, "bandwidth", ("normal",))
        else:
            check_number(self.bandwidth, "bandwidth", 0.0, _LARGEST, open_low=True)
        check_number(self.smoothing, "smoothing", 0.0)

    def _fit(self, summary: ScoreSummary) -> None:
        rule = isinstance(self.bandwidth, str)
        self.bandwidth_ = _normal_rule(summary) if rule else float(self.bandwidth)
        scores, h = summary.scores, self.bandwidth_
        with np.errstate(over="ignore"):
            opens = np.maximum(scores - h, -_LARGEST)
            closes = np.minimum(scores + h, _LARGEST)
        # Halfway between two scores that no window joins, the nearest one changes.
        middles = scores[:-1] + 0.5 * np.diff(scores)
        gap = middles[closes[:-1] < opens[1:]]
        knots = np.unique(np.concatenate([opens, closes, gap]))
        # A score is in the windows from `opens` to `closes`, both included.
        before, upto = (np.searchsorted(closes, knots, s) for s in ("left", "right"))
        until, beyond = (np.searchsorted(opens, knots, s) for s in ("left", "right"))
        turned = np.append(np.append(-_LARGEST, middles), _LARGEST)
        left, at, right = (
            self._rates(summary, first, last, late)
            for first, last, late in (
                (before, until, knots > turned[until]),
                (before, beyond, knots >= turned[beyond]),
                (upto, beyond, knots >= turned[beyond]),
            )
        )
        self.map_ = CalibrationMap(knots, left, at, right, "step")

    def _rates(
        self,
        summary: ScoreSummary,
        first: NDArray[np.intp],
        beyond: NDArray[np.intp],
        late: NDArray[np.bool_],
    ) -> Float64Array:
        """Event rates of cells first to beyond - 1, or of the nearest if none is.

        Nearest to a place between cells beyond - 1 and beyond is the second if `late`.
        """
        alone = np.clip(np.where(late, beyond, beyond - 1), 0, summary.n_cells - 1)
        empty = first >= beyond
        first = np.where(empty, alone, first)
        beyond = np.where(empty, alone + 1, beyond)
        length = beyond - first
        ones, rows = (
            _window_sums(weight, first, length)
            for weight in (summary.weight1, summary.weight)
        )
        events = ones + self.smoothing * summary.base_rate
        return np.asarray(np.clip(events / (rows + self.smoothing), 0.0, 1.0))


def _window_sums(
    values: Float64Array, first: NDArray[np.intp], length: NDArray[np.intp]
) -> Float64Array:
    """Return the sums of so many values from `first` on.

    Of runs of 1, 2, 4, ... values, as the bits of a length say: in differences of
    running sums light rows would be lost beside heavy ones.
    """
    total, place, width = np.zeros(len(first)), first.copy(), 1
    runs = values
    while True:
        asked = np.flatnonzero(length & width)
        total[asked] += runs[place[asked]]
        place[asked] += width
        if len(runs) <= width:
            return total
        runs = runs[:-width] + runs[width:]
        width *= 2


def _normal_rule(summary: ScoreSummary) -> float:
    """Return 1.06 sd n^(-1/5), sd^2 the unbiased variance of the scores."""
    # In units of the largest score, whose square may overflow.
    unit = float(np.abs(summary.scores).max())
    x, weight = summary.scores / unit, summary.weight
    n = summary.n
    squares = float(weight @ (x - weight @ x / n) ** 2)
    # Weights below two rows in all, which have no unbiased variance, count as two.
    sd = np.sqrt(squares / n * max(n, 2.0) / (max(n, 2.0) - 1.0))
    return float(1.06 * unit * sd * n**-0.2)
