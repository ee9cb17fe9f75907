"""Evidence, row by row, that log-odds or scores are off: e-processes and intervals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit, log_expit

from calibration.typing import Float64Array

#: A shift up to this many standard errors of the fit does not count as one.
ERRORS = 1.25
# Information that holds the line to the log-odds themselves: at first, and at least.
_FIRST, _LEAST = 25.0, 1.0
# A row may be off by this many tolerances, because the slope of a fit has an error too.
# But that error is never so large that forecasts near 0 or 1 could say nothing.
_WIDER, _MOST_SLOPE = 2.0, 0.8
# Shares of a line's wealth: on the learned line, and on forecasts that say nothing.
_LINE_SHARES = (0.9, 0.1)
# A map of steps has at most this many values.
_MOST_STEPS = 500
# A tolerance of 0 stands for a fit this good.
_LEAST_TOLERANCE = 1e-9
# A change is as likely within this many rows as at any time after them.
_ROWS = 4000.0
# Points of the null at which the likelihood is kept. Between them it is bounded.
_N_NULL = 25
# Shares of the sizes of a shift that the process looks for.
_SHARES = (0.25, 0.4, 0.25, 0.1)
# Standard deviation of the shifts in the numerator of an interval.
_SPREAD = 0.5


class OnsetMixture:
    r"""Wealth that is bet on several alternatives from every batch on.

    Before a batch of the rows from a to b, the share :math:`c/(a+c) - c/(b+c)` of the
    first wealth is put on the alternatives. From then on it is multiplied by their
    factors. The shares of all batches sum to 1 at most, however rows are split into
    batches. A mixture of test martingales is a test martingale. Looking for a change
    costs little: before the change hardly anything has been bet. Further axes hold many
    histories that are looked at together.

    Parameters
    ----------
    shares : array-like of shape (k,)
        Shares of the alternatives. They sum to 1.
    """

    def __init__(self, shares: ArrayLike):
        self.log_shares: Float64Array = np.log(shares)
        self.rows = 0.0
        # The bets on each alternative, times its factors since then.
        self.log_started = np.full(len(self.log_shares), -np.inf)

    def bet(self, log_factors: Float64Array, n: float) -> None:
        """Add a batch of n rows with a factor (..., k) for each alternative."""
        begun = _ROWS * n / ((self.rows + _ROWS) * (self.rows + n + _ROWS))
        self.log_started = np.logaddexp(self.log_started, np.log(begun)) + log_factors
        self.rows += n

    @property
    def log_e(self) -> Float64Array:
        """Logarithm of all wealth (...): what is bet, and what still waits."""
        bet = np.logaddexp.reduce(self.log_shares + self.log_started, axis=-1)
        return np.asarray(np.logaddexp(bet, np.log(_ROWS / (self.rows + _ROWS))))


class ShiftProcess(OnsetMixture):
    r"""An e-process against all constant shifts in [-tolerance, tolerance].

    Let :math:`L_t(d)` be the likelihood of the rows so far under the shift d. Then

    .. math:: E_t = \frac{\sum_j w_j \; P_j \sum_k v_k L_t(d_k) / L_j(d_k)}
       {\max_{|d| \le \tau} L_t(d)}, \qquad P_j = \sum_i u_i L_j(d_i),

    The numerator is a law of all rows. It lies within the null, weighted by u, up to an
    unknown batch j, and is shifted by an unknown :math:`d_k` from there on. The
    numerator over the likelihood of the true d is a test martingale, and it is not less
    than :math:`E_t`. So by Ville's inequality the chance that :math:`E_t` ever reaches
    :math:`1/\alpha` is at most :math:`\alpha`, for each shift of the null (universal
    inference). Tangents bound the maximum from above: the logarithm of L is concave, so
    it has no point above them.

    Parameters
    ----------
    tolerance : float
        Half the width of the null.
    sizes : ndarray of shape (4,)
        Shifts either way that the process looks for.
    """

    def __init__(self, tolerance: float, sizes: Float64Array):
        super().__init__(0.5 * np.tile(_SHARES, 2))
        self.null = np.linspace(-tolerance, tolerance, _N_NULL if tolerance else 1)
        # However wide the null is, none of these shifts lies in it.
        sizes = np.hypot(sizes, tolerance)
        # All shifts (m + k,) for which a batch has to give likelihoods.
        self.shifts = np.concatenate([self.null, sizes, -sizes])
        prior = -0.5 * (1.25 * self.null / (tolerance or 1.0)) ** 2
        self.log_prior = prior - np.logaddexp.reduce(prior)
        # The likelihood (..., m) over the likelihood without a shift, and its
        # derivative.
        self.log_null, self.slope_null = np.zeros((2, len(self.null)))

    def step(
        self, log_ratios: Float64Array, slopes: Float64Array, n: float
    ) -> Float64Array:
        """Add a batch of n rows and return the ratios, for `find_onset`.

        Parameters
        ----------
        log_ratios, slopes : ndarrays of shape (..., m + k)
            Log-likelihood of the batch at `shifts` less that without one, and
            derivatives.
        n : float
        """
        m, before = len(self.null), self._log_within
        self.log_null = self.log_null + log_ratios[..., :m]
        self.slope_null = self.slope_null + slopes[..., :m]
        # Take them relative to the law within the null, which has the value 1 in the
        # mixture.
        gained = (self._log_within - before)[..., None]
        self.bet(log_ratios[..., m:] - gained, n)
        return log_ratios

    @property
    def _log_within(self) -> Float64Array:
        """Logarithm (...) of the law of all rows within the null."""
        return np.asarray(np.logaddexp.reduce(self.log_prior + self.log_null, axis=-1))

    @property
    def log_e(self) -> Float64Array:
        """Logarithm of the e-value (...)."""
        bound = bound_concave(self.null, self.log_null, self.slope_null)
        return np.asarray(self._log_within - bound + super().log_e)

    def find_onset(self, log_ratios: Float64Array) -> int:
        """Return in which span (t, m + k) the change most likely began."""
        m, total = len(self.null), np.cumsum(log_ratios, axis=0)
        upto = np.vstack([np.zeros(total.shape[1]), total[:-1]])
        fit = upto[:, :m].max(axis=1) + (total[-1] - upto)[:, m:].max(axis=1)
        return int(np.argmax(fit))


def likeliest_start(gains: ArrayLike) -> int:
    """Return the span from which on the gains (t,) add up to the most."""
    sums = np.cumsum(np.asarray(gains)[::-1])
    return len(sums) - 1 - int(np.argmax(sums))


def bound_concave(
    points: Float64Array, values: Float64Array, slopes: Float64Array
) -> Float64Array:
    """Return upper bounds (...) of concave functions between the first and last point.

    Parameters
    ----------
    points : ndarray of shape (m,)
    values, slopes : ndarrays of shape (..., m)
    """
    low, high = values[..., :-1], values[..., 1:]
    rise, fall = slopes[..., :-1], slopes[..., 1:]
    # Where the tangents at two neighbours meet, if the peak is between them.
    bend, width = np.where(rise > fall, rise - fall, 1.0), np.diff(points)
    way = np.clip((high - low - fall * width) / bend, 0.0, width)
    inside = (rise > 0.0) & (fall <= 0.0)
    peaks = np.where(inside, low + rise * way, low)
    return np.asarray(np.append(values, peaks, axis=-1).max(axis=-1))


def shift_likelihoods(
    f: Float64Array, weight0: Float64Array, weight1: Float64Array, shifts: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return log-likelihood ratios of shifts of log-odds, and their derivatives.

    Parameters
    ----------
    f, weight0, weight1 : ndarrays of shape (..., n)
        Log-odds, and the weight of each class.
    shifts : ndarray of shape (m,)

    Returns
    -------
    log_ratios, slopes : ndarrays of shape (..., m)
        Likelihood over the likelihood without a shift, and its derivatives.
    """
    rows, zeros = weight0 + weight1, weight0.sum(axis=-1)
    at_zero = np.sum(rows * log_expit(f), axis=-1)

    def move(shift: float) -> tuple[Float64Array, Float64Array]:
        # The logarithm of 1 - p is that of p less the log-odds.
        gained = np.sum(rows * log_expit(f + shift), axis=-1) - at_zero
        ones = np.sum(weight1 - rows * expit(f + shift), axis=-1)
        return gained - zeros * shift, ones

    # One shift at a time: the table of all shifts may not fit into memory.
    log_ratios, slopes = np.moveaxis(np.array([move(d) for d in shifts]), 0, -1)
    return log_ratios, slopes


