"""`NearAtoms`: heavy values beside a smooth law, each a share of what is near."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtr

from calibration.typing import Float64Array
from localexpert.data.sample import Sample
from localexpert.forecasters.mixed import atom_widths
from localexpert.forecasters.stepped import Step
from localexpert.law.curve import read_curve
from localexpert.law.law import Law
from localexpert.law.steps import nearest_places, scores_of

# What is near a value holds so many times its own weight at most...
_MOST_NEAR = 2.0
# ...and no less than half a row besides, so that something is left between values.
_LEAST_BESIDE = 0.5
# Targets are put together again up to this share of their spread.
_ROUNDING = 1e-9


@dataclass
class NearAtoms(Step):
    """Collect mass of smooth laws of all rows at values that are met often.

    Where heavy values are those that a smooth target is often rounded to, what is
    between them says as much of them as they do themselves. An atom takes that share
    of the mass around it that it has of the rows there.

    Parameters
    ----------
    atoms : ndarray of shape (A,)

    Attributes
    ----------
    borders_ : ndarray of shape (2 A,)
        Both ends of what is around each atom, increasing.
    shares_ : ndarray of shape (A,)
        Below 1.
    """

    atoms: Float64Array
    borders_: Float64Array = field(init=False)
    shares_: Float64Array = field(init=False)

    def fit(self, sample: Sample) -> None:
        """Look at what is around the atoms."""
        rest = ~np.isin(sample.y, self.atoms)
        y, weight = sample.y, sample.weight
        self.widths_ = atom_widths(self.atoms, y[rest], weight[rest])
        self.borders_, self.shares_ = _look_around(self.atoms, y, weight)
        self.rounding_ = _ROUNDING * float(np.ptp(y[weight > 0.0]))

    def back(self, z: Float64Array) -> Float64Array:
        """Return numbers (n, k), atoms without rounding."""
        place = nearest_places(self.atoms, z)
        near = np.abs(z - self.atoms[place]) <= self.rounding_
        return np.where(near, self.atoms[place], z)

    def choices(self) -> dict[str, Any]:
        """Return the atoms."""
        return {"atoms": self.atoms.tolist()}

    def read(self, law: Law) -> Law:
        """Return the atoms beside the law that is left of a smooth one.

        Around an atom of share s the density is 1 - s times what it was, so that the
        CDF of what is left is a function H of F: straight, of slope 1 - s there and 1
        elsewhere, but for the factor that makes it end at 1. It is turned round from
        either side, so that both tails keep their digits.
        """
        borders = np.tile(self.borders_, (len(law), 1))
        below, above = law.cdf(borders), law.sf(borders)
        masses = self.shares_ * np.maximum(below[:, 1::2] - below[:, ::2], 0.0)
        slopes = np.ones(len(self.borders_) + 1)
        slopes[1::2] = 1.0 - self.shares_
        rest = 1.0 - masses.sum(axis=1, keepdims=True)
        curve = law.curve
        assert curve is not None
        g = curve.basis.greville
        p = _turn_round(below, slopes, rest * ndtr(g))
        q = _turn_round(above[:, ::-1], slopes[::-1], rest * ndtr(-g))
        u = np.maximum.accumulate(curve.coordinates(scores_of(p, q))[0], axis=1)
        left = read_curve(u, curve.low, curve.high, basis=curve.basis)
        return Law(left, self.atoms, masses, self.widths_)


def _look_around(
    atoms: Float64Array, y: Float64Array, weight: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return the borders of what is around atoms, and their shares of what is there.

    It reaches as far to either side, half-way to the next atom at most, and holds
    twice the atom's own weight at most.
    """
    gaps = np.diff(atoms)
    most = 0.5 * np.minimum(np.append(gaps, np.inf), np.append(np.inf, gaps))
    borders, shares = np.empty(2 * len(atoms)), np.empty(len(atoms))
    for k, atom in enumerate(atoms):
        away = np.abs(y - atom)
        order = np.argsort(away, kind="stable")
        upto = np.cumsum(weight[order])
        own = float(weight[away == 0.0].sum())
        enough = int(np.searchsorted(upto, _MOST_NEAR * own))
        farthest = away[order[min(enough, len(y) - 1)]]
        reach = min(most[k], float(farthest))
        borders[2 * k : 2 * k + 2] = atom - reach, atom + reach
        near = float(weight[away <= reach].sum())
        shares[k] = own / (max(near, own) + _LEAST_BESIDE)
    # Two that meet half-way may pass each other by rounding.
    return np.maximum.accumulate(borders), shares


def _turn_round(
    levels: Float64Array, slopes: Float64Array, wanted: Float64Array
) -> Float64Array:
    """Return the u (n, K) at which a broken line through 0 reaches what is wanted.

    Parameters
    ----------
    levels : ndarray of shape (n, B)
        Where the line breaks, increasing along a row.
    slopes : ndarray of shape (B + 1,)
        Of its pieces, positive.
    wanted : ndarray of shape (n, K)
    """
    starts = np.column_stack([np.zeros(len(levels)), levels])
    heights = np.cumsum(np.diff(starts, axis=1) * slopes[:-1], axis=1)
    heights = np.column_stack([np.zeros(len(levels)), heights])
    out = wanted / slopes[0]
    for k in range(1, len(slopes)):
        beyond = wanted > heights[:, k, None]
        along = starts[:, k, None] + (wanted - heights[:, k, None]) / slopes[k]
        out = np.where(beyond, along, out)
    return np.asarray(np.clip(out, 0.0, 1.0))
