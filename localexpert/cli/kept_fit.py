"""`KeptFit`: the folder where a fit of large tables keeps what it has finished."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibration.storage import replacing_file
from localexpert.cli.console import count, note, refuse, refusing

# What the call was, and the folder of what `fit_large` keeps.
_CALL, _PASSES = "call.json", "passes"


@dataclass(frozen=True)
class KeptFit:
    """A folder for the same call to go on from; or none.

    Parameters
    ----------
    folder : Path or None
    terms : mapping of str to object
        What makes a fit another one, by what messages call it; ready for JSON.
    """

    folder: Path | None
    terms: Mapping[str, Any]

    @classmethod
    def open(cls, folder: str | None, terms: Mapping[str, Any]) -> KeptFit:
        """Return the folder, or refuse one that is of another call; nothing is made."""
        if folder is None:
            return cls(None, terms)
        kept = cls(Path(folder), terms)
        with refusing(f"cannot read --checkpoint {folder!r}", OSError):
            is_there = kept._call.exists()
            if not is_there and kept._is_taken():
                refuse(
                    f"--checkpoint must be a new or empty folder, or that of such a "
                    f"call, got {folder!r}"
                )
        if is_there:
            kept._compare()
        if not os.access(kept._nearest(), os.W_OK):
            refuse(f"cannot write --checkpoint {folder!r}: {os.strerror(errno.EACCES)}")
        return kept

    @property
    def passes(self) -> Path | None:
        """Folder of what `fit_large` keeps."""
        return None if self.folder is None else self.folder / _PASSES

    def begin(self) -> None:
        """Make the folder and note the call; say what it is gone on from."""
        if self.folder is None:
            return
        assert self.passes is not None
        if self._call.exists():
            models = len(list(self.passes.glob("*.zip")))
            parts = len(list(self.passes.glob("*.npz")))
            note(
                f"going on from --checkpoint {self.folder}: "
                f"{count(parts, 'result')} of parts and {count(models, 'model')} there"
            )
            return
        with refusing(f"cannot write --checkpoint {str(self.folder)!r}", OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing_file(self._call) as beside:
                beside.write_text(json.dumps(self.terms, indent=1), encoding="utf-8")
        note(f"{self.folder} keeps what is finished, for the same call to go on from")

    @property
    def _call(self) -> Path:
        assert self.folder is not None
        return self.folder / _CALL

    def _nearest(self) -> Path:
        """Return the folder, or the nearest above it that is there."""
        assert self.folder is not None
        return next(
            p for p in (self.folder, *self.folder.absolute().parents) if p.exists()
        )

    def _is_taken(self) -> bool:
        """Return whether there is something else in the place of the folder."""
        assert self.folder is not None
        if self.folder.is_dir():
            return any(self.folder.iterdir())
        return self.folder.exists()

    def _compare(self) -> None:
        """Refuse the folder of another call by the first thing that differs."""
        whole = f"--checkpoint {str(self.folder)!r}"
        with refusing(f"cannot read {whole}", OSError, ValueError):
            held = json.loads(self._call.read_text(encoding="utf-8"))
            assert isinstance(held, dict)
        for name, value in self.terms.items():
            if held.get(name) != json.loads(json.dumps(value)):
                refuse(
                    f"{whole} was begun with another {name}: repeat the call as it "
                    "was, or take another folder"
                )
