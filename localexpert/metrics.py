"""Scores of predictive distributions, scorers for model selection, and correlations.

Every function takes the observed targets and a `PredictiveDistribution` with the same
number of rows. Losses are averaged with `sample_weight`, a number of repetitions.
`crps_score`, `log_score`, `interval_coverage` and `pit_test` also take targets that are
known only in part, lower and upper ends (n, 2), as `LocalExpertRegressor.fit` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri
from scipy.stats import f as f_law
from scipy.stats import kstest, norm
from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRequest

from calibration._validation import (
    check_callable,
    check_integer,
    check_level,
    check_weights,
    refuse,
)
from calibration.typing import Float64Array
from localexpert.distribution.predictive import (
    PredictiveDistribution,
    check_distribution,
    check_outcomes,
    rows_of,
)
from localexpert.distribution.predictors import predict_dist
from localexpert.law.law import Law
from localexpert.law.totals import CorrelationEstimate
from localexpert.law.transform import call_vectorised
from localexpert.partial.scores import (
    covered_shares,
    crps_losses,
    log_losses,
    pit_values,
)

# Cells of weighted integrals in memory at a time, levels of the quantiles at which a
# row's cells end, and at how many places a weight is read.
_CELLS, _LEVELS, _N_SEEN = 1 << 20, ndtr(np.linspace(-3.29, 3.29, 65)), 20_000
# Rows at whose quantiles it is read, too.
_N_ROWS = 300
# How often an interval with a jump of the weight is halved, and the least jump.
_HALVINGS, _JUMP = 50, 1e-3


def crps_score(
    y_true: ArrayLike,
    dist: PredictiveDistribution,
    *,
    sample_weight: ArrayLike | None = None,
    censoring: Any = None,
) -> float:
    r"""Return the mean continuous ranked probability score.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, 2)
        Of two columns: lower and upper ends of targets, known or right-censored.
    dist : PredictiveDistribution
        Of n rows.
    sample_weight : array-like of shape (n,), optional
    censoring : PredictiveDistribution or targets, optional
        For censored targets: when rows are censored, as `survival_brier_score` says.

    Returns
    -------
    float
        Mean of :math:`\int (F_i(z) - 1\{y_i \le z\})^2 dz`, in units of y.

    Notes
    -----
    With censored targets it is the integral of `survival_brier_score` over thresholds
    up to the one that 5 % of the limits exceed: those seen count for those censored, by
    the inverse of their probability. This needs limits that are independent of targets,
    and by default of features, too. The integral is exact to about a thousandth.
    Intervals have no such score: take `log_score`.

    References
    ----------
    Gneiting & Raftery (2007), Strictly proper scoring rules. Graf, Schmoor, Sauerbrei &
    Schumacher (1999), Assessment and comparison of prognostic classification schemes
    for survival data.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution, crps_score
    >>> rows = [[0.2, 0.6, 0.2], [0.1, 0.1, 0.8]]
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> round(crps_score([1.0, 2.0], dist), 3)
    0.065
    """
    weight = _check_rows(dist, sample_weight)
    return _mean(crps_losses(y_true, dist, censoring, weight), weight)


def log_score(
    y_true: ArrayLike,
    dist: PredictiveDistribution,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the mean negative log density, the log score as a loss.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, 2)
        Of two columns: lower and upper ends of targets.
    dist : PredictiveDistribution
        Of n rows.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        In nats. For a discrete target the density is probability / cell width. The
        score is infinite if an outcome never occurred in training. Of a target between
        two ends the loss is -log P(lower <= Y <= upper).

    Examples
    --------
    >>> from localexpert import PredictiveDistribution, log_score
    >>> rows = [[0.2, 0.6, 0.2], [0.1, 0.1, 0.8]]
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> round(log_score([1.0, 2.0], dist), 4)
    0.367
    """
    weight = _check_rows(dist, sample_weight)
    return _mean(log_losses(y_true, dist), weight)


