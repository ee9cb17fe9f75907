"""`KDECalibrator`: kernel densities of the two classes and Bayes' rule."""

from __future__ import annotations

from typing import Literal

import numpy as np

from calibration._validation import check_choice, check_flag, check_number
from calibration.base.calibrators import Scale
from calibration.densities.bandwidths import LeaveOneOut
from calibration.densities.class_densities import DensityCalibrator
from calibration.densities.kernel_density import (
    KERNELS,
    KernelDensity,
    KernelName,
    silverman_bandwidth,
)
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

# Bandwidths that cross-validation compares, in units of Silverman's.
_CV_FACTORS = 2.0 ** np.arange(-4.0, 2.5, 0.5)
# Cross-validation looks at this many cells at most.
_CV_CELLS = 8192
# Bandwidths below this share of the range of scores are lost in their rounding.
_LEAST_SHARE = 2.0**-40
# Products of two such are numbers.
_LARGEST = 1e150


class KDECalibrator(DensityCalibrator):
    r"""Kernel density estimates of the class densities and Bayes' rule.

    Parameters
    ----------
    bandwidth : "cv", "silverman" or float
        "silverman" is the rule of thumb; "cv" the multiple of it, from 1/16 to 4,
        with the best leave-one-out log loss of the calibrated probabilities; a number
        is the bandwidth itself, in log-odds or real scores.
    kernel : {"gaussian", "boxcar", "epanechnikov", "tricube"}
        The last three are 0 beyond one bandwidth.
    shared_bandwidth : bool
        Whether the classes have one bandwidth (the Nadaraya-Watson estimator of the
        event rate) or each its own.
    prior_weight : float
        Rows of the base rate added at every score, see Notes; above 0.
    scale : {"probability", "logit", "real"}
        What a score is. Densities are those of the log-odds, which have no ends, or of
        real scores.

    Attributes
    ----------
    bandwidths_ : ndarray of shape (2,)
        Bandwidth of class 0 and of class 1.
    prior_log_odds_ : float
        Log of the ratio of the class priors, c n_1 / n_0 in Notes.
    x_range_ : tuple of 2 floats
        Range of the scores in training as log-odds; beyond it predictions hold.
    cv_bandwidths_ : ndarray of shape (n_candidates, 2)
        Bandwidths compared; with "cv" only.
    cv_losses_ : ndarray of shape (n_candidates,)
        Their leave-one-out log losses; with "cv" only.

    Notes
    -----
    Bayes' rule (eq. 3.1 of the thesis; its eq. 3.2 drops the balance of the class
    priors, and what it uses is `NadarayaWatsonCalibrator`) with
    :math:`f_k(x) = \frac{1}{n_k h_k} \sum_{y_i = k} w_i
    K\left(\frac{x - x_i}{h_k}\right)` and one term more,

    .. math:: \frac{P(y=1|x)}{P(y=0|x)} = c\, \frac{n_1 f_1(x) + r_1 g}
        {n_0 f_0(x) + r_0 g}, \qquad g = a \frac{K(0)}{\sqrt{h_0 h_1}}, \quad
        r_k = \frac{n_k + 1}{n + 2}:

    `prior_weight` = a rows of the base rate lie at whatever score is asked for, so
    that a gap between the scores gets the base rate and nothing is ever certain.
    c (near 1, unless the classes hardly overlap) keeps the mean prediction at the
    base rate.

    Silverman's bandwidth is :math:`1.06 \min(\hat\sigma, IQR/1.349) n^{-1/5}`, for
    other kernels than the normal one times the ratio of their canonical bandwidths,
    which smooths alike. For one bandwidth it is that of all rows. A class that holds
    one distinct score has that of all rows over :math:`\sqrt{n_k + 1}`.

    "cv" leaves out each row in turn (of a weight below 1, all of it): from the
    sums, from n and from :math:`n_k`, with c = 1. Separate bandwidths are tried in
    all pairs. Beyond 8192 distinct scores, neighbours are merged for it.

    Rows are binned on a grid of 16 steps per bandwidth (linear binning): the cost
    grows with the summary only by the binning itself.

    References
    ----------
    Pakdaman Naeini (2016), Obtaining accurate probabilities using classifier
    calibration, section 3.1. Silverman (1986), Density estimation for statistics and
    data analysis. Marron & Nolan (1988), Canonical kernels for density estimation.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration.densities.kde import KDECalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=20_000)
    >>> truth = 0.5 + 0.4 * np.sin(9.0 * scores)
    >>> kde = KDECalibrator().fit(scores, rng.uniform(size=20_000) < truth)
    >>> bool(np.sqrt(np.mean((kde.predict(scores) - truth) ** 2)) < 0.025)
    True
    """

    bandwidths_: Float64Array
    cv_bandwidths_: Float64Array
    cv_losses_: Float64Array

    def __init__(
        self,
        bandwidth: Literal["cv", "silverman"] | float = "cv",
        kernel: KernelName = "gaussian",
        *,
        shared_bandwidth: bool = True,
        prior_weight: float = 0.5,
        scale: Scale = "probability",
    ):
        self.bandwidth = bandwidth
        self.kernel = kernel
        self.shared_bandwidth = shared_bandwidth
        self.prior_weight = prior_weight
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.kernel, "kernel", KERNELS)
        if isinstance(self.bandwidth, str):
            check_choice(self.bandwidth, "bandwidth", ("cv", "silverman"))
        else:
            check_number(self.bandwidth, "bandwidth", 0.0, _LARGEST, open_low=True)
        check_flag(self.shared_bandwidth, "shared_bandwidth", "a bool")
        check_number(self.prior_weight, "prior_weight", 0.0, _LARGEST, open_low=True)

    def _fit_densities(self, summary: ScoreSummary, x: Float64Array) -> None:
        # Places are in units of the range, so that no unit is too small or too large.
        self._unit = self.x_range_[1] - self.x_range_[0]
        place = self._place(x)
        self._totals = np.array([summary.n0, summary.n1])
        bandwidths = self._rule_of_thumb(summary, place)
        if self.bandwidth == "cv":
            bandwidths = self._cross_validate(summary, bandwidths)
        elif not isinstance(self.bandwidth, str):
            bandwidths = np.full(2, self.bandwidth / self._unit)
            if bandwidths[0] < _LEAST_SHARE:
                msg = (
                    "`bandwidth` must be at least 2**-40 of the range of scores, "
                    f"got {self.bandwidth!r} with a range of {self._unit:g}."
                )
                raise ValueError(msg)
        self._kernel_densities = [
            self._density(place, summary.weight0, bandwidths[0]),
            self._density(place, summary.weight1, bandwidths[1]),
        ]
        self.bandwidths_ = bandwidths * self._unit

    def _log_ratio(self, x: Float64Array) -> Float64Array:
        place = self._place(x)
        rates = (self._totals + 1.0) / (self._totals.sum() + 2.0)
        h0, h1 = (density.bandwidth for density in self._kernel_densities)
        extra = self.prior_weight * rates / np.sqrt(h0 * h1)
        log0, log1 = (
            np.log((density.sums(place) / density.bandwidth + row) / total)
            for density, row, total in zip(
                self._kernel_densities, extra, self._totals, strict=True
            )
        )
        return np.asarray(log1 - log0)

    def _densities(self, x: Float64Array) -> Float64Array:
        place = self._place(x)
        columns = [density.density(place) for density in self._kernel_densities]
        return np.column_stack(columns) / self._unit

    def _place(self, x: Float64Array) -> Float64Array:
        """Return x in units of its range."""
        return (x - self.x_range_[0]) / self._unit

    def _density(
        self, place: Float64Array, weight: Float64Array, bandwidth: float
    ) -> KernelDensity:
        return KernelDensity.from_rows(place, weight, self.kernel, bandwidth)

    def _rule_of_thumb(
        self, summary: ScoreSummary, place: Float64Array
    ) -> Float64Array:
        """Return Silverman's bandwidths of the classes, shape (2,)."""
        pooled = silverman_bandwidth(place, summary.weight, self.kernel)
        if self.shared_bandwidth:
            return np.full(2, pooled)
        weights = (summary.weight0, summary.weight1)
        widths = [silverman_bandwidth(place, weight, self.kernel) for weight in weights]
        return np.where(widths, widths, pooled / np.sqrt(self._totals + 1))

    def _cross_validate(
        self, summary: ScoreSummary, bandwidths: Float64Array
    ) -> Float64Array:
        """Return the multiples of `bandwidths` with the least loss, shape (2,)."""
        # The loss compares bandwidths; groups far narrower than those do not move it.
        cells = summary.condense(_CV_CELLS)
        place = self._place(np.maximum.accumulate(self.scale_(cells.scores)))
        weights = np.stack([cells.weight0, cells.weight1])
        judge = LeaveOneOut(place, weights, self.prior_weight)
        tried = bandwidths * _CV_FACTORS[:, None]
        heights = [
            [judge.heights(self._density(place, weights[k], h), k) for h in tried[:, k]]
            for k in (0, 1)
        ]
        pairs = np.array(
            [
                (i, j)
                for i, j in np.ndindex(len(tried), len(tried))
                if i == j or not self.shared_bandwidth
            ]
        )
        compared = np.take_along_axis(tried, pairs, axis=0)
        self.cv_bandwidths_ = self._unit * compared
        self.cv_losses_ = np.array(
            [judge.loss(heights[0][i], heights[1][j]) for i, j in pairs]
        )
        return np.asarray(compared[np.argmin(self.cv_losses_)])