def shift_interval(
    likelihood: Callable[[Float64Array], Float64Array], alpha: float, reach: float
) -> tuple[float, float]:
    r"""Return the shifts d whose likelihood is not beaten 1 / alpha to 1.

    .. math:: \{d : L(d) \ge \alpha \int L(s) \, \phi(s / 0.5) / 0.5 \, ds\}

    By Ville's inequality the true d lies in all of these sets at once with probability
    1 - alpha at least, however often one looks.

    Parameters
    ----------
    likelihood : callable
        Log-likelihood ratios of shifts (m,).
    alpha : float
    reach : float
        Greatest shift either way that is searched.

    Returns
    -------
    low, high : float
        Infinite if nothing speaks against any shift on that side.
    """
    coarse = np.linspace(-reach, reach, 601)
    peak = float(coarse[np.argmax(likelihood(coarse))])
    # The likelihood may be as narrow as one over the root of its rows.
    fine = peak + 0.2 * np.sinh(np.linspace(-8.0, 8.0, 801)) / np.sinh(8.0)
    points = np.union1d(coarse, fine)
    logs = likelihood(points)
    prior = -0.5 * (points / _SPREAD) ** 2 - np.log(_SPREAD * np.sqrt(2.0 * np.pi))
    width = np.gradient(points)
    least = np.log(alpha) + np.logaddexp.reduce(logs + prior + np.log(width))
    peak = float(points[np.argmax(logs)])

    def spare(shift: float) -> float:
        return float(likelihood(np.array([shift]))[0] - least)

    low, high = (
        end * np.inf if spare(end) >= 0.0 else brentq(spare, peak, end, xtol=1e-13)
        for end in (-reach, reach)
    )
    return low, high


