"""`ScoreNodes`: nodes in the normal score of a variable, for sums over a function."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from calibration.typing import Float64Array
from localexpert.laws.roughness import Roughness

# Scores between which the panels lie: nearly all probability, and the rest, which is
# for moments of what grows fast.
INNER, OUTER = 8.4, 36.9
_INNER_STEP, _OUTER_STEP = 0.7, 1.2
_N_OUTER = round((OUTER - INNER) / _OUTER_STEP)
_FAR = np.linspace(INNER, OUTER, _N_OUTER + 1)[1:]
_NEAR = np.linspace(-INNER, INNER, round(2.0 * INNER / _INNER_STEP) + 1)
GRID = np.concatenate([-_FAR[::-1], _NEAR, _FAR])
_NODES, _SHARES = np.polynomial.legendre.leggauss(5)
_NODES, _SHARES = 0.5 * (1.0 + _NODES), 0.5 * _SHARES
_ROUGHNESS = Roughness(_NODES)
# How much of a sum may be wrong by what quantiles bend or step in a panel, and in how
# many parts one is cut in which it is more.
_MOST_BEND, _PARTS = 1e-3, 4


class ScoreNodes(NamedTuple):
    """Gauss-Legendre nodes in the normal score s of X, on panels of each row.

    `borders` (n, p + 1), and at the nodes, (n, 5 p): the scores `s`, the values `x`
    of X and `y` of g(X), and `log_ds`, the log of the weight in integrals over
    phi(s) ds. Where y is no finite number log_ds is -inf.
    """

    borders: Float64Array
    s: Float64Array
    x: Float64Array
    y: Float64Array
    log_ds: Float64Array

    @property
    def inner(self) -> slice:
        """Which nodes lie between the inner ends of the panels, in any row."""
        outer = _N_OUTER * len(_NODES)
        return slice(outer, self.s.shape[1] - outer)

    def masses(self) -> Float64Array:
        """Return the nodes' probabilities, of sum 1."""
        masses = np.exp(self.log_ds)
        return np.asarray(masses / masses.sum(axis=1, keepdims=True))

    def log_weights(self, sign: float, *, squared: bool) -> Float64Array:
        """Return log weights of integrals over F^a, or for sign -1 over -(1 - F)^a."""
        if not squared:
            return self.log_ds
        return np.asarray(self.log_ds + log_ndtr(sign * self.s) + np.log(2.0))

    def rough(self) -> NDArray[np.bool_]:
        """Return in which inner panels (n, p) a sum over y is not right.

        Where next to nothing is between the members of a pool its quantiles leap.
        """
        shape = len(self.s), -1, len(_NODES)
        masses, y = np.exp(self.log_ds).reshape(shape), self.y.reshape(shape)
        away = y - np.median(self.y, axis=1)[:, None, None]
        with np.errstate(over="ignore", invalid="ignore"):
            size = _ROUGHNESS.of(y) * masses.sum(axis=2)
            spread = (np.abs(away) * masses).sum(axis=(1, 2))
            rough = size > _MOST_BEND * spread[:, None]
        # No panels to look at are those with nodes where y is no number.
        rough &= (masses > 0.0).all(axis=2)
        rough[:, :_N_OUTER] = rough[:, -_N_OUTER:] = False
        return np.asarray(rough)

    def cut_borders(self, rough: NDArray[np.bool_]) -> Float64Array:
        """Return borders of panels of which the rough ones (n, p) are cut in parts."""
        left, width = self.borders[:, :-1], np.diff(self.borders)
        # Rows with fewer cuts than others have empty panels at the inner ones' end.
        parts = [
            np.where(rough, left + width * (part / _PARTS), INNER)
            for part in range(1, _PARTS)
        ]
        most = (_PARTS - 1) * int(rough.sum(axis=1).max())
        held = np.sort(np.hstack(parts), axis=1)[:, :most]
        return np.sort(np.hstack([self.borders, held]), axis=1)

    def with_rows(self, rows: NDArray[np.intp], fine: ScoreNodes) -> ScoreNodes:
        """Return the nodes with some rows that have more panels.

        All others get empty ones, at the upper end of their inner panels.
        """
        n_more = fine.borders.shape[1] - self.borders.shape[1]
        end = self.borders.shape[1] - 1 - _N_OUTER
        parts = []
        for values, part in zip(self, fine, strict=True):
            at_borders = values is self.borders
            width, place = (
                (1, end + 1) if at_borders else (len(_NODES), end * len(_NODES))
            )
            more = np.repeat(values[:, place - 1 : place], n_more * width, axis=1)
            if values is self.log_ds:
                more[:] = -np.inf
            parts.append(np.hstack([values[:, :place], more, values[:, place:]]))
            parts[-1][rows] = part
        return ScoreNodes(*parts)


def between_scores(
    left: Float64Array, right: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return nodes and weights on panels (n, p), (n, 5 p) both."""
    width = (right - left)[:, :, None]
    shape = len(left), left.shape[1] * len(_NODES)
    nodes = left[:, :, None] + width * _NODES
    return nodes.reshape(shape), (width * _SHARES).reshape(shape)


def panel_sums(terms: Float64Array) -> Float64Array:
    """Return sums (n, p) of terms at nodes (n, 5 p)."""
    return np.asarray(terms.reshape(len(terms), -1, len(_NODES)).sum(axis=2))
