"""`Writer` and `Reader`: a model as a flat list of nodes, and back in one walk.

A node is a list: its kind, then its parts. A part is None, a number or a text as it
stands, or [i], the node of that number, which comes before. So nothing can hold itself,
and what a list of nodes makes is not much longer than the list.
"""

from __future__ import annotations

import copyreg
import inspect
import json
import math
from collections import Counter, OrderedDict
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.lib.format import descr_to_dtype, dtype_to_descr
from numpy.typing import NDArray
from sklearn.utils import Bunch

from calibration.storage.budget import Budget
from calibration.storage.errors import refuse
from calibration.storage.names import Names, find_loaded, name_of
from calibration.storage.tables import check_hashes, check_tables
from calibration.storage.values import make_value, take_apart

_ATOMS = (type(None), bool, int, float, str)
_LISTS: dict[str, Callable[[Any], Any]] = {
    kind.__name__: kind for kind in (list, tuple, set, frozenset)
}
_DICTS: dict[str, type] = {kind.__name__: kind for kind in (dict, OrderedDict, Bunch)}
# Kinds of nodes whose first part is a name.
_NAMED = ("object", "call", "type", "function")
# Equal bytes are kept once; more often, and a small file would make much.
_MOST_SHARES = 16
# Bytes of one item of an array, and what sizes are counted up to.
_MOST_ITEM, _MOST_SIZE = 2**12, 2**62
# Names in a description: each is looked up. Bytes of a value that is found by its hash.
_MOST_NAMES, _OF_HASHED = 1000, 300


class Writer:
    """Nodes of a model, each object once.

    Parameters
    ----------
    names : Names
        Whose classes and functions are found by their names.
    """

    def __init__(self, names: Names):
        self.names = names
        self.nodes: list[list[Any]] = []
        self._chunks: list[bytes] = []
        self._length = 0
        self._starts: dict[tuple[bytes, int], int] = {}
        self._uses: Counter[bytes] = Counter()
        # With the original: alive, so that no other object gets its address.
        self._places: dict[int, tuple[Any, int]] = {}

    def part(self, value: Any, path: str) -> Any:
        """Return a value as a part of a node, after adding the nodes that it needs.

        Parameters
        ----------
        value : object
        path : str
            Where it stands, for messages.
        """
        if type(value) in _ATOMS:
            return value
        if id(value) not in self._places:
            node = self._node(value, path)
            self._places[id(value)] = value, len(self.nodes)
            self.nodes.append(node)
        return [self._places[id(value)][1]]

    def members(self) -> tuple[bytes, bytes]:
        """Return description and arrays."""
        text = json.dumps(self.nodes, separators=(",", ":"))
        return text.encode("ascii"), b"".join(self._chunks)

    def _node(self, value: Any, path: str) -> list[Any]:
        kind = type(value)
        if kind.__name__ in _LISTS and kind is _LISTS[kind.__name__]:
            return [kind.__name__, *self._parts(value, path)]
        if kind in _DICTS.values():
            node = ["dict", kind.__name__]
            for key, item in value.items():
                node.append(self.part(key, path))
                node.append(self.part(item, f"{path}[{key!r:.40}]"))
            return node
        if kind in (np.ndarray, np.memmap):
            return self._array_node(np.asarray(value), path)
        if isinstance(value, type) or inspect.isroutine(value) or kind is np.ufunc:
            name_kind = "type" if isinstance(value, type) else "function"
            return [name_kind, self._name(name_kind, value, value, path)]
        try:
            taken = take_apart(value)
        except Exception as error:
            self._blame(value, path, error)
        if taken is not None:
            return ["make", taken[0], *self._parts(taken[1:], path)]
        return self._object_node(value, path)

    def _parts(self, values: Any, path: str) -> list[Any]:
        return [self.part(item, f"{path}[{i}]") for i, item in enumerate(values)]

    def _array_node(self, array: NDArray[Any], path: str) -> list[Any]:
        frozen = not array.flags.writeable
        if array.dtype == np.dtype(object):
            items = self._parts(array.ravel().tolist(), path)
            return ["objects", frozen, array.ndim, *array.shape, *items]
        if array.dtype.hasobject:
            self._blame(array, path, "objects inside a table")
        flags = array.flags
        order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
        data = array.tobytes("A")
        key = data, self._uses[data] // _MOST_SHARES
        self._uses[data] += 1
        if key not in self._starts:
            self._starts[key] = self._length
            self._chunks.append(data)
            self._length += len(data)
        descr = dtype_to_descr(array.dtype)
        return ["array", descr, order, frozen, self._starts[key], *array.shape]

    def _object_node(self, value: Any, path: str) -> list[Any]:
        """Return an object as its class, its state and what makes it."""
        cls = type(value)
        kind, own = "call", name_of(cls)
        try:
            way, args, state, *items = (*value.__reduce_ex__(2), None)[:5]
        except Exception as error:
            self._blame(value, path, error)
        if way is copyreg.__newobj__:  # type: ignore[attr-defined]
            kind, args = "object", args[1:]
        if items and any(item is not None for item in items):
            self._blame(value, path, "it holds more than its attributes")
        self._name(kind, cls, value, path)
        if isinstance(state, dict):
            attributes = ["dict", "dict"]
            for name, item in state.items():
                # What is computed when asked for is not written.
                hidden = inspect.getattr_static(cls, str(name), None)
                if not isinstance(hidden, cached_property):
                    attributes += [name, self.part(item, f"{path}.{name}")]
            self.nodes.append(attributes)
            held: Any = [len(self.nodes) - 1]
        else:
            held = self.part(state, path)
        return [kind, own, held, *self._parts(args, path)]

    def _name(self, kind: str, thing: Any, value: Any, path: str) -> str:
        """Return the name of a class or function, if it is found by it."""
        name = name_of(thing)
        if thing not in (self.names.find(kind, name), find_loaded(name)):
            self._blame(value, path, f"{name} cannot be found by its name")
        return name

    def _blame(self, value: Any, path: str, reason: object) -> None:
        refuse(f"`{path}` cannot be saved ({reason}), got {value!r:.120}.")


