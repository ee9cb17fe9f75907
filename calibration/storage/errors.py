"""`StorageError`: a model cannot be written to a file, or a file cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


class StorageError(ValueError):
    """A model cannot be saved, or a file is no sound saved model.

    Examples
    --------
    >>> from calibration.storage import StorageError, load_model
    >>> try:
    ...     load_model(__file__)
    ... except StorageError as error:
    ...     print(str(error).split(": ")[-1])
    it is not a saved model.
    """


def refuse(message: str) -> NoReturn:
    """Raise the error of a model or file that is refused."""
    raise StorageError(message)


@contextmanager
def refusing(message: str) -> Iterator[None]:
    """Make all errors those of storage, which themselves pass unchanged.

    Parameters
    ----------
    message : str
        With {error} where the reason goes, and {kind} where the class of the error.
    """
    try:
        yield
    except StorageError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise StorageError(message.format(error=error, kind=kind)) from error
