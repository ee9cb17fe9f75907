"""Saving and loading. `Writer` lists a model as nodes, `Reader` makes it from them.

`find_named` is the only rule for which classes and functions a node may name.

A node is a list: its kind, then its parts. A part is None, a number or a text, written
directly. Or it is [i], which means node number i. That node comes before. So nothing
can contain itself, and what a list of nodes makes is not much longer than the list.
"""

from __future__ import annotations

import copyreg
import importlib
import inspect
import json
import math
import os
import sys
from collections.abc import Iterable, Sequence
from functools import cached_property
from inspect import getattr_static
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
import sklearn
from numpy.lib.format import descr_to_dtype, dtype_to_descr
from numpy.typing import NDArray

from calibration._validation import check_list, check_number, check_path
from calibration.storage.archive import (
    Budget,
    StorageError,
    cost_of_text,
    read_archive,
    refuse,
    refusing,
    write_archive,
)
from calibration.storage.values import (
    GROWN,
    KINDS,
    MOST_ALIKE,
    check_hashes,
    check_tables,
    kind_of,
    take_pairs,
)

# Packages whose classes are ours, by name. A package is imported if a file asks for it.
_OURS = ("calibration", "localexpert")
# Classes of scikit-learn that hold numbers and parameters. No other class of it is
# trusted, because some classes act when they are made.
_BASES = (
    "sklearn.base.BaseEstimator sklearn.model_selection.BaseCrossValidator "
    "sklearn.model_selection.BaseShuffleSplit "
    "sklearn.model_selection._split._RepeatedSplits "
    "sklearn.gaussian_process.kernels.Kernel "
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor "
    "sklearn.neural_network._stochastic_optimizers.BaseOptimizer "
    "sklearn._loss.loss.BaseLoss sklearn._loss.link.BaseLink "
    "sklearn._loss.link.Interval sklearn.compose.make_column_selector "
    "sklearn.metrics._scorer._BaseScorer sklearn.metrics._scorer._MultimetricScorer "
    "sklearn.metrics._scorer._PassthroughScorer "
    "sklearn.utils._metadata_requests.MetadataRequest "
    "sklearn.utils._metadata_requests.MethodMetadataRequest"
)
# Packages of scikit-learn that are never imported because a file asks for them.
_CLOSED = {"datasets", "experimental", "externals"}
_BESIDE = {"base", "utils", "_loss"}
# Names that nodes of a kind may have. Names that are called get the arguments that
# their own `__reduce__` gave.
_KNOWN = {
    "call": (
        "datetime.date datetime.datetime datetime.time datetime.timedelta "
        "datetime.timezone decimal.Decimal"
    ),
    "type": (
        "builtins.str builtins.int builtins.float builtins.bool builtins.dict "
        "builtins.list builtins.bytes builtins.complex builtins.object builtins.set "
        "builtins.tuple collections.OrderedDict"
    ),
    "object": "xgboost.core.Booster",
}
_BOOSTERS = ("lightgbm.sklearn", "xgboost.sklearn")
# Compiled losses. In some versions they do not know in which package they are.
_LOSSES = ("sklearn._loss._loss", "sklearn.linear_model._sgd_fast")
# Their public functions turn numbers into numbers, as ufuncs do.
_MEASURES = ("sklearn.metrics", "sklearn.feature_selection")
_UFUNCS = ("numpy", "scipy.special")


def name_of(thing: Any) -> str:
    """Return the name of a class or function: where it is found, and its own name."""
    own = getattr(thing, "__qualname__", getattr(thing, "__name__", repr(thing)))
    homes = _LOSSES if inspect.isclass(thing) else (*_UFUNCS, *_MEASURES)
    for module in (*homes, getattr(thing, "__module__", None)):
        if find_loaded(f"{module}.{own}") is thing:
            break
    return f"{module}.{own}"


