"""`AskedForecasts`: what laws say at values and levels, and losses they expect."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from calibration._validation import (
    check_choice,
    check_in_unit,
    check_level,
    check_vector,
    refuse,
    show,
)
from calibration.typing import Float64Array
from localexpert._validation import check_levels, check_targets
from localexpert.law.basis import STANDARD
from localexpert.law.law import Law
from localexpert.law.level_map import condition
from localexpert.law.steps import draw_shares

LOSSES: tuple[str, ...] = ("crps", "abs_error")


@dataclass(frozen=True)
class ExpectedMean:
    """What the mean loss over some rows will be.

    Parameters
    ----------
    mean : float
        The expected mean.
    low, high : float
        Ends of the interval that holds the mean of the outcomes' losses.
    n_rows : int

    Examples
    --------
    >>> from localexpert import PredictiveDistribution
    >>> rows = [[0.5, 0.5]] * 9
    >>> coins = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
    >>> coins.expected_mean("abs_error").n_rows
    9
    """

    mean: float
    low: float
    high: float
    n_rows: int


@dataclass(frozen=True, eq=False, repr=False)
class AskedForecasts:
    """Answers to values and levels; the base of all of `PredictiveDistribution`.

    Laws know the shape (n, k) only. Every other shape is turned into it here.
    """

    law: Law

    def cdf(self, y: ArrayLike) -> Float64Array:
        """Return P(Y <= y).

        Parameters
        ----------
        y : array-like that broadcasts against (n,)

        Returns
        -------
        ndarray of the broadcast shape
        """
        return self._at(self.law.cdf, self._values(y))

    def sf(self, y: ArrayLike) -> Float64Array:
        """Return P(Y > y), accurate where it is small.

        Parameters
        ----------
        y : array-like that broadcasts against (n,)

        Returns
        -------
        ndarray of the broadcast shape
        """
        return self._at(self.law.sf, self._values(y))

    def pdf(self, y: ArrayLike) -> Float64Array:
        """Return the density at y.

        Parameters
        ----------
        y : array-like that broadcasts against (n,)

        Returns
        -------
        ndarray of the broadcast shape
        """
        return self._at(self.law.pdf, self._values(y))

    def logpdf(self, y: ArrayLike) -> Float64Array:
        """Return the log density at y; it is finite everywhere in the support.

        Parameters
        ----------
        y : array-like that broadcasts against (n,)

        Returns
        -------
        ndarray of the broadcast shape
        """
        return self._at(self.law.logpdf, self._values(y))

    def ppf(self, q: ArrayLike) -> Float64Array:
        """Return the quantile: the least y with P(Y <= y) >= q.

        Parameters
        ----------
        q : array-like that broadcasts against (n,)
            Levels in [0, 1].

        Returns
        -------
        ndarray of the broadcast shape
        """
        levels = check_targets(q, "q", len(self.law))
        if levels.size:
            check_in_unit(float(levels.min()), float(levels.max()), "q")
        return self._at(self.law.ppf, levels)

    def pit(
        self, y: ArrayLike, random_state: int | np.random.Generator | None = None
    ) -> Float64Array:
        """Return the probability integral transform, uniform for a true forecast.

        It is P(Y <= y) if y has no probability of its own. If it has, the CDF jumps
        at y: the answer is the middle of the jump, or with `random_state` a uniform
        draw from the jump. Only the draw is uniform for a true forecast.

        Parameters
        ----------
        y : array-like that broadcasts against (n,)
        random_state : int or Generator, optional
            Seed or source of the draws. A seed does not give the draws of
            ``default_rng(seed)``, because y itself may come from those.

        Returns
        -------
        ndarray of the broadcast shape
        """
        values = check_targets(y, "y", len(self.law))
        share: float | Float64Array = 0.5
        if random_state is not None:
            share = draw_shares(random_state, values.shape)
        upto = self._at(self.law.cdf, values)
        if not self.law.has_jumps:
            return upto
        below = self._at(self.law.cdf_left, values)
        return below + share * (upto - below)

    def covered(self, y: ArrayLike, coverage: float = 0.9) -> Float64Array:
        r"""Return how much of y the central interval covers: 1, 0, or a share.

        If y has no probability of its own, it lies inside `interval(coverage)` or
        outside. If it has, and the interval ends at y, the interval covers a share.

        Parameters
        ----------
        y : array-like that broadcasts against (n,)
        coverage : float
            Probability of the interval, in (0, 1).

        Returns
        -------
        ndarray of the broadcast shape
            Their mean is `coverage` if the forecast is true, whatever its kind.

        Notes
        -----
        The interval holds the levels from :math:`a = (1 - coverage) / 2` to 1 - a.
        Where the CDF jumps from :math:`F(y-)` to :math:`F(y)`, the answer is the share
        of the jump's levels that the interval holds,

        .. math:: \frac{\max(0, \min(F(y), 1 - a) - \max(F(y-), a))}{F(y) - F(y-)}.

        It is the probability that the interval holds a PIT value drawn from the jump.
        If values at the ends counted as inside, true forecasts of few values would
        cover far more than they should.

        Examples
        --------
        The 90 % interval of a fair coin is [0, 1], which holds everything:

        >>> from localexpert import PredictiveDistribution
        >>> rows = [[0.5, 0.5]]
        >>> coin = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
        >>> coin.interval(0.9), coin.covered(1.0, 0.9)
        (array([[0., 1.]]), array([0.9]))
        """
        values = check_targets(y, "y", len(self.law))
        tail = 0.5 * (1.0 - check_level(coverage, "coverage"))
        low, high = self.quantiles([tail, 1.0 - tail]).T
        inside: Float64Array = ((low <= values) & (values <= high)).astype(np.float64)
        if not self.law.has_jumps:
            return inside
        upto = self._at(self.law.cdf, values)
        below = self._at(self.law.cdf_left, values)
        held = np.minimum(upto, 1.0 - tail) - np.maximum(below, tail)
        jump = upto - below
        share = np.maximum(held, 0.0) / np.where(jump > 0.0, jump, 1.0)
        covered: Float64Array = np.where(jump > 0.0, share, inside)
        return covered

    def crps(self, y: ArrayLike) -> Float64Array:
        """Return the continuous ranked probability score, in units of y.

        Parameters
        ----------
        y : array-like that broadcasts against (n,)

        Returns
        -------
        ndarray of the broadcast shape
            The integral of (F(x) - 1{y <= x})^2 over x.
        """
        return self._at(self.law.crps, check_targets(y, "y", len(self.law)))

    def log_score(self, y: ArrayLike) -> Float64Array:
        """Return the negative log density at y.

        Parameters
        ----------
        y : array-like that broadcasts against (n,)

        Returns
        -------
        ndarray of the broadcast shape
        """
        return -self._at(self.law.logpdf, check_targets(y, "y", len(self.law)))

    def partial_means(self, y: ArrayLike) -> tuple[Float64Array, Float64Array]:
        """Return E max(y - Y, 0) and E max(Y - y, 0), the two parts of E abs(Y - y).

        Parameters
        ----------
        y : array-like that broadcasts against (n,)

        Returns
        -------
        below, above : ndarrays of the broadcast shape
        """
        values = check_targets(y, "y", len(self.law))
        below, above = self.law.partial_means(self._columns(values))
        return _like(values, below), _like(values, above)

    def prob_between(self, a: ArrayLike, b: ArrayLike) -> Float64Array:
        """Return P(a <= Y <= b), 0 where a > b.

        Parameters
        ----------
        a, b : array-likes that broadcast against (n,)
            Either may be infinite.

        Returns
        -------
        ndarray of the broadcast shape
        """
        n = len(self.law)
        low, high = np.broadcast_arrays(
            check_targets(a, "a", n, finite=False),
            check_targets(b, "b", n, finite=False),
        )
        below, beyond = self.law.levels(self._columns(low), left=True)
        upto, above = self.law.levels(self._columns(high))
        # In the upper half use P(Y > y): a difference of values near 1 cancels.
        share = np.where(below < 0.5, upto - below, beyond - above)
        return np.where(high < low, 0.0, np.maximum(_like(low, share), 0.0))

    def pmf(self, y: ArrayLike) -> Float64Array:
        """Return P(Y = y), 0 where the distribution is smooth.

        Parameters
        ----------
        y : array-like that broadcasts against (n,)

        Returns
        -------
        ndarray of the broadcast shape
        """
        values = check_targets(y, "y", len(self.law), finite=False)
        return self._at(self.law.mass_at, values)

    def hazard(self, y: ArrayLike) -> Float64Array:
        """Return the density at y given Y >= y: the rate of events among the living.

        Parameters
        ----------
        y : array-like that broadcasts against (n,)

        Returns
        -------
        ndarray of the broadcast shape
            For durations in whole steps it is P(Y = y) / P(Y >= y) over the step. NaN
            where P(Y >= y) is 0.

        Examples
        --------
        >>> from localexpert import PredictiveDistribution
        >>> rows = [[0.5, 0.25, 0.25]]
        >>> lives = PredictiveDistribution.from_arrays(atoms=[1, 2, 3], masses=rows)
        >>> lives.hazard([[1], [2], [3]]).ravel()
        array([0.5, 0.5, 1. ])
        """
        values = check_targets(y, "y", len(self.law))
        columns = self._columns(values)
        alive = self.law.levels(columns, left=True)[1]
        left = np.log(np.where(alive > 0.0, alive, np.nan))
        return _like(values, np.exp(self.law.logpdf(columns) - left))

    def restricted_mean(self, limit: ArrayLike) -> Float64Array:
        r"""Return E min(Y, limit), the mean life up to a limit.

        Parameters
        ----------
        limit : array-like that broadcasts against (n,)

        Returns
        -------
        ndarray of the broadcast shape
            Where Y is not negative it is the area under the survival function,
            :math:`\int_0^{limit} P(Y > y) dy`. No assumption on what lies beyond the
            limit enters.

        Examples
        --------
        >>> from localexpert import PredictiveDistribution
        >>> rows = [[0.5, 0.25, 0.25]]
        >>> lives = PredictiveDistribution.from_arrays(atoms=[1, 2, 3], masses=rows)
        >>> lives.restricted_mean(2.0)
        array([1.5])
        """
        values = check_targets(limit, "limit", len(self.law))
        return values - _like(values, self.law.partial_means(self._columns(values))[0])

    def given(self, *, lower: ArrayLike = -np.inf, upper: ArrayLike = np.inf) -> Self:
        """Return the distributions of Y given lower <= Y <= upper.

        With ``lower`` alone they are those of rows that have lived so long.

        Parameters
        ----------
        lower, upper : array-likes that broadcast to (n,)
            Either may be infinite. Values of positive probability at the ends belong
            to the interval.

        Returns
        -------
        PredictiveDistribution
            Where a curve is cut it is read anew at 91 normal scores, as exact as
            `transform` says.

        Examples
        --------
        >>> from localexpert import PredictiveDistribution
        >>> rows = [[0.5, 0.25, 0.25]]
        >>> lives = PredictiveDistribution.from_arrays(atoms=[1, 2, 3], masses=rows)
        >>> lives.given(lower=2.0).masses
        array([[0. , 0.5, 0.5]])
        """
        n = len(self.law)
        named = {"lower": lower, "upper": upper}
        ends = [check_targets(named[k], k, n, finite=False) for k in named]
        for name, end in zip(named, ends, strict=True):
            if end.shape != (n,):
                rule = "be a number or have one for each row"
                refuse(name, rule, f"shape {end.shape}")
        empty = ~(self.prob_between(*ends) > 0.0)
        if empty.any():
            i = int(np.argmax(empty))
            got = f"({show(ends[0][i])}, {show(ends[1][i])}) and none of row {i}"
            rule = "hold some of the probability of every row between it and `upper`"
            refuse("lower", rule, got)
        return replace(self, law=condition(self.law, *ends))

    def quantiles(self, levels: ArrayLike) -> Float64Array:
        """Return the same quantiles of every row.

        Parameters
        ----------
        levels : array-like of shape (q,)
            Levels in [0, 1].

        Returns
        -------
        ndarray of shape (n, q)
        """
        shared = check_levels(levels, "levels")
        return self.law.ppf(np.tile(shared, (len(self.law), 1)))

    def cdf_at(self, grid: ArrayLike) -> Float64Array:
        """Return the CDF of every row at the same values.

        Parameters
        ----------
        grid : array-like of shape (g,)

        Returns
        -------
        ndarray of shape (n, g)
        """
        shared = check_vector(np.atleast_1d(np.asarray(grid)), "grid")
        return self.law.cdf(np.tile(shared, (len(self.law), 1)))

    def expected_crps(self) -> Float64Array:
        r"""Return the CRPS that each forecast expects for itself, E crps(Y).

        Returns
        -------
        ndarray of shape (n,)
            Exact to a share of about 1e-6; infinite where the mean is not finite.

        Notes
        -----
        If Y comes from the forecast, the mean CRPS is half the mean distance of two
        draws,

        .. math:: E\,crps(F, Y) = \int F (1 - F) = \tfrac12 E|Y - Y'|.

        So a calibrated forecast states its own error without a label. A forecast that
        is too sure states an error that is too small.

        References
        ----------
        Gneiting & Raftery (2007), Strictly proper scoring rules.

        Examples
        --------
        >>> from localexpert import PredictiveDistribution
        >>> rows = [[0.5, 0.5]]
        >>> coin = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
        >>> coin.expected_crps()
        array([0.25])
        """
        return expected_by_loss(self.law)["crps"]

    def expected_abs_error(self) -> Float64Array:
        """Return the absolute error that each forecast expects for its median.

        Returns
        -------
        ndarray of shape (n,)
            E abs(Y - median), exact to a share of about 1e-6; infinite where the mean
            is not finite.

        Examples
        --------
        >>> from localexpert import PredictiveDistribution
        >>> rows = [[0.5, 0.5]]
        >>> coin = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
        >>> coin.expected_abs_error()
        array([0.5])
        """
        return expected_by_loss(self.law)["abs_error"]

    def expected_mean(self, loss: str = "crps", coverage: float = 0.95) -> ExpectedMean:
        r"""Return the expected mean loss over all rows, with an interval.

        Parameters
        ----------
        loss : {"crps", "abs_error"}
            CRPS, or the absolute error of the median.
        coverage : float
            Probability of the interval, in (0, 1).

        Returns
        -------
        ExpectedMean

        Notes
        -----
        The interval is for the mean loss of outcomes that come from the forecasts and
        are independent between rows. It is normal, with the variance
        :math:`\sum_i Var\,loss_i(Y_i) / n^2`, exact to about a hundredth. It does not
        go below 0. If the realised mean lies outside, rows or forecasts have changed.

        Examples
        --------
        >>> from localexpert import PredictiveDistribution
        >>> rows = [[0.9, 0.1]] * 400
        >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
        >>> loss = dist.expected_mean()
        >>> round(loss.mean, 3), round(loss.low, 3), round(loss.high, 3)
        (0.09, 0.066, 0.114)
        """
        check_choice(loss, "loss", LOSSES)
        level = check_level(coverage, "coverage")
        n = len(self.law)
        if n == 0:
            msg = "`expected_mean` needs at least one row, got none."
            raise ValueError(msg)
        means = expected_by_loss(self.law)[loss]
        variance = loss_variances(self.law, loss, means).sum()
        return mean_of_sums(float(means.sum()), float(variance), n, level)

    def _values(self, y: ArrayLike) -> Float64Array:
        """Return values (..., n) that may be infinite."""
        return check_targets(y, "y", len(self.law), finite=False)

    def _at(
        self, method: Callable[[Float64Array], Float64Array], values: Float64Array
    ) -> Float64Array:
        """Return a law's method at values (..., n), in their shape."""
        return _like(values, method(self._columns(values)))

    def _columns(self, values: Float64Array) -> Float64Array:
        """Return values (..., n), whose last axis is the rows, as a contiguous (n, k).

        If there is a single row, all values belong to it, whatever their shape.
        """
        n = len(self.law)
        k = values.size if n == 1 else math.prod(values.shape[:-1])
        return np.ascontiguousarray(values.reshape(k, n).T)


