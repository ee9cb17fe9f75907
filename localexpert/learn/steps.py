"""`Step`: what is done to a target before it is learned, and to laws afterwards."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from scipy.special import ndtr

from calibration import CalibrationWarning
from calibration.typing import Float64Array
from localexpert._validation import show
from localexpert.data.sample import Sample
from localexpert.law.bounds import clip, cut
from localexpert.law.curve import read_curve
from localexpert.law.law import Law
from localexpert.law.steps import scores_of
from localexpert.law.transform import ValueMap, call_vectorised, carry_law

# An atom's cell is this share of the spread (interquartile range) of the other values,
# so that a hit is worth what a forecast of that sharpness would earn.
_CELL_SHARE = 0.01
# So many ranges of y beyond it is far.
_FAR = 3.0
# Of a function of y: with tails no heavier than normal ones all moments of its inverse
# that is no steeper than exp are finite.
_LIGHT = -0.1
# A function and its inverse lead back to y up to this share of its size and spread.
_OF_SIZE = 1e-6


Bounds: TypeAlias = tuple[float, float]
UNBOUNDED: Bounds = (-np.inf, np.inf)


@dataclass(frozen=True)
class Limits:
    """Where targets end, in their own units.

    Parameters
    ----------
    bounds : (float, float)
        Infinite where there is none.
    suspected : (float, float)
        Ends that are bounds if forecasts without them say so.
    max_shape : float
        Greatest shape of the tails of marginals.
    """

    bounds: Bounds = UNBOUNDED
    suspected: Bounds = UNBOUNDED
    max_shape: float = 0.2


class Step(ABC):
    """A map of laws to laws, with what it does to the target that is learned.

    Only `read` has to be written: by default the target is learned as it is.

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

    # Whether laws that are in order (`monotone`) still are.
    keeps_order: ClassVar[bool] = False
    # Whether it reads laws without jumps only, and whether it makes laws of values.
    asks_smooth: ClassVar[bool] = False
    makes_values: ClassVar[bool] = False

    def bind(self, limits: Limits, seed: int) -> tuple[Self, Limits]:
        """Return an unfitted copy, and the limits of what is learned within.

        Parameters
        ----------
        limits : Limits
            In units of the step's own target.
        seed : int

        Returns
        -------
        step : Step
        limits : Limits
        """
        del seed
        return copy(self), limits

    def check_target(self, y: Float64Array) -> Float64Array:
        """Refuse targets that the step cannot take, and return what is learned.

        Parameters
        ----------
        y : ndarray of shape (n,)

        Returns
        -------
        ndarray of shape (n,)
        """
        return y

    def fit(self, sample: Sample) -> None:
        """Learn from the rows what the step asks of them.

        Parameters
        ----------
        sample : Sample
        """
        del sample

    @abstractmethod
    def read(self, law: Law) -> Law:
        """Return the law of y for one of what was learned.

        Parameters
        ----------
        law : Law

        Returns
        -------
        Law
        """

    def there(self, y: Float64Array) -> Float64Array:
        """Return what is learned of targets.

        Parameters
        ----------
        y : ndarray of shape (n,)

        Returns
        -------
        ndarray of shape (n,)
        """
        return y

    def there_anew(self, y: Float64Array) -> Float64Array:
        """Return the same of targets that new rows may have.

        Parameters
        ----------
        y : ndarray of shape (n,)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self.there(y)

    def back(self, z: Float64Array) -> Float64Array:
        """Return numbers of what is learned in units of y.

        Parameters
        ----------
        z : ndarray of shape (n, k)

        Returns
        -------
        ndarray of shape (n, k)
        """
        return z

    def check_laws(self, law: Law, y: Float64Array) -> None:
        """Warn of laws that cannot be meant.

        Parameters
        ----------
        law : Law
            Of some rows.
        y : ndarray of shape (n,)
            Targets of all rows.
        """
        del law, y

    def choices(self) -> dict[str, Any]:
        """Return what there is to tell of the step.

        Returns
        -------
        dict
            Numbers and names only.
        """
        return {}

    @property
    def changes_target(self) -> bool:
        """Whether something else than y is learned."""
        return type(self).there is not Step.there

    def inner(self, sample: Sample) -> Sample:
        """Return the rows with what is learned as their target.

        Parameters
        ----------
        sample : Sample

        Returns
        -------
        Sample
        """
        if not self.changes_target:
            return sample
        # Where y has no weight it may be anything.
        present = sample.weight > 0.0
        y = np.where(present, sample.y, sample.y[present][0])
        return replace(sample, y=self.there(y))


@dataclass
class OtherFolds(Step):
    """Learn the same target, with folds that a seed of its own deals.

    Parameters
    ----------
    cv : int or "auto"
    seed : int
    """

    cv: Any
    seed: int
    keeps_order: ClassVar[bool] = True

    def inner(self, sample: Sample) -> Sample:
        """Return the rows with other folds: no more of them than rows or groups."""
        held = np.flatnonzero(sample.weight)
        parts = held if sample.groups is None else np.unique(sample.groups[held])
        cv = self.cv if isinstance(self.cv, str) else min(self.cv, len(parts))
        return sample.deal(cv, sample.groups, self.seed)

    def read(self, law: Law) -> Law:
        """Return the law."""
        return law


@dataclass
class Carry(Step):
    """Learn an increasing function of the target, and carry laws back.

    Parameters
    ----------
    func, inverse : callable

    Attributes
    ----------
    domain_ : (float, float)
        The values of func(y) that are those of some y.
    """

    func: Callable[..., Any]
    inverse: Callable[..., Any]
    domain_: tuple[float, float] = field(init=False, repr=False)
    keeps_order: ClassVar[bool] = True
    asks_smooth: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse what cannot be called."""
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
            msg = f"`func` must be finite on y, got {show(z[i])} at {show(y[i])}."
            raise ValueError(msg)
        if (np.diff(z) <= 0.0).any():
            i = int(np.argmax(np.diff(z) <= 0.0))
            msg = (
                f"`func` must increase on y, got {show(z[i])} at {show(y[i])} and "
                f"{show(z[i + 1])} at {show(y[i + 1])}."
            )
            raise ValueError(msg)
        back = call_vectorised(self.inverse, "inverse", z)
        wrong = ~(np.abs(back - y) <= _OF_SIZE * np.maximum(np.abs(y), np.ptp(y)))
        if wrong.any():
            i = int(np.argmax(wrong))
            msg = (
                f"`inverse` must undo `func`, got func({show(y[i])}) = {show(z[i])} "
                f"and inverse({show(z[i])}) = {show(back[i])}."
            )
            raise ValueError(msg)
        return z

    def fit(self, sample: Sample) -> None:
        """Find out which values are those of some y."""
        z = self.there(sample.y[sample.weight > 0.0])
        self.domain_ = self.values.domain(float(z.min()), float(z.max()))

    def there(self, y: Float64Array) -> Float64Array:
        """Return func(y) of targets (n,)."""
        return self.values.inverse(y)

    def back(self, z: Float64Array) -> Float64Array:
        """Return y of numbers func(y), (n, k)."""
        return self.values.forward(z)

    def read(self, law: Law) -> Law:
        """Return a law carried back."""
        # What a model forecasts of z beyond where func increases is no y at all.
        if law.ordered:
            law = clip(law, *self.domain_, law.end_width)
        else:
            law = cut(law, *self.domain_)
        return carry_law(law, self.values)

    def check_laws(self, law: Law, y: Float64Array) -> None:
        """Say so where forecasts of some rows have means far from all targets."""
        means, room = law.moments(2)[:, 0], _FAR * np.ptp(y)
        far = ~((means > y.min() - room) & (means < y.max() + room))
        if far.any():
            msg = (
                f"`roads` has a road to {self.func!r} of y whose forecasts "
                f"have means far from all targets in {far.mean():.0%} of the rows, "
                f"such as {means[far][0]:.3g}: what is nearly impossible there is huge "
                "in y. Take a function that bends less."
            )
            warnings.warn(msg, CalibrationWarning, stacklevel=2)

    def choices(self) -> dict[str, Any]:
        """Return the function; what the road chose is in units of it."""
        return {"transform": repr(self.func)}


# What is near a value holds so many times its own weight at most...
_MOST_NEAR = 2.0
# ...and no less than half a row besides, so that something is left between values.
_LEAST_BESIDE = 0.5


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
    asks_smooth: ClassVar[bool] = True

    def fit(self, sample: Sample) -> None:
        """Look at what is around the atoms."""
        rest = ~np.isin(sample.y, self.atoms)
        y, weight = sample.y, sample.weight
        self.widths_ = atom_widths(self.atoms, y[rest], weight[rest])
        self.borders_, self.shares_ = _look_around(self.atoms, y, weight)

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


def atom_widths(
    atoms: Float64Array, rest: Float64Array, weight: Float64Array
) -> Float64Array:
    """Return the widths of atoms' cells, given the other targets and their weights.

    An atom has no density; the log score gives its probability a cell's width.

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
