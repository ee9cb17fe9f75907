"""`Twins`: models as skops can write them, with stand-ins for what it does not know."""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property
from inspect import getattr_static
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch

from calibration.storage.registry import Registry
from calibration.storage.stand_ins import stand_in, take_parts

_ATOMS = (type(None), bool, int, float, str)
_DICTS = (dict, OrderedDict, Bunch)


class Twins:
    """Copy objects of ours and estimators, attribute by attribute.

    Leaves are numbers, arrays and what is left to skops. An object that occurs twice
    has one twin.

    Parameters
    ----------
    registry : Registry
        Of our own classes.
    """

    def __init__(self, registry: Registry):
        self.registry = registry
        #: What is left to skops, by where it stands.
        self.leaves: list[tuple[str, Any]] = []
        # With the original: alive, so that no other object gets its address.
        self._made: dict[int, tuple[Any, Any]] = {}

    def make(self, value: Any, path: str) -> Any:
        """Return the twin of a value.

        Parameters
        ----------
        value : object
        path : str
            Where it stands, for messages.

        Returns
        -------
        object
        """
        if type(value) in _ATOMS:
            return value
        if id(value) not in self._made:
            self._made[id(value)] = value, self._make(value, path)
        return self._made[id(value)][1]

    def _make(self, value: Any, path: str) -> Any:
        kind = type(value)
        if kind in (set, frozenset):
            return stand_in(kind.__name__, self.make(list(value), path))
        if kind in (list, tuple) or (
            kind in self.registry and hasattr(kind, "_fields")
        ):
            items = [self.make(item, f"{path}[{i}]") for i, item in enumerate(value)]
            return kind(*items) if hasattr(kind, "_fields") else kind(items)
        if kind in _DICTS and not all(type(key) is str for key in value):
            pairs = [list(pair) for pair in value.items()]
            return stand_in("pairs", kind is OrderedDict, self.make(pairs, path))
        if kind in _DICTS:
            twin = kind()
            for key, item in value.items():
                twin[key] = self.make(item, f"{path}[{key!r:.40}]")
            return twin
        if isinstance(value, np.generic):
            return stand_in("scalar", np.asarray(value))
        if kind in (np.ndarray, np.memmap):
            return self._make_array(value, path)
        if self._has_attributes(value):
            return self._make_object(value, path)
        if (parts := take_parts(value)) is not None:
            return stand_in(*(self.make(part, path) for part in parts))
        self.leaves.append((path, value))
        return value

    def _make_array(self, array: NDArray[Any], path: str) -> Any:
        out: Any = np.asarray(array)
        if array.dtype == np.dtype(object):
            out = np.empty(array.size, dtype=object)
            for i, item in enumerate(array.ravel().tolist()):
                out[i] = self.make(item, f"{path}[{i}]")
            if array.ndim != 1:
                out = stand_in("shaped", out, array.shape)
        return out if array.flags.writeable else stand_in("frozen", out)

    def _has_attributes(self, value: Any) -> bool:
        """Say whether an object is all in its attributes."""
        cls = type(value)
        if cls not in self.registry and not isinstance(value, BaseEstimator):
            return False
        ways: tuple[Any, ...] = (object.__getstate__, BaseEstimator.__getstate__)
        plain: Any = object.__reduce__
        return cls.__reduce__ is plain and cls.__getstate__ in ways

    def _make_object(self, value: Any, path: str) -> Any:
        cls = type(value)
        twin = object.__new__(cls)
        for name, attribute in vars(value).items():
            # What is computed when asked for is not written.
            if not isinstance(getattr_static(cls, name, None), cached_property):
                vars(twin)[name] = self.make(attribute, f"{path}.{name}")
        return twin