def _like(values: Float64Array, answers: Float64Array) -> Float64Array:
    """Return answers (n, k) in the shape (..., n) of the question."""
    return answers.T.reshape(values.shape)


def mean_of_sums(
    total: float, variance: float, n: int, coverage: float
) -> ExpectedMean:
    """Return the mean of n independent losses with an interval.

    Parameters
    ----------
    total, variance : float
        Sums over the rows: of expected losses, and of their variances.
    n : int
    coverage : float

    Returns
    -------
    ExpectedMean
    """
    mean = total / n
    reach = NormalDist().inv_cdf(0.5 + 0.5 * coverage) * float(np.sqrt(variance)) / n
    return ExpectedMean(mean, max(mean - reach, 0.0), mean + reach, n)


def expected_by_loss(law: Law) -> dict[str, Float64Array]:
    """Return the losses that each row of a law expects for itself, shape (n,) each.

    Parameters
    ----------
    law : Law

    Returns
    -------
    dict of str to ndarray
        By the names in `LOSSES`.
    """
    parts, spread = law.integrals(_median(law))
    abs_error = parts[0, :, 0] + parts[1, :, 0]
    endless = ~np.isfinite(law.moments(2)[:, 0])
    return {
        "crps": np.where(endless, np.inf, spread),
        "abs_error": np.where(endless, np.inf, abs_error),
    }


def loss_variances(law: Law, loss: str, means: Float64Array) -> Float64Array:
    """Return the variance of each row's loss if Y comes from that row, shape (n,).

    Parameters
    ----------
    law : Law
    loss : {"crps", "abs_error"}
    means : ndarray of shape (n,)
        Expected losses.

    Returns
    -------
    ndarray of shape (n,)
    """
    y, shares = _outcomes(law)
    losses = law.crps(y) if loss == "crps" else np.abs(y - _median(law))
    away = losses - np.where(np.isfinite(means), means, 0.0)[:, None]
    variances = (shares * away**2).sum(axis=1)
    return np.where(np.isfinite(means), variances, np.inf)


def _outcomes(law: Law) -> tuple[Float64Array, Float64Array]:
    """Return outcomes (n, m) and their shares; both give means of losses."""
    if law.is_discrete:
        return law.nodes()
    at, shares = STANDARD.greville, STANDARD.greville_weights
    return law.ppf_scores(np.tile(at, (len(law), 1))), shares


def _median(law: Law) -> Float64Array:
    """Return the medians of the rows, shape (n, 1)."""
    return law.ppf(np.full((len(law), 1), 0.5))
