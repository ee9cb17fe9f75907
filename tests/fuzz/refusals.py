"""Refusals: the only errors there may be, and the only warnings."""

import re
import warnings

from sklearn.exceptions import NotFittedError

from calibration import CalibrationWarning

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
