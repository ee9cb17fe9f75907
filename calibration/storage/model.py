"""Saving a model to one file, and loading it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from calibration._validation import check_list, check_number, check_path
from calibration.storage.archive import (
    StorageError,
    read_archive,
    refuse,
    refusing,
    write_archive,
)
from calibration.storage.codec import Names, Reader, Writer, name_of


class Saved:
    """Gives a class the method `save`."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that was fitted to a file, which `load` reads.

        Parameters
        ----------
        path : path-like
            Replaced if it is there; after an error it is as it was.
        """
        save(self, path)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model to a file, all of it or nothing.

    Parameters
    ----------
    model : object
        Of a class of ours.
    path : path-like
        Replaced if it is there.

    Raises
    ------
    StorageError
        If the model holds functions that have no name, or anything else that cannot
        be saved.
    """
    target = check_path(path)
    writer = Writer()
    try:
        writer.part(model, "model")
    except RecursionError as error:
        msg = "`model` is nested too deeply, or holds itself."
        raise StorageError(msg) from error
    write_archive(target, *writer.members())


def load(
    path: str | os.PathLike[str],
    *,
    trusted: Iterable[str | type] = (),
    max_memory: float | None = None,
    packages: Sequence[str] = ("calibration",),
) -> Any:
    """Return the calibrator or classifier that its method `save` wrote to a file.

    Parameters
    ----------
    path : path-like
        Of the file.
    trusted : sequence of str or type, optional
        Types that the file may hold besides ours and those of scikit-learn, LightGBM
        and XGBoost: a classifier of your own, for instance. The error for one that is
        missing names it.
    max_memory : float, optional
        Most bytes of memory that reading may take, about. Default 256 MB and 100 times
        the size of the file.
    packages : sequence of str
        Whose classes are ours.

    Returns
    -------
    object
        Its predictions are those of the model saved, to the last bit.

    Raises
    ------
    StorageError
        If the file is no saved model, is damaged, truncated, of another format, or
        holds types that are not trusted, or takes more memory than it may.

    Notes
    -----
    The file is a zip archive: a description in JSON, a flat list of nodes, and the
    bytes of arrays. Every name in the description is held against a list before
    anything is made. Nothing in the file is run, nothing is unpickled, and it is
    unpacked in memory only: what it takes is counted before it is taken. Tables that
    compiled code would take on trust are checked. The checksums tell damage, not
    forgery: numbers that someone has made up give forecasts that are made up.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from calibration import PlattCalibrator
    >>> from calibration.storage import load
    >>> model = PlattCalibrator().fit([0.1, 0.4, 0.3, 0.8], [0, 1, 0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(Path(folder) / "platt.zip")
    ...     again = load(Path(folder) / "platt.zip")
    >>> bool((again.predict([0.5]) == model.predict([0.5])).all())
    True
    """
    target = check_path(path)
    listed = check_list(trusted, "trusted", "names or types")
    known = [one if isinstance(one, str) else name_of(one) for one in listed]
    ours = check_list(packages, "packages", "names")
    if max_memory is not None:
        check_number(max_memory, "max_memory", 0.0, open_low=True)
    try:
        text, arrays, budget = read_archive(target, max_memory)
        # A description that is not ours may go wrong in any way.
        with refusing("its description makes no sense ({kind}: {error})."):
            reader = Reader(text, arrays, Names(ours, known), budget)
            _check_names(reader, ours)
            return reader.read()
    except StorageError as error:
        msg = f"`path` {str(target)!r}: {error}"
        raise StorageError(msg) from error.__cause__


def _check_names(reader: Reader, packages: Sequence[str]) -> None:
    """Refuse what is no model of ours, or names what is not trusted."""
    kind, name = reader.root
    if kind not in ("object", "call") or name.partition(".")[0] not in packages:
        refuse(
            f"it holds {name!r:.80}, and here only models of "
            f"{' and '.join(packages)} are loaded."
        )
    if unknown := reader.unknown:
        refuse(
            f"it holds {', '.join(unknown)}, which are not trusted. If you know who "
            f"wrote the file, load it with `trusted={unknown!r}`."
        )
