"""Class densities that are formulas, normal or asymmetric Laplace, and Bayes' rule."""

from __future__ import annotations

import numpy as np

from calibration._validation import check_flag
from calibration.base.calibrators import Scale
from calibration.base.log_odds import LogOddsCalibrator
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

# Distances in standard deviations are cut off here, so that their squares stay finite.
_FARTHEST = 1e100
# Least variance as a share of the squared range. Weights may leave less, or none.
_LEAST_VARIANCE = 1e-80


class GaussianCalibrator(LogOddsCalibrator):
    r"""Normal class densities and Bayes' rule, on log-odds.

    Parameters
    ----------
    shared_variance : bool
        Whether both classes have the variance pooled within them. Then the log-odds are
        a straight line. Otherwise they are a parabola, which need not be monotone.
    scale : {"probability", "logit", "real"}
        What a score is. Probabilities enter by their log-odds.

    Attributes
    ----------
    means_ : ndarray of shape (2,)
        Mean of x in class 0 and in class 1.
    variances_ : ndarray of shape (2,)
        Variance of x in class 0 and in class 1.
    prior_log_odds_ : float
        Log of the ratio of the class priors.

    Notes
    -----
    With weighted means :math:`m_k` and variances :math:`v_k` of class k and priors
    :math:`\pi_k = (n_k + 1)/(n + 2)`,

    .. math:: \log\frac{P(y=1|x)}{P(y=0|x)} = \log\frac{\pi_1}{\pi_0}
        + \frac12 \log\frac{v_0}{v_1} + \frac{(x - m_0)^2}{2 v_0}
        - \frac{(x - m_1)^2}{2 v_1}.

    A variance of 0 (of a class that holds one distinct score) is replaced. The new one
    is that of one row more, added at the spread of all rows: v / (n_k + 1), where v is
    the variance of both classes together. With `shared_variance` it is v / (n + 1).

    References
    ----------
    Bennett (2003), Using asymmetric distributions to improve text classifier
    probability estimates, has the normal densities as a baseline. The priors are
    those of Zhang & Yang (2004), Probabilistic score estimation with piecewise
    logistic regression, section 3.2.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import GaussianCalibrator
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(20_000) % 2
    >>> scores = rng.normal(loc=2.0 * y)
    >>> line = GaussianCalibrator(shared_variance=True, scale="real").fit(scores, y)
    >>> line.predict([0.0, 1.0, 2.0]).round(2)
    array([0.12, 0.5 , 0.88])
    """

    means_: Float64Array
    variances_: Float64Array
    prior_log_odds_: float

    def __init__(self, shared_variance: bool = False, *, scale: Scale = "probability"):
        self.shared_variance = shared_variance
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_flag(self.shared_variance, "shared_variance", "a bool")

    def _fit_formula(self, summary: ScoreSummary, x: Float64Array) -> None:
        total = np.array([summary.n0, summary.n1])
        weights = (summary.weight0, summary.weight1)
        moments = np.array([_moments(x, weight) for weight in weights])
        self.means_, variances = moments.T.copy()
        if self.shared_variance:
            # Pool within the classes, as in linear discriminant analysis.
            variances[:] = total @ variances / summary.n
            total[:] = summary.n
        # Different scores may share one x, because they are clipped before the logit.
        # Then any common variance gives the right answer, the prior.
        spread = _moments(x, summary.weight)[1]
        floor = spread / (total + 1.0) if spread > 0.0 else np.ones(2)
        variances = np.where(variances > 0.0, variances, floor)
        least = _LEAST_VARIANCE * float(np.ptp(x)) ** 2
        self.variances_ = np.maximum(variances, least)
        self.prior_log_odds_ = float(np.log((summary.n1 + 1.0) / (summary.n0 + 1.0)))

    def _log_odds(self, x: Float64Array) -> Float64Array:
        # This is the difference of squares, expanded about the middle of the means. It
        # is exactly a line if the variances are equal. With u and e in standard
        # deviations of class 0 and r = v_0 / v_1 it is (u + e)^2 - r (u - e)^2.
        (m0, m1), (v0, v1) = self.means_, self.variances_
        u = np.clip((x - 0.5 * (m0 + m1)) / np.sqrt(v0), -_FARTHEST, _FARTHEST)
        e, r = 0.5 * (m1 - m0) / np.sqrt(v0), v0 / v1
        difference = (1.0 - r) * (u**2 + e**2) + 2.0 * (1.0 + r) * e * u
        return np.asarray(self.prior_log_odds_ + 0.5 * (np.log(r) + difference))


def _moments(x: Float64Array, weight: Float64Array) -> tuple[float, float]:
    """Return the weighted mean and variance, which is 0 if one value has all weight."""
    held = x[weight > 0.0]
    if held.min() == held.max():
        return float(held[0]), 0.0
    mean = weight @ x / weight.sum()
    return float(mean), float(weight @ (x - mean) ** 2 / weight.sum())