def find_loaded(name: str) -> Any:
    """Return what is loaded already, or None. Nothing is imported."""
    module, _, own = name.rpartition(".")
    return getattr(sys.modules.get(module), own, None)


def find_named(kind: str, name: str, trusted: frozenset[str] = frozenset()) -> Any:
    """Return the class or function that a name stands for, or None if it is forbidden.

    Parameters
    ----------
    kind : {"object", "call", "type", "function"}
        Kind of the node that names it.
    name : str
    trusted : frozenset of str
        Names that nodes of every kind may have.

    Returns
    -------
    object
    """
    module, _, own = name.rpartition(".")
    if name in trusted or name in _KNOWN.get(kind, "").split():
        return getattr(importlib.import_module(module), own)
    top, part = [*name.split("."), ""][:2]
    is_ours = top in _OURS and "__" not in module
    of_sklearn = top == "sklearn" and part in {*sklearn.__all__, *_BESIDE} - _CLOSED
    if not (is_ours or of_sklearn or module in (*_UFUNCS, *_BOOSTERS)):
        return None
    try:
        importlib.import_module(f"sklearn.{part}" if of_sklearn else module)
    except ImportError:
        if not is_ours:
            raise
    found = find_loaded(name)
    return found if _is_safe(kind, module, found) else None


def _is_safe(kind: str, module: str, found: Any) -> bool:
    """Return whether a node may name what was found in a module.

    Classes of our packages follow one rule: they are defined there. Those of
    scikit-learn have a base that holds numbers.
    """
    if kind == "function":
        if module in _UFUNCS:
            return isinstance(found, np.ufunc)
        is_measure = module in _MEASURES and inspect.isfunction(found)
        return is_measure and found.__name__ in sys.modules[module].__all__
    if not inspect.isclass(found):
        return False
    if module in _LOSSES:
        return kind == "call"
    if module.startswith(_OURS):
        has_way = kind != "call" or found.__reduce__ is not object.__reduce__
        return found.__module__ == module and has_way
    bases = "numpy.generic" if module == "numpy" and kind == "type" else _BASES
    known = tuple(filter(None, map(find_loaded, bases.split())))
    return kind != "call" and issubclass(found, known)


_ATOMS = (type(None), bool, int, float, str)
# Kinds of nodes whose first part is a name, and how many different names are looked up.
_NAMED, _MOST_NAMES = ("object", "call", "type", "function"), 1000
# Most bytes of one item of an array, and the size up to which sizes are counted.
_MOST_ITEM, _MOST_SIZE = 2**12, 2**62
# Bytes of a value in another one, and how deep values may be. `save` goes less deep.
_OF_VALUE, _MOST_DEPTH = 8, 500
# How often the arrays in a value are copied. Texts of boosters are copied in pieces.
_COPIES = dict.fromkeys(
    ("builtins.bytes", "builtins.bytearray", "call", "numpy.generic", "sklearn.Tree"), 1
) | {"lightgbm.Booster": 10}