class LineBets(OnsetMixture):
    r"""An e-process against all shifts within the tolerance, row by row.

    The line a + b f of the log-odds f is learned on earlier batches, by a Newton step
    for each batch. Older batches count less. The factor of a row is the likelihood of
    the line's log-odds over that of the nearest log-odds in :math:`f \pm \max(2 \tau,
    \min(2 \tau, .8) |f|)`, or in a wider range. Its mean is at most 1 if the row's
    log-odds are anywhere in that range: it is 1 at the near end, and less further in. A
    share is bet on even odds for all rows. It finds sure forecasts that are wrong both
    ways, in their first batch.

    Parameters
    ----------
    tolerance : float
    memory : float
        After this many rows a row counts half.
    line : array-like of shape (2,)
        Intercept and slope of the first bets.
    """

    def __init__(self, tolerance: float, memory: float, line: ArrayLike = (0.0, 1.0)):
        super().__init__(_LINE_SHARES)
        self.tolerance, self.memory = tolerance, memory
        self.line: Float64Array = np.array(line)
        # Information of the rows from which the line was learned.
        self.information = _FIRST * np.eye(2)

    def step(
        self,
        f: Float64Array,
        weight0: Float64Array,
        weight1: Float64Array,
        low: float | Float64Array = np.inf,
        high: float | Float64Array = -np.inf,
        thinned: tuple[Float64Array, Float64Array] | None = None,
    ) -> None:
        """Bet on the outcomes of a batch, then learn from them.

        Parameters
        ----------
        f, weight0, weight1 : ndarrays of shape (..., n)
            Log-odds, and the weight of each class. All histories have the same.
        low, high : float or ndarray of shape (..., n)
            How far the truth may be from f, if this is farther than the tolerance
            allows.
        thinned : tuple of two ndarrays of shape (..., n), optional
            Weights of non-events in bets below f, and of events in bets above it.
        """
        weight, (thin0, thin1) = weight0 + weight1, thinned or (weight0, weight1)
        n = float(weight.sum() / max(weight[..., 0].size, 1))
        off = _WIDER * self.tolerance
        reach = np.maximum(off, min(off, _MOST_SLOPE) * np.abs(f))
        ends = np.minimum(f - reach, low), np.maximum(f + reach, high)
        said = self.line[..., :1] + self.line[..., 1:] * f

        def gain(bet: Float64Array) -> Float64Array:
            near = np.clip(bet, *ends)
            one, zero = np.where(bet > f, (thin1, weight0), (weight1, thin0))
            gain1 = one * (log_expit(bet) - log_expit(near))
            gain0 = zero * (log_expit(-bet) - log_expit(-near))
            return np.asarray(np.sum(gain1 + gain0, axis=-1))

        bets = [gain(said), gain(np.zeros_like(f))]
        self.bet(np.stack(bets, axis=-1), n)
        p = expit(said)
        design = np.stack([np.ones_like(f), f], axis=-1)
        bend = (weight * p * (1.0 - p))[..., None] * design
        new = np.swapaxes(design, -1, -2) @ bend
        self.information = 0.5 ** (n / self.memory) * self.information + new
        pull = np.sum((weight1 - weight * p)[..., None] * design, axis=-2)
        held = self.information + _LEAST * np.eye(2)
        self.line = self.line + np.linalg.solve(held, pull[..., None])[..., 0]


