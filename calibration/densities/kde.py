"""Class densities and Bayes' rule: kernel densities, and the loss of a bandwidth."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from calibration._kernels.evaluate import bin_rows, kernel_sums
from calibration._validation import check_choice, check_flag, check_number, refuse
from calibration.base.calibrators import Scale
from calibration.base.log_odds import LogOddsCalibrator
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

# This many cells are enough to balance densities against each other.
_BALANCE_CELLS = 8192


class DensityCalibrator(LogOddsCalibrator):
    """Base of calibrators that are a ratio of class densities times the prior odds.

    With these prior odds, the mean prediction over the rows is their share of class 1.
    With exact densities the odds are n1 / n0. A density that is smoothed, or a little
    wrong, would move the mean. Beyond the range of the training scores, densities are
    tails that nothing supports. There the log-odds keep their value at the end of the
    range.

    A subclass writes `_fit_densities` and `_log_ratio`.
    """

    prior_log_odds_: float
    x_range_: tuple[float, float]

    def _fit_formula(self, summary: ScoreSummary, x: Float64Array) -> None:
        # Rounding of the logit can exchange neighbours that differ by a last digit.
        x = np.maximum.accumulate(x)
        self.x_range_ = float(x[0]), float(x[-1])
        self.prior_log_odds_ = float(np.log((summary.n1 + 1.0) / (summary.n0 + 1.0)))
        if x[0] == x[-1]:
            # Different scores may share one x, because they are clipped before the
            # logit.
            self.constant_ = self.prior_log_odds_
            return
        self._fit_densities(summary, x)
        # The function is smooth, so groups of neighbours give its mean to many digits.
        cells = summary.condense(_BALANCE_CELLS)
        ratio = self._log_ratio(self.scale_(cells.scores))
        self.prior_log_odds_ = _balance(ratio, cells.weight, summary.base_rate)

    def _log_odds(self, x: Float64Array) -> Float64Array:
        return self.prior_log_odds_ + self._log_ratio(np.clip(x, *self.x_range_))

    @abstractmethod
    def _fit_densities(self, summary: ScoreSummary, x: Float64Array) -> None:
        """Learn from a summary whose cells lie at `x`. There are two values or more."""

    @abstractmethod
    def _log_ratio(self, x: Float64Array) -> Float64Array:
        """Return the log of the density in class 1 over that in class 0 at `x`."""


def _balance(ratio: Float64Array, weight: Float64Array, rate: float) -> float:
    """Return the prior log-odds with which the mean prediction is `rate`."""
    target, total = float(logit(rate)), weight.sum()

    def excess(prior: float) -> float:
        return float(weight @ expit(ratio + prior) / total - rate)

    # With the first prior all predictions are at most the rate, with the second at
    # least.
    low, high = target - ratio.max(), target - ratio.min()
    if not excess(low) < 0.0 < excess(high):
        return float(low if excess(low) >= 0.0 else high)
    # The mean prediction increases with the prior, so there is one root.
    return float(brentq(excess, low, high, xtol=1e-13, rtol=1e-15))


def robust_spread(x: Float64Array, weight: Float64Array) -> float:
    """Return min(sd, IQR / 1.349), or the sd if the middle half of rows is tied.

    Parameters
    ----------
    x, weight : ndarrays of shape (n,)
        Sorted places, and how many rows each of them has.

    Returns
    -------
    float
    """
    n = weight.sum()
    spread = float(np.sqrt(weight @ (x - weight @ x / n) ** 2 / n))
    cumulative = np.cumsum(weight)
    # Give a little slack, so that a quarter of n is not missed by rounding.
    goals = np.array([0.25, 0.75]) * cumulative[-1] * (1.0 - 1e-14)
    low, high = x[np.searchsorted(cumulative, goals)]
    # The IQR of a normal law is 1.349 deviations (Silverman 1986, section 3.4). Far
    # outliers do not mislead the lesser of the two.
    return min(spread, float(high - low) / 1.349) if high > low else spread


KernelName: TypeAlias = Literal["gaussian", "boxcar", "epanechnikov", "tricube"]

# Steps of the grid per bandwidth. Binning, and lines between nodes, widen a kernel by
# (h / 16)^2 / 3 in variance. That is about a thousandth of its own.
STEPS = 16
# More points than this are sorted first, so that neighbours share their work.
_SORT_FROM = 4096


# Each kernel K(u) has three numbers. It is 0 if |u| is beyond the first (the normal one
# is then below 1e-9 of its peak). The others are the integrals of K^2 and of u^2 K.
KERNELS: dict[str, tuple[float, float, float]] = {
    "gaussian": (6.5, 0.5 / float(np.sqrt(np.pi)), 1.0),
    "boxcar": (1.0, 1.0 / 2.0, 1.0 / 3.0),
    "epanechnikov": (1.0, 3.0 / 5.0, 1.0 / 5.0),
    "tricube": (1.0, 175.0 / 247.0, 35.0 / 243.0),
}


def tabulate_kernel(kernel: KernelName) -> Float64Array:
    """Return K(d / STEPS) / K(0) for d = 0, 1, ... up to the end of the kernel."""
    u = np.arange(int(KERNELS[kernel][0] * STEPS) + 1) / STEPS
    if kernel == "gaussian":
        return np.asarray(np.exp(-0.5 * u**2))
    if kernel == "boxcar":
        # It is half at the edge, so that the steps sum to the integral.
        return np.where(u < 1.0, 1.0, 0.5)
    if kernel == "epanechnikov":
        return 1.0 - u**2
    return np.asarray((1.0 - u**3) ** 3)


@dataclass(frozen=True)
class KernelDensity:
    """Rows of one class, binned for one bandwidth.

    Build it with `from_rows`.

    Parameters
    ----------
    kernel : {"gaussian", "boxcar", "epanechnikov", "tricube"}
    bandwidth : float
    nodes, mass : ndarrays of shape (k,)
        Nodes that hold rows, in steps of bandwidth / 16, and their weights.
    """

    kernel: KernelName
    bandwidth: float
    nodes: Float64Array
    mass: Float64Array

    @classmethod
    def from_rows(
        cls, x: Float64Array, weight: Float64Array, kernel: KernelName, bandwidth: float
    ) -> KernelDensity:
        """Bin rows at sorted `x`.

        Parameters
        ----------
        x, weight : ndarrays of shape (n,)
        kernel : {"gaussian", "boxcar", "epanechnikov", "tricube"}
        bandwidth : float

        Returns
        -------
        KernelDensity
        """
        binned = bin_rows(x, weight, bandwidth / STEPS)
        return cls(kernel, bandwidth, *binned)

    def sums(self, x: Float64Array) -> Float64Array:
        """Return sum_i w_i K((x - x_i) / h) / K(0): how many rows the kernel counts."""
        order = np.argsort(x) if len(x) > _SORT_FROM else np.arange(len(x))
        table, step = tabulate_kernel(self.kernel), self.bandwidth / STEPS
        out = np.empty(len(x))
        out[order] = kernel_sums(x[order], self.nodes, self.mass, table, step)
        return out

    def own(self, x: Float64Array) -> Float64Array:
        """Return how much a row of weight 1 at each of `x` adds to `sums` there."""
        table, step = tabulate_kernel(self.kernel), self.bandwidth / STEPS
        # The row is shared by two nodes, and its sum is read from the same two. Of the
        # four pairs of nodes, two meet and two are a step apart.
        share = x / step - np.floor(x / step)
        apart = 2.0 * share * (1.0 - share)
        return np.asarray((1.0 - apart) * table[0] + apart * table[1])


def silverman_bandwidth(
    x: Float64Array, weight: Float64Array, kernel: KernelName
) -> float:
    """Return 1.06 min(sd, IQR / 1.349) n^(-1/5), adapted to the kernel, or 0 if tied.

    Parameters
    ----------
    x, weight : ndarrays of shape (n,)
        Sorted places, and how many rows each of them has.
    kernel : {"gaussian", "boxcar", "epanechnikov", "tricube"}

    Returns
    -------
    float
    """
    # Canonical kernels smooth alike, whatever their shape is (Marron & Nolan).
    own, normal = (
        (roughness / variance**2) ** 0.2
        for _, roughness, variance in (KERNELS[kernel], KERNELS["gaussian"])
    )
    alike = own / normal
    spread = robust_spread(x, weight)
    return float(1.06 * spread * weight.sum() ** -0.2 * alike)


def class_bandwidths(
    rule: Callable[[Float64Array], float], summary: ScoreSummary, shared: bool
) -> Float64Array:
    """Return the bandwidths (2,): that of all rows for both classes, or one for each.

    A rule gives 0 to a class with one distinct score. Such a class has the bandwidth of
    all rows over sqrt(n_k + 1).

    Parameters
    ----------
    rule : callable
        Returns the bandwidth of cells with the given weights.
    summary : ScoreSummary
    shared : bool

    Returns
    -------
    ndarray of shape (2,)
    """
    pooled = rule(summary.weight)
    if shared:
        return np.full(2, pooled)
    widths = np.array([rule(summary.weight0), rule(summary.weight1)])
    rows = np.array([summary.n0, summary.n1])
    widths = np.where(widths, widths, pooled / np.sqrt(rows + 1.0))
    # A share of the least floats may be 0.
    return np.asarray(np.maximum(widths, np.finfo(np.float64).smallest_subnormal))


class LeaveOneOut:
    """Log loss of Bayes' rule on kernel densities. Every row is left out in turn.

    If a row of class c is left out, its own term is taken from the sum of its class,
    and the row itself from n and n_c. A cell of weight w holds w rows (one, if w < 1).

    Parameters
    ----------
    place : ndarray of shape (n_cells,)
    weights : ndarray of shape (2, n_cells)
        Weight of each class in each cell.
    prior_weight : float
        Rows of the base rate that are added at every score.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration.densities.kde import LeaveOneOut
    >>> place, weights = np.array([0.0, 1.0]), np.array([[2.0, 0.0], [0.0, 2.0]])
    >>> judge = LeaveOneOut(place, weights, 0.5)
    >>> narrow, wide = (
    ...     judge.loss(*(judge.heights("gaussian", h, k) for k in (0, 1)))
    ...     for h in (0.1, 10.0)
    ... )
    >>> narrow < 0.3, wide > 0.7
    (True, True)
    """

    def __init__(self, place: Float64Array, weights: Float64Array, prior_weight: float):
        self._place = place
        self._weights = weights
        self._prior_weight = prior_weight
        self._rows = np.minimum(weights, 1.0)
        self._totals = weights.sum(axis=1)

    def heights(
        self, kernel: KernelName, h: float, k: int
    ) -> tuple[float, Float64Array, Float64Array]:
        """Return what `loss` needs to know about one bandwidth of class k.

        Parameters
        ----------
        kernel : {"gaussian", "boxcar", "epanechnikov", "tricube"}
        h : float
        k : {0, 1}

        Returns
        -------
        bandwidth : float
        whole, without : ndarrays of shape (n_cells,)
            Kernel sums over the bandwidth. The first is over all rows of the class, the
            second is without one row of the cell.
        """
        density = KernelDensity.from_rows(self._place, self._weights[k], kernel, h)
        whole = density.sums(self._place)
        without = whole - self._rows[k] * density.own(self._place)
        # If a row is alone, rounding may leave less than nothing.
        return h, whole / h, np.maximum(without, 0.0) / h

    def loss(
        self,
        heights0: tuple[float, Float64Array, Float64Array],
        heights1: tuple[float, Float64Array, Float64Array],
    ) -> float:
        """Return the mean log loss of rows left out, by weight.

        Parameters
        ----------
        heights0, heights1 : tuples
            What `heights` returns for class 0 and for class 1.

        Returns
        -------
        float
        """
        # The unit is that of the heights, rows per bandwidth. The bandwidth is the
        # geometric mean of the two.
        peak = self._prior_weight / np.sqrt(heights0[0]) / np.sqrt(heights1[0])
        total = 0.0
        for c, (own, other) in enumerate(((heights0, heights1), (heights1, heights0))):
            held = self._weights[c] > 0.0
            row = self._rows[c][held]
            n = self._totals.sum() - row
            # A row that is left out must not count in the prior by which it is judged.
            rate = (self._totals[c] - row + 1.0) / (n + 2.0)
            right = own[2][held] + peak * rate
            wrong = other[1][held] + peak * (1.0 - rate)
            # -log P(own class) = log(1 + wrong / right).
            total += float(self._weights[c][held] @ np.log1p(wrong / right))
        return total / float(self._totals.sum())


# Bandwidths that cross-validation compares, in units of Silverman's bandwidth.
_CV_FACTORS = 2.0 ** np.arange(-4.0, 2.5, 0.5)
# Cross-validation looks at no more cells than this.
_CV_CELLS = 8192
# A bandwidth below this share of the range of scores is lost in their rounding.
_LEAST_SHARE = 2.0**-40
# The product of two numbers up to this is finite.
_LARGEST = 1e150


class KDECalibrator(DensityCalibrator):
    r"""Kernel density estimates of the class densities and Bayes' rule.

    Parameters
    ----------
    bandwidth : "cv", "silverman" or float
        "silverman" is the rule of thumb. "cv" takes the multiple of it, from 1/16 to 4,
        that gives calibrated probabilities the best leave-one-out log loss. A number is
        the bandwidth itself, in log-odds or real scores.
    kernel : {"gaussian", "boxcar", "epanechnikov", "tricube"}
        The last three are 0 beyond one bandwidth.
    shared_bandwidth : bool
        Whether the classes have one bandwidth (the Nadaraya-Watson estimator of the
        event rate), or each class has its own.
    prior_weight : float
        Rows of the base rate that are added at every score; see Notes. It is above 0.
    scale : {"probability", "logit", "real"}
        What a score is. Densities are those of real scores, or of the log-odds, which
        have no ends.

    Attributes
    ----------
    bandwidths_ : ndarray of shape (2,)
        Bandwidth of class 0 and of class 1.
    prior_log_odds_ : float
        Log of the ratio of the class priors. It is that of c n_1 / n_0 in Notes.
    x_range_ : tuple of 2 floats
        Range of the training scores as log-odds. Beyond it predictions stay constant.
    cv_bandwidths_ : ndarray of shape (n_candidates, 2)
        Bandwidths that were compared. Only with "cv".
    cv_losses_ : ndarray of shape (n_candidates,)
        Their leave-one-out log losses. Only with "cv".

    Notes
    -----
    This is Bayes' rule, eq. 3.1 of the thesis. (Its eq. 3.2 drops the balance of the
    class priors. What the thesis uses is `NadarayaWatsonCalibrator`.) The densities are
    :math:`f_k(x) = \frac{1}{n_k h_k} \sum_{y_i = k} w_i
    K\left(\frac{x - x_i}{h_k}\right)`, and there is one term more:

    .. math:: \frac{P(y=1|x)}{P(y=0|x)} = c\, \frac{n_1 f_1(x) + r_1 g}
        {n_0 f_0(x) + r_0 g}, \qquad g = a \frac{K(0)}{\sqrt{h_0 h_1}}, \quad
        r_k = \frac{n_k + 1}{n + 2}:

    Here a is `prior_weight`: a rows of the base rate lie at any score asked for. So a
    gap between the scores gets the base rate, and nothing is ever certain. c keeps the
    mean prediction at the base rate. It is near 1, unless the classes hardly overlap.

    Silverman's bandwidth is :math:`1.06 \min(\hat\sigma, IQR/1.349) n^{-1/5}`. For
    kernels other than the normal one it is multiplied by the ratio of their canonical
    bandwidths, which smooths alike. If there is one bandwidth, it is that of all rows.
    A class that holds one distinct score has the bandwidth of all rows over
    :math:`\sqrt{n_k + 1}`.

    "cv" leaves out each row in turn. If its weight is below 1, all of it is left out.
    It is taken from the sums, from n and from :math:`n_k`, with c = 1. Separate
    bandwidths are tried in all pairs. Beyond 8192 distinct scores, neighbours are
    merged for it.

    Rows are binned on a grid of 16 steps per bandwidth (linear binning). So a larger
    summary costs more in the binning only.

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
        bandwidths = class_bandwidths(
            lambda weight: silverman_bandwidth(place, weight, self.kernel),
            summary,
            self.shared_bandwidth,
        )
        if self.bandwidth == "cv":
            bandwidths = self._cross_validate(summary, bandwidths)
        elif not isinstance(self.bandwidth, str):
            bandwidths = np.full(2, self.bandwidth / self._unit)
            if bandwidths[0] < _LEAST_SHARE:
                got = f"{self.bandwidth!r} with a range of {self._unit:g}"
                refuse("bandwidth", "be at least 2**-40 of the range of scores", got)
        self._kernel_densities = [
            KernelDensity.from_rows(place, weight, self.kernel, h)
            for weight, h in zip(
                (summary.weight0, summary.weight1), bandwidths, strict=True
            )
        ]
        self.bandwidths_ = bandwidths * self._unit

    def _log_ratio(self, x: Float64Array) -> Float64Array:
        place = self._place(x)
        rates = (self._totals + 1.0) / (self._totals.sum() + 2.0)
        h0, h1 = (density.bandwidth for density in self._kernel_densities)
        extra = self.prior_weight * rates / np.sqrt(h0 * h1)
        log0, log1 = (
            np.log(density.sums(place) / density.bandwidth + row) - np.log(total)
            for density, row, total in zip(
                self._kernel_densities, extra, self._totals, strict=True
            )
        )
        return np.asarray(log1 - log0)

    def _place(self, x: Float64Array) -> Float64Array:
        """Return x in units of its range."""
        return (x - self.x_range_[0]) / self._unit

    def _cross_validate(
        self, summary: ScoreSummary, bandwidths: Float64Array
    ) -> Float64Array:
        """Return the multiples of `bandwidths` with the least loss, shape (2,)."""
        # The loss compares bandwidths. Groups that are far narrower do not move it.
        cells = summary.condense(_CV_CELLS)
        place = self._place(np.maximum.accumulate(self.scale_(cells.scores)))
        weights = np.stack([cells.weight0, cells.weight1])
        judge = LeaveOneOut(place, weights, self.prior_weight)
        tried = bandwidths * _CV_FACTORS[:, None]
        heights = [
            [judge.heights(self.kernel, h, k) for h in tried[:, k]] for k in (0, 1)
        ]
        every = np.ones((len(tried), len(tried)))
        pairs = np.argwhere(np.diag(every[0]) if self.shared_bandwidth else every)
        compared = np.take_along_axis(tried, pairs, axis=0)
        self.cv_bandwidths_ = self._unit * compared
        self.cv_losses_ = np.array(
            [judge.loss(heights[0][i], heights[1][j]) for i, j in pairs]
        )
        return np.asarray(compared[np.argmin(self.cv_losses_)])
