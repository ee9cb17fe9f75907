"""`ValueMap`: an increasing function of y, with its inverse and where it is defined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array

Vectorised = Callable[[Float64Array], Float64Array]

# How far from what is known, in doublings of its span, a domain is looked for, the
# halvings in which its end is found, and the step over which a function must not fall.
_DOUBLINGS, _HALVINGS, _STEP = 40, 120, 1e-9


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

    def end(self, x: float) -> float:
        """Return the limit of func at an end of a support, which may be infinite."""
        try:
            limit = float(call_vectorised(self.func, "func", np.full((1, 1), x))[0, 0])
        except (ArithmeticError, TypeError, ValueError):
            # One that refuses infinity tells no limit, and infinity is ever a bound.
            return x
        return x if np.isnan(limit) else limit

    def domain(self, low: float, high: float) -> tuple[float, float]:
        """Return where func is defined and increases, around what is known.

        The square increases above 0 alone: of a law of roots that a model forecasts
        what lies below would come back as values that rise to either side.

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
            # A step towards what is known.
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
            # What is found next to 0 is 0.
            ends.append(0.0 if abs(inside) < 10.0 * _STEP * span else float(inside))
        return ends[0], ends[1]

    def _is_right(self, x: Float64Array, step: float) -> NDArray[np.bool_]:
        """Return whether func is a number and does not fall from x (m,) over a step."""
        z = call_vectorised(self.func, "func", np.stack([x, x + step], axis=1))
        low, high = z.T if step > 0.0 else z.T[::-1]
        # Of floats that overflow, or come near a limit, both may be one.
        return np.asarray(low <= high)


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
        end = np.log(self.most + self.shift)
        rise = 1.0 + np.maximum(z - end, 0.0)
        return np.asarray(np.exp(np.minimum(z, end)) * rise - self.shift)


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
