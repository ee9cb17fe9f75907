"""`SavedModel`: the method `save` of what can be saved."""

from __future__ import annotations

import os

from localexpert.storage.load import save


class SavedModel:
    """Gives a class of `localexpert` the method `save`."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that was fitted to a file, which `localexpert.load` reads.

        Parameters
        ----------
        path : path-like
            Replaced if it is there; after an error it is as it was.
        """
        save(self, path)
