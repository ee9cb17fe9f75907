"""The law of an increasing function of Y, and such functions: `ValueMap`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibration._validation import refuse
from calibration.typing import Float64Array
from localexpert.law.basis import REACH
from localexpert.law.curve import Curve, fill_ends, read_curve, to_coordinates
from localexpert.law.lattice import cells_upto
from localexpert.law.law import Law
from localexpert.law.steps import nearest_places

Vectorised = Callable[[Float64Array], Float64Array]

# Doublings of the known span in which a domain is searched, halvings that find its end,
# and the step over which a function must not fall.
_DOUBLINGS, _HALVINGS, _STEP = 40, 120, 1e-9
# Significant digits of the numbers that are tried for given ones, and units in the last
# place by which others may differ.
_DIGITS, _ULPS = (12, 13, 14, 15), (1, -1, 2, -2, 3, -3)


@dataclass(frozen=True, eq=False)
class ValueMap:
    """The function of a variable, called with finite numbers of shape (n, k).

    Parameters
    ----------
    func, inverse : callable
        Increasing, and its inverse; both element by element.
    """

    func: Vectorised
    inverse: Vectorised

    def __post_init__(self) -> None:
        for name in ("func", "inverse"):
            call = getattr(self, name)
            if not callable(call):
                refuse(name, "be callable", type(call).__name__, TypeError)

    def forward(self, x: Float64Array) -> Float64Array:
        """Return func(x), nan where func is not defined, and x where x is infinite.

        Parameters
        ----------
        x : ndarray of shape (n, k)

        Returns
        -------
        ndarray of shape (n, k)
        """
        finite = np.isfinite(x)
        if finite.all():
            return call_vectorised(self.func, "func", np.ascontiguousarray(x))
        if not finite.any():
            return x.copy()
        # Asked for in the shape of x: a stand-in where x is infinite.
        asked = np.where(finite, x, x[finite].flat[0])
        return np.where(finite, call_vectorised(self.func, "func", asked), x)

    def given(self, x: Float64Array) -> Float64Array:
        """Return func(x), x (m,), or beside it the number that x is the inverse of.

        The exponential of log(3) is no 3, but that of the logarithm of a value is to
        be this value. Short decimals come first.

        Parameters
        ----------
        x : ndarray of shape (m,)
            Finite.

        Returns
        -------
        ndarray of shape (m,)
        """
        if len(x) == 0:
            return x
        z = call_vectorised(self.func, "func", x)
        if not np.isfinite(z).all():
            return z
        digits = ([float(f"{one:.{k}g}") for one in z] for k in _DIGITS)
        trials = np.array([*digits, z, *(z + k * np.spacing(z) for k in _ULPS)])
        back = call_vectorised(self.inverse, "inverse", trials)
        found = np.take_along_axis(trials, np.argmax(back == x, axis=0)[None], 0)[0]
        found = np.where((back == x).any(axis=0), found, z)
        return found if (np.diff(found) > 0.0).all() else z

    def end(self, x: float) -> float:
        """Return the limit of func at an end of a support, which may be infinite."""
        try:
            limit = float(call_vectorised(self.func, "func", np.full((1, 1), x))[0, 0])
        except (ArithmeticError, TypeError, ValueError):
            # A function that refuses infinity has no known limit. Infinity is always a
            # bound.
            return x
        return x if np.isnan(limit) else limit

    def domain(self, low: float, high: float) -> tuple[float, float]:
        """Return where func is defined and increases, around known values.

        The square increases above 0 only. A model may forecast the law of roots: the
        square of roots below 0 would rise again.

        Parameters
        ----------
        low, high : float
            Values of x at which func is known to be right.

        Returns
        -------
        (float, float)
            Infinite where no end is found.
        """
        span = max(high - low, abs(high), abs(low), 1e-300)
        ends = []
        for start, sign in ((low, -1.0), (high, 1.0)):
            # A step towards the known values.
            step = -sign * _STEP * span
            trials = start + sign * span * 2.0 ** np.arange(-10.0, _DOUBLINGS)
            fine = self._is_right(trials, step)
            if fine.all():
                ends.append(sign * np.inf)
                continue
            k = int(np.argmin(fine))
            inside, outside = (trials[k - 1] if k else start), trials[k]
            for _ in range(_HALVINGS):
                middle = 0.5 * (inside + outside)
                if self._is_right(np.array([middle]), step)[0]:
                    inside = middle
                else:
                    outside = middle
            # An end next to 0 is 0.
            ends.append(0.0 if abs(inside) < 10.0 * _STEP * span else float(inside))
        return ends[0], ends[1]

    def _is_right(self, x: Float64Array, step: float) -> NDArray[np.bool_]:
        """Return whether func is a number and does not fall from x (m,) over a step."""
        z = call_vectorised(self.func, "func", np.stack([x, x + step], axis=1))
        low, high = z.T if step > 0.0 else z.T[::-1]
        # Both may be equal where floats overflow or come near a limit.
        return np.asarray(low <= high)


@dataclass(frozen=True)
class LogOf:
    """The function log(y + shift) up to the value `most`, and straight beyond.

    Its slope is continuous. To the logarithm, ten times a value is as near as a tenth
    of it. So beyond all values seen, a normal tail in the logarithm could determine the
    mean of y alone.
    """

    shift: float
    most: float

    def __call__(self, y: Float64Array) -> Float64Array:
        """Return log(y + shift), or the straight part."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(np.minimum(y, self.most) + self.shift)
        beyond = np.maximum(y - self.most, 0.0) / (self.most + self.shift)
        return np.asarray(logs + beyond)


