"""`Step` changes a target before it is learned, and the laws afterwards."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from scipy.special import ndtr

from calibration._validation import refuse, show
from calibration.typing import Float64Array
from localexpert.data.folds import Sample
from localexpert.data.unseen import warn_user
from localexpert.law.curve import read_curve
from localexpert.law.law import Law
from localexpert.law.level_map import clip, cut
from localexpert.law.steps import scores_of
from localexpert.law.transform import ValueMap, call_vectorised, carry_law

# An atom's cell is this share of the spread (interquartile range) of the other values.
# So a hit earns the same log score as a smooth forecast of that sharpness.
_CELL_SHARE = 0.01
# A value is far out if it lies this many ranges of y beyond the range.
_FAR = 3.0
# Shape of the tails for a function of y. They are no heavier than normal ones. So all
# moments of y are finite if the inverse is no steeper than exp.
_LIGHT = -0.1
# A function and its inverse must lead back to y, up to this share of its size and
# spread.
_OF_SIZE = 1e-6


Bounds: TypeAlias = tuple[float, float]
UNBOUNDED: Bounds = (-np.inf, np.inf)


@dataclass(frozen=True)
class Limits:
    """Where targets end, in their own units.

    Parameters
    ----------
    bounds : (float, float)
        Infinite if there is no bound.
    suspected : (float, float)
        Ends that become bounds if forecasts without them suggest it.
    max_shape : float
        Greatest shape of a marginal's tails.
    """

    bounds: Bounds = UNBOUNDED
    suspected: Bounds = UNBOUNDED
    max_shape: float = 0.2


class Step(ABC):
    """A map from laws to laws, and a change of the target that is learned.

    A subclass must only write `read`. By default the target stays as it is.

    Examples
    --------
    Forecasts that are never sure:

    >>> from localexpert import FrameRoad, Step
    >>> from localexpert.law.level_map import LevelMap, map_levels
    >>> class Widen(Step):
    ...     keeps_order = True
    ...     def read(self, law):
    ...         return map_levels(law, LevelMap.line(0.0, 0.9))
    >>> road = FrameRoad().with_step(Widen())
    """

    # Whether laws that are in order (`monotone`) stay in order.
    keeps_order: ClassVar[bool] = False
    # Whether it only reads laws without jumps, and whether it makes discrete laws.
    asks_smooth: ClassVar[bool] = False
    makes_values: ClassVar[bool] = False

    def bind(self, limits: Limits, seed: int) -> tuple[Self, Limits]:
        """Return an unfitted copy, and the limits of the target that is learned.

        Parameters
        ----------
        limits : Limits
            Limits in units of the step's own target.
        seed : int

        Returns
        -------
        step : Step
        limits : Limits
        """
        del seed
        return copy(self), limits

    def check_target(self, y: Float64Array) -> Float64Array:
        """Refuse targets that the step cannot take. Return the target that is learned.

        Parameters
        ----------
        y : ndarray of shape (n,)

        Returns
        -------
        ndarray of shape (n,)
        """
        return y

    def fit(self, sample: Sample) -> None:
        """Learn from the rows what the step needs.

        Parameters
        ----------
        sample : Sample
        """
        del sample

    @abstractmethod
    def read(self, law: Law) -> Law:
        """Turn a law of the learned target into a law of y.

        Parameters
        ----------
        law : Law

        Returns
        -------
        Law
        """

    def there(self, y: Float64Array) -> Float64Array:
        """Turn targets y into the target that is learned.

        Parameters
        ----------
        y : ndarray of shape (n,)

        Returns
        -------
        ndarray of shape (n,)
        """
        return y

    def there_anew(self, y: Float64Array) -> Float64Array:
        """Do the same for targets that new rows may have.

        Parameters
        ----------
        y : ndarray of shape (n,)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self.there(y)

    def back(self, z: Float64Array) -> Float64Array:
        """Turn values of the learned target into units of y.

        Parameters
        ----------
        z : ndarray of shape (n, k)

        Returns
        -------
        ndarray of shape (n, k)
        """
        return z

    def check_laws(self, law: Law, y: Float64Array) -> None:
        """Warn of laws that are clearly wrong.

        Parameters
        ----------
        law : Law
            Laws of some rows.
        y : ndarray of shape (n,)
            Targets of all rows.
        """
        del law, y

    def choices(self) -> dict[str, Any]:
        """Return what a report says about the step.

        Returns
        -------
        dict
            Numbers and names only.
        """
        return {}

    @property
    def changes_target(self) -> bool:
        """Whether the target that is learned differs from y."""
        return type(self).there is not Step.there

    def inner(self, sample: Sample) -> Sample:
        """Return the rows with the target that is learned.

        Parameters
        ----------
        sample : Sample

        Returns
        -------
        Sample
        """
        if not self.changes_target:
            return sample
        # A y without weight may be any number.
        present = sample.weight > 0.0
        y = np.where(present, sample.y, sample.y[present][0])
        return replace(sample, y=self.there(y))


