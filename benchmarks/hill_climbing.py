"""Hill climbing over graphs with the BDeu score, compiled.

What pyAgrum's does, of as good a score, in a sixth of the time on all pairs: ten graphs
of three kinds, learned 200 times each, take hours otherwise.
"""

from __future__ import annotations

from math import lgamma

import numpy as np
from numba import njit
from scipy.special import xlogy
from scipy.stats import chi2

# Cells of a table of counts, beyond which a variable has no more parents.
MOST_CELLS = 4096


def learn_parents(data, n_candidates=20, ess=1.0):
    """Return the graph (v, v), row -> column, of a table (n, v) of numbers from 0 on.

    A variable may be joined to the `n_candidates` that it depends on most by
    themselves, and to those that name it so (Friedman, Nachman & Pe'er 1999); None:
    to all.
    """
    v = data.shape[1]
    may = np.ones((v, v), dtype=bool)
    if n_candidates is not None:
        may = find_candidates(data, n_candidates)
    np.fill_diagonal(may, False)
    table = np.ascontiguousarray(data.T.astype(np.uint8))
    return climb(table, data.max(axis=0) + 1, may, ess).T


def find_candidates(data, n_candidates):
    """Say which pairs may be joined: the closest of each variable, by the G test."""
    n, v = data.shape
    sizes = data.max(axis=0) + 1
    start = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    marks = np.zeros((n, sizes.sum()))
    marks[np.arange(n)[:, None], start + data] = 1.0
    counts = marks.T @ marks
    # Sums of m log m over the cells of each pair of variables.
    cells = np.add.reduceat(np.add.reduceat(xlogy(counts, counts), start, 0), start, 1)
    alone = cells.diagonal()
    gain = 2.0 * (cells - alone[:, None] - alone + n * np.log(n))
    freedom = np.maximum(np.outer(sizes - 1, sizes - 1), 1)
    log_p = chi2.logsf(np.maximum(gain, 0.0), freedom)
    np.fill_diagonal(log_p, np.inf)
    chosen = np.zeros((v, v), dtype=bool)
    best = np.argsort(log_p, axis=1, kind="stable")[:, : min(n_candidates, v - 1)]
    chosen[np.arange(v)[:, None], best] = True
    return chosen | chosen.T


@njit
def family_score(table, sizes, one, parents, ess):
    """BDeu score (Heckerman, Geiger & Chickering 1995) of a variable and its parents.

    `table` (v, n) of states; `parents` (v,) says who is one.
    """
    v, n = table.shape
    code = np.zeros(n, np.int64)
    cells = 1
    for parent in range(v):
        if parents[parent]:
            cells *= sizes[parent]
            if cells * sizes[one] > MOST_CELLS:
                return -np.inf
            for row in range(n):
                code[row] = code[row] * sizes[parent] + table[parent, row]
    states = sizes[one]
    counts = np.zeros((cells, states))
    for row in range(n):
        counts[code[row], table[one, row]] += 1.0
    a, b = ess / cells, ess / (cells * states)
    score = 0.0
    for cell in range(cells):
        total = counts[cell].sum()
        if total > 0.0:
            score += lgamma(a) - lgamma(a + total)
            for count in counts[cell]:
                if count > 0.0:
                    score += lgamma(b + count) - lgamma(b)
    return score


@njit
def _update(gains, table, sizes, parents, may, one, ess):
    """Write what the score gains where each candidate is made a parent, or is not."""
    now = family_score(table, sizes, one, parents[one], ess)
    for other in range(len(sizes)):
        if may[one, other]:
            parents[one, other] = not parents[one, other]
            gains[one, other] = family_score(table, sizes, one, parents[one], ess) - now
            parents[one, other] = not parents[one, other]


@njit
def _reaches(parents, start, goal, blocked):
    """Say whether `start` is an ancestor of `goal`, or is it but for one arrow."""
    v = len(parents)
    seen = np.zeros(v, np.bool_)
    stack = [goal]
    seen[goal] = True
    while len(stack) > 0:
        one = stack.pop()
        for parent in range(v):
            if parents[one, parent] and not seen[parent]:
                if blocked and one == goal and parent == start:
                    continue
                if parent == start:
                    return True
                seen[parent] = True
                stack.append(parent)
    return False


@njit
def climb(table, sizes, may, ess):
    """Return parents (v, v) after the best of adding, taking and turning arrows."""
    v = len(sizes)
    parents = np.zeros((v, v), np.bool_)
    gains = np.full((v, v), -np.inf)
    for one in range(v):
        _update(gains, table, sizes, parents, may, one, ess)
    while True:
        best, tail, head, turned = 1e-9, -1, -1, False
        for one in range(v):
            for other in range(v):
                gain = gains[one, other]
                if parents[one, other]:
                    if gain > best:
                        best, head, tail, turned = gain, one, other, False
                    gain += gains[other, one]
                    if gain > best and not _reaches(parents, other, one, True):
                        best, head, tail, turned = gain, one, other, True
                elif (
                    gain > best
                    and not parents[other, one]
                    and not _reaches(parents, one, other, False)
                ):
                    best, head, tail, turned = gain, one, other, False
        if head < 0:
            return parents
        parents[head, tail] = not parents[head, tail]
        _update(gains, table, sizes, parents, may, head, ess)
        if turned:
            parents[tail, head] = True
            _update(gains, table, sizes, parents, may, tail, ess)