class Writer:
    """The nodes of a model, each object once, and the bytes of all arrays."""

    def __init__(self) -> None:
        self.nodes: list[list[Any]] = []
        self.arrays = bytearray()
        # The original is kept alive, so that no other object gets its address.
        self._places: dict[int, tuple[Any, int]] = {}

    def part(self, value: Any, path: str) -> Any:
        """Return a value as a part of a node, after adding the nodes that it needs.

        Parameters
        ----------
        value : object
        path : str
            Where the value stands. Messages name it.
        """
        if type(value) in _ATOMS:
            return value
        if id(value) not in self._places:
            try:
                node = self._node(value, path)
            except (StorageError, RecursionError):
                raise
            except Exception as error:
                msg = f"`{path}` cannot be saved ({error}), got {value!r:.120}."
                raise StorageError(msg) from error
            self._places[id(value)] = value, len(self.nodes)
            self.nodes.append(node)
        return [self._places[id(value)][1]]

    def _node(self, value: Any, path: str) -> list[Any]:
        if isinstance(value, np.memmap):
            value = np.asarray(value)
        if type(value) is np.ndarray and value.dtype != np.dtype(object):
            return self._array_node(value)
        if isinstance(value, type):
            return ["type", _name(value)]
        if inspect.isroutine(value) or isinstance(value, np.ufunc):
            return ["function", _name(value)]
        kind = kind_of(value)
        if kind not in KINDS:
            return self._object_node(value, path)
        take, _ = KINDS[kind]
        names = [key for key in value for _ in range(2)] if take is take_pairs else None
        return [kind, *self._parts([*take(value)], path, names)]

    def _parts(
        self, values: Sequence[Any], path: str, names: list[Any] | None = None
    ) -> list[Any]:
        return [
            self.part(value, f"{path}[{name!r:.40}]")
            for name, value in zip(names or range(len(values)), values, strict=True)
        ]

    def _array_node(self, array: NDArray[Any]) -> list[Any]:
        if array.dtype.hasobject:
            _blame("objects inside a table")
        flags, start = array.flags, len(self.arrays)
        is_flipped = flags.f_contiguous and not flags.c_contiguous
        order: Literal["C", "F"] = "F" if is_flipped else "C"
        if names := array.dtype.names:
            # There may be gaps between fields. They hold whatever was in memory before.
            held, array = array, np.zeros(array.shape, array.dtype, order)
            for name in names:
                array[name] = held[name]
        self.arrays += array.tobytes("A")
        descr = dtype_to_descr(array.dtype)
        return ["array", descr, order, not flags.writeable, start, *array.shape]

    def _object_node(self, value: Any, path: str) -> list[Any]:
        """Return an object as its class, its state and the arguments that make it."""
        cls, kind = type(value), "call"
        if hasattr(cls, "from_json"):
            _blame("`to_json` writes it, and `from_json` reads that")
        way, args, state, *items = (*value.__reduce_ex__(2), None)[:5]
        if way is copyreg.__newobj__:  # type: ignore[attr-defined]
            kind, args = "object", args[1:]
        elif name_of(cls).startswith(_LOSSES) and args[2:] == ((),) and state is None:
            args = ()  # Cython's own way for a class without a state
        elif way is not cls:
            _blame(f"{name_of(way)} would make it")
        if any(item is not None for item in items):
            _blame("it holds more than its attributes")
        name = _name(cls)
        if isinstance(state, dict):
            held = {
                key: self.part(item, f"{path}.{key}")
                for key, item in state.items()
                # What is computed on demand is not written, nor are trees that are
                # grown again.
                if not isinstance(getattr_static(cls, str(key), None), cached_property)
                and not (key == "_tree" and type(item) in GROWN.values())
            }
            self.nodes.append(["builtins.dict", *take_pairs(held)])
            state = [len(self.nodes) - 1]
        else:
            state = self.part(state, path)
        return [kind, name, state, *self._parts(args, path)]


def _name(thing: Any) -> str:
    """Return the name of a class or function, if it can be found by this name."""
    name = name_of(thing)
    if find_loaded(name) is not thing:
        _blame(f"{name} cannot be found by its name")
    return name


def _blame(reason: str) -> NoReturn:
    raise ValueError(reason)


class _Made(NamedTuple):
    """A value, and how much stands in it. What stands there twice counts twice."""

    value: Any
    # Bytes of arrays, number of values, and how deep values stand in one another.
    size: int = 0
    n_values: int = 1
    depth: int = 1


