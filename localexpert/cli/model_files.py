"""Files of models: written whole or not at all, and refused with one line."""

from __future__ import annotations

from typing import Any

from calibration.storage import StorageError
from localexpert.cli.console import UserError
from localexpert.cli.output import replacing
from localexpert.cli.read_file import read_bytes
from localexpert.cli.table import TableModel
from localexpert.storage.load import load, save


def save_object(thing: Any, path: str, option: str) -> None:
    """Write a table model or a calibrator to a file."""
    with replacing(path, option) as temporary:
        try:
            save(thing, temporary)
        except StorageError as error:
            msg = f"cannot save to {path!r}: {error}"
            raise UserError(msg) from error


def load_table_model(path: str) -> TableModel:
    """Return what `localexpert fit` saved."""
    read_bytes(path)  # says why a file cannot be opened in the words of other files
    try:
        thing = load(path)
    except StorageError as error:
        msg = f"{path} is no sound model of `localexpert fit`: {error}"
        raise UserError(msg) from error
    if not isinstance(thing, TableModel):
        msg = f"{path} holds a {type(thing).__name__}, not a model of `localexpert fit`"
        raise UserError(msg)
    return thing