class AsymmetricLaplaceCalibrator(LogOddsCalibrator):
    r"""Asymmetric Laplace class densities and Bayes' rule, on log-odds.

    The log-odds is a line in three pieces with kinks at the two modes.

    Parameters
    ----------
    scale : {"probability", "logit", "real"}
        What a score is. Probabilities enter by their log-odds.

    Attributes
    ----------
    modes_ : ndarray of shape (2,)
        Mode of x in class 0 and in class 1.
    rates_ : ndarray of shape (2, 2)
        For each class (row), the rates beta below and gamma above the mode.
    prior_log_odds_ : float
        Log of the ratio of the class priors.

    Notes
    -----
    .. math:: p(x \mid \theta, \beta, \gamma) = \frac{\beta\gamma}{\beta + \gamma}
        \begin{cases} e^{-\beta (\theta - x)} & x \le \theta \\
        e^{-\gamma (x - \theta)} & x > \theta. \end{cases}

    Let :math:`X_l = \sum_{x_i \le \theta} (\theta - x_i)` and
    :math:`X_r = \sum_{x_i > \theta} (x_i - \theta)`, both weighted. The mode is the
    score of the class with least :math:`\sqrt{X_l} + \sqrt{X_r}`, and the lowest if
    there are several. Then :math:`\beta = N / (X_l + \sqrt{X_l X_r})` and
    :math:`\gamma = N / (X_r + \sqrt{X_l X_r})`. This is maximum likelihood in
    O(n log n). Class priors are (n_k + 1) / (n + 2).

    A side with few rows near the mode would have a rate without bound. So a sum (X_l or
    X_r) counts as one row, if it is below one row at the class's mean distance from its
    mode, (X_l + X_r) / N. If the class holds one distinct score, this distance is 0.
    Then it is the distance of all rows from their mean.

    References
    ----------
    Bennett (2003), Using asymmetric distributions to improve text classifier
    probability estimates. Zhang & Yang (2004), Probabilistic score estimation with
    piecewise logistic regression, section 3.2.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import AsymmetricLaplaceCalibrator
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(20_000) % 2
    >>> scores = rng.laplace(loc=2.0 * y)
    >>> laplace = AsymmetricLaplaceCalibrator(scale="real").fit(scores, y)
    >>> laplace.predict([-5.0, 1.0, 7.0]).round(1)
    array([0.1, 0.5, 0.9])
    """

    modes_: Float64Array
    rates_: Float64Array
    prior_log_odds_: float

    def _fit_formula(self, summary: ScoreSummary, x: Float64Array) -> None:
        mean = summary.weight @ x / summary.n
        # Different scores may share one x, because they are clipped before the logit.
        # Then equal rates give the right answer, the prior.
        pooled = float(summary.weight @ np.abs(x - mean) / summary.n)
        alike = x.min() == x.max()
        self.modes_, self.rates_ = np.zeros(2), np.ones((2, 2))
        for k, weight in enumerate((summary.weight0, summary.weight1)):
            held = weight > 0.0
            mode, below, above = _find_mode(x[held], weight[held])
            self.modes_[k] = mode
            if not alike:
                self.rates_[k] = _rates(below, above, float(weight.sum()), pooled)
        self.prior_log_odds_ = float(np.log((summary.n1 + 1.0) / (summary.n0 + 1.0)))

    def _log_odds(self, x: Float64Array) -> Float64Array:
        log0, log1 = (
            _log_density(x, float(mode), *rates)
            for mode, rates in zip(self.modes_, self.rates_, strict=True)
        )
        return self.prior_log_odds_ + log1 - log0


def _find_mode(x: Float64Array, weight: Float64Array) -> tuple[float, float, float]:
    """Return the most likely mode and its X_l and X_r, from sorted x.

    The mode minimises sqrt(X_l) + sqrt(X_r) for this reason. A log-likelihood is
    N log(beta gamma / (beta + gamma)) - beta X_l - gamma X_r. Let a = sqrt(X_l) and
    b = sqrt(X_r). At the best rates, beta = N / (a (a + b)) and
    gamma = N / (b (a + b)). The norm beta gamma / (beta + gamma) is then N / (a + b)^2,
    and beta X_l + gamma X_r is N. So the log-likelihood is
    N log N - 2 N log(a + b) - N. Between two neighbouring scores X_l and X_r are linear
    in theta. So a + b is concave there,
    and its least value lies at a score.

    Both sums grow from score to score by (weight passed) x (gap). They are cumulative
    sums of terms that are not negative, which lose no digits.
    """
    # Rounding of the logit can exchange neighbours that differ by a last digit.
    gaps = np.maximum(np.diff(x), 0.0)
    below, above = np.zeros(len(x)), np.zeros(len(x))
    np.cumsum(np.cumsum(weight[:-1]) * gaps, out=below[1:])
    above[:-1] = np.cumsum(np.cumsum(weight[:0:-1]) * gaps[::-1])[::-1]
    best = int(np.argmin(np.sqrt(below) + np.sqrt(above)))
    return float(x[best]), float(below[best]), float(above[best])


# A greater rate counts as this one, so that log densities stay finite.
_MOST_RATE = 1e100


def _rates(
    below: float, above: float, total: float, pooled: float
) -> tuple[float, float]:
    """Return beta and gamma of maximum likelihood, with the floor on each side."""
    # Without a floor, a mode at the outermost score would have an infinite rate.
    row = (below + above) / total or pooled
    below, above = max(below, row), max(above, row)
    # Take roots first, because the product of two tiny sums would underflow.
    cross, least = np.sqrt(below) * np.sqrt(above), total / _MOST_RATE
    return total / max(below + cross, least), total / max(above + cross, least)


def _log_density(
    x: Float64Array, mode: float, beta: float, gamma: float
) -> Float64Array:
    """Return the log of the asymmetric Laplace density."""
    distance = x - mode
    exponent = np.where(distance > 0.0, gamma, -beta) * distance
    norm = np.log(beta) + np.log(gamma) - np.log(beta + gamma)
    return np.asarray(norm - exponent)
