"""`Refinement`: learners that go on where a centre and a scale have ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import lightgbm as lgb
import numpy as np

from calibration.typing import Float64Array
from localexpert.coordinate.small_nets import SmallNets
from localexpert.data.dense_inputs import DenseInputs


@dataclass
class Refinement:
    """What further rows add to a frame.

    The centre becomes (1 - a) m(x) + a n(x) + u d(x), the scale s(x) exp(g(x)).

    Parameters
    ----------
    unit : float
        That is u.
    nets : list of SmallNets
        Their mean is n.
    share : float
        That is a; 0 without nets.
    inputs : DenseInputs, optional
        What nets read.
    center : list of lightgbm.Booster
        The mean of their raw scores is d; none: 0.
    scale : list of lightgbm.Booster
        The mean of their raw scores is g; none: 0.
    """

    unit: float
    nets: list[SmallNets] = field(default_factory=list)
    share: float = 0.0
    inputs: DenseInputs | None = None
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
        if self.nets and self.inputs is not None:
            said = mean_answer(self.nets, self.inputs, codes)
            center = center + self.share * (said - center)
        if self.center:
            center = center + self.unit * mean_score(self.center, codes)
        if self.scale:
            scale = scale * np.exp(mean_score(self.scale, codes))
        return center, scale

    def choices(self) -> dict[str, Any]:
        """Return the share of nets, and the rounds; ready for JSON."""
        rounds: dict[str, float] = {
            name: max([0, *(b.num_trees() for b in getattr(self, name))])
            for name in ("center", "scale")
        }
        return {**({"nets": self.share} if self.nets else {}), **rounds}


def mean_answer(
    nets: list[SmallNets], inputs: DenseInputs, codes: Float64Array
) -> Float64Array:
    """Return the mean of what nets say, shape (n,).

    Parameters
    ----------
    nets : list of SmallNets
    inputs : DenseInputs
    codes : ndarray of shape (n, p)

    Returns
    -------
    ndarray of shape (n,)
    """
    dense = inputs.transform(codes)
    total = np.zeros(len(codes))
    for net in nets:
        total += net.predict(dense)
    return total / len(nets)


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
