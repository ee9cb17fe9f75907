"""The tests behind `compare_methods`: Friedman, Wilcoxon, Holm, on checked arrays."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy import stats

from calibration.typing import Float64Array


def rank_error(k: int, n: int) -> float:
    """Standard error of a difference of two average ranks."""
    return float(np.sqrt(k * (k + 1) / (6.0 * n)))


def friedman(ranks: Float64Array, n: int) -> tuple[float, float, float, float]:
    """Friedman's chi2 and p, Iman and Davenport's F and p."""
    k = len(ranks)
    chi2 = 12.0 * n / (k * (k + 1)) * float(((ranks - 0.5 * (k + 1)) ** 2).sum())
    room = n * (k - 1) - chi2
    # All data sets rank all methods alike: nothing is left to compare with.
    f = (n - 1) * chi2 / room if room > 1e-12 * n * k else np.inf
    chi2_p = float(stats.chi2.sf(chi2, k - 1))
    return chi2, chi2_p, float(f), float(stats.f.sf(f, k - 1, (k - 1) * (n - 1)))


def holm(p_values: Float64Array) -> Float64Array:
    """p-values adjusted by Holm's step-down procedure, shape (m,)."""
    order = np.argsort(p_values, kind="stable")
    steps = p_values[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def pairwise_wilcoxon(table: Float64Array) -> Float64Array:
    """p-values of Wilcoxon's signed-rank test of each pair, shape (k, k)."""
    k = table.shape[1]
    p_values = np.ones((k, k))
    for i, j in combinations(range(k), 2):
        a, b = table[:, i], table[:, j]
        equal = a == b  # also where both are infinite
        if equal.all():
            continue
        difference = np.subtract(a, b, out=np.zeros(len(a)), where=~equal)
        # The test uses ranks only, and ranks make infinite differences finite.
        signed = np.sign(difference) * stats.rankdata(np.abs(difference))
        p = stats.wilcoxon(signed, zero_method="zsplit").pvalue
        p_values[i, j] = p_values[j, i] = p
    return p_values
