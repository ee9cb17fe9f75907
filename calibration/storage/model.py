"""Saving a model to one file, and loading it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from calibration.storage.archive import read_archive, read_json, write_archive
from calibration.storage.decoder import Decoder
from calibration.storage.encoder import Encoder
from calibration.storage.errors import StorageError, errors_of
from calibration.storage.foreign import SkopsParts
from calibration.storage.parts import PartKind
from calibration.storage.registry import Registry

_DESCRIPTION = "description.json"
_LIBRARIES = ("numpy", "scipy", "sklearn", "skops", "lightgbm", "xgboost", "pandas")


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    packages: Sequence[str] = ("calibration",),
    kinds: Sequence[PartKind] = (),
) -> None:
    """Write a model to a file, all of it or nothing.

    Parameters
    ----------
    model : object
        Of a class of the packages.
    path : path-like
        Replaced if it is there.
    packages : sequence of str
        Whose classes are written attribute by attribute.
    kinds : sequence of PartKind
        How further objects of other libraries are written; skops writes the rest.

    Raises
    ------
    StorageError
        If the model holds functions, or anything else that cannot be saved.
    """
    encoder = Encoder(packages, [*kinds, SkopsParts(Registry(packages))])
    root = encoder.encode(model)
    description = {
        "class": type(model).__name__,
        "written_by": _versions(packages),
        "root": root,
        "nodes": encoder.nodes,
    }
    text = json.dumps(description, separators=(",", ":")).encode("ascii")
    write_archive(Path(path), {_DESCRIPTION: text, **encoder.members})


def load_model(
    path: str | os.PathLike[str],
    *,
    trusted: Iterable[str | type] = (),
    packages: Sequence[str] = ("calibration",),
    kinds: Sequence[PartKind] = (),
) -> Any:
    """Return the model in a file.

    Nothing in the file is run. Classes are ours, or those of scikit-learn, LightGBM
    and XGBoost, or `trusted`.

    Parameters
    ----------
    path : path-like
    trusted : sequence of str or type
        Further types that the file may hold, such as those of a library of your own.
    packages : sequence of str
        Whose classes the file may name.
    kinds : sequence of PartKind
        As for `save_model`.

    Returns
    -------
    object

    Raises
    ------
    StorageError
        If the file is no saved model, damaged, or of a newer format, or holds types
        that are not trusted.
    """
    target = Path(path)
    if isinstance(trusted, str | type):
        msg = f"`trusted` must be a list of names or types, got {trusted!r}."
        raise TypeError(msg)
    with errors_of(target):
        registry = Registry(packages)
        members = read_archive(target)
        if _DESCRIPTION not in members:
            msg = f"the member {_DESCRIPTION!r} is missing."
            raise StorageError(msg)
        description = read_json(members[_DESCRIPTION], _DESCRIPTION)
        if not isinstance(description, dict):
            msg = f"the member {_DESCRIPTION!r} is no description."
            raise StorageError(msg)
        decoder = Decoder(registry, members, [*kinds, SkopsParts(registry, trusted)])
        model = decoder.decode(description.get("nodes"), description.get("root"))
        if type(model) not in registry:
            msg = f"it holds no model but an object of {type(model).__name__}."
            raise StorageError(msg)
        return model


def _versions(packages: Sequence[str]) -> dict[str, str]:
    """Return the versions of what is loaded, for those who wonder about a file."""
    modules = ((name, sys.modules.get(name)) for name in (*packages, *_LIBRARIES))
    versions = {name: getattr(module, "__version__", None) for name, module in modules}
    return {name: str(version) for name, version in versions.items() if version}
