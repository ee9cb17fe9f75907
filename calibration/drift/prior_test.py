"""A test of whether rows differ from labelled ones in the prior alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2

from calibration._validation import check_integer
from calibration.drift.matched_shares import MatchedMeans
from calibration.drift.prior_rows import read_forecasts, read_labelled_rows
from calibration.typing import Float64Array

# Rows of the smallest sample that a bin should have, and how many bins at most.
_ROWS_PER_BIN = 10
_MOST_BINS = 10


@dataclass(frozen=True, eq=False)
class PriorShiftTest:
    """What a test of a change in the prior alone says.

    Parameters
    ----------
    statistic : float
        Squared distance of the bins' shares from those of the best mixture.
    dof : int
        Degrees of freedom of its chi-squared law.
    p_value : float
        How probable a statistic at least as large is if only the prior has changed.
        Small: these rows are no mixture of the classes as they were.
    prior : float, or ndarray of shape (k,)
        Of the best mixture: of class 1, or of k classes.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import prior_shift_test
    >>> p = np.linspace(0.0, 1.0, 101)
    >>> y = np.random.default_rng(0).uniform(size=101) < p
    >>> prior_shift_test(p[::2], p, y).p_value > 0.05
    True
    """

    statistic: float
    dof: int
    p_value: float
    prior: float | Float64Array


def prior_shift_test(
    p: ArrayLike,
    p_old: ArrayLike,
    y_old: ArrayLike,
    *,
    n_bins: int | None = None,
) -> PriorShiftTest:
    r"""Test whether new rows differ from labelled ones in the prior alone.

    Parameters
    ----------
    p : array-like of shape (n,) or (n, k)
        Scores or forecasts in [0, 1] of class 1, or rows of k of them, of the new
        rows. They need not be calibrated.
    p_old : array-like of shape (m,) or (m, k)
        Those of labelled rows which the classifier has not been fitted on.
    y_old : array-like of shape (m,)
        Their labels, coded 0 and 1, or as numbers of columns.
    n_bins : int, optional
        Bins of about equal numbers of rows, 3 at least; of k classes those of each
        class's column. Default: 3 to 10, with 10 rows of the rarest class for each.

    Returns
    -------
    PriorShiftTest

    Notes
    -----
    If only the prior has changed, the new scores are a mixture of the classes' scores
    as they were. With :math:`h` the shares of the new rows in the bins, :math:`M_k`
    those of the labelled rows of class k, and the prior :math:`\pi` free,

    .. math:: \min_\pi (h - M \pi)^T \Sigma^{-1} (h - M \pi), \qquad
        \Sigma = \frac{cov(h)}{n} + \sum_k \frac{\pi_k^2 cov_k}{m_k},

    is chi-squared for many rows, with as many degrees of freedom as bins that vary
    freely less k - 1, and one more for each class whose share is 0. The labelled rows
    are as much a sample as the new ones: a few hundred of them see only what is
    gross. No test without labels sees a change that looks like a mixture, as one of
    the labels of rows whose scores remain.

    References
    ----------
    Lipton, Wang & Smola (2018), Detecting and correcting for label shift with black
    box predictors. Ferguson (1996), A course in large sample theory (minimum
    chi-squared).

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import prior_shift_test
    >>> rng = np.random.default_rng(1)
    >>> def draw(n, prior, move=0.0):
    ...     y = rng.uniform(size=n) < prior
    ...     return 1.0 / (1.0 + np.exp(-rng.normal(2.0 * y - 1.0 + move, size=n))), y
    >>> p_old, y_old = draw(2000, prior=0.5)
    >>> prior_shift_test(draw(2000, prior=0.1)[0], p_old, y_old).p_value > 0.05
    True
    >>> prior_shift_test(draw(2000, 0.1, move=-0.5)[0], p_old, y_old).p_value < 0.001
    True
    """
    rows = read_forecasts(p, "p")
    held, columns, _ = read_labelled_rows(p_old, y_old, rows)
    counts = np.bincount(columns)
    if n_bins is None:
        fewest = min(len(rows), int(counts.min()))
        n_bins = min(max(fewest // _ROWS_PER_BIN, 3), _MOST_BINS)
    n_bins = check_integer(n_bins, "n_bins", 3)
    parts = [held[columns == j] for j in range(len(counts))]
    matched = MatchedMeans.of(_count_bins([rows, *parts], n_bins))
    # As many bins as classes always have a mixture that fits.
    if matched.rank < len(counts):
        msg = (
            f"`p` must take values in more than {len(counts)} bins, the number of "
            f"classes, got {1 + matched.rank}."
        )
        raise ValueError(msg)
    statistic, rank, shares = matched.nearest()
    dof = max(rank - int((shares > 0.0).sum()) + 1, 1)
    prior = float(shares[1]) if rows.ndim == 1 else shares
    return PriorShiftTest(statistic, dof, float(chi2.sf(statistic, dof)), prior)


def _count_bins(parts: list[Float64Array], n_bins: int) -> list[Float64Array]:
    """Return which bins the rows of each part are in, arrays of shape (n, q) of 0/1.

    The bins are of all rows together, and know nothing of labels.
    """
    pooled = np.concatenate(parts)
    inside = np.linspace(0.0, 1.0, n_bins + 1)[1:-1]
    tables = [part[:, None] if part.ndim == 1 else part for part in parts]
    columns = pooled[:, None] if pooled.ndim == 1 else pooled
    found: list[list[Float64Array]] = [[] for _ in parts]
    for j in range(columns.shape[1]):
        edges = np.unique(np.quantile(columns[:, j], inside))
        for table, held in zip(tables, found, strict=True):
            place = np.searchsorted(edges, table[:, j], side="left")
            # Of bins that make up all rows, one is told by the others.
            held.append((place[:, None] == np.arange(len(edges))).astype(np.float64))
    return [np.hstack(held) for held in found]