@dataclass(frozen=True)
class ExpLess:
    """The inverse of `LogOf`: exp(z) - shift up to `most`, and straight beyond."""

    shift: float
    most: float

    def __call__(self, z: Float64Array) -> Float64Array:
        """Return the y of which z is the logarithm."""
        end = np.log(self.most + self.shift)
        beyond, z = np.maximum(z - end, 0.0), np.minimum(z, end)
        if self.shift <= 0.0:
            return np.asarray(np.exp(z) * (1.0 + beyond) - self.shift)
        # Exactly 0 at the logarithm of the shift: a bound stays where it is.
        excess = np.expm1(z - np.log(self.shift))
        return np.asarray(self.shift * (excess * (1.0 + beyond) + beyond))


def call_vectorised(func: Vectorised, name: str, x: Float64Array) -> Float64Array:
    """Return func(x), which must be numbers of the shape of x."""
    try:
        with np.errstate(all="ignore"):
            values = np.asarray(func(x), dtype=np.float64)
    except (TypeError, ValueError) as error:
        cure = "`np.vectorize` makes a function of numbers one of arrays"
        got = f"{type(error).__name__}: {error} ({cure})"
        kind = TypeError if isinstance(error, TypeError) else ValueError
        refuse(name, "take an array and return one of its shape", got, kind, error)
    if values.shape != x.shape:
        rule = f"return an array of the shape it is given, {x.shape}"
        refuse(name, rule, f"shape {values.shape}")
    return values


# Scores of the quantiles at which a function is tried. Beyond the outermost it may
# overflow, or come so near to its limit that no inverse leads back.
_TRIED = np.array([-4.5, -3.0, -2.0, -1.2, -0.5, 0.0, 0.5, 1.2, 2.0, 3.0, 4.5])
# How far from x the inverse of func(x) may be: a share of the law's width, and of x.
_OF_WIDTH, _OF_SIZE = 1e-6, 1e-9
# Units in the last place by which an affine function may miss a line.
_ROUNDING = 8.0
# Beyond this floats are as good as infinite.
_GREATEST = 1e300
# Probability beyond the reach of curves, and the share of a moment that is notable.
_BEYOND, _NOTABLE = 6e-16, 0.1
# Most values of a lattice that are mapped one by one.
_MOST_VALUES = 10_000


