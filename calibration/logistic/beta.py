"""Beta calibration: by maximum likelihood, or by the moments of each class."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import betaln, expit, logit

from calibration._validation import check_choice
from calibration.base.log_odds import (
    WEAK_RIDGE,
    LogOddsCalibrator,
    fit_coefficients,
    unpenalised_loss,
)
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array


class BetaCalibrator(LogOddsCalibrator):
    r"""Beta calibration: log-odds linear in log s and -log(1 - s).

    Parameters
    ----------
    method : {"ml", "moments"}
        "ml": maximum likelihood with a, b >= 0, so that the map never decreases.
        "moments": a beta distribution is matched to the mean and variance of each
        class's scores and Bayes' rule gives the posterior; a and b may come out
        negative.
    scale : {"probability", "logit"}
        What a score is.

    Attributes
    ----------
    a_, b_, intercept_ : float
        The map's parameters.
    shapes_ : ndarray of shape (2, 2)
        With "moments": (alpha, beta) of class 0 and of class 1.

    Notes
    -----
    .. math:: \log\frac{P(y=1|s)}{P(y=0|s)} = a \log s - b \log(1-s) + c.

    a = b = 1, c = 0 does nothing. With class densities Beta(alpha_k, beta_k),
    a = alpha_1 - alpha_0 and b = beta_0 - beta_1, so both methods share the family.
    Class priors in "moments" are (n_k + 1) / (n + 2). The likelihood carries a ridge
    of a thousandth of a row towards doing nothing, for separable data.

    References
    ----------
    Kull, Silva Filho & Flach (2017), Beta calibration. Garczarek (2002),
    Classification rules in standardized partition spaces, matches the moments of
    membership values; the posterior here is by Bayes' rule, eq. 2.2 of Naeini's
    thesis, over all scores instead of within each predicted class.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import BetaCalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=20_000)
    >>> y = rng.uniform(size=20_000) < scores**2
    >>> BetaCalibrator().fit(scores, y).predict([0.2, 0.5, 0.8]).round(2)
    array([0.04, 0.25, 0.65])
    """

    a_: float
    b_: float
    intercept_: float
    shapes_: Float64Array
    _scales = ("probability", "logit")

    def __init__(
        self,
        method: Literal["ml", "moments"] = "ml",
        *,
        scale: Literal["probability", "logit"] = "probability",
    ):
        self.method = method
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.method, "method", ("ml", "moments"))

    def _fit_formula(self, summary: ScoreSummary, x: Float64Array) -> None:
        if self.method == "ml":
            self._fit_likelihood(summary, x)
        else:
            self._fit_moments(summary, x)

    def _log_odds(self, x: Float64Array) -> Float64Array:
        log_s, minus_log_rest = _beta_columns(x)
        return self.intercept_ + self.a_ * log_s + self.b_ * minus_log_rest

    def _fit_likelihood(self, summary: ScoreSummary, x: Float64Array) -> None:
        """Maximise the likelihood over a, b >= 0.

        The loss is convex, so if the free optimum is outside, the constrained one
        lies on an edge: the better of the edges' own optima, cut off at the corner.
        """
        columns = _beta_columns(x)
        fits = [_fit_free(columns, [0, 1], summary)]
        if min(fits[0][1]) < 0.0:
            edges = [_fit_free(columns, [j], summary) for j in (0, 1)]
            # No slope at all: the base rate is what is left to learn.
            corner = (float(logit(summary.base_rate)), np.zeros(2))
            fits = [fit for fit in edges if min(fit[1]) >= 0.0] + [corner]
        # Without penalty: edges have fewer coefficients to be penalised.
        losses = [_loss(columns, fit, summary) for fit in fits] if fits[1:] else [0.0]
        self.intercept_, coef = fits[int(np.argmin(losses))]
        self.a_, self.b_ = float(coef[0]), float(coef[1])

    def _fit_moments(self, summary: ScoreSummary, x: Float64Array) -> None:
        shapes = [_match_beta(x, w) for w in (summary.weight0, summary.weight1)]
        self.shapes_ = np.array(shapes)
        (alpha0, beta0), (alpha1, beta1) = shapes
        self.a_, self.b_ = alpha1 - alpha0, beta0 - beta1
        prior_log_odds = np.log((summary.n1 + 1.0) / (summary.n0 + 1.0))
        # Log of the ratio of the two densities' constants.
        norms = betaln(alpha0, beta0) - betaln(alpha1, beta1)
        self.intercept_ = float(prior_log_odds + norms)


def _beta_columns(x: Float64Array) -> list[Float64Array]:
    """Return log s and -log(1 - s) of s = expit(x), without losing tail digits."""
    return [-np.logaddexp(0.0, -x), np.logaddexp(0.0, x)]


def _fit_free(
    columns: list[Float64Array], used: list[int], summary: ScoreSummary
) -> tuple[float, Float64Array]:
    """Fit with some of the two columns; the others' coefficients are 0."""
    intercept, some = fit_coefficients(
        [columns[j] for j in used],
        summary.weight0,
        summary.weight1,
        ridge=WEAK_RIDGE,
        prior=np.ones(len(used)),
    )
    coef = np.zeros(2)
    coef[used] = some
    return intercept, coef


def _loss(
    columns: list[Float64Array], fit: tuple[float, Float64Array], summary: ScoreSummary
) -> float:
    """Return the negative log-likelihood of a fit."""
    design = np.stack([np.ones(summary.n_cells), *columns])
    return unpenalised_loss(design, summary, np.concatenate([[fit[0]], fit[1]]))


def _match_beta(x: Float64Array, weight: Float64Array) -> tuple[float, float]:
    """Return the shapes of the beta with the mean and variance of expit(x).

    alpha = m k and beta = (1 - m) k with k = m (1 - m) / v - 1. A variance of 0
    counts as that of one row in n more, at the mean's own spread.
    """
    scores = expit(x)
    total = weight.sum()
    mean = float(weight @ scores / total)
    bound = mean * (1.0 - mean)
    variance = float(weight @ (scores - mean) ** 2 / total)
    least = bound / (total + 1.0) ** 2
    concentration = bound / min(max(variance, least), 0.999 * bound) - 1.0
    return mean * concentration, (1.0 - mean) * concentration
