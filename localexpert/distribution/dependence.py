"""`estimate_correlation`: how rows of a group err together."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import f as f_law
from scipy.stats import norm

from calibration.typing import Float64Array
from localexpert._validation import check_level, refuse
from localexpert.distribution.predictive import (
    PredictiveDistribution,
    check_outcomes,
    rows_of,
)
from localexpert.law.totals import CorrelationEstimate

# Levels are clipped to this and to 1 minus this, so that scores are finite.
_LEAST_LEVEL = 1e-15
# A jump of less probability than this does not count as a jump.
_LEAST_JUMP = 1e-12
# The greatest correlation at which shares of variances are finite.
_MOST = 1.0 - 1e-9


def estimate_correlation(
    dist: PredictiveDistribution,
    y: ArrayLike,
    groups: ArrayLike,
    *,
    coverage: float = 0.95,
) -> CorrelationEstimate:
    r"""Return the correlation of the normal scores of rows of the same group.

    Parameters
    ----------
    dist : PredictiveDistribution
        Forecasts of n rows that the model has not learned from: held-out rows, or
        `oof_distribution_` of a model that was fitted with these `groups`.
    y : array-like of shape (n,)
        Outcomes of the rows.
    groups : array-like of shape (n,)
        A label for each row: two groups or more, one of them of two rows at least.
    coverage : float
        Probability of the interval, in (0, 1).

    Returns
    -------
    CorrelationEstimate
        `correlation` of `PredictiveDistribution.total`.

    Notes
    -----
    The scores :math:`z = \Phi^{-1}(F(y))` are standard normal where forecasts are
    right. With :math:`\bar z_g` the mean of a group of :math:`n_g` rows, and
    :math:`\lambda = \rho / (1 - \rho)`,

    .. math:: W(\rho) = \frac{\sum_g w_g (\bar z_g - \bar z_w)^2 / (G - 1)}
        {\sum_g \sum_{i \in g} (z_i - \bar z_g)^2 / (n - G)}, \qquad
        w_g = \frac{1}{\lambda + 1 / n_g},

    has at the true :math:`\rho` the F law of G - 1 and n - G degrees of freedom, for
    groups of any sizes (Wald). The estimate solves W = 1, and the ends of the interval
    solve W = quantiles of that law. Scale and mean of the scores are free: forecasts
    that are too wide or too high do not count as correlation.

    Where y has probability of its own, z is the mean score of the jump of F. Such
    scores vary less than normal ones. The jumps tell by which share, and the
    correlation is divided by it. This is exact to first order in :math:`\rho`.

    References
    ----------
    Wald (1940), A note on the analysis of variance with unequal class frequencies.
    Harville & Fenech (1985), Confidence intervals for a variance ratio.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> from localexpert import PredictiveDistribution, estimate_correlation
    >>> rng = np.random.default_rng(0)
    >>> week = np.repeat(np.arange(100), 30)
    >>> y = 0.3 * rng.normal(size=100)[week] + rng.normal(size=3000)
    >>> dist = PredictiveDistribution.from_scipy(stats.norm(0.0, np.ones(3000)))
    >>> found = estimate_correlation(dist, y, week)
    >>> round(found.correlation, 2), found.interval.round(2)
    (0.1, array([0.07, 0.13]))
    """
    target = check_outcomes(y, dist)
    level = check_level(coverage, "coverage")
    rows = rows_of(groups, len(target))
    sizes = np.array([len(each) for each in rows])
    n, n_groups, most = len(target), len(sizes), int(sizes.max())
    if n_groups < 2 or most < 2:
        rule = "be two or more, one of them of two rows at least"
        refuse("groups", rule, f"{n_groups} for {n} rows")
    scores, known = _mean_scores(dist, target)
    means = np.array([scores[each].mean() for each in rows])
    within = sum(((scores[r] - m) ** 2).sum() for r, m in zip(rows, means, strict=True))

    def excess(rho: float, ratio: float) -> float:
        weight = 1.0 / (rho / (1.0 - rho) + 1.0 / sizes)
        between = weight @ (means - weight @ means / weight.sum()) ** 2
        return float(between / (n_groups - 1) - ratio * within / (n - n_groups))

    def solve(ratio: float) -> float:
        least = -1.0 / (most - 1)
        first = least + 1e-9 * (1.0 - least)
        if excess(first, ratio) <= 0.0:
            return least
        if excess(_MOST, ratio) >= 0.0:
            return 1.0
        return float(brentq(excess, first, _MOST, args=(ratio,), xtol=1e-12))

    tails = 0.5 * np.array([1.0 + level, 1.0 - level])
    ratios = [1.0, *f_law.ppf(tails, n_groups - 1, n - n_groups)]
    rho, low, high = np.minimum([solve(float(t)) / known for t in ratios], 1.0)
    ends = np.array([low, high])
    return CorrelationEstimate(float(rho), ends, level, n_groups, n)


def _mean_scores(
    dist: PredictiveDistribution, y: Float64Array
) -> tuple[Float64Array, float]:
    """Return the normal scores (n,) of outcomes, and the share of variance they show.

    At a jump only the mean of a normal score between a and b is known,
    (phi(a) - phi(b)) / P. The variation around this mean is not seen.
    """
    upto = np.clip(dist.law.cdf(y[:, None])[:, 0], _LEAST_LEVEL, 1.0)
    below = np.clip(dist.law.cdf_left(y[:, None])[:, 0], 0.0, 1.0 - _LEAST_LEVEL)
    jump = upto - below
    scores = ndtri(np.minimum(upto, 1.0 - _LEAST_LEVEL))
    held = jump > _LEAST_JUMP
    ends = ndtri(np.stack([below[held], upto[held]]))
    density = norm.pdf(ends)
    scores[held] = mean = (density[0] - density[1]) / jump[held]
    pull = np.where(density > 0.0, ends, 0.0) * density
    left = np.zeros(len(y))
    left[held] = 1.0 + (pull[0] - pull[1]) / jump[held] - mean**2
    return scores, float(1.0 - left.mean())
