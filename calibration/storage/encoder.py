"""`Encoder`: from an object to a description of it, and members for its arrays."""

from __future__ import annotations

import math
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from hashlib import sha256
from inspect import getattr_static
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, NoReturn

import numpy as np

from calibration.storage.arrays import pack_array, shrink_array
from calibration.storage.errors import StorageError
from calibration.storage.parts import PartKind
from calibration.storage.plain import find_plain
from calibration.storage.registry import is_own, name_of_class

_CODE = (
    BuiltinFunctionType,
    FunctionType,
    MethodType,
    ModuleType,
    np.ufunc,
    partial,
)
# JSON has integers of any size, but readers elsewhere may hold 53 bits only.
_MOST_INTEGER = 2**53


class Encoder:
    """Describe one object; whatever occurs twice in it is described once.

    A value is what JSON has for it, or `{"ref": id}`, a node. Nodes are lists
    `[id, kind, ...]`, listed when all that they refer to is, but for cycles.

    Parameters
    ----------
    packages : sequence of str
        Whose classes are written attribute by attribute.
    kinds : sequence of PartKind
        For objects of other libraries; the first that holds one writes it.
    """

    def __init__(self, packages: Sequence[str], kinds: Sequence[PartKind]):
        self.packages = tuple(packages)
        self.kinds = tuple(kinds)
        self.nodes: list[list[Any]] = []
        self.members: dict[str, bytes] = {}
        self._ids: dict[int, int] = {}
        # Alive, so that no other object gets the address of one.
        self._alive: list[Any] = []
        self._by_digest: dict[bytes, str] = {}
        self._path: list[str] = []
        self._writers: dict[type, Callable[[Any], list[Any]]] = {
            list: self._list,
            tuple: self._list,
            set: self._set,
            frozenset: self._set,
            dict: self._dict,
            OrderedDict: self._dict,
            np.ndarray: self._array,
            np.memmap: self._array,
        }

    def encode(self, root: Any) -> Any:
        """Return the value that stands for an object.

        Parameters
        ----------
        root : object

        Returns
        -------
        value
        """
        with self._inside("model"):
            try:
                return self._value(root)
            except RecursionError as error:
                self._refuse("is nested too deeply", cause=error)

    def _value(self, value: Any) -> Any:
        if value is None or type(value) in (bool, str):
            return value
        if type(value) is int and abs(value) < _MOST_INTEGER:
            return value
        if type(value) is float and math.isfinite(value):
            return value
        if id(value) not in self._ids:
            self._ids[id(value)] = place = len(self._ids)
            self._alive.append(value)
            self.nodes.append([place, *self._describe(value)])
        return {"ref": self._ids[id(value)]}

    def _describe(self, value: Any) -> list[Any]:
        """Return the kind of a value and what it is made of."""
        if (writer := self._writers.get(type(value))) is not None:
            return writer(value)
        if (plain := find_plain(value)) is not None:
            return ["plain", plain.name, [self._value(v) for v in plain.take(value)]]
        if isinstance(value, _CODE):
            self._refuse("is a function or other code, which is never saved", value)
        if isinstance(value, type):
            return ["class", self._name_class(value)]
        if is_own(type(value), self.packages):
            return self._own(value)
        kind = next((kind for kind in self.kinds if kind.holds(value)), None)
        if kind is None:
            self._refuse("is of a type that cannot be saved", value)
        return self._part(kind, value)

    def _list(self, values: Sequence[Any]) -> list[Any]:
        items = []
        for place, value in enumerate(values):
            with self._inside(f"[{place}]"):
                items.append(self._value(value))
        return [type(values).__name__, items]

    def _set(self, values: Any) -> list[Any]:
        return [type(values).__name__, [self._value(value) for value in values]]

    def _dict(self, values: dict[Any, Any]) -> list[Any]:
        items = []
        for key, value in values.items():
            with self._inside(f"[{key!r:.40}]"):
                items.append([self._value(key), self._value(value)])
        return [type(values).__name__, items]

    def _array(self, array: np.ndarray[Any, Any]) -> list[Any]:
        if array.dtype == np.dtype(object):
            shape, items = list(array.shape), self._list(array.ravel().tolist())[1]
            return ["objects", shape, items]
        if array.dtype.hasobject:
            self._refuse("is an array with objects in its fields", array)
        name = self._add_member("npy", pack_array(array))
        return ["array", name, bool(array.flags.writeable)]

    def _own(self, value: Any) -> list[Any]:
        """Describe an object of ours by its attributes, or by how it wants to be made.

        A class that says so itself (`__reduce__`) is made of less than it holds.
        """
        cls = type(value)
        name = self._name_class(cls)
        if issubclass(cls, tuple):
            return ["named", name, self._attributes(value._asdict())]
        if any(
            "__reduce__" in vars(base)
            for base in cls.__mro__
            if is_own(base, self.packages)
        ):
            maker, arguments = value.__reduce__()
            if maker is not cls:
                self._refuse("is not made by its own class", value)
            return ["made", name, [self._value(argument) for argument in arguments]]
        return ["object", name, self._attributes(_state_of(value))]

    def _attributes(self, state: dict[str, Any]) -> dict[str, Any]:
        out = {}
        for name, value in state.items():
            with self._inside(f".{name}"):
                out[name] = self._value(value)
        return out

    def _part(self, kind: PartKind, value: Any) -> list[Any]:
        try:
            part = kind.dump(value)
        except Exception as error:
            # Whatever another library says, told with the place.
            self._refuse(f"cannot be saved ({error})", value, error)
        files = {
            name: self._add_member(name.rpartition(".")[2], data)
            for name, data in part.files.items()
        }
        return ["part", kind.name, files, self._attributes(part.state)]

    def _add_member(self, suffix: str, data: bytes) -> str:
        """Keep bytes and return their name; the same bytes are kept once."""
        digest = sha256(suffix.encode() + b"\0" + data).digest()
        if digest not in self._by_digest:
            folder = "parts"
            if suffix == "npy":
                folder, (suffix, data) = "arrays", shrink_array(data)
            name = f"{folder}/{len(self._by_digest)}.{suffix}"
            self._by_digest[digest] = name
            self.members[name] = data
        return self._by_digest[digest]

    def _name_class(self, cls: type) -> str:
        """Return the name of a class of ours that a reader will find."""
        module = sys.modules.get(cls.__module__)
        if not is_own(cls, self.packages) or (
            getattr(module, cls.__qualname__, None) is not cls
        ):
            self._refuse("is of a class that no file may name", cls)
        return name_of_class(cls)

    @contextmanager
    def _inside(self, step: str) -> Iterator[None]:
        self._path.append(step)
        yield
        self._path.pop()

    def _refuse(
        self, what: str, value: Any = None, cause: Exception | None = None
    ) -> NoReturn:
        got = "" if value is None else f", got {value!r:.120}"
        msg = f"`{''.join(self._path)}` {what}{got}."
        raise StorageError(msg) from cause


def _state_of(value: Any) -> dict[str, Any]:
    """Return the attributes of an object but those that are computed when asked for."""
    state = dict(getattr(value, "__dict__", {}))
    for base in type(value).__mro__:
        for name in vars(base).get("__slots__", ()):
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                state[name] = getattr(value, name)
    return {
        name: attribute
        for name, attribute in state.items()
        if not isinstance(getattr_static(type(value), name, None), cached_property)
    }
