"""Values by their kinds: what takes them apart, and what makes them of the parts."""

from __future__ import annotations

import importlib
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from calibration.storage.errors import refuse
from calibration.storage.lightgbm_text import check_booster_text
from calibration.storage.tables import check_nodes

# Words of a Mersenne twister's state, and of what Philox makes at once.
_POSITIONS = {"MT19937": 624, "Philox": 4}
_GENERATORS = ("MT19937", "Philox", "PCG64", "PCG64DXSM", "SFC64")


def kind_of(value: Any) -> str:
    """Return what the kind of a value would be called, whether there is one or not."""
    cls = type(value)
    if isinstance(value, np.generic | np.dtype):
        cls = np.generic if isinstance(value, np.generic) else np.dtype
    return f"{cls.__module__.partition('.')[0]}.{cls.__name__}"


def take_pairs(value: dict[Any, Any]) -> list[Any]:
    """Return keys and values in turn."""
    return [part for pair in value.items() for part in pair]


def _list(kind: Callable[[Any], Any]) -> tuple[Any, Any]:
    return list, lambda *parts: kind(parts)


def _dict(kind: type) -> tuple[Any, Any]:
    make = lambda *parts: kind(zip(parts[::2], parts[1::2], strict=True))  # noqa: E731
    return take_pairs, make


def _make_objects(frozen: bool, n_axes: int, *rest: Any) -> NDArray[Any]:
    items = rest[n_axes:]
    out = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        out[i] = item
    out = out.reshape(rest[:n_axes])
    out.setflags(write=not frozen)
    return out


def _check_position(state: Any) -> str:
    """Return the name of a generator that draws no numbers from beyond its state."""
    name = str(state["bit_generator"])
    position = state.get("buffer_pos", state["state"].get("pos", 0))
    if name not in _GENERATORS or not 0 <= position <= _POSITIONS.get(name, 0):
        refuse(f"it holds a random generator {name!r:.40} whose place is none.")
    return name


def _make_random_state(state: dict[str, Any]) -> Any:
    _check_position(state)
    out = np.random.RandomState()
    out.set_state(state)
    return out


def _take_generator(value: Any) -> tuple[Any, ...]:
    seeds = value.bit_generator.seed_seq
    children = seeds.n_children_spawned
    return value.bit_generator.state, seeds.entropy, seeds.spawn_key, children


def _make_generator(state: Any, entropy: Any, key: Any, children: int) -> Any:
    of = getattr(np.random, _check_position(state))
    seeds = np.random.SeedSequence(entropy, spawn_key=key, n_children_spawned=children)
    bits = of(seeds)
    bits.state = state
    return np.random.Generator(bits)


def _make_tree(n_features: int, n_classes: Any, n_outputs: int, state: Any) -> Any:
    """Return a tree of scikit-learn, which trusts all that it is made of."""
    nodes = state["nodes"]
    left, right = nodes["left_child"], nodes["right_child"]
    if n_classes.shape != (n_outputs,) or state["node_count"] != len(nodes):
        refuse("it holds a tree whose tables do not fit.")
    check_nodes(np.stack([left, right]), nodes["feature"], left != -1, n_features)
    # Without a public name.
    of = importlib.import_module("sklearn.tree._tree").Tree
    tree = of(n_features, n_classes, n_outputs)
    tree.__setstate__(state)
    return tree


def _take_booster(value: Any) -> tuple[Any, ...]:
    text = value.model_to_string(num_iteration=-1)
    if "\nis_linear=1" in text:
        refuse("leaves that are lines are not read again")
    scores = {key: dict(score) for key, score in value.best_score.items()}
    return text.encode(), value.best_iteration, scores


def _make_booster(text: bytes, best_iteration: int, best_score: dict[str, Any]) -> Any:
    """Return a booster of LightGBM, which has no training data any more."""
    import lightgbm

    check_booster_text(text.decode())
    booster = lightgbm.Booster(model_str=text.decode())
    booster.best_iteration = best_iteration
    booster.best_score = best_score
    return booster


def _take_interval(value: Any) -> tuple[Any, ...]:
    import pandas as pd

    # Numbers and dates as arrays have them.
    held = pd.IntervalIndex([value])
    return held.left.to_numpy(), held.right.to_numpy(), value.closed


def _make_interval(left: Any, right: Any, closed: str) -> Any:
    import pandas as pd

    return pd.IntervalIndex.from_arrays(left, right, closed)[0]


#: By kind what takes a value apart, and what makes it of the parts.
KINDS: dict[str, tuple[Callable[[Any], Iterable[Any]], Callable[..., Any]]] = {
    "builtins.list": _list(list),
    "builtins.tuple": _list(tuple),
    "builtins.set": _list(set),
    "builtins.frozenset": _list(frozenset),
    "builtins.dict": _dict(dict),
    "collections.OrderedDict": _dict(OrderedDict),
    "sklearn.Bunch": _dict(Bunch),
    "collections.defaultdict": (
        lambda value: (value.default_factory, dict(value)),
        defaultdict,
    ),
    "builtins.slice": (lambda value: (value.start, value.stop, value.step), slice),
    "builtins.bytes": (
        lambda value: (np.array(bytearray(value), np.uint8),),
        np.ndarray.tobytes,
    ),
    "builtins.bytearray": (
        lambda value: (np.array(value, np.uint8),),
        lambda array: bytearray(np.ndarray.tobytes(array)),
    ),
    "numpy.ndarray": (
        lambda value: (
            not value.flags.writeable,
            value.ndim,
            *value.shape,
            *value.ravel().tolist(),
        ),
        _make_objects,
    ),
    "numpy.generic": (lambda value: (np.asarray(value),), lambda array: array[()]),
    "numpy.dtype": (lambda value: (np.empty(0, value),), lambda array: array.dtype),
    "numpy.MaskedArray": (
        lambda value: (value.data, np.asarray(value.mask), value.fill_value),
        lambda data, mask, fill: np.ma.MaskedArray(data, mask, fill_value=fill),
    ),
    "numpy.RandomState": (
        lambda value: (value.get_state(legacy=False),),
        _make_random_state,
    ),
    "numpy.Generator": (_take_generator, _make_generator),
    "pandas.Interval": (_take_interval, _make_interval),
    "sklearn.Tree": (
        lambda value: (*value.__reduce__()[1], value.__getstate__()),
        _make_tree,
    ),
    "lightgbm.Booster": (_take_booster, _make_booster),
}
