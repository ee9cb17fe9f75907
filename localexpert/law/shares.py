"""How far up in the jumps of CDFs PIT values lie."""

from __future__ import annotations

import numpy as np

from calibration.typing import Float64Array
from localexpert._validation import check_integer, make_rng

# Marks the stream of PIT draws as another one than that of the same seed elsewhere.
_PIT_STREAM = 54_881


def draw_shares(
    random_state: int | np.random.Generator | None, shape: tuple[int, ...]
) -> Float64Array:
    """Return uniform draws.

    The draws of a seed are not those of ``default_rng(seed)``, from which y itself
    may have been drawn: PIT values of the same draws would not be uniform.
    """
    if not isinstance(random_state, np.random.Generator | None):
        seed = check_integer(random_state, "random_state", 0)
        random_state = np.random.default_rng([seed, _PIT_STREAM])
    return make_rng(random_state).uniform(size=shape)
