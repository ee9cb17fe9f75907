"""Plain values beyond those of JSON: each as a list of plainer ones."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from calibration.storage.errors import StorageError
from calibration.storage.tables import TABLE_KINDS

_BIT_GENERATORS = {
    cls.__name__: cls
    for cls in (
        np.random.MT19937,
        np.random.PCG64,
        np.random.PCG64DXSM,
        np.random.Philox,
        np.random.SFC64,
    )
}
_TYPES: dict[str, type] = {
    **{cls.__name__: cls for cls in (bool, bytes, complex, float, int, object, str)},
    **{
        f"numpy.{cls.__name__}": cls
        for cls in (np.bool_, np.str_, np.bytes_, np.object_)
    },
    **{f"numpy.{np.dtype(code).name}": np.dtype(code).type for code in "bBhHiIlLefdFD"},
}
_TYPE_NAMES = {cls: name for name, cls in _TYPES.items()}


class PlainKind(NamedTuple):
    """A kind of immutable value.

    Parameters
    ----------
    name : str
        The name in the file.
    holds : function
        Whether a value is of this kind.
    take : function
        Of a value, the list of plainer values.
    make : function
        Of that list, the value. It checks what it calls by name.
    """

    name: str
    holds: Callable[[Any], bool]
    take: Callable[[Any], list[Any]]
    make: Callable[..., Any]


def find_plain(value: object) -> PlainKind | None:
    """Return the kind that holds a value, if there is one."""
    return next((kind for kind in PLAIN_KINDS.values() if kind.holds(value)), None)


def _exactly(*types: type) -> Callable[[object], bool]:
    return lambda value: type(value) in types


def _scalar(code: str, digits: str) -> Any:
    dtype = np.dtype(code)
    data = bytes.fromhex(digits)
    if dtype.hasobject or len(data) != dtype.itemsize:
        msg = f"a number of dtype {code!r} has {len(data)} bytes."
        raise StorageError(msg)
    return np.frombuffer(data, dtype=dtype)[0] if data else dtype.type()


def _take_dtype(dtype: np.dtype[Any]) -> list[Any]:
    if dtype == np.dtype(object):
        return [None]
    return [np.empty(0, dtype=dtype)]


def _take_seeds(seeds: Any) -> list[Any]:
    state = seeds.state
    key = [int(number) for number in state["spawn_key"]]
    return [state["entropy"], key, state["pool_size"], state["n_children_spawned"]]


def _make_seeds(entropy: Any, key: list[int], size: int, spawned: int) -> Any:
    # The pool is memory, and mixing it takes the square of its size.
    if type(size) is not int or not 4 <= size <= 1024:
        msg = f"a seed has a pool of {size!r} words."
        raise StorageError(msg)
    return np.random.SeedSequence(
        entropy, spawn_key=tuple(key), pool_size=size, n_children_spawned=spawned
    )


def _take_bits(bits: Any) -> list[Any]:
    seeds = bits.seed_seq
    known = isinstance(seeds, np.random.SeedSequence)
    return [type(bits).__name__, bits.state, seeds if known else None]


def _make_bits(name: str, state: Any, seeds: Any) -> Any:
    bits = _BIT_GENERATORS[name](0 if seeds is None else seeds)
    bits.state = state
    return bits


def _make_random_state(state: dict[str, Any]) -> np.random.RandomState:
    random = np.random.RandomState(0)
    random.set_state(state)
    return random


def _take_time(value: Any) -> list[Any]:
    text = value.isoformat()
    if type(value).fromisoformat(text) != value:
        msg = f"{value!r}, a time whose zone cannot be saved."
        raise StorageError(msg)
    return [type(value).__name__, text]


_TIMES: dict[str, Any] = {cls.__name__: cls for cls in (dt.datetime, dt.date, dt.time)}

_KINDS = (
    PlainKind("float", _exactly(float), lambda x: [repr(x)], float),
    PlainKind("int", _exactly(int), lambda x: [hex(x)], lambda text: int(text, 16)),
    PlainKind("complex", _exactly(complex), lambda x: [x.real, x.imag], complex),
    PlainKind(
        "bytes",
        _exactly(bytes),
        lambda x: [np.frombuffer(x, dtype=np.uint8)],
        lambda array: array.tobytes(),
    ),
    PlainKind("range", _exactly(range), lambda x: [x.start, x.stop, x.step], range),
    PlainKind("slice", _exactly(slice), lambda x: [x.start, x.stop, x.step], slice),
    PlainKind(
        "scalar",
        lambda x: isinstance(x, np.generic) and not x.dtype.hasobject,
        lambda x: [x.dtype.str, x.tobytes().hex()],
        _scalar,
    ),
    PlainKind(
        "dtype",
        lambda x: isinstance(x, np.dtype),
        _take_dtype,
        lambda empty: np.dtype(object) if empty is None else empty.dtype,
    ),
    PlainKind(
        "type",
        lambda x: isinstance(x, type) and x in _TYPE_NAMES,
        lambda x: [_TYPE_NAMES[x]],
        lambda name: _TYPES[name],
    ),
    PlainKind("seeds", _exactly(np.random.SeedSequence), _take_seeds, _make_seeds),
    PlainKind("bits", _exactly(*_BIT_GENERATORS.values()), _take_bits, _make_bits),
    PlainKind(
        "generator",
        _exactly(np.random.Generator),
        lambda x: [x.bit_generator],
        np.random.Generator,
    ),
    PlainKind(
        "random_state",
        _exactly(np.random.RandomState),
        lambda x: [x.get_state(legacy=False)],
        _make_random_state,
    ),
    PlainKind(
        "time",
        _exactly(*_TIMES.values()),
        _take_time,
        lambda name, text: _TIMES[name].fromisoformat(text),
    ),
    PlainKind(
        "duration",
        _exactly(dt.timedelta),
        lambda x: [x.days, x.seconds, x.microseconds],
        dt.timedelta,
    ),
    PlainKind("decimal", _exactly(Decimal), lambda x: [str(x)], Decimal),
    PlainKind(
        "fraction",
        _exactly(Fraction),
        lambda x: [x.numerator, x.denominator],
        Fraction,
    ),
)
_TABLES = (PlainKind(name, *functions) for name, functions in TABLE_KINDS.items())
PLAIN_KINDS = {kind.name: kind for kind in (*_KINDS, *_TABLES)}
