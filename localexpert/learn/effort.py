"""`Effort`: how much a fit may cost, and the clock of one that has so many seconds."""

from __future__ import annotations

import time
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np

Level: TypeAlias = Literal["quick", "default", "best", "timed"]

_NAMES = ("quick", "default", "best")
# Share of the seconds that is kept for what follows the roads: the pool of them, its
# recalibration and its check.
_KEPT = 0.15


class Clock:
    """The seconds that are left of a fit.

    Parameters
    ----------
    seconds : float
        From now on.
    """

    def __init__(self, seconds: float):
        self._end = time.perf_counter() + (1.0 - _KEPT) * seconds

    def allows(self, seconds: float) -> bool:
        """Return whether there is time for what takes so long.

        Parameters
        ----------
        seconds : float

        Returns
        -------
        bool
        """
        return time.perf_counter() + seconds <= self._end


@dataclass(frozen=True)
class Effort:
    """How much a fit may cost.

    Parameters
    ----------
    level : {"quick", "default", "best", "timed"}
    clock : Clock or None
        Of "timed".
    """

    level: Level = "default"
    clock: Clock | None = None

    @classmethod
    def of(cls, given: Any) -> Effort:
        """Read the parameter of a regressor; its seconds run from now on."""
        if isinstance(given, str) and given in _NAMES:
            return cls(given)  # type: ignore[arg-type]
        number = isinstance(given, Real) and not isinstance(given, bool | np.bool_)
        if number and 0.0 < float(given) < np.inf:
            return cls("timed", Clock(float(given)))
        msg = (
            f"`effort` must be one of {', '.join(map(repr, _NAMES))} or a positive "
            f"number of seconds, got {given!r}."
        )
        raise ValueError(msg)

    @property
    def corrects(self) -> bool:
        """Whether forecasts are recalibrated where the user says nothing of it."""
        return self.level != "default"


DEFAULT_EFFORT = Effort()
