"""`Law`: n distributions as atoms beside one increasing curve a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, xlogy

from calibration.typing import Float64Array
from localexpert.law.curve import Curve, cut_curve, search_shortest, without_caches
from localexpert.law.lattice import OF_STEP, Lattice
from localexpert.law.steps import (
    OF_SINGLE,
    as_shares,
    cell_edges,
    cell_widths,
    densest_runs,
    densest_values,
    join_points,
    log_between,
    nearest_places,
    reach_of_values,
    scores_of,
    step_entropy,
    step_integrals,
    step_shortest,
)

# Rounding that sums of probabilities may carry where a quantile meets a jump.
_SLACK, _TINIEST = 1e-14, 5e-324
# A curve of less probability than this does not count.
_ROUNDING = 1e-12
_NOWHERE = (-np.inf, np.inf)

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _of_clipped(method: _Method) -> _Method:
    """Make a method use the law whose clipped ends are atoms."""

    @wraps(method)
    def call(law: Law, *asked: Any) -> Any:
        return method(law.clipped, *asked)

    return cast(_Method, call)


@dataclass(frozen=True, eq=False, repr=False)
class Law:
    r"""n conditional distributions, immutable, asked about all rows at once.

    .. math:: F_i(y) = \sum_{a_j \le y} m_{ij} + (1 - \sum_j m_{ij}) \Phi(Q_i^{-1}(y)),

    with masses m of a few values a that all rows share, and a curve Q. As a last step
    values may be rounded to a lattice, or clipped.

    An argument `y`, `q` or `scores` is a float64 array (n, k) with k questions for each
    row. The answer has the same shape. Answers about a row as a whole have shape (n,),
    or one row each. `PredictiveDistribution` checks the arguments.

    Parameters
    ----------
    curve : Curve or None
        None if all probability is in values.
    atoms : ndarray of shape (A,)
        Strictly increasing.
    masses : ndarray of shape (n, A)
        Not negative; rows sum to 1 at most.
    widths : ndarray of shape (A,)
        Widths of the atoms' cells. The density at an atom is mass / width, so that no
        spike gets an unbounded score. Where an atom has no mass it is the curve's.
    step, offset : float
        The lattice that values are rounded to; step 0 means none.
    ends : (float, float)
        Y is clipped to these ends.
    end_width : float
        Width of the cells of the ends.
    ordered : bool
        Whether curves are read so that rows keep their order.
    known : ndarray of shape (n, 4), optional
        Mean and central moments, if they are known. Moments that do not exist are not
        finite.
    """

    curve: Curve | None
    atoms: Float64Array
    masses: Float64Array
    widths: Float64Array
    step: float = 0.0
    offset: float = 0.0
    ends: tuple[float, float] = _NOWHERE
    end_width: float = 1.0
    ordered: bool = False
    known: Float64Array | None = None

    @classmethod
    def smooth(cls, curve: Curve, **parts: Any) -> Law:
        """Return the law of curves alone."""
        none = np.empty(0)
        return cls(curve, none, np.empty((len(curve), 0)), none, **parts)

    @classmethod
    def discrete(cls, values: Float64Array, masses: Float64Array) -> Law:
        """Return the law of probabilities (n, V), rows of sum 1, of values (V,)."""
        return cls(None, values, masses, cell_widths(values))

    def __len__(self) -> int:
        return len(self.masses)

    def __reduce__(self) -> tuple[type[Law], tuple[Any, ...]]:
        return without_caches(self)

    def take(self, rows: slice | NDArray[Any]) -> Law:
        """Return the law of some rows."""
        curve = None if self.curve is None else self.curve.take(rows)
        known = None if self.known is None else self.known[rows]
        return replace(self, curve=curve, masses=self.masses[rows], known=known)

    # What the law is.

    @property
    def is_discrete(self) -> bool:
        """Whether there is no curve."""
        return self.curve is None

    @property
    def is_smooth(self) -> bool:
        """Whether there is only a curve."""
        return len(self.atoms) == 0 and not self.has_jumps

    @property
    def has_jumps(self) -> bool:
        """Whether values of positive probability are possible."""
        return len(self.atoms) > 0 or self.step > 0.0 or self.ends != _NOWHERE

    @property
    def is_clipped(self) -> bool:
        """Whether atoms at the ends are made only when asked for."""
        return self.step == 0.0 and self.ends != _NOWHERE

    @property
    def all_jumps(self) -> bool:
        """Whether all probability is in values: few, or those of a lattice."""
        return self.curve is None or self.step > 0.0

    @property
    def own_curve(self) -> Curve:
        """The curve, where there is one."""
        assert self.curve is not None
        return self.curve

    @cached_property
    def lattice(self) -> Lattice:
        """The lattice of the values if `step` is not 0."""
        return Lattice(self.step, self.offset)

    @cached_property
    def rest(self) -> Float64Array:
        """Probability of the curve, (n,)."""
        return 1.0 - self._upto[:, -1]

    @cached_property
    def _upto(self) -> Float64Array:
        """Masses of no atom, the first, the first two and so on, (n, A + 1)."""
        upto = np.zeros((len(self), len(self.atoms) + 1))
        np.minimum(np.cumsum(self.masses, axis=1), 1.0, out=upto[:, 1:])
        whole = self.curve is None
        upto[(upto[:, -1] > 1.0 - _ROUNDING) | whole, -1] = 1.0
        return upto

    @cached_property
    def _beyond(self) -> Float64Array:
        """Masses of all atoms, of those after the first and so on, (n, A + 1)."""
        return np.pad(np.cumsum(self.masses[:, ::-1], 1)[:, ::-1], ((0, 0), (0, 1)))

    @cached_property
    def _values(self) -> tuple[Float64Array, Float64Array, NDArray[np.bool_]]:
        """Clipped ends and the atoms between, their widths, and which atoms are."""
        ends = self.ends if self.is_clipped else _NOWHERE
        inside = (self.atoms > ends[0]) & (self.atoms < ends[1])
        first, last = ([end] if np.isfinite(end) else [] for end in ends)
        beside, own = (len(first), len(last)), self.widths[inside]
        widths = np.pad(own, beside, constant_values=self.end_width)
        return np.concatenate([first, self.atoms[inside], last]), widths, inside

    @cached_property
    def _reach(self) -> tuple[Float64Array, Float64Array]:
        """How far from each of these values a number is taken for it, and a single."""
        return reach_of_values(*self._values[:2])

    @property
    def support(self) -> tuple[float, float]:
        """Least and greatest value that any row can take."""
        lows, highs = [np.inf], [-np.inf]
        if len(self.atoms):
            lows, highs = [float(self.atoms[0])], [float(self.atoms[-1])]
        if self.curve is not None and len(self):
            lows.append(float(self.curve.low.min()))
            highs.append(float(self.curve.high.max()))
        low, high = min(lows), max(highs)
        if low > high:
            low, high = _NOWHERE
        return max(low, self.ends[0]), min(high, self.ends[1])

    @property
    def clipped(self) -> Law:
        """The same law, with clipped ends as atoms and curves cut off there."""
        return self._cut_at_ends if self.is_clipped else self

    @cached_property
    def _cut_at_ends(self) -> Law:
        low, high = self.ends
        values, widths, inside = self._values
        rows = self.masses[:, inside]
        if np.isfinite(low):
            at = np.full((len(self), 1), low)
            rows = np.hstack([self._inner_levels(at)[0], rows])
        if np.isfinite(high):
            at = np.full((len(self), 1), high)
            rows = np.hstack([rows, self._inner_levels(at, left=True)[1]])
        total = rows.sum(axis=1, keepdims=True)
        whole = total >= 1.0 - _ROUNDING
        rows = np.where(whole, rows / np.where(whole, total, 1.0), rows)
        # A row without probability between the ends may have any row's curve.
        held, place = np.flatnonzero(~whole), np.zeros(len(self), dtype=np.intp)
        place[held] = np.arange(len(held))
        curve = self.own_curve
        if len(held):
            curve = cut_curve(curve.take(held), low, high)[0].take(place)
        return Law(curve, values, rows, widths)

    # Levels and densities at values.

    def lattice_edges(self, y: Float64Array, side: float) -> Float64Array:
        """Return the edge of the cell above (side 1) or below (-1) of values."""
        place = self.lattice.places(y)
        near = np.rint(place)
        whole = np.floor(place) if side > 0.0 else np.ceil(place)
        with np.errstate(invalid="ignore"):
            whole = np.where(np.abs(place - near) <= OF_STEP, near, whole)
            return self.lattice.values(whole + 0.5 * side)

    def _inner_levels(
        self, y: Float64Array, *, left: bool = False
    ) -> tuple[Float64Array, Float64Array]:
        """Return P(Y <= y) and P(Y > y), or with `left` < and >=, before the last step.

        Each is accurate where it is small.
        """
        below, above = np.zeros(y.shape), np.zeros(y.shape)
        if self.curve is not None:
            z, rest = self.curve.scores(y), self.rest[:, None]
            below, above = rest * ndtr(z), rest * ndtr(-z)
        if len(self.atoms):
            count = np.searchsorted(self.atoms, y, "left" if left else "right")
            below = below + np.take_along_axis(self._upto, count, axis=1)
            above = above + np.take_along_axis(self._beyond, count, axis=1)
        return np.minimum(below, 1.0), np.minimum(above, 1.0)

    def levels(
        self, y: Float64Array, *, left: bool = False
    ) -> tuple[Float64Array, Float64Array]:
        """Return P(Y <= y) and P(Y > y), or with `left` P(Y < y) and P(Y >= y)."""
        y = self.snap(y)
        at = self.lattice_edges(y, -1.0 if left else 1.0) if self.step > 0.0 else y
        below, above = self._inner_levels(at, left=left)
        low, high = self.ends if self.curve is not None else self.support
        under = (y <= low) if left else (y < low)
        over = (y > high) if left else (y >= high)
        below = np.where(under, 0.0, np.where(over, 1.0, below))
        return below, np.where(under, 1.0, np.where(over, 0.0, above))

    def cdf(self, y: Float64Array) -> Float64Array:
        """Return P(Y <= y)."""
        return self.levels(y)[0]

    def cdf_left(self, y: Float64Array) -> Float64Array:
        """Return P(Y < y)."""
        return self.levels(y, left=True)[0]

    def sf(self, y: Float64Array) -> Float64Array:
        """Return P(Y > y), accurate where it is small."""
        return self.levels(y)[1]

    def snap(self, y: Float64Array) -> Float64Array:
        """Return y, where it is a value but for rounding or a float32, as this one."""
        if self.step > 0.0:
            place = self.lattice.places(y)
            near = np.rint(np.where(np.isfinite(place), place, 0.0))
            values = self.lattice.values(near)
            reach, single = np.array([OF_STEP, OF_SINGLE]) * self.step
            # Ends and atoms are what they were given as, which may be a rounding away.
            own = np.sort(np.append(self.ends, self.atoms))
            given = own[nearest_places(own, values)]
            values = np.where(np.abs(values - given) <= reach, given, values)
        elif self.has_jumps:
            held, _, _ = self._values
            at = nearest_places(held, y)
            values, reach, single = (part[at] for part in (held, *self._reach))
        else:
            return y
        with np.errstate(over="ignore", invalid="ignore"):
            reach = np.where(values.astype(np.float32) == y, single, reach)
            return np.where(np.abs(values - y) <= reach, values, y)

    @_of_clipped
    def mass_at(self, y: Float64Array) -> Float64Array:
        """Return P(Y = y), of an atom to its last digit."""
        if self.step > 0.0 or not len(self.atoms):
            below, above = self.levels(y)
            left, right = self.levels(y, left=True)
            return np.maximum(np.where(below < 0.5, below - left, right - above), 0.0)
        place, on = self._atoms_at(y)
        return np.where(on, np.take_along_axis(self.masses, place, axis=1), 0.0)

    def _atoms_at(self, y: Float64Array) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return an atom's position for each value, and whether they are equal."""
        place = nearest_places(self.atoms, y)
        return place, self.atoms[place] == self.snap(y)

    def scores(
        self, y: Float64Array, share: Float64Array | float = 1.0
    ) -> Float64Array:
        """Return Phi^-1(F(y)); where F jumps at shares (n, k) or (1, k) of the jump."""
        if self.is_smooth:
            z = self.own_curve.scores(y)
            return np.broadcast_to(z, np.broadcast_shapes(z.shape, np.shape(share)))
        below, above = self.levels(y)
        jump = np.maximum(below - self.levels(y, left=True)[0], 0.0)
        off = (1.0 - np.asarray(share)) * jump
        return scores_of(below - off, above + off)

    @_of_clipped
    def logpdf(self, y: Float64Array) -> Float64Array:
        """Return the log density; of an atom its mass over its cell's width."""
        if self.curve is None:
            return self._log_cells(y)
        if self.step > 0.0:
            return self._log_lattice(y)
        with np.errstate(divide="ignore"):
            smooth = np.log(self.rest)[:, None] + self.curve.densities(y)[1]
        if not len(self.atoms):
            return smooth
        place, equal = self._atoms_at(y)
        mass = np.take_along_axis(self.masses, place, axis=1)
        on = equal & (mass > 0.0)
        held = np.where(on, mass / self.widths[place], 1.0)
        return np.where(on, np.log(held), smooth)

    def pdf(self, y: Float64Array) -> Float64Array:
        """Return the density."""
        return np.asarray(np.exp(self.logpdf(y)))

    def _log_cells(self, y: Float64Array) -> Float64Array:
        """Return log(mass / width) of the cell that y is in."""
        edges, last = cell_edges(self.atoms), len(self.atoms) - 1
        cell = np.searchsorted(edges, y, "right") - 1
        cell = np.where(y == edges[-1], last, cell)
        inside = (cell >= 0) & (cell <= last)
        cell = np.clip(cell, 0, last)
        mass = np.take_along_axis(self.masses, cell, axis=1)
        with np.errstate(divide="ignore"):
            return np.where(inside, np.log(mass / self.widths[cell]), -np.inf)

    def _log_lattice(self, y: Float64Array) -> Float64Array:
        """Return log(mass / step) of the lattice's cell that y is in."""
        low, high = self.ends
        value = self.lattice.values(np.rint(self.lattice.places(y)))
        lower, upper = value - 0.5 * self.step, value + 0.5 * self.step
        z0 = np.where(value <= low, -np.inf, self.own_curve.scores(lower))
        z1 = np.where(value >= high, np.inf, self.own_curve.scores(upper))
        with np.errstate(divide="ignore"):
            found = np.log(self.rest)[:, None] + log_between(z0, z1)
            if len(self.atoms):
                sides = np.searchsorted(self.atoms, np.stack([lower, upper]), "right")
                before, upto = (np.take_along_axis(self._upto, at, 1) for at in sides)
                found = np.logaddexp(found, np.log(np.maximum(upto - before, 0.0)))
        inside = (upper > low) & (lower < high)
        return np.where(inside, found - np.log(self.step), -np.inf)

    # Quantiles.

    def ppf(self, q: Float64Array) -> Float64Array:
        """Return the least y with P(Y <= y) >= q."""
        if self.curve is None:
            return self._inner_ppf(q, q)
        return self.ppf_scores(ndtri(q))

    def ppf_scores(self, scores: Float64Array) -> Float64Array:
        """Return the least y with P(Y <= y) >= Phi(score), for far tails too."""
        if self.curve is None:
            return self.ppf(ndtr(scores))
        if len(self.atoms):
            y = self._inner_ppf(scores, ndtr(scores))
        else:
            y = self.curve.values(scores)
        if self.step > 0.0:
            with np.errstate(invalid="ignore"):
                place = np.ceil(self.lattice.places(y) - 0.5 - _SLACK)
                y = self.lattice.values(place)
        return np.clip(y, *self.ends) if self.ends != _NOWHERE else y

    def _inner_ppf(self, scores: Float64Array, p: Float64Array) -> Float64Array:
        """Return quantiles of atoms and curve together, at scores of levels p.

        If k atoms lie below the quantile, it is the next atom if the level falls into
        its jump, or else a quantile of the curve.
        """
        n_atoms, upto = len(self.atoms), self._jumps[1]
        before, rest = upto - self.masses, self.rest[:, None]
        none, goal = rest == 0.0, p * (1.0 - _SLACK)
        k = np.zeros(p.shape, dtype=np.intp)
        # Without a curve the least quantile is the first atom with mass.
        if self.curve is None:
            for i, own in enumerate(upto):
                k[i] = np.searchsorted(own, np.maximum(goal[i], _TINIEST))
            return self.atoms[np.minimum(k, n_atoms - 1)]
        # No quantile is below the end of a curve, or without one at an atom of no mass.
        ended = none[:, 0] | np.isfinite(self.curve.low)
        for column in upto.T:
            empty = ended & (column == 0.0)
            k += (column[:, None] < goal) | empty[:, None]
        k = np.where(none, np.minimum(k, n_atoms - 1), k)
        walls = np.concatenate([[-np.inf], self.atoms, [np.inf]])
        at = walls[np.minimum(k + 1, n_atoms)]
        start = np.take_along_axis(before, np.minimum(k, n_atoms - 1), axis=1)
        in_jump = (k < n_atoms) & (none | (p > start))
        smooth = self.curve.values(self.rest_scores(k, p, ndtr(-scores)))
        return np.where(in_jump, at, np.clip(smooth, walls[k], walls[k + 1]))

    def rest_scores(
        self, k: NDArray[np.intp], below: Float64Array, above: Float64Array
    ) -> Float64Array:
        """Return scores of the curve at levels of the law with k atoms below (n, m)."""
        share = np.where(self.rest > 0.0, self.rest, 1.0)[:, None]
        parts = (below, self._upto), (above, self._beyond)
        lower, upper = (
            np.clip((level - np.take_along_axis(held, k, axis=1)) / share, 0.0, 1.0)
            for level, held in parts
        )
        return scores_of(lower, upper)

    @cached_property
    def _jumps(self) -> tuple[Float64Array, Float64Array]:
        """P(Y < a) and P(Y <= a) at the atoms, before the last step, (n, A) both."""
        upto = self._inner_levels(np.broadcast_to(self.atoms, self.masses.shape))[0]
        return upto - self.masses, upto

    # Integrals.

    def steps(self) -> tuple[Float64Array, Float64Array]:
        """Return values, (1, m) or (n, m), and their masses (n, m), of jumps alone.

        Far values of a lattice are joined, but for those of atoms and ends. Two of each
        cell stand for all, with about their mean and variance.
        """
        if self.curve is None:
            return self.atoms[None], self.masses
        first, last = self._places()
        joined: NDArray[np.bool_] = np.any(last > first, axis=0)
        if not joined.any():
            return self.lattice.values(first), self._masses_upto(last[:, :-1] + 0.5)
        column = np.repeat(np.arange(len(joined)), 1 + joined)
        lower = np.flatnonzero(np.diff(column, append=-1) == 0)
        places, edges = 0.5 * (first + last)[:, column], last[:, column] + 0.5
        edges[:, lower] = middle = places[:, lower]
        masses = self._masses_upto(edges[:, :-1])
        # A cell of no value has its neighbours' places, and no mass.
        halves, n = masses[:, [lower, lower + 1]], (last - first)[:, joined] + 1.0
        n = np.maximum(n, 1.0)
        places[:, lower] = low = np.ceil(middle - np.sqrt((n**2 - 1.0) / 12.0) - 0.5)
        places[:, lower + 1] = high = 2.0 * middle - low
        # From the halves Simpson's rule gives the mean.
        skew = (n**2 - 1.0) / (3.0 * n * np.maximum(high - low, 1.0))
        whole, skew = halves.sum(axis=1), skew * (halves[:, 1] - halves[:, 0])
        masses[:, lower + 1] = upper = np.clip(0.5 * whole + skew, 0.0, whole)
        masses[:, lower] = whole - upper
        return self.lattice.values(places), masses

    def _cells(self) -> tuple[Float64Array, Float64Array, Float64Array]:
        """Return values and masses of jumps, and of how many values each cell is."""
        if self.curve is None:
            return self.atoms[None], self.masses, np.ones((1, 1))
        first, last = self._places()
        values = self.lattice.values(np.floor(0.5 * (first + last)))
        masses = self._masses_upto(last[:, :-1] + 0.5)
        return values, masses, np.maximum(last - first + 1.0, 1.0)

    def _places(self) -> tuple[Float64Array, Float64Array]:
        """Return the first and the last place of a lattice's cells, (n, m) both."""
        z = np.tile([-8.0, 0.0, 8.0], (len(self), 1))
        ends = np.clip(self.own_curve.values(z), *self.ends)
        if len(self.atoms):
            ends[:, 0] = np.minimum(ends[:, 0], self.atoms[0])
            ends[:, 2] = np.maximum(ends[:, 2], self.atoms[-1])
        walls = [end for end in self.ends if np.isfinite(end)]
        return self.lattice.cells(ends, np.append(self.atoms, walls))

    def _masses_upto(self, places: Float64Array) -> Float64Array:
        """Return masses between places of a lattice, and beyond the outermost two."""
        edges = self.lattice.values(places)
        below, above = self._inner_levels(edges)
        over = edges > self.ends[1]
        below, above = np.where(over, 1.0, below), np.where(over, 0.0, above)
        under = edges < self.ends[0]
        below, above = np.where(under, 0.0, below), np.where(under, 1.0, above)
        left = np.pad(below, ((0, 0), (1, 1)), constant_values=(0.0, 1.0))
        right = np.pad(above, ((0, 0), (1, 1)), constant_values=(1.0, 0.0))
        masses = np.where(left[:, 1:] < 0.5, np.diff(left), -np.diff(right))
        return np.maximum(masses, 0.0)

    def _parts(self) -> Iterator[tuple[slice, Law]]:
        """Yield rows in pieces that fit into memory with the cells of a lattice."""
        size = 512 if self.step > 0.0 else 4096
        for start in range(0, len(self), size):
            rows = slice(start, start + size)
            yield rows, self.take(rows)

    @_of_clipped
    def integrals(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return E max(y - Y, 0), E max(Y - y, 0) and CRPS, (3, n, k), and E CRPS.

        The latter (n,) is the CRPS that the law expects, the integral of F (1 - F).
        """
        out, spread = np.empty((3, *y.shape)), np.empty(len(self))
        for rows, part in self._parts():
            at = y[rows]
            if part.all_jumps:
                sums, spread[rows] = step_integrals(*part.steps(), at)
            elif not len(self.atoms):
                sums, spread[rows] = part.own_curve.integrals(at)
            else:
                out[:, rows], spread[rows] = part._mixed_integrals(at)
                continue
            out[0, rows], out[1, rows] = sums[0], sums[2]
            out[2, rows] = sums[1] + sums[3]
        if self.known is not None:
            # If the mean does not exist, it is missing on one side of a value, or both.
            mean = self.known[:, 0]
            out[0, (mean == -np.inf) | np.isnan(mean)] = np.inf
            out[1, (mean == np.inf) | np.isnan(mean)] = np.inf
        return out, spread

    def _mixed_integrals(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return the same of atoms beside a curve, by E|Y - y| - E|Y - Y'| / 2."""
        k, w = y.shape[1], self.rest[:, None]
        atoms = np.broadcast_to(self.atoms, self.masses.shape)
        sums, own = self.own_curve.integrals(np.hstack([y, atoms]))
        below, above = sums[0], sums[2]
        steps, pairs = step_integrals(self.atoms[None], as_shares(self.masses), y)
        mass = 1.0 - w
        under = w * below[:, :k] + mass * steps[0]
        over = w * above[:, :k] + mass * steps[2]
        # E|Y - Y'| / 2 has a pair of atoms, a pair of the curve, and one of each.
        cross = (self.masses * (below + above)[:, k:]).sum(axis=1)
        rest = self.rest
        spread = (1.0 - rest) ** 2 * pairs + rest**2 * own + rest * cross
        crps = np.maximum(under + over - spread[:, None], 0.0)
        return np.stack([under, over, crps]), spread

    def crps(self, y: Float64Array) -> Float64Array:
        """Return the integral of (F(x) - 1{y <= x})^2 over x."""
        return np.asarray(self.integrals(y)[0][2])

    def partial_means(self, y: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return E max(y - Y, 0) and E max(Y - y, 0)."""
        below, above, _ = self.integrals(y)[0]
        return below, above

    @_of_clipped
    def nodes(self) -> tuple[Float64Array, Float64Array]:
        """Return values and weights (n, m) whose weighted sum of f is E f(Y)."""
        if self.all_jumps:
            values, masses = self.steps()
            return np.broadcast_to(values, masses.shape), masses
        y, shares = self.own_curve.nodes()
        if not len(self.atoms):
            return y, np.broadcast_to(shares, y.shape)
        atoms = np.broadcast_to(self.atoms, self.masses.shape)
        weights = np.hstack([self.masses, self.rest[:, None] * shares])
        return np.hstack([atoms, y]), weights

    def moments(self, order: int = 4) -> Float64Array:
        """Return the mean and the second to fourth central moment, (n, order)."""
        if self.known is not None:
            return self.known[:, :order].copy()
        if self.is_smooth:
            return self.own_curve.moments(order)
        out = np.empty((len(self), order))
        for rows, part in self._parts():
            y, weights = part.nodes()
            with np.errstate(over="ignore", invalid="ignore"):
                # Differences from a middle value: large values would lose digits.
                middle = y[:, y.shape[1] // 2, None]
                away = y - middle
                # Not a product of matrices, whose rounding depends on the other rows.
                mean = (weights * away).sum(axis=1)
                away -= mean[:, None]
                out[rows, 0], power = mean + middle[:, 0], weights * away
                for k in range(1, order):
                    power *= away
                    out[rows, k] = power.sum(axis=1)
            if part.ordered and part.is_clipped:
                # Sums of clipped values at the same nodes keep order.
                y, shares = part.own_curve.nodes()
                out[rows, 0] = (np.clip(y, *part.ends) * shares).sum(axis=1)
        return out

    @_of_clipped
    def entropy(self) -> Float64Array:
        """Return -E logpdf(Y), (n,)."""
        if self.curve is None:
            return step_entropy(self.masses, self.widths)
        out = np.empty(len(self))
        for rows, part in self._parts():
            if self.step > 0.0:
                _, masses, sizes = part._cells()
                out[rows] = step_entropy(masses, self.step * sizes)
                continue
            panels = part.own_curve.basis.panels
            log_density = part.own_curve.heights(np.tile(panels.z, (len(part), 1)))[1]
            smooth = -(panels.share * log_density).sum(axis=1)
            own = part.rest * smooth - xlogy(part.rest, part.rest)
            out[rows] = own + step_entropy(part.masses, self.widths)
        return out

    @_of_clipped
    def mode(self) -> Float64Array:
        """Return the y of greatest density, or the likeliest value if all is jumps."""
        out = np.empty(len(self))
        for rows, part in self._parts():
            if self.all_jumps:
                values, masses, sizes = part._cells()
                best = np.argmax(masses / sizes, axis=1)[:, None]
                own = np.broadcast_to(values, masses.shape)
                out[rows] = np.take_along_axis(own, best, axis=1)[:, 0]
                continue
            found, log_density = part.own_curve.peak()
            if len(self.atoms):
                density = self.widths[None] ** -1 * part.masses
                best = np.argmax(density, axis=1)
                highest = density[np.arange(len(part)), best]
                with np.errstate(divide="ignore"):
                    higher = np.log(highest) >= np.log(part.rest) + log_density
                found = np.where(higher, self.atoms[best], found)
            out[rows] = found
        return out

    @_of_clipped
    def shortest_interval(self, coverage: float) -> Float64Array:
        """Return the shortest interval that holds the coverage, (n, 2)."""
        if self.all_jumps:
            out = np.empty((len(self), 2))
            for rows, part in self._parts():
                out[rows] = step_shortest(*part.steps(), coverage)
            return out
        found = search_shortest(self.ppf, len(self), coverage)
        return self._beside_atoms(found, coverage) if len(self.atoms) else found

    def _beside_atoms(self, found: Float64Array, coverage: float) -> Float64Array:
        """Try intervals that start or end at an atom beside one that was found."""
        before, upto = self._jumps
        atoms = np.broadcast_to(self.atoms, upto.shape)
        lows = [found[:, :1], atoms, self.ppf(np.maximum(upto - coverage, 0.0))]
        highs = [found[:, 1:], self.ppf(np.minimum(before + coverage, 1.0)), atoms]
        held = [np.ones((len(self), 1), bool), before + coverage <= 1, upto >= coverage]
        low, high = np.hstack(lows), np.hstack(highs)
        widths = np.full(low.shape, np.inf)
        np.subtract(high, low, out=widths, where=np.hstack(held))
        best = np.argmin(widths, axis=1)[:, None]
        return np.hstack([np.take_along_axis(end, best, 1) for end in (low, high)])

    @_of_clipped
    def densest_regions(self, coverage: Float64Array) -> list[Float64Array]:
        """Return the highest-density set of each row: intervals (m, 2), increasing."""
        out: list[Float64Array] = []
        for rows, part in self._parts():
            own = coverage[rows]
            if self.all_jumps:
                values, masses, sizes = part._cells()
                out += densest_runs(values, masses, masses / sizes, own)
                continue
            left = (own - part._upto[:, -1]) / np.where(part.rest > 0.0, part.rest, 1.0)
            smooth = part.own_curve.densest_regions(np.clip(left, 0.0, 1.0))
            if not len(self.atoms):
                out += smooth
                continue
            held = densest_values(part.masses, part.masses, own)
            for i, intervals in enumerate(smooth):
                inner = intervals if left[i] > 0.0 else np.empty((0, 2))
                out.append(join_points(inner, self.atoms[held[i]]))
        return out
