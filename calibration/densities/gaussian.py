"""Two normal classes and Bayes' rule."""

from __future__ import annotations

import numpy as np

from calibration._validation import check_flag
from calibration.base.calibrators import Scale
from calibration.base.log_odds import LogOddsCalibrator
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

# Distances in standard deviations are cut off here, so that squares stay finite.
_FARTHEST = 1e100
# Least variance as a share of the squared range: weights may leave less, or none.
_LEAST_VARIANCE = 1e-80


class GaussianCalibrator(LogOddsCalibrator):
    r"""Normal class densities and Bayes' rule, on log-odds.

    Parameters
    ----------
    shared_variance : bool
        Whether both classes have the variance pooled within them, which makes the
        log-odds a straight line; otherwise a parabola, which need not be monotone.
    scale : {"probability", "logit", "real"}
        What a score is; probabilities enter by their log-odds.

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

    A variance of 0 (a class that holds one distinct score) is replaced by that of
    one row more, added at the spread of all rows: v / (n_k + 1), v the variance of
    both classes together (with `shared_variance`, v / (n + 1)).

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
            # Pooled within the classes, as in linear discriminant analysis.
            variances[:] = total @ variances / summary.n
            total[:] = summary.n
        # Different scores may share one x (they are clipped before the logit); then
        # any common variance gives what is right, the prior.
        spread = _moments(x, summary.weight)[1]
        floor = spread / (total + 1.0) if spread > 0.0 else np.ones(2)
        variances = np.where(variances > 0.0, variances, floor)
        least = _LEAST_VARIANCE * float(np.ptp(x)) ** 2
        self.variances_ = np.maximum(variances, least)
        self.prior_log_odds_ = float(np.log((summary.n1 + 1.0) / (summary.n0 + 1.0)))

    def _log_odds(self, x: Float64Array) -> Float64Array:
        # The difference of squares, expanded about the middle of the means: exactly
        # a line if the variances are equal. With u and e in standard deviations of
        # class 0 and r = v_0 / v_1 it is (u + e)^2 - r (u - e)^2.
        (m0, m1), (v0, v1) = self.means_, self.variances_
        u = np.clip((x - 0.5 * (m0 + m1)) / np.sqrt(v0), -_FARTHEST, _FARTHEST)
        e, r = 0.5 * (m1 - m0) / np.sqrt(v0), v0 / v1
        difference = (1.0 - r) * (u**2 + e**2) + 2.0 * (1.0 + r) * e * u
        return np.asarray(self.prior_log_odds_ + 0.5 * (np.log(r) + difference))


def _moments(x: Float64Array, weight: Float64Array) -> tuple[float, float]:
    """Return the weighted mean and variance; exactly 0 if one value has all weight."""
    held = x[weight > 0.0]
    if held.min() == held.max():
        return float(held[0]), 0.0
    mean = weight @ x / weight.sum()
    return float(mean), float(weight @ (x - mean) ** 2 / weight.sum())