def transform_law(law: Law, values: ValueMap) -> Law:
    """Return the law of func(Y).

    An affine func moves the coefficients and the known moments. For any other function
    the curve is read anew, and the values of a lattice become atoms.

    Parameters
    ----------
    law : Law
    values : ValueMap

    Returns
    -------
    Law
    """
    if law.step > 0.0:
        cells = [np.unique(part.steps()[0]) for _, part in law._parts()]
        x = np.unique(np.concatenate([np.empty(0), *cells]))[None]
        z = values.forward(x)
        line = _find_line(x, z) if x.size and np.isfinite(z).all() else None
        if line is not None and line[1] > 0.0:
            back = call_vectorised(values.inverse, "inverse", z)
            _refuse_inverse(x, z, back, _OF_SIZE * np.maximum(np.abs(x), law.step))
            return _move(law, values, *line)
        law = lattice_as_atoms(law)
    found = replace(law, ends=_map_ends(law.ends, values), known=None)
    if law.curve is not None and len(law) and (law.rest > 0.0).any():
        x = law.curve.values(np.tile(_TRIED, (len(law), 1)))[law.rest > 0.0]
        z = values.forward(x)
        # Values that pile up at a bound are near; far ones are no measure of that.
        _check_values(x, z, _OF_WIDTH * np.ptp(x[:, 2:-2], axis=1, keepdims=True))
        back = call_vectorised(values.inverse, "inverse", np.ascontiguousarray(z))
        allowed = _OF_WIDTH * np.ptp(x, axis=1, keepdims=True) + _OF_SIZE * np.abs(x)
        _refuse_inverse(x, z, back, allowed)
        line = _find_line(x, z)
        if line is not None:
            return _move(law, values, *line)
        found = carry_law(law, values)
    atoms, held = _map_values(law.atoms, law.masses, values)
    masses, widths = law.masses[:, held], law.widths[held]
    if law.curve is None:
        return Law.discrete(atoms, masses)
    if len(atoms):
        widths = _map_widths(law.atoms[held], widths, values)
    found = replace(found, atoms=atoms, masses=masses, widths=widths)
    return _with_endless_moments(found)


def carry_law(law: Law, values: ValueMap) -> Law:
    """Return the law of func(Y) for a smooth law where func is known to increase.

    Parameters
    ----------
    law : Law
        Smooth, or clipped.
    values : ValueMap

    Returns
    -------
    Law
    """
    curve = _map_curve(law.own_curve, values, law.ends, plain=law.ordered)
    ends = _map_ends(law.ends, values)
    width = law.end_width
    for end, side in zip(law.ends, (1.0, -1.0), strict=True):
        if np.isfinite(end):
            # Half of a cell at an end lies inside.
            cell = np.array([[end, end + 0.5 * side * width]])
            width = 2.0 * float(np.abs(np.diff(values.forward(cell)))[0, 0])
            break
    return replace(law, curve=curve, ends=ends, end_width=width, known=None)


def _with_endless_moments(law: Law) -> Law:
    """Return a law that knows which of its moments are infinite.

    A moment counts as infinite if values 8 deviations out add a notable share to it, or
    are the greatest that curves have. Values further out would add more.
    """
    if law.curve is None or law.has_jumps:
        return law
    ends = np.tile([-REACH, 0.0, REACH], (len(law), 1))
    y = law.curve.values(ends)
    moments = law.moments()
    endless = np.zeros((len(law), 2, 5), dtype=bool)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = [np.abs(moments[:, 0] - y[:, 1]), *moments[:, 1:].T]
        for side, end in enumerate((0, 2)):
            away = np.abs(y[:, end] - y[:, 1])
            for k in range(1, 5):
                size = np.maximum(np.abs(spread[k - 1]), spread[1] ** (0.5 * k))
                held: NDArray[np.bool_] = away**k * _BEYOND <= _NOTABLE * size
                endless[:, side, k] = ~(held & (away < 0.5 * _GREATEST))
    if not endless.any():
        return law
    low, high = endless[:, 0, 1], endless[:, 1, 1]
    mean = np.where(low & high, np.nan, np.where(low, -np.inf, np.inf))
    either = np.asarray(endless.any(axis=1))
    known = moments.copy()
    known[:, 0] = np.where(either[:, 1], mean, known[:, 0])
    for k in (2, 3, 4):
        # With an infinite mean no moment is defined; the spread is infinite.
        lost = np.where(either[:, 1] | (k == 3), np.nan, np.inf)
        lost = np.where((k == 2) & ~(low & high), np.inf, lost)
        known[:, k - 1] = np.where(either[:, k], lost, known[:, k - 1])
    return replace(law, known=known)


def _map_curve(
    curve: Curve, values: ValueMap, ends: tuple[float, float], *, plain: bool
) -> Curve:
    """Return the curve of func(Y), between the limits of func at its bounds."""
    g = np.broadcast_to(curve.basis.greville, curve.coefficients.shape)
    x = curve.values(g)
    y = _map_inside(x, ends, values)
    # Rounding has put these on a bound where func has no end.
    lost = np.isinf(y) & ((x == curve.low[:, None]) | (x == curve.high[:, None]))
    low, high = (_limits(values, side) for side in (curve.low, curve.high))
    low = np.where(np.isfinite(ends[0]), -np.inf, low)
    high = np.where(np.isfinite(ends[1]), np.inf, high)
    y = np.where(lost, y, np.clip(y, -_GREATEST, _GREATEST))
    if np.isnan(y).any():
        i = int(np.argmax(np.isnan(y).any(axis=1)))
        rule = "be finite wherever the distribution has probability"
        refuse("func", rule, f"nan in row {i}")
    u = fill_ends(to_coordinates(y, low[:, None], high[:, None]))
    return read_curve(u, low, high, basis=curve.basis, plain=plain)


