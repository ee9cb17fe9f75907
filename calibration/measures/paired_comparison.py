"""Two methods over many data sets: by how much one changes the loss of the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from calibration._validation import as_numbers, check_level
from calibration.measures.rank_tests import pairwise_wilcoxon
from calibration.typing import Float64Array


@dataclass(frozen=True)
class PairedComparison:
    """A method against a reference over data sets; build it with `compare_pair`.

    Parameters
    ----------
    n_sets, wins, ties : int
        Number of data sets, of those where the loss is below the reference's, and of
        those where it equals it.
    relative_change : float
        Mean of (loss - reference) / reference; negative where the method is better.
    interval : (float, float)
        Confidence interval of that mean.
    level : float
        Its coverage.
    sign_p, wilcoxon_p, t_p : float
        Two-sided p-values of the sign test, of Wilcoxon's signed-rank test and of the
        paired t-test of the losses.

    Examples
    --------
    >>> from calibration import compare_pair
    >>> found = compare_pair([0.2, 0.3, 0.1, 0.4], [0.4, 0.4, 0.2, 0.4])
    >>> found.wins, found.ties, round(found.relative_change, 4)
    (3, 1, -0.3125)
    """

    n_sets: int
    wins: int
    ties: int
    relative_change: float
    interval: tuple[float, float]
    level: float
    sign_p: float
    wilcoxon_p: float
    t_p: float

    def __str__(self) -> str:
        """Return the comparison in two lines."""
        low, high = self.interval
        lost = self.n_sets - self.wins - self.ties
        return (
            f"{100.0 * self.relative_change:+.1f} % "
            f"[{100.0 * low:+.1f}, {100.0 * high:+.1f}] of the reference; "
            f"better on {self.wins}, equal on {self.ties}, worse on {lost} sets\n"
            f"sign test p = {self.sign_p:.3g}, Wilcoxon p = {self.wilcoxon_p:.3g}, "
            f"paired t p = {self.t_p:.3g}"
        )


def compare_pair(
    losses: ArrayLike, reference: ArrayLike, *, level: float = 0.95
) -> PairedComparison:
    r"""Compare a method with a reference over data sets.

    Parameters
    ----------
    losses, reference : array-like of shape (n_sets,)
        A positive loss of each on every data set, two sets or more. Of a score that
        is the better the higher, wins are losses.
    level : float
        Coverage of the interval, in (0, 1).

    Returns
    -------
    PairedComparison
        Its string says all of it.

    Notes
    -----
    With :math:`x_i = (a_i - b_i) / b_i` on N data sets, a the losses and b those of
    the reference, the interval is :math:`\bar x \pm t_{N-1} s_x / \sqrt N`. The sign
    test leaves ties out and the t-test is of a - b, which large losses rule; see
    `compare_methods` for more than two methods.

    References
    ----------
    Naeini (2016), Obtaining accurate probabilities using classifier calibration,
    equation 4.1. Demsar (2006), Statistical comparisons of classifiers over multiple
    data sets.

    Examples
    --------
    >>> from calibration import compare_pair
    >>> ece, raw = [0.02, 0.05, 0.03, 0.04, 0.02], [0.05, 0.06, 0.09, 0.07, 0.03]
    >>> print(compare_pair(ece, raw))
    -43.9 % [-69.0, -18.8] of the reference; better on 5, equal on 0, worse on 0 sets
    sign test p = 0.0625, Wilcoxon p = 0.0625, paired t p = 0.0378
    """
    a, b = _check_losses(losses, "losses"), _check_losses(reference, "reference")
    if len(a) != len(b) or len(a) < 2:
        msg = (
            "`losses` and `reference` must hold one loss of each of the same data "
            f"sets, two or more, got {len(a)} and {len(b)}."
        )
        raise ValueError(msg)
    level = check_level(level, "level")
    change = (a - b) / b
    mean, error = float(change.mean()), float(change.std(ddof=1) / np.sqrt(len(a)))
    reach = float(stats.t.isf(0.5 - 0.5 * level, len(a) - 1)) * error
    wins, ties = int((a < b).sum()), int((a == b).sum())
    apart = len(a) - ties
    sign_p = stats.binomtest(wins, apart).pvalue if apart else 1.0
    return PairedComparison(
        len(a),
        wins,
        ties,
        mean,
        (mean - reach, mean + reach),
        level,
        float(sign_p),
        float(pairwise_wilcoxon(np.column_stack([a, b]))[0, 1]),
        _paired_t(a - b),
    )


def _paired_t(gaps: Float64Array) -> float:
    """Two-sided p-value of mean 0; gaps that are all alike leave no doubt."""
    if np.ptp(gaps) == 0.0:
        return float(gaps[0] == 0.0)
    return float(stats.ttest_1samp(gaps, 0.0).pvalue)


def _check_losses(losses: ArrayLike, name: str) -> Float64Array:
    """Return positive, finite losses of shape (n_sets,)."""
    found = as_numbers(losses, name)
    if found.ndim != 1:
        msg = f"`{name}` must have shape (n_sets,), got shape {found.shape}."
        raise ValueError(msg)
    wrong = np.flatnonzero(~(np.isfinite(found) & (found > 0.0)))
    if len(wrong):
        msg = (
            f"`{name}` must be positive and finite, got {found[wrong[0]]} "
            f"for set {wrong[0]}."
        )
        raise ValueError(msg)
    return found
