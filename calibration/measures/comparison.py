"""Methods over many data sets: their ranks and tests, and one method beside another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from calibration._validation import (
    as_numbers,
    check_choice,
    check_level,
    check_list,
    names_of_columns,
    refuse,
)
from calibration.typing import Float64Array


def rank_error(k: int, n: int) -> float:
    """Return the standard error of a difference of two average ranks."""
    return float(np.sqrt(k * (k + 1) / (6.0 * n)))


def friedman(ranks: Float64Array, n: int) -> tuple[float, float, float, float]:
    """Return Friedman's chi2 and p, and Iman and Davenport's F and p."""
    k = len(ranks)
    chi2 = 12.0 * n / (k * (k + 1)) * float(((ranks - 0.5 * (k + 1)) ** 2).sum())
    room = n * (k - 1) - chi2
    # If all data sets rank all methods alike, no variation is left to compare with.
    f = (n - 1) * chi2 / room if room > 1e-12 * n * k else np.inf
    chi2_p = float(stats.chi2.sf(chi2, k - 1))
    return chi2, chi2_p, float(f), float(stats.f.sf(f, k - 1, (k - 1) * (n - 1)))


def holm(p_values: Float64Array) -> Float64Array:
    """Return p-values adjusted by Holm's step-down procedure, shape (m,)."""
    order = np.argsort(p_values, kind="stable")
    steps = p_values[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def pairwise_wilcoxon(table: Float64Array) -> Float64Array:
    """Return p-values of Wilcoxon's signed-rank test of each pair, shape (k, k)."""
    k = table.shape[1]
    p_values = np.ones((k, k))
    for i, j in combinations(range(k), 2):
        a, b = table[:, i], table[:, j]
        equal = a == b  # also if both are infinite
        if equal.all():
            continue
        difference = np.subtract(a, b, out=np.zeros(len(a)), where=~equal)
        # The test uses ranks only, and ranks make infinite differences finite.
        signed = np.sign(difference) * stats.rankdata(np.abs(difference))
        p = stats.wilcoxon(signed, zero_method="zsplit").pvalue
        p_values[i, j] = p_values[j, i] = p
    return p_values


@dataclass(frozen=True, eq=False, repr=False)
class MethodComparison:
    """Rank tests of methods over data sets. Build it with `compare_methods`.

    Parameters
    ----------
    names : tuple of str
        Names of the k methods.
    n_sets : int
        Number of data sets.
    average_ranks : ndarray of shape (k,)
        Mean rank of each method. 1 is best.
    friedman_chi2, friedman_p : float
        Friedman's statistic and its p-value. They are nan for two methods.
    iman_davenport_f, iman_davenport_p : float
        Iman and Davenport's statistic and its p-value. They are nan for two methods.
    control : str
        The method that the others are compared with.
    z : ndarray of shape (k,)
        Rank difference to the control in standard errors. It is negative if a method
        ranks better than the control, and nan for two methods.
    p_values, p_holm : ndarrays of shape (k,)
        Two-sided p-values of z (of Wilcoxon's test for two methods), raw and adjusted
        by Holm. They are 1 at the control.
    wilcoxon_p, wilcoxon_p_holm : ndarrays of shape (k, k)
        Wilcoxon's signed-rank test of each pair: p-values, raw and adjusted over all
        pairs. They are 1 on the diagonal.
    level : float
        Level of the tests.

    Examples
    --------
    >>> from calibration import compare_methods
    >>> losses = [[0.3, 0.1, 0.2], [0.3, 0.1, 0.2], [0.2, 0.1, 0.3], [0.4, 0.2, 0.3]]
    >>> tests = compare_methods(losses, names=["a", "b", "c"])
    >>> tests.control, tests.average_ranks, tests.different
    ('b', array([2.75, 1.  , 2.25]), array([ True, False, False]))
    """

    names: tuple[str, ...]
    n_sets: int
    average_ranks: Float64Array
    friedman_chi2: float
    friedman_p: float
    iman_davenport_f: float
    iman_davenport_p: float
    control: str
    z: Float64Array
    p_values: Float64Array
    p_holm: Float64Array
    wilcoxon_p: Float64Array
    wilcoxon_p_holm: Float64Array
    level: float

    @property
    def p_value(self) -> float:
        """The p-value of the main test that all methods are equal.

        It is the test of Iman and Davenport. For two methods it is Wilcoxon's.
        """
        if len(self.names) == 2:
            return float(self.wilcoxon_p[0, 1])
        return self.iman_davenport_p

    @property
    def different(self) -> NDArray[np.bool_]:
        """Which methods differ from the control: the main test and Holm both reject."""
        return (self.p_holm < self.level) & (self.p_value < self.level)

    @property
    def critical_difference(self) -> float:
        """Rank difference to the control that is significant whatever the others do.

        This is the difference of Bonferroni (Dunn). Holm's procedure may find smaller
        ones.
        """
        k = len(self.names)
        quantile = stats.norm.isf(self.level / (2.0 * (k - 1)))
        return float(quantile * rank_error(k, self.n_sets))

    def __str__(self) -> str:
        """Return the tests as a table."""
        width = max(len("method"), *map(len, self.names))
        lines = [f"{len(self.names)} methods on {self.n_sets} data sets"]
        if len(self.names) == 2:
            lines += [f"Wilcoxon signed-rank: p = {self.p_value:.4g}"]
        else:
            lines += [
                f"Friedman chi2 = {self.friedman_chi2:.4g}, p = {self.friedman_p:.4g}",
                f"Iman-Davenport F = {self.iman_davenport_f:.4g}, "
                f"p = {self.iman_davenport_p:.4g}",
            ]
        lines += ["", f"{'method':<{width}}  avg rank       z        p   p Holm"]
        for i in np.argsort(self.average_ranks, kind="stable"):
            line = f"{self.names[i]:<{width}}  {self.average_ranks[i]:8.3f}"
            if self.names[i] == self.control:
                line += "  control"
            else:
                p = f"{self.p_values[i]:8.4f} {self.p_holm[i]:8.4f}"
                star = " *" if self.different[i] else ""
                z = "-" if np.isnan(self.z[i]) else f"{self.z[i]:.3f}"
                line += f" {z:>7} {p}{star}"
            lines.append(line)
        lines.append(f"* differs from {self.control} at level {self.level:g}")
        return "\n".join(lines)


def compare_methods(
    losses: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    control: str | None = None,
    level: float = 0.05,
) -> MethodComparison:
    r"""Compare methods over data sets by their ranks.

    Parameters
    ----------
    losses : array-like or DataFrame of shape (n_sets, n_methods)
        One loss of each method on each data set. Lower is better. +inf is allowed.
    names : sequence of str, optional
        Names of the methods. The default is the columns of a DataFrame, else "method 1"
        and so on.
    control : str, optional
        Name of the method with which the others are compared. The default is the one
        with the best average rank.
    level : float
        Level of the tests, in (0, 1).

    Returns
    -------
    MethodComparison
        Its string is a readable table.

    Notes
    -----
    Ranks :math:`r_{ij}` are taken for each data set, and ties are averaged. With N data
    sets, k methods and average ranks :math:`R_j`,

    .. math::
        \chi_F^2 = \frac{12 N}{k (k + 1)}
        \Bigl[\sum_j R_j^2 - \frac{k (k + 1)^2}{4}\Bigr], \qquad
        F_F = \frac{(N - 1) \chi_F^2}{N (k - 1) - \chi_F^2}, \qquad
        z_i = (R_i - R_{control}) \Big/ \sqrt{\frac{k (k + 1)}{6 N}},

    on k - 1, and k - 1 and (k - 1)(N - 1) degrees of freedom. There is no correction
    for ties, which makes the tests conservative. p-values are adjusted by Holm's
    step-down procedure. Wilcoxon's tests share zero differences between both signs. For
    two methods Wilcoxon's test is the only one.

    References
    ----------
    Demsar (2006), Statistical comparisons of classifiers over multiple data sets.
    Iman & Davenport (1980), Approximations of the critical region of the Friedman
    statistic. Holm (1979), A simple sequentially rejective multiple test procedure.

    Examples
    --------
    >>> from calibration import compare_methods
    >>> losses = [[0.20, 0.18, 0.19], [0.31, 0.25, 0.29], [0.12, 0.10, 0.11],
    ...           [0.25, 0.21, 0.26], [0.40, 0.35, 0.36]]
    >>> print(compare_methods(losses, names=["raw", "bagged", "isotonic"]))
    3 methods on 5 data sets
    Friedman chi2 = 8.4, p = 0.015
    Iman-Davenport F = 21, p = 0.0006554
    <BLANKLINE>
    method    avg rank       z        p   p Holm
    bagged       1.000  control
    isotonic     2.200   1.897   0.0578   0.0578
    raw          2.800   2.846   0.0044   0.0089 *
    * differs from bagged at level 0.05
    """
    table = _check_losses(losses)
    labels = _check_names(names, losses, table.shape[1])
    level = check_level(level, "level")
    n, k = table.shape
    # Ranks make losses of different data sets comparable. Ties share their mean rank.
    ranks = stats.rankdata(table, axis=1).mean(axis=0)
    control = labels[int(np.argmin(ranks))] if control is None else str(control)
    check_choice(control, "control", labels)
    reference = labels.index(control)
    wilcoxon = pairwise_wilcoxon(table)
    if k == 2:
        all_equal = (np.nan,) * 4
        z = np.full(k, np.nan)
        p_values = wilcoxon[reference].copy()
    else:
        all_equal = friedman(ranks, n)
        z = (ranks - ranks[reference]) / rank_error(k, n)
        p_values = 2.0 * stats.norm.sf(np.abs(z))
    others = np.arange(k) != reference
    p_holm = np.ones(k)
    # There are k - 1 comparisons, because the control is not compared with itself.
    p_holm[others] = holm(p_values[others])
    pairs = np.triu_indices(k, 1)
    wilcoxon_holm = np.ones((k, k))
    wilcoxon_holm[pairs] = holm(wilcoxon[pairs])
    # The table is symmetric. Fill the other triangle through a view.
    wilcoxon_holm.T[pairs] = wilcoxon_holm[pairs]
    of_control = labels[reference], z, p_values, p_holm
    of_pairs = wilcoxon, wilcoxon_holm
    return MethodComparison(labels, n, ranks, *all_equal, *of_control, *of_pairs, level)


def _check_losses(losses: ArrayLike) -> Float64Array:
    """Return losses as a float64 matrix without nan."""
    table = as_numbers(losses, "losses")
    if table.ndim != 2 or min(table.shape) < 2:
        rule = "have shape (n_sets, n_methods) with at least 2 of each"
        refuse("losses", rule, f"shape {table.shape}")
    wrong = np.argwhere(np.isnan(table) | (table == -np.inf))
    if len(wrong):
        row, column = wrong[0]
        got = f"{table[row, column]} for set {row}, method {column}"
        refuse("losses", "be numbers or +inf", got)
    return table


def _check_names(
    names: Sequence[str] | None, losses: Any, n_methods: int
) -> tuple[str, ...]:
    """Return one distinct name for each method."""
    if names is None:
        numbered = [f"method {j + 1}" for j in range(n_methods)]
        names = names_of_columns(losses) or numbered
    labels = tuple(str(name) for name in check_list(names, "names", "texts"))
    if len(labels) != n_methods or len(set(labels)) != n_methods:
        rule = f"hold {n_methods} different names, one per method"
        refuse("names", rule, f"{labels!r}")
    return labels


@dataclass(frozen=True)
class PairedComparison:
    """A method against a reference over data sets. Build it with `compare_pair`.

    Parameters
    ----------
    n_sets, wins, ties : int
        Number of data sets; of those where the loss is less than the reference's; and
        of those where both are equal.
    relative_change : float
        Mean of (loss - reference) / reference. It is negative if the method is better.
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
        A positive loss of each on every data set. There are two sets or more. If you
        give scores for which higher is better, wins are losses.
    level : float
        Coverage of the interval, in (0, 1).

    Returns
    -------
    PairedComparison
        Its string tells all of it.

    Notes
    -----
    Let :math:`x_i = (a_i - b_i) / b_i` on N data sets, where a are the losses and b
    those of the reference. The interval is :math:`\bar x \pm t_{N-1} s_x / \sqrt N`.
    The sign test leaves ties out. The t-test is of a - b, so large losses dominate it.
    For more than two methods see `compare_methods`.

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
    a, b = _check_positive(losses, "losses"), _check_positive(reference, "reference")
    if len(a) != len(b) or len(a) < 2:
        rule = "hold one loss of each of the same data sets, two or more"
        refuse("losses` and `reference", rule, f"{len(a)} and {len(b)}")
    level = check_level(level, "level")
    change = (a - b) / b
    mean, error = float(change.mean()), float(change.std(ddof=1) / np.sqrt(len(a)))
    reach = float(stats.t.isf(0.5 - 0.5 * level, len(a) - 1)) * error
    wins, ties = int((a < b).sum()), int((a == b).sum())
    apart = len(a) - ties
    sign_p = float(stats.binomtest(wins, apart).pvalue if apart else 1.0)
    gaps, wilcoxon = a - b, pairwise_wilcoxon(np.column_stack([a, b]))
    # If all gaps are alike, there is no doubt.
    alike = np.ptp(gaps) == 0.0
    t_p = float(gaps[0] == 0.0 if alike else stats.ttest_1samp(gaps, 0.0).pvalue)
    p_values = sign_p, float(wilcoxon[0, 1]), t_p
    interval = mean - reach, mean + reach
    return PairedComparison(len(a), wins, ties, mean, interval, level, *p_values)


def _check_positive(losses: ArrayLike, name: str) -> Float64Array:
    """Return positive, finite losses of shape (n_sets,)."""
    found = as_numbers(losses, name)
    if found.ndim != 1:
        refuse(name, "have shape (n_sets,)", f"shape {found.shape}")
    wrong = np.flatnonzero(~(np.isfinite(found) & (found > 0.0)))
    if len(wrong):
        refuse(name, "be positive and finite", f"{found[wrong[0]]} for set {wrong[0]}")
    return found
