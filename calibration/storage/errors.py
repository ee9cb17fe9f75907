"""`StorageError`, and `Budget`: what a file is refused by."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

# A sound file of any size may take this, and so many times its own size. What is
# written keeps within it, if need be by not being packed.
_FREE_BYTES = 2**28
_MOST_RATIO = 100
# About what Python takes for the character of a description that opens a list, ends a
# text or parts two items, which may be keys of a dict; for the others.
_OF_TEXT = {b"[": 150, b'"': 16, b",": 250}
_OF_LETTER = 4


class StorageError(ValueError):
    """A model cannot be saved, or a file is no sound saved model.

    Examples
    --------
    >>> from calibration.storage import StorageError, load
    >>> try:
    ...     load(__file__)
    ... except StorageError as error:
    ...     print(str(error).split(": ")[-1])
    it is no saved model, or damaged or truncated (File is not a zip file).
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


def default_limit(size: int) -> int:
    """Return the bytes of memory that reading a file of some size may take."""
    return _FREE_BYTES + _MOST_RATIO * size


def cost_of_text(text: bytes) -> int:
    """Return the bytes that a description takes, with the nodes that it lists."""
    marks = sum(text.count(mark) * cost for mark, cost in _OF_TEXT.items())
    return _OF_LETTER * len(text) + marks


class Budget:
    """Bytes of memory, spent before they are taken.

    Parameters
    ----------
    limit : float
        Most bytes to spend.
    """

    def __init__(self, limit: float):
        self.limit = limit
        self.spent = 0

    def spend(self, n_bytes: int, what: str) -> None:
        """Refuse the file if the bytes are more than are left."""
        self.spent += n_bytes
        if self.spent > self.limit:
            refuse(
                f"it would take more than {self.limit:.0f} bytes of memory ({what}). "
                "If you know who wrote the file, load it with a greater `max_memory`."
            )
