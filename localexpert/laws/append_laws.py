"""`append_laws`: the rows of several laws one after another, as one law."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.laws.discrete import DiscreteLaw
from localexpert.laws.join_laws import jump_values, parts_of
from localexpert.laws.law import Law
from localexpert.laws.mixed import MixedLaw
from localexpert.laws.near_values import nearest_places
from localexpert.laws.pooled_law import PooledLaw
from localexpert.laws.quantile_law import QuantileLaw
from localexpert.laws.scipy_law import ScipyLaw
from localexpert.laws.spline import SplineLaw
from localexpert.laws.transformed import TransformedLaw


def append_laws(laws: Sequence[Law]) -> Law:
    """Return the rows of all laws, in their order.

    Parameters
    ----------
    laws : sequence of laws
        One or more.

    Returns
    -------
    Law
        Of the same class where all are of one and can be, a `DiscreteLaw` or a
        `MixedLaw` where some have jumps, else an `AppendedLaw`.
    """
    held = [law for law in laws if len(law)] or list(laws[:1])
    if len(held) == 1:
        return held[0]
    if any(law.has_jumps for law in held):
        return _append_jumps(held)
    joined = _join(held[0], held)
    if joined is not None:
        return joined
    sizes = [len(law) for law in held]
    part = np.repeat(np.arange(len(held)), sizes)
    return AppendedLaw(held, part, np.concatenate([np.arange(size) for size in sizes]))


@singledispatch
def _join(first: Law, laws: Sequence[Law]) -> Law | None:
    """Return the rows as one law of the first's class; None where that cannot be."""
    del first, laws
    return None


@_join.register
def _(first: QuantileLaw, laws: Sequence[Law]) -> Law | None:
    if not all(first.is_like(law) for law in laws):
        return None
    values, slopes, tails = _stack(laws, "values", "slopes", "tails")
    return QuantileLaw(first.knots, values, slopes, tails, first.bounds)


@_join.register
def _(first: ScipyLaw, laws: Sequence[Law]) -> Law | None:
    if not all(first.is_like(law) for law in laws):
        return None
    return ScipyLaw(first.family, *_stack(laws, "parameters"))


@_join.register
def _(first: SplineLaw, laws: Sequence[Law]) -> Law | None:
    alike = all(
        isinstance(law, SplineLaw)
        and law.base is first.base
        and law.bounds == first.bounds
        and np.array_equal(law.knots, first.knots)
        for law in laws
    )
    if not alike:
        return None
    center, scale, values, slopes = _stack(laws, "center", "scale", "values", "slopes")
    return SplineLaw(
        center, scale, first.knots, values, slopes, first.base, first.bounds
    )


@_join.register
def _(first: TransformedLaw, laws: Sequence[Law]) -> Law | None:
    same = [
        law.law
        for law in laws
        if isinstance(law, TransformedLaw) and law.values is first.values
    ]
    if len(same) < len(laws):
        return None
    return TransformedLaw(append_laws(same), first.values)


@_join.register
def _(first: PooledLaw, laws: Sequence[Law]) -> Law | None:
    same = [
        law
        for law in laws
        if isinstance(law, PooledLaw)
        and (law.kind, law.scores, len(law.members))
        == (first.kind, None, len(first.members))
    ]
    if len(same) < len(laws):
        return None
    members = zip(*(law.members for law in same), strict=True)
    joined = [append_laws(rows) for rows in members]
    return PooledLaw(joined, np.concatenate([law.w for law in same]), first.kind)


def _stack(laws: Sequence[Law], *names: str) -> list[Float64Array]:
    """Return fields of the laws, their rows one after another."""
    return [np.concatenate([getattr(law, name) for law in laws]) for name in names]


def _append_jumps(laws: Sequence[Law]) -> DiscreteLaw | MixedLaw:
    """Return laws of which some have jumps as masses of values beside smooth laws."""
    values, parts = jump_values(laws), [parts_of(law) for law in laws]
    masses, widths = [], np.zeros(len(values))
    for law, part in zip(laws, parts, strict=True):
        place = nearest_places(values, part.values)
        own = np.zeros((len(law), len(values)))
        # Values of a law that are near each other share a place.
        for at, mass in zip(place, part.masses.T, strict=True):
            own[:, at] += mass
        np.maximum.at(widths, place, part.widths)
        masses.append(own)
    smooth = [part.smooth for part in parts if part.smooth is not None]
    if not smooth:
        return DiscreteLaw(values, np.concatenate(masses))
    # Where there is no smooth part any law stands for it, without probability.
    rest = [
        smooth[0].take(np.zeros(len(law), dtype=np.intp))
        if part.smooth is None
        else part.smooth
        for law, part in zip(laws, parts, strict=True)
    ]
    return MixedLaw(values, np.concatenate(masses), append_laws(rest), widths)


