"""`Refinement`: boosters that go on where a centre and a scale have ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import lightgbm as lgb
import numpy as np

from calibration.typing import Float64Array


@dataclass
class Refinement:
    """What further rows add to a frame: m(x) + u d(x), and s(x) exp(g(x)).

    Parameters
    ----------
    unit : float
        That is u.
    center : list of lightgbm.Booster
        The mean of their raw scores is d; none: 0.
    scale : list of lightgbm.Booster
        The mean of their raw scores is g; none: 0.
    """

    unit: float
    center: list[lgb.Booster] = field(default_factory=list)
    scale: list[lgb.Booster] = field(default_factory=list)

    def apply(
        self, codes: Float64Array, center: Float64Array, scale: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Return the refined centre and scale of rows.

        Parameters
        ----------
        codes : ndarray of shape (n, p)
        center, scale : ndarrays of shape (n,)

        Returns
        -------
        center, scale : ndarrays of shape (n,)
        """
        if self.center:
            center = center + self.unit * mean_score(self.center, codes)
        if self.scale:
            scale = scale * np.exp(mean_score(self.scale, codes))
        return center, scale

    def choices(self) -> dict[str, Any]:
        """Return the rounds, ready for JSON."""
        return {
            name: max([0, *(b.num_trees() for b in getattr(self, name))])
            for name in ("center", "scale")
        }


def mean_score(boosters: list[lgb.Booster], codes: Float64Array) -> Float64Array:
    """Return the mean of the boosters' raw scores, shape (n,), by one thread.

    Parameters
    ----------
    boosters : list of lightgbm.Booster
    codes : ndarray of shape (n, p)

    Returns
    -------
    ndarray of shape (n,)
    """
    total = np.zeros(len(codes))
    for booster in boosters:
        total += np.asarray(booster.predict(codes, raw_score=True, num_threads=1))
    return total / len(boosters)
