"""`Checkpoint`: a folder that keeps what a fit has finished."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from calibration.sources.part import Part
from calibration.storage.whole_file import replacing_file
from localexpert._validation import check_path

_NAME = "checkpoint.json"
_IDENTITY = "part identity"


@dataclass
class Checkpoint:
    """What parts and stages of one fit have told, a file for each; or nothing.

    Files are arrays without code, and models as `save` writes them. Each is written
    whole or not at all.

    Parameters
    ----------
    folder : Path or None
        None keeps nothing.
    so_far : str
        Digest of what the stages before have found: results that follow from other
        ones are not taken for those of this fit.
    """

    folder: Path | None
    so_far: str = field(default="", init=False)

    @classmethod
    def of(cls, folder: str | PathLike[str] | None, terms: Mapping[str, Any]) -> Any:
        """Open a folder, and refuse one that is of another fit.

        Parameters
        ----------
        folder : path or None
            Made if it is not there.
        terms : mapping of str to object
            What the fit is of, by the name of the parameter; ready for JSON.

        Returns
        -------
        Checkpoint
        """
        if folder is None:
            return cls(None)
        path = check_path(folder, "checkpoint")
        path.mkdir(parents=True, exist_ok=True)
        file = path / _NAME
        if not file.exists():
            if any(path.iterdir()):
                msg = f"`checkpoint` must be an empty folder or a fit's, got {path}."
                raise ValueError(msg)
            with replacing_file(file) as beside:
                beside.write_text(json.dumps(terms, indent=1), encoding="utf-8")
            return cls(path)
        held = json.loads(file.read_text(encoding="utf-8"))
        for name, value in terms.items():
            if held.get(name) != json.loads(json.dumps(value)):
                msg = (
                    f"`checkpoint` must be of the same fit, got {path}, begun with "
                    f"another `{name}`."
                )
                raise ValueError(msg)
        return cls(path)

    def follow(self, found: Mapping[str, Any]) -> None:
        """Note what was found: what is kept from now on follows from it.

        Parameters
        ----------
        found : mapping of str to ndarray
        """
        digest = hashlib.sha256(self.so_far.encode())
        for name in sorted(found):
            array = np.ascontiguousarray(found[name])
            digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
            digest.update(array.tobytes())
        self.so_far = digest.hexdigest()[:16]

    def open(
        self, stage: str, load: Callable[[Mapping[str, Any]], Any]
    ) -> StageCheckpoint:
        """Return what is kept of a pass.

        Parameters
        ----------
        stage : str
        load : callable
            Makes a part's result of its arrays.

        Returns
        -------
        StageCheckpoint
        """
        words = "-".join(
            word for word in (stage.replace(" ", "-"), self.so_far) if word
        )
        return StageCheckpoint(self.folder, words, load)

    def model(
        self, stage: str, load: Callable[[Path], Any], fit: Callable[[], Any]
    ) -> Any:
        """Return a stage's model from its file, or fit it and keep it.

        Parameters
        ----------
        stage : str
        load, fit : callable

        Returns
        -------
        object
        """
        if self.folder is None:
            return fit()
        path = self.folder / f"{stage}-{self.so_far}.zip"
        if path.exists():
            return load(path)
        model = fit()
        model.save(path)
        return model


@dataclass(frozen=True)
class StageCheckpoint:
    """What the parts told in one pass.

    Parameters
    ----------
    folder : Path or None
    stage : str
    loader : callable
    """

    folder: Path | None
    stage: str
    loader: Callable[[Mapping[str, Any]], Any]

    def load(self, number: int, part: Part) -> Any:
        """Return what a part told, None if it is not known.

        Parameters
        ----------
        number : int
        part : Part

        Returns
        -------
        object or None
        """
        if self.folder is None:
            return None
        path = self._path(number)
        try:
            # A file of ours, for numpy leaves its own open where it fails.
            with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
                arrays = dict(held)
        except FileNotFoundError:
            return None
        except (ValueError, OSError, BadZipFile) as error:
            msg = f"`checkpoint` must hold whole files, got {path}: {error}."
            raise ValueError(msg) from error
        if str(arrays.pop(_IDENTITY)) != part.identity():
            msg = (
                f"`checkpoint` must be of the same `source`, got {self.folder}, where "
                f"{part.name} was another one."
            )
            raise ValueError(msg)
        return self.loader(arrays)

    def save(self, number: int, part: Part, result: Any) -> Any:
        """Keep what a part told, and return it.

        Parameters
        ----------
        number : int
        part : Part
        result : object
            With `arrays()`.

        Returns
        -------
        object
        """
        if self.folder is not None:
            arrays = {**result.arrays(), _IDENTITY: np.array(part.identity())}
            with (
                replacing_file(self._path(number)) as beside,
                beside.open("wb") as file,
            ):
                np.savez(file, **arrays)
        return result

    def _path(self, number: int) -> Path:
        assert self.folder is not None
        return self.folder / f"{self.stage}-{number}.npz"
