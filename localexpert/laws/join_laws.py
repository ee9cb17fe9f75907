"""`pool_laws`: the pool of laws of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from calibration.typing import Float64Array
from localexpert._validation import check_choice, check_probability_rows
from localexpert.laws.discrete import DiscreteLaw
from localexpert.laws.law import Law
from localexpert.laws.mixed import MixedLaw
from localexpert.laws.near_values import near_runs, nearest_places
from localexpert.laws.pooled_law import PooledLaw
from localexpert.laws.score_map import clip_scores, scores_of

PoolKind = Literal["linear", "probit"]


class LawParts(NamedTuple):
    """A law as probabilities (n, A) of values (A,) beside a law without jumps.

    `rest` (n,) is the probability of the latter, `smooth`, which is None where a law
    has jumps only; `widths` (A,) are those of the values' cells.
    """

    values: Float64Array
    masses: Float64Array
    widths: Float64Array
    smooth: Law | None
    rest: Float64Array


def pool_laws(laws: Sequence[Law], weights: ArrayLike, kind: PoolKind) -> Law:
    """Return the linear or the probit pool of laws.

    Parameters
    ----------
    laws : sequence of M laws
        Of n rows each.
    weights : array-like of shape (M,) or (n, M)
        Not negative, of sum 1.
    kind : {"linear", "probit"}
        The latter of laws that all have jumps only, or none.

    Returns
    -------
    Law
        The law itself where one has all the weight; a `DiscreteLaw` of discrete laws,
        a `MixedLaw` where some have jumps, else a `PooledLaw`.
    """
    check_choice(kind, "kind", ("linear", "probit"))
    n = len(laws[0])
    rows = np.asarray(weights, dtype=np.float64)
    rows = np.broadcast_to(rows, (n, rows.shape[-1]))
    rows = check_probability_rows(rows, "weights", len(laws))
    held = [k for k in range(len(laws)) if n == 0 or rows[:, k].any()]
    laws, rows = [laws[k] for k in held], rows[:, held]
    if len(laws) == 1:
        return laws[0]
    if not any(law.has_jumps for law in laws):
        return PooledLaw(laws, rows, kind)
    parts = [parts_of(law) for law in laws]
    values = jump_values(laws)
    if all(part.smooth is None for part in parts):
        return _pool_discrete(laws, rows, values, kind)
    if kind == "probit":
        msg = (
            '`kind` must be "linear" for laws with values of positive probability '
            'beside a smooth rest, got "probit".'
        )
        raise ValueError(msg)
    return _pool_mixed(parts, rows, values)


def can_pool_scores(laws: Sequence[Law]) -> bool:
    """Return whether laws have a probit pool: all jumps, or none.

    Parameters
    ----------
    laws : sequence of laws

    Returns
    -------
    bool
    """
    discrete = [isinstance(law, DiscreteLaw) for law in laws]
    return all(discrete) or not any(law.has_jumps for law in laws)


def jump_values(laws: Sequence[Law]) -> Float64Array:
    """Return the values to which some law gives probability, sorted, near ones once.

    Parameters
    ----------
    laws : sequence of laws

    Returns
    -------
    ndarray of shape (A,)
    """
    values = [parts_of(law).values for law in laws if law.has_jumps]
    every = np.unique(np.concatenate([np.empty(0), *values]))
    return every[np.flatnonzero(np.diff(near_runs(every), prepend=-1))]


def smooth_parts(laws: Sequence[Law]) -> list[Law]:
    """Return the laws' parts without jumps, of those that have one.

    Parameters
    ----------
    laws : sequence of laws

    Returns
    -------
    list of laws
    """
    parts = [parts_of(law).smooth for law in laws]
    return [smooth for smooth in parts if smooth is not None]


def parts_of(law: Law) -> LawParts:
    """Return what has jumps and what has none, of a law of any kind.

    Parameters
    ----------
    law : Law

    Returns
    -------
    LawParts
    """
    if isinstance(law, DiscreteLaw):
        none = np.zeros(len(law))
        return LawParts(law.values, law.probabilities, law.widths, None, none)
    if isinstance(law, MixedLaw):
        return LawParts(law.atoms, law.masses, law.widths, law.continuous, law.rest)
    empty = np.empty(0)
    return LawParts(empty, np.empty((len(law), 0)), empty, law, np.ones(len(law)))


def _pool_discrete(
    laws: Sequence[Law], weights: Float64Array, values: Float64Array, kind: PoolKind
) -> DiscreteLaw:
    if kind == "linear":
        parts = [parts_of(law) for law in laws]
        return DiscreteLaw(values, _mix_masses(parts, weights, values))
    at = np.broadcast_to(values, (len(weights), len(values)))
    own = np.zeros(at.shape)
    for w, law in zip(weights.T, laws, strict=True):
        own += w[:, None] * clip_scores(scores_of(law.cdf(at), law.sf(at)))
    # Beyond the last value there is nothing, whatever the clipped scores say.
    own[:, -1] = np.inf
    return DiscreteLaw.of_scores(values, own)


def _pool_mixed(
    parts: Sequence[LawParts], weights: Float64Array, values: Float64Array
) -> MixedLaw:
    """Mix masses; the smooth parts have the weights of what they hold."""
    masses = _mix_masses(parts, weights, values)
    widths = np.zeros(len(values))
    for part in parts:
        np.maximum.at(widths, nearest_places(values, part.values), part.widths)
    smooth = [part.smooth for part in parts if part.smooth is not None]
    held = [k for k, part in enumerate(parts) if part.smooth is not None]
    # P(Y <= y, Y no atom) is the sum of w_k rest_k F_k: F_k has the weight w_k rest_k.
    shares = np.column_stack([weights[:, k] * parts[k].rest for k in held])
    total = shares.sum(axis=1, keepdims=True)
    even = np.full(shares.shape, 1.0 / len(held))
    shares = np.divide(shares, total, out=even, where=total > 0.0)
    inner = smooth[0] if len(smooth) == 1 else PooledLaw(smooth, shares)
    return MixedLaw(values, masses, inner, widths)


def _mix_masses(
    parts: Sequence[LawParts], weights: Float64Array, values: Float64Array
) -> Float64Array:
    """Return the mixed probabilities of values (A,) near all the parts', (n, A)."""
    masses = np.zeros((len(weights), len(values)))
    for part, w in zip(parts, weights.T, strict=True):
        for place, own in zip(
            nearest_places(values, part.values), part.masses.T, strict=True
        ):
            masses[:, place] += w * own
    return masses
