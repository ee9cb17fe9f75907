"""`Decoder`: from a description and members back to the object."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from calibration.storage.arrays import restore_array, unpack_array
from calibration.storage.errors import StorageError
from calibration.storage.parts import Part, PartKind
from calibration.storage.plain import PLAIN_KINDS
from calibration.storage.planes import SUFFIX
from calibration.storage.registry import Registry
from calibration.storage.upgrades import complete_state

_SHELLS: dict[str, Callable[[], Any]] = {
    "list": list,
    "dict": dict,
    "OrderedDict": OrderedDict,
    "set": set,
}


class Decoder:
    """Build what an `Encoder` described.

    Objects that may take part in cycles are first made empty, and filled in the order
    of the nodes. Nothing recurses, and nothing is called but constructors of plain
    values, those of our own classes that ask for it, and the readers of parts.

    Parameters
    ----------
    registry : Registry
    members : mapping of str to bytes
    kinds : sequence of PartKind
    """

    def __init__(
        self,
        registry: Registry,
        members: Mapping[str, bytes],
        kinds: Sequence[PartKind],
    ):
        self.registry = registry
        self.members = members
        self.kinds = {kind.name: kind for kind in kinds}
        self._built: dict[int, Any] = {}
        self._makers: dict[str, Callable[..., Any]] = {
            "tuple": lambda items: tuple(self._values(items)),
            "frozenset": lambda items: frozenset(self._values(items)),
            "plain": self._plain,
            "array": self._array,
            "class": self.registry.find,
            "named": self._named,
            "made": self._made,
            "part": self._part,
        }
        self._fillers: dict[str, Callable[..., None]] = {
            "list": lambda shell, items: shell.extend(self._values(items)),
            "set": lambda shell, items: shell.update(self._values(items)),
            "dict": self._fill_dict,
            "OrderedDict": self._fill_dict,
            "object": self._fill_object,
            "objects": self._fill_objects,
        }

    def decode(self, nodes: Any, root: Any) -> Any:
        """Return the object that a value stands for.

        Parameters
        ----------
        nodes : list
        root : value

        Returns
        -------
        object
        """
        try:
            for place, kind, *content in nodes:
                if place in self._built:
                    msg = f"its description has two nodes {place!r}."
                    raise StorageError(msg)
                if kind in self._fillers:
                    self._built[place] = self._make_shell(kind, content)
            for place, kind, *content in nodes:
                if kind in self._fillers:
                    self._fillers[kind](self._built[place], *content[-1:])
                else:
                    self._built[place] = self._makers[kind](*content)
            return self._value(root)
        except StorageError:
            raise
        except Exception as error:
            # A description that is not ours may go wrong in any way.
            msg = f"its description makes no sense ({type(error).__name__}: {error})."
            raise StorageError(msg) from error

    def _make_shell(self, kind: str, content: list[Any]) -> Any:
        if kind in _SHELLS:
            return _SHELLS[kind]()
        if kind == "objects":
            shape, items = content
            if math.prod(shape) != len(items):
                msg = f"an array of objects of shape {shape} has {len(items)} items."
                raise StorageError(msg)
            return np.empty(shape, dtype=object)
        cls = self.registry.find(content[0])
        # Not by its constructor; what cannot be made like this raises TypeError.
        return object.__new__(cls)

    def _value(self, value: Any) -> Any:
        if not isinstance(value, dict):
            if isinstance(value, list):
                msg = "a list stands in the place of a value."
                raise StorageError(msg)
            return value
        # KeyError: of a node that is listed later, or not at all.
        return self._built[value["ref"]]

    def _values(self, values: list[Any]) -> list[Any]:
        return [self._value(value) for value in values]

    def _fill_dict(self, shell: dict[Any, Any], items: list[Any]) -> None:
        shell.update((self._value(key), self._value(value)) for key, value in items)

    def _fill_objects(
        self, shell: np.ndarray[Any, np.dtype[np.object_]], items: list[Any]
    ) -> None:
        flat = shell.reshape(-1)
        for place, item in enumerate(items):
            flat[place] = self._value(item)

    def _fill_object(self, shell: Any, attributes: dict[str, Any]) -> None:
        state = {name: self._value(value) for name, value in attributes.items()}
        for name, value in complete_state(type(shell), state).items():
            if name.startswith("__"):
                msg = f"it sets the attribute {name!r}."
                raise StorageError(msg)
            # As pickle does: no descriptor and no `__setattr__` of ours is asked.
            if hasattr(shell, "__dict__"):
                vars(shell)[name] = value
            else:
                object.__setattr__(shell, name, value)

    def _plain(self, name: str, values: list[Any]) -> Any:
        return PLAIN_KINDS[name].make(*self._values(values))

    def _array(self, name: str, writeable: bool) -> np.ndarray[Any, Any]:
        array = unpack_array(self._member(name))
        array.setflags(write=bool(writeable))
        return array

    def _named(self, name: str, fields: dict[str, Any]) -> Any:
        cls: Any = self.registry.find(name)
        if not issubclass(cls, tuple) or not hasattr(cls, "_fields"):
            msg = f"it makes a named tuple of {name!r}, which is none."
            raise StorageError(msg)
        given = {field: self._value(value) for field, value in fields.items()}
        known = {**cls._field_defaults, **given}
        if set(known) != set(cls._fields):
            msg = f"it has the fields {sorted(given)} for {name!r}."
            raise StorageError(msg)
        return tuple.__new__(cls, [known[field] for field in cls._fields])

    def _made(self, name: str, arguments: list[Any]) -> Any:
        cls: Any = self.registry.find(name)
        asked = any(
            "__reduce__" in vars(base) for base in cls.__mro__ if base in self.registry
        )
        if not asked:
            msg = f"it calls {name!r}, which is not made by a call."
            raise StorageError(msg)
        return cls(*self._values(arguments))

    def _part(self, kind: str, files: dict[str, str], state: dict[str, Any]) -> Any:
        if kind not in self.kinds:
            msg = f"it holds a part of the kind {kind!r}, which is not read here."
            raise StorageError(msg)
        content = {name: self._member(member) for name, member in files.items()}
        known = {name: self._value(value) for name, value in state.items()}
        return self.kinds[kind].load(Part(content, known))

    def _member(self, name: str) -> bytes:
        if name not in self.members:
            msg = f"the member {name!r} is missing."
            raise StorageError(msg)
        data = self.members[name]
        return restore_array(data) if name.endswith(f".{SUFFIX}") else data