@dataclass
class OtherFolds(Step):
    """Learn the same target with other folds, which come from another seed.

    Parameters
    ----------
    cv : int or "auto"
    seed : int
    """

    cv: Any
    seed: int
    keeps_order: ClassVar[bool] = True

    def inner(self, sample: Sample) -> Sample:
        """Return the rows with other folds, no more of them than rows or groups."""
        held = np.flatnonzero(sample.weight)
        parts = held if sample.groups is None else np.unique(sample.groups[held])
        cv = self.cv if isinstance(self.cv, str) else min(self.cv, len(parts))
        return sample.deal(cv, sample.groups, self.seed)

    def read(self, law: Law) -> Law:
        """Return the law as it is."""
        return law


@dataclass
class Carry(Step):
    """Learn an increasing function of the target, and turn laws back into laws of y.

    Parameters
    ----------
    func, inverse : callable

    Attributes
    ----------
    domain_ : (float, float)
        Range of func(y) over all y.
    """

    func: Callable[..., Any]
    inverse: Callable[..., Any]
    keeps_order: ClassVar[bool] = True
    asks_smooth: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse functions that cannot be called."""
        ValueMap(self.func, self.inverse)

    @property
    def values(self) -> ValueMap:
        """The map from func(y) to y."""
        return ValueMap(self.inverse, self.func)

    def bind(self, limits: Limits, seed: int) -> tuple[Self, Limits]:
        """Return a copy, and limits in units of func(y)."""
        del seed
        end = ValueMap(self.func, self.inverse).end
        bounds, suspected = (
            (end(low), end(high)) for low, high in (limits.bounds, limits.suspected)
        )
        return copy(self), Limits(bounds, suspected, _LIGHT)

    def check_target(self, y: Float64Array) -> Float64Array:
        """Refuse targets on which func does not increase, or has no inverse."""
        y = np.unique(y)
        z = call_vectorised(self.func, "func", y)
        if not np.isfinite(z).all():
            i = int(np.argmin(np.isfinite(z)))
            refuse("func", "be finite on y", f"{show(z[i])} at {show(y[i])}")
        if (np.diff(z) <= 0.0).any():
            i = int(np.argmax(np.diff(z) <= 0.0))
            first, second = (f"{show(z[k])} at {show(y[k])}" for k in (i, i + 1))
            refuse("func", "increase on y", f"{first} and {second}")
        back = call_vectorised(self.inverse, "inverse", z)
        wrong = ~(np.abs(back - y) <= _OF_SIZE * np.maximum(np.abs(y), np.ptp(y)))
        if wrong.any():
            i = int(np.argmax(wrong))
            there = f"func({show(y[i])}) = {show(z[i])}"
            got = f"{there} and inverse({show(z[i])}) = {show(back[i])}"
            refuse("inverse", "undo `func`", got)
        return z

    def fit(self, sample: Sample) -> None:
        """Find the range of func(y)."""
        z = self.there(sample.y[sample.weight > 0.0])
        self.domain_ = self.values.domain(float(z.min()), float(z.max()))

    def there(self, y: Float64Array) -> Float64Array:
        """Return func(y) of targets (n,)."""
        return self.values.inverse(y)

    def back(self, z: Float64Array) -> Float64Array:
        """Return y for values of func(y), (n, k)."""
        return self.values.forward(z)

    def read(self, law: Law) -> Law:
        """Turn a law of func(y) into a law of y."""
        # A model may forecast z outside the range of func. No y belongs to such a z.
        if law.ordered:
            law = clip(law, *self.domain_, law.end_width)
        else:
            law = cut(law, *self.domain_)
        return carry_law(law, self.values)

    def check_laws(self, law: Law, y: Float64Array) -> None:
        """Warn if forecasts of some rows have means far from all targets."""
        means, room = law.moments(2)[:, 0], _FAR * np.ptp(y)
        far = ~((means > y.min() - room) & (means < y.max() + room))
        if far.any():
            warn_user(
                f"`roads` has a road to {self.func!r} of y whose forecasts "
                f"have means far from all targets in {far.mean():.0%} of the rows, "
                f"such as {means[far][0]:.3g}: what is nearly impossible there is huge "
                "in y. Take a function that bends less."
            )

    def choices(self) -> dict[str, Any]:
        """Return the function. What the road chose is in units of func(y)."""
        return {"transform": repr(self.func)}


# The region around a value holds at most this many times the value's own weight...
_MOST_NEAR = 2.0
# ...and at least half a row besides, so that something is left between values.
_LEAST_BESIDE = 0.5


@dataclass
class NearAtoms(Step):
    """Collect mass of the smooth laws of all rows at frequent values.

    A smooth target may often be rounded to some values, which become heavy. Then the
    rows between them tell as much about them as their own rows do. An atom takes a
    share of the mass around it. This is its share of the rows there.

    Parameters
    ----------
    atoms : ndarray of shape (A,)

    Attributes
    ----------
    borders_ : ndarray of shape (2 A,)
        Both ends of the region around each atom, increasing.
    shares_ : ndarray of shape (A,)
        Share of each atom in its region, below 1.
    """

    atoms: Float64Array
    asks_smooth: ClassVar[bool] = True

    def fit(self, sample: Sample) -> None:
        """Find the region around each atom."""
        rest = ~np.isin(sample.y, self.atoms)
        y, weight = sample.y, sample.weight
        self.widths_ = atom_widths(self.atoms, y[rest], weight[rest])
        self.borders_, self.shares_ = _look_around(self.atoms, y, weight)

    def choices(self) -> dict[str, Any]:
        """Return the atoms."""
        return {"atoms": self.atoms.tolist()}

    def read(self, law: Law) -> Law:
        """Return the atoms, and beside them the rest of the smooth law.

        Around an atom of share s, the density becomes 1 - s times what it was. So the
        CDF of the rest is a function H of the CDF F. It consists of straight lines of
        slope 1 - s there and 1 elsewhere, times a factor that makes it end at 1. H is
        inverted from either side, so that both tails keep their digits.
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
    """Return the borders of the region around each atom, and the atom's share of it.

    A region reaches equally far to both sides, at most half-way to the next atom. It
    holds at most twice the atom's own weight.
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
    # Two borders that meet half-way may pass each other by rounding.
    return np.maximum.accumulate(borders), shares


def _turn_round(
    levels: Float64Array, slopes: Float64Array, wanted: Float64Array
) -> Float64Array:
    """Return the u (n, K) where a broken line through 0 reaches the wanted values.

    Parameters
    ----------
    levels : ndarray of shape (n, B)
        Places where the slope changes, increasing along a row.
    slopes : ndarray of shape (B + 1,)
        Slopes of the pieces, positive.
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


def atom_widths(
    atoms: Float64Array, rest: Float64Array, weight: Float64Array
) -> Float64Array:
    """Return the widths of the atoms' cells, given the other targets and their weights.

    An atom has no density. For the log score, its density is its probability over the
    width of its cell.

    Parameters
    ----------
    atoms : ndarray of shape (A,)
    rest, weight : ndarrays of shape (n,)

    Returns
    -------
    ndarray of shape (A,)
    """
    held = weight > 0.0
    rest, weight = rest[held], weight[held]
    low, high = np.quantile(rest, [0.25, 0.75], weights=weight, method="inverted_cdf")
    spread = high - low if high > low else float(np.ptp(rest)) or 1.0
    return np.full(len(atoms), _CELL_SHARE * spread)
