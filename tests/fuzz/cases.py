"""Cases: how many of the fuzz leg's fall to whom, and the only errors there may be."""

import os
import re
import warnings

from hypothesis import HealthCheck, Phase, settings
from sklearn.exceptions import NotFittedError

from calibration import CalibrationWarning

# How many in all, and the one seed to run instead of them.
CASES = int(os.environ.get("FUZZ_CASES", "500"))
SEED = None if (given := os.environ.get("FUZZ_SEED")) is None else int(given)


def cases_of(share):
    """Return how many cases are a share of all, one at least."""
    return 1 if SEED is not None else max(1, round(share * CASES))


def pick(rng, *choices):
    """Return one of the choices as it is; a generator's `choice` makes arrays."""
    return choices[rng.integers(len(choices))]


def examples(share):
    """Return the decorator of a test of Hypothesis: a share of all cases.

    The same in every run, as those of the whole suite; what it says of a red one, the
    least that it has found, can be typed in.
    """
    return settings(
        max_examples=cases_of(share),
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )


NAMED = re.compile(r"`([^`]+)`")


def answer_or_refusal(function):
    """Return what a function returns, or the error with which it refuses its input.

    That is a ValueError or TypeError with the argument in backticks. Any other error
    escapes, and so do all warnings but ours.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CalibrationWarning)
        try:
            return function()
        except (ValueError, TypeError, NotFittedError) as error:
            if type(error).__module__ == "builtins" and NAMED.search(str(error)):
                return error
            raise


def named_in(error):
    """Return the argument that a refusal names first."""
    return NAMED.search(str(error))[1]
