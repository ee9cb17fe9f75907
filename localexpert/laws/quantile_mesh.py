"""`Mesh`: nodes between the quantiles of several laws, and integrals over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.laws.law import Law, central_moments_about
from localexpert.laws.roughness import Roughness

# Scores of each law's quantiles, and how many quantiles of all laws border panels;
# far ones are for moments alone.
_LEVELS = np.linspace(-8.4, 8.4, 17)
_MOST = 29
_FAR_LEVELS = np.array([10.0, 12.5, 15.5, 19.0, 23.0, 28.0, 34.0])
_NODES, _SHARES = np.polynomial.legendre.leggauss(4)
_NODES, _SHARES = 0.5 * (1.0 + _NODES), 0.5 * _SHARES
_ROUGHNESS = Roughness(_NODES)
# How far the values in a panel may bend or step, as a share of all that is summed, and
# leap from one to the next. Between quantiles of a normal law they bend by 0.006.
_MOST_BEND, _MOST_LEAP = 7e-3, 0.2
# In a row where one does more all panels are cut that bend by so much, in as many
# parts, again and again.
_FINE_BEND, _PARTS, _ROUNDS = 5e-4, 4, 6
# Above this a probability's complement is asked for.
_FEW_DIGITS = 0.9

Levels = Callable[[Float64Array], tuple[Float64Array, Float64Array]]


class Mesh(NamedTuple):
    """Gauss-Legendre nodes on panels that all rows cut at quantiles of their own.

    Parameters
    ----------
    borders : ndarray of shape (n, p + 1)
        Not decreasing; panels may be empty.
    y, dy : ndarray of shape (n, 4 p)
        Nodes, and their weights in integrals over y.
    """

    borders: Float64Array
    y: Float64Array
    dy: Float64Array

    @classmethod
    def of(
        cls,
        laws: Sequence[Law],
        *,
        cuts: Float64Array | None = None,
        kinks: Float64Array | None = None,
        far: bool = False,
    ) -> Mesh:
        """Return the mesh between the quantiles of laws of n rows each.

        With `far` it goes on to where even a fourth moment ends, on panels in which
        the distance from their inner end grows geometrically.

        Parameters
        ----------
        laws : sequence of laws
        cuts : ndarray of shape (n, c), optional
            Further borders.
        kinks : ndarray of shape (n, d), optional
            Where densities have kinks, which border panels within the mesh. It is a
            fine one then: all quantiles of the laws border panels, not every so many.
        far : bool

        Returns
        -------
        Mesh
        """
        found = []
        if len(laws) > 0:
            found.append(_thinned(laws, fine=kinks is not None))
        if kinks is not None:
            found.append(np.clip(kinks, found[0][:, :1], found[0][:, -1:]))
        found += [] if cuts is None else [cuts]
        inner = np.sort(np.hstack(found), axis=1)
        parts = [_nodes_between(inner)]
        if far:
            middle = inner[:, [inner.shape[1] // 2]]
            for side in (-1.0, 1.0):
                end = (inner[:, :1] if side < 0.0 else inner[:, -1:]) - middle
                outer = side * (_quantiles(laws, side * _FAR_LEVELS) - middle)
                away = np.maximum.accumulate(
                    np.hstack([side * end, outer.max(axis=0)]), axis=1
                )
                y, dy = _geometric_nodes(away)
                parts.append((middle + side * y, dy))
        return cls(inner, *(np.hstack(each) for each in zip(*parts, strict=True)))

    def refined(
        self, answer: Callable[[NDArray[np.int64], Float64Array], Float64Array]
    ) -> Iterator[tuple[NDArray[np.int64], Mesh, Float64Array]]:
        """Yield rows whose panels are fine enough for a function, and what it says.

        Laws that differ by much may join to one that moves where none of them does.
        Most rows are fine as they are, and no more is asked of them.

        Parameters
        ----------
        answer : callable
            Gives an array (c, k, m) of rows (k,) at their nodes (k, m), of numbers
            between 0 and 1 of which the first must be smooth in each panel.

        Yields
        ------
        rows : ndarray of shape (k,)
        mesh : Mesh
            That of the rows.
        answers : ndarray of shape (c, k, m)
        """
        rows, mesh = np.arange(len(self.y)), self
        for number in range(_ROUNDS + 1):
            answers = answer(rows, mesh.y)
            bend, leap = mesh._changes(answers[0])
            most = _MOST_BEND if number == 0 else _FINE_BEND
            coarse = np.asarray((bend > most) | (leap > _MOST_LEAP))
            again = np.asarray(coarse.any(axis=1) & (number < _ROUNDS))
            if not again.all():
                yield rows[~again], mesh._take(~again), answers[:, ~again]
            if not again.any():
                return
            rough = (bend > _FINE_BEND) | (leap > _MOST_LEAP)
            rows, mesh = rows[again], mesh._take(again)._cut(rough[again])

    def settled(
        self, cdf: Callable[[Float64Array], Float64Array]
    ) -> tuple[Mesh, Float64Array]:
        """Return a mesh of all rows that is fine enough for a CDF, and that at nodes.

        Parameters
        ----------
        cdf : callable
            Of values (n, m).

        Returns
        -------
        mesh : Mesh
        levels : ndarray of shape (n, m)
        """
        mesh, levels = self, cdf(self.y)
        for _ in range(_ROUNDS):
            bend, leap = mesh._changes(levels)
            rough = (bend > _FINE_BEND) | (leap > _MOST_LEAP)
            if not rough.any():
                break
            mesh = mesh._cut(rough)
            levels = cdf(mesh.y)
        return mesh, levels

    def _take(self, rows: NDArray[np.bool_]) -> Mesh:
        """Return the mesh of some rows."""
        return self if rows.all() else Mesh(*(each[rows] for each in self))

    def _changes(self, values: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return how far values (n, m) at the nodes bend, and leap, by panel (n, p)."""
        n, p = len(self.y), self.borders.shape[1] - 1
        inner = values[:, : p * len(_NODES)].reshape(n, p, len(_NODES))
        spread = (self.dy * values * (1.0 - values)).sum(axis=1, keepdims=True)
        size = _ROUGHNESS.of(inner) * np.diff(self.borders)
        bend = np.divide(size, spread, out=np.zeros((n, p)), where=spread > 0.0)
        leaps = np.pad(np.abs(inner[:, 1:, 0] - inner[:, :-1, -1]), ((0, 0), (1, 1)))
        return bend, np.maximum(leaps[:, :-1], leaps[:, 1:])

    def _cut(self, rough: NDArray[np.bool_]) -> Mesh:
        """Return the mesh with rough panels (n, p) cut in parts."""
        left, width = self.borders[:, :-1], np.diff(self.borders)
        last = self.borders[:, -1:]
        parts = [
            np.where(rough, left + width * (part / _PARTS), last)
            for part in range(1, _PARTS)
        ]
        borders = np.sort(np.hstack([self.borders, *parts]), axis=1)
        # Rows with fewer cuts than others end in empty panels.
        most = self.borders.shape[1] + (_PARTS - 1) * int(rough.sum(axis=1).max())
        borders = np.ascontiguousarray(borders[:, :most])
        y, dy = _nodes_between(borders)
        n_inner = rough.shape[1] * len(_NODES)
        y = np.hstack([y, self.y[:, n_inner:]])
        return Mesh(borders, y, np.hstack([dy, self.dy[:, n_inner:]]))

    def masses(self, density: Float64Array, levels: Levels) -> Float64Array:
        """Return probabilities of the nodes that sum to that of every panel.

        Between panels they are exact, so only their shares within one rest on the
        quadrature of a density, which may have kinks.

        Parameters
        ----------
        density : ndarray of shape (n, 4 p)
            At the nodes.
        levels : callable
            Gives F and 1 - F at values (n, k).

        Returns
        -------
        ndarray of shape (n, 4 p)
        """
        n, p = len(self.y), self.borders.shape[1] - 1
        cdf, sf = levels(self.borders)
        upper = cdf[:, :-1] > 0.5
        whole = np.where(upper, -np.diff(sf, axis=1), np.diff(cdf, axis=1))
        shares = (density * self.dy).reshape(n, p, len(_NODES))
        sums = shares.sum(axis=2)
        scale = np.divide(whole, sums, out=np.zeros((n, p)), where=sums > 0.0)
        masses = (shares * np.maximum(scale, 0.0)[:, :, None]).reshape(self.y.shape)
        return np.asarray(masses / masses.sum(axis=1, keepdims=True))

    def partial_means(
        self, levels: Levels, at: Float64Array, cdf: Float64Array, sf: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Return the integrals of F below and of 1 - F above values.

        Parameters
        ----------
        levels : callable
            Gives F and 1 - F at values (n, k).
        at : ndarray of shape (n, k)
        cdf, sf : ndarray of shape (n, 4 p)
            F and 1 - F at the nodes.

        Returns
        -------
        below, above : ndarrays of shape (n, k)
        """
        n = len(at)
        shape = (n, -1, len(_NODES))
        upto = np.cumsum((self.dy * cdf).reshape(shape).sum(axis=2), axis=1)
        beyond = (self.dy * sf).reshape(shape).sum(axis=2)[:, ::-1].cumsum(axis=1)
        none = np.zeros((n, 1))
        upto, beyond = np.hstack([none, upto]), np.hstack([beyond[:, ::-1], none])
        first, last = self.borders[:, :1], self.borders[:, -1:]
        inside = np.clip(at, first, last)
        rows = zip(self.borders, inside, strict=True)
        panel = np.stack([np.searchsorted(row, x, "right") - 1 for row, x in rows])
        panel = np.clip(panel, 0, self.borders.shape[1] - 2)
        left = np.take_along_axis(self.borders, panel, axis=1)
        right = np.take_along_axis(self.borders, panel + 1, axis=1)
        below = np.take_along_axis(upto, panel, axis=1)
        above = np.take_along_axis(beyond, panel + 1, axis=1)
        below = below + _between(levels, left, inside, 0)
        above = above + _between(levels, inside, right, 1)
        # Beyond the mesh F is 0 or 1.
        return below + np.maximum(at - last, 0.0), above + np.maximum(first - at, 0.0)


def levels_of(law: Law, y: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return P(Y <= y) and P(Y > y), each accurate where it is small.

    Parameters
    ----------
    law : Law
    y : ndarray of shape (n, k)

    Returns
    -------
    below, above : ndarrays of shape (n, k)
    """
    below = law.cdf(y)
    above = 1.0 - below
    # The second question is put only where the difference has lost digits.
    columns = np.flatnonzero((below > _FEW_DIGITS).any(axis=0))
    above[:, columns] = law.sf(np.ascontiguousarray(y[:, columns]))
    return below, above


def _between(
    levels: Levels, start: Float64Array, end: Float64Array, which: int
) -> Float64Array:
    """Return the integrals of F (0) or 1 - F (1) from start to end, (n, k) all."""
    width = (end - start)[:, :, None]
    y = np.ascontiguousarray((start[:, :, None] + width * _NODES).reshape(len(end), -1))
    value = levels(y)[which].reshape(width.shape[:2] + (-1,))
    return np.asarray((width * _SHARES * value).sum(axis=2))


def central_moments(
    mesh: Mesh, cdf: Float64Array, sf: Float64Array, middle: Float64Array
) -> Float64Array:
    """Return mean and second to fourth central moment from F and 1 - F.

    By parts: E(Y - c)^k is the integral of k (y - c)^(k-1) (1 - F) above c less that
    of the same times F below.

    Parameters
    ----------
    mesh : Mesh
    cdf, sf : ndarray of shape (n, m)
        At the nodes.
    middle : ndarray of shape (n, 1)
        The c, near the mean.

    Returns
    -------
    ndarray of shape (n, 4)
    """
    away = mesh.y - middle
    rest = np.where(away > 0.0, sf, -cdf) * mesh.dy
    raw = [(k * away ** (k - 1) * rest).sum(axis=1) for k in (1, 2, 3, 4)]
    shift = raw[0]
    c2 = raw[1] - shift**2
    c3 = raw[2] - shift * (3.0 * raw[1] - 2.0 * shift**2)
    c4 = raw[3] - shift * (4.0 * raw[2] - shift * (6.0 * raw[1] - 3.0 * shift**2))
    return np.column_stack([middle[:, 0] + shift, c2, c3, c4])


def mix_moments(weights: Float64Array, moments: Float64Array) -> Float64Array:
    """Return the moments of a mixture.

    Parameters
    ----------
    weights : ndarray of shape (n, M)
    moments : ndarray of shape (M, n, 4)
        Mean and second to fourth central moment of each part.

    Returns
    -------
    ndarray of shape (n, 4)
    """
    w = weights.T
    # A part without weight has no moments, even if they are infinite.
    mean, c2, c3, c4 = np.where(w[:, :, None] > 0.0, moments, 0.0).transpose(2, 0, 1)
    centre = (w * mean).sum(axis=0)
    # About an infinite mean no moment is defined.
    s = np.where(np.isfinite(mean), mean, np.nan) - centre
    parts = central_moments_about((c2, c3, c4), np.where(w > 0.0, s, 0.0))
    return np.column_stack([centre, *((w * part).sum(axis=0) for part in parts)])


def _quantiles(laws: Sequence[Law], scores: Float64Array) -> Float64Array:
    """Return the quantiles of M laws at scores (k,), (M, n, k)."""
    return np.stack([law.ppf_scores(np.tile(scores, (len(law), 1))) for law in laws])


def _thinned(laws: Sequence[Law], *, fine: bool) -> Float64Array:
    """Return `_MOST` of the laws' sorted quantiles, all if `fine`; ever the outermost.

    Of the sorted ones every so many: about the quantiles of an equal mixture.
    """
    each = np.sort(np.hstack(list(_quantiles(laws, _LEVELS))), axis=1)
    last = each.shape[1] - 1
    n_kept = last + 1 if fine else min(_MOST, last + 1)
    kept = np.unique(np.linspace(0, last, n_kept).round().astype(int))
    return np.ascontiguousarray(each[:, kept])


def _nodes_between(borders: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return nodes and weights on panels (n, p), (n, 4 p) both."""
    width = np.diff(borders, axis=1)[:, :, None]
    y = borders[:, :-1, None] + width * _NODES
    shape = len(borders), width.shape[1] * len(_NODES)
    return y.reshape(shape), (width * _SHARES).reshape(shape)


def _geometric_nodes(away: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return nodes at distances (n, p + 1) from a middle, evenly on a log scale."""
    log_away, shares = _nodes_between(np.log(np.maximum(away, np.finfo(float).tiny)))
    y = np.exp(log_away)
    return y, y * shares
