"""Laws of all kinds, of three rows each."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from localexpert import PredictiveDistribution, pool
from localexpert.law.level_map import clip
from tests.forecasts import beside, normal, of_values

Floats = NDArray[np.float64]

LOC, SCALE = np.array([-1.0, 0.5, 4.0]), np.array([0.4, 1.0, 3.0])
_SMOOTH = normal(LOC, SCALE)
_GAMMA = PredictiveDistribution.from_scipy(stats.gamma(2.0, scale=SCALE))
_BETA = PredictiveDistribution.from_scipy(stats.beta([0.8, 2.0, 5.0], 2.0))
_MASSES = np.array([[0.2, 0.0], [0.3, 0.3], [0.0, 0.9]])
_SHARES = np.array([[0.2, 0.5, 0.3], [0.0, 0.1, 0.9], [0.0, 1.0, 0.0]])

KINDS = {
    "smooth": _SMOOTH.law,
    "bounded": _GAMMA.law,
    "share": _BETA.law,
    "two peaks": pool([_SMOOTH, normal(LOC + 4.0 * SCALE, SCALE)]).law,
    "mixed": beside(_SMOOTH, [0.0, 1.0], _MASSES, [0.1, 0.1]).law,
    "discrete": of_values([0.0, 1.0, 5.0], _SHARES).law,
    "clipped": clip(_SMOOTH.law, 0.0, 3.0, 0.1),
    "lattice": replace(_SMOOTH.law, known=None, step=0.5, offset=0.1),
    "counts": replace(_GAMMA.law, known=None, step=1.0, ends=(0.0, np.inf)),
}
FORECASTS = {name: PredictiveDistribution(law) for name, law in KINDS.items()}
SMOOTH = ("smooth", "bounded", "share", "two peaks")
LATTICES = ("lattice", "counts")
every = pytest.mark.parametrize("name", KINDS)
smooth = pytest.mark.parametrize("name", SMOOTH)

LEVELS = np.tile([0.001, 0.03, 0.2, 0.5, 0.8, 0.97, 0.999], (3, 1))


def places_of(law):
    """Return values (3, k): quantiles, between them, values with jumps, and beyond."""
    y = law.ppf(LEVELS)
    wide = y[:, -1:] - y[:, :1] + 1.0
    between = 0.5 * (y[:, 1:] + y[:, :-1]) + 0.013
    jumps = np.tile([-0.4, 0.0, 1.0, 3.0, 5.0], (3, 1))
    return np.hstack([y, between, jumps, y[:, :1] - wide, y[:, -1:] + wide])