def _map_inside(
    y: Float64Array, ends: tuple[float, float], values: ValueMap
) -> Float64Array:
    """Return func of values between ends, and beyond one what mirrors it there.

    func may not be defined for values that are clipped. A flat part in their place
    would also bend the curve before the end, because curves are read at few scores.
    """
    out = values.forward(np.clip(y, *ends))
    for end, beyond in zip(ends, (y < ends[0], y > ends[1]), strict=True):
        if not beyond.any():
            continue
        at = values.end(end)
        with np.errstate(invalid="ignore"):
            mirrored = at - (values.forward(np.clip(2.0 * end - y, *ends)) - at)
        out = np.where(beyond, mirrored, out)
    return out


def _map_ends(ends: tuple[float, float], values: ValueMap) -> tuple[float, float]:
    """Return func of the ends that there are."""
    low, high = (values.end(end) if np.isfinite(end) else end for end in ends)
    at = np.array([low, high])
    kept = np.isfinite(at) & np.isfinite(ends)
    at[kept] = values.given(np.array(ends)[kept])
    return float(at[0]), float(at[1])


def _limits(values: ValueMap, ends: Float64Array) -> Float64Array:
    """Return the limits of func at bounds (n,)."""
    different, place = np.unique(ends, return_inverse=True)
    return np.array([values.end(float(end)) for end in different])[place]


def lattice_as_atoms(law: Law) -> Law:
    """Return a law of a lattice as one of all its values, without a curve.

    Any other law stays as it is.
    """
    if law.step == 0.0:
        return law
    if len(law) == 0:
        return Law.discrete(np.array([law.offset]), np.empty((0, 1)))
    values, masses = law.steps()
    place = np.rint(law.lattice.places(values))
    every = np.unique(place)
    if len(every) > _MOST_VALUES:
        # Each row has joined far cells of its own. Let all rows join the same ones.
        values, masses, _ = law._cells()
        place = np.rint(law.lattice.places(values))
        every = np.unique(place)
        median = law.ppf(np.full((len(law), 1), 0.5))
        middles = np.rint(law.lattice.places(median))
        near = np.clip(place, middles.min(), middles.max())
        grid = cells_upto(float(np.abs(place - near).max()))
        away = grid[nearest_places(grid, np.abs(place - near))]
        # But for values of their own: atoms, and ends, beyond which nothing lies.
        ends = np.rint(law.lattice.places(np.array(law.ends)))
        own = np.append(np.rint(law.lattice.places(law.atoms)), ends)
        low, high = np.clip([every[0], every[-1]], *ends)
        joined = np.clip(near + np.copysign(away, place - near), low, high)
        place = np.where(np.isin(place, own), place, joined)
        every = np.unique(place)
    if len(every) > _MOST_VALUES:
        rule = f"must have at most {_MOST_VALUES} values to become one of single values"
        msg = f"a distribution of steps of {law.step:g} {rule}, got {len(every)}."
        raise ValueError(msg)
    table = np.zeros((len(law), len(every)))
    row = np.arange(len(law))[:, None]
    np.add.at(table, (row, np.searchsorted(every, place)), masses)
    table /= table.sum(axis=1, keepdims=True)
    # Atoms and ends are what they were given as, which may be a rounding away.
    return Law.discrete(law.snap(law.lattice.values(every)), table)


def _move(law: Law, values: ValueMap, shift: float, factor: float) -> Law:
    """Return the law of shift + factor Y, which func is but for rounding."""
    curve = law.own_curve

    def move(x: Float64Array) -> Float64Array:
        # As func rounds: at an end, a rounding further is beyond the forecast.
        z = values.forward(x)
        return np.where(np.isnan(z), shift + factor * x, z)

    low, high = move(np.stack([curve.low, curve.high]))
    sides = np.isfinite(low)[:, None], np.isfinite(high)[:, None]
    free = ~(sides[0] | sides[1])
    # Coordinates of one bound are logarithms, those of two a share.
    step = np.log(factor) * (sides[0].astype(float) - sides[1])
    c = np.where(free, shift + factor * curve.coefficients, curve.coefficients + step)
    slopes = np.where(free, factor, 1.0) * curve.slopes
    known = None
    if law.known is not None:
        known = law.known * factor ** np.arange(1, 5)
        known[:, 0] += shift
    return replace(
        law,
        curve=Curve(curve.basis, c, slopes, low, high),
        atoms=values.given(law.atoms),
        widths=factor * law.widths,
        step=factor * law.step,
        offset=shift + factor * law.offset,
        ends=_map_ends(law.ends, values),
        end_width=factor * law.end_width,
        known=known,
    )


