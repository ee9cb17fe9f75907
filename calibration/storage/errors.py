"""`StorageError`: a model cannot be written to a file, or a file cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
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
    """Raise the error of a model or file that is refused.

    Parameters
    ----------
    message : str
    """
    raise StorageError(message)


@contextmanager
def refusing(message: str, *kinds: type[Exception]) -> Iterator[None]:
    """Make errors of these kinds those of storage, which themselves pass unchanged.

    Parameters
    ----------
    message : str
        With {error} where the reason goes, and {kind} where the class of the error.
    *kinds : type
    """
    try:
        yield
    except StorageError:
        raise
    except kinds as error:
        kind = type(error).__name__
        raise StorageError(message.format(error=error, kind=kind)) from error


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Name the file in every error of storage."""
    try:
        yield
    except StorageError as error:
        msg = f"`path` {str(path)!r}: {error}"
        raise StorageError(msg) from error.__cause__