class Reader:
    """Makes the values of nodes one after the other, once all names are known.

    Parameters
    ----------
    text, arrays : bytes
        Description and arrays.
    trusted : frozenset of str
        Names that the description may have besides the known ones.
    budget : Budget
        Budget of the memory that this takes.
    """

    def __init__(
        self, text: bytes, arrays: bytes, trusted: frozenset[str], budget: Budget
    ):
        budget.spend(cost_of_text(text), "items in its description")
        self.nodes: list[list[Any]] = json.loads(text.decode("ascii"))
        self.arrays, self.budget = arrays, budget
        self.made: list[_Made] = []
        named = {(node[0], node[1]) for node in self.nodes if node[0] in _NAMED}
        if len(named) > _MOST_NAMES:
            refuse(f"it names more than {_MOST_NAMES} types.")
        self.found = {one: find_named(*one, trusted) for one in named}
        kind, name = self.nodes[-1][:2]
        if kind not in ("object", "call") or name.partition(".")[0] not in _OURS:
            refuse(
                f"it holds {name!r:.80}, and only models of {' and '.join(_OURS)} are "
                "loaded."
            )
        unknown = {name for (_, name), one in self.found.items() if one is None}
        if unknown:
            refuse(
                f"it holds {', '.join(sorted(unknown))}, which are not trusted. If you "
                f"know who wrote the file, load it with `trusted={sorted(unknown)!r}`."
            )

    def read(self) -> Any:
        """Return the value of the last node."""
        for kind, *parts in self.nodes:
            if kind == "array":
                self.made.append(self._array(*parts))
                continue
            held = [
                _Made(part) if type(part) in _ATOMS else self._at(*part)
                for part in parts
            ]
            size = min(sum(one.size for one in held), _MOST_SIZE)
            # An item of a set is compared with all others that have its hash.
            times = MOST_ALIKE if kind == "builtins.frozenset" else 1
            n_values = 1 + times * sum(one.n_values for one in held)
            depth = 1 + max((one.depth for one in held), default=0)
            self.budget.spend(_COPIES.get(kind, 0) * size, "values made of arrays")
            # Few nodes may stand for many values. Hashes and texts are made of all of
            # them.
            self.budget.spend(_OF_VALUE * n_values, "values in values")
            if depth > _MOST_DEPTH:
                refuse("it holds values that are nested too deeply.")
            value = self._make(kind, [one.value for one in held], size)
            self.made.append(_Made(value, size, n_values, depth))
        return self.made[-1].value

    def _at(self, place: Any) -> _Made:
        if type(place) is not int or not 0 <= place < len(self.made):
            refuse(f"its description names a node {place!r:.40} that is none.")
        return self.made[place]

    def _make(self, kind: str, parts: list[Any], size: int) -> Any:
        """Return the value of a node that is no array."""
        if kind not in _NAMED:
            check_hashes(parts)
            return KINDS[kind][1](*parts)
        cls = self.found[kind, parts[0]]
        if kind in ("type", "function"):
            return cls
        _, state, *args = parts
        value = cls.__new__(cls, *args) if kind == "object" else cls(*args)
        if state is not None and hasattr(value, "__setstate__"):
            value.__setstate__(dict(state) if isinstance(state, dict) else state)
        elif state is not None:
            vars(value).update(state)
        if "_fit_X" in getattr(value, "__dict__", {}):
            self.budget.spend(2 * size, "trees of neighbours")
        check_tables(value)
        # Use the methods of the class, because what was read may hide them in the
        # object.
        if hasattr(cls, "_check_saved"):
            cls._check_saved(value)
        # If a class checks its fields when it is made, it checks them here.
        made_once = getattr(getattr(cls, "__dataclass_params__", None), "frozen", False)
        if made_once and hasattr(cls, "__post_init__"):
            self.budget.spend(size, "copies of arrays")
            cls.__post_init__(value)
        return value

    def _array(
        self, descr: Any, order: Any, frozen: bool, start: int, *shape: int
    ) -> _Made:
        dtype = descr_to_dtype(_thaw(descr))
        if any(type(n) is not int or n < 0 for n in (start, *shape)) or dtype.hasobject:
            refuse(f"an array has the shape {shape!r:.80} and the dtype {dtype}.")
        size = math.prod(shape) * dtype.itemsize
        if not 0 < dtype.itemsize <= _MOST_ITEM or start + size > len(self.arrays):
            refuse(f"an array of shape {shape!r:.80} and {dtype} has other bytes.")
        self.budget.spend(size, "arrays")
        data, start = (self.arrays, start) if size else (None, 0)
        held: NDArray[Any] = np.ndarray(shape, dtype, data, start, None, order)
        out = held.copy(order)
        out.setflags(write=not frozen)
        return _Made(out, size)


