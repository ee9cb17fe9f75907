"""Cases: how many of the fuzz leg's fall to whom."""

import os
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, settings

# How many in all, and the one seed to run instead of them.
CASES = int(os.environ.get("FUZZ_CASES", "1000"))
SEED = None if (given := os.environ.get("FUZZ_SEED")) is None else int(given)


def cases_of(share: float) -> int:
    """Return how many cases are a share of all, one at least."""
    return 1 if SEED is not None else max(1, round(share * CASES))


def pick(rng: np.random.Generator, *choices: Any) -> Any:
    """Return one of the choices as it is; a generator's `choice` makes arrays."""
    return choices[rng.integers(len(choices))]


def examples(share: float) -> settings:
    """Return the decorator of a test of Hypothesis: a share of all cases.

    The same in every run, as those of the whole suite; what it says of a red one, the
    least that it has found, can be typed in.
    """
    return settings(
        max_examples=cases_of(share),
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