@dataclass(frozen=True, eq=False, repr=False)
class AppendedLaw(Law):
    """Row i is that of `parts[part[i]]` in its place `place[i]`.

    Parameters
    ----------
    parts : sequence of laws
        Without jumps.
    part, place : ndarray of int of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.laws.append_laws import append_laws
    >>> from localexpert.laws.scipy_law import ScipyLaw
    >>> law = append_laws([ScipyLaw("norm", [[3, 1]]), ScipyLaw("gamma", [[2, 0, 1]])])
    >>> law.take(np.array([1, 0])).moments()[:, 0]
    array([2., 3.])
    """

    parts: Sequence[Law]
    part: NDArray[np.intp]
    place: NDArray[np.intp]
    _held: list[tuple[NDArray[np.intp], Law]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        held = []
        for number, law in enumerate(self.parts):
            rows = np.flatnonzero(self.part == number)
            if len(rows):
                held.append((rows, law.take(self.place[rows])))
        object.__setattr__(self, "_held", held)

    def __len__(self) -> int:
        return len(self.part)

    def __reduce__(self) -> tuple[type[AppendedLaw], tuple[Any, ...]]:
        return type(self), (self.parts, self.part, self.place)

    @property
    def support(self) -> tuple[float, float]:
        """Least and greatest value of any part's support."""
        lows, highs = zip(*(law.support for law in self.parts), strict=True)
        return min(lows), max(highs)

    def take(self, rows: slice | NDArray[Any]) -> AppendedLaw:
        return AppendedLaw(self.parts, self.part[rows], self.place[rows])

    def _each(self, method: str, *values: Any) -> Iterator[tuple[Any, Any]]:
        """Yield rows, and what their law says of their values."""
        for rows, law in self._held:
            own = [x[rows] if isinstance(x, np.ndarray) else x for x in values]
            yield rows, getattr(law, method)(*own)

    def _ask(self, method: str, *values: Float64Array) -> Float64Array:
        """Return what the laws say, in an array of a row each."""
        out = np.empty((0, *(x.shape[1] for x in values)))
        for number, (rows, answer) in enumerate(self._each(method, *values)):
            if number == 0:
                out = np.empty((len(self), *answer.shape[1:]))
            out[rows] = answer
        return out

    def cdf(self, y: Float64Array) -> Float64Array:
        return self._ask("cdf", y)

    def sf(self, y: Float64Array) -> Float64Array:
        return self._ask("sf", y)

    def logpdf(self, y: Float64Array) -> Float64Array:
        return self._ask("logpdf", y)

    def ppf(self, q: Float64Array) -> Float64Array:
        return self._ask("ppf", q)

    def ppf_scores(self, scores: Float64Array) -> Float64Array:
        return self._ask("ppf_scores", scores)

    def crps(self, y: Float64Array) -> Float64Array:
        return self._ask("crps", y)

    def partial_means(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        below, above = np.empty(y.shape), np.empty(y.shape)
        for rows, (lower, upper) in self._each("partial_means", y):
            below[rows], above[rows] = lower, upper
        return below, above

    def moments(self) -> Float64Array:
        return self._ask("moments").reshape(-1, 4)

    def entropy(self) -> Float64Array:
        return self._ask("entropy")

    def mode(self) -> Float64Array:
        return self._ask("mode")

    def nodes(self) -> tuple[Float64Array, Float64Array]:
        """Return nodes; those of rows with fewer than others end without weight."""
        found = list(self._each("nodes"))
        most = max((y.shape[1] for _, (y, _) in found), default=0)
        out, weights = np.zeros((len(self), most)), np.zeros((len(self), most))
        for rows, (y, own) in found:
            out[rows] = np.pad(y, ((0, 0), (0, most - y.shape[1])), mode="edge")
            weights[rows, : y.shape[1]] = own
        return out, weights

    def kinks(self) -> Float64Array:
        found = list(self._each("kinks"))
        most = max((y.shape[1] for _, y in found), default=0)
        # A kink told of twice is one.
        out = np.tile(self.ppf_scores(np.zeros((len(self), 1))), (1, most))
        for rows, y in found:
            out[rows, : y.shape[1]] = y
        return out

    def shortest_interval(self, coverage: float) -> Float64Array:
        out = np.empty((len(self), 2))
        for rows, ends in self._each("shortest_interval", coverage):
            out[rows] = ends
        return out

    def densest_regions(self, coverage: Float64Array) -> list[Float64Array]:
        out: list[Float64Array] = [np.empty((0, 2))] * len(self)
        for rows, regions in self._each("densest_regions", coverage):
            for row, region in zip(rows, regions, strict=True):
                out[row] = region
        return out