def _thaw(descr: Any) -> Any:
    """Return the description of a dtype, with tuples in the place of JSON's lists."""
    if isinstance(descr, str):
        return descr
    return [(name, _thaw(kind), *map(tuple, shape)) for name, kind, *shape in descr]


class Saved:
    """Gives a class the method `save`."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that was fitted to a file, which `load` reads.

        Parameters
        ----------
        path : path-like
            It is replaced if it is there. After an error it is as it was before.
        """
        save(self, path)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model to a file, or write nothing.

    Parameters
    ----------
    model : object
        A model of one of our classes.
    path : path-like
        It is replaced if it is there.

    Raises
    ------
    StorageError
        If the model holds functions without a name, or anything else that cannot be
        saved.
    """
    target = check_path(path)
    writer = Writer()
    try:
        writer.part(model, "model")
    except RecursionError as error:
        msg = "`model` is nested too deeply, or holds itself."
        raise StorageError(msg) from error
    text = json.dumps(writer.nodes, separators=(",", ":")).encode("ascii")
    write_archive(target, text, bytes(writer.arrays))


def load(
    path: str | os.PathLike[str],
    *,
    trusted: Iterable[str | type] = (),
    max_memory: float | None = None,
) -> Any:
    """Return the calibrator, classifier or regressor that `save` wrote to a file.

    Parameters
    ----------
    path : path-like
        Path of the file.
    trusted : sequence of str or type, optional
        Types that the file may hold besides ours and those of scikit-learn, LightGBM
        and XGBoost. An example is your own classifier. If a type is missing here, the
        error names it.
    max_memory : float, optional
        Greatest number of bytes of memory that reading may take, about. The default is
        256 MB and 100 times the size of the file.

    Returns
    -------
    object
        Its predictions, and all its attributes, are those of the saved model, to the
        last bit.

    Raises
    ------
    StorageError
        If the file is no saved model, is damaged, is truncated, or has another format.
        Also if it holds types that are not trusted, or takes more memory than it may.

    Notes
    -----
    The file is a zip archive. It holds a description in JSON, which is a flat list of
    nodes, and the bytes of arrays. Every name in the description is compared with a
    list before anything is made. Nothing in the file is run, and nothing is unpickled.
    It is unpacked in memory only, and memory is counted before it is taken. Compiled
    code would trust some tables, so these are checked. The checksums find damage, but
    not forgery: if someone has made up the numbers, the forecasts are made up.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from calibration import PlattCalibrator
    >>> from calibration.storage import load
    >>> model = PlattCalibrator().fit([0.1, 0.4, 0.3, 0.8], [0, 1, 0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(Path(folder) / "platt.zip")
    ...     again = load(Path(folder) / "platt.zip")
    >>> bool((again.predict([0.5]) == model.predict([0.5])).all())
    True
    """
    target = check_path(path)
    listed = check_list(trusted, "trusted", "names or types")
    known = [one if isinstance(one, str) else name_of(one) for one in listed]
    if max_memory is not None:
        check_number(max_memory, "max_memory", 0.0, open_low=True)
    try:
        text, arrays, budget = read_archive(target, max_memory)
        # A description that is not ours may fail in any way.
        with refusing("its description makes no sense ({kind}: {error})."):
            return Reader(text, arrays, frozenset(known), budget).read()
    except StorageError as error:
        msg = f"`path` {str(target)!r}: {error}"
        raise StorageError(msg) from error.__cause__
