"""`ValueMap`: an increasing function of y, with its inverse and its slope."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibration.typing import Float64Array

Vectorised = Callable[[Float64Array], Float64Array]

# First step of a difference as a share of the room, and how often it is halved.
_FIRST_STEP, _N_STEPS = 0.25, 12


@dataclass(frozen=True, eq=False)
class ValueMap:
    """The function of a variable, called with finite numbers of shape (n, k).

    Parameters
    ----------
    func, inverse : callable
        Increasing, and its inverse; both element by element.
    derivative : callable, optional
        That of `func`; None takes differences of `func`.
    """

    func: Vectorised
    inverse: Vectorised
    derivative: Vectorised | None = None

    def __post_init__(self) -> None:
        for name in ("func", "inverse", "derivative"):
            call = getattr(self, name)
            if not callable(call) and not (name == "derivative" and call is None):
                msg = f"`{name}` must be callable, got {type(call).__name__}."
                raise TypeError(msg)

    def forward(self, x: Float64Array) -> Float64Array:
        """Return func(x), nan where func is not defined, and x where x is infinite.

        Parameters
        ----------
        x : ndarray of shape (n, k)

        Returns
        -------
        ndarray of shape (n, k)
        """
        return _at_finite(self.func, "func", x)

    def backward(self, z: Float64Array, middle: Float64Array) -> Float64Array:
        """Return inverse(z), minus or plus infinity below or above what func can be.

        Parameters
        ----------
        z : ndarray of shape (n, k)
        middle : ndarray of shape (n, 1)
            Values of func: an inverse that is not defined at z lies on that side.

        Returns
        -------
        ndarray of shape (n, k)
        """
        x = _at_finite(self.inverse, "inverse", z)
        return np.where(np.isnan(x), np.where(z < middle, -np.inf, np.inf), x)

    def end(self, x: float) -> float:
        """Return the limit of func at an end of a support, which may be infinite."""
        try:
            limit = float(call_vectorised(self.func, "func", np.full((1, 1), x))[0, 0])
        except (ArithmeticError, TypeError, ValueError):
            # One that refuses infinity tells no limit, and infinity is ever a bound.
            return x
        return x if np.isnan(limit) else limit

    def log_slope(self, x: Float64Array, room: Float64Array) -> Float64Array:
        """Return log func'(x).

        Without a derivative it is the limit of central differences of ever smaller
        steps, extrapolated to 0 (Ridders, 1982): right to about 1e-9 of the slope.

        Parameters
        ----------
        x : ndarray of shape (n, k)
            Finite.
        room : ndarray of shape (n, k)
            How far from x func may be asked; positive.

        Returns
        -------
        ndarray of shape (n, k)
            -inf where the slope is 0, nan where it is not known.
        """
        if self.derivative is not None:
            slope = call_vectorised(self.derivative, "derivative", x)
        else:
            slope = self._difference(x, room)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(slope))

    def _difference(self, x: Float64Array, room: Float64Array) -> Float64Array:
        best = np.full(x.shape, np.nan)
        least = np.full(x.shape, np.inf)
        row: list[Float64Array] = []
        step = _FIRST_STEP * np.minimum(room, np.finfo(float).max)
        for _ in range(_N_STEPS):
            high, low = x + step, x - step
            above, below = self.forward(high), self.forward(low)
            rise = above - below
            with np.errstate(all="ignore"):
                # What is divided by is the step as it was rounded; where func does
                # not rise by it, another step must tell.
                entry = np.where(rise > 0.0, rise, np.nan) / (high - low)
                # Rises of a few floats agree by accident, however wrong they are.
                size = np.maximum(np.abs(above), np.abs(below))
                noise = np.spacing(size) / (high - low)
                earlier, row = row, [entry]
                factor = 1.0
                for before in earlier:
                    factor *= 4.0
                    better = entry + (entry - before) / (factor - 1.0)
                    error = np.maximum(np.abs(better - entry), np.abs(better - before))
                    error = error + noise
                    closer = error < least
                    best, least = (
                        np.where(closer, better, best),
                        np.where(closer, error, least),
                    )
                    row.append(better)
                    entry = better
            # Nan where func is not defined, or overflows: a smaller step may do.
            best = np.where(np.isnan(best), row[0], best)
            step = 0.5 * step
        return best


@dataclass(frozen=True)
class LogOf:
    """The function log(y + shift) up to the value `most`, and straight beyond.

    Its slope is continuous. Beyond all that was seen the logarithm would say that a
    value of ten times the size is as near as the tenth of it: there a normal tail in
    the logarithm may hold the mean of y all alone.
    """

    shift: float
    most: float

    def __call__(self, y: Float64Array) -> Float64Array:
        """Return log(y + shift), or what it is followed by."""
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
        slope, end = self.derivative(z), np.log(self.most + self.shift)
        return np.asarray(slope * (1.0 + np.maximum(z - end, 0.0)) - self.shift)

    @property
    def derivative(self) -> _ExpUpTo:
        """The slope of that."""
        return _ExpUpTo(self.most + self.shift)


@dataclass(frozen=True)
class _ExpUpTo:
    """The function exp(z), constant from where it is `most`."""

    most: float

    def __call__(self, z: Float64Array) -> Float64Array:
        """Return the lesser of exp(z) and `most`."""
        return np.asarray(np.exp(np.minimum(z, np.log(self.most))))


def call_vectorised(func: Vectorised, name: str, x: Float64Array) -> Float64Array:
    """Return func(x), which must be numbers of the shape of x."""
    try:
        with np.errstate(all="ignore"):
            values = np.asarray(func(x), dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = (
            f"`{name}` must take an array and return one of its shape, got "
            f"{type(error).__name__}: {error} (`np.vectorize` makes a function of "
            "numbers one of arrays)."
        )
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(msg) from error
    if values.shape != x.shape:
        msg = (
            f"`{name}` must return an array of the shape it is given, {x.shape}, "
            f"got shape {values.shape}."
        )
        raise ValueError(msg)
    return values


def _at_finite(func: Vectorised, name: str, x: Float64Array) -> Float64Array:
    """Return func(x) where x is finite, and x where it is infinite."""
    finite = np.isfinite(x)
    if finite.all():
        return call_vectorised(func, name, np.ascontiguousarray(x))
    if not finite.any():
        return x.copy()
    # Asked for in the shape of x: a stand-in where x is infinite.
    asked = np.where(finite, x, x[finite].flat[0])
    return np.where(finite, call_vectorised(func, name, asked), x)