def pinball_loss(
    y_true: ArrayLike,
    dist: PredictiveDistribution,
    *,
    level: float = 0.5,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the mean pinball loss of the quantile at `level`.

    Parameters
    ----------
    y_true : array-like of shape (n,)
    dist : PredictiveDistribution
        Of n rows.
    level : float
        In (0, 1).
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        Mean of :math:`(y - q)(level - 1\{y < q\})`.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution, pinball_loss
    >>> rows = [[0.2, 0.6, 0.2], [0.1, 0.1, 0.8]]
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> round(pinball_loss([1.0, 0.0], dist, level=0.9), 3)
    0.15
    """
    y, weight = _check(y_true, dist, sample_weight)
    level = check_level(level, "level")
    miss = y - dist.ppf(level)
    return _mean(np.maximum(level * miss, (level - 1.0) * miss), weight)


def interval_score(
    y_true: ArrayLike,
    dist: PredictiveDistribution,
    *,
    coverage: float = 0.9,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the mean interval (Winkler) score of the central interval.

    Parameters
    ----------
    y_true : array-like of shape (n,)
    dist : PredictiveDistribution
        Of n rows.
    coverage : float
        In (0, 1).
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        Mean width plus :math:`2 / (1 - coverage)` times the mean distance by which
        targets lie outside.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution, interval_score
    >>> rows = [[0.2, 0.6, 0.2], [0.1, 0.1, 0.8]]
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> interval_score([1.0, 2.0], dist, coverage=0.5)
    0.0
    """
    y, weight = _check(y_true, dist, sample_weight)
    low, high = dist.interval(check_level(coverage, "coverage")).T
    # The factor makes the central interval the one of least expected score.
    outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return _mean(high - low + 2.0 / (1.0 - coverage) * outside, weight)


def interval_coverage(
    y_true: ArrayLike,
    dist: PredictiveDistribution,
    *,
    coverage: float = 0.9,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the share of targets that the central interval of `coverage` covers.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, 2)
        Of two columns: lower and upper ends of targets.
    dist : PredictiveDistribution
        Of n rows.
    coverage : float
        In (0, 1).
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        Mean of `PredictiveDistribution.covered`: about `coverage` if forecasts are
        true, whatever their kind. A target with probability of its own counts by its
        share within the interval's levels. Quantiles without a law can only give the
        share inside the closed interval, which is greater if values repeat. A target
        between two ends counts by the share of the levels between them, likewise.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution, interval_coverage
    >>> rows = [[0.2, 0.6, 0.2], [0.1, 0.1, 0.8]]
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> covered = interval_coverage([1.0, 0.0], dist)
    >>> round(covered, 3)  # 1.0 and (.1 - .05) / .1
    0.75
    """
    weight = _check_rows(dist, sample_weight)
    return _mean(covered_shares(y_true, dist, coverage), weight)


def pit_test(
    y_true: ArrayLike,
    dist: PredictiveDistribution,
    *,
    random_state: int | np.random.Generator = 0,
) -> tuple[float, float]:
    """Return the Kolmogorov-Smirnov test of uniform PIT values.

    If an outcome has probability of its own, its PIT value is drawn from the jump of
    the CDF. So the test is exact for forecasts of any kind: true forecasts have uniform
    PIT values, and wrong ones still differ from them. If a target is known only to lie
    between two ends, its PIT value is drawn between the levels of the ends.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, 2)
        Of two columns: lower and upper ends of targets.
    dist : PredictiveDistribution
        Of n rows.
    random_state : int or Generator
        Seed or source of the draws.

    Returns
    -------
    statistic : float
        Greatest distance of the PIT values' distribution from the uniform one.
    p_value : float
        Its p-value if targets are independent.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution, pit_test
    >>> rows = [[0.2, 0.6, 0.2], [0.1, 0.1, 0.8]]
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> round(pit_test([1.0, 2.0], dist)[0], 2)
    0.37
    """
    result = kstest(pit_values(y_true, dist, random_state), "uniform")
    return float(result.statistic), float(result.pvalue)


def threshold_weighted_crps(
    y_true: ArrayLike,
    dist: PredictiveDistribution,
    *,
    weight: Callable[[Float64Array], Float64Array],
    n_points: int = 500,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the mean CRPS with weights for thresholds, to score a region.

    Parameters
    ----------
    y_true : array-like of shape (n,)
    dist : PredictiveDistribution
        Of n rows.
    weight : callable
        Non-negative weight of thresholds z, vectorised; for instance
        ``lambda z: z > 100``.
    n_points : int
        The integral is a midpoint sum. Its cells end at about so many thresholds of all
        rows, half of them even, half dense where the weight is large, and where the
        weight jumps. They also end at 65 quantiles of each row, at its target, and at
        values with probability of their own. The sum reaches from the least .0005
        quantile or target to the greatest .9995 quantile or target. A weight is seen
        if it is positive at one of 20 000 even places there.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        Mean of :math:`\int w(z) (F_i(z) - 1\{y_i \le z\})^2 dz`.

    References
    ----------
    Gneiting & Ranjan (2011), Comparing density forecasts using threshold- and
    quantile-weighted scoring rules.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution, threshold_weighted_crps
    >>> rows = [[0.4, 0.6]]
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
    >>> loss = threshold_weighted_crps([1.0], dist, weight=lambda z: z > 0.5)
    >>> round(loss, 3)
    0.08
    """
    y, rows = _check(y_true, dist, sample_weight)
    check_callable(weight, "weight")
    # Rows without weight must not stretch the range.
    dist, y, rows = dist[rows > 0.0], y[rows > 0.0], rows[rows > 0.0]
    n_points = check_integer(n_points, "n_points", 1)
    own = np.column_stack([dist.quantiles(_LEVELS), y])
    low, high = own.min(), own.max()
    places = _values_of(dist.law, low, high, n_points)

    def weigh(z: Float64Array) -> Float64Array:
        held = call_vectorised(weight, "weight", z.ravel()).reshape(z.shape)
        if not (held >= 0.0).all():
            refuse("weight", "return numbers from 0 on", "NaN or a negative one")
        return held

    seen = [np.linspace(low, high, _N_SEEN), places, own[:_N_ROWS].ravel()]
    shared = np.append(_mesh(weigh, np.unique(np.concatenate(seen)), n_points), places)
    losses, size = np.empty(len(y)), max(_CELLS // (len(shared) + own.shape[1]), 1)
    for start in range(0, len(y), size):
        part = slice(start, start + size)
        edges = np.hstack([np.tile(shared, (len(y[part]), 1)), own[part]])
        edges = np.sort(np.clip(edges, shared.min(), shared.max()), axis=1)
        z = 0.5 * (edges[:, 1:] + edges[:, :-1])
        gap = dist.law.take(part).cdf(z) - (y[part, None] <= z)
        losses[part] = (gap**2 * weigh(z) * np.diff(edges, axis=1)).sum(axis=1)
    return _mean(losses, rows)


def _values_of(law: Law, low: float, high: float, most: int) -> Float64Array:
    """Return up to `most` values between ends that have probability of their own."""
    values = law.clipped.atoms
    if law.step > 0.0:
        first, last = np.rint(law.lattice.places(np.array([low, high])))
        k = np.arange(first, last + 1.0, max(np.ceil((last - first) / most), 1.0))
        values = np.append(values, law.lattice.values(k))
    kept = np.linspace(0, len(values) - 1, min(len(values), most)).astype(int)
    return np.asarray(values[kept])


def _mesh(
    weigh: Callable[[Float64Array], Float64Array], z: Float64Array, n_points: int
) -> Float64Array:
    """Return thresholds between which a weight, read at z (m,), is about even.

    They lie where it is positive.
    """
    w = weigh(z)
    # A jump stays when the interval around it is halved towards the larger change.
    left, right, below, above = z[:-1], z[1:], w[:-1], w[1:]
    for _ in range(_HALVINGS):
        kept = np.abs(above - below) > _JUMP * w.max()
        left, right, below, above = (a[kept] for a in (left, right, below, above))
        middle = 0.5 * (left + right)
        between = weigh(middle)
        lower = np.abs(between - below) >= np.abs(above - between)
        left, right = np.where(lower, left, middle), np.where(lower, middle, right)
        below, above = np.where(lower, below, between), np.where(lower, between, above)
    share = np.append(0.0, np.cumsum(np.diff(z) * np.maximum(w[1:], w[:-1])))
    held = np.flatnonzero(np.diff(share))
    if len(held) == 0:
        return z[:2]
    even = np.linspace(z[held[0]], z[held[-1] + 1], n_points // 2 + 1)
    dense = np.interp(np.linspace(0.0, share[-1], n_points // 2 + 1), share, z)
    return np.unique(np.concatenate([even, dense, left, right]))


class DistributionScorer:
    """A scorer for `GridSearchCV` and `cross_val_score`: greater is better.

    It scores every model that `predict_dist` takes: pipelines, searches and others.

    Parameters
    ----------
    loss : callable
        One of the losses of this module, ``loss(y, dist, **options)``.
    **options
        Options of the loss.

    Examples
    --------
    >>> from localexpert.metrics import DistributionScorer, pinball_loss
    >>> DistributionScorer(pinball_loss, level=0.9)
    DistributionScorer(pinball_loss, level=0.9)
    """

    def __init__(self, loss: Callable[..., float], **options: Any):
        self.loss = loss
        self.options = options
        self._sample_weight: bool | str | None = None

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return minus the loss of `predict_dist(estimator, X)`."""
        dist = predict_dist(estimator, X)
        return -self.loss(y, dist, sample_weight=sample_weight, **self.options)

    def set_score_request(self, *, sample_weight: bool | str | None = None) -> Self:
        """Choose whether weights reach the loss if scikit-learn routes metadata.

        Parameters
        ----------
        sample_weight : bool, str or None
            True: weights are passed on. False: they are not. None: weights are an
            error. A text: weights are passed on, and have this name.

        Returns
        -------
        self
        """
        if not get_config()["enable_metadata_routing"]:
            msg = (
                "set_score_request needs metadata routing, got it disabled: call "
                "sklearn.set_config(enable_metadata_routing=True) first."
            )
            raise RuntimeError(msg)
        self._sample_weight = sample_weight
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the request; by default it is open.

        Returns
        -------
        MetadataRequest
        """
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=self._sample_weight)
        return request

    def __repr__(self) -> str:
        options = "".join(f", {k}={v!r}" for k, v in self.options.items())
        name = getattr(self.loss, "__name__", repr(self.loss))
        return f"DistributionScorer({name}{options})"


crps_scorer = DistributionScorer(crps_score)
log_scorer = DistributionScorer(log_score)


def _check(
    y_true: ArrayLike, dist: PredictiveDistribution, sample_weight: ArrayLike | None
) -> tuple[Float64Array, Float64Array]:
    """Return targets and weights of the distribution's length."""
    y = check_outcomes(y_true, dist, "y_true")
    return y, check_weights(sample_weight, len(y))


def _check_rows(
    dist: PredictiveDistribution, sample_weight: ArrayLike | None
) -> Float64Array:
    """Return weights of the rows of what must be a forecast."""
    return check_weights(sample_weight, len(check_distribution(dist)))


def _mean(losses: Float64Array, weight: Float64Array) -> float:
    # Losses without weight may be infinite.
    held = weight > 0.0
    return float(losses[held] @ weight[held] / weight.sum())


# Levels are clipped to this and to 1 minus this, so that scores are finite.
_LEAST_LEVEL = 1e-15
# A jump of less probability than this does not count as a jump.
_LEAST_JUMP = 1e-12
# The greatest correlation at which shares of variances are finite.
_MOST = 1.0 - 1e-9
# Scores that differ less, or of which so little is known, say nothing.
_LEAST_KNOWN = 1e-9


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
    correlation is divided by it. This is exact to first order in :math:`\rho`. The
    result lies in [-1 / (m - 1), 1], with m the rows of the largest group.

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
    if min(known, np.ptp(scores)) < _LEAST_KNOWN:
        rule = "differ between rows in what the forecasts say of it"
        refuse("y", rule, "one normal score in all rows")
    means = np.array([scores[each].mean() for each in rows])
    within = sum(((scores[r] - m) ** 2).sum() for r, m in zip(rows, means, strict=True))

    def excess(rho: float, ratio: float) -> float:
        weight = 1.0 / (rho / (1.0 - rho) + 1.0 / sizes)
        between = weight @ (means - weight @ means / weight.sum()) ** 2
        return float(between / (n_groups - 1) - ratio * within / (n - n_groups))

    least = -1.0 / (most - 1)

    def solve(ratio: float) -> float:
        first = least + 1e-9 * (1.0 - least)
        if excess(first, ratio) <= 0.0:
            return least
        if excess(_MOST, ratio) >= 0.0:
            return 1.0
        return float(brentq(excess, first, _MOST, args=(ratio,), xtol=1e-12))

    tails = 0.5 * np.array([1.0 + level, 1.0 - level])
    ratios = [1.0, *f_law.ppf(tails, n_groups - 1, n - n_groups)]
    rho, *ends = np.clip([solve(float(t)) / known for t in ratios], least, 1.0)
    return CorrelationEstimate(float(rho), np.array(ends), level, n_groups, n)


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
