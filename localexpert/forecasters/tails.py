"""`Tails`: laws of many values that go on beyond the outermost ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from calibration.typing import Float64Array
from localexpert.data.sample import Sample
from localexpert.data.target_values import count_values
from localexpert.experts.thresholds import lattice_step
from localexpert.forecasters.stepped import Step
from localexpert.forecasters.support import MOST_BEYOND, ordinary_values
from localexpert.law.basis import STANDARD
from localexpert.law.curve import Curve, read_curve
from localexpert.law.law import Law

# A support goes on for so many steps beyond what was met, the k-th with a share in
# proportion to 1 / (k (k + 1)): what is beyond them all has this share.
_BEYOND = 1.0 / (MOST_BEYOND + 1.0)
# How far in deviations of its logarithm the distance from the last step spreads.
_SPREAD = 1.0


@dataclass
class Tails(Step):
    """Let the values of a discrete law go on beyond the ends without end.

    What a law gives to values beyond the greatest one met, it gives to a lattice that
    ends nowhere: a count of twice the greatest is rare, and not impossible. Distances
    from the last value of the support are log-normal, with the median as far away as
    the support goes on, so that moments are finite.

    Parameters
    ----------
    bounds : (float, float)
        Least and greatest value that is possible.
    """

    bounds: tuple[float, float]

    def fit(self, sample: Sample) -> None:
        """Note what was met."""
        values, weight = count_values(sample.y, sample.weight)
        values = values[ordinary_values(values, weight)]
        self.met_ = float(values[0]), float(values[-1])
        self.step_ = lattice_step(values)

    def read(self, law: Law) -> Law:
        """Return the law with a part of what is beyond the values met on a curve."""
        if self.step_ is None:
            # A discrete law says of any value that it is in the cell of one.
            return law
        sides = law.atoms < self.met_[0], law.atoms > self.met_[1]
        gaps = [law.masses[:, side].sum(axis=1) for side in sides]
        open_ = [
            bool(side.any()) and not np.isfinite(end)
            for side, end in zip(sides, self.bounds, strict=True)
        ]
        if not any(open_) or len(law) == 0:
            return law
        masses, parts = law.masses.copy(), []
        for side, gap, is_open in zip(sides, gaps, open_, strict=True):
            taken = _BEYOND if is_open else 0.0
            masses[:, side] *= 1.0 - taken
            parts.append(taken * gap)
        step = self.step_
        # Between the ends no value of the support falls to the curve, but for values
        # that are far out.
        low, high = _ends_of_run(law.atoms, self.met_, step)
        spans = self.met_[0] - low, high - self.met_[1]
        total = np.maximum(parts[0] + parts[1], 1e-300)
        return replace(
            law,
            curve=_both_tails(parts[0] / total, (low, high), spans),
            masses=masses,
            step=step,
            offset=float(law.atoms[0]),
            ends=self.bounds,
        )


def _ends_of_run(
    values: Float64Array, inside: tuple[float, float], step: float
) -> tuple[float, float]:
    """Return where the cells end that leave no gap around those inside."""
    gaps = np.append(np.flatnonzero(np.diff(values) > 1.5 * step), len(values) - 1)
    last = gaps[np.searchsorted(values[gaps], inside[1])]
    first = np.append(0, gaps[:-1] + 1)
    start = first[np.searchsorted(values[first], inside[0], "right") - 1]
    return float(values[start]) - 0.5 * step, float(values[last]) + 0.5 * step


def _both_tails(
    share: Float64Array, ends: tuple[float, float], spans: tuple[float, float]
) -> Curve:
    """Return curves with a share (n,) below the lower end, and the rest above."""
    n, g = len(share), STANDARD.greville
    free = np.full(n, np.inf)
    if (share == 0.0).all():
        u = np.log(spans[1]) + _SPREAD * g
        low = np.full(n, ends[1])
        return read_curve(np.tile(u, (n, 1)), low, free)
    start = np.clip(ndtri(share), -9.0, 9.0)[:, None]
    with np.errstate(over="ignore"):
        below = ends[0] - spans[0] * np.exp(_SPREAD * np.maximum(start - g, 0.0))
        above = ends[1] + spans[1] * np.exp(_SPREAD * np.maximum(g - start, 0.0))
    return read_curve(np.where(g < start, below, above), -free, free, plain=True)
