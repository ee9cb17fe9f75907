"""`StorageError`: a model cannot be written to a file, or a file cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Name the file in every error of storage."""
    try:
        yield
    except StorageError as error:
        msg = f"`path` {str(path)!r}: {error}"
        raise StorageError(msg) from error.__cause__
