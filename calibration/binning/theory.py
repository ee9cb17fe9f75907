"""Bounds on the error of histogram binning, and on the AUC that it can lose.

Notation of the thesis, chapter 5: N rows in B bins of equal frequency, the bins chosen
without looking at the labels; theta_b is the true event rate in bin b, and the
calibrated probability in it is the observed rate.
"""

from __future__ import annotations

import math

from calibration._validation import check_integer, check_level, check_number


def mce_bound(n: float, n_bins: int, delta: float) -> float:
    r"""Return a bound that the maximum calibration error breaks with chance <= delta.

    Parameters
    ----------
    n : float
        Number of rows (sum of weights) that the calibrator was fitted on.
    n_bins : int
        Number of bins of equal frequency.
    delta : float
        Chance that the bound may fail, in (0, 1).

    Returns
    -------
    float
        The bound. Above 1 it says nothing.

    Notes
    -----
    Theorem 5.2.1: with probability at least :math:`1 - \delta`

    .. math:: MCE \le \sqrt{\frac{2 B \log(2 B / \delta)}{N}} .

    The bound is for the population's error, between the calibrated probabilities and
    the *known* event rates. An estimate on test data also has the noise of the test
    set, and may exceed it. Hoeffding's inequality in every bin and a union bound
    already give half of this. The rest is slack of the thesis's eq. 5.3.

    References
    ----------
    Pakdaman Naeini (2016), Obtaining accurate probabilities using classifier
    calibration, theorem 5.2.1.

    Examples
    --------
    >>> from calibration.binning.theory import mce_bound
    >>> round(mce_bound(100_000, 10, delta=0.05), 3)
    0.035
    """
    n = check_number(n, "n", 0.0, open_low=True)
    n_bins = check_integer(n_bins, "n_bins", 1)
    delta = check_level(delta, "delta")
    return math.sqrt(2.0 * n_bins * math.log(2.0 * n_bins / delta) / n)


def ece_bound(n: float, n_bins: int) -> float:
    r"""Return a bound on the mean of the expected calibration error.

    Parameters
    ----------
    n : float
        Number of rows (sum of weights) that the calibrator was fitted on.
    n_bins : int
        Number of bins of equal frequency.

    Returns
    -------
    float
        Bound on the mean over training sets. Above 1 it says nothing.

    Notes
    -----
    Theorem 5.2.2 gives the rate :math:`C \sqrt{B / N}`. Its proof integrates the tails.
    With the tails of eq. 5.1 for each bin, this gives the constant:

    .. math::

        E|\hat\theta_b - \theta_b|
        \le \int_0^\infty 2 e^{-2 N t^2 / B} \, dt = \sqrt{\frac{\pi B}{2 N}} .

    The error of a union of bins is at most the mean of their errors (eq. 5.2), and ECE
    is a mean over bins. It is the population's error, against the known rates.

    References
    ----------
    Pakdaman Naeini (2016), Obtaining accurate probabilities using classifier
    calibration, theorem 5.2.2.

    Examples
    --------
    >>> from calibration.binning.theory import ece_bound
    >>> round(ece_bound(100_000, 10), 4)
    0.0125
    """
    n = check_number(n, "n", 0.0, open_low=True)
    n_bins = check_integer(n_bins, "n_bins", 1)
    return math.sqrt(math.pi * n_bins / (2.0 * n))


def auc_loss_bound(n_bins: int) -> float:
    r"""Return the most AUC that binning can lose as n grows, 1 / (2 B).

    Parameters
    ----------
    n_bins : int
        Number of bins of equal frequency.

    Returns
    -------
    float
        Bound on AUC(scores) - AUC(calibrated).

    Notes
    -----
    Theorem 5.2.5: as N grows the order of the bins becomes that of their true rates,
    which loses nothing, and pairs within a bin lose at most

    .. math::

        \frac{\sum_b \theta_b (1 - \theta_b)}
             {2 \sum_b \theta_b \sum_b (1 - \theta_b)} \le \frac{1}{2 B}

    by Chebyshev's sum inequality. If the rates of the bins are not in the order of the
    scores, calibration gains AUC.

    References
    ----------
    Pakdaman Naeini (2016), Obtaining accurate probabilities using classifier
    calibration, theorem 5.2.5.

    Examples
    --------
    >>> from calibration.binning.theory import auc_loss_bound
    >>> auc_loss_bound(10)
    0.05
    """
    return 0.5 / check_integer(n_bins, "n_bins", 1)
