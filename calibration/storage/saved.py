"""`Saved`: the method `save` of what can be saved."""

from __future__ import annotations

import os

from calibration.storage.model import save_model


class Saved:
    """Gives a class of `calibration` the method `save`."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that was fitted to a file, which `calibration.load` reads.

        Parameters
        ----------
        path : path-like
            Replaced if it is there; after an error it is as it was.
        """
        save_model(self, path)