class Reader:
    """Values of nodes, made one after the other once all names are known.

    Parameters
    ----------
    text, arrays : bytes
        Description and arrays.
    names : Names
        What the description may name.
    budget : Budget
        Of the memory that this takes.
    """

    def __init__(self, text: bytes, arrays: bytes, names: Names, budget: Budget):
        budget.spend_text(text)
        self.nodes: list[list[Any]] = json.loads(text.decode("ascii"))
        self.arrays = arrays
        self.budget = budget
        named = {(node[0], node[1]) for node in self.nodes if node[0] in _NAMED}
        if len(named) > _MOST_NAMES:
            refuse(f"it names more than {_MOST_NAMES} types.")
        self.found = {one: names.find(*one) for one in named}
        self.values: list[Any] = []
        # Bytes of the arrays in each value, as often as they stand there.
        self.sizes: list[int] = []
        self._kinds: dict[str, Callable[[list[Any]], Any]] = {
            "array": self._array,
            "objects": self._objects,
            "dict": self._dict,
            "object": self._object,
            "call": self._call,
            "type": lambda node: self.found["type", node[1]],
            "function": lambda node: self.found["function", node[1]],
            "make": self._make,
            **dict.fromkeys(_LISTS, self._list),
        }

    @property
    def unknown(self) -> list[str]:
        """Names that stand where they may not."""
        return sorted({name for (_, name), one in self.found.items() if one is None})

    @property
    def root(self) -> tuple[str, str]:
        """Kind and name of the whole."""
        return self.nodes[-1][0], self.nodes[-1][1]

    def read(self) -> Any:
        """Return the value of the last node."""
        for node in self.nodes:
            parts = [p[0] for p in node[1:] if type(p) is list and len(p) == 1]
            inside = sum(self.sizes[i] for i in parts) if node[0] != "array" else 0
            self.sizes.append(min(inside, _MOST_SIZE))
            self.values.append(self._kinds[node[0]](node))
        return self.values[-1]

    def _part(self, part: Any) -> Any:
        if type(part) in _ATOMS:
            return part
        (place,) = part
        if type(place) is not int or not 0 <= place < len(self.values):
            refuse(f"its description names a node {place!r:.40} that is none.")
        return self.values[place]

    def _parts(self, parts: list[Any]) -> list[Any]:
        return [self._part(part) for part in parts]

    def _check_hashes(self, values: list[Any]) -> None:
        self.budget.spend(_OF_HASHED * len(values), "values that are found by hashes")
        check_hashes(values)

    def _list(self, node: list[Any]) -> Any:
        items = self._parts(node[1:])
        if node[0] in ("set", "frozenset"):
            self._check_hashes(items)
        return _LISTS[node[0]](items)

    def _dict(self, node: list[Any]) -> Any:
        items = self._parts(node[2:])
        self._check_hashes(items[::2])
        return _DICTS[node[1]](zip(items[::2], items[1::2], strict=True))

    def _array(self, node: list[Any]) -> NDArray[Any]:
        _, descr, order, frozen, start, *shape = node
        dtype = descr_to_dtype(_thaw(descr))
        if any(type(n) is not int or n < 0 for n in (start, *shape)) or dtype.hasobject:
            refuse(f"an array has the shape {shape!r:.80} and the dtype {dtype}.")
        size = math.prod(shape) * dtype.itemsize
        if not 0 < dtype.itemsize <= _MOST_ITEM or start + size > len(self.arrays):
            refuse(f"an array of shape {shape!r:.80} and {dtype} has other bytes.")
        self.budget.spend(size, "arrays")
        self.sizes[-1] = size
        held: NDArray[Any] = np.ndarray(
            shape,
            dtype,
            self.arrays if size else None,
            start if size else 0,
            None,
            order,
        )
        out = held.copy(order)
        out.setflags(write=not frozen)
        return out

    def _objects(self, node: list[Any]) -> NDArray[Any]:
        _, frozen, n_axes, *rest = node
        shape, items = rest[:n_axes], self._parts(rest[n_axes:])
        self._check_hashes(items)
        out = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            out[i] = item
        out = out.reshape(shape)
        out.setflags(write=not frozen)
        return out

    def _object(self, node: list[Any]) -> Any:
        _, name, state, *args = node
        cls = self.found["object", name]
        return self._finish(cls.__new__(cls, *self._parts(args)), self._part(state))

    def _call(self, node: list[Any]) -> Any:
        _, name, state, *args = node
        made = self.found["call", name](*self._parts(args))
        return self._finish(made, self._part(state))

    def _finish(self, value: Any, state: Any) -> Any:
        """Give an object its state; refuse it if that cannot be its own."""
        if state is not None and hasattr(value, "__setstate__"):
            value.__setstate__(dict(state) if isinstance(state, dict) else state)
        elif state is not None:
            vars(value).update(state)
        check_tables(value)
        cls = type(value)
        if hasattr(cls, "_read_saved"):
            cls._read_saved(dict(vars(value)))
        # What checks its fields when it is made checks them here.
        parameters = getattr(cls, "__dataclass_params__", None)
        if parameters is not None and parameters.frozen:
            getattr(value, "__post_init__", lambda: None)()
        return value

    def _make(self, node: list[Any]) -> Any:
        _, kind, *parts = node
        return make_value(kind, self._parts(parts), self.sizes[-1], self.budget)


def _thaw(descr: Any) -> Any:
    """Return the description of a dtype with tuples where JSON has lists."""
    if isinstance(descr, str):
        return descr
    return [(name, _thaw(kind), *map(tuple, shape)) for name, kind, *shape in descr]