class StepErrors:
    r"""Bounds on the log-odds of forecasts that repeat, as those of steps do.

    A step of isotonic regression, or a bin, is a rate among m rows of the fit. It is
    off by more than a shift of all rows is. Where it says 0 or 1 it is off to one side:
    if 14 rows had no event, one in 14 may still be true. The number m is the rows of
    the whole fit times the step's share of the rows so far. If p is the forecast of the
    step, the truth may be as near to even odds as

    .. math:: \log\frac{m p + 1}{m (1 - p) + 1} \pm
        1.25 \sqrt{\frac{1}{m p + 1} + \frac{1}{m (1 - p) + 1}}.

    The number of rows of the fit is that for which the tolerance is 1.25 standard
    errors. More than 500 values do not count as steps. The bounds depend on forecasts
    alone, not on outcomes, so outcomes can be bet against the null within them.

    Parameters
    ----------
    tolerance : float
    """

    def __init__(self, tolerance: float):
        self.tolerance = tolerance
        # The log-odds so far, sorted, and the weight of the rows with each.
        self.values, self.weight = np.empty((2, 0))
        self.is_smooth = False

    def step(
        self, f: Float64Array, weight: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Count the forecasts of a batch. Return how far the truth may be from them.

        Parameters
        ----------
        f, weight : ndarrays of shape (n,)
            Log-odds, and weights of the rows.

        Returns
        -------
        low, high : ndarrays of shape (n,)
            An infinite end does not widen the bounds that others set.
        """
        low, high = np.full(len(f), np.inf), np.full(len(f), -np.inf)
        if self.is_smooth:
            return low, high
        both = np.concatenate([self.values, f])
        self.values, place = np.unique(both, return_inverse=True)
        rows = np.concatenate([self.weight, weight])
        self.weight = np.bincount(place.ravel(), weights=rows).astype(np.float64)
        if len(self.values) > _MOST_STEPS:
            self.values, self.weight = np.empty(0), np.empty(0)
            self.is_smooth = True
            return low, high
        at = place.ravel()[-len(f) :]
        even, error = (part[at] for part in self._rates())
        repeats = self.weight[at] > 1.0
        high = np.where(repeats & (f < 0.0), even + error, high)
        return np.where(repeats & (f >= 0.0), even - error, low), high

    def _rates(self) -> tuple[Float64Array, Float64Array]:
        """Return log-odds (m,) of steps with a row more of each class, and errors."""
        p = expit(self.values)
        spread = float(self.weight @ (p * (1.0 - p)))
        rows = self.weight * (ERRORS / max(self.tolerance, _LEAST_TOLERANCE)) ** 2
        rows /= spread
        ones, zeros = rows * p + 1.0, rows * (1.0 - p) + 1.0
        return np.log(ones / zeros), ERRORS * np.sqrt(1.0 / ones + 1.0 / zeros)
