"""Saved models of `localexpert`: those of `calibration`, and boosters beside them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import calibration.storage
from calibration.storage import Saved, save

__all__ = ["Saved", "load", "save"]


def load(
    path: str | os.PathLike[str],
    *,
    trusted: Iterable[str | type] = (),
    max_memory: float | None = None,
) -> Any:
    """Return the regressor that its method `save` wrote to a file.

    Reads the files of `calibration` as well.

    Parameters
    ----------
    path : path-like
        Of the file.
    trusted : sequence of str or type, optional
        Types that the file may hold besides ours and those of scikit-learn, LightGBM
        and XGBoost; see `calibration.load`, also on what a file cannot do.
    max_memory : float, optional
        Most bytes of memory that reading may take, about. Default 256 MB and 100 times
        the size of the file.

    Returns
    -------
    object
        Its forecasts are those of the model saved, to the last bit, and so are all
        its attributes.

    Raises
    ------
    StorageError
        If the file is no saved model, is damaged, truncated, of a newer format, or
        holds types that are not trusted, or takes more memory than it may.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from localexpert import LocalExpertRegressor
    >>> from localexpert.storage import load
    >>> x = np.linspace(0.0, 1.0, 90)[:, None]
    >>> y = np.round(4.0 * x[:, 0] ** 2)
    >>> model = LocalExpertRegressor(strategy="shared", cv=2, random_state=0).fit(x, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(Path(folder) / "model.zip")
    ...     again = load(Path(folder) / "model.zip")
    >>> bool((again.predict(x) == model.predict(x)).all())
    True
    """
    return calibration.storage.load(
        path,
        trusted=trusted,
        max_memory=max_memory,
        packages=("calibration", "localexpert"),
    )
