"""`all_or_nothing`: a fit that fails leaves an estimator as it was."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

Given = ParamSpec("Given")
Owner = TypeVar("Owner")


def all_or_nothing(
    fit: Callable[Concatenate[Owner, Given], Owner],
) -> Callable[Concatenate[Owner, Given], Owner]:
    """Return a method that puts all attributes back if it fails or is stopped.

    A fit that was refused, or ended by Ctrl-C, would leave the reader of one table
    beside the models of another, and forecasts that are wrong without a word.

    Parameters
    ----------
    fit : method
        That returns self, and assigns new objects, but changes none in place.

    Returns
    -------
    method
    """

    @wraps(fit)
    def whole(self: Owner, /, *args: Given.args, **kwargs: Given.kwargs) -> Owner:
        before = vars(self).copy()
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return whole
