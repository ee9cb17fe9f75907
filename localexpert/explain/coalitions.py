"""Coalitions: which mixed rows to ask for, and what the answers say of each player.

The worth of a coalition S for a row x is v(S) = mean over background rows b of
f(x in the columns of S, b in the others); the contributions are Shapley's values of v.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import comb
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array, Int64Array

# Most players whose coalitions are enumerated, whatever it costs.
MOST_ENUMERATED = 12


class Coalitions(ABC):
    """Mixed rows, the same for every explained row, in E places.

    Neither the empty coalition nor the full one is among them: f of the background
    rows and of the explained rows is asked for once.
    """

    @property
    @abstractmethod
    def members(self) -> NDArray[np.bool_]:
        """Players whose columns are taken from the explained row, shape (E, P)."""

    @property
    @abstractmethod
    def background(self) -> Int64Array:
        """Number of the background row that gives the other columns, shape (E,)."""

    @abstractmethod
    def estimate(
        self, total: Float64Array, base: Float64Array, inner: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Return contributions and their standard errors, shapes (n, P).

        Parameters
        ----------
        total : ndarray of shape (n,)
            f of the explained rows.
        base : ndarray of shape (m,)
            f of the background rows.
        inner : ndarray of shape (n, E)
            f of the mixed rows.
        """


@dataclass(frozen=True, eq=False)
class AllCoalitions(Coalitions):
    """Every coalition with every background row: exact.

    Parameters
    ----------
    n_players, n_background : int
    """

    n_players: int
    n_background: int

    @property
    def members(self) -> NDArray[np.bool_]:
        """See `Coalitions`; bit j of the number of a coalition tells of player j."""
        codes = np.arange(1, 2**self.n_players - 1)
        held = (codes[:, None] >> np.arange(self.n_players)) & 1
        return np.repeat(held.astype(bool), self.n_background, axis=0)

    @property
    def background(self) -> Int64Array:
        """See `Coalitions`."""
        rows = np.arange(self.n_background, dtype=np.int64)
        return np.tile(rows, 2**self.n_players - 2)

    def estimate(
        self, total: Float64Array, base: Float64Array, inner: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """See `Coalitions`; the errors are 0."""
        n, p = len(total), self.n_players
        worth = np.empty((n, 2**p))
        worth[:, 0], worth[:, -1] = base.mean(), total
        worth[:, 1:-1] = inner.reshape(n, -1, self.n_background).mean(axis=2)
        codes = np.arange(2**p)
        sizes = np.bitwise_count(codes)
        values = np.empty((n, p))
        for j in range(p):
            # Shapley (1953): |S|! (p - |S| - 1)! / p! = 1 / (p C(p - 1, |S|)) is the
            # share of all orders in which S comes just before j.
            without = codes[(codes >> j) & 1 == 0]
            gains = worth[:, without | (1 << j)] - worth[:, without]
            share = np.array([1.0 / (p * comb(p - 1, size)) for size in range(p)])
            values[:, j] = gains @ share[sizes[without]]
        return values, np.zeros((n, p))


@dataclass(frozen=True, eq=False)
class SampledOrders(Coalitions):
    """Orders in which players enter, drawn for every background row, with reverses.

    Starting from a background row, the columns of one player after the other are
    taken from the explained row; a player's contribution is the mean change of f as
    it enters. An order and its reverse make an antithetic pair.

    Parameters
    ----------
    ranks : ndarray of shape (m, R, 2, P)
        When each player enters, from 0; of m background rows, R pairs each.
    """

    ranks: Int64Array

    @classmethod
    def draw(
        cls, n_players: int, n_background: int, n_pairs: int, rng: np.random.Generator
    ) -> SampledOrders:
        """Draw `n_pairs` orders per background row, and add their reverses."""
        shape = (n_background, n_pairs, n_players)
        forth = rng.random(shape).argsort(axis=-1)
        back = n_players - 1 - forth
        return cls(np.stack([forth, back], axis=2).astype(np.int64))

    @property
    def members(self) -> NDArray[np.bool_]:
        """See `Coalitions`; those who have entered after every step but the last."""
        p = self.ranks.shape[-1]
        steps = np.arange(1, p)[:, None]
        entered: NDArray[np.bool_] = self.ranks[..., None, :] < steps
        return entered.reshape(-1, p)

    @property
    def background(self) -> Int64Array:
        """See `Coalitions`."""
        m, pairs, two, p = self.ranks.shape
        return np.repeat(np.arange(m, dtype=np.int64), pairs * two * (p - 1))

    def estimate(
        self, total: Float64Array, base: Float64Array, inner: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """See `Coalitions`.

        Given the background rows, pairs are independent: the variance of the mean is
        sum_b s_b^2 / (R m^2) with s_b^2 the variance of the R pairs of row b.
        """
        n = len(total)
        m, pairs, two, p = self.ranks.shape
        road = np.empty((n, m, pairs, two, p + 1))
        road[..., 0] = base[:, None, None]
        road[..., 1:-1] = inner.reshape(n, m, pairs, two, p - 1)
        road[..., -1] = total[:, None, None, None]
        gains = np.take_along_axis(np.diff(road), self.ranks[None], axis=-1)
        # An order and its reverse err against each other; their mean is one draw.
        pair = gains.mean(axis=3)
        spread = pair.var(axis=2, ddof=1).sum(axis=1)
        return pair.mean(axis=(1, 2)), np.sqrt(spread / pairs) / m


def plan_coalitions(
    method: Literal["auto", "enumerate", "sample"],
    n_players: int,
    n_background: int,
    n_permutations: int,
    rng: np.random.Generator,
) -> Coalitions:
    """Return all coalitions where they are no more than sampled ones, or as told."""
    if method == "auto":
        cost = n_permutations * (n_players - 1)
        few = n_players <= MOST_ENUMERATED and 2**n_players - 2 <= cost
        method = "enumerate" if few else "sample"
    if method == "sample":
        return SampledOrders.draw(n_players, n_background, n_permutations // 2, rng)
    if n_players > MOST_ENUMERATED:
        msg = (
            f'`method` must not be "enumerate" for more than {MOST_ENUMERATED} '
            f"features or groups, got {n_players} of them."
        )
        raise ValueError(msg)
    return AllCoalitions(n_players, n_background)
