"""Objects written by earlier versions of a class: what the class has had since."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any


def complete_state(cls: type, state: dict[str, Any]) -> dict[str, Any]:
    """Return attributes with defaults for parameters and fields that are missing.

    A class whose other attributes have changed says how, by a class method
    `_read_saved(state)` that returns them as they are to be.

    Parameters
    ----------
    cls : type
    state : dict
        Attributes as they were written.

    Returns
    -------
    dict
    """
    read = getattr(cls, "_read_saved", None)
    if read is not None:
        state = read(dict(state))
    return {**_defaults(cls, state), **state}


def _defaults(cls: type, state: dict[str, Any]) -> dict[str, Any]:
    if dataclasses.is_dataclass(cls):
        return {
            field.name: _default(field)
            for field in dataclasses.fields(cls)
            if field.init and field.name not in state and _has_default(field)
        }
    if not hasattr(cls, "get_params"):
        return {}
    return {
        name: parameter.default
        for name, parameter in inspect.signature(cls).parameters.items()
        if parameter.default is not parameter.empty
    }


def _has_default(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is not missing or field.default_factory is not missing


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default
