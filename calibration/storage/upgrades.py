"""Objects written by earlier versions of a class: what the class has had since."""

from __future__ import annotations

import dataclasses
import inspect
from functools import cache
from typing import Any


def complete_state(cls: type, state: dict[str, Any]) -> dict[str, Any]:
    """Return attributes with defaults for parameters and fields that are missing.

    A class whose other attributes have changed, or that has to check them, says how,
    by a class method `_read_saved(state)` that returns them as they are to be.

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
    fields = getattr(cls, "__dataclass_fields__", {})
    missing = {k: v for k, v in _defaults(cls).items() if k not in state}
    for name in missing.keys() & fields.keys():
        if fields[name].default is dataclasses.MISSING:
            missing[name] = fields[name].default_factory()
    return {**missing, **state}


@cache
def _defaults(cls: type) -> dict[str, Any]:
    """Return the defaults of an estimator's parameters, or of a dataclass's fields."""
    if not (dataclasses.is_dataclass(cls) or hasattr(cls, "get_params")):
        return {}
    return {
        name: parameter.default
        for name, parameter in inspect.signature(cls).parameters.items()
        if parameter.default is not parameter.empty
    }
