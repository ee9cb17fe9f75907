"""`load`: a saved calibrator or classifier from its file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from calibration.storage.model import load_model


def load(
    path: str | os.PathLike[str],
    *,
    trusted: Iterable[str | type] = (),
    max_memory: float | None = None,
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

    Returns
    -------
    object
        Its predictions are those of the model saved, to the last bit.

    Raises
    ------
    StorageError
        If the file is no saved model, is damaged, truncated, of a newer format, or
        holds types that are not trusted, or takes more memory than it may.

    Notes
    -----
    The file is a zip archive of one member, which skops has written: a description
    in JSON, and arrays in numpy's own format. Every name in the description is held
    against a list before anything is imported, nodes that skops would call are
    refused, and so are tables of trees that lead nowhere. Nothing in the file is run,
    nothing is unpickled, and it is unpacked in memory only: what it takes is counted
    before it is taken. Its checksums tell damage, not forgery: numbers that someone has
    made up give forecasts that are made up.

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
    return load_model(path, trusted=trusted, max_memory=max_memory)
