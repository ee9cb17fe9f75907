"""`ExpectedLosses`: how good forecasts are, by their own word, before outcomes come."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from calibration.typing import Float64Array
from localexpert._validation import check_choice, check_level
from localexpert.distribution.pointwise import PointwiseAnswers
from localexpert.law.basis import STANDARD
from localexpert.law.law import Law

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


class ExpectedLosses(PointwiseAnswers):
    """Losses as the forecasts expect them; a base of `PredictiveDistribution`."""

    def expected_crps(self) -> Float64Array:
        r"""Return the CRPS that each forecast expects of itself, E crps(Y).

        Returns
        -------
        ndarray of shape (n,)
            Right to about 1e-6 of itself; infinite where the mean is not finite.

        Notes
        -----
        If Y comes from the forecast, the mean CRPS is half the mean distance of two
        draws,

        .. math:: E\,crps(F, Y) = \int F (1 - F) = \tfrac12 E|Y - Y'|.

        A calibrated forecast so tells its own error without a label; one that is too
        sure of itself promises too little.

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
        """Return the absolute error that each forecast expects of its median.

        Returns
        -------
        ndarray of shape (n,)
            E abs(Y - median), right to about 1e-6 of itself; infinite where the mean is
            not finite.

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
        r"""Return the mean loss over all rows that is to be expected, with an interval.

        Parameters
        ----------
        loss : {"crps", "abs_error"}
            CRPS, or the absolute error of the median.
        coverage : float
            Of the interval, in (0, 1).

        Returns
        -------
        ExpectedMean

        Notes
        -----
        The interval is for the mean loss of outcomes that come from the forecasts,
        independent between rows: normal, with the variance
        :math:`\sum_i Var\,loss_i(Y_i) / n^2`, right to a hundredth or so, and not below
        0. A realised mean outside
        of it says that rows or forecasts are not what they were.

        Examples
        --------
        >>> from localexpert import PredictiveDistribution
        >>> rows = [[0.9, 0.1]] * 400
        >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
        >>> told = dist.expected_mean()
        >>> round(told.mean, 3), round(told.low, 3), round(told.high, 3)
        (0.09, 0.066, 0.114)
        """
        check_choice(loss, "loss", LOSSES)
        level = check_level(coverage, "coverage")
        n = len(self.law)
        if n == 0:
            msg = "`expected_mean` needs at least one row, got none."
            raise ValueError(msg)
        means = expected_by_loss(self.law)[loss]
        return mean_of_rows(means, loss_variances(self.law, loss, means), level)


def mean_of_rows(
    means: Float64Array, variances: Float64Array, coverage: float
) -> ExpectedMean:
    """Return the mean of independent losses with an interval.

    Parameters
    ----------
    means, variances : ndarrays of shape (n,)
        Of the loss of each row.
    coverage : float

    Returns
    -------
    ExpectedMean
    """
    return mean_of_sums(
        float(means.sum()), float(variances.sum()), len(means), coverage
    )


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
    """Return the losses that each row of a law expects of itself, shape (n,) each.

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
    """Return the variance of each row's loss of an outcome of its own, shape (n,).

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
    """Return outcomes (n, m) and shares that stand for them in means of losses."""
    if law.is_discrete:
        return law.nodes()
    at, shares = STANDARD.greville, STANDARD.greville_weights
    return law.ppf_scores(np.tile(at, (len(law), 1))), shares


def _median(law: Law) -> Float64Array:
    """Return the medians of the rows, shape (n, 1)."""
    return law.ppf(np.full((len(law), 1), 0.5))
