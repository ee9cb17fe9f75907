"""Calibrators that are a formula: polynomials in log-odds, temperature, beta."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import betaln, expit

from calibration._kernels.logistic import LogisticProblem
from calibration._validation import check_choice, check_number
from calibration.base.calibrators import Scale
from calibration.base.log_odds import (
    WEAK_RIDGE,
    LogOddsCalibrator,
    fit_coefficients,
    limit_pull,
    solve_logistic,
    unpenalised_loss,
)
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array


class _PolynomialCalibrator(LogOddsCalibrator):
    """log-odds = intercept_ + sum_j coef_[j] (x - center_)^(j+1)."""

    intercept_: float
    coef_: Float64Array
    center_: float
    _degree = 1

    def _fit_polynomial(
        self,
        x: Float64Array,
        weight0: Float64Array,
        weight1: Float64Array,
        ridge: float,
    ) -> None:
        # Real scores have no origin, so their mean takes its place. Far from an origin,
        # a square is nearly a line.
        no_origin = self.scale == "real" and self._degree > 1
        self.center_ = float(np.average(x, weights=weight0 + weight1) * no_origin)
        columns = [(x - self.center_) ** (j + 1) for j in range(self._degree)]
        # The penalty pulls towards doing nothing, which has no meaning for real scores.
        prior = np.zeros(self._degree)
        prior[0] = 0.0 if self.scale == "real" else 1.0
        # Two scores alone tell no curvature, even without a penalty.
        ridges = np.maximum(ridge, WEAK_RIDGE * (np.arange(self._degree) > 0))
        self.intercept_, self.coef_ = fit_coefficients(
            columns, weight0, weight1, ridge=ridges, prior=prior, powers=True
        )

    def _log_odds(self, x: Float64Array) -> Float64Array:
        out, away = np.zeros(len(x)), x - self.center_
        # This is Horner's scheme.
        for coefficient in self.coef_[::-1]:
            out = (out + coefficient) * away
        return out + self.intercept_


class PlattCalibrator(_PolynomialCalibrator):
    r"""Platt's sigmoid with smoothed targets, on log-odds.

    Parameters
    ----------
    scale : {"probability", "logit", "real"}
        What a score is. Probabilities enter by their log-odds.

    Attributes
    ----------
    intercept_ : float
    coef_ : ndarray of shape (1,)

    Notes
    -----
    :math:`P(y=1|x) = 1 / (1 + e^{-(a x + b)})` maximises the likelihood of the targets
    :math:`t_1 = (n_1 + 1)/(n_1 + 2)` for class 1 and :math:`t_0 = 1/(n_0 + 2)` for
    class 0. These targets keep it finite on separable data.

    References
    ----------
    Platt (1999), Probabilistic outputs for support vector machines.

    Examples
    --------
    >>> from calibration import PlattCalibrator
    >>> platt = PlattCalibrator(scale="real").fit([-2, -1, 1, 2], [0, 1, 0, 1])
    >>> platt.predict([-1.5, 0.0, 1.5]).round(2)
    array([0.42, 0.5 , 0.58])
    """

    def _fit_formula(self, summary: ScoreSummary, x: Float64Array) -> None:
        # These are Platt's targets. A target is what a posterior under a uniform prior
        # expects of the label in its class.
        target1 = (summary.n1 + 1.0) / (summary.n1 + 2.0)
        target0 = 1.0 / (summary.n0 + 2.0)
        # Smoothed targets are fractional rows of both classes. So the kernel needs
        # nothing more.
        weight1 = target1 * summary.weight1 + target0 * summary.weight0
        self._fit_polynomial(x, summary.weight - weight1, weight1, 0.0)


class LogisticCalibrator(_PolynomialCalibrator):
    r"""Ridge logistic regression on log-odds.

    Parameters
    ----------
    penalty : float
        Weight of the ridge. 1 weighs like about four rows. The loss grows by
        :math:`\frac{penalty}{2} (s_x (a - a_0))^2`. Here :math:`s_x` is the standard
        deviation of x. :math:`a_0` is 1 (do nothing) for probabilities and log-odds,
        and 0 for real scores. See the notes for scores far out.
    scale : {"probability", "logit", "real"}
        What a score is. Probabilities enter by their log-odds.

    Attributes
    ----------
    intercept_ : float
    coef_ : ndarray of shape (1,)

    Notes
    -----
    :math:`\log\frac{P(y=1|x)}{P(y=0|x)} = a x + b`. The intercept is not penalised,
    so the mean prediction equals the base rate.

    Log-odds may deviate by more than :math:`s_x = 2`, as those of naive Bayes do. Then
    the ridge is multiplied by :math:`4 / s_x^2`. So if scores say nothing at all, the
    ridge counts 2 nats for doing nothing, and not more for bolder scores. On 19 public
    tables this takes the log loss of naive Bayes after calibration from .483 to .394.

    References
    ----------
    Zhang & Yang (2004), Probabilistic score estimation with piecewise logistic
    regression, section 3.1 (there both coefficients are pulled to 0).

    Examples
    --------
    >>> from calibration import LogisticCalibrator
    >>> calibrator = LogisticCalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> calibrator.predict([0.1, 0.5]).round(2)
    array([0.1, 0.5])
    """

    def __init__(self, penalty: float = 1.0, *, scale: Scale = "probability"):
        self.penalty = penalty
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self.penalty, "penalty", 0.0)

    def _fit_formula(self, summary: ScoreSummary, x: Float64Array) -> None:
        self._fit_polynomial(x, summary.weight0, summary.weight1, self.penalty)


class QuadraticCalibrator(LogisticCalibrator):
    r"""Ridge logistic regression on log-odds and their square.

    Parameters
    ----------
    penalty : float
        Weight of the ridge. 1 weighs like about four rows. Each coefficient is measured
        in standard deviations of its column, and pulled towards doing nothing, as in
        `LogisticCalibrator`. The square counts as spread by at least :math:`s_x^2 / 2`.
        It keeps a ridge of .001, because two scores alone tell no curvature.
    scale : {"probability", "logit", "real"}
        What a score is. Probabilities enter by their log-odds.

    Attributes
    ----------
    intercept_ : float
    coef_ : ndarray of shape (2,)
    center_ : float
        The mean of real scores, which takes the place of 0. It is 0 on the other
        scales.

    Notes
    -----
    :math:`\log\frac{P(y=1|x)}{P(y=0|x)} = a (x - m) + c (x - m)^2 + b`, where m is
    `center_`. This is the posterior of two normal classes with unequal variances. It
    need not be monotone.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import QuadraticCalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=2000)
    >>> y = rng.uniform(size=2000) < scores**2
    >>> QuadraticCalibrator().fit(scores, y).predict([0.2, 0.8]).round(2)
    array([0.04, 0.64])
    """

    _degree = 2


class TemperatureCalibrator(LogOddsCalibrator):
    r"""One temperature: log-odds divided by a positive number.

    Parameters
    ----------
    scale : {"probability", "logit"}
        What a score is. The temperature needs a zero. For a real score that is not a
        log-odds, use `PlattCalibrator`.

    Attributes
    ----------
    inverse_temperature_ : float
        Factor of the log-odds, at least 0. It is 0 if the scores order the classes the
        wrong way round.
    temperature_ : float
        Its inverse. It is inf if the inverse temperature is 0.

    Notes
    -----
    :math:`P(y=1|x) = 1 / (1 + e^{-x / T})` by maximum likelihood. A ridge of a
    thousandth of a row keeps T positive on separable data.

    References
    ----------
    Guo, Pleiss, Sun & Weinberger (2017), On calibration of modern neural networks.

    Examples
    --------
    >>> from calibration import TemperatureCalibrator
    >>> calibrator = TemperatureCalibrator(scale="logit")
    >>> calibrator.fit([-4, -2, 2, 4, 4], [0, 0, 1, 1, 0]).temperature_ > 1
    True
    """

    inverse_temperature_: float
    temperature_: float
    _scales = ("probability", "logit")

    def __init__(self, *, scale: Literal["probability", "logit"] = "probability"):
        self.scale = scale

    def _fit_formula(self, summary: ScoreSummary, x: Float64Array) -> None:
        weight = summary.weight
        # Use units of the root mean square, so that the ridge means the same on any
        # scale. Do not centre, because a temperature has no intercept.
        size = np.sqrt(np.einsum("i,i,i", x, x, weight) / weight.sum())
        prior = np.array([size])
        ridge = limit_pull(WEAK_RIDGE, prior)
        cells = (x / size)[None, :], summary.weight0, summary.weight1
        scaled = solve_logistic(LogisticProblem(*cells, ridge, prior))
        self.inverse_temperature_ = max(float(scaled[0] / size), 0.0)
        positive = self.inverse_temperature_ > 0.0
        self.temperature_ = 1.0 / self.inverse_temperature_ if positive else np.inf

    def _log_odds(self, x: Float64Array) -> Float64Array:
        return self.inverse_temperature_ * x


class BetaCalibrator(LogOddsCalibrator):
    r"""Beta calibration: log-odds linear in log s and -log(1 - s).

    Parameters
    ----------
    method : {"ml", "moments"}
        "ml": maximum likelihood with a, b >= 0, so that the map never decreases.
        "moments": a beta distribution is matched to the mean and variance of each
        class's scores, and Bayes' rule gives the posterior. Then a and b may be
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
    Class priors in "moments" are (n_k + 1) / (n + 2). For separable data, the
    likelihood has a ridge of a thousandth of a row towards doing nothing.

    References
    ----------
    Kull, Silva Filho & Flach (2017), Beta calibration. Garczarek (2002), Classification
    rules in standardized partition spaces, matches the moments of membership values.
    The posterior here is by Bayes' rule, eq. 2.2 of Naeini's thesis. It is over all
    scores instead of within each predicted class.

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

        The loss is convex. So if the free optimum is outside, the constrained optimum
        lies on an edge. It is the better of the edges' optima, cut off at the corner.
        """
        columns = _beta_columns(x)
        fits = [_fit_free(columns, [0, 1], summary)]
        if min(fits[0][1]) < 0.0:
            edges = [_fit_free(columns, [j], summary) for j in (0, 1)]
            # Without any slope, only the base rate is left to learn.
            corner = (float(np.log(summary.n1) - np.log(summary.n0)), np.zeros(2))
            fits = [fit for fit in edges if min(fit[1]) >= 0.0] + [corner]
        # Compare losses without penalty, because edges have fewer penalised
        # coefficients.
        losses = [_loss(columns, fit, summary) for fit in fits] if fits[1:] else [0.0]
        self.intercept_, coef = fits[int(np.argmin(losses))]
        self.a_, self.b_ = float(coef[0]), float(coef[1])

    def _fit_moments(self, summary: ScoreSummary, x: Float64Array) -> None:
        shapes = [_match_beta(x, w) for w in (summary.weight0, summary.weight1)]
        self.shapes_ = np.array(shapes)
        (alpha0, beta0), (alpha1, beta1) = shapes
        self.a_, self.b_ = alpha1 - alpha0, beta0 - beta1
        prior_log_odds = np.log((summary.n1 + 1.0) / (summary.n0 + 1.0))
        # This is the log of the ratio of the constants of the two densities.
        norms = betaln(alpha0, beta0) - betaln(alpha1, beta1)
        self.intercept_ = float(prior_log_odds + norms)


def _beta_columns(x: Float64Array) -> list[Float64Array]:
    """Return log s and -log(1 - s) of s = expit(x), without losing tail digits."""
    return [-np.logaddexp(0.0, -x), np.logaddexp(0.0, x)]


def _fit_free(
    columns: list[Float64Array], used: list[int], summary: ScoreSummary
) -> tuple[float, Float64Array]:
    """Fit with some of the two columns. The coefficients of the others are 0."""
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
    """Return the shapes of the beta law with the mean and variance of expit(x).

    alpha = m k and beta = (1 - m) k with k = m (1 - m) / v - 1. A variance of 0 counts
    as that of one row in n more, at the spread of a 0/1 variable with this mean.
    """
    share = weight / weight.sum()
    # No beta law has a mean of 0 or 1, but far log-odds round to these.
    mean, rest = (max(float(share @ expit(s)), 2.0**-1000) for s in (x, -x))
    bound = mean * rest
    # Take the lesser side. It keeps its digits if the other one rounds to 1.
    small = expit(x if mean < rest else -x)
    variance = float(share @ (small - min(mean, rest)) ** 2)
    # Use shares of the greatest variance, which may be as small as floats are.
    least = (weight.sum() + 1.0) ** -2
    concentration = 1.0 / min(max(variance / bound, least), 0.999) - 1.0
    return mean * concentration, rest * concentration