def _map_values(
    y: Float64Array, masses: Float64Array, values: ValueMap
) -> tuple[Float64Array, NDArray[np.bool_]]:
    """Return func of the values (V,) where it is defined, and which these are.

    It must be defined for all values that have probability in some row.
    """
    if not len(y):
        return y, np.ones(0, dtype=bool)
    z = call_vectorised(values.func, "func", y)
    held = (masses > 0.0).any(axis=0) | np.isfinite(z)
    y = y[held]
    z = values.given(y)
    _check_values(y[None, :], z[None, :])
    back = call_vectorised(values.inverse, "inverse", z)
    _refuse_inverse(y, z, back, _OF_SIZE * np.maximum(np.abs(y), np.ptp(y)))
    return z, held


def _map_widths(
    atoms: Float64Array, widths: Float64Array, values: ValueMap
) -> Float64Array:
    """Return the widths of cells that func makes of cells around atoms."""
    sides = (atoms - 0.5 * widths, atoms, atoms + 0.5 * widths)
    below, at, above = (call_vectorised(values.func, "func", side) for side in sides)
    gaps = at - below, above - at
    lower, upper = (np.where(np.isfinite(gap), gap, np.nan) for gap in gaps)
    # Of a cell that is cut off where func is not defined, twice what is there.
    width = np.where(np.isnan(lower), 2.0 * upper, lower + upper)
    width = np.where(np.isnan(upper), 2.0 * lower, width)
    wrong = ~(width > 0.0)
    if wrong.any():
        i = int(np.argmax(wrong))
        rule = "increase, and be defined, beside values of positive probability"
        refuse("func", rule, f"{below[i]:g} and {above[i]:g} beside {atoms[i]:g}")
    return width


def _check_values(
    x: Float64Array, z: Float64Array, near: Float64Array | float = 0.0
) -> None:
    """Refuse z = func(x), x not decreasing along rows, that does not increase.

    Values a few roundings apart, or `near` each other, may have the same image.
    """
    wrong = ~np.isfinite(z)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        rule = "be finite wherever the distribution has probability"
        refuse("func", rule, f"{z[i, j]:g} at {x[i, j]:g} in row {i}")
    rise, run = np.diff(z, axis=1), np.diff(x, axis=1)
    near = np.maximum(near, _ROUNDING * np.spacing(np.abs(x[:, 1:])))
    wrong = (rise <= 0.0) & (run > near)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        got = f"{z[i, j]:g} at {x[i, j]:g} and {z[i, j + 1]:g} at {x[i, j + 1]:g}"
        refuse("func", "increase strictly", got)


def _refuse_inverse(
    x: Float64Array, z: Float64Array, back: Float64Array, allowed: Float64Array
) -> None:
    """Refuse an inverse that does not lead back from z to x."""
    wrong = ~(np.abs(back - x) <= allowed)
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0])
        got = f"func({x[place]:g}) = {z[place]:g} and inverse({z[place]:g}) = "
        refuse("inverse", "undo `func`", f"{got}{back[place]:g}")


def _find_line(x: Float64Array, z: Float64Array) -> tuple[float, float] | None:
    """Return shift and factor of the line that z is of x up to rounding, if any."""
    x, z = x.ravel(), z.ravel()
    first, last = np.argmin(x), np.argmax(x)
    if not x[last] > x[first]:
        return None
    # From quantiles as they are: far ones are more exact in the slope than near ones.
    factor = (z[last] - z[first]) / (x[last] - x[first])
    near = np.argmin(np.abs(x))
    shift = z[near] - factor * x[near]
    size = np.maximum(np.maximum(np.abs(z), np.abs(factor * x)), abs(shift))
    if (np.abs(shift + factor * x - z) > _ROUNDING * np.spacing(size)).any():
        return None
    return float(shift), float(factor)
