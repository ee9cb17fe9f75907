"""`all_or_nothing`: a fit that fails leaves an estimator as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def all_or_nothing(estimator: object) -> Iterator[None]:
    """Put all attributes back if what is done within fails or is stopped.

    A fit that was refused, or ended by Ctrl-C, would leave the reader of one table
    beside the models of another, and forecasts that are wrong without a word.

    Parameters
    ----------
    estimator : object
        To which new objects are assigned within, while none is changed in place.
    """
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
